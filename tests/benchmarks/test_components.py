"""The table of what each component adds."""

from pathlib import Path

from helpers.scripts import script


def test_a_component_is_compared_with_its_host_on_the_tasks_that_both_have_learnt(tmp_path: Path) -> None:
    column = "cifar100-lt-resnet32-1000"
    kept = {
        "readings": [f"{column}-der-none-seed1,80 60 40", f"{column}-der-none-adjust-1-seed1,80 66"],
        "components": [f"{column}-der-ema-seed1,82 62 42", f"{column}-icarl-ema-seed1,82 62"],
    }
    for name, rows in kept.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["run,after each task", *rows]) + "\n")
    lines = [line.split(" | ") for line in script("components").table(tmp_path).splitlines()]
    place = lines[0].index("DER, long tail")
    found = {line[0].removeprefix("| "): line[place:] for line in lines[2:]}
    assert found["none"] == ["60.00 (3)", "– |"]
    assert found["adjust-1"] == ["+3.00 (2)", "– |"]
    assert found["ema"] == ["+2.00 (3)", "– |"]  # iCaRL's host was not run
    assert found["cutmix"] == ["–", "– |"]
