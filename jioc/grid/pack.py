"""Several independent runs in one process on one device: a thread and a CUDA stream each, one data set.

Small networks leave most of a large GPU idle, and their steps replay from graphs, so that one process feeds
many. A run gives the same result packed as alone. One that fails does not stop the others.
"""

import gc
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jioc.config import Config, images_key
from jioc.data.dataset import Dataset
from jioc.data.load import load_dataset
from jioc.device.streams import own_stream
from jioc.errors import Interrupted
from jioc.events import Callback
from jioc.results import Result
from jioc.training.run import execute_on


def pack(
    configs: Sequence[Config],
    at_once: int,
    *,
    outs: Sequence[Path] | None = None,
    resume: bool = False,
    callback: Callable[[int], Callback | None] | None = None,
    ended: Callable[[int, Result | Exception], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[Result | Exception]:
    """Run resolved configurations; return the result of each, or what stopped it.

    `callback(i)` is the callback of run i; `ended` is called as each run ends, in its thread.
    """
    lock, loaded = threading.Lock(), dict[str, Dataset]()

    def data(config: Config, tell: Callback) -> Dataset:
        """Load each data set once, for the run that asks first; only that run's callback is called."""
        key = images_key(config)
        with lock:
            if key not in loaded:
                loaded[key] = load_dataset(config, tell)
            return loaded[key]

    def one(i: int) -> Result | Exception:
        outcome: Result | Exception
        try:
            if stop is not None and stop():
                raise Interrupted("stopped before it began")
            outcome = execute_on(
                configs[i],
                data,
                out=None if outs is None else outs[i],
                resume=resume,
                callback=callback(i) if callback else None,
                stop=stop,
                on=own_stream,
            )
        except Exception as error:
            outcome = error
            _forget_frames(error)
        gc.collect()  # a run's parts refer to each other, so that their memory is not freed at once
        if ended is not None:
            ended(i, outcome)
        return outcome

    by_switches: dict[Any, list[int]] = {}  # torch has these switches once for the whole process
    for i, config in enumerate(configs):
        by_switches.setdefault((config.precision, config.deterministic), []).append(i)
    outcomes: dict[int, Result | Exception] = {}
    for indices in by_switches.values():
        with ThreadPoolExecutor(at_once, thread_name_prefix="run") as threads:
            outcomes |= zip(indices, threads.map(one, indices), strict=True)
    return [outcomes[i] for i in range(len(configs))]


def _forget_frames(error: BaseException | None) -> None:
    """Let go of what the calls that failed held: a run's graphs and tensors; the traceback stays."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
