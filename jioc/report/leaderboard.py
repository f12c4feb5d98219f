"""The leaderboard: our runs and the public figures, ranked among equals. No torch here.

A board is a protocol (data, tail, tasks, class order), an augmentation, a network, and the bytes of all
exemplars after the last task, which may be kept at half size. The public figures are in `public.json`, each
with its source; of the paper's, the best of each column of its tables is ranked. Runs judged by a hold-out
have no rank.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jioc.config import Values, make
from jioc.errors import refuse_if
from jioc.methods import SPECS
from jioc.nets import catalogue
from jioc.report import labels, notes, paper
from jioc.report.group import Group, collect, mean_std
from jioc.report.tables import Figure, Line, Sheet, number, seeds_figure
from jioc.resolve import recipes
from jioc.resolve.derive import resolve
from jioc.text import coordinated, counted

# data, long tail, tasks, class order, augmentation, network, bytes of the exemplars, whether at half size,
# the share of the training images that is left aside
Board = tuple[str, str | None, str, str, str, str, int, bool, float]
AUGMENTED = {
    "standard": "",
    "autoaugment": "AutoAugment",
    "autoaugment+cutout": "AutoAugment + Cutout",
    "resized-crop": "LT-CIL's crop",
    "none": "no augmentation at all",
}
MIXED = {"none": "", "mixup": "Mixup", "cutmix": "CutMix"}
OWN_HEADS = {"podnet": "proxies", "coil": "cosine", "bic": "corrected"}  # others have that of --head
ON_BOARD = {"order", "order_seed", "long_tail_order", "augment", "mix", "stem", "memory_bytes"}
HEAD_COLUMNS = ["average", "last", "forgetting", "parameters", "bytes of the model", "seconds"]


@dataclass(frozen=True)
class Row:
    """A row of a board: ours, or a public figure."""

    board: Board
    name: str
    source: str
    average: float | None
    figures: list[Figure]
    group: Group | None = None  # None: a public figure
    n: int | None = None


def boards(groups: list[Group]) -> list[Sheet]:
    """Rank the finished settings that were judged by test images, and the public figures of the same data."""
    judged = [g for g in groups if g.complete and not _by_holdout(g.config)]
    refuse_if(
        not judged, "none of these runs is finished and judged by test images, so there is nothing to rank"
    )
    public = [
        row for row in [*_public(), *_of_the_paper()] if any(row["data"] == g.config["data"] for g in judged)
    ]
    figure = {_board(row): row["figure"] for row in public}
    shared = {board: _shared(some) for board, some in collect((board_of(g), g) for g in judged).items()}
    rows = [_ours(g, figure, shared) for g in judged] + [_theirs(row) for row in public]
    rows.sort(key=lambda row: (row.group is None, -(row.average or 0)))
    ranked = sorted(
        collect((row.board, row) for row in rows).items(), key=lambda item: _public_first(item[1])
    )
    sheets = [
        _sheet(board, some, figure.get(board, "average"), shared.get(board, {})) for board, some in ranked
    ]
    sheets[-1].notes += [*_explained(len(groups) - len(judged)), *notes.provenance(judged)]
    return sheets


def _public_first(rows: list[Row]) -> tuple[bool, int]:
    """Boards with rows of ours and of others come first, those with the most of others before the rest."""
    public = sum(row.group is None for row in rows)
    return public in (0, len(rows)), -public


def _sheet(board: Board, rows: list[Row], figure: str, shared: Values) -> Sheet:
    ranked = sorted(rows, key=lambda e: -(e.average or 0))
    places = {id(e): 1 + sum((o.average or 0) > (e.average or 0) for o in ranked) for e in ranked}
    lines = [
        Line(e.group or Group([]), [str(places[id(e)]), e.name, e.source], e.n, e.figures) for e in ranked
    ]
    for line in lines:
        line.group.place = _title(board)
    kinds = {e.group is None for e in ranked}
    remarks = [_passed(ranked)] if len(kinds) == 2 else ["none of these is ours"] * (True in kinds)
    if shared:
        remarks.append(f"each of ours: {', '.join(labels.as_flags(shared))}")
    if figure == "task mean":
        remarks.append(
            "average: over the run, of the mean of all tasks' accuracies after each task (LT-CIL's); "
            "last: of all test images"
        )
    return Sheet(
        _title(board), ["rank", "method", "source"], HEAD_COLUMNS, lines, remarks, [], with_place=False
    )


def _passed(ranked: list[Row]) -> str:
    """Say which public figures our best row passes."""
    best = next(e for e in ranked if e.group is not None)
    public = [e for e in ranked if e.group is None]
    above = [f"{e.name} {e.average:.2f}" for e in public if (e.average or 0) >= (best.average or 0)]
    below = [f"{e.name} {e.average:.2f}" for e in public if (e.average or 0) < (best.average or 0)]
    passes, not_yet = ("; ".join(names) or "none" for names in (below, above))
    return (
        f"our best: {best.name}, {number(best.average)}, {counted(best.n or 0, 'seed')}. "
        f"Of the public figures it passes: {passes}. Not passed: {not_yet}"
    )


def _explained(left_out: int) -> list[str]:
    legend = [
        "accuracy in percent, mean ± standard deviation over n seeds; average: over the tasks, the first too",
        "parameters: of the network that answers after the last task, 4 bytes each",
        "seconds: of training and evaluating, often beside other runs on the same GPU",
        "only rows of one board have the same protocol, images, augmentation, network and bytes",
    ]
    return legend + [f"left out, unfinished or judged by a hold-out: {counted(left_out, 'setting')}"] * bool(
        left_out
    )


# --- ours ---


def _ours(g: Group, figure: dict[Board, str], shared: dict[Board, Values]) -> Row:
    result, board = g.complete[0].result, board_of(g)
    kinds = [figure.get(board, "average"), "last", "forgetting"]
    values = [g.figures(kind, result.headline) for kind in kinds]
    weights = parameters(g.config, [row.classes[1] - row.classes[0] for row in result.tasks], channels(g))
    seconds = [sum(row.seconds or 0 for row in run.result.tasks) for run in g.complete]
    commits = ", ".join(dict.fromkeys(run.commit for run in g.complete if run.commit))
    return Row(
        board,
        _full_name(g, shared[board]),
        f"ours, {commits or 'commit unknown'}",
        mean_std(values[0])[0],
        [*map(seeds_figure, values), *map(_whole, (weights, weights and 4 * weights, mean_std(seconds)[0]))],
        g,
        len(g.complete),
    )


def _shared(groups: list[Group]) -> Values:
    """The departures, not told by the board, that several of its settings all have."""
    first, *others = (labels.departures(g.config, g.spec) for g in groups)
    return {
        path: value
        for path, value in first.items()
        if others and path not in ON_BOARD and all(other.get(path) == value for other in others)
    }


def _full_name(g: Group, shared: Values) -> str:
    """Its name, and its other departures, without what the board tells or all on it share."""
    departing = labels.departures(g.config, g.spec)
    told = {path: value for path, value in departing.items() if path in ON_BOARD} | shared
    flags = [*g.name.split(", "), *labels.as_flags(departing)]
    return ", ".join(flag for flag in dict.fromkeys(flags) if flag not in labels.as_flags(told))


def board_of(g: Group) -> Board:
    """The board on which a setting stands."""
    c, result = g.config, g.complete[0].result
    departing = labels.departures(c, g.spec)
    tail = None if c.get("long_tail") is None else labels.show(c["long_tail"])
    if tail is not None and "long_tail_order" in departing:
        tail += f" ({departing['long_tail_order']} order)"
    if order := c.get("order"):
        as_named = order == "original" or list(order) in (sorted(order, key=str), [*range(len(order))])
        digest = hashlib.sha256(repr(order).encode()).hexdigest()[:4]
        ordered = "in their order" if as_named else f"in an order of their own ({digest})"
    else:
        seed = departing.get("order_seed")
        ordered = "" if seed is None else f"in the order of seed {seed}"
    words = [AUGMENTED.get(str(c.get("augment")), ""), MIXED.get(str(c.get("mix", "none")), "")]
    network = _network(c) + (", pretrained" if c.get("weights") else "")
    in_bytes = exemplar_bytes(g, sum(result.counts), len(result.classes))
    return (
        labels.data_name(g),
        tail,
        labels.tasks_of(g),
        ordered,
        " + ".join(word for word in words if word) or "none",
        network,
        in_bytes,
        c.get("exemplar_size") == "half" and in_bytes > 0,
        c.get("holdout") or 0.0,
    )


def _network(config: Values) -> str:
    stem = config.get("stem")
    return str(config.get("backbone")) + (f", stem {stem}" if stem not in (None, "cifar") else "")


def channels(g: Group) -> int:
    return len(dict(g.complete[0].result.data.model_extra or {}).get("mean") or (0, 0, 0))


def exemplar_bytes(g: Group, images: int, classes: int) -> int:
    """The bytes that the exemplars may take after the last task."""
    c, memory = g.config, g.spec.memory if g.spec else "exemplars"
    if memory == "exemplars" and c.get("memory_bytes"):
        return c["memory_bytes"]
    side = c.get("canvas") or c.get("image_size") or 1
    image = channels(g) * side * side // (4 if c.get("exemplar_size") == "half" else 1)
    kept = c["memory_per_class"] * classes if c.get("memory_per_class") else c.get("memory", 0)
    return image * {"none": 0, "all": images}.get(memory, kept)


def parameters(config: Values, sizes: list[int], channels: int) -> int | None:
    """Count the parameters of the network that answers after these tasks; None where that is not known."""
    method, name = str(config.get("method")), str(config.get("backbone"))
    if method not in SPECS or not SPECS[method].trains or name not in catalogue.BACKBONES:
        return None
    usual = catalogue.HEADS.get(str(config.get("head")), "linear")
    head, classes, form = OWN_HEADS.get(method, usual), sum(sizes), catalogue.BACKBONES[name]
    one = catalogue.parameters(name, str(config.get("stem")), channels, head in ("proxies", "cosine"))
    if one is None or isinstance(form, catalogue.Mobile):
        return None
    backbones = {"der": len(sizes), "foster": min(2, len(sizes))}.get(method, 1)
    width = backbones * form.widths[-1] * (4 if isinstance(form, catalogue.Shape) and form.bottleneck else 1)
    rows = {"proxies": 10 * classes * width + 1, "cosine": classes * width + 1}
    rows["scaled-cosine"] = classes * width
    rows["corrected"] = classes * (width + 1) + 2 * len(sizes)
    return backbones * one + rows.get(head, classes * (width + 1))


def _by_holdout(config: Values) -> bool:
    return bool(config.get("holdout")) and config.get("judge_by", "holdout") == "holdout"


def _whole(value: float | None) -> Figure:
    return Figure("–" if value is None else f"{value:,.0f}", {"": value})


# --- public figures ---


@cache
def _public() -> list[dict[str, Any]]:
    return json.loads((Path(__file__).parent / "public.json").read_text(encoding="utf-8"))["rows"]


@cache
def _of_the_paper() -> list[dict[str, Any]]:
    """The best figure of each column of the paper's tables 2 and 3, in the form of `public.json`."""
    rows = []
    for column in recipes.TABLE2 + recipes.TABLE3:
        config = resolve(make(**column.values("icarl"))).model_dump()
        cells = [(paper.average(where) or 0.0, table, where) for table, where in paper.printed_cells()]
        average, table, where = max(one for one in cells if one[2][:4] == column.place)
        rows.append(
            {
                "data": column.data,
                "tail": config["long_tail"],
                "tasks": counted(column.tasks, "task"),
                "order": "",
                "augment": "none",
                "network": _network(config),
                "bytes": 3 * (config["canvas"] or config["image_size"]) ** 2 * column.memory,
                "figure": "average",
                "method": coordinated(SPECS[where[4]].title, where[5]),
                "average": average,
                "std": None,
                "last": None,
                "source": f"the JIOC paper, table {table}",
            }
        )
    return rows


def _board(row: Values) -> Board:
    names = ("data", "tail", "tasks", "order", "augment", "network", "bytes")
    return *(row[name] for name in names), False, row.get("left_aside", 0.0)


def _theirs(row: Values) -> Row:
    spread = "" if row["std"] is None else f" ± {row['std']:.2f}"
    average = Figure(f"{row['average']:.2f}{spread}", {"": row["average"], " std": row["std"]})
    last = Figure("–" if row["last"] is None else f"{row['last']:.2f}", {"": row["last"], " std": None})
    none = Figure("–", {"": None, " std": None})
    others = [Figure("–", {"": None})] * 3
    return Row(_board(row), row["method"], row["source"], row["average"], [average, last, none, *others])


def _title(board: Board) -> str:
    data, tail, tasks, order, augment, network, in_bytes, half, left_aside = board
    words = [data, f"long tail {tail}" if tail else "", tasks, f"classes {order}" if order else ""]
    words += ["no extra augmentation" if augment == "none" else augment, network]
    words.append(f"{in_bytes:,} bytes of exemplars" + " at half size" * half)
    words.append(f"{100 * left_aside:g} % of the images left aside" if left_aside else "")
    return ", ".join(word for word in words if word)
