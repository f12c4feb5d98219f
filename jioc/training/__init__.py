"""A run: its tasks, the training loop, evaluation, checkpoints, the saved model. Begin with `runner.py`.

Imports resolve, methods and the folders above them; never report, grid, integrations or cli.
"""
