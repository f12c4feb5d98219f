"""From the settings that a person gave to those of a run: filled in, checked, laid over files; recipes.

May import the folders above it in the order of the package, down to `methods/`. No torch, no numpy.
"""
