"""What the pages show works: their code runs, their commands and flags exist, what is made is current."""

import functools
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image, ImageOps
from sklearn.datasets import load_digits

import jioc
from helpers.paths import ROOT
from helpers.scripts import load
from helpers.torchvision_operators import make_torchvision_load
from jioc.cli.main import COMMANDS
from jioc.cli.main import main as command
from jioc.results import Result

DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
generate = load(DOCS / "generate.py")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of each block of code."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield found[1], found[2]


# --- code ---


def digits(*labels: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    rows = np.isin(data.target, labels)
    return (data.images[rows] * 15).astype("uint8")[:60], data.target[rows][:60]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a reader has when a page begins: images, labels, a folder of birds; epochs are few here."""
    monkeypatch.chdir(tmp_path)
    quick = {"epochs": 1, "tasks": 2, "long_tail": 50, "device": "cpu"}
    run, classifier = jioc.run, jioc.IncrementalClassifier
    monkeypatch.setattr(jioc, "run", lambda **values: run(**values | quick), raising=False)
    few = functools.partial(classifier, epochs=1, device="cpu")
    monkeypatch.setattr(jioc, "IncrementalClassifier", few, raising=False)
    (x, y), (more, new) = digits(0, 1), digits(2, 3)
    given = {"images": x, "labels": y, "more_images": more, "new_labels": new, "x": x, "X": x}
    given |= {"X_first": x, "y_first": y, "X_next": more, "y_next": new}
    return given | {"np": np, "Image": Image, "ImageOps": ImageOps}


def run_code(page: Path, names: dict[str, Any]) -> None:
    for i, (language, text) in enumerate(blocks(page)):
        if language == "python":
            exec(compile(text, f"{page.name}, block {i}", "exec"), names)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/estimator.md", "docs/data.md"])
def test_the_python_of_a_page_runs(page: str, names: dict[str, Any]) -> None:
    run_code(ROOT / page, names)


def test_the_python_of_the_page_of_models_runs(names: dict[str, Any]) -> None:
    for label, bird in enumerate(("robin", "wren")):
        folder = Path("photos") / bird
        folder.mkdir(parents=True)
        for i, pixels in enumerate(digits(label)[0][:10]):
            Image.fromarray(pixels).save(folder / f"{i}.png")
    Image.open("photos/robin/0.png").save("a.jpg")
    Image.open("photos/wren/0.png").save("b.png")
    words = ["--data", "photos", "--tasks", "1", "--epochs", "1", "--device", "cpu", "--out", "models/birds"]
    assert command(["run", "icarl", *words]) == 0
    run_code(DOCS / "models.md", names | {"x": names["x"][:, None]})


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # Avalanche calls what it deprecates
@pytest.mark.skipif(importlib.util.find_spec("avalanche") is None, reason="Avalanche is not installed")
def test_the_python_of_the_page_of_avalanche_runs(names: dict[str, Any]) -> None:
    make_torchvision_load()
    model = torch.nn.Linear(4, 2)
    run_code(
        DOCS / "avalanche.md", names | {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1)}
    )


def test_the_tutorial_runs_from_its_first_run_to_its_last_line(names: dict[str, Any]) -> None:
    """In order, with one epoch in place of thirty-four; some images of its folders are enough."""
    lines = 0
    for language, text in blocks(DOCS / "tutorial.md"):
        if language == "python":
            exec(compile(text, "tutorial.md", "exec"), names)
            for image in Path().rglob("week?/*/????.png"):
                image.unlink()  # the later ones
        for line in text.splitlines() if not language else ():
            if line.startswith("jioc "):
                words = shlex.split(line.replace("--epochs 34", "--epochs 1"))[1:]
                assert command(words) == 0, line
                lines += 1
    assert lines == 9
    assert (
        Path("report.html").exists()
        and Result.model_validate_json(Path("runs/jioc/result.json").read_text()).complete
    )


# --- commands ---


@functools.cache
def flags(name: str) -> set[str]:
    """The flags of a command; those of a run and of a grid are settings, too."""
    text = generate.printed([name, "--help"])
    if name in ("run", "grid", "learn"):
        text += (DOCS / "settings.md").read_text(encoding="utf-8")
    return {*re.findall(r"(?<![\w-])--?[a-z][\w-]*", text), "-h", "--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_and_flags_that_a_page_shows_exist(page: Path) -> None:
    for language, text in blocks(page):
        for line in text.splitlines() if language in ("", "sh") else ():
            words = re.split(r"\s{2,}|\s#", line.replace("[", " ").replace("]", " "), maxsplit=1)[0].split()
            if words[:1] != ["jioc"] or len(words) < 2:
                continue
            assert words[1] in {*COMMANDS, "--version", "COMMAND"}, line
            used = {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)}
            known = flags(words[1])
            unknown = {flag for flag in used if flag.replace("--no-", "--") not in known}
            assert not unknown, line


# --- what is generated ---


def test_every_page_has_its_place_in_the_site() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = [
        at
        for part in yaml.safe_load(text)["nav"]
        for pages in part.values()
        for page in pages
        for at in page.values()
    ]
    made = {*generate.PAGES, "contributing.md", "changelog.md", "security.md"}
    assert sorted(nav) == sorted({*made, *(page.relative_to(DOCS).as_posix() for page in PAGES[1:])})


def test_the_reference_has_every_command_field_and_public_name() -> None:
    text = {name: make() for name, make in generate.PAGES.items()}
    for name in COMMANDS:
        assert f"\n## jioc {name}\n\n```text\nusage: jioc {name}" in text["reference/commands.md"]
    for field in Result.model_fields:
        assert f"| `{field}` |" in text["reference/result.md"]
    for name in jioc.__all__:
        assert name[0] == "_" or f"\n## jioc.{name}\n" in text["reference/python.md"]
    assert "\n---" not in text["reference/python.md"], "a section of a docstring would become a heading"


def test_the_pictures_of_the_explanation_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert load(DOCS / "pictures.py").main([]) == 0, capsys.readouterr().out


def test_the_first_page_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120


# --- the release ---


def test_an_archive_that_lacks_a_file_holds_results_or_is_too_large_is_refused() -> None:
    release = load(ROOT / ".ci" / "release.py")
    whole = [f"jioc-0.1.0/jioc/{name}" for name in (*release.NEEDED, "losses.py")]
    assert release.wrong(whole, ["losses.py"], 10) == []
    assert release.wrong(whole[1:], ["losses.py"], 10) == [f"lacks jioc/{release.NEEDED[0]}"]
    assert release.wrong(whole, ["losses.py", "new.js"], 10) == ["lacks jioc/new.js"]
    assert release.wrong([*whole, "jioc-0.1.0/benchmarks/results/a.json"], [], 10) == [
        "holds benchmarks/results/a.json"
    ]
    (large,) = release.wrong(whole, [], release.LARGEST + 1)
    assert "bytes" in large
