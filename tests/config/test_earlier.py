"""Settings that an earlier version recorded."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import jioc
from helpers.command import refused
from helpers.trees import class_folders
from jioc.cli.main import main
from jioc.config import files, upgraded
from jioc.errors import Refused
from jioc.resolve.recipes import find_recipe

QUICK: dict[str, Any] = {"data": "digits", "memory": 40, "epochs": 1, "task_sizes": (6, 4), "device": "cpu"}


def test_before_readings_had_a_name_runs_were_as_printed() -> None:
    was = {"method": "wa", "coordination": {"coordinate": "jioc", "delta_scale": "mean1"}}
    now = {"coordinate": "jioc", "reading": "printed", "delta_scale": "mean1", "oc_reduce": "sum"}
    assert upgraded(was)["coordination"] == now | {"host_factors": "keep"}


def test_an_option_that_is_gone_is_dropped_where_it_did_nothing_and_stays_where_it_acted() -> None:
    jioc_on = {"coordinate": "jioc", "reading": "averaged", "delta_softmax": "plain"}
    was = {
        "method": "der",
        "coordination": jioc_on,
        "options": {"correction": "norms", "new_columns": "zero", "aux_weight": 2.0},
    }
    now = upgraded(was | {"given": ["method", "options.correction"]})
    assert "delta_softmax" not in now["coordination"] and now["options"] == {"aux_weight": 2.0}
    assert now["given"] == ["method"]
    assert upgraded(was | {"method": "foster"})["coordination"]["delta_softmax"] == "plain"
    assert upgraded(was | {"options": {"correction": "pair"}})["options"] == {"correction": "pair"}
    assert upgraded(now) == now
    own = {"method": "mine.py", "options": {"new_columns": "zero"}}  # an option of somebody's own
    assert upgraded(own) == own


def old(folder: Path, **more: Any) -> Path:
    """The folder of a run whose config.yaml and result.json an earlier version wrote."""
    jioc.run(**QUICK, method="wa", out=folder, **more)
    for name in ("config.yaml", "result.json", "model.json"):
        path = folder / name
        text = path.read_text().replace("oc_reduce: ", "ic_terms: cls\n  delta_softmax: host\n  oc_reduce: ")
        path.write_text(
            text.replace('"oc_reduce":', '"ic_terms": "cls", "delta_softmax": "host", "oc_reduce":')
        )
    assert (
        "ic_terms" in (folder / "config.yaml").read_text()
        and "ic_terms" in (folder / "result.json").read_text()
    )
    return folder


def test_a_run_of_an_earlier_version_goes_on_and_its_settings_are_taken_again(tmp_path: Path) -> None:
    folder = old(tmp_path / "run", coordinate="jioc", reading="printed")
    again = jioc.run(**QUICK, method="wa", coordinate="jioc", reading="printed", out=folder, resume=True)
    assert again.complete
    with pytest.raises(Refused, match="delta_scale, coordination.host_factors differ"):
        jioc.run(**QUICK, method="wa", coordinate="jioc", out=folder, resume=True)
    assert files.read(folder / "config.yaml")["coordination"]["reading"] == "printed"


def test_a_run_goes_on_that_began_before_there_was_a_setting(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    jioc.run(**QUICK, method="icarl", out=folder)
    path = folder / "config.yaml"
    newer = ("head: ", "headline: ")
    lines = [line for line in path.read_text().splitlines() if not line.startswith(newer)]
    path.write_text("\n".join(lines))
    assert jioc.run(**QUICK, method="icarl", out=folder, resume=True).complete
    with pytest.raises(Refused, match="holds another run: head differ"):
        jioc.run(**QUICK, method="icarl", head="cosine", out=folder, resume=True)


def test_where_nothing_was_coordinated_the_reading_follows_anew(tmp_path: Path) -> None:
    folder = old(tmp_path / "run")
    text = (folder / "config.yaml").read_text().replace("reading: normalised", "reading: printed")
    (folder / "config.yaml").write_text(text.replace("delta_scale: mean1", "delta_scale: plain"))
    assert jioc.run(**QUICK, method="wa", out=folder, resume=True).complete
    assert "reading" not in files.read(folder / "config.yaml")["coordination"]


def der_of_an_earlier_version(folder: Path, columns: str = "zero") -> Path:
    """The folder of a run of DER that has the option new_columns in all its files."""
    jioc.run(**QUICK, method="der", out=folder)
    for name in ("config.yaml", "result.json", "model.json"):
        text = (folder / name).read_text()
        text = text.replace("  aux_weight: ", f"  new_columns: {columns}\n  aux_weight: ")
        text = text.replace('"aux_weight":', f'"new_columns": "{columns}", "aux_weight":')
        assert "new_columns" in text
        (folder / name).write_text(text)
    return folder


def test_a_model_of_an_earlier_version_learns_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = der_of_an_earlier_version(tmp_path / "run")
    more = class_folders(tmp_path / "more", {"a": 8, "b": 8})
    assert main(["learn", str(folder), str(more), "--epochs", "1"]) == 0
    der_of_an_earlier_version(tmp_path / "drawn", "drawn")
    capsys.readouterr()
    told = refused(["learn", str(tmp_path / "drawn"), str(more)], capsys)
    assert "new_columns of der is gone: only what was 'zero' is left" in told


def test_a_recipe_copied_from_an_earlier_run_is_read(tmp_path: Path) -> None:
    base = yaml.safe_load((der_of_an_earlier_version(tmp_path / "run") / "config.yaml").read_text())
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({"base": base, "runs": {"a": {}, "b": {"memory": 30}}}))
    made = find_recipe(str(tmp_path / "own.yaml")).make()
    assert list(made) == ["a", "b"] and made["b"]["options"] == {"aux_weight": 1.0}
