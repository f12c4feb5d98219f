"""Where a result comes from: the machine, and the commit of the code."""

import os
import platform
import subprocess
from pathlib import Path

import torch

from jioc.results import Environment
from jioc.training.execution import Execution


def environment(device: torch.device, execution: Execution, processes: int) -> Environment:
    return Environment(
        torch=torch.__version__,
        python=platform.python_version(),
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else f"{platform.machine()} CPU",
        threads=torch.get_num_threads(),
        precision=execution.precision,
        engine=("graph" if execution.graph else "eager") + (", compiled" if execution.compile else ""),
        processes=processes,
    )


def commit() -> str | None:
    """Find the commit of this source, with a + if it was changed. JIOC_COMMIT names it for a bare copy.

    None if git does not know this file: installed within a project, the commit would be the project's.
    """
    if os.environ.get("JIOC_COMMIT"):
        return os.environ["JIOC_COMMIT"]
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = git("status", "--porcelain", "--untracked-files=no", "..")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
