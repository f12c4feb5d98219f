"""Settings: declared once (`schema`), looked up (`index`), checked (`values`), read from files (`files`).

May import the modules at the top of the package. No torch, no numpy.
"""
