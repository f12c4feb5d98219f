"""Augmentation of whole batches on their device, every draw from a given generator."""
