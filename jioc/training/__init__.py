"""A run: its tasks, the training loop, checkpoints, the saved model."""
