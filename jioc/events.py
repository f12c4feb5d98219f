"""The events of a run, passed to `callback(event)` while it works. No torch here.

def callback(event):
    match event:
        case Epoch(task=task, epoch=epoch, terms=terms):
            print(task, epoch, terms)
        case TaskEnd(row=row):
            print(row.cnn.all)
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from jioc.results import TaskRow


@dataclass(frozen=True)
class Start:
    """The run begins, or goes on after `done` tasks."""

    sizes: list[int]  # classes of each task
    classes: list[str]  # in the order they are learnt
    counts: list[int]  # training images of each class
    memory: int | None  # exemplars in all; None: as many as there are images
    device: str
    precision: str
    done: int


@dataclass(frozen=True)
class Epoch:
    """An epoch has ended: a line of log.jsonl."""

    task: int  # 1 for the first
    stage: str  # first, later, second or rebalance
    epoch: int  # 1 for the first of the stage
    epochs: int  # of the stage
    lr: float
    images: int
    terms: dict[str, float]  # the mean of each term of the loss
    seconds: float
    images_per_second: float


@dataclass(frozen=True)
class Training:
    """An epoch goes on; told now and then, so that a long one shows that it moves."""

    task: int
    stage: str
    epoch: int
    epochs: int
    done: int  # images of this epoch so far
    total: int  # images of an epoch


@dataclass(frozen=True)
class TaskEnd:
    """A task has been learnt and evaluated."""

    row: TaskRow


@dataclass(frozen=True)
class Note:
    """A sentence that a person should read."""

    text: str


@dataclass(frozen=True)
class Decoding:
    """Images are being decoded, for the first time."""

    done: int
    total: int


@dataclass(frozen=True)
class Waiting:
    """Another process is decoding the images; repeated until it is done."""


Event = Start | Epoch | Training | TaskEnd | Note | Decoding | Waiting
Callback = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The callback where nobody asked for events."""


def log_notes(event: Event) -> None:
    """The callback of a program without one: notes go to the logger `jioc`, which prints them on stderr."""
    if isinstance(event, Note):
        logging.getLogger("jioc").warning(event.text)
