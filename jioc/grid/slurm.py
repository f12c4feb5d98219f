"""Slurm through submitit: an array of jobs that write to one shared folder. Its local executor needs no Slurm.

A job that is preempted, or near its time limit, gets submitit's signal: its runs save and the job queues again. One
that dies is submitted again. The jobs do not need this process: it may leave, and finds them again by slurm.json.
"""

import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jioc import results
from jioc.errors import Failed, Interrupted, Refused, first_line, sentence
from jioc.files import write
from jioc.grid.local import run_here
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import FINISHED, Job, read_json, status
from jioc.grid.progress import GridProgress
from jioc.stopping import RESUME, duration, signals

GRACE = 20  # seconds between SIGTERM and the signal that says: preempted, not cancelled
POLLED = {"slurm": 5.0, "local": 0.2}  # seconds
SAVING = 120  # seconds before the time limit at which Slurm sends the signal


class Work:
    """What a job does: its runs, from wherever they are."""

    def __init__(self, jobs: list[Job], at_once: int):
        self.jobs, self.at_once = jobs, at_once

    def __call__(self) -> dict[str, str]:
        """What was said by each run that failed."""
        from submitit import JobEnvironment

        preempted = JobEnvironment()._usr_sig()
        with signals(None, preempted) as stop:
            for job in self.jobs:
                wait_until_free(job.folder, stop)
            left = [job for job in self.jobs if status(job) != FINISHED]
            outcomes = run_here(left, self.at_once, stop)
        if stop():
            self.leave(stop.signal == preempted, preempted)
        ended = zip(left, outcomes, strict=True)
        return {job.name: sentence(what) for job, what in ended if isinstance(what, Exception)}

    @staticmethod
    def leave(at_once: bool, preempted: int) -> None:
        """submitit's own handler queues the job again; a job that is cancelled gets SIGTERM and nothing after it."""
        if at_once:
            signal.raise_signal(preempted)
        time.sleep(GRACE)
        sys.exit(RESUME)

    def checkpoint(self) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def wait_until_free(folder: Path, stop: Callable[[], bool]) -> None:
    """Until nobody else writes to a run's folder: a job that an earlier driver submitted and did not note."""
    while (folder / ".lock").exists() and not stop():
        with open(folder / ".lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(1)
            except OSError:
                return  # nothing can be locked here: the run itself says so


@dataclass
class Submitted:
    """A job on its way, perhaps from before this process."""

    job: Any  # submitit's
    runs: list[Job]
    ours: bool  # whether this process submitted it

    def over(self) -> bool:
        if self.ours or type(self.job).__name__ != "LocalJob":
            return self.job.done()
        return not alive(self.job.job_id)

    def forgotten(self) -> bool:
        """Whether Slurm no longer knows the job; it would be waited for without end."""
        return (
            self.job.get_info(mode="force").get("State", "") == "" and type(self.job).__name__ != "LocalJob"
        )

    def told(self) -> dict[str, str] | None:
        """What its runs said; None where it died."""
        try:
            return self.job.result()
        except Exception:  # submitit wraps whatever happened, and a dead job has no result
            return None


def alive(pid: str) -> bool:
    """Whether submitit's local controller of that number still runs."""
    try:
        return b"submitit" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    out = jobs[0].folder.parent
    queue = Queue(out, options)
    tries = dict.fromkeys([job.name for job in jobs], 0)
    on_their_way = queue.found_again(jobs)
    known = {job.name for sent in on_their_way for job in sent.runs}
    for job in jobs:
        progress.poll(job)
        if job.name in known:
            progress.say(job, "was submitted before")
    waiting = [job for job in jobs if job.name not in known]
    while on_their_way or waiting:
        free = max(0, queue.most - len(on_their_way)) * options.pack
        on_their_way += queue.submit(waiting[:free])
        del waiting[:free]
        if stop():
            progress.say(jobs[0], "and the others are left to themselves; the same command finds them again")
            progress.interrupted = True
            return
        for sent in [s for s in on_their_way if s.over()]:
            on_their_way.remove(sent)
            told = sent.told()
            for job in sent.runs:
                progress.poll(job)
                if status(job) == FINISHED:
                    progress.ended(job, results.read(job.folder / "result.json"))
                elif told is not None and job.name in told:
                    progress.ended(job, Failed(told[job.name]))
                elif sent.job.state.startswith("CANCELLED"):
                    progress.ended(job, Interrupted("its job was cancelled"))
                elif tries[job.name] >= options.retries:
                    progress.ended(
                        job,
                        Failed(f"its job died {tries[job.name] + 1} times; its logs are in {queue.folder}"),
                    )
                else:
                    tries[job.name] += 1
                    progress.say(job, f"its job {sent.job.job_id} died; submitted again")
                    waiting.append(job)
        for sent in on_their_way:
            for job in sent.runs:
                progress.poll(job)
        time.sleep(POLLED[options.executor])


class Queue:
    """Submits, and keeps in slurm.json which job has which run."""

    def __init__(self, out: Path, options: LaunchOptions):
        self.submitit = _submitit()
        self.folder, self.kept, self.pack = out / "submitit", out / "slurm.json", options.pack
        self.ids: dict[str, str] = read_json(self.kept) or {}
        here = options.at_once or max(1, (os.cpu_count() or 1) // options.cpus_per_run)
        self.most = (
            here if options.executor == "local" else sys.maxsize
        )  # of jobs on their way: Slurm has a queue itself
        try:
            self.executor = self.submitit.AutoExecutor(
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
                sent = [self.executor.submit(Work(part, self.pack)) for part in parts]
            for job, part in zip(sent, parts, strict=True):
                self.ids |= {run.name: job.job_id for run in part}
            write(self.kept, (json.dumps(self.ids, indent=1) + "\n").encode())
        except OSError as error:
            told = f"jobs cannot be kept in {str(self.kept.parent)!r}: {error.strerror or error}"
            raise Failed(f"{told}; with that mended, the same command goes on") from None
        return [Submitted(job, part, ours=True) for job, part in zip(sent, parts, strict=True)]

    def found_again(self, jobs: list[Job]) -> list[Submitted]:
        """The jobs of an earlier driver that are not over."""
        by_id: dict[str, list[Job]] = {}
        for job in jobs:
            if job.name in self.ids:
                by_id.setdefault(self.ids[job.name], []).append(job)
        kind = self.executor._executor.job_class
        found = [Submitted(kind(self.folder, number), runs, ours=False) for number, runs in by_id.items()]
        return [sent for sent in found if not sent.forgotten() and not sent.over()]


def parameters(options: LaunchOptions) -> dict[str, Any]:
    """For submitit's executors; sbatch's own words are passed on."""
    found: dict[str, Any] = {
        "name": "jioc",
        "timeout_min": max(1, round(duration(options.time_limit or "2h") / 60)),
    }
    if options.gpus_per_run:
        if options.gpus_per_run != int(options.gpus_per_run):
            raise Refused("--gpus-per-run: Slurm gives whole GPUs; --pack puts several runs on one")
        found["gpus_per_node"] = int(options.gpus_per_run)
    if options.executor == "local":
        return found
    found |= {"cpus_per_task": options.cpus_per_run, "slurm_signal_delay_s": SAVING}
    if options.at_once:
        found["slurm_array_parallelism"] = options.at_once
    more = dict(word.partition("=")[::2] for word in options.sbatch)
    if not all(more.values()):
        raise Refused(
            f"--sbatch: {','.join(options.sbatch)!r} is refused: give name=value, such as partition=gpu"
        )
    return found | ({"slurm_additional_parameters": more} if more else {})


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise Refused("--on slurm needs submitit; install it with: pip install 'jioc[slurm]'") from None
    return submitit
