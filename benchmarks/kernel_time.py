"""Where a GPU's time goes while something runs: its kernels, and the gaps between them."""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
SHOWN = 12  # kernels of a table


class KernelTime:
    """Record what the device does between `start` and `stop`, by torch's profiler."""

    def start(self) -> None:
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        self.profiler = torch.profiler.profile(activities=kinds)
        torch.cuda.synchronize()
        self.profiler.start()

    def stop(self) -> dict[str, Any]:
        torch.cuda.synchronize()
        self.profiler.stop()
        with tempfile.TemporaryDirectory() as scratch:
            trace = Path(scratch) / "trace.json"
            self.profiler.export_chrome_trace(str(trace))
            return summed(json.loads(trace.read_text())["traceEvents"])


def summed(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up a trace. `busy`: while at least one kernel ran; `wall`: from the first to the last."""
    ran = sorted(
        (event["ts"], event["ts"] + event["dur"], event["name"])
        for event in events
        if event.get("cat") in ON_DEVICE and "dur" in event
    )
    if not ran:
        return {"kernels": 0, "busy_share": 0.0, "busy_us": 0.0, "wall_us": 0.0, "sum_us": 0.0, "top": []}
    busy, last = 0.0, ran[0][0]
    spent, count = Counter[str](), Counter[str]()
    for begin, end, name in ran:
        busy += max(0.0, end - max(begin, last))
        last = max(last, end)
        spent[name] += end - begin
        count[name] += 1
    wall = last - ran[0][0]
    top = [{"name": name[:90], "us": us, "launches": count[name]} for name, us in spent.most_common(SHOWN)]
    return {
        "kernels": len(ran), "busy_share": busy / wall, "busy_us": busy, "wall_us": wall,
        "sum_us": spent.total(), "top": top,
    }  # fmt: skip


def show(found: dict[str, Any], steps: int) -> None:
    """Print a summary per step."""
    print(
        f"  {found['kernels'] / steps:.0f} kernels a step, {found['sum_us'] / steps:,.0f} us in them, "
        f"{found['wall_us'] / steps:,.0f} us of the clock; at work {100 * found['busy_share']:.1f} % of it"
    )
    for row in found["top"]:
        print(f"  {row['us'] / steps:10,.1f} us {row['launches'] / steps:6.1f}x  {row['name']}")
