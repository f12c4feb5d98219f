"""Settings in files: YAML without repeated names, and the config.yaml of a run."""

from pathlib import Path
from typing import Any

import yaml

from jioc.config.schema import Config
from jioc.config.values import Values, plain
from jioc.errors import Refused, first_line, refuse_if

HEADER = """\
# All settings of a run. `given` names those that somebody chose; the others follow from them, and follow anew
# where a flag of `jioc run --config` changes what they follow from. Who edits a value adds its name there.
"""


class UniqueKeyLoader(yaml.SafeLoader):
    """Refuse a name that stands twice in one place; PyYAML alone takes the last one in silence."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key in [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]:
            if (key.tag, key.value) in seen and not key.tag.endswith(":merge"):
                problem = f"{key.value!r} stands there twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add((key.tag, key.value))
        return node


def read(path: Path) -> Values:
    """Read the values of a YAML file; they are not checked yet."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), UniqueKeyLoader)
    except FileNotFoundError:
        raise Refused(f"there is no configuration {str(path)!r}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Refused(
            f"{str(path)!r}{line}: cannot be read as YAML: {error.problem or error.context}"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:  # a date that does not exist is a ValueError
        raise Refused(f"{str(path)!r} cannot be read as YAML: {first_line(error)}") from None
    has_names = isinstance(values, dict) and all(isinstance(key, str) for key in values)
    refuse_if(not has_names, f"{str(path)!r} is not a configuration: it holds no names and values")
    return values


def text(config: Config) -> str:
    """The content of a run's config.yaml."""
    return HEADER + yaml.safe_dump(plain(config), sort_keys=False)
