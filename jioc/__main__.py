import os
import sys

from jioc.cli.main import main
from jioc.torchrun import world_size

if __name__ == "__main__":
    status = main()
    if world_size() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # DDP leaves threads of gloo behind; at times they abort Python's own way to end
    sys.exit(status)
