"""The runs of a grid in this process, one after another or several at once. No torch here."""

import os
from collections.abc import Callable

from jioc.errors import Interrupted, sentence
from jioc.events import Callback, Event, Start, ignore
from jioc.grid.options import LaunchOptions
from jioc.grid.plan import Job, append_event
from jioc.grid.progress import GridProgress
from jioc.results import Result


def launch(jobs: list[Job], options: LaunchOptions, progress: GridProgress, stop: Callable[[], bool]) -> None:
    run_here(jobs, options.pack, stop, progress.watch, progress.ended)


def run_here(
    jobs: list[Job],
    at_once: int,
    stop: Callable[[], bool],
    watch: Callable[[Job], Callback] = lambda job: ignore,
    ended: Callable[[Job, Result | Exception], None] = lambda job, outcome: None,
) -> list[Result | Exception]:
    """Run the jobs; return the result of each, or what stopped it. Its begin and end go to grid.jsonl."""
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
        out, name = jobs[i].folder.parent, jobs[i].name
        if not isinstance(outcome, Exception):
            append_event(out, name, "finished", pid=os.getpid())
        elif i in begun or not isinstance(outcome, Interrupted):
            event = "stopped" if isinstance(outcome, Interrupted) else "failed"
            append_event(out, name, event, why=sentence(outcome))
        ended(jobs[i], outcome)

    configs, folders = [job.config for job in jobs], [job.folder for job in jobs]
    return pack(configs, at_once, outs=folders, resume=True, callback=callback, ended=end, stop=stop)
