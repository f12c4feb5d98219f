"""The backbones by name, as the command line lists them. No torch here."""

from dataclasses import dataclass

from jioc.errors import unknown


@dataclass(frozen=True)
class Shape:
    """A residual network of basic blocks."""

    widths: tuple[int, ...]  # channels of each stage
    blocks: int  # per stage
    shortcut: str  # A: subsample and pad with zero channels, no weights; B: 1x1 convolution
    about: str


@dataclass(frozen=True)
class Layers:
    """Fully connected layers, for vectors."""

    widths: tuple[int, ...]
    about: str


BACKBONES: dict[str, Shape | Layers] = {
    "tiny": Shape((16, 32), 1, "A", "two blocks for 8x8 images: tests and the demo"),
    "resnet32": Shape((16, 32, 64), 5, "A", "464 thousand weights, for 32x32 images"),
    "resnet18": Shape((64, 128, 256, 512), 2, "B", "11.2 million weights"),
    "mlp": Layers((64, 64), "two layers for vectors, which jioc.IncrementalClassifier takes"),
}


def shape(name: str) -> Shape | Layers:
    if name not in BACKBONES:
        raise unknown("backbone", name, BACKBONES)
    return BACKBONES[name]
