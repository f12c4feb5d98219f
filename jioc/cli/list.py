"""`jioc list`: methods, presets, recipes, backbones or data sets, a line each."""

from jioc.cli.flags import Parser
from jioc.errors import refuse_unknown
from jioc.methods import SPECS, Spec
from jioc.nets.catalogue import BACKBONES

YES = {True: "yes", False: ""}


KINDS = {
    "methods": "what `jioc run` can train",
    "presets": "methods with settings, for `jioc run` too",
    "recipes": "tables of runs for `jioc grid`",
    "backbones": "networks for --backbone",
    "data": "data sets for --data, and whether their files are here",
}


def build_parser() -> Parser:
    parser = Parser(
        "jioc list",
        "List what there is, a line each; alone, what can be listed.",
        examples={"jioc list methods": KINDS["methods"], "jioc list recipes": KINDS["recipes"]},
    )
    parser.add("kind", nargs="?", help=", ".join(KINDS))
    return parser


def main(argv: list[str]) -> int:
    kind = build_parser().parse(argv).kind
    if kind is not None:
        refuse_unknown("list", kind, KINDS)
    from jioc.cli import data
    from jioc.data.catalogue import DATASETS
    from jioc.resolve.presets import PRESETS
    from jioc.resolve.recipes import RECIPES
    from jioc.terminal import table

    if kind is None:
        numbers = [len(SPECS), len(PRESETS), len(RECIPES), len(BACKBONES), len(DATASETS)]
        kinds = zip(KINDS.items(), numbers, strict=True)
        rows = [[f"jioc list {name}", str(number), about] for (name, about), number in kinds]
        table(["command", "entries", ""], rows)
    elif kind == "methods":
        rows = [
            [s.name, s.title, s.paper, _readouts(s), s.memory, YES[s.distils], YES[s.expands]]
            for s in SPECS.values()
        ]
        table(["method", "", "paper", "read-outs", "memory", "distils", "expands"], rows)
    elif kind == "presets":
        table(["preset", ""], [[p.name, p.about] for p in PRESETS.values()])
    elif kind == "backbones":
        table(["backbone", ""], [[name, b.about] for name, b in BACKBONES.items()])
    elif kind == "recipes":
        rows = [[r.name, r.about, str(len(r.make())), " ".join(map(str, r.seeds))] for r in RECIPES.values()]
        table(["recipe", "", "settings", "seeds"], rows)
    else:
        data.main(["list"])
    return 0


def _readouts(spec: Spec) -> str:
    return ", ".join(name for name in spec.readouts if name != "nme" or spec.memory != "none")
