"""The runs of a grid in this process, one after another or several at once. No torch here."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from jioc import results
from jioc.errors import Interrupted, sentence
from jioc.events import Callback, Event, Note, Start, TaskEnd, ignore
from jioc.files import open_regular
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import FINISHED, Job, append_event, status
from jioc.grid.progress import GridProgress, LearntEnough
from jioc.results import Result
from jioc.training.store import Busy


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    watch = progress.watch if options.stop_after is None else stop_after(options.stop_after, progress.watch)
    run_here(jobs, options.pack, stop, watch, progress.ended)


def stop_after(tasks: int, watch: Callable[[Job], Callback]) -> Callable[[Job], Callback]:
    """Make callbacks that stop a run once it has learnt that many tasks; its last task ends it as ever."""

    def watched(job: Job) -> Callback:
        tell, of = watch(job), 0

        def tell_and_stop(event: Event) -> None:
            nonlocal of
            tell(event)
            learnt = 0
            if isinstance(event, Start):
                learnt, of = event.done, len(event.sizes)
            elif isinstance(event, TaskEnd):
                learnt = event.row.task
            if tasks <= learnt < of:
                raise LearntEnough(f"stopped after task {learnt} of {of}")

        return tell_and_stop

    return watched


def run_here(
    jobs: list[Job],
    at_once: int,
    stop: Callable[[], bool],
    watch: Callable[[Job], Callback] = lambda job: ignore,
    ended: Callable[[Job, Result | Exception], None] = lambda job, outcome: None,
) -> list[Result | Exception]:
    """Run the jobs; return the result of each, or what stopped it. Its begin and end go to grid.jsonl.

    A run that another process is at, as of a second grid on this folder, comes last, once that has ended.
    """
    from jioc.grid.pack import pack

    begun: set[int] = set()

    def callback(i: int) -> Callback:
        job, watcher = jobs[i], watch(jobs[i])

        def tell(event: Event) -> None:
            if isinstance(event, Start):
                begun.add(i)
                append_event(job.folder.parent, job.name, "begins", learnt=event.done, pid=os.getpid())
            watcher(event)

        return tell

    def end(i: int, outcome: Result | Exception) -> None:
        if isinstance(outcome, Busy):
            return
        out, name = jobs[i].folder.parent, jobs[i].name
        if not isinstance(outcome, Exception):
            append_event(out, name, "finished", pid=os.getpid())
        elif i in begun or not isinstance(outcome, Interrupted):
            event = "stopped" if isinstance(outcome, Interrupted) else "failed"
            append_event(out, name, event, why=sentence(outcome))
        ended(jobs[i], outcome)

    configs, folders = [job.config for job in jobs], [job.folder for job in jobs]
    outcomes = pack(configs, at_once, outs=folders, resume=True, callback=callback, ended=end, stop=stop)
    busy = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Busy)]
    for i in busy:
        watch(jobs[i])(Note("another process is at work on it, and is waited for"))
        wait_until_free(folders[i], stop)
        if status(jobs[i]) == FINISHED:
            outcomes[i] = results.read(folders[i] / "result.json")
            ended(jobs[i], outcomes[i])
        else:
            (outcomes[i],) = run_here([jobs[i]], 1, stop, watch, ended)
    return outcomes


def wait_until_free(folder: Path, stop: Callable[[], bool]) -> None:
    """Wait until nobody else writes to a run's folder."""
    while (folder / ".lock").exists() and not stop():
        try:
            with open_regular(folder / ".lock", "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.5)
        except OSError:
            return  # nothing can be locked here: the run itself says so
