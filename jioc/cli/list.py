"""`jioc list`: methods, recipes, backbones or data sets, a line each."""

from jioc.cli import data
from jioc.cli.console import table
from jioc.cli.flags import Parser
from jioc.errors import unknown
from jioc.methods.specs import SPECS, Spec
from jioc.nets.catalogue import BACKBONES
from jioc.resolve.recipes import RECIPES

KINDS = ("methods", "recipes", "backbones", "data")
YES = {True: "yes", False: ""}


def main(argv: list[str]) -> int:
    parser = Parser("jioc list", description="What there is, a line each.")
    parser.add_argument("what", help="methods, recipes, backbones or data")
    what = parser.parse(argv).what
    if what == "methods":
        rows = [
            [s.name, s.title, s.paper, ", ".join(_readouts(s)), s.memory, YES[s.distils], YES[s.expands]]
            for s in SPECS.values()
        ]
        table(["method", "", "paper", "read-outs", "memory", "distils", "expands"], rows)
    elif what == "backbones":
        table(["backbone", ""], [[name, b.about] for name, b in BACKBONES.items()])
    elif what == "recipes":
        rows = [[r.name, r.about, str(len(r.make())), " ".join(map(str, r.seeds))] for r in RECIPES.values()]
        table(["recipe", "", "settings", "seeds"], rows)
    elif what == "data":
        data.main(["list"])
    else:
        raise unknown("list", what, KINDS)
    return 0


def _readouts(spec: Spec) -> list[str]:
    return [name for name in spec.readouts if name != "nme" or spec.memory != "none"]  # means need exemplars
