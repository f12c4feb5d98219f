"""`make fuzz SECONDS=600`: attack for so long on every core; print what was tried and what failed."""

import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz import cases, crash, places
from fuzz.bench import Bench, Case, Outcome, signature

AT_ONCE = 20  # cases of a kind before the next kind has its turn


def main() -> int:
    parser = argparse.ArgumentParser("python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for what failed")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument(
        "--crash", nargs=2, metavar=("COMMAND", "N"), help="kill one command at one operation"
    )
    parser.add_argument("--part", type=int, nargs=2, metavar=("I", "N"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.crash:
        return crash_once(args.crash[0], int(args.crash[1]))
    if args.part:
        return Part(args).work()
    cores = len(os.sched_getaffinity(0))
    print(f"{args.seconds:.0f} s on {cores} cores, seed {args.seed}", flush=True)
    words = [sys.executable, "-m", "fuzz", *sys.argv[1:], "--seed", str(args.seed), "--part"]
    parts = [subprocess.Popen([*words, str(i), str(cores)], stdout=subprocess.PIPE) for i in range(cores)]
    broken = b'{"tried": {}, "found": {"a part of the bed itself": "its traceback is above"}}'
    told = [json.loads((part.communicate()[0].splitlines() or [broken])[-1]) for part in parts]
    tried: Counter[str] = sum((Counter(part["tried"]) for part in told), Counter())
    found: dict[str, list[str]] = {}
    for what, line in itertools.chain.from_iterable(part["found"].items() for part in told):
        found.setdefault(what, []).append(line)
    for kind, count in sorted(tried.items()):
        print(f"{count:8,}  {kind}")
    print(f"{tried.total():8,}  in all; {len(found)} kinds of failure")
    for what, lines in found.items():
        print(f"\nFAILED  {what}\n        {lines[0]}")
    return int(bool(found))


def crash_once(command: str, operation: int) -> int:
    with tempfile.TemporaryDirectory() as folder, Bench(Path(folder) / "bench") as bench:
        faults = crash.Crash(bench, command).at(operation).faults
    print("\n".join(faults) or "it ended as if left alone")
    return int(bool(faults))


class Part:
    """The share of one core."""

    def __init__(self, args: argparse.Namespace):
        self.index, self.of = args.part
        self.end, self.seed, self.only = time.monotonic() + args.seconds, args.seed + self.index, args.only
        self.keep = args.keep.absolute() / str(args.seed)
        self.tried: Counter[str] = Counter()
        self.found: dict[str, Outcome] = {}

    def work(self) -> int:
        with tempfile.TemporaryDirectory() as folder, Bench(Path(folder) / "bench") as self.bench:
            turns = self._turns()
            while turns and time.monotonic() < self.end:
                for turn in list(turns):
                    if time.monotonic() < self.end and not turn():
                        turns.remove(turn)
            lines = {what: self._keep(what, outcome) for what, outcome in self.found.items()}
        print(json.dumps({"tried": self.tried, "found": lines}))
        return 0

    def _turns(self) -> list[Callable[[], bool]]:
        """What to do in turn; each says whether there is more of it."""
        drawn = {kind: self._drawing(kind, s) for kind, s in cases.kinds(self.bench.base).items()}
        listed = {
            "hostile file": self._listed(places.hostile_files()),
            "trap": self._listed(cases.traps(self.bench.base)),
            "full disk": self._listed(places.full_disks()),
            "crash": self._crashes(),
        }
        return [turn for kind, turn in (listed | drawn).items() if self.only in kind]

    def _drawing(self, kind: str, strategy: cases.Cases) -> Callable[[], bool]:
        rounds = itertools.count(self.seed * 1000)
        how = settings(
            max_examples=AT_ONCE, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip

        def turn() -> bool:
            @seed(next(rounds))
            @how
            @given(strategy)
            def attack(case: Case) -> None:
                self._try(case)

            attack()
            return True

        return turn

    def _listed(self, every: Iterator[Case]) -> Callable[[], bool]:
        mixed = list(every)
        random.Random(0).shuffle(mixed)
        mine = iter(mixed[self.index :: self.of])

        def turn() -> bool:
            some = list(itertools.islice(mine, AT_ONCE))
            for case in some:
                self._try(case)
            return bool(some)

        return turn

    def _crashes(self) -> Callable[[], bool]:
        mine = itertools.islice(crash.every(self.bench), self.index, None, self.of)

        def turn() -> bool:
            some = list(itertools.islice(mine, AT_ONCE // 4))
            for outcome in some:
                self._count(outcome)
            return bool(some)

        return turn

    def _try(self, case: Case) -> None:
        if time.monotonic() < self.end:
            self._count(self.bench.carry_out(case))

    def _count(self, outcome: Outcome) -> None:
        self.tried["trap" if outcome.case.kind.startswith("trap") else outcome.case.kind] += 1
        for fault in outcome.faults:
            what = f"{outcome.case.argv[0] if outcome.case.argv else ''}: {signature(fault)}"
            if what not in self.found or _size(outcome.case) < _size(self.found[what].case):
                self.found[what] = replace(outcome, faults=[fault])

    def _keep(self, what: str, outcome: Outcome) -> str:
        """Keep the smallest case that failed so."""
        if outcome.case.kind.startswith("crash: "):
            (operation,) = re.findall(r"killed at file operation (\d+)", outcome.faults[0]) or ["1"]
            return f"python -m fuzz --crash {outcome.case.kind.removeprefix('crash: ')} {operation}"
        folder = self.keep / f"{self.index}-{list(self.found).index(what):03d}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        return self.bench.keep(outcome, folder)


def _size(case: Case) -> int:
    return sum(map(len, case.argv)) + sum(len(c) for c in case.files.values() if isinstance(c, bytes))


if __name__ == "__main__":
    sys.exit(main())
