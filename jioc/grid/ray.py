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
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jioc import results
from jioc.config import Config
from jioc.errors import Failed, Interrupted, Refused, first_line, sentence
from jioc.grid.folder import Files, newest_checkpoint, read_files, write_files
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import FINISHED, Job, append_event, status
from jioc.grid.progress import GridProgress

ASK_EVERY = 1.0  # seconds between two questions of a run whether to go on
PATIENCE = 30  # seconds to wait for the folders of a driver that has just died
PASSED_ON = ("JIOC_DATA", "JIOC_CACHE", "OMP_NUM_THREADS")


# --- the driver ---


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    ray = _ray()
    _connect(ray, options)
    try:
        Driver(ray, jobs, options, progress).run(stop)
    finally:
        ray.shutdown()


class Driver:
    """Submits the runs, and those again whose worker has died."""

    def __init__(self, ray: Any, jobs: list[Job], options: LaunchOptions, progress: GridProgress):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.ray, self.jobs, self.options, self.progress = ray, jobs, options, progress
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.folders = ray.remote(RunFolders).options(num_cpus=0, scheduling_strategy=here).remote(jobs)
        if why := ray.get(self.folders.lock.remote()):
            raise Refused(why)
        resources = _resources(ray, jobs, options)
        self.worker = ray.remote(run_on_node).options(
            max_retries=0, scheduling_strategy="SPREAD", **resources
        )
        self.environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | _commit()
        self.deaths = dict.fromkeys([job.name for job in jobs], 0)
        self.stopped = False

    def run(self, stop: Callable[[], bool]) -> None:
        for job in self.jobs:
            self.progress.poll(job)
        running = {self.submit(job): job for job in self.jobs}
        while running:
            if stop() and not self.stopped:
                self.stopped = True
                self.ray.get(self.folders.stop.remote())
            ready, _ = self.ray.wait(list(running), num_returns=1, timeout=0.5)
            for job in running.values():
                self.progress.poll(job)
            for reference in ready:
                job = running.pop(reference)
                try:
                    self.end(job, self.ray.get(reference))
                except self.ray.exceptions.RayError as error:
                    if self.tries_again(job, type(error).__name__):
                        running[self.submit(job)] = job

    def submit(self, job: Job) -> Any:
        return self.worker.remote(
            job.name, job.config, self.folders, self.options.sync_every, os.getcwd(), self.environment
        )

    def end(self, job: Job, failure: str | None) -> None:
        self.progress.poll(job)
        if failure:
            self.progress.ended(job, Failed(failure))
        elif status(job) == FINISHED:
            self.progress.ended(job, results.read(job.folder / "result.json"))
        else:
            self.progress.ended(job, Interrupted("stopped"))

    def tries_again(self, job: Job, error: str) -> bool:
        """Whether a run whose worker has died is submitted once more; if not, it has ended."""
        if self.stopped:
            self.progress.ended(job, Interrupted("stopped"))
            return False
        self.deaths[job.name] += 1
        if self.deaths[job.name] > self.options.retries:
            self.progress.ended(job, Failed(f"its worker died {self.deaths[job.name]} times: {error}"))
            return False
        self.progress.say(job, f"its worker died ({error}); goes on elsewhere")
        return True


def _connect(ray: Any, options: LaunchOptions) -> None:
    """Join the cluster, or start one here; keep the driver's own handler of SIGTERM."""
    if options.address and options.address.startswith("ray://"):
        raise Refused("--address: the grid must run on a node of the cluster; give auto or HOST:PORT there")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = options.address or os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **own)
        signal.signal(signal.SIGTERM, before)  # Ray's own would leave at once
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        what = f"no Ray cluster answers at {address!r}" if address else "no Ray cluster can be started here"
        raise Refused(f"{what}: {first_line(error)}") from None


def _resources(ray: Any, jobs: list[Job], options: LaunchOptions) -> dict[str, float]:
    """What a run asks for; refuse more than the whole cluster has."""
    cluster = ray.cluster_resources()
    gpus = options.gpus_per_run
    if gpus is None:
        wanted = any(job.config.device != "cpu" for job in jobs)
        gpus = 1.0 if wanted and cluster.get("GPU") else 0.0
    for name, flag, need in (
        ("CPU", "--cpus-per-run", options.cpus_per_run),
        ("GPU", "--gpus-per-run", gpus),
    ):
        if need > cluster.get(name, 0):
            raise Refused(f"{flag} {need:g}: the whole cluster has {cluster.get(name, 0):g}")
    return {"num_cpus": options.cpus_per_run, "num_gpus": gpus}


def _commit() -> dict[str, str]:
    """The driver's commit: a node may have no git."""
    from jioc.training.execution import commit

    return {"JIOC_COMMIT": name} if (name := commit()) else {}


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise Refused("--on ray needs Ray; install it with: pip install 'jioc[ray]'") from None
    return ray


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
            self.lock_file = open(out / ".grid-lock", "ab")  # noqa: SIM115
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
    try:
        with tempfile.TemporaryDirectory(prefix="jioc-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch) / name
            write_files(files, folder)
            return _run_in(folder, config, Sync(folder, folders, name, number, every))
    except OSError as error:
        why = error.strerror or error
        return f"the folder for temporary files of {platform.node()} cannot be used: {why}"


def _run_in(folder: Path, config: Config, sync: "Sync") -> str | None:
    """Run in a scratch folder and send it back; return what the run said if it failed."""
    from jioc.training.run import run

    failure = None
    with sync:
        try:
            run(config, out=folder, resume=True, stop=lambda: sync.stop)
            event = "finished"
        except Interrupted:
            event = "stopped"
        except Exception as error:
            event, failure = "failed", sentence(error)
    refusal = sync.send(read_files(folder, whole=True) if folder.exists() else {}, event)
    return failure or refusal


class Sync:
    """A thread beside a run: sends the folder to the driver when there is news, asks whether to go on."""

    def __init__(self, folder: Path, folders: Any, name: str, number: int, every: float):
        self.folder, self.folders, self.name, self.number, self.every = folder, folders, name, number, every
        self.stop = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._sent = self._state()
        self._sent_at = time.monotonic()

    def __enter__(self) -> "Sync":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def send(self, files: Files, event: str | None) -> str | None:
        """Send the folder; return why the driver did not take it."""
        import ray

        return ray.get(self.folders.save.remote(self.name, self.number, files, event))

    def _watch(self) -> None:
        import ray

        while not self._ended.wait(min(ASK_EVERY, self.every + 0.05)):
            try:
                if not ray.get(self.folders.may_go_on.remote(self.name, self.number)):
                    self.stop = True
                elif self._due():
                    state = self._state()
                    if self.send(read_files(self.folder, whole=False), None):
                        self.stop = True
                    self._sent, self._sent_at = state, time.monotonic()
            except FileNotFoundError:
                continue  # a checkpoint that was replaced while it was read
            except ray.exceptions.RayError:
                self.stop = True  # the driver is gone

    def _state(self) -> tuple[int | None, str | None]:
        """What a new task changes, and what a new checkpoint changes."""
        result = self.folder / "result.json"
        return (result.stat().st_mtime_ns if result.exists() else None), newest_checkpoint(self.folder)

    def _due(self) -> bool:
        """Whether to send: after each task, and after a checkpoint if the last time is long enough ago."""
        task, checkpoint = self._state()
        if checkpoint is None:
            return False
        waited = time.monotonic() - self._sent_at >= self.every
        return task != self._sent[0] or (checkpoint != self._sent[1] and waited)
