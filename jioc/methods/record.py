"""What result.json says of a method, for readers that do not have it: its title and what is usual for it."""

from typing import Any, Literal

from pydantic import ConfigDict, ValidationError, create_model

from jioc.config.schema import Options, Schedule
from jioc.methods.specs import Spec


class MethodRecord(Options):
    model_config = ConfigDict(extra="ignore")

    name: str
    title: str
    memory: Literal["exemplars", "none", "all"]
    host_kd: Literal["replace", "keep"]
    first: Schedule
    later: Schedule
    second: Schedule | None
    options: dict[str, Any]
    sha256: str | None = None


def record(spec: Spec, sha256: str | None = None) -> MethodRecord:
    """`sha256`: of a method that is not ours."""
    own: dict[str, Any] = {"options": spec.options.model_construct().model_dump(), "sha256": sha256}
    return MethodRecord(**own, **{n: getattr(spec, n) for n in MethodRecord.model_fields if n not in own})


def parse_record(value: Any) -> MethodRecord | None:
    """What a result says of its method, where that can be understood."""
    try:
        return MethodRecord.model_validate(value)
    except ValidationError:
        return None


def spec_from_record(of: MethodRecord | None) -> Spec | None:
    """The entry of a method of which there is only a record."""
    if of is None or not all(stage.epochs and stage.lr for stage in (of.first, of.later, of.second) if stage):
        return None
    named = {
        key: (Any, v) for key, v in of.options.items() if key[:1].isalpha() and not hasattr(Options, key)
    }
    own: type[Options] = create_model("Own", __base__=Options, **named)  # type: ignore[call-overload]
    return Spec(of.name, of.title, "", of.first, of.later, of.second, own, of.memory, host_kd=of.host_kd)
