"""The table of the readings of JIOC on several hosts."""

from pathlib import Path

import pytest

from helpers.scripts import script
from jioc.errors import Refused

HEADS = "run,seed,method,adjust,coordination.coordinate,coordination.delta_scale,coordination.oc_reduce"
HEADS += ",coordination.host_factors,coordination.delta_softmax,after each task,commit"


def sheet(path: Path, *rows: str) -> Path:
    """Lines of runs: method, adjust, coordinate, options of the reading, accuracies; all of the long tail."""
    names = [f"cifar100-lt-resnet32-1000-{i},1,{row},abc" for i, row in enumerate(rows)]
    path.write_text("\n".join([HEADS, *names]) + "\n")
    return path


def cells(table: str, host: str) -> dict[str, str]:
    """The gains of a host, by the words of the reading."""
    head, _, *rows = [
        [word.strip() for word in line.split("|")[1:-1]] for line in table.splitlines() if line[:1] == "|"
    ]
    return {" ".join(row[2:5]): row[head.index(host)] for row in rows if row[1] != "default"}


def test_a_gain_is_over_the_tasks_that_both_have_learnt(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "readings.csv",
        "wa,0,none,plain,sum,keep,host,80 60 40 20",
        "wa,0,jioc,plain,sum,keep,host,80 66",
        "wa,0,jioc,mean1,sum,drop,host,80 60 46",
    )
    found = cells(script("readings_on_hosts").table(path), "WA")
    assert found["as printed added up kept"] == "+3.00 (2)"
    assert found["mean 1 added up dropped"] == "+2.00 (3)"


def test_a_row_has_the_name_of_its_reading(tmp_path: Path) -> None:
    rows = ("wa,0,none,,,,,50 40", "wa,0,jioc,,,,,50 41", "wa,0,jioc,mean1,sum,drop,plain,50 42")
    table = script("readings_on_hosts").table(sheet(tmp_path / "readings.csv", *rows))
    assert [line.split(" | ")[1] for line in table.splitlines()[2:5]] == ["default", "printed", "normalised"]


def test_the_default_has_each_host_by_its_own_reading(tmp_path: Path) -> None:
    rows = [f"{host},0,none,,,,,50 40" for host in ("wa", "der")]
    rows += ["wa,0,jioc,mean1,sum,drop,host,50 42", "wa,0,jioc,plain,mean,keep,host,50 30"]
    rows += ["der,0,jioc,mean1,sum,drop,host,50 20", "der,0,jioc,plain,mean,drop,host,50 46"]
    default = script("readings_on_hosts").table(sheet(tmp_path / "readings.csv", *rows)).splitlines()[2]
    assert [cell.strip() for cell in default.split("|")[6:13]] == [
        "–",
        "+1.00 (2)",
        "–",
        "–",
        "+3.00 (2)",
        "–",
        "–",
    ]


def test_a_run_stands_in_every_row_that_is_the_same_for_its_host(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "readings.csv",
        *(f"{host},–,none,,,,,50 40" for host in ("icarl", "wa", "foster")),
        "icarl,0,jioc,mean1,sum,keep,plain,50 44",
        *(f"wa,0,jioc,mean1,sum,{word},host,50 4{n}" for n, word in ((2, "keep"), (6, "drop"))),
        *(f"foster,0,jioc,mean1,sum,keep,{word},50 4{n}" for n, word in ((1, "host"), (8, "plain"))),
    )
    module = script("readings_on_hosts")
    table, kept, dropped = module.table(path), "mean 1 added up kept", "mean 1 added up dropped"
    assert cells(table, "iCaRL") == {kept: "+2.00 (2)", dropped: "+2.00 (2)"}
    assert cells(table, "WA") == {kept: "+1.00 (2)", dropped: "+3.00 (2)"}
    assert cells(table, "FOSTER") == {kept: "+0.50 (2)", dropped: "+0.50 (2)"}
    assert cells(table, "mean") == {kept: "–", dropped: "–"}  # three of six hosts
    assert module.others(path).splitlines()[2:] == [
        "| long tail | FOSTER | mean 1 | delta-softmax plain | +4.00 (2) | +0.50 (2) |"
    ]


def test_controls_have_a_line_each_and_are_no_hosts(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "readings.csv",
        "icarl,0,none,,,,,50 40",
        "icarl,1.5,none,,,,,50 60",
        "icarl,1.5,jioc,mean1,mean,,,50 50",
        "icarl,0,jioc,mean1,mean,,,50 44 90",
    )
    lines = script("readings_on_hosts").others(path).splitlines()[2:]
    assert lines == [
        "| long tail | iCaRL | mean 1, averaged | adjust 1.5 | +5.00 (2) | +2.00 (2) |",
        "| long tail | iCaRL | no | adjust 1.5 | +10.00 (2) | – |",
    ]


def test_what_jioc_adds_to_adjusted_logits_is_over_the_tasks_that_both_have(tmp_path: Path) -> None:
    rows = (
        "der,0,none,,,,,50 40 30",
        "der,1,none,,,,,50 30",
        "der,1,jioc,plain,mean,keep,host,50 36 48",
        "der,0,jioc,plain,mean,keep,host,50 43 30",
        "der,1,jioc,plain,sum,keep,host,50 90 90",  # another reading than DER's default
        "wa,0,none,,,,,50 40",
        "wa,0,jioc,mean1,sum,drop,host,50 42",
    )
    lines = script("readings_on_hosts").adjusted(sheet(tmp_path / "readings.csv", *rows)).splitlines()[2:]
    assert lines == ["| long tail | DER | -5.00 (2) | +1.00 (3) | +4.67 (3) | +3.00 (2) |"]


def test_a_part_of_jioc_alone_is_a_change_and_no_host(tmp_path: Path) -> None:
    rows = (
        "der,0,none,,,,,50 40",
        "der,0,oc,plain,mean,keep,host,50 44",
        "der,0,jioc,plain,mean,keep,host,50 41",
    )
    module, path = script("readings_on_hosts"), sheet(tmp_path / "readings.csv", *rows)
    assert cells(module.table(path), "DER") == {"as printed averaged kept": "+0.50 (2)"}
    line = "| long tail | DER | averaged | coordinate oc | +2.00 (2) | +0.50 (2) |"
    assert module.others(path).splitlines()[2:] == [line]


def test_a_sheet_of_another_study_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("run,seed\na,1\n")
    with pytest.raises(Refused, match="no readings"):
        script("readings_on_hosts").table(tmp_path / "other.csv")
