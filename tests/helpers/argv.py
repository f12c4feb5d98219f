"""Arguments that several commands share."""

QUICK = ["--task-sizes", "4,3,3", "--epochs", "2", "--memory", "40", "--device", "cpu"]
"""A run on the digits that takes about a second."""
