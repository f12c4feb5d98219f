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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from jioc import results
from jioc.config import Config, flat, plain
from jioc.errors import Refused, unknown
from jioc.events import Epoch, Event, Start, TaskEnd
from jioc.files import write
from jioc.results import TaskRow

SINKS = ("tensorboard", "wandb", "mlflow")
FOLDER = "live"  # in the run's folder


class Sink(Protocol):
    """Where numbers go: by name, at a step."""

    def log(self, numbers: dict[str, float], step: int) -> None: ...

    def close(self) -> None: ...


def names(word: str) -> list[str]:
    """Split tensorboard,mlflow into a list; refuse an unknown sink."""
    wanted = word.replace(",", " ").split()
    for name in wanted:
        if name not in SINKS:
            raise unknown("value of --log", name, SINKS)
    return list(dict.fromkeys(wanted))


def package(name: str) -> Any:
    """Import the package of a sink; if it is missing, say how to get it."""
    module = {"tensorboard": "tensorboard.summary.writer.event_file_writer"}.get(name, name)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Refused(f"--log {name} needs the package {name}: pip install 'jioc[{name}]'") from None


class Live:
    """The callback of a run that feeds the sinks."""

    def __init__(self, wanted: list[str], config: Config, folder: Path):
        for name in wanted:
            package(name)
        self.wanted, self.config, self.folder = wanted, config, folder
        self.sinks: dict[str, Sink] = {}
        self.stages: dict[str, list[int]] = {}  # by task and stage: the epochs before it, and its own
        self.logged: dict[str, dict[str, Any]] = {}  # by sink: the last epoch's and task's step, and its id

    @property
    def record(self) -> Path:
        return self.folder / FOLDER / "logged.json"

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
            case TaskEnd(row=row):
                self._log(dict(figures(row)), "task", self._last_step(row.task))

    def _open(self) -> None:
        """Open the sinks, once the run's folder is there."""
        if self.record.exists():
            before = json.loads(self.record.read_bytes())
            self.stages, self.logged = before["stages"], before["logged"]
        for name in self.wanted:
            place = self.folder / FOLDER / name
            place.mkdir(parents=True, exist_ok=True)
            state = self.logged.setdefault(name, {"epoch": 0, "task": 0, "id": None})
            self.sinks[name] = MAKERS[name](place, self.config, self.folder.name, state)
        self._save()

    def _step(self, event: Epoch) -> int:
        before = sum(epochs for _, epochs in self.stages.values())
        start, _ = self.stages.setdefault(f"{event.task}/{event.stage}", [before, event.epochs])
        return start + event.epoch

    def _last_step(self, task: int) -> int:
        """The last step of a task."""
        learnt = [span for key, span in self.stages.items() if int(key.split("/")[0]) <= task]
        return max((start + epochs for start, epochs in learnt), default=0)

    def _catch_up(self) -> None:
        """Log the tasks of the result that were not logged, as of a run killed right after a checkpoint."""
        path = self.folder / "result.json"
        for row in results.read(path).tasks if path.exists() else []:
            self._log(dict(figures(row)), "task", self._last_step(row.task))

    def _log(self, numbers: dict[str, float], kind: str, step: int) -> None:
        behind = [name for name in self.sinks if step > self.logged[name][kind]]
        for name in behind:
            self.logged[name][kind] = step
        if behind:
            self._save()  # first, so that a step is never logged twice
        for name in behind:
            self.sinks[name].log(numbers, step)

    def _save(self) -> None:
        write(self.record, json.dumps({"stages": self.stages, "logged": self.logged}).encode())

    def close(self) -> None:
        if self.sinks:
            self._catch_up()
        for sink in self.sinks.values():
            sink.close()
        self.sinks = {}


def figures(row: TaskRow) -> Iterator[tuple[str, float]]:
    """The numbers of a task's row, by name."""
    for readout, accuracy in row.by_readout.items():
        for kind in ("all", "old", "new"):
            if accuracy[kind] is not None:
                yield f"{readout}/{kind}", accuracy[kind]
    for name, value in dict(row.diagnostics or {}).items():
        if isinstance(value, (int, float)):
            yield f"diagnostics/{name}", value


class TensorBoard:
    """An event file; `tensorboard --logdir` reads it."""

    def __init__(self, place: Path, config: Config, title: str, state: dict[str, Any]):
        self.writer = package("tensorboard").EventFileWriter(str(place))

    def log(self, numbers: dict[str, float], step: int) -> None:
        import time

        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self.writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WandB:
    """An offline run, uploaded by `wandb sync`; a resumed run has the same id and later steps."""

    def __init__(self, place: Path, config: Config, title: str, state: dict[str, Any]):
        wandb = package("wandb")
        state["id"] = state["id"] or secrets.token_hex(4)
        silent = wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True)
        self.run = wandb.init(
            project="jioc",
            name=title,
            id=state["id"],
            dir=place,
            mode="offline",
            config=plain(config),
            settings=silent,
        )

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.run.log(numbers, step=step)

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """A run in the store named by MLFLOW_TRACKING_URI, or else in a file in the run's folder."""

    def __init__(self, place: Path, config: Config, title: str, state: dict[str, Any]):
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        self.metric = Metric
        file = f"sqlite:///{place.resolve()}/mlflow.db"
        self.client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or file)
        if state["id"] is None:
            known = self.client.get_experiment_by_name("jioc")
            experiment = known.experiment_id if known else self.client.create_experiment("jioc")
            state["id"] = self.client.create_run(experiment, run_name=title).info.run_id
            params = [Param(path, str(value)[:500]) for path, value in flat(plain(config)).items()]
            self.client.log_batch(state["id"], params=params)
        self.id: str = state["id"]
        self.client.update_run(self.id, "RUNNING")

    def log(self, numbers: dict[str, float], step: int) -> None:
        import time

        now = int(time.time() * 1000)
        metrics = [self.metric(name, value, now, step) for name, value in numbers.items()]
        self.client.log_batch(self.id, metrics=metrics)

    def close(self) -> None:
        self.client.set_terminated(self.id)


MAKERS: dict[str, Callable[[Path, Config, str, dict[str, Any]], Sink]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "mlflow": MLflow,
}


@contextmanager
def live(wanted: list[str], config: Config, folder: Path) -> Iterator[Live]:
    sinks = Live(wanted, config, folder)
    try:
        yield sinks
    finally:
        sinks.close()
