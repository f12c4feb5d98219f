"""A method in a file of its own: it runs, takes JIOC by a flag, and a file that is no method is refused."""

import hashlib
import inspect
import itertools
import json
import linecache
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jioc
import jioc.methods
from helpers.paths import ROOT
from jioc.cli.main import main
from jioc.errors import Interrupted, Refused
from jioc.losses import cross_entropy
from jioc.methods import specs
from jioc.report.runs import group, read
from jioc.training.engine import Engine
from jioc.training.run import run

EXAMPLE = ROOT / "examples" / "own_method.py"
QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]


@pytest.mark.parametrize(
    ("word", "terms"), [("none", {"cls", "features"}), ("jioc", {"cls", "features", "kd", "quiet"})]
)
def test_the_example_runs_and_takes_jioc(word: str, terms: set[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", str(EXAMPLE), *QUICK, "--coordinate", word, "--out", str(out)]) == 0
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert set(log[-1]["terms"]) == terms
    (shown,) = group(read([out]))
    assert shown.name == "Feature replay" + " + JIOC" * (word == "jioc") and shown.scene.endswith(
        ", epochs 2"
    )
    assert main(["run", "--config", str(out / "config.yaml"), "--out", str(tmp_path / "again")]) == 0
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "again" / "model.safetensors").read_bytes()


WRONG = """
from dataclasses import replace

import torch.nn.functional as F

import jioc


@jioc.register(replace(jioc.methods.SPECS["replay"], name="wrong", title="Wrong"))
class Wrong(jioc.Method):
    def loss(self, batch, out, old, task):
        return RETURNED
"""


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (
            '{"cls": F.cross_entropy(out.logits, batch.y)}',
            "the loss 'cls' has the shape (); one number per image is",
        ),
        ('{"cls": 1.0}', "the loss 'cls' is a float; one number per image is needed"),
        ("out.logits[:, 0]", "the loss of wrong returns Tensor; a dict of named terms is needed"),
        ("None", "the loss of wrong returns NoneType; a dict"),
        ("{}", "the loss of wrong returns an empty dict; a dict"),
        ("{0: out.logits[:, 0]}", "the loss of wrong names a term 0; a name is a word, such as 'cls'"),
        ('{"cls": batch.y}', "the loss 'cls' of wrong holds int64; floating-point numbers are needed"),
        (
            '{"cls": out.logits[:, 0].detach()}',
            "the loss of wrong has no gradient: no term depends on what is trained",
        ),
        ('{"ce": out.logits[:, 0]}', "input coordination weighs the term 'cls', and this loss has only ce"),
    ],
)
def test_a_loss_that_is_no_named_terms_of_single_images_is_refused(
    returned: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.py").write_text(WRONG.replace("RETURNED", returned))
    words = [*QUICK, "--coordinate", "jioc", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "wrong.py"), *words]) == 1
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1


WEIGHED = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy, distill


@jioc.register(replace(jioc.methods.SPECS["replay"], name="weighed", title="Weighed", distils=True))
class Weighed(jioc.Method):
    def loss(self, batch, out, old, task):
        terms = {"cls": cross_entropy(out.logits, batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits)
        return terms

    def weights(self, task):
        return WEIGHTS
"""


@pytest.mark.parametrize(
    ("weights", "words", "sentence"),
    [
        ("{'cls': 1.0, 'KD': 100.0}", [], "'KD', which its loss does not return; it returns 'cls', 'kd'\n"),
        (
            "{'Kd': 1, 'KD': 1}",
            ["--coordinate", "jioc"],
            "weights of weighed weigh 'KD', 'Kd', which its loss does not",
        ),
        ("{'cls': 0.5, 'kd': 2.0, 'quiet': 0.5}", [], ""),
        ("{'cls': 0.5, 'kd': 2.0, 'quiet': 0.5}", ["--coordinate", "jioc", "--host-kd", "drop"], ""),
    ],
)
def test_a_weight_without_its_term_is_refused_once_there_are_old_classes(
    weights: str, words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weighed.py").write_text(WEIGHED.replace("WEIGHTS", weights))
    words = [*QUICK, "--task-sizes", "8,2", "--epochs", "1", *words, "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "weighed.py"), *words]) == (1 if sentence else 0)
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == bool(sentence)
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {line["task"] for line in log} == (
        {1} if sentence else {1, 2}
    )  # before an epoch of the second was done


STAGED = """
import copy
from dataclasses import replace
from functools import partial

import jioc
from jioc.losses import cross_entropy


@jioc.register(replace(jioc.methods.SPECS["podnet"], name="staged", title="Staged", options=jioc.Spec.options))
class Staged(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def weights(self, task):
        return {"cls": WEIGHT}

    def tuning(self, batch, out, old, task):
        return {"TERM": cross_entropy(out.logits, batch.y)}

    def learn(self, task, data, fit):
        self.net.grow(task.n_new, self.generator)
        fit(self, task, data.with_memory(self.memory))
        if task.n_old:
            balanced = copy.copy(self.memory)
            balanced.update(data.classes, partial(data.features, self.net), data.generator, classes=task.n_old)
            fit(self, task, data.of(balanced.index), stage="second"HOW)
        self.remember(task, data)
        self.keep_teacher()
"""
BOTH = {"cls", "kd", "quiet"}


def staged(
    folder: Path, term: str = "cls", how: str = ", loss=self.tuning", weight: str = "1.0", **more: Any
) -> Path:
    """The folder of a run whose second stage is trained in that way."""
    folder.mkdir()
    source = STAGED.replace("TERM", term).replace("HOW", how).replace("WEIGHT", weight)
    (folder / "staged.py").write_text(source)
    values: dict[str, Any] = {"task_sizes": (8, 2), "memory": 40, "device": "cpu", "batch_size": 256}
    stages = {stage: {"epochs": 1, "lr": 0.1} for stage in ("first", "later", "second")}
    run(method=str(folder / "staged.py"), **values, **stages, **more, out=folder / "run")
    return folder / "run"


def keywords(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def logged(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("term", "how", "terms"),
    [
        ("cls", ", loss=self.tuning", {"cls"}),
        ("tune", ", loss=self.tuning", {"tune"}),
        ("cls", ", loss=self.tuning, coordination=self.coordination", BOTH),
        ("cls", "", BOTH),
        ("cls", ", loss=self.loss", BOTH),
        ("cls", ", coordination=None", {"cls"}),
    ],
)
def test_a_second_stage_with_a_loss_of_its_own_is_coordinated_where_that_is_asked_for(
    term: str, how: str, terms: set[str], tmp_path: Path
) -> None:
    log = logged(staged(tmp_path / "jioc", term, how, coordination={"coordinate": "jioc"}))
    assert [(line["stage"], set(line["terms"])) for line in log] == [
        ("first", {"cls"}),
        ("later", BOTH),
        ("second", terms),
    ]


def test_a_loss_that_is_given_is_not_multiplied_by_the_methods_weights(tmp_path: Path) -> None:
    """So it does not matter whether its term has a name that they weigh."""
    runs = [
        staged(tmp_path / str(i), term, weight=w)
        for i, (term, w) in enumerate([("cls", "0.25"), ("tune", "0.25"), ("cls", "1.0")])
    ]
    named, other, unweighed = [(out / "model.safetensors").read_bytes() for out in runs]
    assert named == other != unweighed


def test_the_docs_name_all_that_fit_and_run_take_and_tell() -> None:
    methods, readme = (
        (EXAMPLE.parent.parent / name).read_text() for name in ("docs/methods.md", "README.md")
    )
    named = {row.split("`")[1] for row in methods.splitlines() if row.startswith("| `")}
    assert {p.name for p in keywords(Engine.fit)} <= named
    assert all(f"`{p.name}" in readme for p in keywords(run))
    kinds = {
        kind
        for path in (EXAMPLE.parent.parent / "jioc").rglob("*.py")
        for kind in re.findall(r'tell\(\s*"(\w+)"', path.read_text())
    }
    assert len(kinds) == 6 and all(f'`"{kind}"`' in readme for kind in kinds)


READS = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy


@jioc.register(replace(jioc.methods.SPECS["replay"], name="reads", title="Reads", MORE))
class Reads(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def readouts(self, x):
        z = self.net(x).logits
        return RETURNED
"""
BESIDE = 'headline="far", readouts=("cnn", "far")'


@pytest.mark.parametrize(
    ("more", "returned", "trains", "sentence"),
    [
        ('headline="far"', '{"cnn": z}', 0, "reads has the readouts cnn, nme, and 'far' must be among them"),
        ('readouts=("far",)', '{"far": z}', 0, "reads has the readouts far, and 'cnn' must be among them"),
        (
            "",
            '{"head": z}',
            0,
            "the readouts of reads are 'head'; a dict of scores with 'cnn' among them is needed",
        ),
        ("", "z", 0, "the readouts of reads are Tensor; a dict of scores with 'cnn' among them is needed"),
        (
            "",
            '{"cnn": z, "far": z[:, 1:]}',
            0,
            "the readouts of reads: 'far' has the shape (1, 1); a score for each",
        ),
        (
            "",
            '{"cnn": z, "far": z.argmax(1).tolist()}',
            0,
            "the readouts of reads: 'far' is a list; a score for each",
        ),
        (
            "",
            '{"head": z + len(self.means)}',
            3,
            "the readouts of reads are 'head'; a dict of scores with 'cnn' among",
        ),
        (BESIDE, '{"cnn": z}', 3, "reads is judged by 'far', and its readouts have given 'cnn'"),
    ],
)
def test_read_outs_that_cannot_be_judged_are_refused(
    more: str, returned: str, trains: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reads.py").write_text(READS.replace("MORE", more).replace("RETURNED", returned))
    words = [*QUICK, "--task-sizes", "8,2", "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "reads.py"), *words]) in (1, 2)
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1
    log = tmp_path / "run" / "log.jsonl"
    assert (len(log.read_text().splitlines()) if log.exists() else 0) == trains  # epochs of the first task


def test_read_outs_of_its_own_judge_a_method_and_its_exemplars_are_not_denied(tmp_path: Path) -> None:
    """Scores of no class at first, as of prototypes that are yet to be found, are no mistake."""
    returned = '{"cnn": z, "far": z[:, :0] if self.means is None else -z}'
    (tmp_path / "reads.py").write_text(READS.replace("MORE", BESIDE).replace("RETURNED", returned))
    notes: list[str] = []
    result = run(
        method=str(tmp_path / "reads.py"),
        task_sizes=(8, 2),
        memory=40,
        first={"epochs": 1},
        later={"epochs": 1},
        device="cpu",
        callback=lambda kind, what: notes.append(what["text"]) if kind == "note" else None,
    )
    assert (
        result["headline"] == "far"
        and result["average"]["far"] is not None
        and result["tasks"][-1]["memory"] == 40
    )
    assert not any("no exemplar is kept" in text for text in notes)


@pytest.mark.parametrize("memory", ["exemplars", "none"])
def test_a_method_judged_by_the_means_of_exemplars_is_refused_without_any(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A method whose means are of something else keeps no exemplars by its entry, and is judged by them."""
    own = '{"cnn": z}' if memory == "exemplars" else '{"cnn": z, "nme": -z}'
    source = READS.replace("MORE", f'headline="nme", memory="{memory}"').replace("RETURNED", own)
    (tmp_path / "reads.py").write_text(source)
    words = [
        "run",
        str(tmp_path / "reads.py"),
        *QUICK,
        "--task-sizes",
        "8,2",
        "--epochs",
        "1",
        "--memory",
        "0",
    ]
    ended = [main([*words, "--dry-run"]), main([*words, "--out", str(tmp_path / "run")])]
    told = capsys.readouterr().err
    if memory == "none":
        assert ended == [0, 0]
        return
    assert ended == [2, 2] and not (tmp_path / "run").exists()
    assert (
        told.count("\n") == 2
        and "--memory 0 keeps no exemplars, and reads is judged by their means (nme);" in told
    )
    with pytest.raises(Refused, match="judged by their means"):
        run(method=str(tmp_path / "reads.py"), memory=0)


def test_a_term_without_gradient_may_stand_beside_one_that_has_one(tmp_path: Path) -> None:
    returned = (
        '{"cls": F.cross_entropy(out.logits, batch.y, reduction="none"), "told": out.logits[:, 0].detach()}'
    )
    (tmp_path / "own.py").write_text(WRONG.replace("RETURNED", returned))
    words = [
        "--tasks",
        "1",
        "--epochs",
        "1",
        "--backbone",
        "tiny",
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(["run", str(tmp_path / "own.py"), *words]) == 0
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert set(log[-1]["terms"]) == {"cls", "told"}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1\n", "registers 0 methods"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
        ("def (\n", "cannot be imported: SyntaxError"),
    ],
)
def test_a_file_that_is_no_method_is_refused(
    source: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"method_{abs(hash(source))}.py"
    path.write_text(source)
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_does_not_go_on_with_another_method_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "changing.py", tmp_path / "run"
    source = EXAMPLE.read_text().replace("feature-replay", "changing")
    path.write_text(source)
    words = ["run", str(path), *QUICK, "--epochs", "1", "--out", str(out), "--resume"]
    assert main(words) == 0
    result = json.loads((out / "result.json").read_bytes())
    assert result["method"]["sha256"] == hashlib.sha256(source.encode()).hexdigest()
    (tmp_path / "grid.yaml").write_text(
        json.dumps({"base": result["config"], "runs": {"a": {}}, "seeds": [1]})
    )
    shutil.copytree(out, tmp_path / "runs" / "a-seed1")
    grid = ["grid", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "runs")]
    assert main(words) == main(grid) == 0

    path.write_text(source + "# another\n")
    assert main(words) == main(grid) == 2
    told = capsys.readouterr().err
    assert "has changed since this run began" in told
    assert "has changed since the run in" in told
    path.write_text(source)
    assert main(words) == main(grid) == 0


def test_a_method_file_that_has_changed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specs, "_CLASSES", dict(specs._CLASSES))
    path, source = tmp_path / "mine.py", EXAMPLE.read_text()
    for when, name in enumerate(["FeatureReplay", "AnotherReplay", "FeatureReplay"]):  # of one length
        path.write_text(source.replace("FeatureReplay", name))
        os.utime(path, ns=(when, when))
        assert specs.load(str(path)).__name__ == name
    assert specs.load(str(path)) is specs.load(str(path))


def test_a_run_that_failed_before_it_learnt_anything_goes_on_with_the_mended_file(tmp_path: Path) -> None:
    path = tmp_path / "mended.py"
    right = EXAMPLE.read_text().replace("feature-replay", "mended")
    path.write_text(
        right.replace("    def loss(", "    def loss(self, *args):\n        return None\n\n    def no_loss(")
    )
    words = ["run", str(path), *QUICK, "--epochs", "1", "--out", str(tmp_path / "run"), "--resume"]
    assert main(words) == 1
    path.write_text(right)
    assert main(words) == 0
    assert main([*words[:-3], "--out", str(tmp_path / "alone")]) == 0
    ended = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("run", "alone")]
    assert ended[0] == ended[1]


def test_a_method_file_that_has_moved_is_the_same_method(tmp_path: Path) -> None:
    path, out = tmp_path / "moving.py", tmp_path / "run"
    path.write_text(EXAMPLE.read_text().replace("feature-replay", "moving"))
    words = [*QUICK, "--epochs", "1"]
    assert main(["run", str(path), *words, "--out", str(out)]) == 0
    (tmp_path / "there").mkdir()
    path = path.rename(tmp_path / "there" / "moving.py")
    assert main(["run", str(path), *words, "--out", str(out), "--resume"]) == 0
    assert main(["run", str(path), *words, "--coordinate", "jioc", "--out", str(tmp_path / "jioc")]) == 0
    (host, ours) = group(read([out, tmp_path / "jioc"]))
    assert ours.base is host and len(ours.gains("cnn")) == 1


def test_what_was_begun_within_an_epoch_does_not_go_on_with_another_file(tmp_path: Path) -> None:
    path = tmp_path / "early.py"
    path.write_text(EXAMPLE.read_text().replace("feature-replay", "early"))
    small = {
        "method": str(path),
        "task_sizes": (4, 3, 3),
        "memory": 40,
        "device": "cpu",
        "checkpoint_every": 0,
    }
    steps = itertools.count()
    with pytest.raises(Interrupted):
        run(**small, out=tmp_path / "run", stop=lambda: next(steps) == 3)
    path.write_text(path.read_text() + "# another\n")
    with pytest.raises(Refused, match="has changed since this run began"):
        run(**small, out=tmp_path / "run", resume=True)


def test_files_may_have_the_name_of_another_method_for_theirs(tmp_path: Path) -> None:
    for title in ("One", "Other"):
        source = EXAMPLE.read_text().replace("feature-replay", "icarl").replace("Feature replay", title)
        (tmp_path / f"{title.lower()}.py").write_text(source.replace("class FeatureReplay", f"class {title}"))
    runs = {name: {"method": str(tmp_path / f"{name}.py")} for name in ("one", "other")}
    base = {
        "task_sizes": [4, 3, 3],
        "memory": 40,
        "first": {"epochs": 1},
        "later": {"epochs": 1},
        "device": "cpu",
    }
    (tmp_path / "grid.yaml").write_text(json.dumps({"base": base, "runs": runs, "seeds": [1]}))
    assert main(["grid", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "runs")]) == 0
    assert [g.name for g in group(read([tmp_path / "runs"]))] == ["One", "Other"]
    assert specs.load("icarl").__module__ == "jioc.methods.icarl" and specs.find("icarl").title == "iCaRL"


TAKER = """
import sys
from dataclasses import replace

import jioc.methods

if "loaded" in sys.argv:
    jioc.methods.load("icarl")
ours = jioc.methods.SPECS["icarl"]
for entry in ("icarl", replace(ours, title="Mine")):
    try:
        jioc.register(entry)(type("ICaRL", (jioc.Method,), {"__module__": "mine"}))
    except ValueError as error:
        assert str(error) == "'icarl' is a method of jioc; give yours another name", error
    else:
        raise SystemExit("the name was taken")
assert jioc.methods.load("icarl").__module__ == "jioc.methods.icarl" and jioc.methods.SPECS["icarl"] is ours
jioc.register(replace(ours, name="mine", title="Mine"))(type("Mine", (jioc.Method,), {"__module__": "mine"}))
jioc.register(replace(ours, name="mine", title="Mended"))(type("Mine", (jioc.Method,), {"__module__": "mine"}))
assert jioc.methods.SPECS["mine"].title == "Mended"  # a notebook's cell is run twice
"""


@pytest.mark.parametrize("when", ["loaded", "first"])
def test_nobody_takes_the_name_of_a_method_of_ours(when: str) -> None:
    subprocess.run([sys.executable, "-c", TAKER, when], check=True)


CELL = """
@jioc.register(replace(jioc.methods.SPECS["replay"], name="cell", title="Cell"))
class Cell(jioc.Method):
    scale = 1.0

    def loss(self, batch, out, old, task):
        return {"cls": self.scale * cross_entropy(out.logits, batch.y)}
"""
CELLS = itertools.count()


def typed(source: str, readable: bool = True) -> None:
    """Run Python code as a notebook does, which keeps what was typed for who asks; or as a plain prompt."""
    name = f"<cell {next(CELLS)}>"
    if readable:
        linecache.cache[name] = len(source), None, source.splitlines(True), name
    names = {"jioc": jioc, "replace": replace, "cross_entropy": cross_entropy, "__name__": "a notebook"}
    exec(compile(source, name, "exec"), names)


@pytest.fixture
def registered() -> Iterator[None]:
    """What a test registers as "cell" is gone after it."""
    yield
    for held in (specs.SPECS, specs._CLASSES):
        held.pop("cell", None)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("change", [("1.0", "2.0"), ("batch.y)", "batch.y) / 2")])
def test_a_run_does_not_go_on_with_another_class_of_a_notebook(
    change: tuple[str, str], tmp_path: Path
) -> None:
    small = {"method": "cell", "task_sizes": (8, 2), "memory": 40, "device": "cpu", "checkpoint_every": 0}
    stages = {"first": {"epochs": 1}, "later": {"epochs": 1}}
    steps = itertools.count()
    typed(CELL)
    with pytest.raises(Interrupted):
        run(**small, **stages, out=tmp_path / "run", stop=lambda: next(steps) == 3)
    typed(CELL.replace(*change))
    with pytest.raises(Refused, match="'cell' has changed since this run began"):
        run(**small, **stages, out=tmp_path / "run", resume=True)
    typed("# typed anew\n" + CELL)
    told = run(**small, **stages, out=tmp_path / "run", resume=True)["method"]
    assert told["sha256"] == json.loads((tmp_path / "run" / "model.json").read_bytes())["method"]["sha256"]
    assert jioc.load(tmp_path / "run").classes
    typed(CELL.replace(*change))
    with pytest.raises(Refused, match="'cell' is not the method's code as it was when this model learnt"):
        jioc.load(tmp_path / "run")


@pytest.mark.usefixtures("registered")
def test_what_cannot_be_noticed_of_a_class_is_said_and_its_model_has_no_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes: list[str] = []
    typed(CELL, readable=False)
    result = run(
        method="cell",
        tasks=1,
        memory=40,
        first={"epochs": 1},
        device="cpu",
        out=tmp_path / "run",
        callback=lambda kind, what: notes.append(what["text"]) if kind == "note" else None,
    )
    assert result["method"]["sha256"] is None
    assert "the code of 'cell' cannot be read, so that a change of it will not be noticed" in notes
    del specs.SPECS["cell"], specs._CLASSES["cell"]
    assert main(["predict", str(tmp_path / "run"), "picture.png"]) == 2
    assert (
        "unknown method 'cell'; if Python code registers it, open this model there, with"
        in capsys.readouterr().err
    )
