"""Start a run: check its settings, load its images, make its folder. `runner.Run` then learns the tasks.

import jioc
result = jioc.run(method="icarl", data="digits", coordinate="jioc")
result.average["cnn"]
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import torch

from jioc.config import Config, Values, at, by_names, digest, index, make
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.device.distributed import ALONE, World, process_group
from jioc.errors import Refused, refuse_if
from jioc.events import Callback, Note, log_notes
from jioc.methods import SPECS, find_method
from jioc.resolve import repeat, validate
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.presets import PRESETS
from jioc.resolve.suggest import method_for
from jioc.results import Result
from jioc.stopping import until
from jioc.torchrun import first_process
from jioc.training.build import Plan
from jioc.training.preflight import preflight
from jioc.training.runner import Run
from jioc.training.store import Store, has_checkpoint, refuse_taken


def run(
    config: Config | None = None,
    *,
    out: Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
    **values: Any,
) -> Result:
    """Run a configuration, or settings by name: as in `config.yaml`, or as flags (coordinate, epochs, …).

    With `out` the run is saved there and can be resumed; without, nothing is written. Without a `callback`
    notes go to the logger `jioc`, which prints them on stderr. `stop` is asked before every step; when it
    says yes the run saves a checkpoint and raises `Interrupted`. Under torchrun every process calls this; the
    first one writes and calls back, and all return the result.
    """
    why: list[str] = []
    if config is None:
        values, why = _with_method(values)
        config = make(**values)
    elif not isinstance(config, Config):
        raise Refused(
            "jioc.run takes settings by their names, such as method='icarl', or a jioc.Config; "
            f"not {config!r}"
        )
    else:
        refuse_if(values, f"give a configuration or its values, not both: {', '.join(values)}")
    config = resolve(config)
    notes = [*why, *validate.unused(config)]
    callback = callback or log_notes
    if first_process():
        for text in notes:
            callback(Note(text))
    return execute(config, out=out, resume=resume, callback=callback, stop=stop)


def _with_method(values: Values) -> tuple[Values, list[str]]:
    """Settings that may be given by the names of flags, some of which are the method's own.

    As on the command line a method may be a preset, and a folder of photographs without one gets one; a note
    says which.
    """
    method = values.get("method")
    if isinstance(method, str) and method in PRESETS:
        return _over(PRESETS[method].values, values), []
    if method is not None:
        known = isinstance(method, str | Path)
        return by_names(values, find_method(str(method), PRESETS).options) if known else values, []
    word = values.get("coordinate") or at(values, "coordination.coordinate")
    several = any(values.get(name) is not None for name in index.grouped("tasks"))
    found = method_for(values.get("data"), trains=word not in (None, "none"), several=several)
    if found is None:
        names = ", ".join(SPECS)
        raise Refused(
            f"jioc.run needs a method: {names}, or a Python file; with a folder of photographs it finds one"
        )
    suggested, why = found
    return _over(suggested, values), [why]


def _over(usual: Values, values: Values) -> Values:
    """Lay settings by name over a preset's, or over those that are suggested, and take their method."""
    own, _ = _with_method(values | {"method": usual["method"]})
    return overlay(usual, own)


def execute(
    config: Config,
    *,
    out: Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    stop: Callable[[], bool] | None = None,
    before: Callable[[Plan], None] | None = None,
) -> Result:
    """Run a resolved configuration, on the processes that torchrun has started."""
    with process_group(config.bn) as world:
        world.must_agree("settings", digest(config))
        if not world.first:
            out = callback = None
        return execute_on(
            config,
            load_dataset,
            out=out,
            resume=resume,
            callback=callback,
            stop=stop,
            world=world,
            before=before,
        )


def execute_on(
    config: Config,
    read: Callable[[Config, Callback], Dataset],
    *,
    out: Path | None,
    resume: bool,
    callback: Callback | None,
    stop: Callable[[], bool] | None,
    world: World = ALONE,
    on: Callable[[torch.device], AbstractContextManager[Any]] = nullcontext,
    before: Callable[[Plan], None] | None = None,
) -> Result:
    """Run a resolved configuration on the images that `read` gives, within the context `on(device)`.

    `before`: is given the plan of a run that begins.
    """
    if out is not None:
        refuse_taken(Path(out), config, resume)  # before images are decoded
    begins = out is None or not has_checkpoint(Path(out))
    plan = preflight(config, read(config, until(stop, callback)), world, begins=world.broadcast(begins))
    if before is not None and begins:
        before(plan)
    store = None if out is None else Store(Path(out), config, resume)
    with nullcontext() if store is None else closing(store), on(plan.device):
        return Run(plan, store, callback, stop, command=repeat.line(config)).run_tasks()
