"""What a method that is not ours must keep to, each rule with its sentence, before a run has a folder."""

import threading
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import jioc
from helpers.runs import collect_notes, logged
from jioc.cli.main import main
from jioc.errors import Refused
from jioc.methods import contract
from jioc.training.run import run

QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]
WRONG = """
from dataclasses import replace

import torch.nn.functional as F

import jioc


@jioc.register(replace(jioc.methods.SPECS["replay"], name="wrong", title="Wrong"))
class Wrong(jioc.Method):
    def loss(self, batch, out, old, task):
        return RETURNED
"""


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (
            '{"cls": F.cross_entropy(out.logits, batch.y)}',
            "the loss 'cls' has the shape (); one number per image is",
        ),
        ('{"cls": 1.0}', "the loss 'cls' is a float; one number per image is needed"),
        ("out.logits[:, 0]", "the loss of wrong returns Tensor; a dict of named terms is needed"),
        ("None", "the loss of wrong returns NoneType; a dict"),
        ("{}", "the loss of wrong returns an empty dict; a dict"),
        ("{0: out.logits[:, 0]}", "the loss of wrong names a term 0; a name is a word, such as 'cls'"),
        ('{"cls": batch.y}', "the loss 'cls' of wrong holds int64; floating-point numbers are needed"),
        (
            '{"cls": out.logits[:, 0].detach()}',
            "the loss of wrong has no gradient: no term depends on what is trained",
        ),
        ('{"ce": out.logits[:, 0]}', "input coordination weighs the term 'cls', and this loss has only ce"),
    ],
)
def test_a_loss_that_is_no_named_terms_of_single_images_is_refused(
    returned: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.py").write_text(WRONG.replace("RETURNED", returned))
    words = [*QUICK, "--coordinate", "jioc", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "wrong.py"), *words]) == 1
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1


def test_a_term_without_gradient_may_stand_beside_one_that_has_one(tmp_path: Path) -> None:
    returned = (
        '{"cls": F.cross_entropy(out.logits, batch.y, reduction="none"), "told": out.logits[:, 0].detach()}'
    )
    (tmp_path / "own.py").write_text(WRONG.replace("RETURNED", returned))
    words = [
        *["--tasks", "1", "--epochs", "1", "--backbone", "tiny", "--device", "cpu", "--out"],
        str(tmp_path / "run"),
    ]
    assert main(["run", str(tmp_path / "own.py"), *words]) == 0
    log = logged(tmp_path / "run")
    assert set(log[-1]["terms"]) == {"cls", "told"}


WEIGHED = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy, distill


@jioc.register(replace(jioc.methods.SPECS["replay"], name="weighed", title="Weighed", distils=True))
class Weighed(jioc.Method):
    def loss(self, batch, out, old, task):
        terms = {"cls": cross_entropy(out.logits, batch.y)}
        if old is not None:
            terms["kd"] = distill(out.logits[:, : task.n_old], old.logits)
        return terms

    def weights(self, task):
        return WEIGHTS
"""


@pytest.mark.parametrize(
    ("weights", "words", "sentence"),
    [
        ("{'cls': 1.0, 'KD': 100.0}", [], "'KD', which its loss does not return; it returns 'cls', 'kd'\n"),
        (
            "{'Kd': 1, 'KD': 1}",
            ["--coordinate", "jioc"],
            "weights of weighed weigh 'KD', 'Kd', which its loss does not",
        ),
        ("{'cls': 0.5, 'kd': 2.0, 'suppress': 0.5}", [], ""),
        ("{'cls': 0.5, 'kd': 2.0, 'suppress': 0.5}", ["--coordinate", "jioc", "--host-kd", "drop"], ""),
    ],
)
def test_a_weight_without_its_term_is_refused_once_there_are_old_classes(
    weights: str, words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weighed.py").write_text(WEIGHED.replace("WEIGHTS", weights))
    words = [*QUICK, "--task-sizes", "8,2", "--epochs", "1", *words, "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "weighed.py"), *words]) == (1 if sentence else 0)
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == bool(sentence)
    assert (tmp_path / "run").exists() == (not sentence)  # before the run has a folder
    if not sentence:
        assert {line["task"] for line in logged(tmp_path / "run")} == {1, 2}


READS = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy


@jioc.register(replace(jioc.methods.SPECS["replay"], name="reads", title="Reads", MORE))
class Reads(jioc.Method):
    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def readouts(self, x):
        z = self.net(x).logits
        return RETURNED
"""
BESIDE = 'headline="far", readouts=("cnn", "far")'


@pytest.mark.parametrize(
    ("more", "returned", "sentence"),
    [
        ('headline="far"', '{"cnn": z}', "reads has the readouts cnn, nme, and 'far' must be among them"),
        ('readouts=("far",)', '{"far": z}', "reads has the readouts far, and 'cnn' must be among them"),
        (
            "",
            '{"head": z}',
            "the readouts of reads are 'head'; a dict of scores with 'cnn' among them is needed",
        ),
        ("", "z", "the readouts of reads are Tensor; a dict of scores with 'cnn' among them is needed"),
        (
            "",
            '{"cnn": z, "far": z[:, 1:]}',
            "the readouts of reads: 'far' has the shape (1, 1); a score for each",
        ),
        (
            "",
            '{"cnn": z, "far": z.argmax(1).tolist()}',
            "the readouts of reads: 'far' is a list; a score for each",
        ),
        (
            "",
            '{"head": z + len(self.means)}',
            "the readouts of reads are 'head'; a dict of scores with 'cnn' among",
        ),
        ("", '{"cnn": z, "../far": z}', "the readouts of reads: '../far' is no name; a name has"),
        (BESIDE, '{"cnn": z}', "reads is judged by 'far', and its readouts have given 'cnn'"),
    ],
)
def test_read_outs_that_cannot_be_judged_are_refused(
    more: str, returned: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reads.py").write_text(READS.replace("MORE", more).replace("RETURNED", returned))
    words = [*QUICK, "--task-sizes", "8,2", "--epochs", "1", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "reads.py"), *words]) in (1, 2)
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_read_outs_of_its_own_judge_a_method_and_its_exemplars_are_not_denied(tmp_path: Path) -> None:
    """Scores of no class at first, as of prototypes that are yet to be found, are no mistake."""
    returned = '{"cnn": z, "far": z[:, :0] if self.means is None else -z}'
    (tmp_path / "reads.py").write_text(READS.replace("MORE", BESIDE).replace("RETURNED", returned))
    notes: list[str] = []
    result = run(
        method=str(tmp_path / "reads.py"),
        task_sizes=(8, 2),
        memory=40,
        first={"epochs": 1},
        later={"epochs": 1},
        device="cpu",
        callback=collect_notes(notes),
    )
    assert (
        result["headline"] == "far"
        and result["average"]["far"] is not None
        and result["tasks"][-1]["memory"] == 40
    )
    assert not any("no exemplar is kept" in text for text in notes)


@pytest.mark.parametrize("memory", ["exemplars", "none"])
def test_a_method_judged_by_the_means_of_exemplars_is_refused_without_any(
    memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A method whose means are of something else keeps no exemplars by its entry, and is judged by them."""
    own = '{"cnn": z}' if memory == "exemplars" else '{"cnn": z, "nme": -z}'
    source = READS.replace("MORE", f'headline="nme", memory="{memory}"').replace("RETURNED", own)
    (tmp_path / "reads.py").write_text(source)
    words = [
        "run",
        str(tmp_path / "reads.py"),
        *QUICK,
        "--task-sizes",
        "8,2",
        "--epochs",
        "1",
        "--memory",
        "0",
    ]
    ended = [main([*words, "--dry-run"]), main([*words, "--out", str(tmp_path / "run")])]
    captured = capsys.readouterr().err
    if memory == "none":
        assert ended == [0, 0]
        return
    assert ended == [2, 2] and not (tmp_path / "run").exists()
    assert (
        captured.count("\n") == 2
        and "--memory 0 keeps no exemplars, and reads is judged by their means (nme);" in captured
    )
    with pytest.raises(Refused, match="judged by their means"):
        run(method=str(tmp_path / "reads.py"), memory=0)


def test_shares_are_called_by_a_method_whose_entry_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else tables would take `--host-factors` for an option without effect."""
    returned = '{"cls": F.cross_entropy(out.logits, batch.y, reduction="none")}'
    own = (
        WRONG.replace("RETURNED", returned)
        + "\n    def weights(self, task):\n        return self.shares(task)\n"
    )
    (tmp_path / "own.py").write_text(own)
    words = ["run", str(tmp_path / "own.py"), *QUICK, "--coordinate", "jioc", "--out"]
    assert main([*words, str(tmp_path / "run")]) == 1
    assert "wrong calls self.shares, and its entry does not say shares=True" in capsys.readouterr().err
    (tmp_path / "own.py").write_text(own.replace('title="Wrong"', 'title="Own", shares=True'))
    assert main([*words, str(tmp_path / "run")]) == 0


SLIPS = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy, distill


@jioc.register(replace(jioc.methods.SPECS["replay"], name="slip", title="Slip"))
class Slip(jioc.Method):
    def LOSS(self, batch, out, old, task):
        z = out.logits
        BEFORE
        return {"cls": cross_entropy(z, batch.y)}

    def learn(self, task, data, fit):
        LEARN
        AFTER
"""
USUAL = {"LOSS": "loss", "BEFORE": "pass", "LEARN": "super().learn(task, data, fit)", "AFTER": "pass"}


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
        ({"AFTER": "self.prev = self.net.head.weight.detach().clone()"}, "slip changes 'prev' as it learns"),
        ({"AFTER": "self.tasks = getattr(self, 'tasks', 0) + 1"}, "slip changes 'tasks' as it learns a task"),
        (
            {"LEARN": "self.seen = {*getattr(self, 'seen', ()), task.index}"},
            "slip changes 'seen' as it learns",
        ),
        (
            {"BEFORE": "if task.n_old: z[:, : task.n_old] -= 5"},
            "slip changes out.logits in place, which JIOC and read-outs use after it; change a clone",
        ),
        (
            {"BEFORE": "if task.n_old: distill(z[:, : task.n_old], old.logits)"},
            "slip asks for the teacher's logits; in the first task there is no teacher, and later only if",
        ),
        ({"LOSS": "losss"}, "slip has no `loss`"),
        (
            {"LEARN": "fit(self, task, data.with_memory(self.memory))"},
            "the network of slip answers for 0 classes of 2: `learn` calls self.net.grow(",
        ),
        (
            {"AFTER": "fit(self, task, data.alone(), stage='second')"},
            "slip fits a stage 'second', which its entry does not have",
        ),
        (
            {"AFTER": "fit(self, task, data.alone(), stage='third')"},
            "slip fits a stage 'third', which its entry does not have",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_usual_slip_gets_a_sentence_before_the_run_begins(
    slip: dict[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SLIPS
    for word, code in (USUAL | slip).items():
        text = text.replace(word, code)
    (tmp_path / "slip.py").write_text(text)
    assert main(["run", str(tmp_path / "slip.py"), *QUICK, "--out", str(tmp_path / "run")]) == 1
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1
    assert not (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (None, torch.ones(2)),
        (torch.ones(2), torch.ones(2, dtype=torch.long)),
        (torch.ones(2), torch.ones(2, 1)),
        (np.ones(2), 1.0),
        (1.0, np.float64(1.0)),
        (np.float32(1), np.float32(2)),
        ([1, {"a": np.ones(2)}], [1, {"a": np.zeros(2)}]),
        ({1}, {1, 2}),
        (deque([1]), deque([2])),
        (b"a", b"b"),
        (torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)),
        (nn.Linear(1, 1), nn.Linear(1, 1)),
    ],
)
def test_what_has_changed_has_another_mark(was: object, now: object) -> None:
    assert contract.mark_of(was, set()) != contract.mark_of(now, set())


NET = nn.Linear(1, 1)


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([float("nan"), 1.0], dtype=torch.bfloat16),
        np.array([float("nan")]),
        [1, {"a": np.ones(2), "b": (float("nan"), None)}],
        torch.ones(2, 3).T,
        torch.tensor(True),
        {"lock": threading.Lock(), "call": print},
        [torch.ones(1, requires_grad=True) * 2],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_not_changed_has_its_mark(value: object) -> None:
    assert contract.mark_of(value, set()) == contract.mark_of(value, set())


def test_a_module_changes_in_place_unless_a_checkpoint_holds_it() -> None:
    before = [contract.mark_of([NET], held) for held in (set(), {id(NET)})]
    with torch.no_grad():
        NET.weight += 1
    after = [contract.mark_of([NET], held) for held in (set(), {id(NET)})]
    assert before[0] != after[0] and before[1] == after[1]


def test_what_each_task_sets_anew_is_scratch(tmp_path: Path) -> None:
    text = SLIPS.replace("    def LOSS", '    scratch = ("prev",)\n\n    def LOSS')
    for word, code in (USUAL | {"AFTER": "self.prev = self.net.head.weight.detach().clone()"}).items():
        text = text.replace(word, code)
    (tmp_path / "own.py").write_text(text)
    assert main(["run", str(tmp_path / "own.py"), *QUICK, "--out", str(tmp_path / "run")]) == 0


def test_a_name_alone_registers_no_method_of_ones_own() -> None:
    with pytest.raises(
        ValueError, match=r"give an entry: replace\(SPECS\['replay'\], name='mine', title=…\)"
    ):
        jioc.register("mine")
