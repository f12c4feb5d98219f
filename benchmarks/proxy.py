"""A tiny proxy of the comparison: figures of every method after seconds on the digits, in results/proxy.json.

    python benchmarks/proxy.py            print the figures that have changed, and exit with 1
    python benchmarks/proxy.py --write    write the figures of today

Every registered method, its form in PyCIL if that differs, and JIOC by default and as printed on each that
keeps exemplars; two epochs a task and one seed. The figures are the terms of the loss in the last epoch of
each stage of the last task, which depend on all that happened before, and the average accuracies; so short a
training gives poor ones. The arithmetic is float64: in float32 another instruction set alone moved terms by a
sixth and averages by five points, which would hide a wrong weight.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import printing
import torch
from keep import put

from jioc.events import Epoch, Event
from jioc.methods import SPECS
from jioc.resolve.pycil import METHODS
from jioc.results import Result
from jioc.training.run import run

KEPT = Path(__file__).parent / "results" / "proxy.json"
TOLERANCE = 1e-6
"""Of a figure. Seen: 1e-12, between torch 2.6 and 2.13, one thread and two, AVX-512, AVX2 and SSE4."""
SETTINGS: dict[str, Any] = {
    "data": "digits",
    "task_sizes": [4, 3, 3],
    "long_tail": 20,
    "holdout": 0.2,
    "memory": 60,
    "batch_size": 32,
    "first": {"epochs": 1},
    "later": {"epochs": 2},
    "device": "cpu",
}
Figures = dict[str, float]


def rows() -> dict[str, dict[str, Any]]:
    """The further settings of each run, named as in the comparison."""
    settings: dict[str, dict[str, Any]] = {}
    for name, spec in SPECS.items():
        settings[f"{name}-none"] = {"method": name}
        if name in METHODS and METHODS[name].options:
            settings[f"{name}-pycil"] = {"method": name, "options": METHODS[name].options}
        if spec.memory != "none":
            for row, reading in (("jioc", {}), ("jioc-printed", {"reading": "printed"})):
                settings[f"{name}-{row}"] = {"method": name, "coordination": {"coordinate": "jioc"} | reading}
    return settings


def learnt(name: str) -> tuple[Figures, Result]:
    """Run it; return its figures and its result."""
    terms: Figures = {}

    def tell(event: Event) -> None:
        if isinstance(event, Epoch) and event.task == len(SETTINGS["task_sizes"]):
            terms.update({f"{event.stage} {term}": value for term, value in event.terms.items()})

    with double():
        result = run(**SETTINGS, **rows()[name], callback=tell)
    averages = {f"average {readout}": value for readout, value in result.average.items() if value is not None}
    return terms | averages, result


@contextmanager
def double() -> Iterator[None]:
    """Make every tensor float64 that would be float32, also those that the package makes with `.float()`."""
    single = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.Tensor.float = single  # type: ignore[method-assign]
        torch.set_default_dtype(torch.float32)


def kept() -> dict[str, Figures]:
    return json.loads(KEPT.read_text(encoding="utf-8"))["figures"]


def apart(now: Figures, before: Figures) -> list[str]:
    """List the figures that have changed."""
    return [
        f"{name} {now.get(name)} was {before.get(name)}"
        for name in dict.fromkeys([*before, *now])
        if name not in now or name not in before or not near(now[name], before[name])
    ]


def near(figure: float, before: float) -> bool:
    return abs(figure - before) <= TOLERANCE * abs(before)  # NaN is near to nothing


def text(runs: dict[str, Figures], result: Result) -> str:
    """The file: how it was made, and a line for each run."""
    device = f"{result.environment.device} ({torch.backends.cpu.get_cpu_capability()})"
    about = {
        "command": "python benchmarks/proxy.py --write",
        "commit": result.commit,
        "machine": f"{device}, torch {result.environment.torch}, float64",
        "settings": SETTINGS,
    }
    lines = [f" {json.dumps(name)}: {json.dumps(figures)}" for name, figures in runs.items()]
    heads = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items()]
    return "{\n" + "".join(heads) + '"figures": {\n' + ",\n".join(lines) + "\n}\n}\n"


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--write", action="store_true")
    write, runs, changes = parser.parse_args(argv).write, dict[str, Figures](), list[str]()
    torch.set_num_threads(1)

    def work() -> None:
        before = kept() if KEPT.exists() else {}
        for name in rows():
            figures, result = learnt(name)
            runs[name] = {figure: float(f"{value:.9g}") for figure, value in figures.items()}
            changes.extend(f"{name}: {change}" for change in apart(runs[name], before.get(name, {})))
        changes.extend(f"{name}: no longer there" for name in before if name not in runs)
        print("\n".join(changes) or "no figure has changed")
        if write:
            put(KEPT, text(runs, result))

    return printing.answered(work) or int(bool(changes) and not write)


if __name__ == "__main__":
    sys.exit(main())
