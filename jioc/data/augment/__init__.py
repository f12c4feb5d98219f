"""Augmentation of whole batches on their device; every number is drawn from a given generator.

`basic` chooses what `--augment` asks for, and has shifts, flips and brightness; `crops` is for photographs.
"""
