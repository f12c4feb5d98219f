"""Figures of a task and of a run, counted by hand."""

import pytest
import torch

from jioc.metrics import accuracy, summary
from jioc.results import Accuracy, TaskRow


def test_a_task_counted_by_hand() -> None:
    y = torch.tensor([0, 0, 1, 2, 2, 3])
    ranked = torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1], [0, 2], [0, 1]])
    row = accuracy(ranked, y, (1, 3))
    assert row["all"] == 50 and row["old"] == 50 and row["new"] == 50
    assert row["per_task"] == [50, 50] and row["per_class"] == [50, 100, 50, 0]
    assert row["top5"] is None  # fewer than five classes


def test_top5_counts_the_label_anywhere_among_five() -> None:
    ranked = torch.tensor([[5, 4, 3, 2, 1], [0, 1, 2, 3, 4]])
    assert accuracy(ranked, torch.tensor([1, 5]), (6,))["top5"] == 50


def test_a_first_task_has_no_old_classes_and_uneven_tasks_are_told_apart() -> None:
    assert accuracy(torch.tensor([[0], [0]]), torch.tensor([0, 0]), (1,))["old"] is None
    assert accuracy(torch.tensor([[0], [1], [1]]), torch.tensor([0, 1, 2]), (2, 1))["per_task"] == [100, 0]


def row(every: float, per_task: list[float | None], **readouts: Accuracy) -> TaskRow:
    cnn = Accuracy(all=every, per_task=per_task)
    return TaskRow(task=len(per_task), classes=[0, 1], cnn=cnn, readouts=readouts)


def test_a_run_counted_by_hand() -> None:
    rows = [row(90, [90]), row(70, [80, 60]), row(50, [40, 70, 40])]
    figures = summary(rows, ["cnn", "nme"])
    assert figures["average"]["cnn"] == pytest.approx(70) and figures["last"]["cnn"] == 50
    assert figures["forgetting"]["cnn"] == pytest.approx(((90 - 40) + (70 - 70)) / 2)
    assert figures["average"]["nme"] is None


def test_what_was_not_measured_is_not_forgotten() -> None:
    missing = [row(90, [90]), row(70, [None, 60]), row(50, [40, 70, 40])]
    assert summary(missing, ["cnn"])["forgetting"]["cnn"] == pytest.approx(((90 - 40) + (70 - 70)) / 2)
    gone = [row(90, [90]), row(70, [80, 60]), row(50, [None, 70, 40])]
    assert summary(gone, ["cnn"])["forgetting"]["cnn"] is None


def test_a_read_out_that_no_entry_names_is_averaged_where_every_task_has_it() -> None:
    first, second = Accuracy(all=50, per_task=[90]), Accuracy(all=40, per_task=[80, 60])
    rows = [row(90, [90], mine=first), row(70, [80, 60], mine=second)]
    assert summary(rows, ["cnn"])["average"] == {"cnn": 80, "mine": 45}
    assert summary([row(90, [90]), rows[1]], ["cnn"])["average"]["mine"] is None
