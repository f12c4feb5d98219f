"""`jioc learn`: teach a saved model the class folders of a folder."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jioc.cli.console import Console
from jioc.cli.flags import OWN_METHOD, Parser, add_settings, given_values, named_path, wants_help
from jioc.config import Config, Values, at, flat, index, make, plain, upgraded
from jioc.data import catalogue
from jioc.data.find import find_dataset, no_folder
from jioc.data.images import listing
from jioc.errors import Failed, Interrupted, Refused, os_errors, refuse_if, refuse_unknown
from jioc.events import Note, Start
from jioc.files import read_json
from jioc.methods import Spec, find_method, of_model
from jioc.report.lines import learnt_lines
from jioc.resolve import validate
from jioc.resolve.derive import resolve
from jioc.resolve.overlay import overlay
from jioc.results import TaskRow
from jioc.stopping import signals, until
from jioc.text import BYTES, coordinated, counted, printable
from jioc.training.notes import already_learnt
from jioc.training.store import account_folder, locked, model_folder, unfinished

if TYPE_CHECKING:
    from jioc.training.learner import Learner

COMMON = (
    "--out",
    "--known",
    "--method",
    "--memory",
    "--epochs",
    "--lr",
    "--coordinate",
    "--seed",
    "--device",
)


def main(argv: list[str]) -> int:
    source, method, values = _model(argv)
    spec = find_method(method)
    usual = flat(plain(_resolved(values))) if values and wants_help(argv) else {}
    args = build_parser(spec, usual).parse(argv)
    if source is None or args.folder is None:
        raise Refused("jioc learn needs a model and a folder of class folders")
    refuse_unknown("value of --known", args.known, ("refuse", "add", "skip"))
    given = given_values(args, spec.options)
    config = _resolved(overlay(values, given) | _fixed(values))
    notes = validate.unused(config)
    if not args.folder.exists():
        raise no_folder(args.folder)
    if args.known == "refuse":
        _refuse_known(source, args.folder)
    target = _target(source, args.out)
    account_folder(target)
    fresh = not target.exists()
    with os_errors(f"{str(target)!r} cannot be written to"):
        target.mkdir(parents=True, exist_ok=True)
        lock = locked(target)
    from jioc.training.model import save

    try:
        with lock, LearnConsole(config, target) as console, signals() as stop:
            for text in filter(None, [unfinished(source), *notes]):
                console(Note(text))
            reseed = not given.keys().isdisjoint(index.SEEDS)
            learner = teach(source, args.folder, config, args.known, reseed, console, stop)
            with os_errors(f"the model cannot be kept in {str(target)!r}", Failed):
                save(target, learner if config.keep_exemplars else replace(learner, exemplars=None))
            console.learnt(learner, _keep_account(target, learner))
    except Interrupted as error:
        error.args = ("stopped; the model is as it was",)
        raise
    finally:
        if fresh and not (target / "model.json").exists():
            shutil.rmtree(target)
    return 0


def teach(
    source: Path, folder: Path, config: Config, known: str, reseed: bool, tell: Any = None, stop: Any = None
) -> "Learner":
    """Load the model of a folder and let it learn the classes of another."""
    from jioc.training.load import load_model

    learner = load_model(source, to_learn=True, device=config.device, method=config.method)
    dataset = images_for(learner, folder, config, until(stop, tell))
    earlier = Path(learner.config.data).name or learner.config.data
    config = config.model_copy(update={"data": f"{earlier} + {folder.resolve().name}"})
    taught = learner.learn(dataset, config=config, known=known, reseed=reseed, callback=tell, stop=stop)  # type: ignore[arg-type]
    if learner.unknown and tell is not None:
        tell(
            Note("the threshold for unknown images no longer fits; jioc evaluate --fit-unknown fits another")
        )
    return taught


def _keep_account(folder: Path, learner: "Learner") -> Path | None:
    """Keep the figures of all tasks where `jioc table` and `jioc report` find them; None if some are lost."""
    from jioc.training import account

    result = account.account(learner)
    if result is None:
        return None
    with os_errors(f"the model is kept, but its figures cannot be kept in {str(folder)!r}", Failed):
        return account.save(folder, result)


def images_for(learner: "Learner", folder: Path, config: Config, tell: Any) -> Any:
    """Load the images of a folder in the size and colours that the model takes."""
    from jioc.data.images.inputs import picture_form
    from jioc.data.load import load_dataset

    side, grey = picture_form(learner.preprocessing.shape)
    reading = {
        "data": str(folder.absolute()),
        "image_size": learner.preprocessing.size or side,
        "canvas": side,
        "colour": "grey" if grey else "rgb",
        "mean": None,
        "std": None,
        "flip": None,
    }
    dataset = load_dataset(config.model_copy(update=reading), tell, more=True)
    if dataset.record.get("coloured") is grey:
        in_grey = "in grey, and some of these are stored in colour"
        in_colour = "in colour, and all of these are grey"
        tell(Note(f"the model sees images {in_grey if grey else in_colour}"))
    known = {name.casefold(): name for name in learner.classes}
    for name in dataset.classes:
        if (other := known.get(name.casefold(), name)) != name and name not in learner.classes:
            tell(Note(listing.note_case(other, name)))
    spelling = {listing.normalise_name(name): name for name in learner.classes}
    return replace(dataset, classes=[spelling.get(name, name) for name in dataset.classes])


def _model(argv: list[str]) -> tuple[Path | None, str, Values]:
    """The model's folder, method and settings. They decide what flags there are, and their defaults."""
    args = build_parser(find_method("icarl"), {}, add_help=False).parse_known_args(argv)[0]
    if args.model is None:
        return None, "icarl", {}
    folder = model_folder(args.model)
    about = _about(folder)
    values = {k: v for k, v in upgraded(about["config"]).items() if k not in index.MACHINE}
    if "keep_test" in about:
        values["keep_test"] = about["keep_test"]  # who keeps no image of old classes keeps none of new ones
    method = of_model(values.get("method"), args.method, at(about, "method.sha256"))
    return folder, method, values | {"method": method}


def _fixed(values: Values) -> Values:
    """The settings that are fixed for all classes to come: those that `jioc learn` does not take."""
    taken = {path.partition(".")[0] for path in index.taken_by("learn")}
    return {name: value for name, value in values.items() if name not in {*taken, "method", "given"}}


def _resolved(values: Values) -> Config:
    """Fill in the settings; the number of classes is checked when they are known."""
    config = make(**values)
    return resolve(config, catalogue.in_memory(config.data, 1, config.image_size or 8))


def _about(folder: Path) -> Values:
    """Read model.json without checking it; refuse one that is damaged."""
    about = read_json(folder / "model.json")
    if isinstance(at(about, "config"), dict) and isinstance(at(about, "classes"), list):
        return about
    from jioc.training.model import read_about

    return read_about(folder).model_dump()


def _refuse_known(source: Path, folder: Path) -> None:
    """Refuse folders of known classes before an image is decoded. Arrays are checked once they are loaded."""
    files = find_dataset(str(folder.absolute())).source == "image_files"
    known = {listing.normalise_name(str(name)) for name in _about(source)["classes"]}
    again = [name for name in listing.class_names(folder) if name in known] if files else []
    refuse_if(again, already_learnt(again))


def build_parser(spec: Spec, usual: Values, add_help: bool = True) -> Parser:
    defaults = (
        "The defaults shown are the model's." if usual else "With a model, the defaults shown are its own."
    )
    parser = Parser(
        "jioc learn",
        f"Teach a saved model the class folders in FOLDER as its next task. {defaults}",
        usage="jioc learn MODEL FOLDER [--out DIR] [options]",
        common=COMMON,
        examples={
            "jioc learn runs/photos new-classes": "the model also knows the class folders of new-classes",
            "jioc learn runs/photos more --known add": "with new images of known classes, beside new ones",
            "jioc learn runs/photos new-classes --out runs/more": "leave the model as it is, save another",
        },
        add_help=add_help,
    )
    parser.add("model", nargs="?", type=named_path, help="a run's folder, or a copy of its model")
    parser.add(
        "folder",
        nargs="?",
        type=named_path,
        help="of class folders; a csv of path and label; or a Python file",
    )
    parser.add(
        "--out",
        type=named_path,
        metavar="DIR",
        help="save the new model there; by default it replaces the old one",
    )
    parser.add(
        "--known",
        default="refuse",
        metavar="{refuse,add,skip}",
        help="known classes beside new ones: refuse them, add their new images, or skip them (refuse)",
    )
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    add_settings(parser, spec, usual, index.taken_by("learn"))
    return parser


def _target(source: Path, out: Path | None) -> Path:
    """The folder of the new model. It is refused if it holds anything but the model itself."""
    if out is None or out.resolve() == source.resolve():
        complete = at(read_json(source / "result.json"), "complete") is True
        refuse_if(
            not complete and (source / "config.yaml").exists(),
            f"the run in {str(source)!r} is not finished; end it with --resume, or give --out",
        )
        return source
    names = [path.name for path in out.iterdir()] if out.is_dir() else [out.name] * out.exists()
    left = (".partial", ".next.safetensors")  # by learning that was killed before its model was complete
    others = [name for name in names if name != ".lock" and not name.endswith(left)]
    refuse_if(others, f"{str(out)!r} is taken; choose another --out")
    return out


class LearnConsole(Console):
    """The callback of `jioc learn`: prints its events."""

    def on_start(self, event: Start) -> None:
        c, old = self.config, sum(event.sizes[:-1])
        title = coordinated(self.spec.title, c.coordination.coordinate)
        new = zip(event.classes[old:], event.counts[old:], strict=True)
        names = printable(", ".join(f"{name} ({n:,})" for name, n in new))
        print(f"{title}, {c.backbone}, {event.device} ({event.precision})")
        images, classes = sum(event.counts[:old]), counted(old, "class")
        if self.spec.memory == "none":
            known = f"{classes} known" + (f", {counted(images, 'more image')} of them" if images else "")
        else:
            known = f"{counted(images, 'exemplar')} of {classes}"
        print(f"{known}; images of new ones: {names}")
        self.begin(event)

    def on_task(self, row: TaskRow) -> None:
        print("\n".join(learnt_lines(row)), flush=True)

    def learnt(self, learner: "Learner", account: Path | None) -> None:
        self.stop()
        lost = "the figures of its earlier tasks were not kept with it, so jioc table has none"
        where = f"; {lost}" if account is None else f"; jioc table and jioc report read {account}"
        print(
            printable(f"{counted(len(learner.classes), 'class')}; kept in {self.folder}{where}", keep=BYTES)
        )
