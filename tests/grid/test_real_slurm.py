"""A grid on a real Slurm of one node: whatever ends a job or the driver, the runs end as alone.

The runs' method sleeps before each step, in jobs alone, so that there is time to interfere.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.drivers import Driver, must_be_as_alone
from helpers.runs import events
from helpers.slurm import Slurm, Unavailable
from jioc.cli.main import main

pytestmark = pytest.mark.extras

METHOD = """
import os, time
from dataclasses import replace
import jioc
from jioc.methods import SPECS
from jioc.methods.replay import Replay

@jioc.register(replace(SPECS["replay"], name="slow", title="Slow replay"))
class Slow(Replay):
    def before_step(self, *args):
        time.sleep(float(os.environ.get("SLOWLY", 0)))
        super().before_step(*args)
"""
GRID: dict[str, Any] = {
    "base": {
        "task_sizes": [3, 3, 2, 2], "memory": 60, "later": {"epochs": 8}, "first": {"epochs": 8},
        "device": "cpu", "checkpoint_every": 0, "coordination": {"coordinate": "none"},
    },
    "runs": {"a": {}, "b": {"memory": 40}},
    "seeds": [1],
}  # fmt: skip
ON_SLURM = ("--on", "slurm")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'jioc[slurm]'")
    try:
        cluster = Slurm(tmp_path_factory.mktemp("slurm") / "s")
    except Unavailable as why:
        pytest.skip(f"no Slurm can be started here: {why}")
    print(cluster.version)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`two.yaml`, a grid of two runs; `alone`, those runs without Slurm."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "slow.py").write_text(METHOD)
    grid = GRID | {"base": GRID["base"] | {"method": str(folder / "slow.py")}}
    (folder / "two.yaml").write_text(yaml.safe_dump(grid))
    assert main(["grid", str(folder / "two.yaml"), "--out", str(folder / "alone")]) == 0
    return folder


@pytest.fixture
def drive(slurm: Slurm, place: Path, tmp_path: Path) -> Iterator[Any]:
    """Start `jioc grid --on slurm`, whose runs sleep so many seconds before each step."""
    started = list[Driver]()

    def start(slowly: float, *words: str) -> Driver:
        env = slurm.env | {"SLOWLY": str(slowly)}
        started.append(Driver(place / "two.yaml", tmp_path / "out", *ON_SLURM, *words, **env))
        return started[-1]

    yield start
    for driver in started:
        driver.kill()
    slurm.end_jobs()


def jobs(out: Path) -> dict[str, str]:
    return json.loads((out / "slurm.json").read_bytes())


def happened(out: Path, run: str) -> list[str]:
    return [line["event"] for line in events(out) if line["run"] == run]


def test_at_its_time_limit_a_job_saves_and_queues_again(
    slurm: Slurm, drive: Any, place: Path, tmp_path: Path
) -> None:
    driver = drive(0.5, "--only", "a", "--time-limit", "1m", "--time-to-save", "10")
    driver.until(lambda: len(happened(tmp_path / "out", "a-seed1")) >= 3 if driver.running() else None)
    number = jobs(tmp_path / "out")["a-seed1"]
    driver.end()
    assert happened(tmp_path / "out", "a-seed1")[:3] == ["begins", "stopped", "begins"]
    assert jobs(tmp_path / "out") == {"a-seed1": number}  # the same job, which Slurm started again
    states = slurm.ask("sacct", "-D", "-X", "-n", "-P", "-o", "State", "-j", number).split()
    assert states[0] in ("REQUEUED", "PREEMPTED") and states[-1] == "COMPLETED"
    must_be_as_alone(tmp_path / "out", place / "alone", 1)


def test_a_cancelled_job_saves_and_does_not_come_back_until_asked(
    slurm: Slurm, drive: Any, place: Path, tmp_path: Path
) -> None:
    driver = drive(0.1)
    name, _ = driver.until(driver.busy)
    slurm.ask("scancel", jobs(tmp_path / "out")[name])
    told = driver.end(status=75)
    assert f"{name}  its job was cancelled\n" in told and "1 of 2 runs are finished" in told
    assert happened(tmp_path / "out", name) == ["begins", "stopped"]
    drive(0).end()
    must_be_as_alone(tmp_path / "out", place / "alone", 2)


def test_a_killed_job_is_submitted_again(slurm: Slurm, drive: Any, place: Path, tmp_path: Path) -> None:
    driver = drive(0.1, "--pack", "2")
    name, pid = driver.until(driver.busy)
    before = jobs(tmp_path / "out")
    assert before["a-seed1"] == before["b-seed1"]  # one job has both runs
    os.kill(pid, signal.SIGKILL)
    assert "died; submitted again" in driver.end()
    assert jobs(tmp_path / "out")[name] != before[name]
    must_be_as_alone(tmp_path / "out", place / "alone", 2)


def test_the_driver_killed_and_started_again_finds_its_jobs(
    slurm: Slurm, drive: Any, place: Path, tmp_path: Path
) -> None:
    driver = drive(0.1)
    driver.until(driver.busy)
    driver.kill()
    before = jobs(tmp_path / "out")
    again = drive(0.1)
    again.until(lambda: "was submitted before" in again.log.read_text())
    again.end()
    assert jobs(tmp_path / "out") == before
    must_be_as_alone(tmp_path / "out", place / "alone", 2)
