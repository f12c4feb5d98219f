"""Your own method: iCaRL that distils features instead of logits. JIOC comes on top by a flag.

jioc run examples/own_method.py --data digits --memory 40 --epochs 20 --coordinate jioc
"""

from dataclasses import replace

import torch.nn.functional as F

import jioc
from jioc.losses import cross_entropy
from jioc.methods import SPECS


@jioc.register(replace(SPECS["replay"], name="feature-replay", title="Feature replay", distils=True))
class FeatureReplay(jioc.Method):
    """loss(x, y) = CE(z, y) + 1 - cos(f, f')"""

    def loss(self, batch, out, old, task):
        terms = {"cls": cross_entropy(self.adjusted(out.logits), batch.y)}
        if old is not None:
            terms["features"] = 1 - F.cosine_similarity(out.features, old.features)
        return terms
