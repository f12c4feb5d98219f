"""The hardware under a run: which device, how many cores, streams, compilation, several processes.

Imports the base modules alone.
"""

RUNS_AT_ONCE = 16  # that share a device, at most: each has streams of its own, and torch has 32
