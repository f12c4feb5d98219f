"""What a method that is not ours must keep to, each rule with its sentence, before a run has a folder."""

import sys
from pathlib import Path
from typing import Any

import pytest

import jioc
from helpers.runs import collect_notes, logged
from jioc.cli.main import main
from jioc.config import make
from jioc.data.load import load_dataset
from jioc.errors import Failed, Refused
from jioc.methods.registry import load_method
from jioc.resolve.derive import resolve
from jioc.training.run import run
from jioc.training.trial import try_method

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
    HELD

    def LOSS(self, batch, out, old, task):
        z = out.logits
        BEFORE
        return {"cls": cross_entropy(z, batch.y)}

    def learn(self, task, data, fit):
        LEARN
        AFTER
"""
USUAL = {
    "HELD": "pass",
    "LOSS": "loss",
    "BEFORE": "pass",
    "LEARN": "super().learn(task, data, fit)",
    "AFTER": "pass",
}


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
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
    assert main(["run", slipped(tmp_path, **slip), *QUICK, "--out", str(tmp_path / "run")]) == 1
    captured = capsys.readouterr().err
    assert sentence in captured and captured.count("\n") == 1
    assert not (tmp_path / "run" / "result.json").exists()


def slipped(folder: Path, **slip: str) -> str:
    """The file of a method with these lines in place of the usual ones, which they may name."""
    text = SLIPS
    for word, code in (*slip.items(), *USUAL.items()):
        text = text.replace(word, code)
    (folder / "slip.py").write_text(text)
    return str(folder / "slip.py")


def told(method: str, **values: Any) -> list[str]:
    """The notes on a method before its run."""
    config = resolve(make(method=method, **values))
    return list(try_method(config, load_dataset(config)))


LOSES = "slip learns on with {}, which a resumed run and a saved model lose: name it in `persistent`"
PREV = "self.prev = self.net.head.weight.detach().mean()"


@pytest.mark.parametrize(
    ("slip", "names", "more"),
    [
        ({"AFTER": PREV, "BEFORE": "z = z * (1 + getattr(self, 'prev', 0))"}, "'prev'", ""),
        ({"AFTER": f"{PREV}; self.b = 1", "BEFORE": "if task.n_old: z = z * self.prev"}, "'prev'", ""),
        (
            {"AFTER": "self.a, self.b = 1, 2", "BEFORE": "z = z * (1 + len(vars(self).keys() & {*'ab'}))"},
            "'a' and 'b'",
            "",
        ),
        (
            {
                "LEARN": "self.seen = {*getattr(self, 'seen', ()), task.index}; LEARN",
                "BEFORE": "z = z * len(self.seen)",
            },
            "'seen'",
            "; 'seen' is or holds a set, and it takes modules, parameters",
        ),
        (
            {
                "LEARN": "self.centre = self.net.head.weight.new_zeros(1); LEARN",
                "BEFORE": "self.centre.lerp_(z.detach().mean(), 0.5); z = z + z * self.centre",
            },
            "'centre'",
            "",
        ),
        (  # of the first step of an epoch
            {
                "HELD": "def before_step(self, task, epoch, epochs, i): self.z = self.z if i else epoch",
                "BEFORE": "z = z * (1 + self.z)",
            },
            "'z'",
            "",
        ),
        (  # either is enough, and a lock cannot be copied
            {
                "AFTER": "import threading; self.a = self.b = 1; self.lock = threading.Lock()",
                "BEFORE": "z = z * (1 + ('a' in vars(self) or 'b' in vars(self)))",
            },
            "'a'",
            "",
        ),
        (  # without it the loss breaks another rule
            {
                "AFTER": "self.old = True",
                "BEFORE": "if task.n_old and not self.old: return {'cls': z.mean()}",
                "LOSS": "loss",
            },
            "'old'",
            "",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_method_that_would_end_elsewhere_after_an_interruption_is_told_what_it_loses(
    slip: dict[str, str], names: str, more: str, tmp_path: Path
) -> None:
    method = slipped(tmp_path, **slip)
    with pytest.raises(Failed) as error:
        told(method)
    assert str(error.value).startswith(LOSES.format(names) + more)


@pytest.mark.parametrize(
    "slip",
    [
        {"HELD": "seen = {}", "BEFORE": "self.seen[task.index] = 1; z = z * len(self.seen)"},
        {
            "HELD": "def __init__(self, **k): super().__init__(**k); self.back = self.net.backbone",
            "BEFORE": "z = z * (1 + self.back(batch.x)[0].mean())",
        },
    ],
    ids=["a dictionary of the class", "a part of the network"],
)
def test_a_run_that_would_end_elsewhere_for_other_reasons_is_noted(
    slip: dict[str, str], tmp_path: Path
) -> None:
    (note,) = told(slipped(tmp_path, **slip))
    assert note.startswith("'slip' ends elsewhere if its run is interrupted and resumed: have it reach")


@pytest.mark.parametrize(
    "value",
    [
        "task.index",
        "torch.nn.LazyLinear(4)",
        "torch.ones(2, dtype=torch.complex64).conj().imag",
        "torch.ones(2, device='meta')",
        "threading.Lock()",
        "[task, {self.net.head.weight: self.net}]",
        "(lambda mine: mine.append(mine) or mine)([])",
        "numpy.random.default_rng(task.index)",
        "self.net.head.weight * 2",
        "float('nan')",
    ],
)
def test_what_a_method_keeps_and_does_not_learn_by_is_its_own_affair(value: str, tmp_path: Path) -> None:
    code = f"import numpy, threading, torch; self.kept = {value}"
    assert not told(slipped(tmp_path, AFTER=code))
    assert not told(slipped(tmp_path, LEARN=f"{code}; LEARN", BEFORE="self.kept"))


@pytest.mark.parametrize(
    ("slip", "note"),
    [
        (
            {"BEFORE": "import torch; z = z + torch.rand(())"},
            "'slip' draws random numbers from torch's own generator, so that no run of it repeats;",
        ),
        (
            {"BEFORE": "import random, numpy; z = z * (random.random() + numpy.random.rand())"},
            "'slip' draws random numbers from NumPy's and Python's own generator, so that no run",
        ),
        (
            {"LEARN": "self.net.grow(task.n_new, self.generator); fit(self, task, data.alone())"},
            "'slip' keeps no exemplars: `learn` calls self.remember(task, data) in the end, or puts",
        ),
        (
            {
                "HELD": "def __init__(self, **k): super().__init__(**k); import torch; "
                "self.eta = torch.nn.Parameter(torch.ones(1))",
                "BEFORE": "z = z * self.eta",
            },
            "the loss of 'slip' depends on 'eta', which no stage trains;",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_hardly_meant_is_noted(slip: dict[str, str], note: str, tmp_path: Path) -> None:
    (found,) = told(slipped(tmp_path, **slip))
    assert found.startswith(note)


def test_a_head_that_would_not_be_rebalanced_is_refused(tmp_path: Path) -> None:
    learn = "self.net.grow(task.n_new, self.generator); fit(self, task, data.with_memory(self.memory)); "
    keep = "self.memory.update(data.classes, lambda index: data.features(self.net, index), data.generator)"
    with pytest.raises(Refused, match="--rebalance: `learn` of slip calls neither self.remember"):
        told(slipped(tmp_path, LEARN=learn + keep), rebalance="head")
    anew = f"{learn}self.rebalance and self.rebalance(task, data); {keep}"
    assert not told(slipped(tmp_path, LEARN=anew), rebalance="head")
    assert not told(slipped(tmp_path), rebalance="head")


@pytest.mark.parametrize(
    "slip",
    [
        {"BEFORE": "import torch; torch.rand(())"},
        {"HELD": "best, persistent = float('nan'), ('best',)"},
        {  # a quota of its own
            "LEARN": "self.net.grow(task.n_new, self.generator); "
            "fit(self, task, data.with_memory(self.memory))",
            "AFTER": "features = lambda index: data.features(self.net, index); "
            "self.memory.update(data.classes, features, data.generator, classes=10)",
        },
        {"BEFORE": "z * self.memory.total"},
        {  # trained, and then set back
            "HELD": "import torch; persistent = ('by',); by = torch.nn.Parameter(torch.ones(1))",
            "BEFORE": "z = z * self.by",
            "LEARN": "self.net.grow(task.n_new, self.generator); "
            "fit(self, task, data.with_memory(self.memory), params=[*self.net.parameters(), self.by]); "
            "self.by.data.fill_(1); self.remember(task, data)",
        },
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_honest_method_hears_nothing(slip: dict[str, str], tmp_path: Path) -> None:
    assert not told(slipped(tmp_path, **slip))


def test_the_kind_of_memory_is_that_of_the_run(tmp_path: Path) -> None:
    method = slipped(tmp_path, BEFORE="z = z * (1 + self.memory.per_class)")
    assert not told(method, memory=None, memory_per_class=4)


@pytest.mark.parametrize(
    "after",
    [
        "type(self).seen = getattr(self, 'seen', 0) + 1",
        "self.book.setdefault('a', []).append(1)",
        "self.book.setdefault('b', {})[task.index] = self.net.head.weight",
        "global COUNT; COUNT = globals().get('COUNT', 0) + 1",
        "KEPT['a'].add(task.index)",
    ],
)
def test_nothing_of_a_trial_stays_in_a_class_or_its_file(after: str, tmp_path: Path) -> None:
    method = slipped(tmp_path, HELD="book = {'a': []}", AFTER=after)
    path = tmp_path / "slip.py"
    path.write_text(path.read_text().replace("import jioc\n", "import jioc\nKEPT = {'a': set()}\n", 1))
    cls = load_method(method)
    told(method)
    file = vars(sys.modules[cls.__module__])
    assert (cls.book, file["KEPT"], "COUNT" in file) == ({"a": []}, {"a": set()}, False)
    assert not hasattr(cls, "seen")


def test_what_is_named_or_set_anew_before_it_is_used_is_kept(tmp_path: Path) -> None:
    used = {"AFTER": PREV, "BEFORE": "z = z if self.prev is None else z * (1 + self.prev)"}
    assert not told(slipped(tmp_path, **used, HELD="prev, persistent = None, ('prev',)"))
    anew = {"LEARN": f"{PREV.replace('mean', 'sum')}; LEARN"}
    assert not told(slipped(tmp_path, **anew, BEFORE=used["BEFORE"]))


EXPERT = """
from dataclasses import replace

import jioc
from jioc.losses import cross_entropy
from jioc.nets.incremental import build


@jioc.register(replace(jioc.methods.SPECS["replay"], name="expert", title="Expert"))
class Expert(jioc.Method):
    persistent = ("expert",)
    expert = None

    def loss(self, batch, out, old, task):
        return {"cls": cross_entropy(out.logits, batch.y)}

    def apart(self, batch, out, old, task):
        return {"new": cross_entropy(out.logits, batch.y - task.n_old)}

    def learn(self, task, data, fit):
        self.expert = build({**self.net.plan, "sizes": []}, self.generator)
        self.expert.grow(task.n_new, self.generator)
        fit(self, task, data.alone(), net=self.expert, loss=self.apart, coordination=None)
        super().learn(task, data, fit)
"""


def test_a_network_of_its_own_may_answer_for_some_classes_alone(tmp_path: Path) -> None:
    (tmp_path / "expert.py").write_text(EXPERT)
    assert not told(str(tmp_path / "expert.py"))


def test_a_name_alone_registers_no_method_of_ones_own() -> None:
    with pytest.raises(
        ValueError, match=r"give an entry: replace\(SPECS\['replay'\], name='mine', title=…\)"
    ):
        jioc.register("mine")
