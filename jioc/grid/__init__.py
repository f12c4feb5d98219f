"""Many runs: a recipe times seeds (`plan.py`), where they go (`options.py`), their progress (`progress.py`).

The recipes that have names stand in `resolve/recipes.py`.
A launcher is a module with the name of a value of `--on`: `local.py` (with `pack.py`, several runs in one
process), `ray.py` (with `folder.py`, a run's folder as files) and `slurm.py`.
May import everything but `integrations/` and `cli/`. Only `pack.py` loads torch; Ray and submitit are loaded
when they are asked for.
"""
