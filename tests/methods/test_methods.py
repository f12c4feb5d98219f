"""Every method of the registry on the digits, with and without JIOC: it learns, resumes and copes."""

import itertools
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.runs import collect, same_state, stop_after
from jioc.cli.main import main
from jioc.config import make
from jioc.errors import Interrupted, Refused
from jioc.events import Epoch, Event
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.training.checkpoint import unpack
from jioc.training.run import run

WITH_MEMORY = [name for name, spec in SPECS.items() if spec.memory != "none"]
WITHOUT = [name for name, spec in SPECS.items() if spec.memory == "none" and spec.trains]
LEARNS: dict[str, Any] = {
    "data": "digits",
    "task_sizes": (4, 3, 3),
    "memory": 300,
    "batch_size": 64,
    "later": {"epochs": 5},
    "first": {"epochs": 5},
    "device": "cpu",
}
SHORT: dict[str, Any] = {
    **LEARNS,
    "memory": 60,
    "batch_size": 128,
    "later": {"epochs": 1},
    "first": {"epochs": 1},
}


def settings(base: dict[str, Any], method: str, **more: Any) -> dict[str, Any]:
    every = {"batch_size": 128} if SPECS[method].memory == "all" else {}  # which sees three times the images
    return {**base, "method": method, **every, **more}


def coordinated(word: str, **options: Any) -> dict[str, Any]:
    return {"coordination": {"coordinate": word, **options}}


@cache
def finetuned() -> float:
    """What is left of the old classes where nothing is done for them."""
    return run(**settings(LEARNS, "finetune"))["tasks"][-1]["cnn"]["old"]


@pytest.mark.parametrize(
    ("method", "word"),
    [*itertools.product(WITH_MEMORY, ["none", "jioc"]), ("icarl", "ic"), ("icarl", "oc"), ("ssil", "oc")],
)
def test_learns_three_tasks_and_keeps_the_old_ones(method: str, word: str) -> None:
    result = run(**settings(LEARNS, method, **coordinated(word)))
    last = result["tasks"][-1]
    readouts = {"cnn": last["cnn"], "nme": last["nme"], **last["readouts"]}
    assert set(readouts) == set(SPECS[method].readouts)
    assert last["cnn"]["all"] > 50  # chance is 10
    assert last["cnn"]["old"] > finetuned() + 15
    assert all(figures["all"] > 50 for figures in readouts.values())


@pytest.mark.parametrize("word", ["oc", "jioc"])
@pytest.mark.parametrize("method", WITHOUT)
def test_without_memory_outputs_are_not_coordinated(method: str, word: str) -> None:
    with pytest.raises(Refused, match=f"^{method} keeps no exemplars, so outputs cannot be coordinated"):
        run(**settings(SHORT, method, **coordinated(word)))


@pytest.mark.parametrize("method", [name for name in WITH_MEMORY if SPECS[name].memory == "exemplars"])
def test_no_memory_trains_or_is_refused(method: str) -> None:
    wanted = settings(SHORT, method, memory=0)
    if SPECS[method].needs_memory:
        with pytest.raises(Refused, match=f"--memory 0 keeps no exemplars, and {method} cannot do without"):
            run(**wanted)
    else:
        assert run(**wanted)["complete"]


# --- off, and resumed ---


def state(folder: Path) -> dict[str, Any]:
    """What the run's last checkpoint holds, times aside."""
    newest = max((folder / "checkpoint").iterdir(), key=lambda path: path.name)
    whole = unpack(newest / "begin")
    for row in whole["rows"]:
        del row["seconds"], row["images_per_second"]
    return {key: whole[key] for key in ("method", "generators", "rows")}


def composed(method: str) -> dict[str, Any]:
    """A short run with as much of JIOC as the method bears; COIL looks back from the second epoch on."""
    two = {"later": {"epochs": 2}} if method == "coil" else {}
    two |= {"second": {"epochs": 2}} if SPECS[method].second else {}
    return settings(SHORT, method, **two, **coordinated("jioc" if method in WITH_MEMORY else "ic"))


class Uninterrupted:
    """A whole run: where it is kept, and how many steps it had made at the end of each epoch."""

    def __init__(self, folder: Path, values: dict[str, Any]):
        self.folder, self.steps = folder, 0
        self.epochs: list[tuple[str, int]] = []
        run(**values, out=folder, callback=self.tell, stop=self.count)

    def count(self) -> bool:
        self.steps += 1
        return False

    def tell(self, event: Event) -> None:
        if isinstance(event, Epoch):
            self.epochs.append((event.stage, self.steps))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cache(lambda method: Uninterrupted(tmp_path_factory.mktemp(method) / "run", composed(method)))


def random_step(uninterrupted: Uninterrupted, stage: str, seed: str) -> int:
    """A step of that stage, the first counted as 1."""
    ends = [0, *(steps for _, steps in uninterrupted.epochs)]
    within = [step for (name, end), start in zip(uninterrupted.epochs, ends, strict=False) if name == stage
              for step in range(start + 1, end + 1)]  # fmt: skip
    return random.Random(seed).choice(within)


@pytest.mark.parametrize(
    ("method", "stage"),
    [
        (name, stage)
        for name, spec in SPECS.items()
        for stage in ["later"] * spec.trains + ["second"] * (spec.second is not None)
    ],
)
def test_interrupted_at_a_random_step_it_resumes_to_the_same_weights(
    method: str, stage: str, whole: Any, tmp_path: Path
) -> None:
    step = random_step(whole(method), stage, f"{method} {stage}")
    with pytest.raises(Interrupted):
        run(**composed(method), out=tmp_path / "run", stop=stop_after(step - 1))
    run(**composed(method), out=tmp_path / "run", resume=True)
    assert same_state(state(tmp_path / "run"), state(whole(method).folder))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bic", "der", "foster"])
def test_killed_it_resumes_to_the_same_weights(method: str, whole: Any, tmp_path: Path) -> None:
    values, folder = composed(method), tmp_path / "run"
    often = {**values, "task_sizes": list(values["task_sizes"]), "checkpoint_every": 0}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(often))
    words = ["run", "--config", str(tmp_path / "config.yaml"), "--out", str(folder)]
    child = subprocess.Popen([sys.executable, "-m", "jioc", *words], stdout=subprocess.DEVNULL)
    while child.poll() is None and not list((folder / "checkpoint").glob("00000[6-9]")):
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    run(**values, out=folder, resume=True)
    assert same_state(state(folder), state(whole(method).folder))


@pytest.mark.parametrize("method", WITH_MEMORY)
def test_switched_off_is_absent(method: str, tmp_path: Path) -> None:
    off = coordinated("oc", gamma1=0, gamma2=0)
    two = {"task_sizes": (4, 6)}
    run(**settings(SHORT, method, **two), out=tmp_path / "absent")
    run(**settings(SHORT, method, **two, **off), out=tmp_path / "off")
    assert same_state(state(tmp_path / "absent"), state(tmp_path / "off"))


# --- awkward tasks ---


@pytest.mark.parametrize("word", ["none", "jioc"])
@pytest.mark.parametrize("method", WITH_MEMORY)
def test_awkward_tasks_train(method: str, word: str) -> None:
    """One class, then two, four, one and two; 128 down to 6 images a class, with a quota from 80 to 8."""
    awkward = {"task_sizes": (1, 2, 4, 1, 2), "long_tail": 20, "memory": 80, "batch_size": 32}
    epochs: list[Epoch] = []
    wanted = settings({**SHORT, **awkward}, method, **coordinated(word))
    result = run(**wanted, callback=collect(Epoch, epochs))
    assert result["complete"] and min(result["counts"]) == 6
    assert result["tasks"][0]["cnn"]["all"] == 100  # of one class
    assert all(epoch.terms and all(abs(value) < 1e4 for value in epoch.terms.values()) for epoch in epochs)
    assert all(value is not None for value in result["tasks"][-1]["nme"]["per_class"])


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods"]) == 0
    lines = {words[0]: words for line in capsys.readouterr().out.splitlines() if (words := line.split())}
    assert set(SPECS) <= set(lines)
    assert "boosted," in lines["foster"] and lines["foster"][-2:] == ["yes", "yes"]  # distils, expands
    assert "nme" not in lines["finetune"]


def test_in_ssil_the_distillation_is_kept_unless_asked_otherwise() -> None:
    assert resolve(make(method="ssil")).coordination.host_kd == "keep"
    asked = {"coordinate": "oc", "host_kd": "replace"}
    assert resolve(make(method="ssil", coordination=asked)).coordination.host_kd == "replace"
    assert resolve(make(method="icarl")).coordination.host_kd == "replace"
