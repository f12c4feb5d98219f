"""Live logs for those who watch many runs: `jioc run --log tensorboard,wandb,mlflow`. No torch here.

Each needs an extra. Every sink gets the same numbers at the same steps. A step is an epoch of the run,
counted from 1 over all tasks and stages. The run's folder holds the last step of each sink, so that a resumed
run logs each step once.

    train/<term>, train/lr, train/images_per_second        after every epoch
    <read-out>/all, old, new, and the diagnostics of one number        after every task, at its last epoch
"""

import importlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from jioc import results
from jioc.config import Config, Count, Options, flat, plain
from jioc.errors import Failed, Refused, os_errors, refuse_if, unknown
from jioc.events import Epoch, Event, Start, TaskEnd
from jioc.files import read_json, write
from jioc.results import TaskRow

Log = Callable[[dict[str, float], int], object]  # takes numbers by name, and their step


def names(word: str) -> list[str]:
    """Split tensorboard,mlflow into a list; refuse an unknown sink."""
    wanted = word.replace(",", " ").split()
    if strange := [name for name in wanted if name not in SINKS]:
        raise unknown("value of --log", strange[0], SINKS)
    return list(dict.fromkeys(wanted))


def package(name: str) -> Any:
    """Import the package of a sink; if it is missing, say how to get it."""
    module = {"tensorboard": "tensorboard.summary.writer.event_file_writer"}.get(name, name)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Refused(f"--log {name} needs the package {name}: pip install 'jioc[{name}]'") from None


class Fed(Options):
    """How far a sink has been fed, and what it calls the run."""

    epoch: Count
    task: Count
    id: str | None


class Before(Options):
    """What logged.json holds."""

    stages: dict[Annotated[str, Field(pattern=r"^\d{1,9}/\w+$")], tuple[Count, Count]]
    logged: dict[str, Fed]


class Live:
    """The callback of a run that feeds the sinks."""

    def __init__(self, wanted: list[str], config: Config, folder: Path):
        for name in wanted:
            package(name)
        self.wanted, self.config, self.folder = wanted, config, folder
        self.record = folder / "live" / "logged.json"
        self.closing = ExitStack()
        self.sinks: dict[str, Log] = {}
        self.stages: dict[str, tuple[int, int]] = {}  # by task and stage: the epochs before it, and its own
        self.logged: dict[str, dict[str, Any]] = {}  # by sink: the last epoch's and task's step, and its id

    def __call__(self, event: Event) -> None:
        match event:
            case _ if not self.wanted:
                return
            case Start():
                self._open()
            case Epoch():
                self._catch_up()
                numbers = {f"train/{name}": value for name, value in event.terms.items()}
                numbers |= {"train/lr": event.lr, "train/images_per_second": event.images_per_second}
                self._log(numbers, "epoch", self._step(event))
            case TaskEnd():
                self._catch_up()

    def _open(self) -> None:
        """Open the sinks, once the run's folder is there."""
        place = self.record.parent
        refuse_if(place.is_symlink(), f"{str(place)!r} is a link, so live logs are not kept there")
        if self.record.exists():
            try:
                before = Before.model_validate(read_json(self.record)).model_dump()
            except ValidationError:
                raise Refused(f"{str(self.record)!r} is damaged, so live logs cannot go on") from None
            self.stages, self.logged = before["stages"], before["logged"]
        for name in self.wanted:
            place = self.record.with_name(name)
            with os_errors(f"live logs cannot be kept in {str(place)!r}", Failed):
                place.mkdir(parents=True, exist_ok=True)
            state = self.logged.setdefault(name, {"epoch": 0, "task": 0, "id": None})
            sink = SINKS[name](place, self.config, self.folder.name, state)
            self.sinks[name] = self.closing.enter_context(sink)
        self._save()

    def _step(self, event: Epoch) -> int:
        before = sum(epochs for _, epochs in self.stages.values())
        start, _ = self.stages.setdefault(f"{event.task}/{event.stage}", (before, event.epochs))
        return start + event.epoch

    def _catch_up(self) -> None:
        """Log the tasks of the result that were not logged: the last one, or more after a run was killed."""
        path = self.folder / "result.json"
        for row in results.read(path).tasks if path.exists() else []:
            learnt = [span for key, span in self.stages.items() if int(key.split("/")[0]) <= row.task]
            self._log(figures(row), "task", max((start + epochs for start, epochs in learnt), default=0))

    def _log(self, numbers: dict[str, float], kind: str, step: int) -> None:
        behind = [name for name in self.sinks if step > self.logged[name][kind]]
        for name in behind:
            self.logged[name][kind] = step
        if behind:
            self._save()  # first, so that a step is never logged twice
        for name in behind:
            self.sinks[name](numbers, step)

    def _save(self) -> None:
        with os_errors(f"live logs cannot be kept in {str(self.record.parent)!r}", Failed):
            write(self.record, json.dumps({"stages": self.stages, "logged": self.logged}).encode())

    def close(self) -> None:
        if self.sinks:
            self._catch_up()
        self.closing.close()
        self.sinks = {}


def figures(row: TaskRow) -> dict[str, float]:
    """The numbers of a task's row, by name."""
    kinds = ("all", "old", "new")
    numbers = {f"{name}/{kind}": figures[kind] for name, figures in row.by_readout.items() for kind in kinds}
    numbers |= {f"diagnostics/{name}": value for name, value in dict(row.diagnostics or {}).items()}
    return {name: value for name, value in numbers.items() if isinstance(value, (int, float))}


def live(wanted: list[str], config: Config, folder: Path) -> "closing[Live]":
    return closing(Live(wanted, config, folder))


# --- the sinks: each yields what logs numbers at a step, and is closed after that ---


@contextmanager
def to_tensorboard(place: Path, config: Config, title: str, state: dict[str, Any]) -> Iterator[Log]:
    """Write an event file; `tensorboard --logdir` reads it."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    writer = package("tensorboard").EventFileWriter(str(place))

    def log(numbers: dict[str, float], step: int) -> None:
        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        writer.flush()

    yield log
    writer.close()


@contextmanager
def to_wandb(place: Path, config: Config, title: str, state: dict[str, Any]) -> Iterator[Log]:
    """Log to an offline run, uploaded by `wandb sync`; a resumed run has the same id and later steps."""
    wandb = package("wandb")
    state["id"] = state["id"] or secrets.token_hex(4)
    run = wandb.init(
        project="jioc",
        name=title,
        id=state["id"],
        dir=place,
        mode="offline",
        config=plain(config),
        settings=wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True),
    )
    yield run.log
    run.finish()


@contextmanager
def to_mlflow(place: Path, config: Config, title: str, state: dict[str, Any]) -> Iterator[Log]:
    """Log to a run in the store named by MLFLOW_TRACKING_URI, or else in a file in the run's folder."""
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{place.resolve()}/mlflow.db")
    if state["id"] is None:
        known = client.get_experiment_by_name("jioc")
        experiment = known.experiment_id if known else client.create_experiment("jioc")
        state["id"] = client.create_run(experiment, run_name=title).info.run_id
        params = [Param(path, str(value)[:500]) for path, value in flat(plain(config)).items()]
        client.log_batch(state["id"], params=params)
    client.update_run(state["id"], "RUNNING")

    def log(numbers: dict[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        client.log_batch(state["id"], metrics=[Metric(name, v, now, step) for name, v in numbers.items()])

    yield log
    client.set_terminated(state["id"])


Sink = Callable[[Path, Config, str, dict[str, Any]], AbstractContextManager[Log]]
SINKS: dict[str, Sink] = {"tensorboard": to_tensorboard, "wandb": to_wandb, "mlflow": to_mlflow}
