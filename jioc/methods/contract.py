"""The rules for a method that is not ours, each with a sentence for the author who breaks it.

`training/trial.py` lets such a method learn small tasks before a run begins, and asks for every rule. A trial
cannot reach everything, so `checked_fit` stays with the method throughout the run.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from jioc.data.loader import Sampler
from jioc.errors import Failed, fail_if
from jioc.losses import check_terms, shape_or_type
from jioc.methods.base import Fit, Method, own_modules
from jioc.methods.state import DROPOUT, shapes, tensors
from jioc.results import READOUT
from jioc.text import counted
from jioc.types import Batch, Output, Task, Terms

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


def unnamed(method: Method) -> set[str]:
    """The attributes of its own that no checkpoint holds."""
    usual = Method(
        net=method.net,
        memory=method.memory,
        options=method.options,
        coordination=None,
        generator=method.generator,
    )
    return vars(method).keys() - {*method.persistent, *vars(usual), "made", "loss", "adjusted"}


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
        checked = _checked_loss(method, loss or own_loss, own, grown=own and net is None)
        if own:
            method.loss = checked  # type: ignore[method-assign, assignment]
        try:
            fit(method, task, sampler, net=net, params=params, loss=checked, **options)
        finally:
            method.loss = own_loss  # type: ignore[method-assign]

    return fit_checked


def _checked_loss(method: Method, loss: Loss, own: bool, grown: bool) -> Loss:
    """Check a loss when it is first called.

    `own`: the method's weights go with it; `grown`: its network answers for every class seen.
    """
    first = True

    def checked(batch: Batch, out: Output, old: Output | None, task: Task) -> Terms:
        nonlocal first
        if not first:
            return loss(batch, out, old, task)
        answers = out.logits.shape[1]
        fail_if(  # the trial is on a CPU; a GPU would have to wait
            grown and batch.y.device.type == "cpu" and len(batch.y) and int(batch.y.max()) >= answers,
            f"the network of {method.spec.name} answers for {counted(answers, 'class')} of {task.n_seen}: "
            "`learn` calls self.net.grow(task.n_new, self.generator) before `fit`",
        )
        given = _given(batch, out, old)
        versions = [tensor._version for _, tensor in given]
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
        changed = {
            n: None for (n, tensor), was in zip(given, versions, strict=True) if tensor._version != was
        }
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


def _given(batch: Batch, out: Output, old: Output | None) -> list[tuple[str, Tensor]]:
    """The tensors that a loss is given, with their names."""
    parts = {"batch": batch, "out": out} | ({} if old is None else {"old": old})
    return [
        (f"{part}.{name}", tensor)
        for part, held in parts.items()
        for name, value in vars(held).items()
        for tensor in tensors(value)
    ]


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
        method.headline not in scores,
        f"{spec.name} is judged by {method.headline!r}, and its readouts have given {names}{without}",
    )
