"""Settings as plain values: checked, compared, nested as in config.yaml or flat by their dotted names."""

import hashlib
import json
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

import jioc.config.index as index
from jioc.config.declare import Options
from jioc.config.schema import Config
from jioc.errors import NEAR, Refused, refuse_if
from jioc.text import uncapitalised

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
    check_given(given)
    for path in given:
        known = path in index.every() or path.startswith("options.")
        refuse_if(not known, f"given: {path!r} is no setting; names are as in [method, later.epochs]")
    return config.filled(tuple(path for path in flat(plain(config)) if path in given))


def check_given(given: Any) -> None:
    """Refuse what is no list of names."""
    are_names = isinstance(given, (list, tuple)) and all(isinstance(path, str) for path in given)
    refuse_if(not are_names, "given: it should be a list of settings, such as [method, later.epochs]")


def plain(config: Config) -> Values:
    """The configuration as JSON and YAML hold it, with the names of the settings that were given."""
    return json.loads(config.model_dump_json()) | {"given": list(config.given)}


def digest(config: Config) -> str:
    """Eight letters that differ between two settings, whatever the machine and whoever chose them."""
    values = {name: v for name, v in plain(config).items() if name not in (*index.MACHINE, "given")}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def flat(values: Values, prefix: str = "") -> Values:
    """Turn nested settings into settings by dotted names."""
    paths: Values = {}
    for key, value in values.items():
        paths |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return paths


def nested(values: Values) -> Values:
    """Turn settings by dotted names into nested ones; what is nested already stays so.

    A value in the place of a section (later: 5) stays too, so that `make` refuses it.
    """
    sections: Values = {}
    for path, value in flat(values).items():
        section, _, name = path.rpartition(".")
        if not section:
            sections[name] = value
        elif isinstance(sections.setdefault(section, {}), dict):
            sections[section][name] = value
    return sections


def by_keys(keys: Values, options: type[Options]) -> Values:
    """Turn values by the names of their flags into nested ones; leave out a key that is no setting."""
    paths = {setting.key: path for path, setting in index.every(options).items()}
    return nested({paths[key]: value for key, value in keys.items() if key in paths})


def by_names(values: Values, options: type[Options]) -> Values:
    """Values as `make` takes them, of values by the names of `Config` or of flags (gamma2, first_epochs)."""
    paths = {setting.key: path for path, setting in index.every(options).items() if "." in path}
    for name in values:
        if name not in Config.model_fields and name not in paths and name != "given":
            raise Refused(f"unknown setting {name!r}; {_name_hint(name, paths)}")
    flags = {paths[name]: name for name in values if name in paths and name not in Config.model_fields}
    others = {name: value for name, value in values.items() if name not in flags.values()}
    for path, name in flags.items():
        section = others.get(path.partition(".")[0], {})
        refuse_if(not isinstance(section, dict), f"give {name} within {path.partition('.')[0]}")
        refuse_if(path in flat(others), f"{name} is given twice: by its name, and as {path}")
    return nested(others | {path: values[name] for path, name in flags.items()}) if flags else values


def at(values: Values, path: str) -> Any:
    """The value of a dotted name; None where there is none."""
    value: Any = values
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def differences(a: Values, b: Values) -> list[str]:
    """Dotted names of the settings in which two configurations differ, whoever chose them."""
    a, b = flat(a), flat(b)
    return sorted(path for path in a.keys() | b.keys() if path != "given" and a.get(path) != b.get(path))


def images_key(config: Config) -> str:
    """The same for two runs that read the same images in the same way."""
    return config.model_dump_json(include=set(index.grouped("images", "reading")))


# --- a wrong value as a sentence ---


def refusal(error: ValidationError, prefix: str = "--") -> Refused:
    """Turn pydantic's first complaint into a sentence that names the flag; without a prefix, the setting."""
    every = error.errors()  # a setting of several types has one of each: what is our own is told
    first = next((one for one in every if one["type"] == "value_error"), every[0])
    place = [str(name) for name in first["loc"]]
    if first["type"] == "extra_forbidden":
        hint = _hint(place[0]) if error.title == "Config" and len(place) == 1 else ""
        return Refused(f"unknown setting {'.'.join(place)!r} in the configuration{hint}")
    path = ".".join(place[:2] if place and place[0] in index.PARTS else place[:1]) or error.title
    name = index.setting(path).flag if prefix else path.rpartition(".")[2]
    why = uncapitalised(first["msg"]).replace(" greater than or equal to ", " at least ")
    if first["type"] == "less_than_equal":
        why = f"it should be at most {first['ctx']['le']:.12g}"
    why = why.replace("input should be", "it should be").partition(", unable to parse")[0]
    if first["type"] == "string_pattern_mismatch":
        why = "it should be auto, cpu, cuda or cuda:1"  # the only setting with a pattern
    if first["type"] == "literal_error" and path == "order":
        why = "it should be the word original, or a list of labels and names"
    return Refused(f"{name}: {first['input']!r} is refused: {why}")


def _hint(name: str) -> str:
    """Say where a setting is that stands in the wrong place of a file, or name the nearest one."""
    parts = [setting for setting in index.every().values() if setting.section]
    places = {word: setting for setting in parts for word in (setting.path, setting.key)}
    if name in places:
        return f"; {places[name].section!r} has {places[name].name!r}"
    near = get_close_matches(name, [*Config.model_fields, *places], n=1, cutoff=NEAR)
    if near and near[0] in places:
        return f"; did you mean {places[near[0]].name!r} in {places[near[0]].section!r}?"
    return f"; did you mean {near[0]!r}?" if near else "; a method's own are in 'options'"


def _name_hint(name: str, paths: dict[str, str]) -> str:
    """Say how a keyword of `jioc.run` is called; `paths`: the settings of sections by the names of flags."""
    keys = {path: key for key, path in paths.items()}
    if name in keys:
        section, _, last = name.partition(".")
        return f"give it as {keys[name]}=..., or as {section}={{{last!r}: ...}}"
    near = get_close_matches(name, [*Config.model_fields, *paths, *keys], n=1, cutoff=NEAR)
    if near:
        return f"did you mean {keys.get(near[0], near[0])!r}?"
    return "names are those of the flags of jioc run, with underscores"
