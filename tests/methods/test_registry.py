"""A method in a file of its own: it runs, takes JIOC by a flag, and a file that is no method is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.runs import logged
from jioc.cli.main import main
from jioc.methods import registry
from jioc.report.runs import group, read

EXAMPLE = ROOT / "examples" / "own_method.py"
QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]


@pytest.mark.parametrize(
    ("word", "terms"), [("none", {"cls", "features"}), ("jioc", {"cls", "features", "kd", "suppress"})]
)
def test_the_example_runs_and_takes_jioc(word: str, terms: set[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", str(EXAMPLE), *QUICK, "--coordinate", word, "--out", str(out)]) == 0
    log = logged(out)
    assert set(log[-1]["terms"]) == terms
    (shown,) = group(read([out]))
    assert shown.name == "Feature replay" + " + JIOC" * (word == "jioc") and shown.place.endswith(
        ", epochs 2"
    )
    assert main(["run", "--config", str(out / "config.yaml"), "--out", str(tmp_path / "again")]) == 0
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "again" / "model.safetensors").read_bytes()


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


def test_a_method_file_that_has_changed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))
    path, source = tmp_path / "mine.py", EXAMPLE.read_text()
    for when, name in enumerate(["FeatureReplay", "AnotherReplay", "FeatureReplay"]):  # of one length
        path.write_text(source.replace("FeatureReplay", name))
        os.utime(path, ns=(when, when))
        assert registry.load_method(str(path)).__name__ == name
    assert registry.load_method(str(path)) is registry.load_method(str(path))


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
    assert (
        registry.load_method("icarl").__module__ == "jioc.methods.icarl"
        and registry.find_method("icarl").title == "iCaRL"
    )


TAKER = """
import sys
from dataclasses import replace

import jioc.methods

if "loaded" in sys.argv:
    jioc.methods.load_method("icarl")
ours = jioc.methods.SPECS["icarl"]
for entry in ("icarl", replace(ours, title="Mine")):
    try:
        jioc.register(entry)(type("ICaRL", (jioc.Method,), {"__module__": "mine"}))
    except ValueError as error:
        assert str(error) == "'icarl' is a method of jioc; give yours another name", error
    else:
        raise SystemExit("the name was taken")
assert jioc.methods.load_method("icarl").__module__ == "jioc.methods.icarl"
assert jioc.methods.SPECS["icarl"] is ours
for title in ("Mine", "Mended"):
    mine = type("Mine", (jioc.Method,), {"__module__": "mine"})
    jioc.register(replace(ours, name="mine", title=title))(mine)
assert jioc.methods.SPECS["mine"].title == "Mended"  # a notebook's cell is run twice
"""


@pytest.mark.parametrize("when", ["loaded", "first"])
def test_nobody_takes_the_name_of_a_method_of_ours(when: str) -> None:
    subprocess.run([sys.executable, "-c", TAKER, when], check=True)
