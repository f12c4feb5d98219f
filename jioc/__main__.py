"""Start the `jioc` command. Ctrl-C leaves at once, in silence, while it is imported and once it has ended."""

import os
import signal
import sys


def leave(number: int, frame: object) -> None:
    os._exit(128 + signal.SIGINT)


heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in a shell's background
if heeded:
    signal.signal(signal.SIGINT, leave)


def start() -> int:
    """Run the command of the command line; return its exit status."""
    from jioc.cli.main import main
    from jioc.stopping import interrupt
    from jioc.torchrun import world_size

    try:
        if heeded:
            signal.signal(signal.SIGINT, interrupt)
        status = main()
    finally:
        if heeded:
            signal.signal(signal.SIGINT, leave)
    if world_size() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # DDP leaves threads of gloo behind; at times they abort Python's own way to end
    return status


if __name__ == "__main__":
    sys.exit(start())
