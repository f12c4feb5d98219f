"""Joint: replay that keeps every image it has seen, going on from the weights of the task before. The ceiling."""

from .replay import Replay
from .specs import register


@register("joint")
class Joint(Replay):
    pass
