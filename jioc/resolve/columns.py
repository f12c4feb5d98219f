"""The columns of tables: a data set, a backbone, a memory, and the settings of each row. No torch here."""

from collections.abc import Iterator
from dataclasses import dataclass

from jioc.config import Values
from jioc.resolve.pycil import METHODS


@dataclass(frozen=True)
class Column:
    """A column of a table: a data set, a backbone, a memory."""

    data: str
    backbone: str
    memory: int
    tail: bool = False

    def name(self, row: str) -> str:
        """cifar100-lt-resnet18-1000-icarl-none for the row icarl, …-icarl-jioc for icarl+jioc."""
        return f"{self.prefix}-{row.replace('+', '-') if '+' in row else f'{row}-none'}"

    @property
    def place(self) -> tuple[str, str, int, int]:
        """Data, backbone, tasks and memory, as the paper's tables have them."""
        return f"{self.data}{'-lt' if self.tail else ''}", self.backbone, self.tasks, self.memory

    @property
    def prefix(self) -> str:
        data, backbone, _, memory = self.place
        return f"{data}-{backbone}-{memory}"

    @property
    def tasks(self) -> int:
        return 5 if self.data == "cifar10" else 10

    def values(self, row: str) -> Values:
        """The settings of a row: a method, perhaps with + and the word of --coordinate, - and a reading."""
        method, _, words = row.partition("+")
        given = dict(zip(("coordinate", "reading"), words.split("-"), strict=False)) if words else {}
        tail = {"long_tail": "paper"} if self.tail else {}
        coordination = {"coordination": given} if given else {}
        values = {"method": method, "data": self.data, "backbone": self.backbone, "memory": self.memory}
        stem = {"stem": "imagenet"} if self.backbone == "resnet18" else {}  # the paper's: docs/decisions.md
        return values | {"tasks": self.tasks} | stem | tail | coordination

    def runs(self, rows: tuple[str, ...]) -> Iterator[tuple[str, Values]]:
        """Each row as published, and once more as PyCIL, which the paper uses, departs from it."""
        for row in rows:
            yield self.name(row), self.values(row)
            if row in METHODS and METHODS[row].options:
                yield f"{self.prefix}-{row}-pycil", self.values(row) | {"options": METHODS[row].options}


RES18_TAIL = Column("cifar100", "resnet18", 1000, tail=True)
RES18 = Column("cifar100", "resnet18", 1000)
RES18_LARGE = Column("cifar100", "resnet18", 2000)
RES32 = Column("cifar100", "resnet32", 1000)
RES32_TAIL = Column("cifar100", "resnet32", 1000, tail=True)
RES32_LARGE = Column("cifar100", "resnet32", 2000)
