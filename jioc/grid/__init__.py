"""Many runs: which they are (`plan.py`), where they go (`options.py`), how far they are (`progress.py`).

A launcher is a module with the name of a value of `--on`: `local.py` (with `pack.py`, several runs in one
process), `ray.py` (with `folder.py`, a run's folder as files) and `slurm.py`.
May import everything but `integrations/` and `cli/`. Only `pack.py` loads torch; Ray and submitit are loaded
when they are asked for.
"""
