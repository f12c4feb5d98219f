"""`jioc demo`: iCaRL with and without JIOC on the long-tailed digits, three seeds each, on a CPU.

Five tasks of two digits, counts from 128 down to 12, 40 exemplars: few enough that forgetting shows. Nothing
was tuned for JIOC: epochs are a fifth of the usual schedule, everything else is a default. The demo writes
every `result.json` to a folder of its own, and a report of them.
"""

import itertools
import multiprocessing
import signal
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from jioc.cli.console import table
from jioc.cli.flags import FORCE, Parser, named_path
from jioc.errors import Failed, Interrupted, fail_if, os_errors, refuse_if
from jioc.files import output
from jioc.report import page, runs, tables
from jioc.results import SUMMARIES, Result
from jioc.stopping import signals

SETTING: dict[str, Any] = {
    "method": "icarl",
    "data": "digits",
    "long_tail": 10,
    "memory": 40,
    "later": {"epochs": 34},
    "device": "cpu",
}
SEEDS = (1, 2, 3)
RESULT = b'"format": 1,\n "jioc": '  # in every result
COORDINATED = {"iCaRL": "none", "iCaRL + JIOC": "jioc"}


def one(coordinate: str, seed: int) -> Result:
    """One of the six runs, in a process of its own."""
    import torch

    from jioc.training.run import run

    torch.set_num_threads(1)
    return run(**SETTING, seed=seed, coordination={"coordinate": coordinate})


def main(argv: list[str]) -> int:
    parser = Parser(
        "jioc demo",
        "iCaRL with and without JIOC on the long-tailed digits that scikit-learn ships: three seeds each.",
    )
    parser.add(
        "--out",
        type=named_path,
        default=Path("jioc-demo"),
        help="for the results and report.html (jioc-demo)",
    )
    parser.add("--force", action="store_true", help=FORCE)
    args = parser.parse(argv)
    folder = args.out
    with os_errors(f"the demo cannot write to {str(folder)!r}"):
        folder.mkdir(parents=True, exist_ok=True)
        find_targets(folder, args.force)
    print(
        "iCaRL with and without JIOC on the long-tailed digits: "
        "five tasks of two, 40 exemplars, three seeds each"
    )
    with signals() as stop:
        results = train(stop)
    rows = []
    for name in COORDINATED:
        seeds = [results[name, seed] for seed in SEEDS]
        old = [r.tasks[-1].cnn.old or 0.0 for r in seeds]
        figures = [[r[kind][readout] for r in seeds] for readout in ("cnn", "nme") for kind in SUMMARIES]
        rows.append([name, *map(tables.spread, figures), tables.spread(old)])
    table(["", *SUMMARIES, *(f"NME {kind}" for kind in SUMMARIES), "last, old classes"], rows)
    print(
        "accuracy in percent of the head, and of the nearest class mean (NME); "
        "mean ± standard deviation over seeds"
    )
    with os_errors(f"the demo cannot write to {str(folder)!r}", Failed):
        report = keep(results, folder, args.force)
    print(f"the report: {report}")
    return 0


def train(stop: Callable[[], bool]) -> dict[tuple[str, int], Result]:
    """The six runs, two at a time."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), leave_signals) as pool:
        jobs = {
            (name, seed): pool.submit(one, word, seed) for name, word in COORDINATED.items() for seed in SEEDS
        }
        try:
            while futures.wait(jobs.values(), 0.1, futures.FIRST_EXCEPTION).not_done:
                fail_if(stop(), "stopped")
                if any(job.done() and job.exception() for job in jobs.values()):
                    break
            return {key: job.result() for key, job in jobs.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            if stop():
                raise Interrupted("stopped; no result is kept") from None
            raise


def leave_signals() -> None:
    """Leave Ctrl-C and the end of a terminal to the parent process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def find_targets(folder: Path, force: bool) -> dict[Path, Path]:
    """The files to write, and where they lie; what is no file of an earlier demo is refused."""
    found = {folder / "report.html": output(folder / "report.html", page.MARK, force)}
    for word, seed in itertools.product(COORDINATED.values(), SEEDS):
        path = result_path(folder, word, seed)
        found[path] = output(path, RESULT, force)
        run = f"{str(path.parent)!r} holds a run of its own; choose another --out"
        refuse_if((path.parent / "config.yaml").exists(), run)
    return found


def result_path(folder: Path, word: str, seed: int) -> Path:
    return folder / f"icarl-{word}-{seed}" / "result.json"


def keep(results: dict[tuple[str, int], Result], folder: Path, force: bool) -> Path:
    """Write every result and the report; return the report's path."""
    targets, finished = find_targets(folder, force), []
    for (name, seed), result in results.items():
        path = result_path(folder, COORDINATED[name], seed)
        path.parent.mkdir(exist_ok=True)
        result.save(targets[path])
        finished.append(runs.Run(path, result))
    report = folder / "report.html"
    page.save(runs.group(finished), targets[report])
    return report
