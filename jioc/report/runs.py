"""Results read from disk and wanted by a recipe, in groups: runs that differ only in their seeds are one."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic import ValidationError

from jioc import results
from jioc.config import Config, Values, make, plain
from jioc.data.catalogue import DATASETS
from jioc.data.find import find_dataset
from jioc.errors import Refused, refuse_if
from jioc.methods import find_method, record, sha256
from jioc.report import labels
from jioc.report.group import TASKS, Group, Run, collect, setting
from jioc.resolve.derive import resolve
from jioc.resolve.recipe_file import Recipe, scaled
from jioc.results import Result


def read(
    places: list[Path], over_orders: bool = False, leave_out: Callable[[str], object] | None = None
) -> list[Run]:
    """Read every result at or below the places.

    `leave_out`: told of each damaged result by its name; without it, and where none is whole, it is refused.
    """
    runs: dict[Path, Run] = {}
    refusals: list[Refused] = []
    for path in results.find(places):
        try:
            runs.setdefault(path.resolve(), _read(path, over_orders))
        except Refused as error:
            refusals.append(error)
    for refusal in refusals:
        if leave_out is None or not runs:
            raise refusal
        leave_out(f"left out: {refusal}")
    refuse_if(not runs, f"there is no result.json at or below {', '.join(repr(str(p)) for p in places)}")
    return list(runs.values())


def _read(path: Path, over_orders: bool) -> Run:
    """Read a result; refuse a damaged one by its name."""
    run = Run(path, results.read(path), over_orders)
    if wrong := _wrong_setting(run.config):
        raise Refused(f"{str(path)!r} is damaged: setting {wrong!r} is missing or not what it should be")
    tasks, classes = run.config.get("tasks") or 0, len(run.result.classes)
    refuse_if(tasks > classes, f"{str(path)!r} is damaged: it has {tasks:,} tasks for {classes:,} classes")
    return run


def _wrong_setting(config: Values) -> str | None:
    """Find the first setting of a wrong type. Names and words that only another version knows may stay."""
    try:
        Config.model_validate_json(json.dumps(config), strict=True)
    except ValidationError as error:
        for one in error.errors():
            unknown_word = one["type"] == "literal_error" and isinstance(one["input"], str)
            if not unknown_word and one["type"] != "extra_forbidden":
                return ".".join(map(str, one["loc"]))
    return None


def planned(recipe: Recipe, runs: list[Run], scale: float | None = None) -> list[Run]:
    """Sort the runs as the recipe lists them, others last, and add its missing ones: runs without a task.

    `scale`: of the schedules; by default the recipe's own.
    """
    over_orders = any(run.over_orders for run in runs)
    every = _wanted(recipe, recipe.scale if scale is None else scale, over_orders)
    wanted = collect((_key(setting(run)), run) for run in every)
    begun = {(_key(setting(run)), run.seeds) for run in runs}
    missing = [run for key, some in wanted.items() for run in some if (key, run.seeds) not in begun]
    position = {key: i for i, key in enumerate(wanted)}
    return sorted(runs + missing, key=lambda run: position.get(_key(setting(run)), len(position)))


def _wanted(recipe: Recipe, scale: float, over_orders: bool) -> Iterable[Run]:
    """Every run of the recipe, as one that nobody began."""
    for label, values in recipe.make().items():
        values = scaled(values, find_method(str(values["method"])), scale)
        for seed in recipe.seeds:
            yield not_begun(Path(label), resolve(make(**values | {"seed": seed})), over_orders)


def not_begun(path: Path, config: Config, over_orders: bool = False) -> Run:
    """Make the run of a configuration that nobody began: its result has no task."""
    values = plain(config)
    if not any(values[name] for name in TASKS):
        values["tasks"] = find_dataset(config.data).tasks
    spec = find_method(config.method)
    about = record(spec, sha256(config.method)).model_dump(mode="json")
    headline = config.headline or spec.headline
    return Run(
        path, Result(config=values, method=about, headline=headline, classes=[], tasks=[]), over_orders
    )


def counterparts(kept: list[Run], wanted: list[Run]) -> list[Run | None]:
    """Find for each wanted run a finished one of the same setting and seeds, of a data set known by name.

    What a folder of images holds may have changed, so a run on such counts for no other.
    """
    finished = [run for run in kept if run.complete and run.config.get("data") in DATASETS]
    known = {(_key(setting(run)), run.seeds): run for run in finished}
    return [known.get((_key(setting(run)), run.seeds)) for run in wanted]


def group(runs: Iterable[Run]) -> list[Group]:
    """Group the runs of one setting on the same images; name the groups, sort them, give each its host.

    A missing run, or one of a named data set, may have no fingerprint: it has the images of all others there.
    """
    settings = [(run, setting(run)) for run in runs]
    known = collect((labels.image_settings(values), run.images) for run, values in settings if run.images)

    def images(run: Run, values: Values) -> str:
        others = {*known.get(labels.image_settings(values), ())}
        theirs = len(others) == 1 and (run.missing or values["data"] in DATASETS)
        return run.images or (others.pop() if theirs else "")

    members = collect(((_key(values), images(run, values)), run) for run, values in settings)
    groups = [
        Group(sorted(some, key=lambda run: (run.missing, str(run.seeds))), fingerprint)
        for (_, fingerprint), some in members.items()
    ]
    hosts = {_host_key(g): g for g in groups if g.coordinate == "none"}
    for g in groups:
        g.base = hosts.get(_host_key(g)) if g.coordinate != "none" else None
    return labels.assign(groups)


def _host_key(g: Group) -> tuple[str, str]:
    """What a group shares with the same setting without coordination."""
    return _key({name: value for name, value in g.config.items() if name != "coordination"}), g.images


def _key(values: Values) -> str:
    return json.dumps(values, sort_keys=True)
