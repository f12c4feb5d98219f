"""From the settings that a person gave to those of a run. `recipes` are those that `jioc grid` runs by name.

`derive` fills in what follows, `validate` refuses what cannot be, `overlay` lays flags over a file, `repeat`
writes the line that repeats a run. Where settings come from, besides flags: `recipes` (the paper's tables and
the studies), `recipe_file` (a grid in YAML), `pycil` (PyCIL's JSON).
May import the folders above it in the order of the package, down to `methods/`. No torch, no numpy.
"""
