"""A Ray cluster whose nodes need not share a disk. No torch here.

A run works in a scratch folder of its node. `RunFolders`, an actor on the driver's node, holds the runs' own
folders. A run begins from what is there, and sends its checkpoint after each task and now and then, its whole
folder at the end. So a run whose worker or node dies goes on elsewhere, and so does the grid after its driver
died. Each try has a number; what comes from an earlier one, on a node that was only out of reach, is turned
away.
"""

import fcntl
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jioc import results
from jioc.config import Config
from jioc.errors import Failed, Interrupted, Refused, first_line, refuse_if, sentence
from jioc.files import open_regular
from jioc.grid.folder import Files, newest_checkpoint, read_files, scratch, write_files
from jioc.grid.options import LaunchOptions, package
from jioc.grid.plan import FINISHED, Job, append_event, status
from jioc.grid.progress import GridProgress

ASK_EVERY = 1.0  # seconds between two questions of a run whether to go on
PATIENCE = 30  # seconds to wait for the folders of a driver that has just died
PASSED_ON = ("JIOC_DATA", "JIOC_CACHE", "OMP_NUM_THREADS")
Send = Callable[..., str | None]
State = tuple[int | None, str | None]  # when the result was written, and the newest checkpoint


# --- the driver ---


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    ray = package("ray", "Ray", "ray")
    _connect(ray, options)
    try:
        _drive(ray, jobs, options, progress, stop)
    finally:
        ray.shutdown()


def _drive(
    ray: Any, jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]
) -> None:
    """Submit the runs, and those again whose worker has died, until all have ended."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from jioc.training.execution import commit

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    folders = ray.remote(RunFolders).options(num_cpus=0, scheduling_strategy=here).remote(jobs)
    if why := ray.get(folders.lock.remote()):
        raise Refused(why)
    resources = _resources(ray, jobs, options)
    worker = ray.remote(run_on_node).options(max_retries=0, scheduling_strategy="SPREAD", **resources)
    # the driver's commit: a node may have no git
    known = {name: os.environ.get(name) for name in PASSED_ON} | {"JIOC_COMMIT": commit()}
    environment = {name: value for name, value in known.items() if value is not None}
    deaths, stopped = dict.fromkeys([job.name for job in jobs], 0), False

    def submit(job: Job) -> Any:
        return worker.remote(job.name, job.config, folders, options.sync_every, os.getcwd(), environment)

    for job in jobs:
        progress.poll(job)
    running = {submit(job): job for job in jobs}
    while running:
        if stop() and not stopped:
            stopped = True
            ray.get(folders.stop.remote())
        ready, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
        for job in running.values():
            progress.poll(job)
        for reference in ready:
            job = running.pop(reference)
            try:
                progress.ended(job, _outcome(job, ray.get(reference)))
            except ray.exceptions.RayError as error:
                deaths[job.name] += 1
                if stopped:
                    progress.ended(job, Interrupted("stopped"))
                elif (n := deaths[job.name]) > options.retries:
                    progress.ended(job, Failed(f"its worker died {n} times: {type(error).__name__}"))
                else:
                    progress.say(job, f"its worker died ({type(error).__name__}); goes on elsewhere")
                    running[submit(job)] = job


def _outcome(job: Job, failure: str | None) -> results.Result | Failed:
    """How a run whose worker did not die has ended; `failure`: what the run said if it failed."""
    if failure:
        return Failed(failure)
    return results.read(job.folder / "result.json") if status(job) == FINISHED else Interrupted("stopped")


def _connect(ray: Any, options: LaunchOptions) -> None:
    """Join the cluster, or start one here; keep the driver's own handler of SIGTERM."""
    outside = (options.address or "").startswith("ray://")
    refuse_if(outside, "--address: the grid must run on a node of the cluster; give auto or HOST:PORT there")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = options.address or os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **own)
        signal.signal(signal.SIGTERM, before)  # Ray's own would leave at once
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        none = f"no Ray cluster answers at {address!r}" if address else "no Ray cluster can be started here"
        raise Refused(f"{none}: {first_line(error)}") from None


def _resources(ray: Any, jobs: list[Job], options: LaunchOptions) -> dict[str, float]:
    """What a run asks for; refuse more than the whole cluster has."""
    cluster = {"CPU": 0.0, "GPU": 0.0} | ray.cluster_resources()
    by_default = any(job.config.device != "cpu" for job in jobs) and cluster["GPU"] > 0
    gpus = float(by_default) if options.gpus_per_run is None else options.gpus_per_run
    for flag, need, name in (
        ("--cpus-per-run", options.cpus_per_run, "CPU"),
        ("--gpus-per-run", gpus, "GPU"),
    ):
        refuse_if(need > cluster[name], f"{flag} {need:g}: the whole cluster has {cluster[name]:g}")
    return {"num_cpus": options.cpus_per_run, "num_gpus": gpus}


# --- an actor on the driver's node ---


class RunFolders:
    """The runs' own folders; Ray lets one caller in at a time."""

    def __init__(self, jobs: list[Job]):
        self.jobs = {job.name: job for job in jobs}
        self.tries = dict.fromkeys(self.jobs, 0)
        self.stopped = False

    def lock(self) -> str | None:
        """Lock the folders; return why that failed, such as another grid that is at work there."""
        out = next(iter(self.jobs.values())).folder.parent
        try:
            out.mkdir(parents=True, exist_ok=True)
            self.lock_file = open_regular(out / ".grid-lock", "ab")
            for _ in range(PATIENCE):
                try:
                    fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return None
                except BlockingIOError:
                    time.sleep(1)
        except OSError as error:
            return f"the runs' folder {str(out)!r} cannot be used: {error.strerror or error}"
        self.lock_file.close()
        return f"another grid is at work in {str(out)!r}"

    def begin(self, name: str, node: str, pid: int) -> tuple[int, Files] | None:
        """Begin a try: return its number and the folder to begin from, or None if nothing is left to do."""
        job = self.jobs[name]
        if self.stopped or status(job) == FINISHED:
            return None
        self.tries[name] += 1
        append_event(job.folder.parent, name, "begins", number=self.tries[name], node=node, pid=pid)
        return self.tries[name], read_files(job.folder, whole=True)

    def may_go_on(self, name: str, number: int) -> bool:
        return not self.stopped and number == self.tries[name]

    def save(self, name: str, number: int, files: Files, event: str | None) -> str | None:
        """Write a try's folder; return why not: the try is overtaken, the run has ended, the disk is full."""
        job = self.jobs[name]
        if number != self.tries[name] or status(job) == FINISHED:
            return "another try has overtaken this one"
        try:
            write_files(files, job.folder)
        except OSError as error:
            why = f"the run cannot be kept in {str(job.folder)!r}: {error.strerror or error}"
            return f"{why}; with that mended, the same command goes on"
        if event is not None:
            append_event(job.folder.parent, name, event, number=number)
        return None

    def stop(self) -> None:
        self.stopped = True


# --- on any node ---


def run_on_node(
    name: str, config: Config, folders: Any, every: float, cwd: str, environment: dict[str, str]
) -> str | None:
    """Run from what the driver has of the run; return what it said if it failed."""
    import ray

    os.environ.update(environment)
    if Path(cwd).is_dir():
        os.chdir(cwd)  # for relative paths
    begun = ray.get(folders.begin.remote(name, platform.node(), os.getpid()))
    if begun is None:
        return None
    number, files = begun

    def send(files: Files, event: str | None = None) -> str | None:
        """Send the folder; return why the driver did not take it."""
        return ray.get(folders.save.remote(name, number, files, event))

    def may_go_on() -> bool:
        return ray.get(folders.may_go_on.remote(name, number))

    try:
        with scratch() as place:
            folder = place / name
            write_files(files, folder)
            return _run_in(folder, config, send, may_go_on, every)
    except OSError as error:
        why = error.strerror or error
        return f"the folder for temporary files of {platform.node()} cannot be used: {why}"


def _run_in(
    folder: Path, config: Config, send: Send, may_go_on: Callable[[], bool], every: float
) -> str | None:
    """Run in a scratch folder and send it back; return what the run said if it failed."""
    from jioc.training.run import run

    failure = None
    with sync(folder, send, may_go_on, every) as stop:
        try:
            run(config, out=folder, resume=True, stop=stop)
            event = "finished"
        except Interrupted:
            event = "stopped"
        except Exception as error:
            event, failure = "failed", sentence(error)
    refusal = send(read_files(folder, whole=True) if folder.exists() else {}, event)
    return failure or refusal


@contextmanager
def sync(
    folder: Path, send: Send, may_go_on: Callable[[], bool], every: float
) -> Iterator[Callable[[], bool]]:
    """In a thread beside a run, send its folder when there is news; yield whether the run should stop.

    News is a task that was learnt, or a checkpoint if the last time was at least `every` seconds ago.
    """
    import ray

    stop, ended = threading.Event(), threading.Event()

    def watch(sent: State, sent_at: float) -> None:
        while not ended.wait(min(ASK_EVERY, every + 0.05)):
            try:
                (task, checkpoint), waited = _state(folder), time.monotonic() - sent_at >= every
                news = task != sent[0] or (checkpoint != sent[1] and waited)
                if not may_go_on():
                    stop.set()
                elif news and checkpoint is not None:
                    if send(read_files(folder, whole=False)):
                        stop.set()
                    sent, sent_at = (task, checkpoint), time.monotonic()
            except FileNotFoundError:
                continue  # a checkpoint that was replaced while it was read
            except ray.exceptions.RayError:
                stop.set()  # the driver is gone

    thread = threading.Thread(target=watch, args=(_state(folder), time.monotonic()), daemon=True)
    thread.start()
    try:
        yield stop.is_set
    finally:
        ended.set()
        thread.join()


def _state(folder: Path) -> State:
    """What a new task changes, and what a new checkpoint changes."""
    result = folder / "result.json"
    return (result.stat().st_mtime_ns if result.exists() else None), newest_checkpoint(folder)
