"""From files to batches on the device. Imports device and all above it.

`catalogue` names the data sets and `find` looks one up, without importing torch or numpy. `load` reads one:
`sources` has a module for each kind, `images` lists, decodes and caches image files. `scenario` says which
classes arrive when, `loader` puts images on the device and says in which order training visits them, `stream`
leaves them on disk, `augment` changes them.
"""
