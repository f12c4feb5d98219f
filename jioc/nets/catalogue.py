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


def weights(name: str, stem: str, channels: int, cosine: bool = False) -> int:
    """Count the parameters of a backbone, for images of so many channels; `cosine`: for a cosine head."""
    form = shape(name)
    if isinstance(form, Layers):
        inside = (channels, *form.widths)
        return sum(a * b + 2 * b for a, b in zip(inside, form.widths, strict=False))
    before = form.widths[0]
    total = channels * before * (49 if stem == "imagenet" else 9) + 2 * before
    for i, width in enumerate(form.widths):
        for j in range(form.blocks):
            total += 9 * before * width + 9 * width * width + 4 * width
            if (cosine or form.shortcut == "B") and (before != width or (i > 0 and j == 0)):
                total += before * width + 2 * width
            before = width
    return total
