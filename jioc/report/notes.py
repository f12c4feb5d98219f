"""The notes below a table: which seeds are missing, what is not averaged, where the runs come from."""

from collections import Counter

from jioc.report import labels
from jioc.report.group import Group, collect
from jioc.results import Environment
from jioc.text import counted, printable

NAMED = 6  # at most, in a note; of more it says the number


def seeds(groups: list[Group]) -> str:
    """What n counts."""
    return "seeds or class orders" if any(run.over_orders for g in groups for run in g.runs) else "seeds"


def headlines(groups: list[Group], shown: dict[str, str]) -> str:
    """The read-outs by which the runs are judged."""
    names = dict.fromkeys(shown[g.runs[0].result.headline].upper() for g in groups)
    return " or ".join(names) + (", whichever the run is judged by" if len(names) > 1 else "")


def closing(groups: list[Group]) -> list[str]:
    """Everything that any table says of its runs."""
    return [*_not_run(groups), *_other_images(groups), *_not_averaged(groups), *provenance(groups)]


def _not_run(groups: list[Group]) -> list[str]:
    """The seeds of a recipe that are missing, of settings of which others were run."""
    missing = {g: [str(run.config["seed"]) for run in g.runs if run.missing] for g in groups}
    rows = collect((" ".join(some), g.label) for g, some in missing.items() if 0 < len(some) < len(g.runs))
    return [
        f"wanted and not run, {'seeds' if ' ' in some else 'seed'} {some}: {_listed(names, 'rows')}"
        for some, names in rows.items()
    ]


def _other_images(groups: list[Group]) -> list[str]:
    """The data sets of one name that hold different images."""
    sets = {g.place_parts[0]: g.runs[0].config.get("data") for g in labels.of_other_images(groups)}
    listed = _listed([f"{name} from {place}" for name, place in sets.items()], "sets")
    note = f"not averaged together, other images (data.fingerprint in result.json): {listed}"
    return [printable(note)] if sets else []


def _listed(names: list[str], kind: str) -> str:
    return "; ".join(names) if len(names) <= NAMED else f"{len(names)} {kind}"


def _not_averaged(groups: list[Group]) -> list[str]:
    """The runs that are unfinished, and those of a seed that was run before."""
    runs = [run for g in groups for run in g.runs if not run.missing]
    unfinished = sum(not run.complete for run in runs)
    again = sum(len(g.complete) - len({run.seeds for run in g.complete}) for g in groups)
    notes = {"unfinished and not averaged": unfinished, "seeds run more than once count each time": again}
    return [f"{note}: {number} of {len(runs)} runs" for note, number in notes.items() if number]


def provenance(groups: list[Group]) -> list[str]:
    """Say on which devices and at which commits the averaged runs were trained."""
    runs = [run for g in groups for run in g.complete]
    machines = [_machine(run.result.environment) for run in runs]
    commits = [run.commit for run in runs]
    several = len(set(commits)) > 1 or any(" then " in commit for commit in commits)
    parts = [f"on {' or '.join(_counts(machines))}"] if any(machines) else []
    if any(commits):
        parts.append(f"at {'commits' if several else 'commit'} {', '.join(_counts(commits))}")
    return [printable(f"{counted(len(runs), 'run')} {', '.join(parts)}")] if parts else []


def _machine(environment: Environment) -> str:
    device = environment.device or ""
    return f"{device or 'an unknown device'}, torch {environment.torch}" if environment.torch else device


def _counts(names: list[str]) -> list[str]:
    """Each name once; where there are several, with its number."""
    counts = Counter(name or "unknown" for name in names)
    return [f"{name} ({n})" if len(counts) > 1 else name for name, n in sorted(counts.items())]
