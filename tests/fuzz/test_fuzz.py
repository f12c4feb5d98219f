"""Attacks end in a sentence: no traceback, no hang, no file of others touched, no code run.

A few of each kind; `make fuzz` goes on for long.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz import cases, crash, places
from fuzz.bench import Bench, Case
from helpers import hostile

FEW = settings(
    max_examples=5, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
KINDS = [
    "result.json in a table", "result.json on a page", "result.json of a run", "result.json of a grid",
    "model.json", "config.yaml", "config.yaml of a run", "recipe", "PyCIL's file", "csv", "cache",
    "checkpoint", "image", "weights", "command line",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_file_or_word_gets_a_sentence(kind: str, bench: Bench) -> None:
    drawn, failed = cases.kinds(bench.base), list[tuple[tuple[str, ...], list[str]]]()
    assert list(drawn) == KINDS

    @FEW
    @given(drawn[kind])
    def attack(case: Case) -> None:
        if faults := bench.carry_out(case).faults:
            failed.append((case.argv, faults))

    attack()
    assert not failed


@pytest.mark.parametrize("name", hostile.PUT)
def test_a_hostile_file_gets_a_sentence(name: str, bench: Bench) -> None:
    """In one of the places where it may stand; `make fuzz` puts it in all."""
    quick = [(place, line) for place, lines in places.READERS.items() for line in lines if line.patience == 1]
    place, line = quick[list(hostile.PUT).index(name) * 7 % len(quick)]
    assert not bench.carry_out(line.case("hostile file", {place: name})).faults


def test_a_python_file_that_a_file_names_is_not_run_for_that(bench: Bench) -> None:
    named = [case for case in cases.traps(bench.base) if case.kind in ("trap in method", "trap in data")]
    outcomes = [bench.carry_out(case) for case in named]
    assert not [(outcome.case.argv, outcome.faults) for outcome in outcomes if outcome.faults]


def test_standard_output_without_room_gets_a_sentence(bench: Bench) -> None:
    others = [places.Line(words) for words in ("", "--version", "list methods", "data list", "run --help")]
    lines = [
        places.TABLES[0], places.REPORT, places.PREDICT, places.GRID, places.CONFIG_HELP, places.CHECK,
        places.RESUME, places.LEARN, places.LEARN_HELP, *others,
    ]  # fmt: skip
    outcomes = [bench.carry_out(line.case("full disk", {}, stdout="/dev/full")) for line in lines]
    assert not [outcome.faults for outcome in outcomes if outcome.faults]
    wordless = [outcome.case.argv for outcome in outcomes if "output cannot be written" not in outcome.err]
    assert not wordless


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.extras] * (name == "export")) for name in crash.COMMANDS]
)
def test_killed_at_a_file_operation_it_ends_as_if_left_alone(name: str, bench: Bench) -> None:
    """At one or two of them; `make fuzz` kills at each."""
    if name == "export":
        pytest.importorskip("onnxscript", reason="onnx is not installed: pip install 'jioc[onnx]'")
    stopped = crash.Crash(bench, name)
    for operation in (3, stopped.operations - 1)[name in ("grid", "export") :]:
        outcome = stopped.at(operation)
        assert outcome.status == -9 and not outcome.faults
