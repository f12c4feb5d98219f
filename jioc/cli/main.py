"""The `jioc` command. Each command is a module of this folder, imported when it is called."""

import importlib
import sys
import time

from jioc import __version__
from jioc.cli.stdout import PipeSafeStdout
from jioc.errors import (
    Failed,
    Interrupted,
    RankError,
    Refused,
    ReportedElsewhere,
    is_of_a_file,
    is_out_of_memory,
    refuse_if,
    refuse_unknown,
    sentence,
)
from jioc.stopping import ctrl_c
from jioc.torchrun import first_process

COMMANDS = {
    "demo": "iCaRL with and without JIOC on long-tailed digits, in under two minutes on a CPU",
    "run": "one run: jioc run METHOD [options]",
    "grid": "many runs: jioc grid RECIPE|FILE [--seeds 1 2 3] [--pack N] [--only WORDS] [--out DIR]",
    "predict": "class and score of each image: jioc predict MODEL IMAGE... [--top K] [--json]",
    "learn": "teach a saved model the new classes of a folder: jioc learn MODEL FOLDER [--out DIR] [options]",
    "export": "a saved model for other programs: jioc export MODEL --onnx FILE [--readout NAME]",
    "table": "mean ± std over seeds: jioc table RUNS... [--paper] [--leaderboard] [--recipe NAME] "
    "[--format text|markdown|latex|csv]",
    "report": "one self-contained page of many runs: jioc report RUNS... [-o report.html] [--figures DIR]",
    "list": "methods, presets, recipes, backbones or data: jioc list methods|presets|recipes|backbones|data",
    "data": "the data sets: jioc data list, jioc data get NAME, jioc data check NAME|FOLDER",
}
SILENCE = 2.0  # seconds that a silent process waits: torchrun ends all processes with the first that ends


def usage() -> str:
    commands = [f"  jioc {name:7} {about}" for name, about in COMMANDS.items()]
    title = f"jioc {__version__}: class-incremental learning with a small memory"
    return "\n".join([title, "", *commands, "", "jioc COMMAND --help tells more."])


def run_command(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] == "--version":
        print(__version__)
        return 0
    refuse_unknown("command", argv[0], COMMANDS)
    return importlib.import_module(f"jioc.cli.{argv[0]}").main(argv[1:])


def main(argv: list[str] | None = None) -> int:
    """Run a command; print an error as one sentence and return the exit status."""
    given = sys.argv[1:] if argv is None else argv
    debug, argv = "--debug" in given, [word for word in given if word != "--debug"]
    sys.stdout, sys.stderr = PipeSafeStdout.behind(sys.stdout), PipeSafeStdout.behind(sys.stderr)
    try:
        refuse_if("\0" in "".join(argv), "a word of the command holds a NUL character")
        status = run_command(argv)
        PipeSafeStdout.fail_if_lost(sys.stdout)
        return status
    except Refused as error:
        if debug:
            raise
        if isinstance(error, RankError) or (first_process() and not isinstance(error, ReportedElsewhere)):
            print(f"jioc: {sentence(error)}", file=sys.stderr)
        else:
            time.sleep(SILENCE)
        return error.status
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, KeyboardInterrupt) or ctrl_c():
            if first_process():
                print("jioc: stopped", file=sys.stderr)
            return Interrupted.status
        if debug:
            raise
        told = is_out_of_memory(error) or is_of_a_file(error)
        where = "" if told else "; --debug shows where"
        print(f"jioc: {sentence(error)}{where}", file=sys.stderr)
        return Failed.status
