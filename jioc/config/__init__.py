"""What can be set: every setting with its type, default and help, and the files that settings are kept in.

Imports the modules beside this folder. No torch, no numpy.
"""
