"""Work shared with threads and processes beside this one: how many are worth having, and how to end them."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import Popen
from typing import Any


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def end(processes: Iterable[Popen[Any]], threads: ThreadPoolExecutor) -> None:
    """Kill the processes, wait for the threads that talk to them, and close the pipes, which may still hold words."""
    for process in processes:
        process.kill()
    threads.shutdown()
    for process in processes:
        with suppress(OSError):
            process.communicate()
