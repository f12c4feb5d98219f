"""Two processes of one run, which do jobs in their order.

They are forked from a process of their own: one that has trained, as the tests have, may hold a lock of
torch's for ever in its children.

A job is {"name", "settings"} and perhaps
    "alone"     one of the two does it as a run of one process
    "double"    in float64, where one process and two differ by rounding alone, far below what is tested:
                every tensor that would be float32 is float64, those made with `.float()` too
    "stop", "fail", "die"    (rank, step): that process is told to stop, raises, or is gone before that step
How each job ended is written to NAME.RANK beside the runs.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.distributed import TCPStore

from jioc.errors import Refused
from jioc.training.engine import Engine
from jioc.training.run import run

Job = dict[str, Any]
FLOAT, STEP = torch.Tensor.float, Engine.step


def pair(jobs: list[Job], where: Path) -> None:
    """Have both do the jobs, and wait until they have ended."""
    subprocess.run([sys.executable, __file__, json.dumps(jobs), str(where)], check=True)


def fork(jobs: list[Job], where: Path, seconds: float = 900) -> None:
    """Fork the two processes; what has not ended after so many seconds hangs."""
    # as torchrun has one, on a port of its own
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    children = []
    for rank in (0, 1):
        child = os.fork()
        if child == 0:
            values = {"RANK": rank, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": store.port}
            values |= {"TORCHELASTIC_USE_AGENT_STORE": True, "TORCHELASTIC_RESTART_COUNT": 0}
            os.environ.update({k: str(v) for k, v in values.items()}, MASTER_ADDR="127.0.0.1")
            try:
                work(rank, jobs, where)
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(0)
        children.append(child)
    end = time.monotonic() + seconds
    for child in children:
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                for hanging in children:
                    os.kill(hanging, signal.SIGKILL)
                sys.exit(f"two processes have not done their jobs in {seconds:.0f} s")
            time.sleep(0.05)


def work(rank: int, jobs: list[Job], where: Path) -> None:
    for i, job in enumerate(jobs):
        if job.get("alone") and i % 2 != rank:
            continue
        os.environ["WORLD_SIZE"] = "1" if job.get("alone") else "2"
        try:
            do(rank, job, where)
            ended = "well"
        except Refused as error:
            ended = f"{type(error).__name__}: {error}"
        (where / f"{job['name']}.{rank}").write_text(ended)
        if "fail" in job:
            return


def do(rank: int, job: Job, where: Path) -> None:
    double, steps, asked = job.get("double", False), itertools.count(), itertools.count()
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    torch.Tensor.float = torch.Tensor.double if double else FLOAT  # type: ignore[method-assign]

    def now(event: str, step: int) -> bool:
        return job.get(event) == [rank, step]

    def step(self: Engine, *args: Any) -> None:
        taken = next(steps)
        if now("die", taken):
            os.kill(os.getpid(), signal.SIGKILL)
        if now("fail", taken):
            raise ValueError("no more")
        STEP(self, *args)

    with patch.object(Engine, "step", step):
        run(**job["settings"], out=where / job["name"], resume=True, stop=lambda: now("stop", next(asked)))


if __name__ == "__main__":
    fork(json.loads(sys.argv[1]), Path(sys.argv[2]))
