"""What JIOC gains on each host of the comparison, seed by seed, beside the paper's gain.

    python benchmarks/verdicts.py           prints the table of docs/results.md from results/
    python benchmarks/verdicts.py --draw    draws docs/figures/gains.svg

JIOC is by its default reading and, beside it, as printed. The columns of the comparison come first, with
their mean; then those with ResNet18 of which three seeds are wanted.
"""

import sys
from pathlib import Path

import once
import printing
from figures import put, sheet, svg
from gains import RESULTS

from jioc.methods import SPECS
from jioc.report import coverage, paper, runs
from jioc.report.coverage import DEFAULT, PRINTED
from jioc.report.group import Group, mean_std
from jioc.report.tables import cell, number, spread
from jioc.resolve import columns, recipes
from jioc.text import counted

FIGURE = RESULTS.parent.parent / "docs" / "figures" / "gains.svg"
COLUMNS = {
    "CIFAR-100, 2,000 exemplars": columns.RES32_LARGE,
    "CIFAR-100-LT, 1,000 exemplars": columns.RES32_TAIL,
}
RESNET18 = {
    "CIFAR-100-LT, 1,000 exemplars, ResNet18": columns.RES18_TAIL,
    "CIFAR-100, 2,000 exemplars, ResNet18": columns.RES18_LARGE,
}
NOISE = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}  # by seeds: standard errors that chance reaches once in twenty
Gains = dict[str, dict[str, list[float]]]  # by host and form
Found = dict[str, Gains]  # by column


def found(at: Path = RESULTS, wanted: dict[str, columns.Column] = COLUMNS) -> Found:
    """The gains of each host, seed by seed, in the order of the recipe; what was not run is left out."""
    groups = runs.group(run for run in once.read(at) if run.complete and paper.setting(run.result))
    gains: Found = {}
    for title, column in wanted.items():
        gains[title] = {}
        for host in recipes.PAIRED:
            here = [g for g in groups if cell(g) == (*column.place, host, "jioc") and g.base]
            by_form = {form: values_of(here, form) for form in (DEFAULT, PRINTED)}
            if any(by_form.values()):
                gains[title][host] = {form: values for form, values in by_form.items() if values}
    return gains


def values_of(groups: list[Group], form: str) -> list[float]:
    of_form = [g.gains(g.complete[0].result.headline) for g in groups if coverage.form_of(g) == form]
    return max(of_form, key=len, default=[])


def reading(form: str) -> str:
    """The word of --reading, or that nobody gave one."""
    return "printed" if form == PRINTED else "default"


def theirs(title: str, host: str) -> float | None:
    return paper.gain((*(COLUMNS | RESNET18)[title].place, host, "jioc"))


def verdict(values: list[float]) -> str:
    """Gains, loses, or is not clear of the seeds' noise (Student's t, 95 %); one seed has no verdict."""
    mean, std = mean_std(values)
    if mean is None or std is None:
        return "one seed"
    error = std / len(values) ** 0.5
    sure = NOISE.get(len(values), 2.0) * error
    return "not clear" if abs(mean) <= sure else "gains" if mean > 0 else "loses"


def table(gains: Found) -> str:
    """The rows of the comparison, and what they come to."""
    ours, printed = (mean_gain(gains, form) for form in (DEFAULT, PRINTED))
    return f"{rows(gains)}\n\nMean gain by the default reading: {ours}; as printed: {printed}."


def rows(gains: Found) -> str:
    heads = ["column", "host", "reading", "n", "gain", "paper's gain", "verdict"]
    lines = [heads, ["---"] * 3 + ["---:"] * 3 + ["---"]]
    for title, hosts in gains.items():
        for host, forms in hosts.items():
            for form, values in forms.items():
                figures = [str(len(values)), spread(values, "+"), number(theirs(title, host), "+")]
                lines.append([title, SPECS[host].title, reading(form), *figures, verdict(values)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def mean_gain(gains: Found, form: str) -> str:
    """+1.20 over 12 rows."""
    found = [
        mean_std(forms[form])[0] for hosts in gains.values() for forms in hosts.values() if form in forms
    ]
    if not found:
        return "not run"
    return (
        f"{number(mean_std([m for m in found if m is not None])[0], '+')} over {counted(len(found), 'row')}"
    )


def description(gains: Found) -> str:
    """What the figure shows, in words."""
    parts = []
    for title, hosts in gains.items():
        for host, forms in hosts.items():
            shown = [
                f"{reading(form)} {spread(values, '+')} (n = {len(values)})" for form, values in forms.items()
            ]
            parts.append(f"{title}, {host}: {', '.join(shown)}; paper {number(theirs(title, host), '+')}")
    return "; ".join(parts)


def draw(gains: Found) -> bytes:
    """Draw a dot for each seed, a bar at their mean, and the paper's gain as a diamond."""
    import matplotlib

    from jioc.report.figures import PAGE, STYLE
    from jioc.report.looks import COLOURS

    with matplotlib.rc_context(STYLE):
        figure, axes = sheet(PAGE, 2.6, 1, len(gains), sharex=True)
        for ax, (title, hosts) in zip(axes[0], gains.items(), strict=True):
            ax.axvline(0, color="#888c92", linewidth=0.8)
            for y, (host, forms) in enumerate(hosts.items()):
                for i, (form, values) in enumerate(forms.items()):
                    at, colour = y + 0.3 * (i - (len(forms) - 1) / 2), COLOURS[form == PRINTED]
                    ax.plot(
                        values,
                        [at] * len(values),
                        "o",
                        color=colour,
                        markersize=4,
                        label=f"{reading(form)}, a seed",
                    )
                    ax.plot(
                        mean_std(values)[0],
                        at,
                        "|",
                        color=colour,
                        markersize=12,
                        label=f"{reading(form)}, mean",
                    )
                if (gain := theirs(title, host)) is not None:
                    ax.plot(
                        gain,
                        y,
                        "D",
                        color=COLOURS[2],
                        markerfacecolor="white",
                        markersize=5,
                        label="the paper's gain",
                    )
            ax.set_yticks(range(len(hosts)), [SPECS[host].title for host in hosts])
            ax.set_ylim(len(hosts) - 0.5, -0.5)
            ax.set_title(f"{title}, ResNet32")
            ax.set_xlabel("gain over the host in average accuracy (points)")
        handles = {h.get_label(): h for ax in axes[0] for h in ax.get_legend_handles_labels()[0]}
        figure.legend(
            handles=[*handles.values()], loc="outside lower center", ncols=len(handles), frameon=False
        )
        return svg(figure, description(gains))


def main(argv: list[str] | None = None) -> int:
    parser = printing.parser(__doc__)
    parser.add_argument("--draw", action="store_true")
    drawn = parser.parse_args(argv).draw
    return printing.answered(lambda: put(FIGURE, draw(found())) if drawn else print(page()))


def page() -> str:
    return f"{table(found())}\n\n{rows(found(wanted=RESNET18))}"


if __name__ == "__main__":
    sys.exit(main())
