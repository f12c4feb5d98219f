"""One run on two processes ends as on one, with the same weights, exemplars and figures; resumed, too."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributed import HashStore
from torch.nn.parallel import DistributedDataParallel

from helpers.pair import pair
from helpers.runs import outcome, weights
from jioc.config import values as settings
from jioc.data.augment.basic import Augment, Augmentation, WithPolicy
from jioc.data.augment.crops import PaddedCrop, ResizedCrop
from jioc.data.loader import Images
from jioc.data.stream import Streamed
from jioc.device.distributed import World, process_group
from jioc.errors import Failed, Refused
from jioc.methods import SPECS
from jioc.nets.batchnorm import BatchNorm
from jioc.resolve.derive import resolve
from jioc.training.checkpoint import unpack
from jioc.training.execution import choose_execution
from jioc.training.run import run

SHORT: dict[str, Any] = {
    "data": "digits",
    "task_sizes": (5, 5),
    "long_tail": 9,
    "memory": 20,
    "first": {"epochs": 1},
    "later": {"epochs": 1},
    "batch_size": 151,  # odd, and an epoch of the first task ends with a lone image: a share is empty
    "bn": "synchronised",
    "device": "cpu",
}
METHODS: dict[str, dict[str, Any]] = {
    method: {
        **SHORT,
        "method": method,
        "coordination": {
            "coordinate": "none" if not spec.trains else "ic" if spec.memory == "none" else "jioc"
        },
    }
    for method, spec in SPECS.items()
}
MEANS = {"coordinate": "jioc", "delta_scale": "mean1", "suppress_scale": "old-mean", "oc_reduce": "mean"}
METHODS |= {  # other readings of JIOC
    "icarl-means": {**METHODS["icarl"], "coordination": MEANS},
    "icarl-in-parts": {**METHODS["icarl"], "coordination": MEANS, "accumulate": 2},
    "wa-adjusted": {**METHODS["wa"], "adjust": 1.5},
    "der-normalised": {
        **METHODS["der"],
        "coordination": {"coordinate": "jioc", "reading": "normalised", "suppress_scale": "batch"},
    },
    "icarl-components": {
        **{name: value for name, value in METHODS["icarl"].items() if name != "memory"},
        "memory_bytes": 20 * 64,
        **{
            "exemplar_size": "half",
            "ema": 0.9,
            "mix": "mixup",
            "rebalance": "head",
            "rebalance_epochs": 1,
            "accumulate": 2,
        },
        "coordination": MEANS,
    },
    "der-components": {
        **METHODS["der"],
        **{
            "ema": 0.9,
            "mix": "cutmix",
            "rebalance": "scale",
            "rebalance_epochs": 1,
            "augment": "resized-crop",
        },
    },
    "wa-printed": {**METHODS["wa"], "coordination": {"coordinate": "jioc", "reading": "printed"}},
}
LONGER: dict[str, Any] = {
    "method": "icarl",
    "memory": 40,
    "long_tail": 5,
    "task_sizes": (5, 5),
    "first": {"epochs": 3},
    "later": {"epochs": 3},
    "batch_size": 70,
    "coordination": {"coordinate": "jioc"},
    "checkpoint_every": 0,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs that most tests here look at; made once, whichever of pytest's workers needs them first."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "pair"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            make(folder)
            (folder / "done").touch()
    return folder


def make(folder: Path) -> None:
    jobs: list[dict[str, Any]] = []
    for name, given in METHODS.items():
        jobs.append({"name": f"{name}-alone", "settings": given, "double": True, "alone": True})
        jobs.append({"name": name, "settings": given, "double": True})
    jobs.sort(key=lambda job: not job.get("alone"))
    jobs += [
        {"name": "whole", "settings": LONGER},
        {"name": "stopped", "settings": LONGER, "stop": (1, 8)},
        {"name": "killed", "settings": LONGER, "die": (1, 26)},  # in the second task
    ]
    pair(jobs, folder)
    for name in ("stopped", "killed"):
        (folder / name).rename(folder / f"{name}-on")
    shutil.copytree(folder / "stopped-on", folder / "fewer")
    jobs = [{"name": name, "settings": LONGER} for name in ("stopped-on", "killed-on")]
    jobs.append({"name": "fewer", "settings": LONGER, "alone": True})
    pair([*jobs, {"name": "failed", "settings": LONGER, "fail": (1, 2)}], folder)


def ended(where: Path, name: str) -> list[str]:
    return [(where / f"{name}.{rank}").read_text() for rank in (0, 1) if (where / f"{name}.{rank}").exists()]


def exemplars(folder: Path) -> list[list[int]]:
    newest = max((folder / "checkpoint").iterdir())
    return [index.tolist() for index in unpack(newest / "begin")["method"]["memory"]]


def close(a: Any, b: Any) -> bool:
    """Equal, floats to rounding."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, rel=1e-9, abs=1e-9) if isinstance(a, float) else a == b


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_two_processes_train_what_one_does(method: str, where: Path) -> None:
    assert ended(where, method) == ["well", "well"]
    one, two = where / f"{method}-alone", where / method
    ours, theirs = weights(one), weights(two)
    assert ours.keys() == theirs.keys()
    assert all(value.dtype == torch.float64 for value in ours.values())
    assert all((ours[name] - theirs[name]).abs().max() < 1e-9 for name in ours if ours[name].numel())
    assert exemplars(one) == exemplars(two)
    a, b = (json.loads((folder / "result.json").read_bytes()) for folder in (one, two))
    assert (a["environment"]["processes"], b["environment"]["processes"]) == (1, 2)
    for kind in ("average", "last", "forgetting"):
        assert a[kind] == b[kind]
    for row, other in zip(a["tasks"], b["tasks"], strict=True):
        assert all(row[kind] == other[kind] for kind in ("classes", "memory", "cnn", "nme", "readouts"))
        assert close(row["diagnostics"], other["diagnostics"])
    if not one.name.startswith(("ssil", "simplecil", "ranpac")):  # exemplars beside, or nothing trained
        assert (
            json.loads((one / "log.jsonl").read_text().splitlines()[0])["images"] % SHORT["batch_size"] == 1
        )
    logs = [[json.loads(line) for line in (f / "log.jsonl").read_text().splitlines()] for f in (one, two)]
    assert all(
        close(x["terms"], y["terms"]) and x["images"] == y["images"] for x, y in zip(*logs, strict=True)
    )


@pytest.mark.slow
def test_two_processes_killed_within_an_epoch_go_on_to_the_same_end(where: Path) -> None:
    (told,) = ended(where, "killed")  # the other was gone
    assert told.startswith("Failed: another process of this run was lost")
    assert ended(where, "killed-on") == ["well", "well"]
    assert outcome(where / "killed-on") == outcome(where / "whole")


@pytest.mark.slow
def test_when_one_is_told_to_stop_all_stop_at_the_same_step_and_go_on_to_the_same_end(where: Path) -> None:
    assert ended(where, "stopped")[0] == "Interrupted: stopped; the run can be resumed"
    assert ended(where, "stopped")[1].startswith("ReportedElsewhere")
    assert ended(where, "stopped-on") == ["well", "well"]
    assert outcome(where / "stopped-on") == outcome(where / "whole")


@pytest.mark.slow
def test_fewer_processes_may_go_on(where: Path) -> None:
    assert ended(where, "fewer") == ["well"]
    one, two = (json.loads((where / name / "result.json").read_bytes()) for name in ("fewer", "whole"))
    assert one["complete"] and one["environment"]["processes"] == 1
    assert [row["memory"] for row in one["tasks"]] == [row["memory"] for row in two["tasks"]]


@pytest.mark.slow
def test_who_fails_says_so_and_the_other_ends_without_a_word(where: Path) -> None:
    first, second = ended(where, "failed")
    assert second == "RankError: process 1: ValueError: no more; --debug shows where"
    assert first.startswith("ReportedElsewhere")


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("size", [2, 3])
def test_the_shares_means_average_to_the_mean(n: int, size: int) -> None:
    term = torch.arange(n, dtype=torch.float64).square()
    worlds = [World(rank, size) for rank in range(size)]
    parts = [world.mean(term[world.share], n) for world in worlds]
    assert torch.stack(parts).mean().item() == pytest.approx(term.mean().item(), rel=1e-12)


def test_running_statistics_are_averaged_by_images(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[torch.Tensor] = []
    monkeypatch.setattr(World, "sum", lambda self, values: parts.append(values) or values)
    for rank, (mean, var) in enumerate([(1.0, 2.0), (4.0, 8.0)]):
        bn = BatchNorm(3)
        bn.running_mean.fill_(mean)
        bn.running_var.fill_(var)
        World(rank, 2).average_statistics(bn, 3)  # two images and one
    assert sum(parts).tolist() == pytest.approx([2.0] * 3 + [4.0] * 3)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [Images, Streamed])
@pytest.mark.parametrize(
    "augment",
    [
        Augment(pad=2, flip=True, brightness=0.2),
        ResizedCrop(6),
        WithPolicy(Augment(pad=1)),
        WithPolicy(ResizedCrop(8), cutout=True),
        PaddedCrop(),
    ],
    ids=["crop", "resized", "policy", "resized-policy", "padded"],
)
def test_an_image_is_augmented_alike_whoever_takes_it(kind: type[Images], augment: Augmentation) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (40, 3, 8, 8)).astype(np.uint8)
    parts = (pixels, np.arange(40), (0.5,) * 3, (0.25,) * 3, torch.device("cpu"))
    batches = [torch.randperm(40)[:11], torch.randperm(40)[:1]]
    whole, draws = Images(*parts), torch.Generator().manual_seed(3)
    for_all = [whole.augmented(index, augment, draws) for index in batches]
    for rank in range(3):
        share, own = kind(*parts), torch.Generator().manual_seed(3)
        share.share = World(rank, 3).share
        share.prefetch(batches)
        for index, x in zip(batches, for_all, strict=True):
            assert share.augmented(index, augment, own).equal(x[rank::3])
            assert share.own(index).equal(index[rank::3])
        assert own.get_state().equal(draws.get_state())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"coordination": {"coordinate": "jioc", "delta_scale": "per-class"}},
            "--delta-scale per-class looks at a whole batch",
        ),
        ({"engine": "graph"}, "one process"),
        ({"compile": True, "bn": "synchronised"}, "cannot be compiled"),
        ({"device": "cuda:1"}, "names one device for several processes"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(words: dict[str, Any], message: str) -> None:
    config = resolve(settings.make(method="icarl", **words))
    with pytest.raises(Refused, match=message):
        choose_execution(config, torch.device("cpu"), World(0, 2))


def test_half_of_what_torchrun_sets_is_refused(
    monkeypatch: pytest.MonkeyPatch, small: dict[str, Any]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(Refused, match="WORLD_SIZE is 2, but RANK is not set"):
        run(method="replay", **small)


@pytest.mark.slow
def test_torchrun_runs_the_command_and_one_process_speaks_and_writes(tmp_path: Path) -> None:
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "-m",
        "jioc",
    ]
    words = [
        "--out",
        "run",
        "--device",
        "cpu",
        "--memory",
        "20",
        "--tasks",
        "2",
        "--epochs",
        "1",
        "--long-tail",
        "9",
    ]

    def ran(method: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*launch, "run", method, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    done = ran("replay")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("task  2/2") == 1 and done.stdout.count("kept in run") == 1
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) == 4
    wrong = ran("repaly")
    assert wrong.returncode == 1  # torchrun's own, whatever the processes' was
    assert wrong.stderr.count("jioc: ") == 1 and "did you mean 'replay'?" in wrong.stderr


def test_what_holds_the_group_is_gone_before_the_group_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or torch joins the group's threads with Python's lock, for which one may wait: both wait for ever."""
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "here", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("jioc.device.distributed._rendezvous", lambda: (HashStore(), 0, 1))
    wrapped = []

    def step() -> None:
        net = DistributedDataParallel(torch.nn.Linear(2, 2))
        wrapped.append(weakref.ref(net))
        raise ValueError("no more")

    def stage() -> None:
        try:
            step()
        except ValueError as error:
            raise Failed("a step failed") from error

    with pytest.raises(Failed) as told, process_group("per-process"):
        stage()
    assert told.value.__cause__ is not None and wrapped[0]() is None
