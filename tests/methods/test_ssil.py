"""SS-IL against slow formulas, in float64."""

import pytest
import torch

from helpers.formulas import BATCH, TASK, Y, kl, log_softmax, method, numbers
from jioc.coordination import JIOC
from jioc.data.loader import TaskData
from jioc.memory import Memory
from jioc.methods import ssil
from jioc.types import Output, Task


def test_ssil_has_a_softmax_for_old_and_one_for_new_and_distils_task_by_task() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    terms = host.loss(BATCH, Output(z, z), Output(old, old), TASK)
    for i, (row, teacher, y) in enumerate(zip(z.tolist(), old.tolist(), Y.tolist(), strict=True)):
        cls = -log_softmax(row[:5])[y] if y < 5 else -log_softmax(row[5:])[y - 5]
        kd = 4 * (kl(teacher[:2], row[:2], 2) + kl(teacher[2:], row[2:5], 2))
        assert terms["cls"][i].item() == pytest.approx(cls, rel=1e-12)
        assert terms["kd"][i].item() == pytest.approx(kd, rel=1e-10)


def test_ssil_a_side_of_one_class_is_told_from_all_classes() -> None:
    task = Task(1, (3, 1), 10, 10)
    z, y = numbers(2, 4), torch.tensor([1, 3])
    kept = ssil.separated(z, y < 3, task)
    assert kept.isinf().tolist() == [[False, False, False, True], [False] * 4]


def test_ssil_batches_keep_the_ratio_and_go_round_the_exemplars_evenly() -> None:
    memory = Memory(30)
    memory.classes = [torch.arange(1000, 1009)]
    data = TaskData([torch.arange(0, 70), torch.arange(100, 130)], 32, lambda: None, torch.Generator())
    visits = data.beside_memory(memory, 0.25)
    for seed in range(3):
        batches = visits.epoch(torch.Generator().manual_seed(seed))
        news, olds = [b[b < 1000] for b in batches], [b[b >= 1000] for b in batches]
        assert [len(b) for b in news] == [32, 32, 36] and [len(b) for b in olds] == [8, 8, 9]
        assert sorted(torch.cat(news).tolist()) == sorted(data.new.tolist())
        times = torch.bincount(torch.cat(olds) - 1000, minlength=9)
        assert times.max() - times.min() <= 1
        assert sum(map(len, batches)) == visits.images
    assert data.beside_memory(Memory(0), 0.25).images == 100


def test_in_ssil_output_coordination_adds_suppression_alone() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    terms = host.loss(BATCH, Output(z, z), Output(old, old), TASK)
    both = JIOC(coordinate="oc", host_kd="keep")(terms, BATCH, Output(z, z), Output(old, old), TASK)
    assert set(both) == {"cls", "kd", "suppress"}
    assert both["cls"] is terms["cls"] and both["kd"] is terms["kd"]


def test_only_the_suppression_sees_new_heads_of_ssil_sink_together() -> None:
    host, z, old = method("ssil"), numbers(6, 7), numbers(6, 5, seed=1)
    sunk = torch.cat([z[:, :5], z[:, 5:] - 3], 1)
    oc = JIOC(coordinate="oc", host_kd="keep")
    before, after = (
        oc(
            host.loss(BATCH, Output(f, f), Output(old, old), TASK),
            BATCH,
            Output(f, f),
            Output(old, old),
            TASK,
        )
        for f in (z, sunk)
    )
    torch.testing.assert_close(after["cls"], before["cls"])
    torch.testing.assert_close(after["kd"], before["kd"])
    assert (after["suppress"] < before["suppress"])[BATCH.old].all() and BATCH.old.any()
