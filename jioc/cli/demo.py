"""`jioc demo`: iCaRL with and without JIOC on the long-tailed digits, three seeds each, on a CPU.

Five tasks of two digits, counts from 128 down to 12, 40 exemplars: few enough that forgetting shows. Nothing
was tuned for JIOC: epochs are a fifth of the usual schedule, everything else is a default. The demo writes
every `result.json` to a folder of its own, and a report of them.
"""

import itertools
import multiprocessing
import shlex
import signal
import sys
import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from jioc.cli.console import print_next
from jioc.cli.flags import FORCE, Parser, named_path
from jioc.config import make
from jioc.errors import Failed, Interrupted, fail_if, os_errors, refuse_if
from jioc.events import Epoch, Event, Start, Training
from jioc.files import output
from jioc.methods import find_method
from jioc.report import page, runs, tables
from jioc.resolve.derive import resolve
from jioc.results import Result
from jioc.stopping import signals
from jioc.terminal import Bars, table, wrapped
from jioc.training.workload import Workload

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
Key = tuple[str, int]  # a run: a name of `COORDINATED`, and its seed


def build_parser() -> Parser:
    parser = Parser(
        "jioc demo",
        "iCaRL with and without JIOC on the long-tailed digits that scikit-learn ships: three seeds each.",
        examples={"jioc demo --out /tmp/demo": "its results and its page in another folder"},
    )
    parser.add(
        "--out",
        type=named_path,
        metavar="DIR",
        default=Path("jioc-demo"),
        help="for the results and report.html (jioc-demo)",
    )
    parser.add("--force", action="store_true", help=FORCE)
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    folder = args.out
    with os_errors(f"the demo cannot write to {str(folder)!r}"):
        folder.mkdir(parents=True, exist_ok=True)
        find_targets(folder, args.force)
    about = "five tasks of two, 40 exemplars, three seeds each; about 15 s on two cores"
    print(wrapped(f"iCaRL with and without JIOC on the long-tailed digits: {about}", sys.stdout), flush=True)
    with signals() as stop, DemoProgress() as progress:
        results = train(stop, progress)
    show(results)
    with os_errors(f"the demo cannot write to {str(folder)!r}", Failed):
        report = keep(results, folder, args.force)
    print(f"the page: {report}")
    print_next(
        f"jioc table {shlex.quote(str(folder))} --wide",
        "jioc run icarl --coordinate jioc --long-tail 10",
        "jioc list methods",
    )
    return 0


def show(results: dict[Key, Result]) -> None:
    """Print the table, and what JIOC gains."""
    rows, averages = [], {}
    for name in COORDINATED:
        seeds = [results[name, seed] for seed in SEEDS]
        averages[name] = [r.average["cnn"] or 0.0 for r in seeds]
        rows.append(
            [name, tables.spread(averages[name]), tables.spread([r.last["cnn"] or 0.0 for r in seeds])]
        )
    table(["", "average", "last"], rows, text_columns=1)
    without, with_it = averages.values()
    gain = tables.spread([b - a for a, b in zip(without, with_it, strict=True)], "+")
    note = (
        "accuracy in percent over the five tasks and after the last one, mean ± standard deviation over seeds"
    )
    print(wrapped(f"{note}; JIOC adds {gain} to the average", sys.stdout))


# --- the six runs ---


class DemoProgress(Bars):
    """A bar for each run; where there is no terminal, a line for each that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.works: dict[Key, Workload] = {}
        self.began = time.monotonic()
        self.bars = {
            (name, seed): self.add_task(f"{name}, seed {seed}", total=1, visible=self.on_terminal)
            for name in COORDINATED
            for seed in SEEDS
        }

    def tell(self, key: Key, event: Event) -> None:
        """Show an event of a run."""
        if isinstance(event, Start):
            config = resolve(make(**setting(*key)))
            self.works[key] = Workload(config, find_method(config.method), event)
        elif isinstance(event, Epoch | Training):
            work, parts = self.works[key], [f"task {event.task}/5"]
            work.update(event)
            self.move(self.bars[key], completed=work.done, total=work.done + work.left, parts=parts)

    def ended(self, key: Key, result: Result) -> None:
        """Show that a run has ended."""
        name, seed = key
        figure = f"average {result.average['cnn']:.2f}"
        if not self.on_terminal:
            print(f"{name}, seed {seed}: {figure}, after {time.monotonic() - self.began:.0f} s", flush=True)
        self.update(self.bars[key], completed=1, total=1, parts=[figure])
        self.refresh()


def setting(name: str, seed: int) -> dict[str, Any]:
    """The settings of a run."""
    return SETTING | {"seed": seed, "coordination": {"coordinate": COORDINATED[name]}}


def one(key: Key) -> Result:
    """Run one of the six, in a process of its own."""
    import torch

    from jioc.training.run import run

    torch.set_num_threads(1)
    return run(**setting(*key), callback=lambda event: EVENTS.put((key, event)))


EVENTS: Any = None  # of this process, where it is one that runs


def begin(events: Any) -> None:
    """Begin a process that runs: leave Ctrl-C and the end of a terminal to the parent, send it all events."""
    global EVENTS
    EVENTS = events
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def train(stop: Callable[[], bool], progress: DemoProgress) -> dict[Key, Result]:
    """The six runs, two at a time."""
    context = multiprocessing.get_context("spawn")
    events = context.SimpleQueue()
    with ProcessPoolExecutor(2, context, begin, (events,)) as pool:
        jobs = {key: pool.submit(one, key) for key in progress.bars}
        running = dict(jobs)
        try:
            while running:
                futures.wait(running.values(), 0.1, futures.FIRST_COMPLETED)
                while not events.empty():
                    progress.tell(*events.get())
                fail_if(stop(), "stopped")
                for key, job in [(key, job) for key, job in running.items() if job.done()]:
                    progress.ended(key, job.result())
                    del running[key]
            return {key: job.result() for key, job in jobs.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.terminate()
            if stop():
                raise Interrupted("stopped; no result is kept") from None
            raise


# --- the files ---


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


def keep(results: dict[Key, Result], folder: Path, force: bool) -> Path:
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
