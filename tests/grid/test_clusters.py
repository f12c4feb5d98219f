"""Grids on a Ray cluster of two nodes and on submitit's local executor: whatever dies, runs end as alone."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.drivers import Driver, must_be_as_alone
from helpers.runs import complete, events
from jioc.cli.main import main
from jioc.grid import options as launch
from jioc.grid import slurm as on_slurm
from jioc.grid.plan import plan
from jioc.resolve import recipes

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
    ),
    # sockets that Ray leaves open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

GRID = {
    "base": {
        "method": "icarl",
        "task_sizes": [3, 3, 2, 2],
        "memory": 60,
        "later": {"epochs": 8},
        "first": {"epochs": 8},
        "device": "cpu",
        "checkpoint_every": 0,
    },
    "matrix": {"coordination.coordinate": ["none", "jioc"]},
    "seeds": [1, 2, 3, 4],
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The grid's file, beside the grid run here."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "eight.yaml").write_text(yaml.safe_dump(GRID))
    assert main(["grid", str(folder / "eight.yaml"), "--pack", "2", "--out", str(folder / "alone")]) == 0
    return folder


# --- Ray ---


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes on this machine, two runs on each."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jioc[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        nodes.second = nodes.add_node(num_cpus=2)
        nodes.wait_for_nodes()
        yield nodes
    finally:
        nodes.shutdown()


def test_ray_a_worker_killed_and_a_node_stopped(cluster: Any, alone: Path, tmp_path: Path) -> None:
    words = ("--on", "ray", "--address", cluster.address, "--sync-every", "0")
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *words)
    name, pid = driver.until(driver.busy)
    os.kill(pid, signal.SIGKILL)
    driver.until(lambda: driver.running().get(name, pid) != pid)  # it has begun again
    driver.until(lambda: len(driver.running()) >= 3)  # so at least one is on the second node
    cluster.remove_node(cluster.second, allow_graceful=False)
    told = driver.end()
    assert told.count("its worker died") >= 2
    must_be_as_alone(tmp_path / "out", alone / "alone")


def test_ray_the_driver_killed(cluster: Any, alone: Path, tmp_path: Path) -> None:
    words = ("--on", "ray", "--address", cluster.address, "--sync-every", "0", "--seeds", "1", "2")
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *words)
    driver.until(lambda: complete(tmp_path / "out"))
    driver.kill()
    before = {
        name: (tmp_path / "out" / name / "result.json").stat().st_mtime_ns
        for name in complete(tmp_path / "out")
    }
    Driver(alone / "eight.yaml", tmp_path / "out", *words).end()
    for name, written in before.items():
        assert (tmp_path / "out" / name / "result.json").stat().st_mtime_ns == written
    must_be_as_alone(tmp_path / "out", alone / "alone", 4)


def test_ray_asked_to_stop_it_leaves_runs_that_go_on(cluster: Any, alone: Path, tmp_path: Path) -> None:
    words = ("--on", "ray", "--address", cluster.address)
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *words)
    driver.until(driver.busy)  # four of eight are at work: some are surely unfinished when the signal arrives
    driver.process.send_signal(signal.SIGTERM)
    assert "the same command goes on" in driver.end(status=75)
    assert "stopped" in [line["event"] for line in events(tmp_path / "out")]
    Driver(alone / "eight.yaml", tmp_path / "out", *words).end()
    must_be_as_alone(tmp_path / "out", alone / "alone")


def test_ray_refuses_what_the_cluster_cannot_give(cluster: Any, alone: Path, tmp_path: Path) -> None:
    words = ("--on", "ray", "--address", cluster.address, "--gpus-per-run", "1")
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *words)
    assert "--gpus-per-run 1: the whole cluster has 0" in driver.end(status=2)


# --- Slurm ---


SLURM = ("--on", "slurm", "--executor", "local", "--at-once", "2")


def test_slurm_a_job_preempted_and_another_killed(alone: Path, tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'jioc[slurm]'")
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *SLURM)
    name, pid = driver.until(driver.busy)
    os.kill(pid, signal.SIGUSR2)
    driver.until(lambda: driver.running().get(name, pid) != pid)
    jobs = json.loads((tmp_path / "out" / "slurm.json").read_text())
    other, pid = driver.until(driver.busy)
    os.kill(pid, signal.SIGKILL)
    told = driver.end()
    assert told.count("died; submitted again") == 1
    after = json.loads((tmp_path / "out" / "slurm.json").read_text())
    assert after[other] != jobs[other] or other == name
    happened = [line["event"] for line in events(tmp_path / "out") if line["run"] == name]
    assert happened[:3] == ["begins", "stopped", "begins"]
    must_be_as_alone(tmp_path / "out", alone / "alone")


def test_slurm_the_driver_killed(alone: Path, tmp_path: Path) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'jioc[slurm]'")
    driver = Driver(alone / "eight.yaml", tmp_path / "out", *SLURM, "--seeds", "1", "2")
    _, pid = driver.until(driver.busy)
    os.kill(pid, signal.SIGSTOP)  # so that it is surely not over when the next driver looks
    try:
        driver.kill()
        again = Driver(alone / "eight.yaml", tmp_path / "out", *SLURM, "--seeds", "1", "2")
        again.until(lambda: "was submitted before" in again.log.read_text())  # its jobs outlived it
    finally:
        os.kill(pid, signal.SIGCONT)
    again.end()
    must_be_as_alone(tmp_path / "out", alone / "alone", 4)


def words_of(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_slurm_gets_an_array_with_what_was_said_and_is_asked_for_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's own commands, made up."""
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'jioc[slurm]'")
    bin, out = tmp_path / "bin", tmp_path / "out"
    bin.mkdir()
    words_of(bin, "srun", "exit 1")
    words_of(bin, "sbatch", f'cp "$1" {tmp_path}/batch.sh; echo Submitted batch job 12')
    words_of(
        bin, "sacct", "printf 'JobID|State|NodeList\\n12_0|RUNNING|a\\n12_1|FAILED|a\\n12_2|PENDING|\\n'"
    )
    monkeypatch.setenv("PATH", f"{bin}:{os.environ['PATH']}")
    where = launch.make(
        on="slurm", gpus_per_run=1, pack=2, at_once=2, time_limit="90m", sbatch=("partition=gpu",)
    )
    jobs = plan(recipes.find_recipe("table6"), (1, 2), None, 1.0, lambda spec: {}, out)[:5]
    sent = on_slurm.Queue(out, where).submit(jobs)
    assert [[job.name for job in part.runs] for part in sent] == [
        [j.name for j in jobs[i : i + 2]] for i in (0, 2, 4)
    ]
    batch = (tmp_path / "batch.sh").read_text()
    for line in (
        "partition=gpu",
        "array=0-2%2",
        "time=90",
        "gpus-per-node=1",
        "cpus-per-task=1",
        "signal=USR2@120",
    ):
        assert f"#SBATCH --{line}\n" in batch, batch
    again = on_slurm.Queue(out, where).resume(jobs)  # another driver
    assert [part.job.job_id for part in again] == ["12_0", "12_2"]  # one failed, and is to be submitted again
    words_of(bin, "sacct", "printf 'JobID|State|NodeList\\n'")
    sent[0].job.watcher.clear()
    assert on_slurm.Queue(out, where).resume(jobs) == []  # nobody knows them any more
