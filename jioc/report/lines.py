"""Results as lines for a person."""

from collections.abc import Callable

from jioc.results import Accuracy, Evaluation, TaskRow, Threshold
from jioc.text import counted

LONGEST, LONG = "100.00", "9999"  # a figure, and seconds


def percent(value: float | None) -> str:
    return "    –" if value is None else f"{value:5.2f}"


def task_line(row: TaskRow, tasks: int, width: int | None = None, headline: str = "cnn") -> str:
    """Write the accuracies after a task; `tasks`: how many there are, 0 where that is not known.

    The read-out that the run is judged by comes first. Where the line of some task would be wider than
    `width`, read-outs after the first tell no old and new classes; then the last read-outs are left out.
    """
    task, seconds = f"task {row.task:>2}" + (f"/{tasks}" if tasks else ""), f"{row.seconds or 0:.0f}"
    head = f"{task}  {counted(row.classes[1], 'class'):>11}"
    accuracies = sorted(row.by_readout.items(), key=lambda pair: pair[0] != headline)
    shown, longest = (_forms(accuracies, show) for show in (percent, lambda _: LONGEST))
    for figures, longer in zip(shown, longest, strict=True):
        if width is None or len("  ".join([head, *longer, max(seconds, LONG, key=len), ""])) <= width:
            return "  ".join([head, *figures, f"{seconds} s"])
    return f"{task}  {accuracies[0][0]} {percent(accuracies[0][1].all)}"


def _forms(accuracies: list[tuple[str, Accuracy]], show: Callable[[float | None], str]) -> list[list[str]]:
    """The figures of the read-outs: all with old and new classes, then fewer and fewer."""
    whole = [f"{name} {show(a.all)} (old {show(a.old)}, new {show(a.new)})" for name, a in accuracies]
    short = [f"{name} {show(a.all)}" for name, a in accuracies[1:]]
    return [whole, *([whole[0], *short[:n]] for n in range(len(short), -1, -1))]


def learnt_lines(row: TaskRow) -> list[str]:
    """Write the accuracies after a task that was learnt on: what it brought, and what it cost.

    Say which classes nothing is known about, for want of test images.
    """
    n_old, n_seen = row.classes
    old, new = row.tested[:n_old], row.tested[n_old:]
    images = (
        f"{counted(sum(old), 'test image')} of {counted(n_old, 'old class')} and {sum(new):,} of new ones"
    )
    lines = [f"task {row.task}: of {images}, right among all {n_seen} classes, in percent:"]
    for name, accuracy in row.by_readout.items():
        parts = {"all": accuracy.all, "old": accuracy.old, "new": accuracy.new}
        figures = [f"{part} {percent(value)}" for part, value in parts.items()]
        if accuracy.before is not None:
            figures[1] += f" (before {percent(accuracy.before)})"
        lines.append("   ".join([f"  {name}", *figures]))
    helps = "jioc evaluate MODEL FOLDER measures that"
    if not any(old):
        lines.append(
            f"the model keeps no test image of old classes, so what it has forgotten is not known; {helps}"
        )
    elif missing := sum(n == 0 for n in old):
        lines.append(
            f"of {counted(missing, 'old class')} there is no test image, so they are left out; {helps}"
        )
    if missing := sum(n == 0 for n in new):
        lines.append(f"of {counted(missing, 'new class')} there is no test image, so they are left out")
    return lines


def evaluation_lines(e: Evaluation) -> list[str]:
    """Write what was counted, what was not, and the accuracies."""
    seen = sum(n > 0 for n in e.images)
    what = f"{counted(e.counted, 'image')} of {seen} of {counted(len(e.classes), 'class')}"
    where = f" of {e.data}" if e.data else ""
    lines = [f"{e.model or 'the model'}, read-out {e.readout}, on {what}{where}"]
    if e.trained:
        lines.append(f"not counted: {counted(e.trained, 'image')} that the model has trained on")
    if not e.knows_trained:
        lines.append(
            "the model keeps no record of its training images: if some are among these, it knows them"
        )
    if e.not_known:
        names = ", ".join(f"{name} ({n:,})" for name, n in e.not_known.items())
        lines.append(f"not counted, of classes that the model does not know: {names}")
    if e.skipped:
        lines.append(f"not counted: {counted(len(e.skipped), 'file')} that cannot be used")
    a = e.accuracy
    parts = [f"all {percent(a.all)}", f"each class alike {percent(e.each_class_alike)}"]
    if len(e.sizes) > 1:
        parts[1:1] = [f"old {percent(a.old)}", f"new {percent(a.new)}"]
    if a.top5 is not None:
        parts.append(f"among the best five {percent(a.top5)}")
    return [*lines, f"right, in percent: {'   '.join(parts)}"]


ENOUGH = 20  # right answers, for a threshold that is more than a guess


def unknown_line(threshold: Threshold) -> str:
    """Write what a threshold for `unknown` does."""
    parts = {"of wrong ones": threshold.wrong_refused, "of unknown classes": threshold.strangers_refused}
    refused = [f"{value:.2f} % {what}" for what, value in parts.items() if value is not None]
    becomes = f"; unknown become {' and '.join(refused)}" if refused else ""
    fitted = (
        f"fitted on {counted(threshold.images, 'right answer')}, of which {threshold.right_kept:.2f} % stay"
    )
    few = f"; with fewer than {ENOUGH} it is rough" if threshold.images < ENOUGH else ""
    return f"unknown: scores below {threshold.score:.4f}, {fitted}{becomes}{few}"


def calibration_line(e: Evaluation) -> str:
    """Write how far the scores can be believed."""
    if e.calibration is None:
        return "calibration: the scores of this read-out are cosines, not probabilities"
    gap = e.calibration.score - (e.accuracy.all or 0)
    word = f"{abs(gap):.2f} too {'sure' if gap > 0 else 'unsure'}"
    error = f"expected calibration error {e.calibration.error:.2f}"
    return f"calibration: mean score {e.calibration.score:.2f}, {word}; {error}"
