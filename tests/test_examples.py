"""The examples do what they say, and what a page shows of them is what they hold."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import jioc
from helpers.paths import ROOT
from jioc import losses
from jioc.cli.main import main
from jioc.types import Batch, Output, Task

EXAMPLES = ROOT / "examples"


def test_a_method_of_one_s_own_takes_less_than_forty_lines() -> None:
    assert len((EXAMPLES / "own_method.py").read_text().splitlines()) < 40


# --- JIOC in somebody's loop ---


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> list[list[float]]:
    """The percentages that an example prints, a list for each line."""
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return [
        [float(n) for n in re.findall(r"(-?[\d.]+) %", line)] for line in capsys.readouterr().out.splitlines()
    ]


def test_jioc_in_a_plain_loop_keeps_more_of_the_old_classes(capsys: pytest.CaptureFixture[str]) -> None:
    (old, new), (kept, fresh) = printed("plain_loop.py", capsys)
    assert kept > old + 5 and fresh > new - 5


def test_the_page_shows_the_loop_as_it_is() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "losses.md").read_text(), re.DOTALL)[0]
    assert shown in (EXAMPLES / "plain_loop.py").read_text()
    assert len(shown.splitlines()) <= 20


def test_the_page_s_three_lines_are_the_formula() -> None:
    """They are what JIOC adds up to, on logits of three tasks."""
    text = (ROOT / "docs" / "losses.md").read_text()
    lines = [
        line.split("#")[0] for line in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1].splitlines()
    ]
    g = torch.Generator().manual_seed(0)
    z, z_old = torch.randn(8, 6, generator=g), torch.randn(8, 4, generator=g)
    y = torch.arange(8) % 6
    old, past, new = y < 4, [slice(0, 2), slice(2, 4)], slice(4, 6)
    names: dict[str, Any] = {**vars(losses), **locals(), "n_old_images": 10, "n_new_images": 30}
    task = Task(2, (2, 2, 2), new_images=30, old_images=10)
    terms = jioc.JIOC()({"cls": losses.cross_entropy(z, y)}, Batch(z, y, old), Output(z), Output(z_old), task)
    torch.testing.assert_close([eval(line, names) for line in lines], [t.mean() for t in terms.values()])


# --- a data set of one's own ---


def test_arrays_in_a_file_are_a_data_set(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["--data", str(EXAMPLES / "own_dataset.py"), "--memory", "30", "--epochs", "1", "--device", "cpu"]
    assert main(["run", "icarl", *words, "--coordinate", "jioc", "--out", str(out)]) == 0
    result = json.loads((out / "result.json").read_text())
    assert sorted(result["classes"]) == [f"{n} pixels" for n in (2.5, 3.0, 3.6, 4.4, 5.4, 6.6)]
    assert result["counts"] == [45] * 6 and result["complete"]
    x, y, _, _ = runpy.run_path(str(EXAMPLES / "own_dataset.py"))["load"]()
    np.testing.assert_allclose(result["data"]["mean"], [x.mean() / 255])
    assert main(["run", "--config", str(out / "config.yaml"), "--out", str(tmp_path / "again")]) == 0
    assert (out / "model.safetensors").read_bytes() == (tmp_path / "again" / "model.safetensors").read_bytes()


def test_the_data_file_is_a_script_too(capsys: pytest.CaptureFixture[str]) -> None:
    without, with_jioc = printed("own_dataset.py", capsys)
    assert without != with_jioc and len(without) == 2
