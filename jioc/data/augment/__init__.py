"""Augmentation of whole batches on their device; every number is drawn from a given generator."""
