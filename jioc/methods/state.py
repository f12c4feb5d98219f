"""What of a method outlives a crash: turn the values that `persistent` names into plain data, and back.

    a network with a plan    {"plan", "weights", "frozen"}   made anew if the live one has another plan; in a
                                                             model's file, `frozen` may follow from the plan
    another module           {"weights", "frozen"}           filled into the one that `__init__` made
    a parameter              {"parameter", "frozen"}
    a dict                   {"dict"}
    anything else            as it is

What is live and has the saved shape keeps its identity, so that optimisers stay valid.
"""

from typing import Any

import torch
from torch import Tensor, nn

from jioc.errors import Failed, Refused
from jioc.nets.incremental import Net, build, fits

DROPOUT = nn.modules.dropout._DropoutNd
SAVEABLE = "modules, parameters, tensors, and lists, tuples and dicts of tensors, numbers and strings"


def save_value(name: str, value: Any) -> Any:
    """Turn a value into tensors and plain data; refuse what cannot be saved."""
    if isinstance(value, nn.Module):
        plan = {"plan": dict(value.plan)} if isinstance(value, Net) else {}
        frozen = [part for part, p in value.named_parameters() if not p.requires_grad]
        return {**plan, "weights": value.state_dict(), "frozen": frozen}
    if isinstance(value, nn.Parameter):
        return {"parameter": value.detach(), "frozen": not value.requires_grad}
    if (kind := unsaveable(value)) is not None:
        raise Failed(
            f"{name!r} in `persistent` is or holds a {kind}, which no checkpoint keeps; it keeps {SAVEABLE}"
        )
    return {"dict": value} if isinstance(value, dict) else value


def load_value(name: str, value: Any, live: Any, device: torch.device) -> Any:
    """Turn a saved value back; fill it into the live one if that has its shape."""
    keys = set(value) if isinstance(value, dict) else set()
    if keys == {"parameter", "frozen"}:
        return _parameter(value["parameter"], live, device).requires_grad_(not value["frozen"])
    if keys - {"frozen"} == {"plan", "weights"}:
        return _filled(_network(name, value["plan"], value["weights"], live, device), value)
    if keys == {"weights", "frozen"}:
        saved = {part: tensor.shape for part, tensor in value["weights"].items()}
        if not isinstance(live, nn.Module) or shapes(live) != saved:
            raise Failed(f"{name!r} in `persistent` is not the module that was saved; __init__ makes another")
        return _filled(live.eval(), value)
    return placed(value["dict"] if keys == {"dict"} else value, device)


def _network(
    name: str, plan: dict[str, Any], tensors: dict[str, Tensor], live: Any, device: torch.device
) -> Net:
    if isinstance(live, Net) and live.plan == plan:
        return live
    try:
        if not fits(plan, tensors):
            raise ValueError(f"the tensors of {name} do not have the shapes of its plan")
    except Refused as error:  # of a backbone that there is not
        raise ValueError(f"the plan of {name}: {error}") from None
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


def unsaveable(value: Any) -> str | None:
    """Name the kind of the first part that is neither a tensor nor plain; None if there is none."""
    if type(value) is Tensor:
        return None if value.layout is torch.strided else "sparse tensor"
    if isinstance(value, (str, int, float, type(None))):
        return None
    if type(value) not in (list, tuple, dict):
        return type(value).__name__
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return next((kind for part in parts if (kind := unsaveable(part)) is not None), None)


def placed(value: Any, device: torch.device) -> Any:
    """Copy a value with every tensor on the device."""
    match value:
        case dict():
            return {key: placed(part, device) for key, part in value.items()}
        case list() | tuple():
            return type(value)(placed(part, device) for part in value)
        case Tensor():
            return value.detach().to(device, copy=True)
        case _:
            return value


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, nn.Module):
        return list(value.state_dict().values())
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [value] if isinstance(value, Tensor) else [tensor for part in parts for tensor in tensors(part)]


def shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in module.state_dict().items()}
