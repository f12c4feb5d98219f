"""Carry out cases: lay files, have the worker do the command, say what went wrong, keep what repeats it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from helpers import hostile
from helpers.paths import ROOT
from helpers.trees import class_folders

HERE = "HERE"  # stands for the case's folder, in words and in files
STATUSES = {0, 1, 2, 75, 130}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TRAP = "open('ran', 'w')\n"  # a Python file that nothing may run unless it was named
QUICK = ["--backbone", "tiny", "--image-size", "8", "--memory", "8", "--epochs", "1", "--first-epochs", "1"]
RECIPE = {
    "base": {"method": "replay", "data": "HERE/photos", "backbone": "tiny", "image_size": 8, "memory": 8},
    "matrix": {"coordination.coordinate": ["none", "jioc"], "later.epochs": [1]},
    "seeds": [1],
}
PYCIL = {
    "prefix": "reproduce", "dataset": "cifar100", "memory_size": 200, "memory_per_class": 20,
    "fixed_memory": False, "shuffle": True, "init_cls": 10, "increment": 10, "model_name": "icarl",
    "convnet_type": "resnet32", "device": ["-1"], "seed": [1993],
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command in a folder of its own, and what it may do there."""

    kind: str
    argv: tuple[str, ...]
    files: dict[str, bytes | str] = field(default_factory=dict)  # by path: content, or a name in hostile.PUT
    parts: tuple[str, ...] = ()  # of the base that are there too
    writable: tuple[str, ...] = ()
    runnable: str = "no"  # "no"; "once said": after the file was named on the terminal; "yes"
    stdout: str | None = None  # a device in place of a file
    patience: int = 1  # times as long as others before it hangs


@dataclass(frozen=True)
class Outcome:
    case: Case
    status: int | None
    out: str
    err: str
    faults: list[str]
    operations: int
    seconds: float


class Bench:
    """A folder for cases, a base that they start from, and a worker."""

    def __init__(self, root: Path, seconds: float = 10.0):
        self.root, self.base, self.here, self.seconds = root, root / "base", root / "case", seconds
        self.worker: subprocess.Popen[bytes] | None = None
        self.base.mkdir(parents=True)
        (root / "home").mkdir()
        self._lay_base()

    def _start(self) -> "subprocess.Popen[bytes]":
        env = os.environ | {
            "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
            "JIOC_CACHE": str(self.here / "cache"), "HOME": str(self.root / "home"), "COLUMNS": "120",
            "MPLCONFIGDIR": str(self.root / "home"), "PYTHONIOENCODING": "utf-8", "JIOC_COMMIT": "none",
            "TORCHINDUCTOR_CACHE_DIR": str(self.root / "home"),
        }  # fmt: skip
        words = [sys.executable, "-P", "-W", "ignore", "-m", "fuzz.worker"]
        worker = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=self.root
        )
        assert worker.stdout is not None and worker.stdout.readline() == b"ready\n"
        return worker

    def close(self) -> None:
        if self.worker is not None:
            self.worker.communicate()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- files ---

    def _lay_base(self) -> None:
        """Lay images, a table of them, files of settings, a run with its model, and its decoded images."""
        class_folders(self.base / "photos", dict.fromkeys("0123", 6))
        class_folders(self.base / "more", dict.fromkeys("45", 6), first=24)
        rows = [f"photos/{c}/{i}.png,{c},{'train' if i else 'test'}\n" for c in range(4) for i in range(6)]
        (self.base / "photos.csv").write_text("path,label,split\n" + "".join(rows))
        (self.base / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
        (self.base / "pycil.json").write_text(json.dumps(PYCIL))
        (self.base / "trap.py").write_text(TRAP)
        (self.base / "order").write_text("0\n1\n2\n3\n")
        argv = ["run", "icarl", "--data", "HERE/photos", "--base", "2", "--increment", "2", *QUICK]
        made = self.carry_out(
            Case("base", (*argv, "--device", "cpu", "--out", "run"), {}, ("photos",), ("run", "cache")),
            keep=True,
        )
        assert made.status == 0 and not made.faults, made
        for name in ("run", "cache"):
            shutil.copytree(self.here / name, self.base / name)
        for name in ("result.json", "config.yaml", "model.json"):
            path = self.base / "run" / name
            path.write_text(path.read_text().replace(str(self.here), HERE))
        shutil.copy(self.base / "run" / "config.yaml", self.base / "config.yaml")

    def lay(self, case: Case, folder: Path) -> None:
        """Make the folder of a case."""
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        for part in ("trap.py", *case.parts):
            source = self.base / part
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, folder / part, dirs_exist_ok=True)
                for path in (folder / part).glob("*"):
                    if path.suffix in (".json", ".yaml"):
                        _name_here(path, folder)
            else:
                shutil.copy(source, folder / part)
                _name_here(folder / part, folder)
        for name, content in case.files.items():
            (path,) = folder.glob(name) if "*" in name else [folder / name]
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if isinstance(content, str):
                hostile.PUT[content](path)
            else:
                path.write_bytes(content.replace(HERE.encode(), os.fsencode(folder)))

    # --- the command ---

    def carry_out(self, case: Case, keep: bool = False, kill_at: int | None = None) -> Outcome:
        """Do the command of a case; `keep`: in the folder as the last case left it."""
        if not keep or not self.here.exists():
            self.lay(case, self.here)
        if self.worker is None or self.worker.poll() is not None:
            self.worker = self._start()
        ran = () if case.runnable == "no" else ("ran",)  # which the trap writes
        order = {
            "argv": [word.replace(HERE, str(self.here)) for word in case.argv],
            "folder": str(self.here),
            "writable": [
                *(str(self.here / name) for name in (*case.writable, *ran)),
                str(self.root / "home"),
            ],
            "runnable": case.runnable,
            "seconds": self.seconds * case.patience,
            "kill_at": kill_at,
            "stdout": case.stdout,
        }
        assert self.worker.stdin is not None and self.worker.stdout is not None
        self.worker.stdin.write(json.dumps(order).encode() + b"\n")
        self.worker.stdin.flush()
        if not (line := self.worker.stdout.readline()):
            self.worker = None
            return Outcome(case, None, "", "", ["it ended the worker"], 0, 0.0)
        answer = json.loads(line)
        faults = self._faults(answer, kill_at, order["seconds"])
        told, spent = (answer["out"], answer["err"]), (answer["operations"], answer["seconds"])
        return Outcome(case, answer["status"], *told, faults, *spent)

    def _faults(self, answer: dict[str, Any], kill_at: int | None, seconds: float) -> list[str]:
        """Say what must not have happened."""
        status, told = answer["status"], answer["out"] + answer["err"]
        faults = list(dict.fromkeys(answer["broken"].splitlines()))
        if status is None:
            faults.append(f"it hung for over {seconds:.0f} s")
        elif status < 0 and kill_at is None:
            faults.append(f"it was ended by signal {-status}")
        elif status >= 0 and status not in STATUSES:
            faults.append(f"its status was {status}")
        if "Traceback (most recent call last)" in told:
            faults.append(f"a traceback: {told.strip().splitlines()[-1]}")
        faults += [line for line in told.splitlines() if "--debug shows where" in line][:1]
        if found := CONTROL.search(told):
            faults.append(f"a control character was printed: {found[0]!r}")
        return [fault.replace(str(self.here), HERE) for fault in faults]

    def explain(self, case: Case) -> str:
        """The traceback behind a sentence that names none."""
        return self.carry_out(replace(case, argv=("--debug", *case.argv))).err

    def keep(self, outcome: Outcome, folder: Path) -> str:
        """Keep the files of a case and what it said; the line that repeats it."""
        self.lay(outcome.case, folder)
        words = [word.replace(HERE, str(folder)) for word in outcome.case.argv]
        line = f"cd {shlex.quote(str(folder))} && jioc {shlex.join(words)}"
        if outcome.case.stdout:
            line += f" > {outcome.case.stdout}"
        told = [line, *outcome.faults, "", outcome.out, outcome.err, self.explain(outcome.case)]
        (folder / "why.txt").write_text("\n".join(told), errors="backslashreplace")
        return line


def _name_here(path: Path, folder: Path) -> None:
    if path.is_file() and path.suffix in (".json", ".yaml", ".csv"):
        path.write_bytes(path.read_bytes().replace(HERE.encode(), os.fsencode(folder)))


def signature(fault: str) -> str:
    """A fault without what differs from case to case."""
    fault = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", fault)
    return re.sub(r"\d+(\.\d+)?", "N", fault)[:120]
