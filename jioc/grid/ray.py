"""A Ray cluster whose nodes need not share a disk.

A run works in a scratch folder of its node. A keeper, an actor on the driver's node, holds the runs' own folders: a
run begins from what is there, and sends its checkpoint after each task and now and then, its whole folder at the end.
So a run whose worker or node dies goes on elsewhere, and so does the grid after its driver died. Each try has a number;
what comes from an earlier one, on a node that was only out of reach, is turned away.
"""

import fcntl
import os
import platform
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jioc import results
from jioc.config.schema import Config
from jioc.errors import Failed, Interrupted, Refused, first_line, sentence
from jioc.files import flush_folder, write
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import FINISHED, Job, append_event, read_json, status
from jioc.grid.progress import GridProgress

Files = dict[str, bytes]
"""A run's folder: path and content."""

ASKED = 1.0  # seconds between two questions of a run whether to go on
PATIENCE = 30  # seconds
RESUMED = ("config.yaml", "log.jsonl")  # what a run needs beside a checkpoint to go on
PASSED_ON = ("JIOC_DATA", "JIOC_CACHE", "OMP_NUM_THREADS")


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    ray = _ray()
    _connect(ray, options)
    try:
        _launch(ray, jobs, options, progress, stop)
    finally:
        ray.shutdown()


def _launch(
    ray: Any, jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]
) -> None:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(Keeper).options(num_cpus=0, scheduling_strategy=here).remote(jobs)
    if told := ray.get(keeper.hold.remote()):
        raise Refused(told)
    worker = ray.remote(work).options(
        max_retries=0, scheduling_strategy="SPREAD", **_resources(ray, jobs, options)
    )
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | _commit()

    def submit(job: Job) -> Any:
        return worker.remote(job.name, job.config, keeper, options.sync_every, os.getcwd(), environment)

    tries = dict.fromkeys([job.name for job in jobs], 0)
    for job in jobs:
        progress.poll(job)
    running = {submit(job): job for job in jobs}
    halted = False
    while running:
        if stop() and not halted:
            halted = True
            ray.get(keeper.halt.remote())
        ready, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
        for job in running.values():
            progress.poll(job)
        for reference in ready:
            job = running.pop(reference)
            try:
                told = ray.get(reference)
            except ray.exceptions.RayError as error:
                if halted or tries[job.name] >= options.retries:
                    died = Failed(f"its worker died {tries[job.name] + 1} times: {type(error).__name__}")
                    progress.ended(job, Interrupted("stopped") if halted else died)
                    continue
                tries[job.name] += 1
                progress.say(job, f"its worker died ({type(error).__name__}); goes on elsewhere")
                running[submit(job)] = job
                continue
            progress.poll(job)
            if told is None and status(job) == FINISHED:
                progress.ended(job, results.read(job.folder / "result.json"))
            else:
                progress.ended(job, Failed(told) if told else Interrupted("stopped"))


def _connect(ray: Any, options: LaunchOptions) -> None:
    if options.address and options.address.startswith("ray://"):
        raise Refused("--address: the grid must run on a node of the cluster; give auto or HOST:PORT there")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = options.address or os.environ.get("RAY_ADDRESS")
    ours: dict[str, Any] = (
        {} if address else {"include_dashboard": False}
    )  # of a cluster that is started here
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR", **ours)
        signal.signal(signal.SIGTERM, before)  # Ray's own would leave at once
    except (ConnectionError, OSError, ValueError, RuntimeError) as error:
        where_to = (
            f"no Ray cluster answers at {address!r}" if address else "no Ray cluster can be started here"
        )
        raise Refused(f"{where_to}: {first_line(error)}") from None


def _resources(ray: Any, jobs: list[Job], options: LaunchOptions) -> dict[str, float]:
    there = ray.cluster_resources()
    gpus = options.gpus_per_run
    if gpus is None:
        wanted = any(job.config.device != "cpu" for job in jobs)
        gpus = 1.0 if wanted and there.get("GPU") else 0.0
    for name, flag, need in (
        ("CPU", "--cpus-per-run", options.cpus_per_run),
        ("GPU", "--gpus-per-run", gpus),
    ):
        if need > there.get(name, 0):
            raise Refused(f"{flag} {need:g}: the whole cluster has {there.get(name, 0):g}")
    return {"num_cpus": options.cpus_per_run, "num_gpus": gpus}


def _commit() -> dict[str, str]:
    """The driver's commit: a node may have no git."""
    from jioc.training.provenance import commit

    return {"JIOC_COMMIT": name} if (name := commit()) else {}


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise Refused("--on ray needs Ray; install it with: pip install 'jioc[ray]'") from None
    return ray


# --- on the driver's node ---


class Keeper:
    """Holds the runs' folders; one call at a time."""

    def __init__(self, jobs: list[Job]):
        self.jobs = {job.name: job for job in jobs}
        self.tries = dict.fromkeys(self.jobs, 0)
        self.halted = False

    def hold(self) -> str | None:
        """What keeps these folders from it, such as another keeper; that of a driver who has just died lets go soon."""
        out = next(iter(self.jobs.values())).folder.parent
        try:
            out.mkdir(parents=True, exist_ok=True)
            self.lock = open(out / ".keeper", "ab")  # noqa: SIM115
            for _ in range(PATIENCE):
                try:
                    fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return None
                except BlockingIOError:
                    time.sleep(1)
        except OSError as error:
            return f"the runs' folder {str(out)!r} cannot be used: {error.strerror or error}"
        self.lock.close()
        return f"another grid is at work in {str(out)!r}"

    def begin(self, name: str, node: str, pid: int) -> tuple[int, Files] | None:
        """The number of this try and the folder to begin from; None where there is nothing to do."""
        job = self.jobs[name]
        if self.halted or status(job) == FINISHED:
            return None
        self.tries[name] += 1
        append_event(job.folder.parent, name, "begins", number=self.tries[name], node=node, pid=pid)
        return self.tries[name], packed(job.folder, whole=True)

    def go_on(self, name: str, number: int) -> bool:
        return not self.halted and number == self.tries[name]

    def take(self, name: str, number: int, files: Files, event: str | None) -> str | None:
        """Why the folder was not taken: not from a try that another has overtaken, nor after the end, nor on a full
        disk."""
        job = self.jobs[name]
        if number != self.tries[name] or status(job) == FINISHED:
            return "another try has overtaken this one"
        try:
            unpacked(files, job.folder)
        except OSError as error:
            told = f"the run cannot be kept in {str(job.folder)!r}: {error.strerror or error}"
            return f"{told}; with that mended, the same command goes on"
        if event is not None:
            append_event(job.folder.parent, name, event, number=number)
        return None

    def halt(self) -> None:
        self.halted = True


# --- on any node ---


def work(
    name: str, config: Config, keeper: Any, every: float, cwd: str, environment: dict[str, str]
) -> str | None:
    """One run, from what the keeper has of it; what it said where it failed."""
    import ray

    os.environ.update(environment)
    if Path(cwd).is_dir():
        os.chdir(cwd)  # for paths that are relative
    begun = ray.get(keeper.begin.remote(name, platform.node(), os.getpid()))
    if begun is None:
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="jioc-", ignore_cleanup_errors=True) as scratch:
            return _work_in(Path(scratch) / name, name, config, keeper, every, *begun)
    except OSError as error:
        return (
            f"the folder for temporary files of {platform.node()} cannot be used: {error.strerror or error}"
        )


def _work_in(
    folder: Path, name: str, config: Config, keeper: Any, every: float, number: int, files: Files
) -> str | None:
    import ray

    from jioc.training.run import run

    unpacked(files, folder)
    with Mirror(folder, keeper, name, number, every) as mirror:
        try:
            run(config, out=folder, resume=True, stop=lambda: mirror.stop)
            event, told = "finished", None
        except Interrupted:
            event, told = "stopped", None
        except Exception as error:
            event, told = "failed", sentence(error)
    kept = packed(folder, whole=True) if folder.exists() else {}
    lost = ray.get(keeper.take.remote(name, number, kept, event))
    return told or lost


class Mirror:
    """Beside a run: sends its folder to the keeper when there is news, and hears whether to go on."""

    def __init__(self, folder: Path, keeper: Any, name: str, number: int, every: float):
        self.folder, self.keeper, self.name, self.number, self.every = folder, keeper, name, number, every
        self.stop = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._sent: tuple[Any, Any] = self._news()
        self._when = time.monotonic()

    def __enter__(self) -> "Mirror":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        import ray

        while not self._over.wait(min(ASKED, self.every + 0.05)):
            try:
                if not ray.get(self.keeper.go_on.remote(self.name, self.number)):
                    self.stop = True
                elif self._due():
                    sent = self._news()
                    files = packed(self.folder, whole=False)
                    if ray.get(self.keeper.take.remote(self.name, self.number, files, None)):
                        self.stop = True
                    self._sent, self._when = sent, time.monotonic()
            except FileNotFoundError:
                continue  # a checkpoint that was replaced while it was read
            except ray.exceptions.RayError:
                self.stop = True  # the driver is gone

    def _news(self) -> tuple[Any, Any]:
        """What a task and what a checkpoint changes."""
        result = self.folder / "result.json"
        return (result.stat().st_mtime_ns if result.exists() else None), newest(self.folder)

    def _due(self) -> bool:
        task, checkpoint = self._news()
        if checkpoint is None:
            return False
        return task != self._sent[0] or (
            checkpoint != self._sent[1] and time.monotonic() - self._when >= self.every
        )


# --- a folder as files ---


def newest(folder: Path) -> str | None:
    names = [p.name for p in folder.glob("checkpoint/*") if p.name.isdigit()]
    return max(names, key=int, default=None)


def packed(folder: Path, whole: bool) -> Files:
    """The newest checkpoint, then the log that it notes the length of, then what was learnt.

    `whole`: with the model and a result that is complete, which only a run that has ended is sure to have both of.
    Raises FileNotFoundError where the run drops that checkpoint meanwhile.
    """
    paths = []
    if number := newest(folder):
        listed = folder / "checkpoint" / number / "checksums.json"
        paths = [listed, *map(listed.with_name, read_json(listed) or ())]
    beside = [p for p in folder.glob("[!.]*") if p.is_file()]
    beside.sort(
        key=lambda p: (p.name != "config.yaml", p.name == "model.json")
    )  # that makes it a run; names others
    paths += [p for p in beside if (p.name != "result.json" if whole else p.name in RESUMED)]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    result = folder / "result.json"
    content = (
        result.read_bytes() if result.exists() else b""
    )  # before the question: it may become complete meanwhile
    if content and (asked := read_json(result)) is not None and (whole or not asked["complete"]):
        files["result.json"] = content
    return files


def unpacked(files: Files, folder: Path) -> None:
    """The files in place, so that whenever this is cut short the folder can be resumed from."""
    states = {Path(name): content for name, content in files.items() if name.startswith("checkpoint/")}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if Path(name) not in states and name != "result.json":
            write(folder / name, content)
    if states:
        place = folder / next(iter(states)).parent
        if not place.exists():
            partial = place.with_name(f".{place.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for path, content in states.items():
                write(partial / path.name, content)
            os.rename(partial, place)
            flush_folder(place.parent)
        for other in place.parent.iterdir():
            if other.name.isdigit() and int(other.name) < int(place.name):
                shutil.rmtree(other)
    if "result.json" in files:
        write(folder / "result.json", files["result.json"])  # last: where it is complete, so is the rest
