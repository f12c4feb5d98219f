"""`jioc learn`: the class folders of a folder become a saved model's next task. Torch only once the words are right."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jioc.cli.console import Console, percent, printable
from jioc.cli.flags import Parser, add_config, idle, said
from jioc.config import schema as settings
from jioc.config.schema import Config
from jioc.data import catalogue
from jioc.data.images import listing
from jioc.errors import Failed, Interrupted, Refused, unknown
from jioc.methods.specs import Spec, find, of_model
from jioc.resolve.derive import merged, resolve, total_epochs
from jioc.stopping import signals, until
from jioc.text import coordinated, counted
from jioc.training.store import locked, model_folder, readouts, unfinished

if TYPE_CHECKING:
    from jioc.training.learner import Learner

SETTLED = frozenset({
    "data", "data_dir", "image_size", "canvas", "colour", "mean", "std", "flip", "long_tail", "long_tail_order",
    "holdout", "tasks", "base", "increment", "task_sizes", "order", "order_seed", "backbone", "stem", "first",
    "checkpoint_every",
})  # fmt: skip
"""What a model's first classes have settled for those to come, or what only a run of many tasks has."""

KNOWN = ("refuse", "add")


def main(words: list[str]) -> int:
    source, method, values = _before_the_flags(words)
    spec = find(method)
    found = _parser(spec, _resolved(values) if values else None).parse(words)
    if source is None or found.folder is None:
        raise Refused("jioc learn needs a model and a folder of class folders")
    if found.known not in KNOWN:
        raise unknown("value of --known", found.known, KNOWN)
    own = vars(found)
    folder, out, known = own.pop("folder"), own.pop("out"), own.pop("known")
    own.pop("model")
    own["method"] = method
    given = said(found, spec)
    config = _resolved(merged(values, given) | {name: values[name] for name in SETTLED & values.keys()})
    notes = idle(given, config)
    if not folder.exists():
        raise Refused(f"there is no folder {str(folder)!r}")
    if known == "refuse":
        _refuse_known(source, folder)
    target = _target(source, out)
    fresh = not target.exists()
    lock = _held(target)
    try:
        with LearnConsole(config, target, folder) as console, signals() as stop:
            for text in filter(None, [unfinished(source), *notes]):
                console.note({"text": text})
            learner = taught(source, folder, config, known, not given.keys().isdisjoint(settings.SEEDS), console, stop)
            keep(target, learner if config.keep_exemplars else replace(learner, exemplars=None))
            console.kept(learner)
    except Interrupted:
        raise Interrupted("stopped; the model is as it was") from None
    finally:
        lock.close()
        if fresh and not (target / "model.json").exists():
            shutil.rmtree(target)
    return 0


def taught(
    source: Path, folder: Path, config: Config, known: str, reseed: bool, tell: Any = None, stop: Any = None
) -> "Learner":
    """The model of a folder after the classes of another."""
    from jioc.training.model import load

    learner = load(source, to_learn=True, device=config.device, method=config.method)
    dataset = images_for(learner, folder, config, until(stop, tell))
    config = config.model_copy(update={"data": str(folder)})
    return learner.learn(dataset, config=config, known=known, reseed=reseed, callback=tell, stop=stop)  # type: ignore[arg-type]


def images_for(learner: "Learner", folder: Path, config: Config, tell: Any) -> Any:
    """The images of a folder in the shape that the model keeps."""
    from jioc.data.dataset import load
    from jioc.data.images.inputs import picture_form

    side, grey = picture_form(learner.look.shape)
    reading = {
        "data": str(folder.absolute()),
        "image_size": learner.look.size or side,
        "canvas": side,
        "colour": "grey" if grey else "rgb",
        "mean": None,
        "std": None,
        "flip": None,
    }
    dataset = load(config.model_copy(update=reading), tell, more=True)
    if dataset.record.get("coloured") is grey:
        told = "in grey, and some of these are stored in colour" if grey else "in colour, and all of these are grey"
        tell("note", {"text": f"the model sees images {told}"})
    spelt = {listing.composed(name): name for name in learner.classes}  # an older model's may be stored otherwise
    return replace(dataset, classes=[spelt.get(name, name) for name in dataset.classes])


def keep(target: Path, learner: "Learner") -> None:
    from jioc.training.model import save

    try:
        save(target, learner)
    except OSError as error:
        raise Failed(f"the model cannot be kept in {str(target)!r}: {error.strerror or error}") from None


def _before_the_flags(words: list[str]) -> tuple[Path | None, str, dict[str, Any]]:
    """The model's folder, its method and its settings, which say what flags there are and their defaults."""
    found = _parser(find("icarl"), None, add_help=False).parse_known_args(words)[0]
    if found.model is None:
        return None, "icarl", {}
    folder = model_folder(found.model)
    about = _about(folder)
    values = {k: v for k, v in about["config"].items() if k not in settings.MACHINE}
    origin = about.get("method")
    was = origin.get("sha256") if isinstance(origin, dict) else None
    method = of_model(str(values.get("method")), found.method, was)
    return folder, method, values | {"method": method}


def _resolved(values: dict[str, Any]) -> Config:
    """The settings with all that is not said; the number of classes is looked at when they are known."""
    config = settings.make(**values)
    return resolve(config, catalogue.in_memory(config.data, 1, config.image_size or 8))


def _about(folder: Path) -> dict[str, Any]:
    """What model.json says, not yet checked; where it says nothing of use, the refusal."""
    try:
        about = json.loads((folder / "model.json").read_bytes())
        if isinstance(about["config"], dict) and isinstance(about["classes"], list):
            return about
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    from jioc.training.model import read_about

    return read_about(folder).model_dump()


def _refuse_known(source: Path, folder: Path) -> None:
    """Before a single image is decoded; of arrays once they are there."""
    entry = catalogue.find(str(folder.absolute()), 8)
    known = {listing.composed(str(name)) for name in _about(source)["classes"]}
    again = [name for name in listing.class_names(folder) if name in known] if entry.module == "image_files" else []
    if again:
        raise Refused(f"already learnt: {', '.join(map(repr, again))}; --known add uses their new images too")


def _parser(spec: Spec, usual: Config | None, add_help: bool = True) -> Parser:
    told = "The defaults shown are the model's." if usual else "With a model, the defaults shown are its own."
    told = f"Teach a saved model the class folders in FOLDER as its next task. {told}"
    parser = Parser("jioc learn", description=told, add_help=add_help)
    parser.add_argument("model", nargs="?", type=Path, help="a run's folder, or a copy of its model")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="of class folders; a csv of path and label; or a Python file"
    )
    parser.add_argument("--out", type=Path, help="keep the new model there; by default it takes the old one's place")
    parser.add_argument(
        "--known", default="refuse", metavar="{refuse,add}",
        help="classes that the model knows already: refuse, or add their new images to its exemplars (refuse)",
    )  # fmt: skip
    parser.add_argument("--method", metavar="FILE", help="the Python file of a method of your own, which is run")
    add_config(parser, spec, usual, SETTLED)
    parser.usage = "jioc learn MODEL FOLDER [--out DIR] [options]"
    return parser


def _target(source: Path, out: Path | None) -> Path:
    """Where the new model is to be; nothing that is there and is not the model itself is touched."""
    if out is None or out.resolve() == source.resolve():
        if (source / "config.yaml").exists() and not _complete(source):
            raise Refused(f"the run in {str(source)!r} is not finished; end it with --resume, or give --out")
        return source
    if out.exists() and (not out.is_dir() or not all(map(_begun, out.iterdir()))):
        raise Refused(f"{str(out)!r} is taken; choose another --out")
    return out


def _begun(path: Path) -> bool:
    """Whether learning that was killed before its model was whole may have left this."""
    return path.name == ".lock" or path.name.endswith((".partial", ".next.safetensors"))


def _complete(folder: Path) -> bool:
    try:
        return json.loads((folder / "result.json").read_bytes())["complete"] is True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _held(target: Path) -> IO[bytes]:
    try:
        target.mkdir(parents=True, exist_ok=True)
        return locked(target)
    except OSError as error:
        raise Refused(f"{str(target)!r} cannot be written to: {error.strerror}") from None


class LearnConsole(Console):
    """The callback of `jioc learn`."""

    def __init__(self, config: Config, target: Path, folder: Path):
        super().__init__(config, target)
        self.source = folder

    def start(self, what: dict[str, Any]) -> None:
        c, self.sizes = self.config, what["sizes"]
        old = sum(self.sizes[:-1])
        title = coordinated(self.spec.title, c.coordination.coordinate)
        new = zip(what["classes"][old:], what["counts"][old:], strict=True)
        named = printable(", ".join(f"{name} ({n:,})" for name, n in new))
        print(f"{title}, {c.backbone}, {what['device']} ({what['precision']})")
        exemplars = counted(sum(what["counts"][:old]), "exemplar")
        print(f"{exemplars} of {counted(old, 'class')}; images of new ones: {named}")
        self.bar = self.bars.add_task("", total=total_epochs(c, self.spec, what["done"]), told="")

    def task(self, row: dict[str, Any]) -> None:
        figures = "   ".join(f"{name} {percent(of['new']).strip()}" for name, of in readouts(row).items())
        print(f"task {row['task']}: of the new classes' test images, right among all classes: {figures}", flush=True)

    def kept(self, learner: "Learner") -> None:
        self.bars.stop()
        print(f"{counted(len(learner.classes), 'class')}; kept in {self.folder}")
