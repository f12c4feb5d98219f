"""Presets: settings under a name, for any data. `jioc run PRESET --data …` runs one, flags override it.

config.yaml and the line that repeats the run hold its settings one by one; the name leaves no trace. `best`
is what the recipes `components` and `components-long-tail` chose; the recipes `best`, `best-augmented` and
`lt-cil` run it.
"""

from dataclasses import dataclass

from jioc.config import Values, nested


@dataclass(frozen=True)
class Preset:
    """Settings by their dotted names; the method is among them."""

    name: str
    about: str
    settings: Values

    @property
    def values(self) -> Values:
        return nested(self.settings)


PRESETS = {
    preset.name: preset
    for preset in [
        Preset(
            "best",
            "DER with more weight decay, a cosine head and adjusted logits, judged by class means",
            {
                "method": "der",
                "later.weight_decay": 1e-3,
                "head": "cosine",
                "adjust": 1,
                "headline": "nme",
            },
        ),
        Preset(
            "der-published",
            "DER with its authors' schedule, and its head trained anew after each task",
            {
                "method": "der",
                "rebalance": "head",
                "later.epochs": 170,
                "later.milestones": [100, 120],
                "later.weight_decay": 5e-4,
            },
        ),
    ]
}
