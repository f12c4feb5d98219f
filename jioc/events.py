"""Who is told while work goes on. No torch here."""

from collections.abc import Callable
from typing import Any

Callback = Callable[[str, dict[str, Any]], None]
"""Told of ("start", the scenario), ("epoch", a line of the log), ("task", a row of the result), ("note", {"text"}),
and, while images are decoded for the first time, ("decode", {"done", "total"}). Work before a run's start may also tell
of ("wait", {}), over and over while another process decodes, and ends when it raises."""
