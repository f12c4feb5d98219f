"""Image files: listed, decoded, cached on disk. Imports device and all above it, and no other folder of data.

`listing` says which images there are; `decode` makes a file a square of pixels, and `workers` does so on
every core; `select` says which images train and which test; `cache` keeps them on disk; `inputs` takes images
that are given in Python.
"""
