"""What bounds a step's kernels, by the hardware's counters: Nsight Compute over student and teacher.

    python benchmarks/counters.py [--backbone resnet32] [--stem cifar] [--json FILE]

Runs the forward pass of a teacher and both passes of a student once, kernel by kernel, under `ncu`. For each
unit of the card it adds up the time that its traffic takes at its peak rate: as long as one unit's sum is
near the clock of a packed step, no order of these kernels can be faster, only kernels that use it less.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from jioc.errors import Failed, Refused, exit_status
from jioc.nets import fused
from jioc.nets.incremental import build
from jioc.training.execution import commit

BATCH = 128
TIME = "gpu__time_duration.sum"
BYTES = {"memory": "dram__bytes.sum", "L2 cache": "lts__t_bytes.sum"}
UNITS = {  # how busy each was, in percent of its peak, while a kernel ran
    "memory": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "L2 cache": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L1 and shared memory": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "multiprocessor": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
}
SCALES = {"%": 1.0, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
SCALES |= {"ns": 1.0, "us": 1e3, "ms": 1e6, "nsecond": 1.0, "usecond": 1e3, "msecond": 1e6}


def work(args: argparse.Namespace) -> None:
    """One step of student and teacher between the profiler's start and stop, after two that warm up."""
    device, g = torch.device("cuda"), torch.Generator().manual_seed(0)
    fused.POOLING = True
    from jioc.nets.fused.run import run

    plan = {"backbone": args.backbone, "stem": args.stem, "channels": 3, "cosine": False, "maps": False}
    net = build(plan | {"head": "linear", "sizes": []}, g).to(device)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    student = net.backbone
    teacher = net.frozen_copy().backbone
    student.train()
    x = torch.randn(BATCH, 3, 32, 32, device=device)
    for i in range(3):
        torch.cuda.synchronize()
        if i == 2:
            torch.cuda.cudart().cudaProfilerStart()
        with torch.no_grad():
            run(teacher, x)
        run(student, x)[0].sum().backward()
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def measured(args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each kernel: its name, nanoseconds, bytes, and how busy each unit was."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise Refused("Nsight Compute (ncu) is not on the PATH")
    words = [sys.executable, __file__, "--work", "--backbone", args.backbone, "--stem", args.stem]
    metrics = ",".join([TIME, *BYTES.values(), *UNITS.values()])
    profile = ["--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none"]
    profile += ["--target-processes", "application-only"]  # not those that compile
    subprocess.run(words, check=True)  # so that kernels are compiled before
    done = subprocess.run(
        [ncu, *profile, "--csv", "--page", "raw", "--metrics", metrics, *words],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Failed("ncu failed: " + (done.stdout + done.stderr).strip()[-500:])
    return parsed(done.stdout)


def parsed(text: str) -> list[dict[str, Any]]:
    """Read ncu's csv: a head, a line of units, a line for each kernel; lines of ncu's own come before."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    table = [*csv.reader(lines)]
    if len(table) < 3:
        raise Failed("ncu saw no kernel")
    head, units, *rows = table
    at = {name: head.index(name) for name in (TIME, *BYTES.values(), *UNITS.values()) if name in head}
    if unknown := {units[i] for i in at.values()} - {*SCALES}:
        raise Failed(f"ncu has a unit that is not known here: {min(unknown)!r}")
    scale = {name: SCALES[units[i]] for name, i in at.items()}
    return [
        {"kernel": row[head.index("Kernel Name")]}
        | {name: scale[name] * float(row[i].replace(",", "") or "nan") for name, i in at.items()}
        for row in rows
    ]


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Microseconds in kernels, gigabytes, and the microseconds that each unit was busy at its peak."""
    by_kernel: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_kernel[row["kernel"].split("(")[0][:60]].append(row)

    def one(some: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "launches": len(some),
            "us": sum(r[TIME] for r in some) / 1e3,
            "gigabytes": {unit: sum(r.get(name, 0.0) for r in some) / 1e9 for unit, name in BYTES.items()},
            "busy_us": {
                unit: sum(r[TIME] * r.get(name, 0.0) for r in some) / 1e5 for unit, name in UNITS.items()
            },
        }

    kernels = sorted(((name, one(some)) for name, some in by_kernel.items()), key=lambda k: -k[1]["us"])
    return {"step": one(rows), "kernels": dict(kernels)}


def measure(args: argparse.Namespace) -> None:
    if args.work:
        return work(args)
    if args.json and not args.json.parent.is_dir():
        raise Refused(f"--json: there is no folder {str(args.json.parent)!r}")
    found = summed(measured(args))
    show(found)
    if args.json:
        about = {"commit": commit(), "torch": torch.__version__, "device": torch.cuda.get_device_name()}
        about |= {"backbone": args.backbone, "stem": args.stem}
        args.json.write_text(json.dumps(about | found, indent=1) + "\n")
    return None


def show(found: dict[str, Any]) -> None:
    """Print a line for the step and one for each kernel; busy: microseconds at a unit's peak rate."""
    print(f"{'':44} {'n':>4} {'us':>8}  " + "  ".join(f"{unit:>20}" for unit in UNITS))
    for name, one in [("step", found["step"]), *found["kernels"].items()]:
        busy = "  ".join(f"{one['busy_us'][unit]:20,.0f}" for unit in UNITS)
        print(f"{name[:44]:44} {one['launches']:4} {one['us']:8,.0f}  {busy}")
    print("gigabytes: " + ", ".join(f"{unit} {g:.2f}" for unit, g in found["step"]["gigabytes"].items()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backbone", default="resnet32")
    parser.add_argument("--stem", default="cifar")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    return exit_status(lambda: measure(args))


if __name__ == "__main__":
    sys.exit(main())
