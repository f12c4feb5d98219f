"""`jioc run`: one run. What imports torch is imported once the words are right."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from jioc.cli.flags import HELP, Parser, add_settings, given_values, usual_values, wants_help
from jioc.config import files
from jioc.config.schema import Config
from jioc.config.values import Values, digest, make
from jioc.errors import Interrupted, Refused
from jioc.events import Event
from jioc.integrations import loggers
from jioc.methods.registry import find
from jioc.methods.specs import SPECS, Spec
from jioc.resolve import pycil, validate
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.stopping import duration, signals
from jioc.torchrun import first_process, world_size


def main(argv: list[str]) -> int:
    file, method, notes = _before_the_flags(argv)
    spec = find(method)
    found = _parser(spec, wants_help(argv)).parse(argv)
    log = loggers.names(found.log)
    if found.pycil is not None and method != file["method"]:
        raise Refused(f"{str(found.pycil)!r} is an experiment of {file['method']}, not of {method}")
    values = given_values(found, spec.options) | {"method": method}
    if found.pycil is not None:
        file = pycil.rescaled(file, values)
    config = resolve(make(**overlay(file, values)))
    notes += validate.unused(config)
    for note in notes if first_process() else ():
        print(f"note: {note}", file=sys.stderr)
    if found.dry_run:
        from jioc.cli.dry_run import show

        if first_process():
            show(config)
        return 0
    try:
        _run(config, found.out or default_folder(config, spec), found.resume, found.time_limit, log)
    except Interrupted as error:
        if world_size() == 1:  # of several, torchrun knows the line
            again = shlex.join(["jioc", "run", *argv, *([] if found.resume else ["--resume"])])
            error.args = (f"{error}; to go on: {again}",)
        raise
    return 0


def _run(config: Config, folder: Path, resume: bool, limit: float | None, log: list[str]) -> None:
    from jioc.cli.console import Console
    from jioc.training.run import execute

    if not first_process():
        with signals(limit) as stop:
            execute(config, out=folder, resume=resume, stop=stop)
        return
    with (
        Console(config, folder) as console,
        loggers.live(log, config, folder) as live,
        signals(limit) as stop,
    ):

        def tell(event: Event) -> None:
            console(event)
            live(event)

        console.finish(execute(config, out=folder, resume=resume, callback=tell, stop=stop))


def default_folder(config: Config, spec: Spec) -> Path:
    """Where a run is kept unless --out says otherwise."""
    data = Path(config.data).name
    return Path("runs") / f"{spec.name}-{config.coordination.coordinate}-{data}-{digest(config)}"


# --- the words ---


def _before_the_flags(argv: list[str]) -> tuple[Values, str, list[str]]:
    """What --config or --pycil holds, the method, and notes on the file: they decide which flags there are."""
    known = sorted({spec.options for spec in SPECS.values()}, key=lambda options: -len(options.__mro__))
    every = replace(SPECS["bic"], options=type("Every", (*known,), {}))  # which has a second stage, too
    found, rest = _parser(every, help=False).parse_known_args([word for word in argv if word not in HELP])
    if found.config and found.pycil:
        raise Refused("--config and --pycil exclude each other")
    file, notes = dict[str, Any](), list[str]()
    if found.pycil:
        file, notes = pycil.read(found.pycil, ordered=bool(found.order or found.order_seed))
    elif found.config:
        file = files.read(found.config)
    named = next((word for word in (found.method, *rest) if word in SPECS or str(word).endswith(".py")), None)
    if argv and not argv[0].startswith("-"):
        named = argv[0]
    elif named is None and any(word.startswith("-") for word in rest):
        _parser(find(str(file.get("method", "icarl"))), help=False).parse(argv)  # which says what is wrong
    named = named or found.method or file.get("method")
    if named is None and not wants_help(argv):
        raise Refused(f"jioc run needs a method: {', '.join(SPECS)}, or a Python file that registers one")
    return file, str(named or "icarl"), notes


def _parser(spec: Spec, help: bool) -> Parser:
    about = f"One run. The defaults shown are those of {spec.title} ({spec.paper})."
    parser = Parser("jioc run", usage="jioc run METHOD [options]", description=about)
    parser.add_argument("method", nargs="?", help=f"{', '.join(SPECS)}, or a Python file that registers one")
    add_settings(parser, spec, usual_values(spec) if help else None)
    add = parser.add_argument_group("files").add_argument
    add("--config", type=Path, help="a config.yaml; flags override it")
    add("--pycil", type=Path, metavar="JSON", help="an experiment file of PyCIL; flags override it")
    add("--out", type=Path, help="the run's folder (runs/METHOD-…)")
    add(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint there; start where there is none",
    )
    add(
        "--time-limit",
        type=duration,
        metavar="TIME",
        help="stop before it with a checkpoint, status 75: 90m, 2h",
    )
    add("--log", default="", metavar="NAMES", help="also log to tensorboard, wandb (offline) or mlflow")
    add("--dry-run", action="store_true", help="print tasks, counts, memory and the estimated time, and stop")
    return parser
