"""The hardware under a run: which device, how many cores, streams, compilation, several processes.

Imports the base modules alone.
"""
