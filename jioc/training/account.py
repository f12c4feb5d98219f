"""The account of a model that has learnt on: a result of all its tasks, as `jioc table` and `report` read it.

A run's own result.json stays as it is; this one is kept in a folder beside it: learnt/result.json.
"""

import hashlib
from pathlib import Path

import torch

from jioc import __version__, metrics
from jioc.config import plain
from jioc.methods import record, registry
from jioc.results import FORMAT, DataRecord, Environment, Result
from jioc.training import execution
from jioc.training.model import Classifier
from jioc.training.store import account_folder


def account(learnt: Classifier) -> Result | None:
    """The result of the tasks that a model has learnt; None if the figures of some were not kept with it."""
    rows = learnt.judged.rows
    if [row.classes[1] - row.classes[0] for row in rows] != list(learnt.sizes):
        return None
    spec, headline = learnt.method.spec, learnt.method.headline
    commit, trained = execution.commit(), learnt.judged.trained
    tasks = {"task_sizes": list(learnt.sizes), "tasks": None, "base": None, "increment": None}
    images = hashlib.blake2b(trained.tobytes(), digest_size=16).hexdigest() if len(trained) else None
    summary = metrics.summary(rows, list(spec.readouts))
    return Result(
        format=FORMAT,
        jioc=__version__,
        commit=commit,
        commits=[commit],
        config=plain(learnt.config) | tasks,
        environment=Environment(torch=torch.__version__, device=execution.device_name(learnt.device)),
        method=record(spec, registry.sha256(learnt.config.method)).model_dump(mode="json"),
        headline=headline,
        classes=learnt.classes,
        counts=learnt.counts,
        data=DataRecord(fingerprint=images),
        tasks=rows,
        average=summary["average"],
        last=summary["last"],
        forgetting=summary["forgetting"],
        complete=all(headline in row.by_readout for row in rows)
        and summary["average"].get(headline) is not None,
    )


def save(folder: Path, result: Result) -> Path:
    """Keep the account in a model's folder; return where."""
    place = account_folder(folder)
    place.mkdir(exist_ok=True)
    result.save(place / "result.json")
    return place
