"""What result.json holds about a method, for readers who do not have it: its title and usual settings."""

from typing import Any, Literal

from pydantic import ConfigDict, ValidationError, create_model

from jioc.config import Options, Schedule
from jioc.methods.specs import Spec


class MethodRecord(Options):
    """A method as result.json describes it."""

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
    """Describe a method. `sha256`: the checksum of one that is not ours."""
    own: dict[str, Any] = {"options": spec.options.model_construct().model_dump(), "sha256": sha256}
    return MethodRecord(**own, **{n: getattr(spec, n) for n in MethodRecord.model_fields if n not in own})


def parse_record(value: Any) -> MethodRecord | None:
    """Read the description of a method; None if it is no such thing."""
    try:
        return MethodRecord.model_validate(value)
    except ValidationError:
        return None


def spec_from_record(r: MethodRecord | None) -> Spec | None:
    """Make the entry of a method from its record, if that has whole schedules."""
    if r is None or not all(stage.epochs and stage.lr for stage in (r.first, r.later, r.second) if stage):
        return None
    fields = {n: (Any, v) for n, v in r.options.items() if n[:1].isalpha() and not hasattr(Options, n)}
    own: type[Options] = create_model("Own", __base__=Options, **fields)  # type: ignore[call-overload]
    return Spec(r.name, r.title, "", r.first, r.later, r.second, own, r.memory, host_kd=r.host_kd)
