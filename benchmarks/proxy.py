"""A tiny proxy of the comparison: what every method learns in seconds on the digits, kept in results/proxy.json.

    python benchmarks/proxy.py            says what is learnt otherwise than was kept, and exits with 1
    python benchmarks/proxy.py --write    keeps what is learnt now

Every registered method, its form in PyCIL where that is another, and JIOC on each that keeps exemplars; two epochs a
task and one seed. Figures are the terms of the loss in the last epoch of each stage of the last task, in which all that
happened before has a part, and the average accuracies; so short a training gives poor ones. The arithmetic is float64:
in float32 another instruction set alone moved terms by a sixth and averages by five points, and would hide what a wrong
weight does.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from keep import put
from printing import answered

from jioc.events import Epoch, Event
from jioc.methods.specs import SPECS
from jioc.resolve.pycil import METHODS
from jioc.training.run import run

KEPT = Path(__file__).parent / "results" / "proxy.json"
TOLERANCE = 1e-6
"""Of a figure. Seen: 1e-12, between torch 2.6 and 2.13, one thread and two, code for AVX-512, AVX2 and SSE4."""
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
    """What each run has beside the settings, named as in the comparison."""
    found: dict[str, dict[str, Any]] = {}
    for name, spec in SPECS.items():
        found[f"{name}-none"] = {"method": name}
        if name in METHODS and METHODS[name].options:
            found[f"{name}-pycil"] = {"method": name, "options": METHODS[name].options}
        if spec.memory != "none":
            found[f"{name}-jioc"] = {"method": name, "coordination": {"coordinate": "jioc"}}
    return found


def learnt(name: str) -> tuple[Figures, dict[str, Any]]:
    """The run's figures, and its result."""
    terms: Figures = {}

    def tell(event: Event) -> None:
        if isinstance(event, Epoch) and event.task == len(SETTINGS["task_sizes"]):
            terms.update({f"{event.stage} {term}": value for term, value in event.terms.items()})

    with double():
        result = run(**SETTINGS, **rows()[name], callback=tell)
    averages = {
        f"average {readout}": value for readout, value in result["average"].items() if value is not None
    }
    return terms | averages, result


@contextmanager
def double() -> Iterator[None]:
    """Every tensor that would be float32 is float64, those that the package makes with `.float()` too."""
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


def apart(found: Figures, before: Figures) -> list[str]:
    """What is told otherwise than before, figure by figure."""
    return [
        f"{name} {found.get(name)} was {before.get(name)}"
        for name in dict.fromkeys([*before, *found])
        if name not in found or name not in before or not near(found[name], before[name])
    ]


def near(figure: float, before: float) -> bool:
    return abs(figure - before) <= TOLERANCE * abs(before)  # a figure that is none is near to nothing


def text(found: dict[str, Figures], result: dict[str, Any]) -> str:
    """The file: how it was made, and a line for each run."""
    ran = result["environment"]
    about = {
        "command": "python benchmarks/proxy.py --write",
        "commit": result["commit"],
        "machine": f"{ran['device']} ({torch.backends.cpu.get_cpu_capability()}), torch {ran['torch']}, float64",
        "settings": SETTINGS,
    }
    lines = [f" {json.dumps(name)}: {json.dumps(figures)}" for name, figures in found.items()]
    heads = [f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items()]
    return "{\n" + "".join(heads) + '"figures": {\n' + ",\n".join(lines) + "\n}\n}\n"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    keep, found, otherwise = parser.parse_args(words).write, dict[str, Figures](), list[str]()
    torch.set_num_threads(1)

    def work() -> None:
        before = kept() if KEPT.exists() else {}
        for name in rows():
            figures, result = learnt(name)
            found[name] = {figure: float(f"{value:.9g}") for figure, value in figures.items()}
            otherwise.extend(f"{name}: {told}" for told in apart(found[name], before.get(name, {})))
        otherwise.extend(f"{name}: no longer there" for name in before if name not in found)
        print("\n".join(otherwise) or "nothing is learnt otherwise than was kept")
        if keep:
            put(KEPT, text(found, result))

    return answered(work) or int(bool(otherwise) and not keep)


if __name__ == "__main__":
    sys.exit(main())
