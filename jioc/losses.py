"""Losses with one number per image, (n, ...) -> (n,): the caller may weigh, mask or average them.

They serve any training loop:

    from jioc.losses import cross_entropy, distill, label_score, mass
    loss = ((1 - label_score(z, y)).detach() * cross_entropy(z, y)).mean()  # JIOC, eq. 7 as printed
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from jioc.config import TEMPERATURE
from jioc.errors import Failed, fail_if


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(logits, y, reduction="none")


def distill(logits: Tensor, teacher: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """KL(teacher || student) of the softmaxes over the last dimension at a temperature, without factor T².

    Its gradient is that of the cross-entropy form which PyCIL uses; the two differ by the teacher's entropy.
    """
    target = F.log_softmax(teacher / temperature, dim=-1)
    return (target.exp() * (target - F.log_softmax(logits / temperature, dim=-1))).sum(-1)


def label_score(logits: Tensor, y: Tensor) -> Tensor:
    """p_y: the softmax at the label."""
    return logits.softmax(1).gather(1, y[:, None]).squeeze(1)


def mass(logits: Tensor, classes: slice) -> Tensor:
    """The softmax probability that falls on some of the classes."""
    return logits.softmax(1)[:, classes].sum(1)


def only(logits: Tensor, classes: slice) -> Tensor:
    """Rule out every other class: a softmax over some of the classes that keeps their numbering."""
    ruled_out = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
    ruled_out[classes] = False
    return logits.masked_fill(ruled_out, -torch.inf)


def class_balance(counts: list[int], beta: float) -> Tensor:
    """w: inverse to each class's effective number of images, scaled to sum to K, in float64: (K,)."""
    w = (1 - beta) / (1 - beta ** torch.tensor(counts, dtype=torch.float64))
    return w * len(counts) / w.sum()


def check_terms(terms: dict[str, Tensor], y: Tensor, owner: str = "this method") -> None:
    """Refuse terms that are not a dict of floating-point tensors with one number per image.

    A term that is summed or averaged already leaves nothing to weigh. `owner`: whose loss it is.
    """
    got = "an empty dict" if isinstance(terms, dict) else type(terms).__name__
    fail_if(
        not isinstance(terms, dict) or not terms,
        f"the loss of {owner} returns {got}; a dict of named terms is needed, such as {{'cls': …}}",
    )
    for name, term in terms.items():
        fail_if(
            not isinstance(name, str),
            f"the loss of {owner} names a term {name!r}; a name is a word, such as 'cls'",
        )
        if not isinstance(term, Tensor) or term.shape != y.shape:
            raise Failed(
                f"the loss {name!r} {shape_or_type(term)}; "
                f"one number per image is needed, ({len(y)},): reduction='none' gives them, and "
                "penalty.expand(len(batch.y)) those of a penalty on weights"
            )
        fail_if(
            not term.is_floating_point(),
            f"the loss {name!r} of {owner} holds {str(term.dtype).removeprefix('torch.')}; "
            "floating-point numbers are needed",
        )


def shape_or_type(value: object) -> str:
    """Describe a value that has the wrong shape, or is no tensor at all."""
    return (
        f"has the shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"is a {type(value).__name__}"
    )
