"""Estimate the GPU minutes of the columns of tables 2 and 3, and of the studies of components.

    python benchmarks/minutes.py                a line for each CIFAR column: images, minutes, the command
    python benchmarks/minutes.py --elsewhere    a line for each row of the columns whose files are not here
    python benchmarks/minutes.py --components   a line for each run of the studies: ten tasks, the first six

An estimate is a count of images over a rate. ResNet32's rate is measured; ResNet18's, and that of images
larger than 32 pixels, is extrapolated (`RATES` says how). New images are shared by the tasks as classes are,
and exemplars fill the memory. A pass is forward through one backbone, an update three, so that a step with a
teacher has four; the rate is of such steps, of several runs on one NVIDIA H200, starts included. What
augmentation, mixtures and averages cost is not counted.
"""

import sys

import printing

from jioc.config import Config, make
from jioc.data.catalogue import DATASETS, Entry
from jioc.data.scenario import tail_counts, task_sizes
from jioc.errors import refuse_unknown
from jioc.methods import SPECS
from jioc.resolve import columns, recipes
from jioc.resolve.derive import resolve
from jioc.text import coordinated
from jioc.training.build import exemplar_bytes

STEP = 4  # passes of an image in a step with a teacher
RATES = {"resnet32": 181_000, "resnet18": 365_000}
"""Images a second at 32 pixels. ResNet32: measured (docs/performance.md, fifteen runs in three processes),
0.925 of what speed.py measures with six packed. ResNet18 with ImageNet's stem: extrapolated, the same share
of the 395,201 that speed.py measures with six packed. Larger images: extrapolated by their pixels, which is
too slow where small ones do not fill the card."""


def steps(config: Config, stop_after: int | None = None) -> float:
    """Count the images of a run, or of its first tasks, in steps with a teacher."""
    entry, method, memory = entry_of(config), config.method, config.memory
    if config.memory_bytes is not None:
        memory = config.memory_bytes // exemplar_bytes(config, (3, entry.size or 32, entry.size or 32))
    assert entry.images is not None
    each = [entry.images[0] // entry.classes] * entry.classes
    images = sum(tail_counts(each, config.long_tail, entry.name) if config.long_tail else each)
    images = round(images * (1 - config.holdout))
    classes = sizes(config)
    new = [images * size / entry.classes for size in classes]
    head = config.rebalance_epochs or 0  # forward through each backbone; a balanced first task has none
    passes = new[0] * (3.0 * (config.first.epochs or 0) + (head if config.long_tail else 0))
    for t in range(1, min(len(new), stop_after or len(new))):
        room = sum(classes[:t]) * config.memory_per_class if config.memory_per_class else memory
        kept = min(room, sum(new[:t]))
        trained = new[t] + kept
        passes += trained * (config.later.epochs or 0) * (STEP + EXTRA.get(method, 0.0))
        if method == "der":  # every earlier backbone runs, frozen, in the place of a teacher
            passes += trained * (config.later.epochs or 0) * (t - 1)
        passes += trained * head * (t + 1 if method == "der" else 1)
        if config.second and method in SECOND:
            share = trained if SECOND[method] == "all" else kept
            passes += share * (config.second.epochs or 0) * SECOND_PASSES[method]
    return passes / STEP


def sizes(config: Config) -> tuple[int, ...]:
    """The classes of each task."""
    entry = entry_of(config)
    return task_sizes(entry.classes, entry.tasks, config)


def entry_of(config: Config) -> Entry:
    """The data set of a run; refuse one whose images, or a network whose rate, is not known here."""
    refuse_unknown("backbone for an estimate", str(config.backbone), RATES)
    known = {name: entry for name, entry in DATASETS.items() if entry.images is not None}
    refuse_unknown("data set for an estimate", config.data, known)
    return known[config.data]


EXTRA = {"coil": 2.0}  # passes more an image: the class means that it transports back from
SECOND = {"foster": "all", "podnet": "memory"}  # second stages, by what they train on; BiC's is a few images
SECOND_PASSES = {"foster": 5.0, "podnet": 4.0}


def minutes(config: Config, stop_after: int | None = None) -> float:
    size = DATASETS[config.data].size or 32
    return steps(config, stop_after) * (size / 32) ** 2 / RATES[str(config.backbone)] / 60


def jobs(column: columns.Column, seed: int = 1) -> dict[str, Config]:
    """The ten rows of a column."""
    return {row: resolve(make(**column.values(row), seed=seed)) for row in recipes.HOSTS}


def cifar() -> str:
    """The CIFAR columns as the tables have them, each with its minutes and its command."""
    lines = [["column", "million images", "minutes", "command"], ["---", "---:", "---:", "---"]]
    for column, rows, seed in WANTED:
        configs = [config for row, config in jobs(column, seed).items() if row in rows]
        name, command = column.prefix, f"jioc grid columns --only {column.prefix} --seeds {seed}"
        if rows != recipes.HOSTS:
            name += f", three pairs, seed {seed}"
            words = " ".join(f'"{column.prefix}-{host}-*"' for host in PAIRS)
            command = f"jioc grid columns --only {words} --seeds {seed}"
        figures = [sum(map(steps, configs)) / 1e6, sum(map(minutes, configs))]
        lines.append([name, *(f"{one:.0f}" for one in figures), f"`{command}`"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PAIRS = ("icarl", "der", "foster")  # the hosts that the paper puts JIOC on
THRICE = [
    columns.RES32_TAIL,
    columns.RES32_LARGE,
    columns.RES18_TAIL,
    columns.RES18_LARGE,
]  # with three seeds
PAIRED_ROWS = tuple(f"{host}{word}" for host in PAIRS for word in ("", "+jioc"))
WANTED = [(column, recipes.HOSTS, 1) for column in recipes.CIFAR]
WANTED += [(column, PAIRED_ROWS, seed) for column in THRICE for seed in (2, 3)]


def elsewhere() -> str:
    """A line for each row of each column that is not CIFAR's, with its minutes."""
    lines = []
    for data in dict.fromkeys(column.data for column in recipes.TABLE3 if column not in recipes.CIFAR):
        for row in recipes.HOSTS:
            ours = [column for column in recipes.TABLE3 if column.data == data]
            spent = sum(minutes(jobs(column)[row]) for column in ours)
            name = ours[0].name(row).replace(f"-{ours[0].memory}-", "-*-")
            method, _, word = row.partition("+")
            title = coordinated(SPECS[method].title, word or "none")
            command = f'jioc grid table3 --only "{name}" --seeds 1 --data-dir DIR'
            memories = " and ".join(f"{column.memory:,}" for column in ours)
            lines.append((command, f"{title}, {memories} exemplars: {spent:.0f} min"))
    width = max(len(command) for command, _ in lines)
    return "\n".join(["```", *(f"{command:{width}}  # {about}" for command, about in lines), "```"])


FEWER = 6  # tasks of a first look, `--stop-after 6`


def components() -> str:
    """A line for each run of the two studies of components, and one for each study."""
    heads = ["run", "million images", "minutes", f"minutes, {FEWER} tasks"]
    lines = [heads, ["---"] + ["---:"] * 3]
    for name in ("components", "components-long-tail"):
        configs = {run: resolve(make(**values)) for run, values in recipes.find_recipe(name).make().items()}
        rows = {run: (steps(c) / 1e6, minutes(c), minutes(c, FEWER)) for run, c in configs.items()}
        rows[f"all {len(rows)} of {name}"] = tuple(map(sum, zip(*rows.values(), strict=True)))
        lines += [[run, *(f"{one:.1f}" for one in row)] for run, row in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--elsewhere", dest="chosen", action="store_const", const=elsewhere, default=cifar)
    which.add_argument("--components", dest="chosen", action="store_const", const=components)
    chosen = parser.parse_args(argv).chosen
    return printing.answered(lambda: print(chosen()))


if __name__ == "__main__":
    sys.exit(main())
