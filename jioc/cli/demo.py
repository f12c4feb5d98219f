"""`jioc demo`: iCaRL with and without JIOC on the long-tailed digits, three seeds each, on a CPU.

Five tasks of two digits, counts from 128 down to 12, 40 exemplars: few enough that forgetting shows. Nothing
was tuned for JIOC: epochs are a fifth of the usual schedule, everything else is a default. The demo writes
every `result.json` to a folder of its own, and a report of them.
"""

import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from jioc.cli.console import table
from jioc.cli.flags import Parser
from jioc.errors import os_errors
from jioc.report import page, runs, tables
from jioc.results import SUMMARIES, Result

SETTING: dict[str, Any] = {
    "method": "icarl",
    "data": "digits",
    "long_tail": 10,
    "memory": 40,
    "later": {"epochs": 34},
    "device": "cpu",
}
SEEDS = (1, 2, 3)
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
        "--out", type=Path, default=Path("jioc-demo"), help="for the results and report.html (jioc-demo)"
    )
    folder = parser.parse(argv).out
    with os_errors(f"the demo cannot write to {str(folder)!r}"):
        folder.mkdir(parents=True, exist_ok=True)
    print(
        "iCaRL with and without JIOC on the long-tailed digits: "
        "five tasks of two, 40 exemplars, three seeds each"
    )
    ignore_ctrl_c = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for this process
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), signal.signal, ignore_ctrl_c) as pool:
        jobs = {
            (name, seed): pool.submit(one, word, seed) for name, word in COORDINATED.items() for seed in SEEDS
        }
        try:
            results = {key: job.result() for key, job in jobs.items()}
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise
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
    print(f"the report: {keep(results, folder)}")
    return 0


def keep(results: dict[tuple[str, int], Result], folder: Path) -> Path:
    """Write every result and the report, over those of an earlier demo; return the report's path."""
    finished = []
    for (name, seed), result in results.items():
        path = folder / f"icarl-{COORDINATED[name]}-{seed}" / "result.json"
        path.parent.mkdir(exist_ok=True)
        result.save(path)
        finished.append(runs.Run(path, result))
    page.save(runs.group(finished), folder / "report.html")
    return folder / "report.html"
