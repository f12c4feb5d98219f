"""The rules for a method that is not ours, each with a sentence for the author who breaks it.

`training/preflight.py` lets such a method learn two small tasks before a run begins, and asks for every rule.
A trial cannot reach everything, so `checked_fit` stays with the method throughout the run.
"""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jioc.data.loader import Sampler
from jioc.errors import Failed, fail_if
from jioc.losses import check_terms, shape_or_type
from jioc.methods.base import Fit, Method, own_modules
from jioc.methods.state import DROPOUT, shapes, tensors
from jioc.results import READOUT
from jioc.text import counted
from jioc.types import Batch, Output, Task, Terms

OF_THE_RUN = (  # what every method has, and the run sets
    *("net", "memory", "options", "coordination", "generator", "teacher", "means"),
    *("prior", "rebalance", "made", "begun", "loss", "adjusted"),
)
Loss = Callable[[Batch, Output, Output | None, Task], Terms]


# --- what it is ---


def check_init(method: Method) -> Method:
    """Refuse a method that has not set what `persistent` names, or set what no checkpoint can hold."""
    for name in method.persistent:
        fail_if(
            not hasattr(method, name),
            f"{method.spec.name} has no {name!r}, which `persistent` names; set it in __init__",
        )
    for name, module in own_modules(method).items():
        fail_if(
            any(isinstance(part, DROPOUT) for part in module.eval().modules()),
            f"{name!r} in `persistent` has dropout, which draws from torch's own generator: "
            "no run would repeat; draw a mask from the method's `generator`",
        )
    if type(method).load_state is Method.load_state:  # another one may make modules itself
        method.made = {name: shapes(module) for name, module in own_modules(method).items()}
    method.begun = _unnamed(method)
    check_state(method)
    return method


def check_state(method: Method) -> None:
    """Refuse a state that a checkpoint cannot hold, or a resumed run would not have."""
    method.state()
    for name, module in own_modules(method).items():
        fail_if(
            method.made is not None and method.made.get(name) != shapes(module),
            f"{name!r} in `persistent` is not as __init__ made it, so that no checkpoint could be loaded "
            "into it; a module of your own is made there, of the size that it keeps",
        )
    _check_shared_memory([(name, getattr(method, name)) for name in method.persistent])


def check_unnamed(method: Method) -> None:
    """Refuse what a task has changed and `persistent` does not name: a resumed run would not have it."""
    now = {name: mark for name, mark in _unnamed(method).items() if mark is not None}
    names = " and ".join(repr(name) for name, mark in now.items() if mark != method.begun.get(name))
    fail_if(
        names,
        f"{method.spec.name} changes {names} as it learns a task, which a resumed run and a saved model "
        "lose: name it in `persistent`, or in `scratch` if it is set anew before it is used",
    )


def _unnamed(method: Method) -> dict[str, Any]:
    """The marks of the attributes of its own that no checkpoint holds."""
    held = (getattr(method, name, None) for name in method.persistent)
    kept = {id(part) for one in held if isinstance(one, nn.Module) for part in one.modules()}
    names = vars(method).keys() - {*method.persistent, *method.scratch, *OF_THE_RUN}
    own = {name for name in names if not isinstance(getattr(type(method), name, None), cached_property)}
    return {name: mark_of(value, kept) for name, value in vars(method).items() if name in own}


def mark_of(value: Any, kept: set[int]) -> Any:
    """Plain data that differs once a value has changed; None for None, and what is not looked into.

    `kept`: by their id, the modules that a checkpoint holds.
    """
    match value:
        case nn.Module():
            return None if id(value) in kept else (id(value), mark_of(value.state_dict(), kept))
        case Tensor():
            if value.layout is not torch.strided:
                return None
            content = value.detach().cpu().flatten().view(torch.uint8).numpy().tobytes()
            return str(value.dtype), tuple(value.shape), hashlib.blake2b(content).digest()
        case np.ndarray() | np.generic():
            return str(value.dtype), value.shape, hashlib.blake2b(value.tobytes()).digest()
        case torch.Generator():
            return mark_of(value.get_state(), kept)
        case dict():
            return "dict", tuple((key, mark_of(each, kept)) for key, each in value.items())
        case list() | tuple() | deque():
            return type(value).__name__, tuple(mark_of(each, kept) for each in value)
        case set() | frozenset():
            return "set", frozenset(mark_of(each, kept) for each in value)
        case bool() | int() | float() | complex() | str() | bytes():
            return type(value).__name__, repr(value)
    return None


def _check_shared_memory(values: list[tuple[str, Any]]) -> None:
    """Refuse tensors that are one memory and would be two once they are loaded; a module's stay together."""
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


# --- what it trains ---


def checked_fit(fit: Fit) -> Fit:
    """Wrap `fit`: check what a stage trains before it begins, and what its loss gives for the first batch."""

    def fit_checked(
        method: Method,
        task: Task,
        sampler: Sampler,
        *,
        net: nn.Module | None = None,
        params: Iterable[nn.Parameter] | None = None,
        loss: Loss | None = None,
        **options: Any,
    ) -> None:
        params = None if params is None else list(params)
        trained = (net or method.net).parameters() if params is None else params
        check_trained(method, [p for p in trained if p.requires_grad])
        check_state(method)
        own_loss, own = method.loss, loss is None or loss == method.loss
        checked = _checked_loss(method, loss or own_loss, own)
        if own:
            method.loss = checked  # type: ignore[method-assign, assignment]
        try:
            fit(method, task, sampler, net=net, params=params, loss=checked, **options)
        finally:
            method.loss = own_loss  # type: ignore[method-assign]

    return fit_checked


def _checked_loss(method: Method, loss: Loss, own: bool) -> Loss:
    """Check a loss when it is first called. `own`: the method's weights go with it."""
    first = True

    def checked(batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        nonlocal first
        if not first:
            return loss(batch, out, old, task)
        answers = out.logits.shape[1]
        fail_if(  # the trial is on a CPU; a GPU would have to wait
            batch.y.device.type == "cpu" and len(batch.y) and int(batch.y.max()) >= answers,
            f"the network of {method.spec.name} answers for {counted(answers, 'class')} of {task.n_seen}: "
            "`learn` calls self.net.grow(task.n_new, self.generator) before `fit`",
        )
        given = _given(batch, out, old)
        versions = {name: tensor._version for name, tensor in given.items()}
        try:
            terms = loss(batch, out, old, task)
        except AttributeError as error:
            never = "" if method.spec.distils else ", and later only if its entry says distils=True"
            fail_if(
                old is None and error.obj is None and error.name in Output.__annotations__,
                f"the loss of {method.spec.name} asks for the teacher's {error.name}; in the first task "
                f"there is no teacher{never}: begin with `if old is not None`",
            )
            raise
        changed = [name for name, tensor in given.items() if tensor._version != versions[name]]
        fail_if(
            changed,
            f"the loss of {method.spec.name} changes {' and '.join(changed)} in place, which JIOC and "
            "read-outs use after it; change a clone",
        )
        check_terms(terms, batch.y, method.spec.name)
        fail_if(
            not any(term.requires_grad for term in terms.values()),
            f"the loss of {method.spec.name} has no gradient: no term depends on what is trained",
        )
        if own:
            check_weights(method, task, terms)
        first = False
        return terms

    return checked


def _given(batch: Batch, out: Output, old: Output | None) -> dict[str, Tensor]:
    """The tensors that a loss is given, by name."""
    given = {"batch.x": batch.x, "batch.y": batch.y, "out.logits": out.logits, "out.features": out.features}
    if old is not None:
        given |= {"old.logits": old.logits, "old.features": old.features}
    return {name: value for name, value in given.items() if isinstance(value, Tensor)}


def check_trained(method: Method, trained: Iterable[Tensor]) -> None:
    """Refuse to train a parameter that no checkpoint holds, or that it would hold under two names."""
    values = [getattr(method, name) for name in method.persistent]
    held = [p for value in values for p in (value.parameters() if isinstance(value, nn.Module) else [value])]
    owned = [id(p) for p in held if isinstance(p, nn.Parameter)]
    fail_if(
        len(owned) > len(set(owned)),
        f"{method.spec.name}: two names in `persistent` hold the same parameter, "
        "and a resumed run would have two of it; name one",
    )
    fail_if(
        not {id(p) for p in trained} <= set(owned),
        f"{method.spec.name} trains a parameter that a resumed run would lose: "
        "name its module, or the nn.Parameter, in `persistent`",
    )


def check_weights(method: Method, task: Task, terms: Terms) -> None:
    """Refuse a weight without its term, once there are old classes. JIOC adds and replaces some terms."""
    known = {*terms, "suppress", *(["kd"] if method.coordination is not None else [])}
    idle = sorted(method.weights(task).keys() - known) if task.n_old else []
    fail_if(
        idle,
        f"weights of {method.spec.name} weigh {', '.join(map(repr, idle))}, which its loss does not "
        f"return; it returns {', '.join(map(repr, terms))}",
    )


# --- what it answers ---


def check_readouts(method: Method, scores: dict[str, Tensor], n: int) -> None:
    """Refuse read-outs that are not scores of n images for every class seen, or that lack a needed name."""
    spec, wanted = method.spec, (n, sum(method.net.plan["sizes"]))
    names = ", ".join(map(repr, scores)) if isinstance(scores, dict) else type(scores).__name__
    fail_if(
        not isinstance(scores, dict) or "cnn" not in scores,
        f"the readouts of {spec.name} are {names}; a dict of scores with 'cnn' among them is needed, "
        "by which methods are compared",
    )
    for name, value in scores.items():
        fail_if(
            not isinstance(name, str) or not re.fullmatch(READOUT, name),
            f"the readouts of {spec.name}: {name!r} is no name; "
            "a name has at most 64 letters, digits, spaces and . _ + -",
        )
        fail_if(
            not isinstance(value, Tensor) or value.shape != wanted,
            f"the readouts of {spec.name}: {name!r} {shape_or_type(value)}; "
            f"a score for each image and class is needed, {wanted}",
        )
    without = " (no exemplar is kept)" * (not len(method.memory))
    fail_if(
        spec.headline not in scores,
        f"{spec.name} is judged by {spec.headline!r}, and its readouts have given {names}{without}",
    )
