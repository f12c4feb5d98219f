"""`jioc learn`: the same weights as one run, the model replaced whole, and nothing else touched."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import jioc
from helpers.trees import write_digits
from jioc.cli.main import main
from jioc.config import values as settings
from jioc.errors import Refused
from jioc.resolve.derive import resolve
from jioc.training.model import TENSORS

QUICK = ["--backbone", "tiny", "--mean", "0.3", "--std", "0.4"]
QUICK += ["--memory", "24", "--epochs", "2", "--device", "cpu"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`all`, `six` and `two`, folders of digits; `run`, a model of the six."""
    where = tmp_path_factory.mktemp("learn")
    write_digits(where / "six", "012345", 20)
    write_digits(where / "two", "67", 20)
    write_digits(where / "all", "01234567", 20)
    (where / "order").write_text("0 1 2 3 4 5 6 7")
    (where / "order6").write_text("0 1 2 3 4 5")
    split = ["--order", str(where / "order6"), "--base", "4", "--increment", "2"]
    assert (
        main(["run", "icarl", "--data", str(where / "six"), *split, *QUICK, "--out", str(where / "run")]) == 0
    )
    return where


@pytest.fixture
def run(place: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(place / "run", tmp_path / "run"))


def test_what_the_first_classes_settled_stays_with_other_epochs(
    place: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = json.loads((run / "model.json").read_bytes())
    config = resolve(settings.make(method="bic", data="cifar100", second={"epochs": 3}))
    (run / "model.json").write_text(json.dumps(about | {"config": settings.plain(config)}))
    asked: list[settings.Config] = []

    def teach(source: Path, folder: Path, config: settings.Config, *_: Any) -> Any:
        asked.append(config)
        raise Refused("enough")

    monkeypatch.setattr("jioc.cli.learn.teach", teach)
    assert main(["learn", str(run), str(place / "two"), "--epochs", "17"]) == 2
    later = {"epochs": 17, "milestones": (6, 10, 14)}
    assert asked == [config.model_copy(update={"later": config.later.model_copy(update=later)})]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(f.relative_to(folder)): f.read_bytes()
        for f in folder.rglob("*")
        if f.is_file() and f.name != ".lock"
    }


def models(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name in ("model.json", *TENSORS)}


def test_learning_that_diverges_in_its_last_step_leaves_the_model_as_it_was(
    place: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(run)
    one_step = ["--lr", "1e9", "--epochs", "1", "--batch-size", "500", "--device", "cpu"]
    assert main(["learn", str(run), str(place / "two"), *one_step]) == 1
    assert "not finite, so training has diverged" in capsys.readouterr().err
    assert contents(run) == before


def test_a_run_and_learning_on_give_the_weights_of_one_run(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    split = ["--order", str(place / "order"), "--base", "4", "--increment", "2"]
    whole = tmp_path / "whole"
    assert main(["run", "icarl", "--data", str(place / "all"), *split, *QUICK, "--out", str(whole)]) == 0
    before = contents(run)
    capsys.readouterr()
    assert main(["learn", str(run), str(place / "two"), "--device", "cpu"]) == 0
    captured = capsys.readouterr().out
    new = json.loads((whole / "result.json").read_bytes())["tasks"][-1]["cnn"]["new"]
    assert "24 exemplars of 6 classes; images of new ones: 6 (16), 7 (16)" in captured
    assert "of 24 test images of 6 old classes and 8 of new ones, right among all 8 classes" in captured
    judged = json.loads(before["result.json"])["tasks"][-1]["cnn"]["all"]
    assert f"(before {judged:5.2f})   new {new:5.2f}\n" in captured
    after = contents(run)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {*models(run), "learnt/result.json"} and before.keys() <= after.keys()
    assert after["model.safetensors"] == (whole / "model.safetensors").read_bytes()
    assert after["exemplars.safetensors"] == (whole / "exemplars.safetensors").read_bytes()
    mine, theirs = (jioc.load(folder).judged for folder in (run, whole))
    assert all(np.array_equal(a, b) for a, b in zip(mine.tests, theirs.tests, strict=True))
    assert np.array_equal(mine.trained, theirs.trained) and len(mine.trained) == 128
    assert jioc.load(run).classes == list("01234567")
    assert str(place) not in before["model.json"].decode() + after["model.json"].decode()


def test_a_run_whose_result_was_lost_leaves_the_model_that_has_learnt_on(
    place: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["learn", str(run), str(place / "two"), "--epochs", "1", "--device", "cpu"]) == 0
    before = contents(run)
    (run / "result.json").unlink()
    assert main(["run", "--config", str(run / "config.yaml"), "--out", str(run), "--resume"]) == 0
    assert contents(run) == before
    assert "the model here has learnt on since this run ended; it stays as it is" in capsys.readouterr().err


def test_elsewhere_with_other_settings(place: Path, run: Path, tmp_path: Path) -> None:
    before = contents(run)

    def learnt(name: str, *words: str) -> dict[str, bytes]:
        out = tmp_path / name
        assert (
            main(["learn", str(run), str(place / "two"), "--device", "cpu", "--out", str(out), *words]) == 0
        )
        return models(out)

    plain, again, longer = learnt("a"), learnt("b"), learnt("e", "--epochs", "3")
    seeded, reseeded = learnt("c", "--seed", "5"), learnt("d", "--seed", "5")
    assert plain == again and seeded == reseeded
    assert len({c["model.safetensors"] for c in (plain, seeded, longer)}) == 3
    assert json.loads(longer["model.json"])["config"]["later"]["epochs"] == 3
    bare = learnt("f", "--no-keep-exemplars")
    assert "exemplars.safetensors" not in bare and bare["model.safetensors"] == plain["model.safetensors"]
    assert contents(run) == before
    assert main(["learn", str(tmp_path / "f"), str(place / "two")]) == 2


@pytest.mark.parametrize("kind", ["cosine", "expanding"])
def test_models_of_other_methods_learn_on_too(kind: str, place: Path, tmp_path: Path) -> None:
    method = {"cosine": "coil", "expanding": "der"}[kind]
    words = ["--data", str(place / "six"), "--tasks", "2", *QUICK, "--coordinate", "jioc"]
    assert main(["run", method, *words, "--out", str(tmp_path / "r")]) == 0
    assert main(["learn", str(tmp_path / "r"), str(place / "two"), "--device", "cpu", "--epochs", "1"]) == 0
    assert len(jioc.load(tmp_path / "r", to_learn=True).predict(place / "two" / "6" / "1.png")) == 1


def test_known_classes_are_refused_or_added(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = write_digits(tmp_path / "more", "589", 25)
    assert main(["learn", str(run), str(more), "--device", "cpu"]) == 2
    assert (
        "already learnt: '5'; beside new classes, --known add uses their new images too, and"
        in capsys.readouterr().err
    )
    words = ["--known", "add", "--memory", "400", "--epochs", "1", "--device", "cpu"]
    assert main(["learn", str(run), str(more), *words]) == 0
    learner = jioc.load(run, to_learn=True)
    assert learner.classes == list("01234589") and learner.exemplars is not None
    held = [{image.tobytes() for image in e} for e in learner.exemplars]
    again = 4 + 20 - len(held[5])  # of the 20 new images to train on, those that were exemplars
    assert again and [len(e) for e in learner.exemplars] == [4, 4, 4, 4, 4, len(held[5]), 20, 20]
    assert f"among the exemplars already, and not added again: {again}\n" in capsys.readouterr().err


def test_a_class_is_known_however_its_accents_are_stored_and_an_exemplar_under_another_name_is_told(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    joined, apart = "B\u00e4r", "Ba\u0308r"
    about = (run / "model.json").read_text()
    for kept, given in [(joined, apart), (apart, joined)]:
        (run / "model.json").write_text(about.replace('"5"', f'"{kept}"'))
        more = tmp_path / kept
        shutil.copytree(place / "six" / "5", more / given)
        shutil.copytree(place / "six" / "4", more / "vier")
        out = tmp_path / f"{kept}-on"
        words = ["learn", str(run), str(more), "--epochs", "1", "--device", "cpu", "--out", str(out)]
        assert main(words) == 2
        assert capsys.readouterr().err.startswith(f"jioc: already learnt: {joined!r}; beside new classes")
        assert main([*words, "--known", "add"]) == 0
        assert jioc.load(out).classes == [*"01234", kept, "vier"]
        told = (
            "an image of class 'vier' is an exemplar of '4' (and 3 more such): one of the two labels is wrong"
        )
        assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{run}"], "jioc learn needs a model and a folder of class folders"),
        ([], "jioc learn needs a model and a folder"),
        (["{run}", "{two}x"], "there is no folder"),
        (["{run}", "{two}x", "--known", "add"], "jioc: there is no folder"),
        (["nowhere", "{two}"], "there is no model in 'nowhere'"),
        (["{run}", "{two}", "--known", "ad"], "unknown value of --known 'ad'; did you mean 'add'?"),
        (
            ["{run}", "{two}", "--memory", "24", "--memory-per-class", "3"],
            "--memory and --memory-per-class exclude",
        ),
        (["{run}", "{two}", "--backbone", "tiny"], "unknown option '--backbone'"),
        (
            ["{run}", "{two}", "--method", "der"],
            "--method 'der' does not fit: the method of this model is 'icarl'",
        ),
        (["{run}", "{two}", "--epochs", "0"], "--epochs: '0' is refused"),
        (["{run}", "{two}", "--beta1", "0.5"], "unknown option '--beta1'"),
        (["{run}", "{two}", "--memory", "7"], "--memory 7 leaves no exemplar for each of 8 classes"),
        (["{run}", "{two}", "--out", "{two}"], "is taken; choose another --out"),
        (
            ["{run}", "{run}", "--out", "{new}"],
            "holds no image to train on|is not an image|no usable training image",
        ),
        (["{run}", "{six}", "--known", "add", "--out", "{new}"], "there is no new class"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_written(
    words: list[str],
    sentence: str,
    place: Path,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import re

    before, new = contents(run), tmp_path / "new"
    named = {"run": run, "two": place / "two", "six": place / "six", "new": new}
    assert main(["learn", *(word.format(**named) for word in words)]) == 2
    err = capsys.readouterr().err
    assert re.search(sentence, err) and "Traceback" not in err
    assert contents(run) == before and not new.exists()


def test_images_of_another_kind_than_the_model_sees_are_told(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grey, coloured, one = (
        place / "two",
        shutil.copytree(place / "two", tmp_path / "coloured"),
        tmp_path / "run-rgb",
    )
    for file in coloured.rglob("1.png"):
        Image.open(file).convert("RGB").save(file)
    words = ["--data", str(place / "six"), "--tasks", "1", "--colour", "rgb", *QUICK]
    assert (
        main(["run", "icarl", *words, "--mean", "0.3,0.3,0.3", "--std", "0.4,0.4,0.4", "--out", str(one)])
        == 0
    )
    capsys.readouterr()
    told = {
        (run, grey): "",
        (run, coloured): "note: the model sees images in grey, and some of these are stored in colour\n",
        (one, grey): "note: the model sees images in colour, and all of these are grey\n",
        (one, coloured): "",
    }
    for i, ((model, images), note) in enumerate(told.items()):
        out = ["--out", str(tmp_path / f"learnt{i}")]
        assert main(["learn", str(model), str(images), "--epochs", "1", "--device", "cpu", *out]) == 0
        assert capsys.readouterr().err == note


def test_a_python_files_arrays_are_learnt_and_one_class_is_as_usual_as_many(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "arrays.py"
    for label in ("6", "5"):
        file.write_text(
            "from PIL import Image; import numpy as np, pathlib\n"
            f"paths = pathlib.Path({str(place / 'two' / '6')!r}).iterdir()\n"
            "x = np.stack([np.asarray(Image.open(p)) for p in paths])\n"
            f"y = np.array([{label!r}] * len(x))\n"
            "load = lambda: (x[4:], y[4:], x[:4], y[:4])\n"
        )
        assert main(["learn", str(run), str(file), "--device", "cpu", "--epochs", "1"]) == (
            0 if label == "6" else 2
        )
    assert "already learnt: '5'" in capsys.readouterr().err and jioc.load(run).classes == list("0123456")
    seven = write_digits(tmp_path / "one", "7", 10)
    assert main(["learn", str(run), str(seven), "--device", "cpu", "--epochs", "1"]) == 0
    assert "one class" not in capsys.readouterr().err
    assert main(["data", "check", str(seven)]) == 0
    assert "there is one class, '7'; classes are the folders directly inside" in capsys.readouterr().err


def test_an_unfinished_run_is_finished_first(
    place: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = json.loads((run / "result.json").read_bytes())
    (run / "result.json").write_text(json.dumps(result | {"complete": False}))
    before = contents(run)
    assert main(["learn", str(run), str(place / "two")]) == 2
    assert "is not finished; end it with --resume, or give --out" in capsys.readouterr().err
    words = ["--out", str(run.parent / "new"), "--device", "cpu", "--epochs", "1"]
    assert main(["learn", str(run), str(place / "two"), *words]) == 0
    assert capsys.readouterr().err == "note: the run is not finished: after task 2 it knows 6 of 6 classes\n"
    assert contents(run) == before


def test_one_process_writes_to_a_folder(place: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jioc.training.store import locked

    with locked(run):
        assert main(["learn", str(run), str(place / "two")]) == 2
    assert "another process is writing to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGHUP, 75)]
)
def test_stopped_while_it_learns_the_model_is_as_it_was(
    number: signal.Signals,
    status: int,
    place: Path,
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = contents(run)
    monkeypatch.setattr("jioc.methods.icarl.ICaRL.before_step", lambda *a: os.kill(os.getpid(), number))
    assert main(["learn", str(run), str(place / "two"), "--device", "cpu"]) == status
    assert capsys.readouterr().err.endswith("jioc: stopped; the model is as it was\n")
    assert contents(run) == before


def test_what_was_killed_while_it_wrote_elsewhere_can_be_said_again(
    place: Path, run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for left in (".lock", "model.next.safetensors", ".exemplars.next.safetensors.7.partial"):
        (out / left).write_bytes(b"")
    words = ["learn", str(run), str(place / "two"), "--device", "cpu", "--epochs", "1", "--out", str(out)]
    assert main(words) == 0
    assert sorted(os.listdir(out)) == sorted([".lock", "learnt", "model.json", *TENSORS])
    assert main(words) == 2


def test_a_disk_that_fails_leaves_the_model(
    place: Path, run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(run)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jioc.training.model.write", full)
    assert main(["learn", str(run), str(place / "two"), "--device", "cpu", "--epochs", "1"]) == 1
    assert "cannot be kept in" in capsys.readouterr().err and contents(run) == before


def test_a_model_from_before_an_option_existed_learns_with_its_default(place: Path, run: Path) -> None:
    about = json.loads((run / "model.json").read_bytes())
    del about["config"]["options"]["kd_weight"], about["config"]["momentum"]
    (run / "model.json").write_text(json.dumps(about))
    assert main(["learn", str(run), str(place / "two"), "--device", "cpu", "--epochs", "1"]) == 0
    assert json.loads((run / "model.json").read_bytes())["config"]["options"]["kd_weight"] == 1.0


def test_what_learning_costs_the_old_classes_is_told_and_kept(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(place / "six"), "--tasks", "1", *QUICK, "--first-epochs", "30"]
    assert main(["run", "finetune", *words, "--out", str(tmp_path / "r")]) == 0  # it forgets
    model = jioc.load(tmp_path / "r")
    known = model.row
    assert known is not None and known.cnn.all is not None and known.cnn.all > 60
    learn = ["learn", str(tmp_path / "r"), str(place / "two"), "--device", "cpu", "--epochs", "15"]
    capsys.readouterr()
    assert main(learn) == 0
    after = jioc.load(tmp_path / "r")
    tests = np.concatenate(model.judged.tests)
    y = np.repeat([*model.classes], [len(images) for images in model.judged.tests])
    old = 100 * float((np.array(after.predict(tests)) == y).mean())
    row = json.loads((tmp_path / "r" / "learnt" / "result.json").read_bytes())["tasks"][-1]["cnn"]
    assert row["before"] == known.cnn.all and row["old"] == old < known.cnn.all - 20
    assert row["all"] == pytest.approx((6 * old + 2 * row["new"]) / 8) and row["new"] > old
    captured = capsys.readouterr().out
    figures = f"all {row['all']:5.2f}   old {old:5.2f} (before {known.cnn.all:5.2f})   new {row['new']:5.2f}"
    assert "of 24 test images of 6 old classes and 8 of new ones, right among all 8 classes" in captured
    assert f"  cnn   {figures}\n" in captured
    assert main(["table", str(tmp_path / "r"), "--by-task"]) == 0
    assert f"{row['all']:.2f}" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "r"), "-o", str(tmp_path / "page.html")]) == 0


def test_who_keeps_no_test_images_is_told_that_nothing_is_known(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learn = ["learn", str(run), str(place / "two"), "--device", "cpu", "--epochs", "1"]
    assert main([*learn, "--keep-test", "0", "--out", str(tmp_path / "none")]) == 0
    assert "(before " in capsys.readouterr().out
    kept = jioc.load(tmp_path / "none").judged
    assert not any(map(len, kept.tests)) and not len(kept.trained) and len(kept.rows) == 3
    nine = write_digits(tmp_path / "nine", "9", 5)
    for file in ("none", "run"):  # one that keeps none, and a copy without its judged.safetensors
        (run / "judged.safetensors").unlink(missing_ok=True)
        words = ["learn", str(tmp_path / file), str(nine), "--device", "cpu", "--epochs", "1"]
        assert main(words) == 0
        captured = capsys.readouterr().out
        assert "all     –   old     –   new" in captured
        assert "keeps no test image of old classes, so what it has forgotten is not known" in captured
        lost = "figures of its earlier tasks were not kept" in captured
        assert lost == (file == "run") == (not (tmp_path / file / "learnt").exists())
    assert not any(map(len, jioc.load(tmp_path / "none").judged.tests))  # it still keeps none


def test_a_test_image_that_is_trained_on_is_one_no_longer(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = jioc.load(run).judged.tests
    more = write_digits(tmp_path / "more" / "train", "6", 5).parent
    shutil.copytree(more / "train", more / "test")
    (more / "test" / "6" / "0.png").rename(more / "test" / "6" / "other.png")
    shutil.copytree(place / "two" / "7", more / "test" / "6", dirs_exist_ok=True)
    for part, image in (("train", tests[5][0]), ("test", tests[5][1])):
        (more / part / "5").mkdir()
        Image.fromarray(image[0]).save(more / part / "5" / "a.png")
    words = ["--known", "add", "--device", "cpu", "--epochs", "1"]
    assert main(["learn", str(run), str(more), *words]) == 0
    out, err = capsys.readouterr()
    assert "test images that are among the new training images, and no longer used: 1\n" in err
    assert "of 23 test images of 6 old classes" in out  # and the one given twice counts once
    assert len(jioc.load(run).judged.tests[5]) == 3


def test_a_link_in_the_place_of_the_figures_is_refused(
    place: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    (run / "learnt").symlink_to(tmp_path / "other")
    before = contents(run)
    assert main(["learn", str(run), str(place / "two"), "--device", "cpu"]) == 2
    assert "learnt' is a link, and not used" in capsys.readouterr().err
    assert contents(run) == before and not os.listdir(tmp_path / "other")
