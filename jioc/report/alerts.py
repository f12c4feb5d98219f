"""What a person should look at before believing a figure: an unfinished run, a task at 0 %, no number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jioc.report.group import Group, Run, collect
from jioc.report.losses import Losses
from jioc.text import counted


@dataclass(frozen=True)
class Alert:
    """A sentence about some runs of a group."""

    group: int
    runs: list[int]  # their positions in the group
    text: str


def find(groups: list[Group], losses: Sequence[Sequence[Losses]]) -> list[Alert]:
    """List what is odd, setting by setting. `losses`: of each run of each group."""
    alerts = []
    for i, g in enumerate(groups):
        messages = [
            (text, r) for r, run in enumerate(g.runs) for text in _of_run(run, losses[i][r], _tasks(g, run))
        ]
        alerts += [Alert(i, some, text) for text, some in collect(messages).items()]
    return alerts


def _of_run(run: Run, losses: Losses, tasks: int) -> Iterable[str]:
    result = run.result
    if not run.complete:
        learnt = len(result.tasks)
        yield f"not finished: {f'{learnt} of {tasks} tasks' if tasks else counted(learnt, 'task')} learnt"
    last = result.tasks[-1].by_readout[result.headline]
    if zero := [t for t, value in enumerate(last.per_task, 1) if value == 0]:
        yield f"at 0 % after task {len(result.tasks)}: {_listed(zero)}"
    missing = [t for t, row in enumerate(result.tasks, 1) if row.by_readout[result.headline].all is None]
    if missing:
        yield f"no accuracy after {_listed(missing)}"
    if losses.not_finite:
        yield f"a loss that is not a finite number in {_listed(losses.not_finite)}"


def _tasks(g: Group, run: Run) -> int:
    """How many tasks the run has to learn, where that is known."""
    whole = g.complete[0].result.tasks if g.complete else []
    return len(whole) or run.config.get("tasks") or 0


def _listed(tasks: list[int]) -> str:
    """tasks 1 to 4, 6."""
    spans: list[list[int]] = []
    for task in tasks:
        if spans and task == spans[-1][-1] + 1:
            spans[-1].append(task)
        else:
            spans.append([task])
    parts = [f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(map(str, span)) for span in spans]
    return f"{'tasks' if len(tasks) > 1 else 'task'} {', '.join(parts)}"
