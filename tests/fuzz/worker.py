"""A process that has imported everything and carries out orders, each in a child that is forked for it.

An order is a line of JSON on standard input: argv, folder, writable, runnable, seconds, kill_at, stdout. The
answer is a line: status (of a signal: negative; None: it hung), out, err, broken, operations, seconds.
It has never trained, so that no thread of torch's holds a lock in a child.
"""

import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from fuzz.watch import Watch
from jioc.cli.main import COMMANDS

MEMORY = 3 << 30  # bytes that a case may take beside what the worker has


def main() -> None:
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    preload()
    answers.write(b"ready\n")
    answers.flush()
    for line in orders:
        answers.write(json.dumps(carried_out(json.loads(line))).encode() + b"\n")
        answers.flush()


LATE = [
    *(f"jioc.cli.{name}" for name in (*COMMANDS, "dry_run")), "jioc.training.run", "jioc.training.load",
    "jioc.data.load", "jioc.data.images.cache", "jioc.grid.local", "jioc.grid.pack", "jioc.methods.icarl",
    "jioc.methods.replay", "torch._inductor.config", "rich._emoji_codes",
]  # fmt: skip


def preload() -> None:
    """Import what the commands import late. A dry run does not time steps, which takes long by order."""
    import torch

    torch.set_num_threads(1)
    for name in LATE:
        importlib.import_module(name)
    sys.modules["jioc.cli.dry_run"].pace = lambda *args, **more: 1e-3  # type: ignore[attr-defined]


def carried_out(order: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: os.path.join(scratch, name) for name in ("out", "err", "broken", "count")}
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            status = 70
            try:
                status = in_child(order, files)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        handle = os.pidfd_open(child)
        hung = not select.select([handle], [], [], order["seconds"])[0]
        os.close(handle)
        if hung:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # whatever it left
        answer: dict[str, Any] = {name: read(path) for name, path in files.items()}
        answer["status"] = None if hung else os.waitstatus_to_exitcode(status)
        answer["operations"], answer["seconds"] = int(answer.pop("count") or 0), time.monotonic() - began
        return answer


def in_child(order: dict[str, Any], files: dict[str, str]) -> int:
    """Do the command, watched; its exit status."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(order["stdout"] or files["out"], os.O_WRONLY | os.O_CREAT, 0o600), 1)
    os.dup2(os.open(files["err"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    broken = os.open(files["broken"], os.O_WRONLY | os.O_CREAT, 0o600)
    os.chdir(order["folder"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    scratch = os.path.dirname(files["out"])
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    watch = Watch(
        Path(order["folder"]), [*order["writable"], scratch], order["runnable"],
        lambda line: os.write(broken, (line + "\n").encode(errors="replace")) and None,
        lambda: read(files["err"]) + read(files["out"]), order["kill_at"],
    )  # fmt: skip
    flush = os.fsync

    def fsync(handle: int) -> None:
        watch.operation()
        flush(handle)

    os.fsync = fsync
    from jioc.cli.main import main as command

    sys.addaudithook(watch)
    try:
        status = command(order["argv"])
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        watch.on = False
        Path(files["count"]).write_text(str(watch.operations))
    return status


def read(path: str) -> str:
    """The end of a file's text."""
    try:
        with open(path, "rb") as file:
            return file.read()[-100_000:].decode(errors="backslashreplace")
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    main()
