"""Live logs: each sink read back by its own reader, a stopped and resumed run included."""

import json
import struct
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Interrupted, Refused
from jioc.events import Epoch, Event, TaskEnd
from jioc.integrations import loggers
from jioc.integrations.loggers import SINKS, Live, figures, names, package
from jioc.resolve.derive import resolve
from jioc.results import Result, TaskRow
from jioc.training.run import run

Logged = dict[str, dict[int, list[float]]]
"""By name and step, every value that was logged."""


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Logged:
    """What is logged, by a sink in place of wandb."""
    logged: Logged = {}

    def log(numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            logged.setdefault(name, {}).setdefault(step, []).append(value)

    monkeypatch.setattr(loggers, "package", lambda name: None)
    monkeypatch.setitem(loggers.SINKS, "wandb", lambda *_: nullcontext(log))
    return logged


def stopped_and_resumed(sink: str, folder: Path, small: dict[str, Any]) -> Result:
    """Stop a run within its second task, resume it, both logged to a sink; return the result."""
    config = resolve(settings.make(method="icarl", **small, checkpoint_every=0))
    epochs: list[int] = []

    def attempt(resume: bool, stop_after: int | None) -> Result:
        live = Live([sink], config, folder)

        def tell(event: Event) -> None:
            live(event)
            if isinstance(event, Epoch):
                epochs.append(event.epoch)

        try:
            stop = (lambda: len(epochs) >= stop_after) if stop_after else None
            return run(config, out=folder, resume=resume, callback=tell, stop=stop)
        finally:
            live.close()

    with pytest.raises(Interrupted):
        attempt(False, 5)
    return attempt(True, None)


def check(logged: Logged, result: Result) -> None:
    steps = 4 + 3 + 3  # epochs of the three tasks
    assert {step: len(values) for step, values in logged["train/cls"].items()} == {
        s: 1 for s in range(1, steps + 1)
    }
    assert {step: len(values) for step, values in logged["cnn/all"].items()} == {4: 1, 7: 1, 10: 1}
    rows = result["tasks"]
    assert [v for (v,) in logged["cnn/all"].values()] == pytest.approx(
        [row["cnn"]["all"] for row in rows], rel=1e-6
    )
    masses = [row["diagnostics"]["old_mass_on_new"] for row in rows[1:]]
    assert [v for (v,) in logged["diagnostics/old_mass_on_new"].values()] == pytest.approx(masses, rel=1e-6)


def test_a_resumed_run_tells_each_step_once(tmp_path: Path, small: dict[str, Any], logged: Logged) -> None:
    check(logged, stopped_and_resumed("wandb", tmp_path / "run", small))


def test_a_row_that_was_kept_but_not_told_is_told_on_resuming(
    tmp_path: Path, small: dict[str, Any], logged: Logged
) -> None:
    config, folder = resolve(settings.make(method="icarl", **small)), tmp_path / "run"
    live = Live(["wandb"], config, folder)

    def deaf_to_the_last(event: Event) -> None:
        if not isinstance(event, TaskEnd) or event.row.task < 3:
            live(event)

    result = run(config, out=folder, callback=deaf_to_the_last)
    assert set(logged["cnn/all"]) == {4, 7}
    live.close()
    check(logged, result)


@pytest.mark.parametrize(
    "content", [[], {"stages": {"a": 1}, "logged": {}}, {"stages": {}, "logged": {"wandb": 5}}], ids=str
)
def test_a_damaged_record_of_what_was_logged_is_refused(
    content: Any, tmp_path: Path, small: dict[str, Any], logged: Logged
) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "logged.json").write_text(json.dumps(content))
    live = Live(["wandb"], resolve(settings.make(method="icarl", **small)), tmp_path)
    with pytest.raises(Refused, match="logged.json' is damaged, so live logs cannot go on"):
        run(method="icarl", **small, callback=live)


def test_without_its_package_a_sink_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SINKS:
        for module in [m for m in sys.modules if m.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(Refused, match=rf"pip install 'jioc\[{name}\]'"):
            package(name)


def test_a_wrong_sink_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert names("tensorboard,mlflow mlflow") == ["tensorboard", "mlflow"]
    assert main(["run", "icarl", "--log", "tensorbord", "--out", str(tmp_path / "x")]) == 2
    assert "did you mean 'tensorboard'?" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_without_a_sink_nothing_is_written(tmp_path: Path, small: dict[str, Any]) -> None:
    config = resolve(settings.make(method="finetune", **small))
    live = Live([], config, tmp_path / "run")
    run(config, out=tmp_path / "run", callback=live)
    live.close()
    assert not (tmp_path / "run" / "live").exists()


def test_figures_are_the_rows_numbers() -> None:
    row = {
        "task": 2,
        "classes": [2, 4],
        "cnn": {"all": 50.0, "old": None, "new": 60.0},
        "nme": None,
        "readouts": {"boosted": {"all": 51.0, "old": 52.0, "new": 53.0}},
        "diagnostics": {"old_mass_on_new": 0.25, "drift_on_old": None, "mean_logits": [1.0]},
    }
    assert figures(TaskRow.model_validate(row)) == {
        "cnn/all": 50.0, "cnn/new": 60.0, "boosted/all": 51.0, "boosted/old": 52.0, "boosted/new": 53.0,
        "diagnostics/old_mass_on_new": 0.25,
    }  # fmt: skip


# --- the real ones ---


def read_tensorboard(place: Path) -> Iterator[tuple[str, int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(place), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    for name in events.Tags()["scalars"]:
        yield from ((name, e.step, e.value) for e in events.Scalars(name))
    for name in events.Tags()["tensors"]:  # newer readers turn scalars into tensors
        for e in events.Tensors(name):
            yield name, e.step, e.tensor_proto.float_val[0]


def read_wandb(place: Path) -> Iterator[tuple[str, int, float]]:
    """W&B's own messages, by its reader of the file where the version has one in Python, else by ours."""
    import wandb
    from wandb.proto import wandb_internal_pb2 as messages

    wandb.teardown()  # its own process may still be writing
    try:
        from wandb.sdk.internal.datastore import DataStore
    except ImportError:
        DataStore = None
    for file in sorted(place.rglob("*.wandb")):
        for data in framed(file.read_bytes()) if DataStore is None else scanned(DataStore(), file):
            record = messages.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = {
                    i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item
                }
                yield from ((k, int(items["_step"]), v) for k, v in items.items() if not k.startswith("_"))


def scanned(store: Any, file: Path) -> Iterator[bytes]:
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        yield data


def framed(content: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log behind W&B's seven bytes: blocks of 32 KiB of (checksum, length, kind)."""
    assert content[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(content):
        left = -at % 32768
        if 0 < left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        whole += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield whole
            whole = b""


def read_mlflow(place: Path) -> Iterator[tuple[str, int, float]]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{place.resolve()}/mlflow.db")
    (found,) = client.search_runs([client.get_experiment_by_name("jioc").experiment_id])
    assert found.data.params["method"] == "icarl" and found.data.params["later.epochs"] == "3"
    assert found.info.status == "FINISHED"
    for name in found.data.metrics:
        yield from ((name, m.step, m.value) for m in client.get_metric_history(found.info.run_id, name))


READERS = {"tensorboard": read_tensorboard, "wandb": read_wandb, "mlflow": read_mlflow}


@pytest.mark.extras
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("sink", SINKS)
def test_its_own_reader_finds_each_step_once(
    sink: str, tmp_path: Path, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        package(sink)
    except Refused as why:
        pytest.skip(str(why))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    result = stopped_and_resumed(sink, tmp_path / "run", small)
    logged: Logged = {}
    for name, step, value in READERS[sink](tmp_path / "run" / "live" / sink):
        logged.setdefault(name, {}).setdefault(step, []).append(value)
    check(logged, result)
