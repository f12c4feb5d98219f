"""The hardware under a run: streams, compilation, several processes.

Imports config and the modules above it.
"""
