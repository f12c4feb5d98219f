"""A trained network beside its run: model.safetensors (weights, class means) and model.json (all else it needs)."""

import json
from pathlib import Path

from torch import Tensor

from .checkpoint import pack
from .data.dataset import Dataset
from .files import write
from .nets.incremental import Net

FORMAT = 1


def save(folder: Path, net: Net, means: Tensor | None, classes: list[str], dataset: Dataset) -> None:
    about = {
        "format": FORMAT,
        "plan": net.plan,
        "classes": classes[: sum(net.plan["sizes"])],
        "image": list(dataset.shape),
        "canvas": dataset.train_x.shape[-1],  # the centred square is resized to this, and its centre seen
        "mean": dataset.mean,
        "std": dataset.std,
    }
    write(folder / "model.safetensors", pack({"net": net.state_dict(), "means": means}))
    write(folder / "model.json", (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())
