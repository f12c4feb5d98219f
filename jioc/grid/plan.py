"""Make the runs of a grid from a recipe and seeds, and see how far each is. No torch here.

The folders are the only state; the recipes are in `resolve/recipes.py`.
"""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from jioc.config import Config, Values, at, files, images_key, make
from jioc.data.catalogue import DATASETS
from jioc.errors import os_errors, refuse_if
from jioc.events import Callback
from jioc.files import open_regular, read_json
from jioc.methods import Spec, find_method, parse_record, refuse_changed, sha256
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.recipe_file import MOST_RUNS, UNCOORDINATED, Recipe, scaled
from jioc.resolve.recipes import RECIPES
from jioc.resolve.validate import idle_coordination
from jioc.text import counted
from jioc.training.store import refuse_other_settings


@dataclass(frozen=True)
class Job:
    """One run of a grid."""

    name: str
    config: Config
    folder: Path


def plan(
    recipe: Recipe,
    seeds: Iterable[int],
    only: list[str] | None,
    scale: float,
    flags: Callable[[Spec], Values],
    out: Path,
) -> list[Job]:
    """List the runs of a recipe, seed after seed.

    `flags(spec)`: the settings that the command gives for every run of a method.
    """
    wanted, seeds, jobs = select(recipe.make(), only), list(seeds), []
    number = len(wanted) * len(seeds)
    refuse_if(number > MOST_RUNS, f"these are {number:,} runs, and a grid has at most {MOST_RUNS:,}")
    for seed in seeds:
        for name, values in wanted.items():
            spec = find_method(str(values["method"]))
            values = scaled(values, spec, scale)
            if recipe is RECIPES.get(recipe.name):
                values = _without_stages(values, flags(spec))
            given = overlay(overlay(UNCOORDINATED | {"seed": seed}, values), flags(spec))
            folder = out / f"{name}-seed{seed}"
            jobs.append(Job(folder.name, resolve(make(**given)), folder))
    if jobs and all(job.config.coordination.coordinate == "none" for job in jobs):
        idle_coordination("none", flags(find_method(jobs[0].config.method)).get("coordination", {}))
    return jobs


def _without_stages(values: Values, flags: Values) -> Values:
    """Drop the stages that a built-in recipe gives if --epochs differ, so that they follow from those."""
    epochs, before = at(flags, "later.epochs"), at(values, "later.epochs")
    if None in (epochs, before) or str(epochs) == str(before):
        return values
    return {name: value for name, value in values.items() if name not in ("first", "second")}


def select(named: dict[str, Values], only: list[str] | None) -> dict[str, Values]:
    """Choose the runs that a word names whole (* stands for anything), or else those whose name holds it."""
    if not only:
        return named
    chosen: set[str] = set()
    for word in only:
        hits = {name for name in named if fnmatchcase(name, word)} or {name for name in named if word in name}
        refuse_if(not hits, f"--only: no run's name holds {word!r}; without it, --dry-run lists them")
        chosen |= hits
    return {name: values for name, values in named.items() if name in chosen}


FINISHED = "finished"


def status(job: Job) -> str:
    """Say how far the run is; refuse a folder that holds another run."""
    result, config = read_json(job.folder / "result.json"), job.folder / "config.yaml"
    with os_errors(f"the run's folder {str(job.folder)!r} cannot be used"):
        begun = config.exists()
    if isinstance(result, dict) and isinstance(result.get("config"), dict):
        refuse_other_settings(job.folder, result["config"], job.config)
        return FINISHED if result.get("complete") else f"{counted(tasks_learnt(job), 'task')} learnt"
    if begun:
        refuse_other_settings(job.folder, files.read(config), job.config)
        return "begun"
    return "not begun"


def tasks_learnt(job: Job) -> int:
    """How many tasks the run's result has."""
    tasks = at(read_json(job.folder / "result.json"), "tasks")
    return len(tasks) if isinstance(tasks, list) else 0


def refuse_changed_method(job: Job) -> None:
    """Refuse to go on with a run whose method's file has changed."""
    result = read_json(job.folder / "result.json")
    if isinstance(result, dict) and (record := parse_record(result.get("method"))):
        now = sha256(job.config.method)
        refuse_changed(job.config.method, record.sha256, now, f"the run in {str(job.folder)!r}")


def refuse_other_images(jobs: list[Job], tell: Callback) -> None:
    """Refuse finished runs whose images are not those of that name now."""
    from jioc.data.load import load_dataset

    images: dict[str, Any] = {}
    for job in jobs:
        data, result = job.config.data, read_json(job.folder / "result.json")
        before = at(result, "data.fingerprint")
        if data in DATASETS or before is None:
            continue
        key = images_key(job.config)
        if key not in images:
            images[key] = load_dataset(job.config, tell).record.get("fingerprint")
        others = f"the images of {data!r} are not those of the run in {str(job.folder)!r}"
        refuse_if(images[key] != before, f"{others}; choose another --out")


def is_record(value: Any) -> bool:
    """Whether this is what failures.json and slurm.json hold: a word for each of some runs."""
    return isinstance(value, dict) and all(isinstance(word, str) for word in value.values())


def append_event(out: Path, run: str, event: str, **more: Any) -> None:
    """Add a line to grid.jsonl, which says what happened to each run of a grid, and when.

    A full disk does not end the grid: a run that it harms says so itself.
    """
    line = json.dumps({"time": round(time.time(), 3), "run": run, "event": event, **more}) + "\n"
    with suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
        with open_regular(out / "grid.jsonl", "ab", buffering=0) as file:
            file.write(line.encode())  # one write, so that lines of several processes do not mix
