"""`jioc demo`, `run` and `grid` whose training is played, not done: python -m helpers.staged run icarl ...

What they print, and when, is real; no network is trained, and torch is not imported.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from helpers.results import made, read_out
from jioc import terminal
from jioc.cli import demo
from jioc.cli.main import main
from jioc.config import Config, make, plain
from jioc.events import Callback, Epoch, Start, TaskEnd, Training
from jioc.resolve.derive import resolve
from jioc.results import Result

BEAT = 0.006  # seconds between two events


def play(config: Config, callback: Callback, out: Path | None = None, **_: Any) -> Result:
    """Tell the events of a run of five tasks, and return its result."""
    ran = made(config.method, config.coordination.coordinate, config.seed, alls=[100.0, 90, 80, 70, 60])
    ran = read_out(ran, "unaligned", 100.0) | {"config": plain(config)}
    result = Result.model_validate(ran)
    callback(Start([2] * 5, result.classes, [100] * 10, memory=20, device="a CPU", precision="fp32", done=0))
    for row in result.tasks:
        stage, epochs = ("first" if row.task == 1 else "later"), 2
        for epoch in range(1, epochs + 1):
            for done in (60, 120, 180):
                time.sleep(BEAT)
                callback(Training(row.task, stage, epoch, epochs, done, 240))
            terms = {"cls": 0.123, "kd": 1.5, "suppress": 0.02}
            callback(Epoch(row.task, stage, epoch, epochs, 0.1, 240, terms, 0.1, 12_345.6))
        callback(TaskEnd(row))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        result.save(out / "result.json")
    return result


def pack(
    configs: list[Config], at_once: int, *, outs: list[Path], callback: Any, ended: Any, **_: Any
) -> list[Any]:
    """Play several runs at once, as `jioc.grid.pack` would do them."""

    def one(i: int) -> Result:
        result = play(configs[i], callback(i), outs[i])
        ended(i, result)
        return result

    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(one, range(len(configs))))


class Threads(ThreadPoolExecutor):
    """In the place of the demo's processes."""

    def __init__(self, at_once: int, context: object, begin: object, arguments: tuple[Any]):
        demo.EVENTS = arguments[0]
        super().__init__(at_once)


def one(key: demo.Key) -> Result:
    config = resolve(make(**demo.setting(*key)))
    return play(config, lambda event: demo.EVENTS.put((key, event)))


def replace(module: str, **functions: Callable[..., Any]) -> None:
    """Put a module in the place of one that imports torch."""
    sys.modules[module] = ModuleType(module)
    vars(sys.modules[module]).update(functions)


if __name__ == "__main__":
    replace("jioc.training.run", execute=play)
    replace("jioc.grid.pack", pack=pack)
    replace("jioc.data.load", load_dataset=None)
    if "--dry-run" not in sys.argv:
        replace("jioc.cli.dry_run", note_if_long=None)
    terminal.REFRESH = 0.03
    demo.ProcessPoolExecutor, demo.one = Threads, one  # type: ignore[misc,assignment]
    status = main(sys.argv[1:])
    assert "torch" not in sys.modules
    sys.exit(status)
