"""The schema of result.json: classes that write and read it. Accuracies in percent, unrounded. No torch here.

result = results.read(Path("runs/first/result.json"))
result.average["cnn"], result.tasks[-1].cnn.old          or result["average"]["cnn"], as in the file
"""

import json
from collections.abc import Iterator, KeysView
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jioc.errors import Refused, refuse_if
from jioc.files import from_json, read_bytes, write
from jioc.text import printable, uncapitalised

FORMAT = 1  # of result.json; no later one is read
EVALUATION = 1  # the format of what `jioc evaluate --json` prints
Number = Annotated[float, Field(ge=-1e39, le=1e39)]  # no float32 is larger
Count = Annotated[int, Field(ge=0, le=2**53)]  # what a page can count
READOUT = r"[\w.+-][\w .+-]{0,63}"  # a read-out's name, which is also part of a figure's file name
Readout = Annotated[str, Field(pattern=f"^{READOUT}$")]
Figures = dict[Readout, Number | None]  # of each read-out
SUMMARIES = ("average", "last", "forgetting")
Span = Annotated[
    list[Count], Field(min_length=2, max_length=2)
]  # classes from the first to before the second
Sparse = Annotated[str, Field(pattern=r"^(\d{1,15}:\d{1,15}( \d{1,15}:\d{1,15})*)?$")]  # class:images


class Record(BaseModel):
    """A part of result.json. Its fields can also be read as in the file: record["cnn"]["all"]."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def keys(self) -> KeysView[str]:
        """The fields that the file has, so that dict(record) is what it holds."""
        return {name: None for name in type(self).model_fields if name in self.model_fields_set}.keys()

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return self.model_dump(mode="json", exclude_unset=True)


class Accuracy(Record):
    """Accuracy of a read-out after a task, on the test images of all classes seen."""

    all: Number | None  # None without test images, as of a learner
    new: Number | None = None  # of the classes of the task just learnt
    old: Number | None = None  # of those before; None in the first task
    before: Number | None = None  # of the same, before the task: where it was learnt on
    top5: Number | None = None  # None with fewer than five classes
    per_task: list[Number | None] = []
    per_class: list[Number | None] = []


class Diagnostics(Record):
    """Figures on what happens inside the network; `diagnostics.py` measures them."""

    old_mass_on_new: Number | None = None
    new_mass_on_old: Number | None = None
    drift_on_old: Number | None = None
    weight_norms: list[Number | None] | None = None
    mean_logits: list[Number | None] | None = None
    trained_on: list[Count] | None = None
    delta_by_class: list[Number | None] | None = None
    calibration_error: Number | None = None
    confusion: list[list[Count]] | list[Sparse] | None = None
    many: Number | None = None
    medium: Number | None = None
    few: Number | None = None


PER_CLASS = ("weight_norms", "mean_logits", "trained_on", "delta_by_class")  # a figure for each class


class TaskRow(Record):
    """One task: what was learnt, and how well all classes so far are recognised after it."""

    task: Count  # 1 for the first
    classes: Span
    memory: Count | None = None  # exemplars kept
    seconds: Number | None = None
    images_per_second: Number | None = None  # while training
    cnn: Accuracy  # of the head
    nme: Accuracy | None = None  # of the nearest class mean
    readouts: dict[Readout, Accuracy] = {}  # of others that the method has
    diagnostics: Diagnostics | None = None
    tested: list[Count] = []  # test images of each class at hand, where the task was learnt on

    @property
    def by_readout(self) -> dict[str, Accuracy]:
        """The accuracies of every read-out."""
        return {"cnn": self.cnn, **({"nme": self.nme} if self.nme else {}), **self.readouts}


class Environment(Record):
    """The machine that trained the run, and how."""

    torch: str | None = None
    python: str | None = None
    device: str | None = None
    threads: Count | None = None
    precision: str | None = None
    engine: str | None = None
    processes: Count | None = None


class DataRecord(Record):
    """The data of the run: split, files left out, mean and deviation, the fingerprint of the images."""

    model_config = ConfigDict(extra="allow")

    fingerprint: str | None = None


class Result(Record):
    """The result of a run, finished or not."""

    format: int = FORMAT
    jioc: str | None = None
    commit: str | None = None  # of the code that ended the run
    commits: list[str | None] = []  # of all code that worked on it, in order
    command: str | None = None  # the line that repeats the run
    config: dict[str, Any]
    environment: Environment = Environment()
    method: Any = None  # see methods/specs.py
    weights: dict[str, str | None] | None = None  # that the backbone began with: name, licence, sha256
    headline: str = "cnn"  # the read-out that the run is judged by
    classes: list[str]  # in the order they are learnt
    counts: list[Count] = []  # training images of each class
    data: DataRecord = DataRecord()
    tasks: list[TaskRow]
    average: Figures = {}  # mean of the accuracies after each task, the first included
    last: Figures = {}  # accuracy after the last task
    forgetting: Figures = {}  # best accuracy on a past task minus the final one, mean over the past tasks
    complete: bool = False

    def save(self, path: Path) -> None:
        write(path, (json.dumps(self.plain(), indent=1, allow_nan=False) + "\n").encode())


class Calibration(Record):
    """Whether answers are right as often as their scores say. In percent."""

    error: Number  # expected calibration error: over 15 bins of the score, share x |accuracy - mean score|
    score: Number  # mean over all images
    bins: list[list[Number]] = []  # of each bin that holds an image: images, mean score, accuracy


class Threshold(Record):
    """The score below which an answer is `unknown`, and what it does to the images it was fitted on."""

    score: Number
    keep: Annotated[float, Field(gt=0, le=1)]  # the share of right answers that was to be kept
    images: Count  # right answers that it was fitted on
    right_kept: Number | None = None  # percent of the right answers that stay
    wrong_refused: Number | None = None  # of the wrong ones that become unknown
    strangers_refused: Number | None = None  # of images of classes that the model does not know


class Evaluation(Record):
    """What `jioc evaluate` finds out about a model, by images whose classes are known."""

    format: int = EVALUATION
    jioc: str | None = None
    model: str | None = None  # its folder
    data: str | None = None
    readout: Readout
    classes: list[str]  # of the model, in the order in which it learnt them
    sizes: list[Count]  # classes of each task; those of the last are new, the others old
    images: list[Count]  # of each class, that are counted
    accuracy: Accuracy
    each_class_alike: Number  # mean accuracy of the classes that have an image
    calibration: Calibration | None = None  # None where scores are no probabilities
    confusion: list[list[Count]] | list[Sparse]  # images of class r taken for class c, see `diagnostics.py`
    not_known: dict[str, Count] = {}  # images of classes that the model does not know, which are not counted
    trained: Count = 0  # images that the model has trained on, which are not counted
    knows_trained: bool = True  # whether the model can tell those
    skipped: list[list[str]] = []  # files that are no usable image, and why
    unknown: Threshold | None = None  # where one was fitted

    @property
    def counted(self) -> int:
        return sum(self.images)

    def confusions(self) -> list[tuple[int, int, int]]:
        """The mistakes, most frequent first: true class, class it was taken for, images."""
        rows: list[Any] = list(self.confusion)
        pairs = [(r, c, n) for r, row in enumerate(rows) for c, n in _cells(row) if r != c and n]
        return sorted(pairs, key=lambda pair: -pair[2])


def _cells(row: list[int] | str) -> Iterator[tuple[int, int]]:
    """The classes of a line of the confusion matrix, and how many images each has."""
    if not isinstance(row, str):
        yield from enumerate(row)
        return
    for word in row.split():
        c, _, n = word.partition(":")
        yield int(c), int(n)


def read(path: Path) -> Result:
    """Read a result of at least one task; refuse a damaged one by its name."""
    name = repr(str(path))
    try:
        values = from_json(read_bytes(path))
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Refused(f"{name} is not a whole result") from None
    version: Any = values.get("format") if isinstance(values, dict) else None
    is_result = isinstance(version, int) and {"config", "classes", "tasks"} <= values.keys()
    refuse_if(not is_result, f"{name} is not a result of jioc")
    refuse_if(
        version > FORMAT,
        f"{name} was written by a newer jioc ({values.get('jioc')}); this one cannot read it",
    )
    try:
        result = Result.model_validate(values)
    except ValidationError as error:
        raise _damaged(name, error) from None
    refuse_if(not result.tasks, f"{name} holds no task yet")
    refuse_if(
        any(result.headline not in row.by_readout for row in result.tasks),
        f"{name} is damaged: 'headline' names a read-out that some task lacks",
    )
    refuse_if(
        result.complete and result.average.get(result.headline) is None,
        f"{name} is damaged: 'average' has no {result.headline!r}",
    )
    if wrong := _inconsistent(result):
        raise Refused(f"{name} is damaged: {wrong}")
    return result


def _damaged(name: str, error: ValidationError) -> Refused:
    """Say which part of a result is wrong."""
    first = error.errors()[0]
    part, *rest = [printable(str(word)) for word in first["loc"] if "[" not in str(word)]  # no kinds of lists
    why = uncapitalised(first["msg"])
    if part == "tasks" and rest:
        return Refused(f"task {int(rest[0]) + 1} of {name} is damaged: {'.'.join(rest[1:])}: {why}")
    return Refused(f"{name} is damaged: {part!r}: {why}")


def _inconsistent(result: Result) -> str | None:
    """Say which part of a result does not fit the others."""
    classes, learnt = len(result.classes), 0
    if len(result.counts) not in (0, classes):
        return f"it counts the images of {len(result.counts)} classes and names {classes}"
    for t, row in enumerate(result.tasks, 1):
        first, learnt = learnt, row.classes[1]
        if row.classes[0] != first or not first < learnt <= classes:
            return f"the classes of task {t} are {row.classes}, those before end at {first} of {classes}"
        for name, accuracy in row.by_readout.items():
            if len(accuracy.per_task) > t or len(accuracy.per_class) > learnt:
                return f"{name!r} has more figures than task {t} has tasks and classes"
        values = dict(row.diagnostics or {})
        matrix = [_columns(line) for line in values.get("confusion") or []]
        by_class = [values.get(name) or [] for name in PER_CLASS]
        if max(map(len, [*by_class, matrix])) > learnt or max(matrix, default=0) > learnt:
            return f"the diagnostics of task {t} tell of more than its {learnt} classes"
    return None


def _columns(line: list[int] | str) -> int:
    """The number of classes that a line of the confusion matrix needs."""
    if isinstance(line, str):
        return max(map(int, line.replace(":", " ").split()[::2]), default=-1) + 1
    return len(line)


def find(places: list[Path]) -> Iterator[Path]:
    """List every result.json at or below the places, in the order of their paths."""
    for place in places:
        refuse_if(not place.exists(), f"there is no run at {str(place)!r}")
        yield from [place] if place.is_file() else sorted(place.rglob("result.json"))
