"""Only equals are ranked; parameters and bytes are those of the networks and images."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.learning import started
from helpers.results import keep, made
from jioc.cli.main import main
from jioc.errors import Refused
from jioc.methods import SPECS
from jioc.nets import catalogue
from jioc.nets.incremental import build
from jioc.report import leaderboard
from jioc.report.runs import group, read

CIFAR: dict[str, Any] = {
    "data": "cifar100", "backbone": "resnet32", "stem": "cifar", "image_size": 32, "canvas": 32,
    "memory": 2000, "augment": "standard",
}  # fmt: skip


COUNTED = [name for name, form in catalogue.BACKBONES.items() if not isinstance(form, catalogue.Mobile)]


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize(("stem", "cosine"), [("cifar", False), ("imagenet", True)])
def test_weights_are_counted_as_the_network_has_them(name: str, stem: str, cosine: bool) -> None:
    plan = {"backbone": name, "stem": stem, "channels": 3, "cosine": cosine, "maps": False}
    net = build(plan | {"head": "linear", "sizes": []})
    assert catalogue.parameters(name, stem, 3, cosine) == sum(p.numel() for p in net.backbone.parameters())


@pytest.mark.parametrize(
    ("method", "head"),
    [(name, "linear") for name, spec in SPECS.items() if spec.trains]
    + [(name, "cosine") for name, spec in SPECS.items() if not spec.own_head],
)
def test_the_parameters_are_those_of_the_network_that_answers(method: str, head: str) -> None:
    run = started(method, 0, **{"head": head} if head == "cosine" else {})
    for t in range(3):  # grown, not trained
        task, data = run.arrival(t)
        run.method.learn(task, data, lambda *_, **__: None)
    net = getattr(run.method, "boosted", None) or run.method.net
    training = ("aux.", "before.")
    count = sum(p.numel() for name, p in net.named_parameters() if not name.startswith(training))
    config = {"method": method, "backbone": "tiny", "stem": "cifar", "head": head}
    assert leaderboard.parameters(config, [4, 3, 3], 1) == count


def test_another_class_order_has_a_board_of_its_own_and_departures_a_name(tmp_path: Path) -> None:
    runs = [
        made("der", classes=100, tasks=10, **CIFAR | change)
        for change in (
            {"order_seed": 7},
            {"order": [*range(99, -1, -1)]},
            {"order": [*range(1, 100), 0]},
            {"memory": 0, "exemplar_size": "half"},
            {"weights": "w.pth"},
            {"holdout": 0.1, "judge_by": "test"},
            {"ema": 0.9},
            {"memory": None, "memory_bytes": 2000 * 3072, "exemplar_size": "half"},
        )
    ]
    sheets = leaderboard.boards(group(read([keep(tmp_path / "r", *runs)])))
    rows = [(sheet.title, line.names[1]) for sheet in sheets for line in sheet.lines if line.n]
    own = {row for row in rows if "classes in an order of their own (" in row[0]}
    assert len(own) == 2
    end = "no extra augmentation, resnet32{}, 6,144,000 bytes of exemplars"
    assert {*rows} - own == {
        ("cifar100, 10 tasks, no extra augmentation, resnet32, 0 bytes of exemplars", "DER"),
        ("cifar100, 10 tasks, classes in the order of seed 7, " + end.format(""), "DER"),
        ("cifar100, 10 tasks, " + end.format(", pretrained"), "DER, weights w.pth"),
        ("cifar100, 10 tasks, " + end.format("") + ", 10 % of the images left aside", "DER"),
        ("cifar100, 10 tasks, " + end.format(""), "DER, ema 0.9"),
        ("cifar100, 10 tasks, " + end.format("") + " at half size", "DER"),
    }


def test_rows_are_ranked_among_equals_beside_public_figures(tmp_path: Path) -> None:
    alls = [80.0, 75.0, 70.0, 65.0, 63.0, 62.0, 61.0, 60.0, 59.0, 58.0]
    runs = [
        made("der", seed=seed, classes=100, tasks=10, alls=[a + seed for a in alls], **CIFAR)
        for seed in (1, 2)
    ]
    runs += [made("der", classes=100, tasks=10, **CIFAR | {"augment": "autoaugment"})]
    runs += [made("icarl", classes=100, tasks=10, **CIFAR | {"memory": 1000})]
    runs += [made("icarl", classes=100, tasks=10, **CIFAR | {"holdout": 0.1})]
    sheets = {sheet.title: sheet for sheet in leaderboard.boards(group(read([keep(tmp_path / "r", *runs)])))}
    plain = sheets["cifar100, 10 tasks, no extra augmentation, resnet32, 6,144,000 bytes of exemplars"]
    names = [line.names[:2] for line in plain.lines]
    ours = sum(alls) / 10 + 1.5
    assert names[:3] == [["1", "DER + JIOC"], ["2", "DER"], ["3", "MAFDRC"]] and 65.66 < ours < 67.72
    assert names[3] == ["4", "DER"] and plain.lines[3].n == 2 and "ours" in plain.lines[3].names[2]
    assert plain.lines[3].figures[0].text.startswith(f"{ours:.2f} ± 0.71")
    assert plain.lines[3].figures[3].text == "4,699,140"  # ten backbones, as the kept results' DER
    assert f"our best: DER, {ours:.2f}, 2 seeds." in plain.notes[0]
    assert "passes: WA 65.66; iCaRL 64.69; FOSTER 62.70. Not passed: DER + JIOC 71.88;" in plain.notes[0]
    assert any("AutoAugment, resnet32" in title for title in sheets)
    assert any("3,072,000 bytes" in title for title in sheets)
    told = [note for sheet in sheets.values() for note in sheet.notes]
    assert "left out, unfinished or judged by a hold-out: 1 setting" in told


def test_what_all_of_a_board_share_is_told_once(tmp_path: Path) -> None:
    """Rows of a protocol differ in their names by what they differ in, ordered ones too."""
    protocol = CIFAR | {
        "long_tail": 100, "memory": None, "memory_per_class": 20, "holdout": 0.1, "judge_by": "test",
        "augment": "resized-crop", "later": {"epochs": 160},
    }  # fmt: skip
    changes: list[dict[str, Any]] = [{"rebalance": "none"}, {"rebalance": "head"}, {"order": "original"}]
    runs = [made("der", classes=100, tasks=10, **protocol | change) for change in changes]
    sheets = leaderboard.boards(group(read([keep(tmp_path / "r", *runs)])))
    names = {sheet.title: {line.names[1] for line in sheet.lines if line.n} for sheet in sheets}
    shuffled, ordered = sorted((title for title, ours in names.items() if ours), key=len)
    assert names[shuffled] == {"DER", "DER, rebalance head"}
    assert "epochs 160" in names[ordered].pop() and "classes in their order" in ordered
    (sheet,) = (sheet for sheet in sheets if sheet.title == shuffled)
    assert any(note.startswith("each of ours: ") and "epochs 160" in note for note in sheet.notes)


def test_runs_of_a_hold_out_alone_are_refused(tmp_path: Path) -> None:
    runs = keep(tmp_path / "r", made("icarl", holdout=0.1))
    with pytest.raises(Refused, match="nothing to rank"):
        leaderboard.boards(group(read([runs])))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_the_command_prints_it(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = keep(tmp_path / "r", *(made("icarl", data="digits", memory=m) for m in (20, 40)))
    assert main(["table", str(runs), "--leaderboard", "--format", form]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("iCaRL") == 2 and "MAFDRC" not in printed.out  # other data than theirs
    assert main(["table", str(runs), "--leaderboard", "--paper"]) == 2


def test_the_mean_over_tasks_counts_a_large_task_as_a_small_one(tmp_path: Path) -> None:
    result = made("icarl", tasks=2)
    for row, per_task in zip(result["tasks"], ([80.0], [60.0, 20.0]), strict=True):
        row["cnn"]["per_task"] = per_task
    (one,) = group(read([keep(tmp_path / "r", result)]))
    assert one.figures("task mean", "cnn") == [(80 + (60 + 20) / 2) / 2]
    assert main(["table", str(tmp_path / "r"), "--task-mean"]) == 0


def test_every_public_figure_names_its_source() -> None:
    rows = json.loads((Path(leaderboard.__file__).parent / "public.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 32 and all(row["source"] and 0 < row["average"] < 100 for row in rows)


def test_the_paper_s_best_figure_of_every_column_is_ranked(tmp_path: Path) -> None:
    """BiC with ResNet18 and 1,000 exemplars: the paper's best of that column is DER + JIOC, 56.29."""
    run = made(
        "bic", classes=100, tasks=10, **CIFAR | {"memory": 1000, "backbone": "resnet18", "stem": "imagenet"}
    )
    sheets = leaderboard.boards(group(read([keep(tmp_path / "r", run)])))
    (board,) = (sheet for sheet in sheets if any(line.n for line in sheet.lines))
    assert board.title.endswith("resnet18, stem imagenet, 3,072,000 bytes of exemplars")
    assert [line.names[1] for line in board.lines] == ["BiC", "DER + JIOC"]
    assert board.lines[1].names[2] == "the JIOC paper, table 3"
    assert board.lines[1].figures[0].text == "56.29"
    assert len(leaderboard._of_the_paper()) == 15
