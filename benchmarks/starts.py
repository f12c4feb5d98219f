"""What a process takes until it trains, the first time and again: two fresh processes with one empty cache.

    python benchmarks/speed.py --second-start [--backbone resnet18] [--stem imagenet] [--json FILE]

A process trains a few epochs of the second task (`speed.ours`). Its set-up is what the first epoch takes
beyond a usual one: compilation, warm-up, capture. The parts of it that are named overlap: kernels of ours
are compiled, and backbones traced, while a graph is warmed up.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

MOST, SECONDS = 1 / 3, 8.0  # of the first set-up, and at all: what a second one may take


def both_starts(argv: list[str]) -> dict[str, Any]:
    """Run two processes, one after the other, and compare their set-up."""
    with tempfile.TemporaryDirectory() as scratch:
        found_first = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, found_first))
        env = {**os.environ, "JIOC_CACHE": scratch, "PYTHONPATH": path}
        for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
            env.pop(name, None)
        found = [start(argv, env) for _ in range(2)]
        kept = sum(f.stat().st_size for f in Path(scratch).rglob("*") if f.is_file())
    first, second = (one["set_up"] for one in found)
    for name, one in zip(("first", "second"), found, strict=True):
        parts = ", ".join(f"{part} {s:.1f}" for part, s in one["parts"].items())
        print(f"{name:7} process: set-up {one['set_up']:6.1f} s of {one['process']:6.1f} s  ({parts})")
    print(f"second / first: {second / first:.2f}, {kept / 2**20:.0f} MiB kept")
    good = second <= MOST * first and second <= SECONDS
    print(f"at most {MOST:.2f} of the first and {SECONDS:g} s: {'yes' if good else 'no'}")
    return {"first": found[0], "second": found[1], "ratio": second / first, "kept_bytes": kept}


def start(argv: list[str], env: dict[str, str]) -> dict[str, Any]:
    """Run one process and read what it prints."""
    began = time.perf_counter()
    command = [sys.executable, str(Path(__file__).with_name("speed.py")), *argv, "--one-start"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return {**json.loads(done.stdout.splitlines()[-1]), "process": time.perf_counter() - began}


def one_start(alone: Callable[..., tuple[float, float]], args: argparse.Namespace, data: Any) -> None:
    """In a fresh process: train, and print the set-up and its parts as JSON."""
    parts: dict[str, float] = defaultdict(float)

    def timed(owner: Any, name: str, part: str) -> None:
        work = getattr(owner, name)

        def wrapped(*given: Any, **words: Any) -> Any:
            began = time.perf_counter()
            try:
                return work(*given, **words)
            finally:
                parts[part] += time.perf_counter() - began

        setattr(owner, name, wrapped)

    from jioc.training.execution import GraphSteps

    timed(GraphSteps, "_captured", "warm-up and capture")
    if args.device.startswith("cuda"):
        from jioc.nets.fused import run

        timed(run, "compile_ahead", "our kernels")
    _, up = alone(data, args, compile=True)
    from torch._dynamo.utils import compilation_time_metrics as spent

    for name, seconds in sorted(spent.items(), key=lambda item: -sum(item[1]))[:4]:
        parts[name] += sum(seconds)
    print(json.dumps({"set_up": up, "torch": torch.__version__, "parts": dict(parts)}))
