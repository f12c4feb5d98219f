"""The `jioc` command. Each command is a module of this folder, imported when it is called."""

import importlib
import sys
import time

from jioc import __version__
from jioc.cli.stdout import PipeSafeStdout, print_help
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
    "demo": "iCaRL with and without JIOC on digits, a minute on a CPU",
    "run": "one run",
    "grid": "many runs, a folder each",
    "table": "mean ± std over seeds, beside the paper's figures",
    "report": "one self-contained page of many runs",
    "predict": "class and score of each image",
    "evaluate": "accuracy by class, confusions and calibration on your images",
    "learn": "teach a saved model the new classes of a folder",
    "export": "a saved model for other programs",
    "list": "methods, presets, recipes, backbones or data sets",
    "data": "the data sets: list, fetch, check",
    "completion": "completion of these words for a shell",
}
WORDS = {  # that follow a command
    "run": "METHOD",
    "grid": "RECIPE|FILE",
    "table": "RUN...",
    "report": "RUN...",
    "predict": "MODEL IMAGE...",
    "evaluate": "MODEL FOLDER",
    "learn": "MODEL FOLDER",
    "export": "MODEL --onnx FILE",
    "list": "[KIND]",
    "data": "list|get|check NAME",
    "completion": "bash|zsh|fish",
}
EXAMPLES = {
    "jioc demo": "see what it does",
    "jioc run icarl --coordinate jioc": "one run on the digits, which need no files",
    "jioc report runs": "a page of all runs below runs",
}
SILENCE = 2.0  # seconds that a silent process waits: torchrun ends all processes with the first that ends


def usage() -> str:
    lines = [f"jioc {name} {WORDS.get(name, '')}" for name in COMMANDS]
    commands = [
        f"  {line:{max(map(len, lines))}}  {about}"
        for line, about in zip(lines, COMMANDS.values(), strict=True)
    ]
    examples = [f"  {line:{max(map(len, EXAMPLES))}}  {does}" for line, does in EXAMPLES.items()]
    title = f"jioc {__version__}, class-incremental learning with a small memory"
    more = "jioc COMMAND -h shows its common options, jioc COMMAND --help all of them."
    return "\n".join([title, "", "commands:", *commands, "", "examples:", *examples, "", more, ""])


def run_command(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help"):
        print_help(usage())
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
        explained = is_out_of_memory(error) or is_of_a_file(error)
        where = "" if explained else "; --debug shows where"
        print(f"jioc: {sentence(error)}{where}", file=sys.stderr)
        return Failed.status
