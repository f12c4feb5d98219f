"""The `jioc` command: `main` starts it, and each command is a module with a `main(argv)`.

May import every other folder; nothing imports this one. Heavy imports wait until the command line is right.
"""
