"""Live logs for those who watch many runs: `jioc run --log tensorboard,wandb,mlflow`. Each is an extra; no torch here.

Every sink is told the same numbers at the same steps. A step is an epoch of the run, counted from 1 over all tasks and
stages. How far each sink has been told lies in the run's folder, so that a resumed run tells each step once.

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
from jioc.config.schema import Config
from jioc.config.values import flat, plain
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
    """tensorboard,mlflow as a list, each known."""
    wanted = [w for w in word.replace(",", " ").split() if w]
    for w in wanted:
        if w not in SINKS:
            raise unknown("value of --log", w, SINKS)
    return list(dict.fromkeys(wanted))


def need(name: str) -> Any:
    """The package of a sink; without it, the sentence that says how to get it."""
    module = {"tensorboard": "tensorboard.summary.writer.event_file_writer"}.get(name, name)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Refused(f"--log {name} needs the package {name}: pip install 'jioc[{name}]'") from None


class Live:
    """The callback that feeds the sinks."""

    def __init__(self, wanted: list[str], config: Config, folder: Path):
        for name in wanted:
            need(name)
        self.wanted, self.config, self.folder = wanted, config, folder
        self.sinks: dict[str, Sink] = {}
        self.stages: dict[str, list[int]] = {}  # by task and stage: the epochs before it, and its own
        self.told: dict[str, dict[str, Any]] = {}

    @property
    def memo(self) -> Path:
        return self.folder / FOLDER / "told.json"

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
                self._tell(numbers, "epoch", self._step(event))
            case TaskEnd(row=row):
                self._tell(dict(figures(row)), "task", self._end(row.task))

    def _open(self) -> None:
        """Once the run's folder is there."""
        before = json.loads(self.memo.read_bytes()) if self.memo.exists() else {"stages": {}, "told": {}}
        self.stages, self.told = before["stages"], before["told"]
        for name in self.wanted:
            place = self.folder / FOLDER / name
            place.mkdir(parents=True, exist_ok=True)
            told = self.told.setdefault(name, {"epoch": 0, "task": 0, "id": None})
            self.sinks[name] = MAKERS[name](place, self.config, self.folder.name, told)
        self._remember()

    def _step(self, event: Epoch) -> int:
        before = sum(epochs for _, epochs in self.stages.values())
        start, _ = self.stages.setdefault(f"{event.task}/{event.stage}", [before, event.epochs])
        return start + event.epoch

    def _end(self, task: int) -> int:
        """The last step of a task."""
        return max(
            (
                start + epochs
                for key, (start, epochs) in self.stages.items()
                if int(key.split("/")[0]) <= task
            ),
            default=0,
        )

    def _catch_up(self) -> None:
        """A run killed between a task's checkpoint and its row is not told that row again: the result has it."""
        kept = self.folder / "result.json"
        for row in results.read(kept).tasks if kept.exists() else []:
            self._tell(dict(figures(row)), "task", self._end(row.task))

    def _tell(self, numbers: dict[str, float], kind: str, step: int) -> None:
        late = [name for name in self.sinks if step > self.told[name][kind]]
        for name in late:
            self.told[name][kind] = step
        if late:
            self._remember()  # first, so that a step is never told twice
        for name in late:
            self.sinks[name].log(numbers, step)

    def _remember(self) -> None:
        write(self.memo, json.dumps({"stages": self.stages, "told": self.told}).encode())

    def close(self) -> None:
        if self.sinks:
            self._catch_up()
        for sink in self.sinks.values():
            sink.close()
        self.sinks = {}


def figures(row: TaskRow) -> Iterator[tuple[str, float]]:
    """The numbers of a task's row, by name."""
    for readout, of in row.by_readout.items():
        for kind in ("all", "old", "new"):
            if of[kind] is not None:
                yield f"{readout}/{kind}", of[kind]
    for name, value in dict(row.diagnostics or {}).items():
        if isinstance(value, (int, float)):
            yield f"diagnostics/{name}", value


class TensorBoard:
    """An event file; `tensorboard --logdir` reads it."""

    def __init__(self, place: Path, config: Config, title: str, seen: dict[str, Any]):
        self.writer = need("tensorboard").EventFileWriter(str(place))

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
    """An offline run that `wandb sync` uploads when its owner wants; a resumed run has the same id and later steps."""

    def __init__(self, place: Path, config: Config, title: str, seen: dict[str, Any]):
        wandb = need("wandb")
        seen["id"] = seen["id"] or secrets.token_hex(4)
        quiet = wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True)
        self.run = wandb.init(
            project="jioc",
            name=title,
            id=seen["id"],
            dir=place,
            mode="offline",
            config=plain(config),
            settings=quiet,
        )

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.run.log(numbers, step=step)

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """A run in the store that MLFLOW_TRACKING_URI names; without it in a file beside the run."""

    def __init__(self, place: Path, config: Config, title: str, seen: dict[str, Any]):
        from mlflow.entities import Metric, Param
        from mlflow.tracking import MlflowClient

        self.metric = Metric
        self.client = MlflowClient(
            os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{place.resolve()}/mlflow.db"
        )
        if seen["id"] is None:
            known = self.client.get_experiment_by_name("jioc")
            experiment = known.experiment_id if known else self.client.create_experiment("jioc")
            seen["id"] = self.client.create_run(experiment, run_name=title).info.run_id
            self.client.log_batch(
                seen["id"], params=[Param(k, str(v)[:500]) for k, v in flat(plain(config)).items()]
            )
        self.id: str = seen["id"]
        self.client.update_run(self.id, "RUNNING")

    def log(self, numbers: dict[str, float], step: int) -> None:
        import time

        now = int(time.time() * 1000)
        self.client.log_batch(
            self.id, metrics=[self.metric(name, value, now, step) for name, value in numbers.items()]
        )

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
