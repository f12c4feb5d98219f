"""What to say of a run that its figures do not show: as it begins, and where it has learnt nothing."""

import math
from collections.abc import Sequence

from jioc.errors import sentence
from jioc.events import Epoch
from jioc.methods import Spec

ENOUGH = 5  # epochs after which a loss should be below that of guessing
CHANCE = 0.97  # share of that loss
ALL_KEPT = "the memory has room for every image, so each task trains on all that were seen, as joint does"
UNTRAINED = "the features are those of a network that nothing has trained; --weights brings better ones"
PIECE_BY_PIECE = "on several processes a step is launched piece by piece, not from a CUDA graph"


def unreadable_code(method: str) -> str:
    return f"the code of {method!r} cannot be read, so that a change of it will not be noticed"


def already_learnt(classes: Sequence[str]) -> str:
    names = ", ".join(map(repr, classes))
    beside = "beside new classes, --known add uses their new images too, and --known skip leaves them out"
    return f"already learnt: {names}; {beside}"


def broke_on_noise(method: str, error: Exception) -> str:
    return (
        f"{method!r} stopped in a trial of small tasks of noise ({sentence(error)}); "
        "if that is not for want of real images, the run will stop there too"
    )


def not_resumable(method: str, error: str | None) -> str:
    told = f" ({error})" if error else ""
    return (
        f"{method!r} ends elsewhere if its run is interrupted and resumed{told}: have it reach parts of the "
        "network through self.net each time, and keep what it learns in attributes that `persistent` names"
    )


def no_run_repeats(method: str, drawn: Sequence[str]) -> str:
    whose = " and ".join(f"{name}'s" for name in drawn)
    return (
        f"{method!r} draws random numbers from {whose} own generator, so that no run of it repeats; "
        "draw them from the method's `generator`"
    )


def nothing_remembered(method: str) -> str:
    return (
        f"{method!r} keeps no exemplars: `learn` calls self.remember(task, data) in the end, or puts the "
        "images of each class into self.memory.classes; if it needs none, its entry says memory='none'"
    )


def never_trained(method: str, name: str) -> str:
    return (
        f"the loss of {method!r} depends on {name!r}, which no stage trains; "
        "fit(self, task, …, params=[…]) names what is trained"
    )


def at_chance(last: Epoch, sizes: Sequence[int], spec: Spec) -> str | None:
    """Say that the loss at the end of a stage is still that of guessing. `sizes`: of the tasks so far."""
    if not last.epoch == last.epochs >= ENOUGH:
        return None
    classes, loss = sizes[-1] if spec.memory == "none" else sum(sizes), last.terms.get("cls", 0.0)
    if not spec.cross_entropy or classes == 1 or loss <= CHANCE * math.log(classes):
        return None
    return (
        f"task {last.task}: after {last.epochs} epochs the loss is {loss:.2f}, and guessing among "
        f"{classes} classes gives {math.log(classes):.2f}, so that next to nothing was learnt; a "
        "smaller --lr, a smaller --batch-size or --weights may help"
    )
