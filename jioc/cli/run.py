"""`jioc run`: one run. What needs torch is imported once the command line is right."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from jioc import scripts
from jioc.cli.console import print_note
from jioc.cli.flags import HELP, Parser, add_settings, defaults, given_values, named_path, wants_help
from jioc.config import Config, Values, digest, files, index, make
from jioc.errors import Interrupted, refuse_if
from jioc.events import Event, Note
from jioc.integrations import loggers
from jioc.methods import SPECS, Spec, find_method
from jioc.resolve import pycil, validate
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.resolve.presets import PRESETS, Preset
from jioc.resolve.suggest import method_for
from jioc.stopping import duration, signals
from jioc.torchrun import first_process, world_size

COMMON = (
    *("--data", "--data-dir", "--long-tail", "--tasks", "--memory", "--epochs", "--coordinate"),
    *("--seed", "--device", "--out", "--resume", "--dry-run"),
)
EXAMPLES = {
    "jioc run icarl": "iCaRL on the digits, which need no files",
    "jioc run icarl --data cifar100 --data-dir DATA --coordinate jioc": "with JIOC, on CIFAR-100",
    "jioc run der --data photos --out runs/photos --resume": "on a folder of class folders; goes on if begun",
}


def main(argv: list[str]) -> int:
    words = _with_settings_there(argv)
    word, suggested, why = _method(words)
    preset = PRESETS.get(word)
    method = str(preset.settings["method"]) if preset else word
    refuse_if(
        method not in SPECS and not scripts.is_script(method) and Path(method).is_dir(),
        f"unknown method {method!r}; for the folder of that name: jioc run --data {method}",
    )
    spec = find_method(method, PRESETS)
    args = build_parser(spec, preset).parse(words)
    log = loggers.names(args.log)
    config, notes = _config(args, method, spec, preset.values if preset else suggested)
    for note in why + notes + validate.unused(config) if first_process() else ():
        print_note(Note(note))
    if args.dry_run:
        from jioc.cli.dry_run import show

        if first_process():
            show(config)
        return 0
    try:
        _run(config, args.out or default_folder(config, spec), args.resume, args.time_limit, log)
    except Interrupted as error:
        if world_size() == 1:  # the line of several processes begins with torchrun, which is not known here
            again = shlex.join(["jioc", "run", *argv, *([] if args.resume else ["--resume"])])
            error.args = (f"{error}; to go on: {again}",)
        raise
    return 0


def _run(config: Config, folder: Path, resume: bool, limit: float | None, log: list[str]) -> None:
    from jioc.cli.console import Console
    from jioc.cli.dry_run import note_if_long
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

        console.finish(
            execute(config, out=folder, resume=resume, callback=tell, stop=stop, before=note_if_long)
        )


def default_folder(config: Config, spec: Spec) -> Path:
    """The folder of a run without --out."""
    data = Path(config.data).name
    return Path("runs") / f"{spec.name}-{config.coordination.coordinate}-{data}-{digest(config)}"


# --- the command line ---


def _with_settings_there(argv: list[str]) -> list[str]:
    """Take the settings of the run in --out where --resume goes on with it and no method is named.

    A Python file that they name is not run: it has to be named.
    """
    parser = Parser("jioc run", add_help=False)
    parser.add("--out", type=named_path)
    parser.add("--resume", action="store_true")
    args, rest = parser.parse_known_args(argv)
    named = {word.partition("=")[0] for word in rest}
    first = argv[0] if argv and argv[0] in rest[:1] and not argv[0].startswith("-") else None
    method = first or any(map(_is_name, rest))
    if not args.resume or args.out is None or method or named & {"--config", "--pycil", *HELP}:
        return argv
    path = args.out / "config.yaml"
    if not path.is_file():
        return argv
    kept = files.read(path)
    for name, flag in (("method", "jioc run FILE"), ("data", "--data FILE")):
        refuse_if(
            scripts.is_script(kept.get(name)) and f"--{name}" not in named,
            f"the {name} of the run in {str(args.out)!r} is a Python file, which is not run unasked: {flag}",
        )
    return [*argv, "--config", str(path)]


def _is_name(word: str) -> bool:
    """Whether a word names a method or a preset, wherever it stands."""
    return word in SPECS or word in PRESETS or scripts.is_script(word)


def _method(argv: list[str]) -> tuple[str, Values, list[str]]:
    """Find the method or preset, which decides what flags there are: first, or anywhere, or in a file.

    Without one, for photographs, also the settings that are suggested, and a note on them.
    """
    if argv and not argv[0].startswith("-"):
        return argv[0], {}, []
    options = sorted({spec.options for spec in SPECS.values()}, key=lambda options: -len(options.__mro__))
    every = replace(SPECS["bic"], options=type("Every", (*options,), {}))  # bic has a second stage, too
    args, rest = build_parser(every).parse_known_args([word for word in argv if word not in HELP])
    file, _ = _file(args)
    named = file.get("method", "")
    refuse_if(not isinstance(named, str | None), f"method: {named!r} is refused: it should be a name")
    method = next((word for word in (args.method, *rest) if word and _is_name(word)), None)
    if method is None and args.method is None and wants_help(argv) and scripts.is_script(file.get("method")):
        return "icarl", {}, []  # help runs no code that only a file names
    if method is None and args.method is None:
        _announce(args.config, file.get("method"))
    if method is None and any(word.startswith("-") for word in rest):
        build_parser(find_method(str(file.get("method") or "icarl"))).parse(argv)  # refuses the wrong flag
    method = method or args.method or file.get("method")
    if method is None and not wants_help(argv):
        coordinated = args.coordinate not in (None, "none")
        several = coordinated or any(getattr(args, name) is not None for name in index.grouped("tasks"))
        suggestion = method_for(args.data, trains=coordinated, several=several)
        if suggestion is not None:
            return str(suggestion[0]["method"]), suggestion[0], [suggestion[1]]
    refuse_if(
        method is None and not wants_help(argv),
        f"jioc run needs a method: {', '.join(SPECS)}, or a Python file that registers one; "
        "with a folder of photographs, --data FOLDER, it finds one",
    )
    return str(method or "icarl"), {}, []


def _file(args: argparse.Namespace) -> tuple[Values, list[str]]:
    """Read what --config or --pycil names, with notes on it."""
    refuse_if(args.config and args.pycil, "--config and --pycil exclude each other")
    if args.pycil:
        return pycil.read(args.pycil, ordered=bool(args.order or args.order_seed))
    return files.read(args.config) if args.config else {}, []


def _announce(source: Path, word: object) -> None:
    """Say that a file's method or data is a Python file, before it is run."""
    if scripts.is_script(word) and first_process():
        print_note(Note(scripts.note(source, word)))


def _config(args: argparse.Namespace, method: str, spec: Spec, usual: Values) -> tuple[Config, list[str]]:
    """The resolved settings of the flags over those of a file, with notes on the file.

    `usual`: in place of a file's, the settings of a preset, or those suggested.
    """
    refuse_if(usual and (args.config or args.pycil), "a preset and a file of settings exclude each other")
    file, notes = (usual, []) if usual else _file(args)
    flags = given_values(args, spec.options) | {"method": method}
    if args.pycil:
        other = f"{str(args.pycil)!r} is an experiment of {file['method']}, not of {method}"
        refuse_if(method != file["method"], other)
        file = pycil.rescaled(file, flags)
    if "data" not in flags and args.config:
        _announce(args.config, file.get("data"))
    return resolve(make(**overlay(file, flags))), notes


def build_parser(spec: Spec, preset: Preset | None = None) -> Parser:
    """The flags of a run of a method, or of a preset."""
    method = f"{spec.title} ({spec.paper})"
    about = f"One run. The defaults shown are those of {method}."
    if preset:
        about = f"One run of {method} with the preset {preset.name}, whose defaults are shown."
    parser = Parser("jioc run", about, usage="jioc run METHOD [options]", common=COMMON, examples=EXAMPLES)
    known = f"{', '.join(SPECS)}; a Python file that registers one; or a preset: {', '.join(PRESETS)}"
    parser.add("method", nargs="?", help=known)
    add_settings(parser, spec, defaults(spec, preset.settings) if preset else None)
    add = parser.add_argument_group("files").add_argument
    add("--config", type=named_path, metavar="FILE", help="a config.yaml; flags override it")
    add("--pycil", type=named_path, metavar="JSON", help="an experiment file of PyCIL; flags override it")
    add("--out", type=named_path, metavar="DIR", help="the run's folder (runs/METHOD-…)")
    add("--resume", action="store_true", help="go on from the last checkpoint there, or start")
    add(
        "--time-limit",
        type=duration,
        metavar="TIME",
        help="stop before it with a checkpoint, status 75: 90m, 2h",
    )
    add("--log", default="", metavar="NAMES", help="also log to tensorboard, wandb (offline) or mlflow")
    add("--dry-run", action="store_true", help="print tasks, counts, memory and the estimated time, and stop")
    return parser
