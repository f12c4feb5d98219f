"""A run: its tasks, the training loop, evaluation, checkpoints, the saved model. Begin with `runner.py`.

`run` is `jioc.run`; `preflight` checks settings with data and device and gives the plan; `runner` goes
through the tasks; `engine` is the training loop, and `execution` says how a step runs (graph, precision).
`evaluate` measures accuracy. `store` owns a run's folder, `checkpoint` what lets a killed run go on, `model`
what a finished one leaves; `load` reads that back, `learner` learns on. `build` makes networks and images.
Imports resolve, methods and the folders above them; never report, grid, integrations or cli.
"""
