"""Settings as plain values: nested as in config.yaml, or flat by their dotted names. Checked here, and compared."""

import hashlib
import json
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from jioc.config import index
from jioc.config.schema import Config, Options
from jioc.errors import Refused

Values = dict[str, Any]


def make(**values: Any) -> Config:
    """Check the values and make a configuration of them; refuse a wrong one in a sentence."""
    given = values.pop("given", None)
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        raise refusal(error) from None
    if given is None:
        return config
    if not isinstance(given, (list, tuple)) or not all(isinstance(path, str) for path in given):
        raise Refused(
            "given: it should be a list of the settings that were given, such as [method, later.epochs]"
        )
    return config.filled(tuple(path for path in flat(plain(config)) if path in given))


def plain(config: Config) -> Values:
    """The configuration as JSON and YAML hold it, with the names of what was given."""
    return json.loads(config.model_dump_json()) | {"given": list(config.given)}


def digest(config: Config) -> str:
    """Eight letters that tell two settings apart, wherever they run and whoever chose them."""
    values = {k: v for k, v in plain(config).items() if k not in (*index.MACHINE, "given")}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def flat(values: Values, path: str = "") -> Values:
    """Settings by their dotted names."""
    found: Values = {}
    for key, value in values.items():
        found |= flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return found


def nested(values: Values) -> Values:
    """Settings in sections, of dotted names and sections alike."""
    found: Values = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:
            found.setdefault(section, {})[name] = value
        elif isinstance(value, dict):
            found.setdefault(key, {}).update(value)
        else:
            found[key] = value
    return found


def by_keys(keys: Values, options: type[Options]) -> Values:
    """Values by the names of their flags, nested; of a key that is no setting nothing is taken."""
    paths = {one.key: path for path, one in index.every(options).items()}
    return nested({paths[key]: value for key, value in keys.items() if key in paths})


def at(values: Values, path: str) -> Any:
    """The setting of a dotted name; None where there is none."""
    value: Any = values
    for word in path.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value


def drop(values: Values, path: str) -> None:
    """Take a setting out, where it is there."""
    section, _, name = path.rpartition(".")
    held = values.get(section) if section else values
    if isinstance(held, dict):
        held.pop(name, None)


def differences(a: Values, b: Values) -> list[str]:
    """Dotted names of the settings in which two configurations differ, whoever gave them."""
    a, b = flat(a), flat(b)
    return sorted(path for path in a.keys() | b.keys() if path != "given" and a.get(path) != b.get(path))


# --- a wrong value as a sentence ---


def refusal(error: ValidationError, prefix: str = "--") -> Refused:
    """Turn pydantic's first complaint into a sentence with the flag's name; without a prefix, with the setting's."""
    first = error.errors()[0]
    place = [word for word in first["loc"] if isinstance(word, str)]
    if first["type"] == "extra_forbidden":
        home = _home(place[0]) if error.title == "Config" and len(first["loc"]) == 1 else ""
        return Refused(f"unknown setting {'.'.join(map(str, first['loc']))!r} in the configuration{home}")
    named = [word for word in place if not word.startswith(("constrained", "literal", "function"))]
    path = ".".join(named[:2]) if named and named[0] in index.PARTS else (named or [str(error.title)])[0]
    path = path.removeprefix("options.")
    name = index.setting(path).key if prefix else path.rpartition(".")[2]
    told = first["msg"][0].lower() + first["msg"][1:].replace(" greater than or equal to ", " at least ")
    told = told.replace("input should be", "it should be")
    if first["type"] == "string_pattern_mismatch":
        told = "it should be auto, cpu, cuda or cuda:1"  # the only setting with a pattern
    return Refused(f"{index.flag(name) if prefix else name}: {first['input']!r} is refused: {told}")


def _home(name: str) -> str:
    """Where a setting that is looked for in the wrong place is."""
    for one in index.every().values():
        if one.section and one.key == name:
            return f"; {one.section!r} has {one.name!r}"
    near = get_close_matches(name, Config.model_fields, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; a method's own are in 'options'"
