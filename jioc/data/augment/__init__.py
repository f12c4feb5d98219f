"""Augmentation of whole batches on their device; every number is drawn from a given generator.

`choose` finds what `--augment` names; `basic` has shifts, flips and brightness, `crops` is for photographs,
`mix` mixes the images of a batch.
"""
