"""In this process, one after another or several at once."""

import os
from collections.abc import Callable
from typing import Any

from jioc.errors import Interrupted, sentence
from jioc.events import Callback
from jioc.grid.options import Where
from jioc.grid.plan import Job, note
from jioc.grid.progress import Board


def launch(jobs: list[Job], where: Where, board: Board, stop: Callable[[], bool]) -> None:
    run_here(jobs, where.pack, stop, board.watch, board.ended)


def run_here(
    jobs: list[Job],
    at_once: int,
    stop: Callable[[], bool],
    watch: Callable[[Job], Callback] | None = None,
    ended: Callable[[Job, dict[str, Any] | Exception], None] | None = None,
) -> list[dict[str, Any] | Exception]:
    """The results in order, or what stopped a run; each run's begin and end are noted in grid.jsonl."""
    from jioc.grid.pack import pack

    begun: set[int] = set()

    def callback(i: int) -> Callback:
        job, told = jobs[i], watch(jobs[i]) if watch else None

        def tell(kind: str, what: dict[str, Any]) -> None:
            if kind == "start":
                begun.add(i)
                note(job.folder.parent, job.name, "begins", learnt=what["done"], pid=os.getpid())
            if told is not None:
                told(kind, what)

        return tell

    def end(i: int, outcome: dict[str, Any] | Exception) -> None:
        if isinstance(outcome, Exception):
            event = "stopped" if isinstance(outcome, Interrupted) else "failed"
            if i in begun or event == "failed":
                note(jobs[i].folder.parent, jobs[i].name, event, told=sentence(outcome))
        else:
            note(jobs[i].folder.parent, jobs[i].name, "finished", pid=os.getpid())
        if ended is not None:
            ended(jobs[i], outcome)

    folders = [job.folder for job in jobs]
    return pack(
        [job.config for job in jobs], at_once, outs=folders, resume=True, callback=callback, ended=end, stop=stop
    )
