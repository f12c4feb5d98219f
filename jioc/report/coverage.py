"""How much of tables 2 and 3 was run: both in the paper's layout, ours beside every cell."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from jioc.config import index
from jioc.methods import SPECS
from jioc.report import labels, notes, paper
from jioc.report.group import Group, mean_std
from jioc.report.tables import cell, number
from jioc.text import coordinated, counted

NEAR = 2.0  # points: so far from the paper's figure is near it
DEFAULT, PRINTED, IN_PYCIL = "", "as printed", "as in PyCIL"  # forms of a row that may stand in one cell
FIELDS = [*("table", "data", "backbone", "tasks", "memory", "method", "coordinate", "form"), "paper", "n"]
FIELDS += ["average", "std", "difference", "gain", "paper's gain"]


@dataclass
class Cell:
    """A cell of the paper's tables, and ours: one group for each form in which the row was run."""

    table: int
    where: paper.Setting
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def theirs(self) -> float:
        figure = paper.average(self.where)
        assert figure is not None, "the tables have it"
        return figure

    def ours(self, form: str = DEFAULT) -> list[float]:
        """The averages of the seeds, by the read-out of which the method is judged."""
        g = self.groups.get(form)
        return g.figures("average", g.complete[0].result.headline) if g else []

    def difference(self, form: str = DEFAULT) -> float | None:
        mean = mean_std(self.ours(form))[0]
        return None if mean is None else mean - self.theirs

    def gains(self, form: str = DEFAULT) -> list[float]:
        """What coordination adds, for each seed that has both."""
        g = self.groups.get(form)
        return g.gains(g.complete[0].result.headline) if g else []


@dataclass(frozen=True)
class Block:
    """A table of a data set and a backbone: the paper's columns differ in the number of exemplars."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    words: int = 1
    blocks: tuple[int, ...] = ()


def cells(groups: Iterable[Group]) -> list[Cell]:
    """Put the finished groups into the cells of tables 2 and 3; of several, the one with most seeds."""
    tables = [Cell(table, where) for table, where in paper.printed_cells()]
    by_setting = {one.where: one for one in tables}
    for g in groups:
        where, form = cell(g), form_of(g)
        if not g.complete or where not in by_setting or form is None:
            continue
        taken = by_setting[where].groups
        if form not in taken or len(taken[form].complete) < len(g.complete):
            taken[form] = g
    return tables


def form_of(g: Group) -> str | None:
    """The form of a row: by default, as printed, or as in PyCIL; None for another reading of the paper."""
    anyway = (*index.grouped("seeds", "step"), *index.MACHINE, "stem")
    changes = {path: v for path, v in labels.departures(g.config, g.spec).items() if path not in anyway}
    if not changes:
        return DEFAULT
    if changes == {"coordination.reading": "printed"}:
        return PRINTED
    return IN_PYCIL if all(path.startswith("options.") for path in changes) else None


def summary(tables: list[Cell]) -> str:
    """Say in a line how many cells were run, are near the paper's, and gain as the paper says.

    A cell of which the default was not run counts as printed.
    """
    forms = [(one, DEFAULT if one.ours() else PRINTED) for one in tables]
    run = [(one, form) for one, form in forms if one.ours(form)]
    near = sum(abs(one.difference(form) or 0.0) <= NEAR for one, form in run)
    line = f"{_where(tables, [one for one, _ in run])}; {near} within {NEAR:g} points of the paper"
    gains = [
        (one.where[4], mean_std(one.gains(form))[0] or 0.0, paper.gain(one.where) or 0.0)
        for one, form in run
        if one.gains(form)
    ]
    if not gains:
        return line
    signs = {host: [ours * theirs > 0 for of, ours, theirs in gains if of == host] for host, *_ in gains}
    right = [one for some in signs.values() for one in some]
    by_host = ", ".join(f"{SPECS[host].title} {sum(some)} of {len(some)}" for host, some in signs.items())
    ours, theirs = (number(sum(some) / len(gains), "+") for some in list(zip(*gains, strict=True))[1:])
    printed = sum(form == PRINTED for _, form in run)
    how = f"; {printed} of these {len(gains)} are by its formulas as printed" if printed else ""
    return (
        f"{line}; in {sum(right)} of the {len(gains)} with JIOC the gain has the paper's sign ({by_host}), "
        f"and on average it is {ours}, the paper's {theirs}{how}"
    )


def _where(tables: list[Cell], run: list[Cell]) -> str:
    """How many cells were run, of those on CIFAR and of the others."""

    def on_cifar(some: list[Cell]) -> int:
        return sum(one.where[0].startswith("cifar") for one in some)

    here, of = on_cifar(run), on_cifar(tables)
    elsewhere, others = len(run) - here, len(tables) - of
    share = f"all {of}" if here == of else f"{here} of the {of}"
    return f"{share} cells on CIFAR are run and {elsewhere or 'none'} of the {others} others"


def remarks(tables: list[Cell]) -> list[str]:
    """Everything that stands below the tables."""
    groups = [g for one in tables for g in one.groups.values()]
    forms = {form for one in tables for form in one.groups}
    legend = [
        "paper: its average accuracy in percent; ours: the mean over n seeds",
        "difference (diff): ours minus the paper's",
        *["as printed: JIOC by --reading printed, beside the default"] * (PRINTED in forms),
        *["as in PyCIL: the method as PyCIL codes it, where that is not as published"] * (IN_PYCIL in forms),
    ]
    return [summary(tables), *legend, *notes.provenance(groups)]


def layout(tables: list[Cell], wide: bool) -> list[Block]:
    """Arrange the cells as the paper does, in blocks of at most two columns that fit a terminal.

    `wide`: each column's head tells its number of exemplars; else the title tells both.
    """
    blocks = []
    for (table, data, backbone, tasks), some in itertools.groupby(
        sorted(tables, key=lambda one: _block(tables, one)), key=_columns_of
    ):
        members = list(some)
        memories = list(dict.fromkeys(one.where[3] for one in members))
        title = f"table {table}: {data}, {backbone}, {counted(tasks, 'task')}"
        shown = [f"{memory:,}" for memory in memories]
        if not wide:
            title += f"; {shown[0]} exemplars" + "".join(f", then {one}" for one in shown[1:])
        heads = [""]
        for memory in shown:
            heads += (
                [f"{memory}: paper", "ours", "difference", "n"] if wide else ["paper", "ours", "diff", "n"]
            )
        blocks.append(Block(title, heads, _rows(members, memories)))
    return blocks


def _columns_of(one: Cell) -> tuple[int, str, str, int]:
    """What the columns of a block share."""
    return one.table, *one.where[:3]


def _block(tables: list[Cell], one: Cell) -> int:
    """Where the block of a cell stands in the paper."""
    return next(i for i, other in enumerate(tables) if _columns_of(other) == _columns_of(one))


def _rows(members: list[Cell], memories: list[int]) -> list[list[str]]:
    """A row for each of the paper's, and below it one for each other form that was run."""
    rows = []
    for (method, word), some in itertools.groupby(members, key=lambda one: one.where[4:]):
        by_memory = {one.where[3]: one for one in some}
        forms = [form for form in (PRINTED, IN_PYCIL) if any(form in c.groups for c in by_memory.values())]
        for form in (DEFAULT, *forms):
            row = [f"– {form}" if form else coordinated(SPECS[method].title, word)]
            for memory in memories:
                row += _figures(by_memory[memory], form)
            rows.append(row)
    return rows


def _figures(one: Cell, form: str) -> list[str]:
    values = one.ours(form)
    if not values:
        return ["", "", "", ""] if form else [number(one.theirs), "not run", "–", "–"]
    ours = [number(mean_std(values)[0]), number(one.difference(form), "+"), str(len(values))]
    return ["" if form else number(one.theirs), *ours]


def fields(tables: list[Cell]) -> list[list[str | float | int | None]]:
    """A line for each cell and form, unrounded, under the heads of FIELDS."""
    lines: list[list[str | float | int | None]] = []
    for one in tables:
        for form in dict.fromkeys((DEFAULT, *one.groups)):
            (mean, std), gain = mean_std(one.ours(form)), mean_std(one.gains(form))[0]
            ours = [len(one.ours(form)), mean, std, one.difference(form), gain, paper.gain(one.where)]
            lines.append([one.table, *one.where, form, one.theirs, *ours])
    return lines
