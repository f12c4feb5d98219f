"""Settings as an earlier version recorded them, in the words of this one. No torch here."""

from dataclasses import dataclass

from jioc.config.schema import READINGS
from jioc.config.values import Values


@dataclass(frozen=True)
class Gone:
    """An option that is gone: what it was where it changed nothing, and the methods that had it (or all)."""

    was: str
    methods: tuple[str, ...] = ()


GONE = {
    ("coordination", "delta_softmax"): Gone("host"),
    ("coordination", "ic_terms"): Gone("cls"),
    ("options", "correction"): Gone("norms", ("wa", "der")),
    ("options", "new_columns"): Gone("zero", ("der", "foster")),
}


def as_now(values: Values) -> Values:
    """The values of a file; those that a run has written, in the words of this version."""
    return upgraded(values) if "given" in values else values


def upgraded(values: Values) -> Values:
    """What a run or a model has recorded. An option that is gone and acted stays, to be refused by name.

    Before readings had a name, all runs were by the formulas as printed. Where nothing is coordinated, the
    reading that nobody gave follows anew.
    """
    values = dict(values)
    given = values.get("given") if isinstance(values.get("given"), list | tuple) else ()
    if coordination := _section(values, "coordination"):
        if coordination.get("coordinate", "none") == "none":
            read = [n for n in ("reading", *READINGS["printed"]) if f"coordination.{n}" not in (given or ())]
            values["coordination"] = {name: v for name, v in coordination.items() if name not in read}
        else:
            reading = coordination.get("reading", "printed")
            values["coordination"] = {"reading": reading} | READINGS.get(str(reading), {}) | coordination
    dropped = [gone for gone in GONE if _idle(values, *gone)]
    for section, name in dropped:
        values[section] = {key: value for key, value in values[section].items() if key != name}
    if given:
        values["given"] = [path for path in given if path not in [*map(".".join, dropped)]]
    return values


def _idle(values: Values, section: str, name: str) -> bool:
    """Whether an option that is gone stands there and had no effect."""
    gone = GONE[section, name]
    if name not in _section(values, section) or (gone.methods and values.get("method") not in gone.methods):
        return False
    off = section == "coordination" and values[section].get("coordinate", "none") == "none"
    elsewhere = name == "delta_softmax" and values.get("method") != "foster"  # only FOSTER had two softmaxes
    return off or elsewhere or values[section][name] == gone.was


def _section(values: Values, name: str) -> Values:
    section = values.get(name)
    return section if isinstance(section, dict) else {}
