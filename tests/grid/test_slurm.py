"""Slurm without a cluster: what a job asks for."""

import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.grids import job, no_room
from jioc.errors import Failed, Refused
from jioc.grid import options as launch
from jioc.grid import slurm as on_slurm

AGAIN = "No space left on device; with that mended, the same command goes on"


def test_a_full_disk_under_the_queue_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = SimpleNamespace(update_parameters=lambda **_: None, batch=no_room)
    submitit = SimpleNamespace(AutoExecutor=lambda *_, **__: executor)
    monkeypatch.setattr(on_slurm, "_submitit", lambda: submitit)
    for full in ("batch", "slurm.json"):
        if full == "slurm.json":
            executor.batch, executor.submit = nullcontext, lambda work: SimpleNamespace(job_id="1")
            monkeypatch.setattr(on_slurm, "write", no_room)
        with pytest.raises(Failed, match=f"^jobs cannot be kept in {str(tmp_path)!r}: {AGAIN}$"):
            on_slurm.Queue(tmp_path, launch.make(on="slurm")).submit([job(tmp_path / "a")])


def test_a_slurm_job_asks_for_what_was_said() -> None:
    where = launch.make(
        on="slurm", gpus_per_run=2, time_limit="90m", at_once=4, sbatch=("partition=gpu", "mem=8G")
    )
    assert on_slurm.parameters(where) == {
        "name": "jioc",
        "timeout_min": 90,
        "gpus_per_node": 2,
        "cpus_per_task": 1,
        "slurm_array_parallelism": 4,
        "slurm_signal_delay_s": 120,
        "slurm_additional_parameters": {"partition": "gpu", "mem": "8G"},
    }
    hurried = on_slurm.parameters(launch.make(on="slurm", time_limit="1m", time_to_save=10))
    assert (hurried["timeout_min"], hurried["slurm_signal_delay_s"]) == (1, 10)
    wrongs = [{"gpus_per_run": 0.5}, {"sbatch": ("partition",)}, {"time_limit": "soon"}, {"time_limit": "2m"}]
    for wrong in wrongs:
        with pytest.raises(Refused, match="--"):
            on_slurm.parameters(launch.make(on="slurm", **wrong))


def test_a_job_that_is_done_does_not_heed_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python ends, its handlers are gone, and the signal would kill a job that has done everything."""
    environment = SimpleNamespace(_usr_sig=lambda: signal.SIGUSR2)
    monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(JobEnvironment=lambda: environment))
    before = signal.getsignal(signal.SIGUSR2)
    try:
        assert on_slurm.JobRuns([], 1)() == {}
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, before)
