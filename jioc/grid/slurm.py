"""Slurm through submitit: an array of jobs that write to one shared folder. No torch here.

A job that is preempted, or near its time limit, gets submitit's signal: its runs save and the job queues
again. One that dies is submitted again. The jobs do not need this process: it may leave, and finds them again
by slurm.json. submitit's local executor needs no Slurm.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jioc import results
from jioc.errors import Failed, Interrupted, Refused, first_line, refuse_if, sentence
from jioc.files import read_json, write
from jioc.grid.local import run_here, wait_until_free
from jioc.grid.options import LaunchOptions, package
from jioc.grid.plan import FINISHED, Job, is_record, status
from jioc.grid.progress import GridProgress
from jioc.report.group import collect
from jioc.stopping import RESUME, duration, signals

GRACE = 20  # seconds after SIGTERM in which a signal may say: preempted, not cancelled
POLL_EVERY = {"slurm": 5.0, "local": 0.2}  # seconds, by executor


# --- in a job ---


class JobRuns:
    """The runs of one job, each from wherever it is."""

    def __init__(self, jobs: list[Job], at_once: int):
        self.jobs, self.at_once = jobs, at_once

    def __call__(self) -> dict[str, str]:
        """Run them; return what each failed one said."""
        from submitit import JobEnvironment

        preempted = JobEnvironment()._usr_sig()
        with signals(None, preempted) as stop:
            for job in self.jobs:  # an earlier driver may not have recorded its job
                wait_until_free(job.folder, stop)
            left = [job for job in self.jobs if status(job) != FINISHED]
            outcomes = run_here(left, self.at_once, stop)
        if stop():
            if stop.signal == preempted:
                signal.raise_signal(preempted)  # submitit's handler queues the job again
            time.sleep(GRACE)  # a cancelled job gets SIGTERM and nothing after it
            sys.exit(RESUME)
        signal.signal(preempted, signal.SIG_IGN)  # nothing is left to save: it would fail a job that is done
        ended = zip(left, outcomes, strict=True)
        return {job.name: sentence(error) for job, error in ended if isinstance(error, Exception)}

    def checkpoint(self) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


# --- the driver ---


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    queue = Queue(jobs[0].folder.parent, options)
    deaths = dict.fromkeys([job.name for job in jobs], 0)
    submitted = queue.resume(jobs)
    known = {job.name for one in submitted for job in one.runs}
    for job in jobs:
        progress.poll(job)
        if job.name in known:
            progress.say(job, "was submitted before")
    waiting = [job for job in jobs if job.name not in known]
    while submitted or waiting:
        room = max(0, queue.at_once - len(submitted)) * options.pack
        submitted += queue.submit(waiting[:room])
        del waiting[:room]
        if stop():
            progress.say(jobs[0], "and the others are left to themselves; the same command finds them again")
            progress.interrupted = True
            return
        over = [one for one in submitted if one.over()]
        for job in [job for one in submitted for job in one.runs]:
            progress.poll(job)
        for one in over:
            submitted.remove(one)
            for job in one.runs:
                outcome = one.outcome(job)
                if isinstance(outcome, Interrupted):
                    progress.say(job, str(outcome))
                deaths[job.name] += outcome is None
                if outcome is None and deaths[job.name] <= options.retries:
                    progress.say(job, f"its job {one.job.job_id} died; submitted again")
                    waiting.append(job)
                else:
                    died = f"its job died {deaths[job.name]} times; its logs are in {queue.folder}"
                    progress.ended(job, outcome or Failed(died))
        time.sleep(POLL_EVERY[options.executor])


@dataclass(eq=False)
class Submitted:
    """A job that was submitted, perhaps by an earlier driver."""

    job: Any  # submitit's
    runs: list[Job]
    ours: bool  # whether this process submitted it

    @property
    def local(self) -> bool:
        return type(self.job).__name__ == "LocalJob"

    def over(self) -> bool:
        return self.job.done() if self.ours or not self.local else not controller_runs(self.job.job_id)

    def unknown(self) -> bool:
        """Whether Slurm no longer knows the job, so that waiting for it would never end."""
        return self.job.get_info(mode="force").get("State", "") == "" and not self.local

    def outcome(self, job: Job) -> results.Result | Failed | None:
        """How a run of this job, which is over, has ended; None if the job died."""
        if status(job) == FINISHED:
            return results.read(job.folder / "result.json")
        with suppress(Exception):  # submitit wraps whatever happened, and a dead job has no result
            if failure := self.job.result().get(job.name):
                return Failed(failure)
        return Interrupted("its job was cancelled") if self.job.state.startswith("CANCELLED") else None


def controller_runs(pid: str) -> bool:
    """Whether submitit's local controller of that process number still runs."""
    try:
        return b"submitit" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class Queue:
    """Submits runs, and records in slurm.json which job has which run."""

    def __init__(self, out: Path, options: LaunchOptions):
        submitit = _submitit()
        self.folder, self.record, self.pack = out / "submitit", out / "slurm.json", options.pack
        self.ids: dict[str, str] = read_json(self.record) if self.record.exists() else {}
        refuse_if(not is_record(self.ids), f"{str(self.record)!r} is there, and jioc did not write it")
        self.at_once = sys.maxsize  # jobs; Slurm has a queue itself
        if options.executor == "local":
            self.at_once = options.at_once or max(1, (os.cpu_count() or 1) // options.cpus_per_run)
        try:
            self.executor = submitit.AutoExecutor(
                self.folder, cluster=options.executor, slurm_max_num_timeout=1000, local_max_num_timeout=1000
            )
            self.executor.update_parameters(**parameters(options))
        except Exception as error:
            raise Refused(f"--on slurm: {first_line(error)}") from None

    def submit(self, jobs: list[Job]) -> list[Submitted]:
        if not jobs:
            return []
        parts = [jobs[i : i + self.pack] for i in range(0, len(jobs), self.pack)]
        try:
            with self.executor.batch():  # an array
                sent = [
                    Submitted(self.executor.submit(JobRuns(part, self.pack)), part, True) for part in parts
                ]
            self.ids |= {run.name: one.job.job_id for one in sent for run in one.runs}
            write(self.record, (json.dumps(self.ids, indent=1) + "\n").encode())
        except OSError as error:
            why = f"jobs cannot be kept in {str(self.record.parent)!r}: {error.strerror or error}"
            raise Failed(f"{why}; with that mended, the same command goes on") from None
        return sent

    def resume(self, jobs: list[Job]) -> list[Submitted]:
        """Find the jobs of an earlier driver that are not over."""
        by_id = collect((self.ids[job.name], job) for job in jobs if job.name in self.ids)
        kind = self.executor._executor.job_class
        earlier = [Submitted(kind(self.folder, number), runs, ours=False) for number, runs in by_id.items()]
        return [one for one in earlier if not one.unknown() and not one.over()]


def parameters(options: LaunchOptions) -> dict[str, Any]:
    """Make the parameters of submitit's executors; options of sbatch are passed on."""
    limit = options.time_limit or "2h"
    minutes = max(1, round(duration(limit) / 60))
    gpus, sbatch = options.gpus_per_run or 0, dict(word.partition("=")[::2] for word in options.sbatch)
    refuse_if(gpus != int(gpus), "--gpus-per-run: Slurm gives whole GPUs; --pack puts several runs on one")
    values = {"name": "jioc", "timeout_min": minutes, "gpus_per_node": int(gpus)}
    if options.executor == "slurm":
        wrong = f"--sbatch: {','.join(options.sbatch)!r} is refused: give name=value, such as partition=gpu"
        refuse_if(not all(sbatch.values()), wrong)
        hasty = f"--time-limit {limit} leaves no time before the {options.time_to_save} s of --time-to-save"
        refuse_if(60 * minutes <= options.time_to_save, hasty)
        values |= {
            "cpus_per_task": options.cpus_per_run,
            "slurm_signal_delay_s": options.time_to_save,
            "slurm_array_parallelism": options.at_once,
            "slurm_additional_parameters": sbatch,
        }
    return {name: value for name, value in values.items() if value}


def _submitit() -> Any:
    return package("submitit", "submitit", "slurm")
