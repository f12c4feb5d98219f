"""Where files are read, and by which commands: the lines that cases are made of."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from fuzz.bench import QUICK, Case
from helpers import hostile


@dataclass(frozen=True)
class Line:
    """A command, the parts of the base that it needs, and what it may do."""

    words: str
    parts: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    runnable: str = "no"
    patience: int = 1

    def case(self, kind: str, files: dict[str, bytes | str], stdout: str | None = None) -> Case:
        words = tuple(self.words.split())
        return Case(kind, words, files, self.parts, self.writable, self.runnable, stdout, self.patience)


RUN = f"run icarl --data HERE/photos --base 2 --increment 2 {' '.join(QUICK)} --device cpu"
TABLES = [
    Line(f"table run {more}".strip(), ("run",))
    for more in ("", "--format markdown", "--format latex", "--format csv", "--by-task",
                 "--by-task --format csv", "--forgetting --paper --over-orders", "--recipe table6",
                 "--paper --coverage")
]  # fmt: skip
REPORT = Line("report run -o out/page.html", ("run",), ("out",))
FIGURES = Line("report run -o out/page.html --figures out/figures", ("run",), ("out",), patience=6)
RESUME = Line(f"{RUN} --out run --resume", ("run", "photos", "cache"), ("run", "cache"))
PREDICT = Line("predict run photos/0/0.png", ("run", "photos"))
PREDICT_JSON = Line("predict run photos --json --top 3 --readout nme", ("run", "photos"))
LEARN = Line("learn run more --epochs 1 --device cpu --out made", ("run", "more"), ("made", "cache"))
LEARN_HELP = Line("learn run --help", ("run",))
EVALUATE = Line("evaluate run photos --json -o out/page.html", ("run", "photos"), ("out",))
EXPORT = Line("export run --onnx out/model.onnx", ("run",), ("out",), patience=6)
CONFIG = Line(
    "run --config config.yaml --data-cache HERE/cache --dry-run",
    ("config.yaml", "photos", "cache"), ("cache",), "once said",
)  # fmt: skip
CONFIG_HELP = Line("run --config config.yaml --help", ("config.yaml",))
RECIPE = Line("grid recipe.yaml --dry-run", ("recipe.yaml", "photos"), ("cache",), "once said")
GRID = Line("grid recipe.yaml --out G --dry-run", ("recipe.yaml", "photos"))
KEPT = Line("grid columns --kept run --out G --dry-run", ("run",))
PYCIL = Line("run --pycil pycil.json --dry-run", ("pycil.json",), runnable="once said")
CSV = Line("data check photos.csv --image-size 8 --counts", ("photos.csv", "photos"), ("cache",))
CSV_RUN = Line(
    "run replay --data photos.csv --image-size 8 --backbone tiny --memory 4 --dry-run",
    ("photos.csv", "photos"), ("cache",),
)  # fmt: skip
CHECK = Line("data check HERE/photos --image-size 8", ("photos", "cache"), ("cache",))
ORDER = Line(f"{RUN} --order order --dry-run", ("photos", "order"), ("cache",))
IMAGE = Line("predict run odd.png", ("run",))
WEIGHTS = Line(f"{RUN} --weights weights.pth --dry-run", ("photos", "cache"), ("cache",))
SAFETENSORS = Line(f"{RUN} --weights weights.safetensors --dry-run", ("photos", "cache"), ("cache",))

GRID_RUN = "G/none-epochs-1-seed1"
READERS: dict[str, list[Line]] = {  # a place where a file is read, and the commands that read it
    "run/result.json": [*TABLES[:3], KEPT, REPORT, FIGURES, RESUME, PREDICT],
    "run/model.json": [PREDICT, PREDICT_JSON, LEARN, LEARN_HELP, EXPORT],
    "run/model.safetensors": [PREDICT, LEARN],
    "run/exemplars.safetensors": [LEARN],
    "run/judged.safetensors": [LEARN, EVALUATE],
    "run/config.yaml": [RESUME, LEARN],
    "run/log.jsonl": [RESUME],
    "run/.lock": [RESUME],
    "run/checkpoint": [RESUME],
    "run/checkpoint/²": [RESUME],
    "config.yaml": [CONFIG, CONFIG_HELP],
    "recipe.yaml": [RECIPE],
    f"{GRID_RUN}/result.json": [GRID],
    f"{GRID_RUN}/config.yaml": [GRID],
    "pycil.json": [PYCIL],
    "photos.csv": [CSV, CSV_RUN],
    "order": [ORDER],
    "odd.png": [IMAGE],
    "weights.pth": [WEIGHTS],
    "weights.safetensors": [SAFETENSORS],
    "photos/0/1.png": [CHECK, EVALUATE],
    "photos/5": [CHECK],
    "cache/*/about.json": [CHECK],
    "cache/*/pixels.npy": [CHECK],
    "cache/*/labels.npy": [CHECK],
    "out/page.html": [REPORT],
    "out/model.onnx": [EXPORT],
}


def hostile_files() -> Iterator[Case]:
    """Every hostile file in every place, before every command that reads it."""
    for (place, lines), name in itertools.product(READERS.items(), hostile.PUT):
        for line in lines:
            yield line.case("hostile file", {place: name})


def full_disks() -> Iterator[Case]:
    """Every command whose standard output finds no room."""
    for line in dict.fromkeys(line for lines in READERS.values() for line in lines):
        yield line.case("full disk", {}, stdout="/dev/full")
