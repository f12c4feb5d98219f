import os
import sys

from .cli import main

if __name__ == "__main__":
    status = main()
    if (
        status and int(os.environ.get("WORLD_SIZE", "1")) > 1
    ):  # what holds the processes together may not close in order
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
