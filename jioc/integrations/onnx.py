"""A learner as one ONNX file, its preprocessing inside and its class names with it.

    pixels    uint8 (n, canvas, canvas, channels)     as numpy.asarray gives them for a Pillow image
    scores    float32 (n, K)                          of the read-out that was chosen; the largest wins
    metadata  classes (a JSON list), readout, method, jioc

The caller cuts the centred square out of a picture and resizes it to the canvas: no two libraries agree on
how to resize. The file is compared with the model before it is written.
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
from jioc.errors import fail_if, unknown
from jioc.training.learner import Learner

OPSET = 18
TOLERANCE = 1e-4


class ReadOut(nn.Module):
    """From pixels (n, h, w, c) to the scores of one read-out."""

    def __init__(self, learner: Learner, readout: str):
        super().__init__()
        self.method, self.readout = learner.method, readout
        one = np.zeros((1, *learner.preprocessing.shape), np.uint8)
        self.images = learner.preprocessing.images(one, learner.device)
        self.one = torch.zeros(1, dtype=torch.long, device=learner.device)  # others are judged as it is
        parts = [getattr(learner.method, name) for name in learner.method.persistent]
        self.nets = nn.ModuleList([part for part in parts if isinstance(part, nn.Module)]).eval()

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.images.judged(pixels.permute(0, 3, 1, 2), self.one)
        return self.method.readouts(x)[self.readout]


def to_onnx(learner: Learner, readout: str | None = None) -> tuple[bytes, str]:
    """Make the file's content; return it with a sentence on how it was checked."""
    c, h, w = learner.preprocessing.shape
    name = readout or learner.method.headline
    known = learner.readouts(np.zeros((1, c, h, w), np.uint8))
    if name not in known:
        raise unknown("read-out", name, known)
    module, generator = ReadOut(learner, name), torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (3, h, w, c), dtype=torch.uint8, generator=generator)
    with torch.no_grad(), _without_warnings():
        program: Any = torch.onnx.export(
            module,
            (pixels,),
            dynamo=True,
            input_names=["pixels"],
            output_names=["scores"],
            dynamic_shapes={"pixels": {0: torch.export.Dim("n")}},
            opset_version=OPSET,
            custom_translation_table={torch.ops.aten._cdist_forward.default: _distances},
            verbose=False,
        )
        proto, expected = program.model_proto, module(pixels)
    about = {"classes": json.dumps(learner.classes), "readout": name, "method": learner.method.spec.name}
    onnx.helper.set_model_props(proto, about | {"jioc": __version__})
    onnx.checker.check_model(proto)
    content = proto.SerializeToString()
    return content, _compare(content, pixels, expected)


def _distances(a: Any, b: Any, p: float, compute_mode: int | None = None) -> Any:
    """Compute the Euclidean distances (n, K) of rows (n, d) and (K, d), which torch's exporter cannot."""
    rows, columns = onnx_ops.Unsqueeze(a, [1]), onnx_ops.Unsqueeze(b, [0])
    return onnx_ops.ReduceL2(onnx_ops.Sub(rows, columns), [2], keepdims=0)


def _compare(content: bytes, pixels: Tensor, expected: Tensor) -> str:
    """Compare the file with the model, on fewer images than it was traced with."""
    try:
        import onnxruntime
    except ImportError:
        return "not compared with the model, because onnxruntime is not installed"
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (got,) = session.run(["scores"], {"pixels": pixels[:2].numpy()})
    gap = np.abs(np.nan_to_num(got) - np.nan_to_num(expected[:2].numpy())).max()
    largest = float(np.abs(got).max())
    fail_if(
        gap > TOLERANCE * max(1.0, largest if np.isfinite(largest) else 1.0),
        f"the ONNX file does not answer as the model does (off by {gap:.2g}), so it is not written",
    )
    return f"onnxruntime {onnxruntime.__version__} answers as the model does (off by {gap:.1g})"


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence torch's exporter, which warns of its own changes and of packages that nobody needs here."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)
