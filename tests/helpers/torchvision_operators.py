"""Two operators that torchvision lacks if its compiled part cannot be loaded, as with a CPU-only torch.

Avalanche imports torchvision, which describes these two whether they exist or not. Once they are declared,
the rest of torchvision loads. Nothing in the tests calls them.
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
