"""Started by tests once for each process of a run: does each job it is given, in float64.

python pair.py JOBS.json        [{"out": ..., "settings": {...}}, ...]

In float64 one process and two differ by rounding alone, far below what is tested: every tensor that would be float32 is
float64 here, the ones that the package makes with `.float()` too.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch


def main(jobs: list[dict[str, Any]]) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    from jioc.runner import run

    for job in jobs:
        run(**job["settings"], out=Path(job["out"]), resume=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
