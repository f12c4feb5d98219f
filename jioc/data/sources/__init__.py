"""Where data sets come from: one module for each kind of source."""
