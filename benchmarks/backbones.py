"""The cost of a step of DER against the number of its backbones, and of FOSTER, which keeps two at most.

    python benchmarks/backbones.py [--backbone resnet32] [--counts 1 2 5 10 20] [--json FILE]

A network grows through twenty tasks of five classes as a run's would, without training; at each count the
task that made it so is trained for a few epochs by the product's own `fit`, on random images of CIFAR's size.
The frozen backbones run one by one, as the product has them (on a GPU in three branches of the step's graph),
and all in one batched pass: their weights stacked, `torch.func.vmap` over them, so that a convolution of each
becomes one grouped convolution.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from speed import about, made
from torch import Tensor, nn

from jioc.config import Config
from jioc.config import values as settings
from jioc.data.loader import Sampler
from jioc.device.compile import maybe_compiled
from jioc.device.streams import SideStream
from jioc.errors import Refused, exit_status
from jioc.events import Epoch, Event
from jioc.methods.base import Method
from jioc.nets.incremental import Backbone, ExpandingNet, Net
from jioc.resolve.derive import resolve
from jioc.training.preflight import preflight
from jioc.training.runner import Run
from jioc.types import Task

TASKS = 20
Stacked = tuple[dict[str, Tensor], dict[str, Tensor]]  # parameters and buffers of all, one more axis in front
_stacked: dict[tuple[int, ...], Stacked] = {}


def together(frozen: list[Backbone], x: Tensor) -> list[Tensor]:
    """The features of each frozen backbone, all computed in one batched pass."""
    if len(frozen) < 2:
        return [part(x)[0] for part in frozen]
    key = tuple(map(id, frozen))
    if key not in _stacked:  # frozen: their weights stay as they are
        _stacked.clear()
        _stacked[key] = torch.func.stack_module_state([*frozen])
    return list(maybe_compiled(_batched, len(x))(frozen[0], *_stacked[key], x))


def _batched(one: nn.Module, parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
    def features(p: dict[str, Tensor], b: dict[str, Tensor]) -> Tensor:
        out: tuple[Tensor, list[Tensor]] = torch.func.functional_call(one, (p, b), (x,))
        return out[0]

    found: Tensor = torch.func.vmap(features)(parameters, buffers)
    return found


@contextmanager
def frozen_by(way: Callable[[list[Backbone], Tensor], list[Tensor]] | None) -> Iterator[None]:
    """Within, let a network of many backbones run its frozen ones in this way; None: as it does."""
    usual = ExpandingNet.frozen_features

    def in_a_branch(
        net: ExpandingNet, frozen: list[Backbone], x: Tensor
    ) -> tuple[list[Tensor], list[SideStream]]:
        assert way is not None
        branch = SideStream(x.device, 1)
        with branch:
            return way(frozen, x), [branch]

    if way is not None:
        ExpandingNet.frozen_features = in_a_branch  # type: ignore[method-assign]
    try:
        yield
    finally:
        ExpandingNet.frozen_features = usual  # type: ignore[method-assign]
        _stacked.clear()


def chosen(args: argparse.Namespace, method: str) -> Config:
    stages = {stage: {"epochs": args.epochs} for stage in ("first", "later")}
    second: dict[str, Any] = {"second": {"epochs": args.epochs}} if method == "foster" else {}
    return resolve(
        settings.make(
            method=method, data="cifar100", tasks=TASKS, backbone=args.backbone, device=args.device,
            memory=500, **stages, **second,
        )
    )  # fmt: skip


def steps_of(args: argparse.Namespace, method: str, backbones: int) -> dict[str, float]:
    """Milliseconds of a step of the task that brings the network to so many backbones, by stage."""
    epochs: list[Epoch] = []

    def tell(event: Event) -> None:
        if isinstance(event, Epoch):
            epochs.append(event)

    run = Run(preflight(chosen(args, method), made(args.each)), callback=tell)

    def features(net: Net, index: Tensor, as_trained: bool = False) -> Tensor:
        return F.normalize(torch.rand(len(index), net.width), dim=1).to(run.device)

    def no_fit(method: Method, task: Task, sampler: Sampler, **how: Any) -> None:
        pass

    run.method.memory.select = "first"
    for t in range(backbones):
        task, data = run.arrival(t)
        fit = run.engine.fit if t == backbones - 1 else no_fit
        run.method.learn(task, replace(data, features=features), fit)
    speeds: dict[str, list[float]] = {}
    for epoch in epochs:
        if epoch.epoch > 1:
            speeds.setdefault(epoch.stage, []).append(epoch.images_per_second)
    batch = run.config.batch_size or 128
    return {stage: 1000 * batch / statistics.median(found) for stage, found in speeds.items()}


def measure(args: argparse.Namespace) -> None:
    if args.epochs < 2:
        raise Refused(f"--epochs: {args.epochs} is refused: the first is not timed, so it takes two")
    if not all(1 <= count <= TASKS for count in args.counts):
        raise Refused(f"--counts: a network has from 1 to {TASKS} backbones")
    if args.json and not args.json.parent.is_dir():
        raise Refused(f"--json: there is no folder {str(args.json.parent)!r}")
    ways = {"one by one": None, "one batched pass": together}
    rows: list[dict[str, Any]] = []
    print(f"{'':8} {'backbones':>9} {'frozen ones':18} milliseconds a step")
    for method in args.methods:
        for name, way in ways.items():  # what takes long to compile comes last
            for count in args.counts if method == "der" else [c for c in args.counts if c <= 2]:
                if count < 3 and way is not None:
                    continue  # nothing to batch
                try:
                    with frozen_by(way):
                        found = steps_of(args, method, count)
                except RuntimeError as error:  # one way that fails leaves the others
                    print(f"{method:8} {count:9} {name:18} failed: {str(error).splitlines()[0][:90]}")
                    continue
                rows.append({"method": method, "backbones": count, "frozen": name, "milliseconds": found})
                stages = ", ".join(f"{stage} {ms:.2f}" for stage, ms in found.items())
                print(f"{method:8} {count:9} {name:18} {stages}", flush=True)
                if args.json:
                    content = about(args) | {"rows": rows}
                    args.json.write_text(json.dumps(content, indent=1) + "\n")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cuda = torch.cuda.is_available()
    parser.add_argument("--backbone", default="resnet32")
    parser.add_argument("--stem", default="cifar", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--methods", nargs="*", default=["der", "foster"], choices=["der", "foster"])
    parser.add_argument("--counts", type=int, nargs="*", default=[1, 2, 5, 10, 20])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--each", type=int, default=500 if cuda else 10, help="images of a class")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(words)
    return exit_status(lambda: measure(args))


if __name__ == "__main__":
    sys.exit(main())
