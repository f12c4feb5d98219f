"""`jioc completion`: print a script that completes the words of `jioc` in a shell.

    eval "$(jioc completion bash)"                                    in ~/.bashrc
    eval "$(jioc completion zsh)"                                     in ~/.zshrc, after compinit
    jioc completion fish > ~/.config/fish/completions/jioc.fish

The script is made from the flags of this version and starts no Python when a key is pressed.
"""

import argparse
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jioc.cli import data, demo, evaluate, export, grid, learn, predict, report, run, table
from jioc.cli import list as list_command
from jioc.cli.flags import Parser
from jioc.cli.main import COMMANDS
from jioc.data.catalogue import DATASETS
from jioc.errors import refuse_unknown
from jioc.methods import SPECS
from jioc.nets.catalogue import BACKBONES
from jioc.resolve.presets import PRESETS
from jioc.resolve.recipes import RECIPES

VALUES: dict[str, Collection[str]] = {  # of flags whose help does not list them in braces
    "--data": DATASETS,
    "--backbone": BACKBONES,
    "--device": ("auto", "cpu", "cuda"),
    "--recipe": RECIPES,
    "--log": ("tensorboard", "wandb", "mlflow"),
}
FIRST: dict[str, Collection[str]] = {  # what may follow a command; files may always
    "run": [*SPECS, *PRESETS],
    "grid": RECIPES,
    "list": list_command.KINDS,
    "data": ("list", "get", "check"),
}


def build_parser() -> Parser:
    parser = Parser(
        "jioc completion",
        "Print a script that completes the words of jioc in a shell.",
        examples={
            'eval "$(jioc completion bash)"': "in ~/.bashrc; with zsh, in ~/.zshrc after compinit",
            "jioc completion fish > ~/.config/fish/completions/jioc.fish": "for fish",
        },
    )
    parser.add("shell", help="bash, zsh or fish")
    return parser


def main(argv: list[str]) -> int:
    shell = build_parser().parse(argv).shell
    refuse_unknown("shell", shell, SCRIPTS)
    print(SCRIPTS[shell](list(completions())), end="")
    return 0


@dataclass(frozen=True)
class Completion:
    """The words that may follow a command, or a method of `jioc run`."""

    command: str
    method: str  # "" for all
    first: list[str]
    flags: list[str]
    values: dict[str, list[str]]  # of flags that take one of a few words


def completions() -> Iterator[Completion]:
    """The commands, and `jioc run` with each method, whose own flags differ."""
    plain = {"demo": demo, "table": table, "report": report, "predict": predict, "export": export}
    plain |= {"evaluate": evaluate, "list": list_command, "data": data}
    parsers = {name: module.build_parser() for name, module in plain.items()}
    parsers |= {"grid": grid.build_parser(SPECS["icarl"]), "learn": learn.build_parser(SPECS["icarl"], {})}
    parsers["completion"] = build_parser()
    parsers["run"] = run.build_parser(SPECS["finetune"])
    for name, parser in parsers.items():
        yield _completion(name, "", parser)
    for name, spec in SPECS.items():
        yield _completion("run", name, run.build_parser(spec))


def _completion(command: str, method: str, parser: Parser) -> Completion:
    shown = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    flags = [flag for action in shown for flag in action.option_strings if flag.startswith("--")]
    values = {}
    for action in (action for action in shown if action.option_strings and action.nargs != 0):
        braces = str(action.metavar or "")
        words = (
            braces[1:-1].split(",") if braces.startswith("{") else VALUES.get(action.option_strings[0], ())
        )
        if words:
            values[action.option_strings[-1]] = list(words)
    first = SCRIPTS if command == "completion" else FIRST.get(command, ())
    return Completion(command, method, list(first), flags, values)


# --- the scripts ---

BASH = """\
# completion of jioc for bash, by `jioc completion bash`
_jioc() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    local command=${{COMP_WORDS[1]}} method=${{COMP_WORDS[2]}}
    if [ "$word" = = ]; then word=
    elif [ "$before" = = ]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "$command $before" in
{values}
        *) case "$word" in
            -*) case "$command $method" in
{flags}
                esac ;;
            *) if [ "$COMP_CWORD" -eq 2 ]; then case "$command" in
{first}
                esac; fi ;;
            esac ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
"""


def _bash_function(completions: list[Completion]) -> str:
    """The function that bash calls, and zsh by way of bashcompinit."""
    values: dict[tuple[str, ...], list[str]] = {}  # which flags of which commands take these words
    for one in completions:
        for flag, words in one.values.items():
            patterns = values.setdefault(tuple(words), [])
            if f'"{one.command} {flag}"' not in patterns:
                patterns.append(f'"{one.command} {flag}"')
    flags, first = [], {}
    for one in sorted(completions, key=lambda one: not one.method):  # the narrower pattern first
        pattern = f'"{one.command} {one.method}"' if one.method else f'"{one.command} "*'
        flags.append(f'                {pattern}) words="{" ".join(one.flags)}" ;;')
        if one.first:
            first[one.command] = f'                {one.command}) words="{" ".join(one.first)}" ;;'
    return BASH.format(
        commands=" ".join(COMMANDS),
        values="\n".join(
            f'        {"|".join(patterns)}) words="{" ".join(words)}" ;;'
            for words, patterns in values.items()
        ),
        flags="\n".join(flags),
        first="\n".join(first.values()),
    )


def _bash(completions: list[Completion]) -> str:
    return _bash_function(completions) + "complete -o default -F _jioc jioc\n"


def _zsh(completions: list[Completion]) -> str:
    begin = "autoload -Uz bashcompinit && bashcompinit\n"
    return begin + _bash_function(completions) + "complete -o default -F _jioc jioc\n"


def _fish(completions: list[Completion]) -> str:
    lines = ["# completion of jioc for fish, by `jioc completion fish`"]
    for name, about in COMMANDS.items():
        text = about.replace("'", "\\'")
        lines.append(f"complete -c jioc -n __fish_use_subcommand -f -a {name} -d '{text}'")
    described = set()
    for one in completions:
        seen = f"__fish_seen_subcommand_from {one.command}"
        only = f"{seen}; and contains {one.method} (commandline -opc)" if one.method else seen
        if one.first and not one.method:
            lines.append(
                f"complete -c jioc -n '{seen}; and __fish_is_nth_token 2' -a '{' '.join(one.first)}'"
            )
        for flag in one.flags:
            if (one.command, flag) not in described:
                words = f" -x -a '{' '.join(one.values[flag])}'" if flag in one.values else ""
                lines.append(f"complete -c jioc -n '{only}' -l {flag[2:]}{words}")
            if not one.method:
                described.add((one.command, flag))
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
