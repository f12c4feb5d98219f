"""What torchvision lacks where its compiled part cannot be loaded (a CPU-only torch): the names of two operators.

Avalanche imports torchvision, which describes these two whether they exist or not. Declared, they let the rest of
torchvision load; nothing that the tests use calls them.
"""

import sys

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")


def make_torchvision_load() -> None:
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]  # half imported
        for name in ("nms", "qnms"):
            LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401
