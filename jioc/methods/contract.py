"""What a method of somebody's own must keep to, each rule with the sentence for who breaks it.

`training/preflight.py` lets such a method learn two small tasks before the run begins, and asks these functions.
"""

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from jioc.errors import Failed
from jioc.methods import base
from jioc.methods.base import Method
from jioc.methods.state import DROPOUT, own_modules, shapes, tensors
from jioc.types import Task, Terms


def check_init(method: Method) -> Method:
    """What `persistent` names must be there once `__init__` is done, and be something that can be saved."""
    for name in method.persistent:
        if not hasattr(method, name):
            raise Failed(f"{method.spec.name} has no {name!r}, which `persistent` names; set it in __init__")
    for name, module in own_modules(method).items():
        if any(isinstance(part, DROPOUT) for part in module.modules()):
            why = f"{name!r} in `persistent` has dropout, which draws from torch's own generator: no run would repeat"
            raise Failed(f"{why}; draw a mask from the method's `generator`")
    made = {name: shapes(module.eval()) for name, module in own_modules(method).items()}
    method.made = (
        made if type(method).load_state is base.Method.load_state else None
    )  # it may make modules itself
    method.state()
    check_state(method)
    return method


def check_gradient(method: Method, terms: Terms) -> None:
    """Something in the loss must depend on what is trained."""
    if not any(term.requires_grad for term in terms.values()):
        raise Failed(f"the loss of {method.spec.name} has no gradient: no term depends on what is trained")


def check_weights(method: Method, task: Task, terms: Terms) -> None:
    """A weight needs a term; in a first task terms of old classes may be missing. JIOC adds and replaces some."""
    known = {*terms, "suppress", *(["kd"] if method.coordination is not None else [])}
    idle = sorted(method.weights(task).keys() - known) if task.n_old else []
    if idle:
        why = f"weights of {method.spec.name} weigh {', '.join(map(repr, idle))}, which its loss does not return"
        raise Failed(f"{why}; it returns {', '.join(map(repr, terms))}")


def check_trained(method: Method, trained: Iterable[Tensor]) -> None:
    """What is trained must outlive a crash, under one name."""
    values = [getattr(method, name) for name in method.persistent]
    held = [p for value in values for p in (value.parameters() if isinstance(value, nn.Module) else [value])]
    owned = [id(p) for p in held if isinstance(p, nn.Parameter)]
    if len(owned) > len(set(owned)):
        why = "two names in `persistent` hold the same parameter, and a resumed run would have two of it; name one"
        raise Failed(f"{method.spec.name}: {why}")
    if not {id(p) for p in trained} <= set(owned):
        why = "trains a parameter that a resumed run would lose: name its module, or the nn.Parameter, in `persistent`"
        raise Failed(f"{method.spec.name} {why}")


def check_state(method: Method) -> None:
    """What `persistent` names must come back from a checkpoint as it was."""
    for name, module in own_modules(method).items():
        if method.made is not None and method.made.get(name) != shapes(module):
            why = f"{name!r} in `persistent` is not as __init__ made it, so that no checkpoint could be loaded into it"
            raise Failed(f"{why}; a module of your own is made there, of the size that it keeps")
    values: list[tuple[str, Any]] = [(name, getattr(method, name)) for name in method.persistent]
    owner: dict[int, str] = {}
    for name, value in sorted(values, key=lambda item: not isinstance(item[1], nn.Module)):
        places = [tensor.untyped_storage().data_ptr() for tensor in tensors(value) if tensor.numel()]
        twice = next((p for i, p in enumerate(places) if p in owner or p in places[:i]), None)
        if twice is not None and not isinstance(value, (nn.Module, nn.Parameter)):
            names = " and ".join(dict.fromkeys([repr(owner.get(twice, name)), repr(name)]))
            raise Failed(
                f"tensors of {names} in `persistent` share memory, and a resumed run's would not; clone one"
            )
        owner |= dict.fromkeys(places, name)


def check_readouts(method: Method, scores: dict[str, Tensor], n: int) -> None:
    """Read-outs are scores of n images for every class seen, `cnn` among them."""
    of, wanted = f"the readouts of {method.spec.name}", (n, sum(method.net.plan["sizes"]))
    if not isinstance(scores, dict) or "cnn" not in scores:
        got = ", ".join(map(repr, scores)) if isinstance(scores, dict) else type(scores).__name__
        raise Failed(
            f"{of} are {got}; a dict of scores with 'cnn' among them is needed, by which methods are compared"
        )
    for name, value in scores.items():
        if not isinstance(value, Tensor) or value.shape != wanted:
            got = (
                f"has the shape {tuple(value.shape)}"
                if isinstance(value, Tensor)
                else f"is a {type(value).__name__}"
            )
            raise Failed(f"{of}: {name!r} {got}; a score for each image and class is needed, {wanted}")
