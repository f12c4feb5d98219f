"""The `jioc` command: one module for each command. Nobody imports this folder."""
