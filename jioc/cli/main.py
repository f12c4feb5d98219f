"""The `jioc` command: a name and a function each. What imports torch is imported by the function that needs it."""

import io
import math
import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from jioc import __version__
from jioc.cli.flags import Parser, add_config, idle, said
from jioc.config import schema as settings
from jioc.errors import Failed, Interrupted, Refused, first_process, processes, sentence, speaks, unknown
from jioc.integrations import loggers as sinks
from jioc.methods.specs import SPECS, Spec, find
from jioc.nets import catalogue as backbones
from jioc.resolve import pycil, recipes
from jioc.resolve.derive import merged, refuse_idle_schedules, resolve
from jioc.stopping import duration, signals
from jioc.text import PLAINLY


def run(words: list[str]) -> int:
    """one run: jioc run METHOD [options]"""
    from_file, notes = _config_file(words)
    named = _method(words, from_file)
    spec = find(named)
    parser = _run_parser(spec)
    found = parser.parse(words)
    own = vars(found)
    out, resume, dry, log = own.pop("out"), own.pop("resume"), own.pop("dry_run"), sinks.names(own.pop("log"))
    own.pop("config")
    limit = own.pop("time_limit")
    if (experiment := own.pop("pycil")) is not None and named != from_file["method"]:
        raise Refused(f"{str(experiment)!r} is an experiment of {from_file['method']}, not of {named}")
    own["method"] = named
    values = said(found, spec)
    if experiment is not None:
        from_file = pycil.over(from_file, values)
    given = settings.make(**merged(from_file, values))
    config = resolve(given)
    refuse_idle_schedules(given, config)
    notes += idle(values, config)
    for note in notes if first_process() else ():
        print(f"note: {note}", file=sys.stderr)
    if dry:
        from jioc.cli.dry_run import show

        if first_process():
            show(config)
        return 0
    folder = (
        out
        or Path("runs")
        / f"{spec.name}-{config.coordination.coordinate}-{Path(config.data).name}-{settings.digest(config)}"
    )
    from jioc.cli.console import Console
    from jioc.training.runner import run as run_it

    if not first_process():
        with signals(limit) as stop:
            run_it(config, out=folder, resume=resume, stop=stop)
        return 0
    try:
        with Console(config, folder) as console, sinks.live(log, config, folder) as live, signals(limit) as stop:

            def tell(kind: str, what: dict[str, Any]) -> None:
                console(kind, what)
                live(kind, what)

            result = run_it(config, out=folder, resume=resume, callback=tell, stop=stop)
            console.finish(result)
    except Interrupted as error:
        if processes() == 1:  # of several, torchrun knows the line
            again = shlex.join(["jioc", "run", *words, *([] if resume else ["--resume"])])
            error.args = (f"{error}; to go on: {again}",)
        raise
    return 0


def _config_file(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """What --config or --pycil holds, and notes on it, read before the flags because it may name the method."""
    early = Parser(add_help=False)
    for flag in ("--config", "--pycil", "--order", "--order-seed"):
        early.add_argument(flag)
    found = early.parse_known_args(words)[0]
    if found.config and found.pycil:
        raise Refused("--config and --pycil exclude each other")
    if found.pycil:
        return pycil.read(Path(found.pycil), ordered=bool(found.order or found.order_seed))
    return settings.read(Path(found.config)) if found.config else {}, []


def _method(words: list[str], from_file: dict[str, Any]) -> str:
    """The method that the words name, wherever it stands among them, or else the file."""
    if words and not words[0].startswith("-"):
        return words[0]
    probe = _run_parser(find(str(from_file.get("method", "icarl"))))
    found, rest = probe.parse_known_args(words)
    # the value of another method's flag may stand where the method is looked for
    named = next((word for word in (found.method, *rest) if word in SPECS or str(word).endswith(".py")), None)
    if named is None and any(word.startswith("-") for word in rest):
        probe.parse(words)  # which says what is wrong with it
    named = named or found.method or from_file.get("method")
    if named is None:
        raise Refused(f"jioc run needs a method: {', '.join(SPECS)}, or a Python file that registers one")
    return str(named)


def _run_parser(spec: Spec) -> Parser:
    parser = Parser("jioc run", description=f"One run. The defaults shown are those of {spec.title} ({spec.paper}).")
    parser.add_argument("method", nargs="?", help=f"{', '.join(SPECS)}, or a Python file that registers one")
    add_config(parser, spec)
    files = parser.add_argument_group("files")
    files.add_argument("--config", type=Path, help="a config.yaml; flags override it")
    files.add_argument("--pycil", type=Path, metavar="JSON", help="an experiment file of PyCIL; flags override it")
    files.add_argument("--out", type=Path, help="the run's folder (runs/METHOD-…)")
    files.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint there; start where there is none"
    )
    files.add_argument(
        "--time-limit", type=duration, metavar="TIME", help="stop before it with a checkpoint, status 75: 90m, 2h"
    )
    files.add_argument("--log", default="", metavar="SINKS", help="also log to tensorboard, wandb (offline) or mlflow")
    files.add_argument(
        "--dry-run", action="store_true", help="print tasks, counts, memory and the estimated time, and stop"
    )
    return parser


def grid(words: list[str]) -> int:
    """many runs: jioc grid RECIPE|FILE [--seeds 1 2 3] [--pack N] [--only WORDS] [--out DIR]"""
    from jioc.cli.grid import main

    with signals() as stop:
        return main(words, stop)


def demo(words: list[str]) -> int:
    """iCaRL with and without JIOC on long-tailed digits, in under two minutes on a CPU"""
    parser = Parser(
        "jioc demo",
        description="iCaRL with and without JIOC on the long-tailed digits that scikit-learn ships: three seeds each.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("jioc-demo"), help="for the results and report.html (jioc-demo)"
    )
    folder = parser.parse(words).out
    from jioc.cli.demo import main

    return main(folder)


def list_(words: list[str]) -> int:
    """methods, recipes, backbones or data sets: jioc list methods|recipes|backbones|data"""
    from jioc.cli.console import table

    parser = Parser("jioc list", description="What there is, a line each.")
    parser.add_argument("what", help="methods, recipes, backbones or data")
    what = parser.parse(words).what
    yes = {True: "yes", False: ""}
    if what == "methods":
        rows = [
            [s.name, s.title, s.paper, ", ".join(_readouts(s)), s.memory, yes[s.distils], yes[s.expands]]
            for s in SPECS.values()
        ]
        table(["method", "", "paper", "read-outs", "memory", "distils", "expands"], rows)
    elif what == "backbones":
        table(["backbone", ""], [[name, b.about] for name, b in backbones.BACKBONES.items()])
    elif what == "recipes":
        rows = [[r.name, r.about, str(len(r.make())), " ".join(map(str, r.seeds))] for r in recipes.RECIPES.values()]
        table(["recipe", "", "settings", "seeds"], rows)
    elif what == "data":
        data(["list"])
    else:
        raise unknown("list", what, ["methods", "recipes", "backbones", "data"])
    return 0


def _readouts(spec: Spec) -> list[str]:
    return [name for name in spec.readouts if name != "nme" or spec.memory != "none"]  # means need exemplars


def data(words: list[str]) -> int:
    """the data sets: jioc data list, jioc data get NAME, jioc data check NAME|FOLDER"""
    from jioc.cli.data import main

    return main(words)


def table_(words: list[str]) -> int:
    """mean ± std over seeds: jioc table RUNS... [--paper] [--recipe NAME] [--format text|markdown|latex|csv]"""
    from jioc.cli.console import table
    from jioc.report import runs, tables

    parser = Parser(
        "jioc table", description="The runs at or below the given places, those that differ in seeds as one row."
    )
    parser.add_argument("runs", nargs="+", type=Path, help="run folders, folders of them, or result.json files")
    parser.add_argument("--paper", action="store_true", help="beside the paper's figures where the setting matches")
    parser.add_argument("--recipe", type=recipes.find, help="also the settings of a recipe that were not run")
    parser.add_argument("--scale", type=float, help="with --recipe: that of jioc grid, such as 0.1 (the recipe's)")
    parser.add_argument(
        "--by-task", action="store_true", help="the accuracy after each task on all, old and new classes"
    )
    parser.add_argument("--over-orders", action="store_true", help="runs of several class orders are one row")
    parser.add_argument(
        "--forgetting", action="store_true", help="also what past tasks have lost of their best accuracy"
    )
    parser.add_argument("--format", default="text", help="text, markdown, latex, or csv with figures unrounded (text)")
    found = parser.parse(words)
    if found.format not in tables.FORMATS:
        raise unknown("value of --format", found.format, tables.FORMATS)
    if found.scale is not None and (found.recipe is None or not 0 < found.scale < math.inf):
        raise Refused(f"--scale: {found.scale:g} is refused: it should be above 0, and given with --recipe")
    if found.by_task and found.forgetting:
        raise Refused("--by-task and --forgetting exclude each other")
    read = runs.read(found.runs, found.over_orders)
    groups = runs.group(runs.planned(found.recipe, read, found.scale) if found.recipe else read)
    if found.by_task:
        sheet = tables.by_task(groups, found.paper)
    else:
        sheet = tables.summarise(groups, found.paper, found.forgetting, bracketed=found.format != "csv")
    if found.format == "text":
        table(sheet.heads, sheet.rows, sheet.title or None, sheet.words, sheet.blocks)
        print("\n".join(sheet.notes))
    else:
        print(tables.render(sheet, found.format))
    if found.format == "csv":
        print("\n".join(sheet.notes), file=sys.stderr)
    return 0


def report(words: list[str]) -> int:
    """one self-contained page of many runs: jioc report RUNS... [-o report.html] [--figures DIR]"""
    from jioc.report import page, runs

    parser = Parser(
        "jioc report", description="One page with tables, curves, matrices and diagnostics, from result.json alone."
    )
    parser.add_argument("runs", nargs="+", type=Path, help="run folders, folders of them, or result.json files")
    parser.add_argument("-o", "--out", type=Path, default=Path("report.html"), help="the page (report.html)")
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="also write figures for a paper there: PDF, SVG, PNG"
    )
    found = parser.parse(words)
    groups = runs.group(runs.read(found.runs))
    try:
        page.save(groups, found.out)
    except OSError as error:
        raise Failed(f"{str(found.out)!r} cannot be written: {error.strerror}") from None
    print(f"runs: {sum(len(g.runs) for g in groups)}, settings: {len(groups)}; the page: {found.out}")
    if found.figures is not None:
        from jioc.report import figures

        print(f"figures: {len(figures.save(groups, found.figures))} files in {found.figures}")
    return 0


def predict(words: list[str]) -> int:
    """class and score of each image: jioc predict MODEL IMAGE... [--top K] [--json]"""
    from jioc.cli.predict import main

    return main(words)


def learn(words: list[str]) -> int:
    """teach a saved model the new classes of a folder: jioc learn MODEL FOLDER [--out DIR] [options]"""
    from jioc.cli.learn import main

    return main(words)


def export(words: list[str]) -> int:
    """a saved model for other programs: jioc export MODEL --onnx FILE [--readout NAME]"""
    from jioc.cli.export import main

    return main(words)


SILENCE = 2.0  # seconds: torchrun ends all processes when one has ended, so those that do not speak let another speak

COMMANDS = {
    "demo": demo, "run": run, "grid": grid, "predict": predict, "learn": learn, "export": export,
    "table": table_, "report": report, "list": list_, "data": data,
}  # fmt: skip


def usage() -> str:
    lines = [f"  jioc {name:7} {(function.__doc__ or '').strip()}" for name, function in COMMANDS.items()]
    return "\n".join(
        [
            f"jioc {__version__}: class-incremental learning with a small memory",
            "",
            *lines,
            "",
            "jioc COMMAND --help tells more.",
        ]
    )


class Reader(io.FileIO):
    """Standard output, whose reader may leave (`jioc table runs | head`): the command then ends without a word.

    SIGPIPE would end it, too, and just as well where any other pipe breaks, such as one to a process that died. What
    its encoding lacks is written plainly.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os._exit(128 + signal.SIGPIPE)

    @classmethod
    def behind(cls, stream: TextIO | None) -> TextIO:
        if stream is None:  # it was closed
            return open(os.devnull, "w", encoding="utf-8", errors=PLAINLY)  # noqa: SIM115
        if stream not in (sys.__stdout__, sys.__stderr__) or not isinstance(stream, io.TextIOWrapper):
            return stream
        with suppress(BrokenPipeError):  # told by the next write
            stream.flush()
        raw = cls(stream.fileno(), "w", closefd=False)
        return io.TextIOWrapper(
            raw if stream.write_through else io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors=PLAINLY if stream.errors in ("strict", "surrogateescape") else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    debug = "--debug" in words
    words = [w for w in words if w != "--debug"]
    sys.stdout, sys.stderr = Reader.behind(sys.stdout), Reader.behind(sys.stderr)
    try:
        if not words or words[0] in ("-h", "--help"):
            print(usage())
            return 0 if words else 2
        if words[0] == "--version":
            print(__version__)
            return 0
        if words[0] not in COMMANDS:
            raise unknown("command", words[0], COMMANDS)
        return COMMANDS[words[0]](words[1:])
    except Refused as error:
        if debug:
            raise
        if speaks(error):
            print(f"jioc: {error}", file=sys.stderr)
        else:
            time.sleep(SILENCE)
        return error.status
    except KeyboardInterrupt:
        if first_process():
            print("jioc: stopped", file=sys.stderr)
        return Interrupted.status
    except Exception as error:
        if debug:
            raise
        print(f"jioc: {sentence(error)}; --debug shows where", file=sys.stderr)
        return Failed.status
