"""Settings in files: YAML without repeated names, and the config.yaml of a run."""

import itertools
from pathlib import Path
from typing import Any

import yaml

from jioc.config.earlier import as_now
from jioc.config.schema import Config
from jioc.config.values import Values, plain
from jioc.errors import Refused, refuse_if, unreadable
from jioc.files import read_text

DEEPEST = 20  # levels; a configuration has three
HEADER = """\
# All settings of a run. `given` names those that somebody chose; the others follow from them, and follow anew
# where a flag of `jioc run --config` changes what they follow from. Who edits a value adds its name there.
"""


MOST_VALUES = 100_000  # of a file, each alias counted as what it stands for


class UniqueKeyLoader(yaml.SafeLoader):
    """Refuse a name that stands twice in one place; PyYAML alone takes the last one in silence.

    Refuse aliases that make a short file a huge one, too, and one that stands for a part of itself.
    """

    def __init__(self, stream: str):
        super().__init__(stream)
        self._size: dict[yaml.Node, int] = {}  # of each part that is whole

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark, is_alias = self.peek_event().start_mark, self.check_event(yaml.AliasEvent)
        node: Any = super().compose_node(parent, index)
        if is_alias and node not in self._size:
            raise yaml.MarkedYAMLError(problem="an alias stands for a part of itself", problem_mark=mark)
        if not is_alias:
            parts = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
            inside = 0 if isinstance(node, yaml.ScalarNode) else sum(self._size[part] for part in parts)
            self._size[node] = 1 + inside
        if self._size[node] > MOST_VALUES:
            raise yaml.MarkedYAMLError(problem=f"more than {MOST_VALUES:,} values", problem_mark=mark)
        return node

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
        values = yaml.load(read_text(path), UniqueKeyLoader)
    except FileNotFoundError:
        raise Refused(f"there is no configuration {str(path)!r}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Refused(
            f"{str(path)!r}{line}: cannot be read as YAML: {error.problem or error.context}"
        ) from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except Exception as error:  # a word with a tag that it does not fit raises anything
        raise Refused(f"{str(path)!r} cannot be read as YAML: {unreadable(error)}") from None
    has_names = isinstance(values, dict) and all(isinstance(key, str) for key in values)
    refuse_if(not has_names, f"{str(path)!r} is not a configuration: it holds no names and values")
    refuse_if(_is_deep(values), f"{str(path)!r} cannot be read as YAML: it is nested too deeply")
    return as_now(values)


def _is_deep(value: Any, above: tuple[int, ...] = (), seen: set[int] | None = None) -> bool:
    """Whether something is nested in many others, or in itself. What has several names is seen once."""
    seen = set() if seen is None else seen
    if not isinstance(value, dict | list | tuple) or id(value) in seen:
        return False
    inside, parts = (*above, id(value)), value.values() if isinstance(value, dict) else value
    if id(value) in above or len(above) > DEEPEST or any(_is_deep(part, inside, seen) for part in parts):
        return True
    seen.add(id(value))
    return False


def text(config: Config) -> str:
    """The content of a run's config.yaml."""
    return HEADER + yaml.safe_dump(plain(config), sort_keys=False)
