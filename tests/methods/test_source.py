"""A run and a model notice that the code of their method has changed."""

import hashlib
import itertools
import json
import linecache
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import jioc
import jioc.methods
from helpers.paths import ROOT
from helpers.runs import collect_notes, stop_after
from jioc.cli.main import main
from jioc.errors import Interrupted, Refused
from jioc.losses import cross_entropy
from jioc.methods import registry
from jioc.report.runs import group, read
from jioc.training.run import run

EXAMPLE = ROOT / "examples" / "own_method.py"
QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]


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
    captured = capsys.readouterr().err
    assert "has changed since this run began" in captured
    assert "has changed since the run in" in captured
    path.write_text(source)
    assert main(words) == main(grid) == 0


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


def test_a_file_whose_import_failed_registers_its_method_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fails_once.py"
    ends = "\nimport os\nif os.environ.get('FAILS_ONCE'):\n    raise RuntimeError('not yet')\n"
    path.write_text(EXAMPLE.read_text().replace("feature-replay", "fails-once") + ends)
    monkeypatch.setenv("FAILS_ONCE", "yes")
    with pytest.raises(Refused, match="cannot be imported: RuntimeError: not yet"):
        registry.load_method(str(path))
    monkeypatch.delenv("FAILS_ONCE")
    assert registry.load_method(str(path)).spec.name == "fails-once"


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
    with pytest.raises(Interrupted):
        run(**small, out=tmp_path / "run", stop=stop_after(3))
    path.write_text(path.read_text() + "# another\n")
    with pytest.raises(Refused, match="has changed since this run began"):
        run(**small, out=tmp_path / "run", resume=True)


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
    for held in (registry.SPECS, registry._CLASSES):
        held.pop("cell", None)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("change", [("1.0", "2.0"), ("batch.y)", "batch.y) / 2")])
def test_a_run_does_not_go_on_with_another_class_of_a_notebook(
    change: tuple[str, str], tmp_path: Path
) -> None:
    small = {"method": "cell", "task_sizes": (8, 2), "memory": 40, "device": "cpu", "checkpoint_every": 0}
    stages = {"first": {"epochs": 1}, "later": {"epochs": 1}}
    typed(CELL)
    with pytest.raises(Interrupted):
        run(**small, **stages, out=tmp_path / "run", stop=stop_after(3))
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
        callback=collect_notes(notes),
    )
    assert result["method"]["sha256"] is None
    assert "the code of 'cell' cannot be read, so that a change of it will not be noticed" in notes
    del registry.SPECS["cell"], registry._CLASSES["cell"]
    assert main(["predict", str(tmp_path / "run"), "picture.png"]) == 2
    assert (
        "unknown method 'cell'; if Python code registers it, open this model there, with"
        in capsys.readouterr().err
    )
