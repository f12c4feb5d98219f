"""The bench sees what it should see, and stops it: otherwise all attacks would seem to end well."""

from dataclasses import replace

import pytest

from fuzz import places
from fuzz.bench import Bench, Case


def test_right_commands_have_no_faults(bench: Bench) -> None:
    for line in (places.TABLES[0], places.REPORT, places.LEARN, places.CONFIG):
        outcome = bench.carry_out(line.case("right", {}))
        assert (outcome.status, outcome.faults) == (0, [])


def test_code_that_runs_is_seen_and_stopped(bench: Bench) -> None:
    case = Case("code", ("run", "trap.py", "--dry-run"), writable=("",))
    assert bench.carry_out(case).faults == ["code ran from HERE/trap.py"]
    assert not (bench.here / "ran").exists()
    assert bench.carry_out(replace(case, runnable="once said")).faults == ["code ran from HERE/trap.py"]
    bench.carry_out(replace(case, runnable="yes"))
    assert (bench.here / "ran").exists()


def test_a_file_outside_is_seen_and_stays(bench: Bench) -> None:
    case = replace(places.REPORT.case("outside", {"other/page.html": b"<p>mine</p>"}), writable=("out",))
    case = replace(case, argv=("report", "run", "-o", "other/new.html"))
    assert (
        bench.carry_out(case).faults[0].startswith("a file was touched that is not its own: open HERE/other/")
    )
    assert [path.name for path in (bench.here / "other").iterdir()] == ["page.html"]


def test_a_hang_a_traceback_and_a_kill_are_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    traceback = bench.carry_out(Case("traceback", ("--debug", "list", "nothing")))
    assert traceback.faults[-1].startswith("a traceback: jioc.errors.Refused: unknown ")
    assert bench.carry_out(places.REPORT.case("kill", {}), kill_at=2).status == -9
    monkeypatch.setattr(bench, "seconds", 0.001)
    assert bench.carry_out(places.TABLES[0].case("hang", {})).faults == ["it hung for over 0 s"]
