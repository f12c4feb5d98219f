"""The runs of a grid: which they are, and how each stands. The folders are the only state. No torch here."""

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from jioc.config import schema as settings
from jioc.config.schema import OF_DATA, Config, at
from jioc.data.catalogue import DATASETS
from jioc.errors import Refused
from jioc.events import Callback
from jioc.methods.specs import Spec, find, refuse_changed, sha256, understood
from jioc.resolve.derive import merged, refuse_idle, resolve
from jioc.resolve.recipes import PLAIN, RECIPES, Recipe, Values
from jioc.text import counted
from jioc.training.store import must_be_the_same


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
    over: Callable[[Spec], Values],
    out: Path,
) -> list[Job]:
    """The runs of a recipe, seed after seed. `over(spec)` is what the command says over every run of a method."""
    wanted = select(recipe.make(), only)
    jobs = []
    for seed in seeds:
        for name, values in wanted.items():
            spec = find(str(values["method"]))
            flags, values = over(spec), scaled(values, spec, scale)
            if recipe is RECIPES.get(recipe.name):
                values = _following(values, flags)
            said = merged(merged(PLAIN, values), flags) | {"seed": seed}
            folder = out / f"{name}-seed{seed}"
            jobs.append(Job(folder.name, resolve(settings.make(**said)), folder))
    if all(job.config.coordination.coordinate == "none" for job in jobs):
        for job in jobs[:1]:
            refuse_idle(job.config.coordination, over(find(job.config.method)).get("coordination", {}))
    return jobs


def _following(values: Values, flags: Values) -> Values:
    """A recipe of ours under another --epochs: all its stages follow. Those of somebody's file stay as written."""
    epochs, before = at(flags, "later.epochs"), at(values, "later.epochs")
    if None in (epochs, before) or str(epochs) == str(before):
        return values
    return {name: value for name, value in values.items() if name not in ("first", "second")}


def select(named: dict[str, Values], only: list[str] | None) -> dict[str, Values]:
    """The runs that a word names whole, * standing for anything, or else those whose name holds it."""
    if not only:
        return named
    chosen: set[str] = set()
    for word in only:
        hits = {name for name in named if fnmatchcase(name, word)} or {name for name in named if word in name}
        if not hits:
            raise Refused(f"--only: no run's name holds {word!r}; without it, --dry-run lists them")
        chosen |= hits
    return {name: values for name, values in named.items() if name in chosen}


def scaled(values: Values, spec: Spec, scale: float) -> Values:
    """The schedule that much as long; what is not given follows the tasks after the first."""
    if scale == 1:
        return values
    given, found = settings.make(**values), dict(values)
    for section, usual in (("later", spec.later.epochs), ("first", None), ("second", None)):
        part = getattr(given, section).model_dump(exclude_none=True)
        epochs = part.get("epochs") or usual
        if epochs is not None:
            part["epochs"] = max(1, round(epochs * scale))
            if part.get("milestones"):
                part["milestones"] = [*dict.fromkeys(max(1, round(m * scale)) for m in part["milestones"])]
            found[section] = part
    return found


FINISHED, NEW = "finished", "not begun"


def standing(job: Job) -> str:
    """Whether the run is finished, begun, or not; a folder that holds another run is refused."""
    result = read_json(job.folder / "result.json")
    kept = job.folder / "config.yaml"
    if isinstance(result, dict) and isinstance(result.get("config"), dict):
        must_be_the_same(job.folder, result["config"], job.config)
        if result.get("complete"):
            return FINISHED
        return counted(len(result.get("tasks") or []), "task") + " learnt"
    if kept.exists():
        must_be_the_same(job.folder, settings.read(kept), job.config)
        return "begun"
    return NEW


def refuse_earlier(job: Job) -> None:
    """A run of what its method's file was before is another run."""
    result = read_json(job.folder / "result.json")
    if isinstance(result, dict) and (told := understood(result.get("method"))):
        word = job.config.method
        refuse_changed(word, told.sha256, sha256(word), f"the run in {str(job.folder)!r}")


def refuse_other_images(jobs: list[Job], tell: Callback) -> None:
    """Finished runs whose images are others than those of that name now."""
    from jioc.data.dataset import load

    images: dict[str, Any] = {}
    for job in jobs:
        result, place = read_json(job.folder / "result.json"), job.config.data
        were = (result.get("data") or {}).get("fingerprint")
        if place in DATASETS or were is None:
            continue
        key = job.config.model_dump_json(include=set(OF_DATA))
        if key not in images:
            images[key] = load(job.config, tell).record.get("fingerprint")
        if images[key] != were:
            raise Refused(
                f"the images of {place!r} are not those of the run in {str(job.folder)!r}; choose another --out"
            )


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def note(out: Path, run: str, event: str, **more: Any) -> None:
    """A line in grid.jsonl, which tells what happened to each run of a grid, and when. A disk that takes none ends no
    grid: what it does to a run, that run says."""
    line = json.dumps({"time": round(time.time(), 3), "run": run, "event": event, **more}) + "\n"
    with suppress(OSError):
        out.mkdir(parents=True, exist_ok=True)
        handle = os.open(out / "grid.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(handle, line.encode())  # one write, so that lines of several processes do not mix
        finally:
            os.close(handle)
