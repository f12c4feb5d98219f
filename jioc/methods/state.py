"""What of a method outlives a crash: a value that `persistent` names as tensors and plain data, and the value again.

    a network with a plan    {"plan", "weights", "frozen"}     made anew where the live one has another plan
    another module           {"weights", "frozen"}             filled into the one that `__init__` made
    a parameter              {"parameter", "frozen"}
    a dict                   {"dict"}
    anything else            as it is

What is live and has the saved shape keeps its identity, so that optimisers stay valid.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from jioc.errors import Failed
from jioc.nets.incremental import Net, build

if TYPE_CHECKING:
    from jioc.methods.base import Method

DROPOUT = nn.modules.dropout._DropoutNd
CAN_BE = "modules, parameters, tensors, and lists, tuples and dicts of tensors, numbers and strings"


def kept(name: str, value: Any) -> Any:
    if isinstance(value, nn.Module):
        plan = {"plan": dict(value.plan)} if isinstance(value, Net) else {}
        frozen = [part for part, p in value.named_parameters() if not p.requires_grad]
        return {**plan, "weights": value.state_dict(), "frozen": frozen}
    if isinstance(value, nn.Parameter):
        return {"parameter": value.detach(), "frozen": not value.requires_grad}
    if (kind := unkept(value)) is not None:
        raise Failed(f"{name!r} in `persistent` is or holds a {kind}, which no checkpoint keeps; it keeps {CAN_BE}")
    return {"dict": value} if isinstance(value, dict) else value


def restored(name: str, value: Any, live: Any, device: torch.device) -> Any:
    """Of what earlier versions kept, networks have no `frozen`, and parameters and dicts are as they were."""
    if isinstance(live, nn.Parameter) and isinstance(value, Tensor):
        value = {"parameter": value, "frozen": not live.requires_grad}
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"parameter", "frozen"}:
        return _parameter(value["parameter"], live, device).requires_grad_(not value["frozen"])
    if keys in ({"plan", "weights"}, {"plan", "weights", "frozen"}):
        return _filled(_network(name, value["plan"], live, device), value)
    if keys == {"weights", "frozen"}:
        if not isinstance(live, nn.Module) or shapes(live) != {k: v.shape for k, v in value["weights"].items()}:
            raise Failed(f"{name!r} in `persistent` is not the module that was saved; __init__ makes another")
        return _filled(live.eval(), value)
    return placed(value["dict"] if keys == {"dict"} else value, device)


def _network(name: str, plan: dict[str, Any], live: Any, device: torch.device) -> Net:
    if isinstance(live, Net) and live.plan == plan:
        return live
    made = build(plan).to(device)
    return made.frozen_copy() if name == "teacher" else made


def _filled(module: nn.Module, value: dict[str, Any]) -> nn.Module:
    module.load_state_dict(value["weights"])
    if "frozen" in value:
        for part, p in module.named_parameters():
            p.requires_grad_(part not in value["frozen"])
    return module


@torch.no_grad()
def _parameter(value: Tensor, live: Any, device: torch.device) -> nn.Parameter:
    if isinstance(live, nn.Parameter) and live.shape == value.shape:
        return live.copy_(value)  # type: ignore[return-value]
    return nn.Parameter(value.to(device, copy=True), requires_grad=False)


def unkept(value: Any) -> str | None:
    """The kind of the first part that is neither a tensor nor plain; None: there is none."""
    if type(value) is Tensor or isinstance(value, (str, int, float, type(None))):
        return None
    if type(value) not in (list, tuple, dict):
        return type(value).__name__
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return next((kind for part in parts if (kind := unkept(part)) is not None), None)


def placed(value: Any, device: torch.device) -> Any:
    """The same with every tensor on the device, and nothing shared."""
    if isinstance(value, dict):
        return {key: placed(part, device) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(placed(part, device) for part in value)
    return value.to(device, copy=True) if isinstance(value, Tensor) else value


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, nn.Module):
        return list(value.state_dict().values())
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [value] if isinstance(value, Tensor) else [tensor for part in parts for tensor in tensors(part)]


def refuse_shared(method: "Method") -> None:
    """Tensors that are one memory would be two once they are loaded; those within a module stay together."""
    values = [(name, getattr(method, name)) for name in method.persistent]
    owner: dict[int, str] = {}
    for name, value in sorted(values, key=lambda item: not isinstance(item[1], nn.Module)):
        places = [tensor.untyped_storage().data_ptr() for tensor in tensors(value) if tensor.numel()]
        twice = next((p for i, p in enumerate(places) if p in owner or p in places[:i]), None)
        if twice is not None and not isinstance(value, (nn.Module, nn.Parameter)):
            names = " and ".join(dict.fromkeys([repr(owner.get(twice, name)), repr(name)]))
            raise Failed(f"tensors of {names} in `persistent` share memory, and a resumed run's would not; clone one")
        owner |= dict.fromkeys(places, name)


# --- modules that no plan describes, so that nothing but `__init__` can make them ---


def own_modules(method: "Method") -> dict[str, nn.Module]:
    found = {name: getattr(method, name, None) for name in method.persistent}
    return {name: m for name, m in found.items() if isinstance(m, nn.Module) and not isinstance(m, Net)}


def shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in module.state_dict().items()}


def begun(method: "Method") -> "Method":
    """`__init__` is done; what cannot be kept is refused now. A `load_state` of its own may make modules too."""
    for name in method.persistent:
        if not hasattr(method, name):
            raise Failed(f"{method.spec.name} has no {name!r}, which `persistent` names; set it in __init__")
    for name, module in own_modules(method).items():
        if any(isinstance(part, DROPOUT) for part in module.modules()):
            told = f"{name!r} in `persistent` has dropout, which draws from torch's own generator: no run would repeat"
            raise Failed(f"{told}; draw a mask from the method's `generator`")
    made = {name: shapes(module.eval()) for name, module in own_modules(method).items()}
    method.made = made if type(method).load_state.__module__ == f"{__package__}.base" else None
    method.state()
    return method


def refuse_remade(method: "Method") -> None:
    for name, module in own_modules(method).items():
        if method.made is not None and method.made.get(name) != shapes(module):
            told = f"{name!r} in `persistent` is not as __init__ made it, so that no checkpoint could be loaded into it"
            raise Failed(f"{told}; a module of your own is made there, of the size that it keeps")


def trained_beside(method: "Method", trained: Iterable[Tensor]) -> list[nn.Module]:
    """The method's own modules among what is trained; refuses parameters that would not outlive a crash."""
    wanted = {id(p) for p in trained}
    values = [getattr(method, name) for name in method.persistent]
    held = [p for value in values for p in (value.parameters() if isinstance(value, nn.Module) else [value])]
    owned = [id(p) for p in held if isinstance(p, nn.Parameter)]
    if len(owned) > len(set(owned)):
        told = "two names in `persistent` hold the same parameter, and a resumed run would have two of it; name one"
        raise Failed(f"{method.spec.name}: {told}")
    if not wanted <= set(owned):
        told = "trains a parameter that a resumed run would lose: name its module, or the nn.Parameter, in `persistent`"
        raise Failed(f"{method.spec.name} {told}")
    refuse_remade(method)
    return [m for m in own_modules(method).values() if any(id(p) in wanted for p in m.parameters())]
