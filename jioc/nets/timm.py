"""A network of the library timm as a backbone, where timm is installed. It is imported when it is used."""

from typing import Any

from torch import Tensor, nn

from jioc.errors import refuse_if
from jioc.nets.catalogue import Timm


class TimmNetwork(nn.Module):
    """x (n, c, h, w) -> features (n, d), as the network pools them; it gives no stages' outputs."""

    def __init__(self, about: Timm, channels: int, maps: bool = False):
        super().__init__()
        refuse_if(maps, f"--backbone timm:{about.name} gives no stages' outputs, which this method distils")
        import timm

        self.net: Any = timm.create_model(about.name, pretrained=False, num_classes=0, in_chans=channels)
        # some, such as MobileNetV3, widen what they have pooled
        self.width: int = getattr(self.net, "head_hidden_size", None) or self.net.num_features

    def first_stages(self, n: int) -> list[nn.Module]:
        """None that have numbers: `--freeze` takes all or none."""
        return []

    def forward(self, x: Tensor, keep_maps: bool = False) -> tuple[Tensor, list[Tensor]]:
        return self.net(x), []
