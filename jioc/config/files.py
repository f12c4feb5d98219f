"""Settings in files: YAML in which a name stands once, and the config.yaml of a run."""

from pathlib import Path
from typing import Any

import yaml

from jioc.config.schema import Config
from jioc.config.values import Values, plain
from jioc.errors import Refused, first_line

HEADER = """\
# All settings of a run. `given` names those that somebody chose; the others follow from them, and follow anew where a
# flag beside this file changes what they follow from. Who edits a value adds its name.
"""


class Once(yaml.SafeLoader):
    """YAML in which a name stands once in its place; PyYAML by itself takes the last of several in silence."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value!r} stands there twice", problem_mark=key.start_mark
                )
            seen.add((key.tag, key.value))
        return node


def read(path: Path) -> Values:
    """Read the values of a config.yaml; they are not checked yet."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Once)
    except FileNotFoundError:
        raise Refused(f"there is no configuration {str(path)!r}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Refused(
            f"{str(path)!r}{line}: cannot be read as YAML: {error.problem or error.context}"
        ) from None
    except (OSError, ValueError, yaml.YAMLError) as error:  # a date that is none is a ValueError
        raise Refused(f"{str(path)!r} cannot be read as YAML: {first_line(error)}") from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise Refused(f"{str(path)!r} is not a configuration: it holds no names and values")
    return values


def text(config: Config) -> str:
    """What config.yaml holds."""
    return HEADER + yaml.safe_dump(plain(config), sort_keys=False)
