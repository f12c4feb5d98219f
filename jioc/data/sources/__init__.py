"""The sources of data sets, a module for each kind. Imports data/images and data/augment.

One more official set of image files is a function and a line in `image_files.LISTINGS`.
Each has `load(entry, where, config, tell, thorough)`; `archives` fetches and unpacks official files, and
`arrays` is for images that are in memory.
"""
