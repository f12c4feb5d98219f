"""How many images a run has behind it, and how many are left."""

from typing import Any

import pytest

from jioc.config import values as settings
from jioc.events import Epoch, Event, Start, Training
from jioc.methods import SPECS
from jioc.resolve.derive import resolve
from jioc.training import pulse
from jioc.training.run import run
from jioc.training.workload import Workload


@pytest.mark.parametrize("method", ["ssil", "joint"])
def test_every_image_is_counted_and_none_is_left_in_the_end(
    method: str, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulse, "EVERY", 0.0)
    small |= {"first": {"epochs": 1}, "later": {"epochs": 1}, "task_sizes": (3, 2, 5)}
    config = resolve(settings.make(method=method, **small))
    told: list[Event] = []
    run(config, callback=told.append)
    work, shares = None, []
    for event in told:
        if isinstance(event, Start):
            work = Workload(config, SPECS[method], event)
            expected = work.left
        if work is not None and isinstance(event, Epoch | Training):
            work.update(event)
            shares.append(work.done / (work.done + work.left))
    assert work is not None and work.left == 0
    assert work.done == sum(event.images for event in told if isinstance(event, Epoch))
    if method == "ssil":
        assert abs(expected / work.done - 1) < 0.35  # what was expected before the first image
    if method == "joint":
        assert expected == work.done and shares == sorted(shares)


def test_a_long_epoch_moves_and_a_run_that_goes_on_counts_what_was_done_before() -> None:
    config = resolve(settings.make(method="icarl", memory=20, later={"epochs": 10}, first={"epochs": 4}))
    start = Start([5, 5], list("0123456789"), [100] * 10, memory=20, device="", precision="", done=0)
    work = Workload(config, SPECS["icarl"], start)
    assert (work.done, work.left) == (0, 4 * 500 + 10 * 520)
    work.update(Training(1, "first", 2, 4, done=128, total=500))
    assert (work.done, work.left) == (628, 4 * 500 - 628 + 5200)
    again = Workload(config, SPECS["icarl"], Start(**vars(start) | {"done": 1}))
    assert (again.done, again.left) == (2000, 5200)
    again.update(Training(2, "later", 3, 10, done=0, total=260))  # half as many as expected
    assert (again.done, again.left) == (2000 + 520, 2600 - 520)


def test_a_second_stage_that_was_seen_corrects_those_to_come() -> None:
    config = resolve(settings.make(method="bic", memory=20, later={"epochs": 10}, second={"epochs": 2}))
    start = Start([4, 4, 2], list("0123456789"), [100] * 10, memory=20, device="", precision="", done=1)
    work = Workload(config, SPECS["bic"], start)
    before = 10 * 420 + 2 * 420 + 10 * 216 + 2 * 216
    assert work.left == before
    work.update(Training(2, "later", 10, 10, done=420, total=420))
    assert work.left == before - 4200
    work.update(Training(2, "second", 1, 2, done=42, total=42))  # a tenth of what was expected
    assert work.left == 42 + 10 * 216 + 2 * 21.6


def test_a_rebalanced_head_and_exemplars_counted_in_bytes_are_expected() -> None:
    config = resolve(
        settings.make(method="der", memory_bytes=10**6, rebalance="head", rebalance_epochs=3,
                      first={"epochs": 4}, later={"epochs": 10})
    )  # fmt: skip
    start = Start([5, 5], list("0123456789"), [100] * 10, memory=50, device="", precision="", done=1)
    work = Workload(config, SPECS["der"], start)
    assert (work.done, work.left) == ((4 + 3) * 500, (10 + 3) * 550)


def test_a_pulse_tells_now_and_then_within_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(pulse.time, "monotonic", lambda: now[0])
    told: list[Training] = []
    beat = pulse.Pulse(told.append)
    for step in range(10):
        now[0] += 0.2
        beat(1, "later", 4, 170, [range(32)] * 9 + [range(5)], step)
    assert [event.done for event in told] == [3 * 32, 6 * 32, 9 * 32]
    assert told[0] == Training(2, "later", 5, 170, 96, 9 * 32 + 5)
