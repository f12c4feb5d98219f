"""A learner as one ONNX file, its preprocessing inside and its class names with it.

    pixels    uint8 (n, canvas, canvas, channels)     as numpy.asarray gives them of a Pillow image of that size
    scores    float32 (n, K)                          of the read-out that was chosen; the largest wins
    metadata  classes (a JSON list), readout, method, jioc

Cutting the centred square out of a picture and resizing it to the canvas stays with the caller: no two libraries agree
on how to resize. The file is compared with the model before anybody gets it.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import torch
from onnxscript import opset18 as onnx_ops
from torch import Tensor, nn

from jioc import __version__
from jioc.errors import Failed, unknown
from jioc.training.learner import Learner

OPSET = 18
TOLERANCE = 1e-4


class Answering(nn.Module):
    """Pixels (n, h, w, c) to the scores of one read-out."""

    def __init__(self, learner: Learner, readout: str):
        super().__init__()
        self.method, self.readout = learner.method, readout
        self.images = learner.preprocessing.images(
            np.zeros((1, *learner.preprocessing.shape), np.uint8), learner.device
        )
        parts = [getattr(learner.method, name) for name in learner.method.persistent]
        self.nets = nn.ModuleList([part for part in parts if isinstance(part, nn.Module)]).eval()

    def forward(self, pixels: Tensor) -> Tensor:
        return self.method.readouts(self.images.normal(pixels.permute(0, 3, 1, 2)))[self.readout]


def to_onnx(learner: Learner, readout: str | None = None) -> tuple[bytes, str]:
    """The file's content, and how it was checked."""
    c, h, w = learner.preprocessing.shape
    name = readout or learner.method.spec.headline
    known = learner.readouts(np.zeros((1, c, h, w), np.uint8))
    if name not in known:
        raise unknown("read-out", name, known)
    answering = Answering(learner, name)
    pixels = torch.randint(
        0, 256, (3, h, w, c), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )
    with torch.no_grad(), _quietly():
        program: Any = torch.onnx.export(
            answering,
            (pixels,),
            dynamo=True,
            input_names=["pixels"],
            output_names=["scores"],
            dynamic_shapes={"pixels": {0: torch.export.Dim("n")}},
            opset_version=OPSET,
            custom_translation_table={torch.ops.aten._cdist_forward.default: _distances},
            verbose=False,
        )
        proto, wanted = program.model_proto, answering(pixels)
    about = {"classes": json.dumps(learner.classes), "readout": name, "method": learner.method.spec.name}
    onnx.helper.set_model_props(proto, about | {"jioc": __version__})
    onnx.checker.check_model(proto)
    content = proto.SerializeToString()
    return content, _checked(content, pixels, wanted)


def _distances(a: Any, b: Any, p: float, compute_mode: int | None = None) -> Any:
    """Euclidean distances of the rows (n, d) and (K, d), which torch's exporter does not know: (n, K)."""
    rows, columns = onnx_ops.Unsqueeze(a, [1]), onnx_ops.Unsqueeze(b, [0])
    return onnx_ops.ReduceL2(onnx_ops.Sub(rows, columns), [2], keepdims=0)


def _checked(content: bytes, pixels: Tensor, wanted: Tensor) -> str:
    """Compare with the model, on fewer images than it was traced with."""
    try:
        import onnxruntime
    except ImportError:
        return "not compared with the model, because onnxruntime is not installed"
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (got,) = session.run(["scores"], {"pixels": pixels[:2].numpy()})
    gap, most = np.abs(np.nan_to_num(got) - np.nan_to_num(wanted[:2].numpy())).max(), float(np.abs(got).max())
    if gap > TOLERANCE * max(1.0, most if np.isfinite(most) else 1.0):
        raise Failed(
            f"the ONNX file does not answer as the model does (off by {gap:.2g}), so it is not written"
        )
    return f"onnxruntime {onnxruntime.__version__} answers as the model does (off by {gap:.1g})"


@contextmanager
def _quietly() -> Iterator[None]:
    """torch's exporter warns of its own ways and of packages that nobody needs here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
