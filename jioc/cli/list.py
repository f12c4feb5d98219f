"""`jioc list`: methods, presets, recipes, backbones or data sets, a line each."""

from jioc.cli.flags import Parser
from jioc.errors import refuse_unknown
from jioc.methods import SPECS, Spec
from jioc.nets.catalogue import BACKBONES

YES = {True: "yes", False: ""}


def main(argv: list[str]) -> int:
    parser = Parser("jioc list", "List what there is, a line each.")
    parser.add("kind", help="methods, presets, recipes, backbones or data")
    kind = parser.parse(argv).kind
    refuse_unknown("list", kind, ("methods", "presets", "recipes", "backbones", "data"))
    from jioc.cli import data
    from jioc.cli.console import table
    from jioc.resolve.presets import PRESETS
    from jioc.resolve.recipes import RECIPES

    if kind == "methods":
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
