"""Work shared with threads and processes beside this one: how many are worth having, and how to outlive them."""

import os
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import Popen
from threading import Thread
from typing import Any


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def without_sigpipe() -> None:
    """In this thread, a write to a process that died is an error, not the end: the command has SIGPIPE end it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})


def end(processes: Iterable[Popen[Any]], threads: ThreadPoolExecutor) -> None:
    """Kill the processes, wait for the threads that talk to them, and close the pipes.

    In a thread of its own: to close a pipe is to write what it still holds, and nobody reads it.
    """

    def work() -> None:
        without_sigpipe()
        for process in processes:
            process.kill()
        threads.shutdown()
        for process in processes:
            with suppress(OSError):
                process.communicate()

    ender = Thread(target=work)
    ender.start()
    ender.join()
