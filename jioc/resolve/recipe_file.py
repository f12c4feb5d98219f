"""A recipe: named runs, their seeds, the length of their schedules. Here: read from a YAML file.

base: {method: icarl, data: cifar100, memory: 1000}          settings of every run
runs: {plain: {}, jioc: {coordination.coordinate: jioc}}     a name, and what it changes
matrix: {memory: [500, 1000]}                                a setting and its values, all combined
seeds: [1, 2, 3]
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from jioc import scripts
from jioc.config import (
    Config,
    Options,
    Schedule,
    Seed,
    Values,
    as_now,
    at,
    files,
    index,
    make,
    nested,
    refusal,
    rescale,
)
from jioc.errors import Refused, refuse_if
from jioc.events import Callback, Note, ignore
from jioc.methods import Spec, find_method, own_options
from jioc.resolve import validate
from jioc.resolve.overlay import given_names, overlay

Runs = dict[str, Values]
UNCOORDINATED: Values = {"coordination": {"coordinate": "none"}}  # a flag for all runs may be idle in some
MOST_RUNS = 10_000  # of a grid; planning as many takes seconds
MOST_SCALE = 1000  # of the length of schedules
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Recipe:
    """Named runs. `make` gives their settings, nested as in config.yaml; the rest are defaults."""

    name: str
    about: str
    make: Callable[[], Runs]
    seeds: tuple[int, ...] = (1, 2, 3)
    scale: float = 1.0  # of the schedules, without --scale


def scaled(values: Values, spec: Spec, scale: float) -> Values:
    """Make the schedules `scale` times as long; a stage that has no length follows the later tasks."""
    if scale == 1:
        return values
    config = make(**values)
    later = {"epochs": spec.later.epochs} | config.later.model_dump(exclude_none=True)
    stages = rescale(config.model_copy(update={"later": Schedule(**later)}), scale)
    given = [*values.get("given", ()), *(f"{name}.epochs" for name in stages)]
    return values | stages | ({"given": given} if "given" in values else {})


# --- in a file ---


class File(Options):
    """The content of a recipe file; the top of this module shows one."""

    base: Values = {}
    runs: dict[str, Values | None] = {}
    matrix: dict[str, list[Any]] = {}
    seeds: tuple[Seed, ...] = (1, 2, 3)
    scale: Annotated[float, Field(gt=0, le=MOST_SCALE)] = 1.0


def read(path: Path, tell: Callback = ignore) -> Recipe:
    """Read a recipe; its settings are nested as in config.yaml, or dotted: `coordination.coordinate`.

    `tell` gets a note on each Python file that it names, before that is run.
    """
    values = files.read(path)
    try:
        settings = Config.model_fields.keys() - File.model_fields.keys()
        misplaced = [name for name in values if str(name).partition(".")[0] in settings]
        place = "in the list 'seeds'" if misplaced[:1] == ["seed"] else "under 'base'"
        refuse_if(misplaced, f"{' '.join(misplaced[:1])!r} is a setting of runs; it stands {place}")
        file, runs = _as_now(File.model_validate(values)), Runs()
        for script in _scripts(file):
            tell(Note(scripts.note(path, script)))
        refuse_if(not file.runs and not file.matrix, "it holds neither runs nor a matrix")
        for name, values in _combined(file):
            refuse_if(name in runs, f"two runs are called {name!r}")
            runs[name] = values
        if all(at(values, "coordination.coordinate") == "none" for values in runs.values()):
            validate.idle_coordination("none", nested(file.base).get("coordination", {}))
    except ValidationError as error:
        raise Refused(f"{str(path)!r}: {refusal(error, '')}") from None
    except Refused as error:
        raise Refused(f"{str(path)!r}: {error}") from None
    return Recipe(path.stem, str(path), lambda: runs, tuple(dict.fromkeys(file.seeds)), file.scale)


def _as_now(file: File) -> File:
    """The file with what was copied from the settings of an earlier version's run as they are now."""
    runs = {name: change and as_now(change) for name, change in file.runs.items()}
    return file.model_copy(update={"base": as_now(file.base), "runs": runs})


def _scripts(file: File) -> list[str]:
    """The Python files that the runs name as their method or data."""
    every = [*file.matrix.items()]
    for part in (file.base, *file.runs.values()):
        every += [(key, [value]) for key, value in (part or {}).items()]
    named = [value for key, choices in every if key in ("method", "data") for value in choices]
    return [*dict.fromkeys(value for value in named if scripts.is_script(value))]


def _combined(file: File) -> Iterator[tuple[str, Values]]:
    """The runs of a file: each of `runs` with each combination of the matrix, over the base."""
    seeded = "seed" in file.matrix or any("seed" in (change or {}) for change in file.runs.values())
    refuse_if(seeded, "a grid's runs get their seeds from seeds: [1, 2, 3], not from seed")
    for key, choices in file.matrix.items():
        refuse_if(not choices, f"{key} has no values in the matrix")
    combinations = math.prod([len(file.runs) or 1, *map(len, file.matrix.values())])
    refuse_if(
        combinations > MOST_RUNS, f"these are {combinations:,} runs, and a grid has at most {MOST_RUNS:,}"
    )
    stay = {*given_names(file.base)} - {"seed"}  # not the seeds that follow from it: a grid has its own
    base = overlay(UNCOORDINATED, {k: v for k, v in file.base.items() if k not in index.SEEDS or k in stay})
    axes = [[(key, value) for value in choices] for key, choices in file.matrix.items()]
    runs, cells = (file.runs or {"": {}}).items(), itertools.product(*axes)
    for (run, change), cell in itertools.product(runs, cells):
        name = "-".join([run] * bool(run) + [_label(key, value) for key, value in cell])
        refuse_if(not NAME.fullmatch(name), f"{name!r} cannot name a folder; letters, digits and . _ + - can")
        own = overlay(change or {}, dict(cell))
        values = overlay(base, own)
        refuse_if("method" not in values, f"run {name!r} has no method")
        try:
            config = make(**values)
            spec = find_method(config.method)
            validate.second_stage(config, spec)
            own_options(spec, config.options)
            validate.idle_coordination(config.coordination.coordinate, own.get("coordination", {}))
        except Refused as error:
            raise Refused(f"run {name!r}: {error}") from None
        yield name, values


def _label(key: str, value: Any) -> str:
    """A value of the matrix in a run's name: jioc, memory-40."""
    if isinstance(value, str):
        return value
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{key.rpartition('.')[2].replace('_', '-')}-{text.lower()}".replace(",", "+")
