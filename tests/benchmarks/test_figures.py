"""The comparison's figures: pairs of a host without and with coordination."""

import xml.dom.minidom
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from helpers.results import keep, made
from helpers.scripts import script
from jioc.config import values as settings
from jioc.errors import Failed, Refused
from jioc.resolve import recipes
from jioc.resolve.derive import resolve


def paired(coordinate: str, seed: int, mass: float, norm: float, few: float | None) -> dict[str, Any]:
    """A result of iCaRL; `few`: accuracy of few-shot classes under a tail, where many-shot ones have 60."""
    tail = {"long_tail": "paper"} if few is not None else {}
    result = made(coordinate=coordinate, seed=seed, alls=[50.0] * 5, **tail)
    for row in result["tasks"][1:]:
        row["diagnostics"] |= {"old_mass_on_new": mass, "drift_on_old": 1.0}
        row["diagnostics"] |= {} if few is None else {"many": 60.0, "few": few}
    last = result["tasks"][-1]
    last["diagnostics"]["weight_norms"] = [2.0] * last["classes"][0] + [2.0 * norm] * 2
    return result


def test_the_claims_are_measured_on_the_seeds_that_a_pair_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = script("figures")
    results = [
        paired("none", 1, 0.5, 1.8, None),
        paired("none", 2, 0.7, 1.9, None),
        paired("jioc", 1, 0.3, 1.9, None),
        paired("jioc", 2, 0.3, 1.7, None),
        paired("jioc", 3, 0.9, 9.0, None),
        paired("none", 1, 0.5, 1.5, 40.0),
        paired("jioc", 1, 0.6, 1.2, 55.0),
        paired("none", 2, 0.5, 1.5, 40.0),
        paired("jioc", 2, 0.6, 1.2, 55.0),
    ]
    place = keep(tmp_path / "runs", *results)
    balanced, tail = figures.columns(place).items()
    place_of_both = "resnet18, 5 tasks, 1,000 exemplars"
    assert balanced[0] == f"cifar100, balanced, {place_of_both}"
    assert tail[0] == f"cifar100, long tail paper, {place_of_both}"
    (pair,), (tailed,) = figures.pairs(balanced[1]), figures.pairs(tail[1])
    mass, drift, norms, gap, shots = figures.CLAIMS
    assert pair.values(mass) == ([pytest.approx(0.5), pytest.approx(0.7)], [pytest.approx(0.3)] * 2)
    assert pair.values(norms) == (pytest.approx([1.8, 1.9]), pytest.approx([1.9, 1.7])) and pair.values(
        shots
    ) == ([], [])
    assert pair.values(gap)[0] == [6.0, 6.0]
    looks = [pair.look(mass), pair.look(norms), pair.look(drift), tailed.look(mass), tailed.look(shots)]
    assert looks == [figures.NEARER, figures.SAME, figures.SAME, figures.FARTHER, figures.NEARER]
    drawn = figures.draw(place, tmp_path / "figures")
    assert drawn.name == "pairs.svg" and drawn.read_bytes().startswith(b"<?xml")
    assert "0.60 → 0.30 (-0.30 ± 0.14)" in capsys.readouterr().out


def test_pairs_and_columns_have_their_full_names_and_one_seed_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = script("figures")
    strong, deep = (
        paired("jioc", 1, 0.1, 1.1, None),
        [made(backbone="resnet32"), made("icarl", "jioc", backbone="resnet32")],
    )
    strong["config"]["coordination"]["gamma2"] = 5.0
    own = [made(str(tmp_path / "mine.py"), word) for word in ("none", "jioc")]
    first = [paired("none", 1, 0.5, 1.8, None), paired("jioc", 1, 0.3, 1.2, None)]
    place = keep(tmp_path / "runs", *first, strong, *deep, *own)
    found = figures.columns(place)
    names = {title: [pair.name for pair in figures.pairs(groups)] for title, groups in found.items()}
    assert names == {
        "cifar100, resnet18, 5 tasks, 1,000 exemplars": [
            "iCaRL + JIOC",
            "iCaRL + JIOC, gamma2 5",
            "mine + JIOC",
        ],
        "cifar100, resnet32, 5 tasks, 1,000 exemplars": ["iCaRL + JIOC"],
    }
    looks = {
        pair.look(claim)
        for groups in found.values()
        for pair in figures.pairs(groups)
        for claim in figures.CLAIMS
    }
    assert looks == {figures.ALONE}
    path = figures.draw(place, tmp_path / "figures")
    assert "gamma2 5 (n = 1)" in path.read_text() and "iCaRL + JIOC, gamma2 5" in capsys.readouterr().out
    (tmp_path / "file").write_text("mine\n")
    for target in ("file", "file/below"):
        with pytest.raises(Failed, match="cannot be written to"):
            figures.draw(place, tmp_path / target)


def test_what_a_host_gains_is_told_column_by_column_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    hosts = script("hosts")
    results = [made("wa", "none", seed, alls=[60.0] * 5) for seed in (1, 2)]
    results += [made("wa", "jioc", seed, alls=[60.0 + seed] * 5) for seed in (1, 2, 3)]
    tail = [
        made("ssil", word, alls=[last] * 5, long_tail="paper")
        for word, last in (("none", 50.0), ("oc", 40.0))
    ]
    found = keep(tmp_path / "runs", *results, *tail, made("wa", "ic", 1, alls=[58.0] * 5))
    _, _, part, balanced, tailed = hosts.table(found).splitlines()
    assert part == f"| balanced | WA + IC | 1 |{' -2.00 |' * 5} – |"
    assert balanced == f"| balanced | WA + JIOC | 2 |{' +1.50 ± 0.71 |' * 5} – |"
    assert tailed == f"| long tail paper | SS-IL + OC | 1 |{' -10.00 |' * 5} – |"
    with pytest.raises(Refused, match="no host with and without"):
        hosts.table(keep(tmp_path / "alone", made()))


def test_results_without_a_pair_are_refused_in_a_sentence(tmp_path: Path) -> None:
    place = keep(tmp_path / "runs", made(), made(coordinate="jioc", done=2))
    with pytest.raises(Refused, match="no host with and without JIOC"):
        script("figures").draw(place, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def ssil(name: str, seed: int = 1, **more: Any) -> dict[str, Any]:
    values = recipes.find_recipe("figure4").make()[name] | {"seed": seed} | more
    config = settings.plain(resolve(settings.make(**values)))
    return made(tasks=10, classes=100, alls=[50.0] * 10) | {"config": config}


def test_a_panel_of_figure_4_has_both_arms_with_the_same_exemplars_or_was_not_run(tmp_path: Path) -> None:
    figure4 = script("figure4")
    arms = [f"cifar100-resnet32-1000-ssil-{word}" for word in ("none", "oc")]
    tail = [f"cifar100-lt-resnet18-1000-ssil-{word}" for word in ("none", "oc")]
    weak = {"coordination": {"coordinate": "oc", "gamma2": 0.01}}
    results = [ssil(arms[0]), ssil(arms[1], **weak), *(ssil(name, memory=2000) for name in arms)]
    results += [ssil(tail[0]), ssil(tail[0], 2), ssil(tail[1]), ssil(tail[1], 2, stem="cifar")]
    found = figure4.panels(keep(tmp_path / "runs", *results))
    told = figure4.description(found).split("; ")
    assert told == [
        "cifar100-lt, resnet18, 1,000 exemplars: SS-IL 50.00 ± 0.00 (n = 2), SS-IL + OC 50.00 (n = 1)",
        "cifar100, resnet18: not run",
        "cifar100, resnet32, 2,000 exemplars: SS-IL 50.00 (n = 1), SS-IL + OC 50.00 (n = 1)",
    ]
    assert figure4.draw(found).startswith(b"<?xml")


@pytest.mark.parametrize(
    ("name", "found"), [("figure4", "panels"), ("headline", "found"), ("verdicts", "found")]
)
def test_a_figure_of_the_docs_is_current(name: str, found: str) -> None:
    drawn = script(name)
    (told,) = xml.dom.minidom.parse(str(drawn.FIGURE)).getElementsByTagName("dc:description")
    remedy = f"its script in benchmarks/, {name}.py, draws it anew"
    what = getattr(drawn, found)()
    assert told.firstChild is not None
    assert told.firstChild.nodeValue == drawn.description(what), remedy
    file = drawn.FIGURE.read_bytes()
    if name != "headline" and f"Matplotlib v{matplotlib.__version__}," in file.decode():
        assert file == drawn.draw(what), remedy


def test_the_picture_of_the_readme_is_one_for_light_and_dark() -> None:
    headline = script("headline")
    light, dark = (
        xml.dom.minidom.parse(str(headline.FIGURE.with_name(f"headline-{name}.svg"))) for name in headline.INK
    )
    told = [one.getElementsByTagName("dc:description")[0].firstChild.nodeValue for one in (light, dark)]
    assert told[0] == told[1]
    for name in headline.INK:
        file = headline.FIGURE.with_name(f"headline-{name}.svg").read_bytes()
        if f"Matplotlib v{matplotlib.__version__}," in file.decode():
            assert file == headline.draw(headline.found(), name), "benchmarks/headline.py draws it anew"
    assert headline.spread_out({"a": 42.0, "b": 41.0, "c": 9.0}, 5.0) == {"c": 9.0, "b": 41.0, "a": 46.0}
