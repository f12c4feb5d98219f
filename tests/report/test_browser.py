"""The report in a real browser: Debian's chromium, without network, driven through its own driver."""

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import NAMES as HOSTILE
from helpers.results import keep, made, read_out
from jioc.cli.main import main
from jioc.report import runs
from jioc.report.group import Group, mean_std

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("default")]

SIZES = {"desktop": (1400, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed: pip install 'jioc[browser]'"
    )
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for word in (
        "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `jioc demo` leaves."""
    folder = tmp_path_factory.mktemp("demo") / "jioc-demo"
    assert main(["demo", "--out", str(folder)]) == 0
    return folder


def show(browser: Any, page: Path, size: str = "desktop", scheme: str = "light", address: str = "") -> None:
    """Open the page; nothing may be said on the console."""
    width, height = SIZES[size]
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get("about:blank")  # or another address of the same page would not load it again
    browser.get(page.as_uri() + address)
    whole(browser)
    said = browser.get_log("browser")
    assert not said, said


def whole(browser: Any) -> None:
    """Wait until everything is drawn, what lies off the screen too."""
    from selenium.webdriver.support.ui import WebDriverWait

    drawn = "return document.documentElement.hasAttribute('data-drawn')"
    WebDriverWait(browser, 30, 0.05).until(lambda b: b.execute_script(drawn))


def click(browser: Any, selector: str, i: int = 0) -> None:
    """Click what may lie off the screen, and wait."""
    element = all_of(browser, selector)[i]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    element.click()
    whole(browser)


def all_of(browser: Any, selector: str) -> list[Any]:
    return browser.find_elements("css selector", selector)


def text(browser: Any, selector: str) -> str:
    return browser.find_element("css selector", selector).get_attribute("textContent")


def screenshot(browser: Any, path: Path) -> None:
    """The whole page."""
    import base64

    picture = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"}
    )
    path.write_bytes(base64.b64decode(picture["data"]))
    assert path.read_bytes().startswith(b"\x89PNG")


def hover(browser: Any, element: Any) -> str:
    """What the tip says over the middle of an element."""
    from selenium.webdriver import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    ActionChains(browser).move_to_element(element).perform()
    return text(browser, "#tip")


def test_the_demos_report(browser: Any, demo: Path) -> None:
    results = {p.parent.name: json.loads(p.read_bytes()) for p in sorted(demo.rglob("result.json"))}
    assert len(results) == 6
    show(browser, demo / "report.html")
    for name in (
        "cnn-all",
        "cnn-old",
        "cnn-new",
        "nme-all",
        "old_mass_on_new",
        "drift_on_old",
        "few",
        "counts",
        "speed",
    ):
        assert all_of(browser, f'[data-chart="{name}"] svg'), name
    assert (
        len(all_of(browser, '[data-matrix="tasks"] image'))
        == len(all_of(browser, '[data-matrix="confusion"] image'))
        == 2
    )
    rows = all_of(browser, "#summary tbody tr")
    assert [row.text.split("\n")[0].split(" 3 ")[0].strip() for row in rows] == ["iCaRL", "iCaRL + JIOC"]
    averages = [results[f"icarl-jioc-{s}"]["average"]["cnn"] for s in (1, 2, 3)]
    assert f"{sum(averages) / 3:.2f}" in rows[1].text

    tip = hover(browser, all_of(browser, '[data-chart="cnn-all"] g[data-g="1"] circle')[-1])
    last = [results[f"icarl-jioc-{s}"]["tasks"][-1]["cnn"]["all"] for s in (1, 2, 3)]
    assert "after 10 classes" in tip and f"{sum(last) / 3:.2f} ± " in tip
    for seed, value in zip((1, 2, 3), last, strict=True):
        assert f"seed {seed}: {value:.2f}" in tip

    drawn = len(all_of(browser, '[data-chart="cnn-all"] path.one'))
    click(browser, "#legend input")  # draws iCaRL no more; the table keeps its row
    assert len(all_of(browser, "#summary tbody tr")) == 2 and drawn == 6
    assert not all_of(browser, '#main [data-chart^="cnn"] [data-g="0"]') and "1 of 2" in text(
        browser, "#chosen"
    )
    click(browser, "#legend .fold", 1)
    click(browser, "#legend .runs ul input")  # and leaves one seed of iCaRL + JIOC out
    assert f"{sum(averages[1:]) / 2:.2f}" in all_of(browser, "#summary tbody tr")[1].text
    click(browser, "#clear")

    click(browser, "#legend li[data-g='1'] > .line .name")  # highlights it everywhere
    charts = all_of(browser, "[data-chart] g[data-g='0']")
    assert charts and all("dim" in g.get_attribute("class").split() for g in charts)
    assert "focus" in all_of(browser, "#summary tr[data-g='1']")[0].get_attribute("class")
    assert not all_of(browser, "[data-chart] g[data-g='1'].dim")
    assert not browser.get_log("browser")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_its_looks(browser: Any, demo: Path, tmp_path: Path, size: str, scheme: str) -> None:
    """On a phone nothing is wider than the screen. Screenshots go to the folder named by JIOC_SCREENSHOTS."""
    show(browser, demo / "report.html", size, scheme)
    ground = browser.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) > 380) == (scheme == "light")
    wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1] == SIZES[size][0]
    folder = Path(os.environ.get("JIOC_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    screenshot(browser, folder / f"report-{size}-{scheme}.png")


def test_it_prints(browser: Any, demo: Path) -> None:
    show(browser, demo / "report.html", scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    import base64

    content = base64.b64decode(printed)
    assert content.startswith(b"%PDF")
    if where := os.environ.get("JIOC_SCREENSHOTS"):
        (Path(where) / "report.pdf").write_bytes(content)


def old() -> dict[str, Any]:
    result = made(diagnosed=False)
    for key in ("headline", "counts", "environment", "forgetting"):
        del result[key]
    return result


PAGES = {
    "hostile names": lambda: [made(classes=HOSTILE, counts=list(range(30, 10, -2)), method="<b>own</b>.py")],
    "200 classes": lambda: [made(classes=200, tasks=10)],
    "one task of one class": lambda: [made(classes=1, tasks=1)],
    "twenty settings": lambda: [made(classes=20, memory=100 + i) for i in range(20)],
    "unfinished": lambda: [made(done=1), made(coordinate="jioc", done=3), made("replay")],
    "an older version": lambda: [old()],
    "thirty named classes": lambda: [
        made(classes=["a name that is too long", *(f"finch {c}" for c in range(29))])
    ],
    "two places": lambda: [made(), made(coordinate="jioc"), made(memory=500, alls=[53.3049999999] * 5)],
    "beside the paper": lambda: [made(coordinate=c, classes=100, tasks=10) for c in ("none", "ic", "jioc")],
}


@pytest.mark.parametrize("name", PAGES)
def test_every_kind_of_page_opens(browser: Any, tmp_path: Path, name: str) -> None:
    results = PAGES[name]()
    page = tmp_path / "page.html"
    assert main(["report", str(keep(tmp_path / "runs", *results)), "-o", str(page)]) == 0
    show(browser, page)
    rows = all_of(browser, "#summary tbody tr[data-g]")
    assert len(all_of(browser, "#legend li[data-g]")) == len(rows) == len(results)
    assert all_of(browser, '[data-chart="cnn-all"] circle')
    assert not browser.execute_script(
        "return document.getElementById('main').innerHTML.match(/NaN|undefined|Infinity/)"
    )
    for figure in all_of(browser, "figure"):
        assert figure.find_element("css selector", "figcaption .say").text.strip().endswith((".", "!"))
        for svg in figure.find_elements("css selector", '.panel:not([data-chart="gains"]) > svg'):
            assert len(svg.find_elements("css selector", "text.label")) == 2
    if name == "hostile names":
        hits = all_of(browser, '[data-chart="counts"] .hit')
        width = hits[0].size["width"]
        from selenium.webdriver import ActionChains

        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", hits[0])
        for c, want in ((0, HOSTILE[0]), (3, HOSTILE[3])):
            ActionChains(browser).move_to_element_with_offset(
                hits[0], int(width * ((c + 0.5) / 10 - 0.5)), 0
            ).perform()
            assert text(browser, "#tip .head") == want
        tip = all_of(browser, "#tip .head")[0]
        assert browser.execute_script("return getComputedStyle(arguments[0]).direction", tip) == "rtl"
    if name == "unfinished":
        assert "unfinished" in text(browser, "#summary tbody")
        assert [one.text for one in all_of(browser, "#alerts li span:last-child")] == [
            "(seed 1): not finished: 1 of 5 tasks learnt.",
            "(seed 1): not finished: 3 of 5 tasks learnt.",
        ]
    if name == "an older version":
        assert "earlier version" in text(browser, "#mechanisms") and "earlier version" in text(
            browser, "#confusion"
        )
    named = [one.text for one in all_of(browser, '[data-matrix="confusion"] text.class')]
    if name == "thirty named classes":
        assert named[::2] == named[1::2] == ["a name that…", *(f"finch {c}" for c in range(29))]
    if name == "200 classes":
        assert not named and "number in the order" in text(browser, '[data-matrix="confusion"] > svg')
    if name == "two places":
        assert text(browser, "#summary caption") == "cifar100, resnet18, 5 tasks"
        settings = [cell.text for cell in all_of(browser, "#summary tr.place")]
        assert settings == ["1,000 exemplars", "500 exemplars"]
        assert "53.30" in rows[2].text  # 53.31 where it is rounded twice
        assert len(all_of(browser, '[data-chart="cnn-all"] svg')) == 2  # a chart for each
    if name == "twenty settings":
        assert text(browser, "#chosen") == "8 of 20 drawn"
        click(browser, "#every")
        told = text(browser, "#matrices .say:not(section > .say)")
        assert "the first 12 of 20" in told and "112 exemplars" in told and "and 3 more" in told
    if name == "beside the paper":
        assert (
            "47.49" in text(browser, "#summary")
            and len(all_of(browser, '[data-chart="cnn-all"] path.paper')) == 3
        )
    assert not browser.get_log("browser")


def test_a_read_out_that_earlier_runs_of_a_setting_lack_says_over_how_many_seeds(
    browser: Any, tmp_path: Path
) -> None:
    new = [read_out(made("wa", seed=s), "unaligned", value) for s, value in ((2, 50.0), (3, 54.0))]
    for results, there in (([made("wa"), *new], True), (new, False)):
        page = tmp_path / f"{len(results)}.html"
        assert main(["report", str(keep(tmp_path / page.stem, *results)), "-o", str(page)]) == 0
        show(browser, page)
        assert ("52.00 ± 2.83 (2)" in text(browser, "#summary tbody")) is there
        assert ("In brackets" in text(browser, "#summary")) is there
        assert "52.00 ± 2.83" in text(browser, "#summary tbody") and all_of(
            browser, '[data-chart="unaligned-old"] path'
        )


def test_a_page_of_odd_results_is_drawn_whole(browser: Any, tmp_path: Path) -> None:
    odd = made(memory=500)
    odd["tasks"][-1]["diagnostics"]["confusion"] = "x"
    named = read_out(made(memory=250), "constructor", 3.0)
    for row in named["tasks"]:
        row["seconds"] = 1e16 + 2 * row["task"]  # so close that a tick's step is lost
    runs = keep(tmp_path / "runs", made(), odd, named)
    assert main(["report", str(runs), "-o", str(tmp_path / "page.html")]) == 0
    show(browser, tmp_path / "page.html")
    assert "run-001/result.json" in text(browser, "header") and all_of(browser, "#time table")


def test_losses_are_drawn_from_the_log_beside_a_result(browser: Any, tmp_path: Path) -> None:
    folder = keep(tmp_path / "runs", made(tasks=2), made(tasks=2, coordinate="jioc"))
    for run, terms in (("run-000", {"cls": 2.0, "</script>": 1.0}), ("run-001", {"cls": 4.0})):
        line = {"stage": "later", "epochs": 2, "terms": terms}
        lines = [json.dumps(line | {"task": t, "epoch": e}) for t in (1, 2) for e in (1, 2)]
        (folder / run / "log.jsonl").write_text("\n".join(lines))
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    show(browser, tmp_path / "page.html")
    assert [one.text for one in all_of(browser, "#losses h3")] == ["cls", "</script>"]
    assert [len(groups_in(browser, f"#losses figure:nth-of-type({i}) g")) for i in (1, 2)] == [2, 1]
    from selenium.webdriver.common.keys import Keys

    chart = all_of(browser, '[data-chart="loss"] svg')[0]
    browser.execute_script("arguments[0].focus()", chart)
    for _ in range(3):
        chart.send_keys(Keys.ARROW_RIGHT)
    told = text(browser, "#tip")
    assert "cls, task 2, 50 % of its epochs" in told and "2.000" in told and "4.000" in told


# --- many runs: the comparison as it is kept ---

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
KEPT = [
    path
    for path in sorted(RESULTS.iterdir())
    if path.is_dir() and path.name.startswith(("comparison", "table6"))
]


@pytest.fixture(scope="module")
def settings() -> list[Group]:
    return runs.group(runs.read(KEPT))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of all kept runs of ResNet32."""
    page = tmp_path_factory.mktemp("comparison") / "report.html"
    assert main(["report", *map(str, KEPT), "-o", str(page)]) == 0
    return page


def labels(browser: Any, selector: str) -> list[str]:
    return [one.get_attribute("textContent") for one in all_of(browser, selector)]


def groups_in(browser: Any, selector: str) -> set[str]:
    return {one.get_attribute("data-g") for one in all_of(browser, selector)}


def test_one_filter_drives_everything(browser: Any, comparison: Path, settings: list[Group]) -> None:
    show(browser, comparison)
    assert text(browser, "#chosen") == f"8 of {len(settings)} drawn"
    assert len(all_of(browser, "#summary tr[data-g]")) == len(settings)
    assert len(groups_in(browser, '[data-chart="cnn-all"] g[data-g]')) == 8
    for keys in ("2,000 exemplars", "balanced"):
        click(browser, f'.chip[data-value="{keys}"]')
    all_of(browser, "#find")[0].send_keys("icarl")
    whole(browser)
    want = groups_in(browser, "#legend li[data-g]")
    names = [g.name for g in settings if g.config["method"] == "icarl" and "balanced, 2,000" in g.own_place]
    assert labels(browser, "#legend li[data-g] .name") == names and names[0] == "iCaRL"
    for place in ("#summary tr", "#settings tr", "#time tr", '[data-chart="cnn-all"] g', "#matrices .panel"):
        assert groups_in(browser, f"{place}[data-g]") == want, place
    assert groups_in(browser, '[data-chart="gains"] g[data-g]') == want - {min(want, key=int)}
    assert not all_of(browser, "#alerts li")
    all_of(browser, "#find")[0].send_keys(" nowhere")
    whole(browser)
    assert all_of(browser, "#none-match")[0].is_displayed() and not all_of(browser, "#summary tr")
    click(browser, "#clear")
    assert len(all_of(browser, "#summary tr[data-g]")) == len(settings) and not browser.get_log("browser")


def test_hue_tells_the_method_and_dash_the_coordination_in_every_chart(
    browser: Any, comparison: Path
) -> None:
    show(browser, comparison, address="#runs=&at=curves")
    assert all_of(browser, "#none-drawn")[0].is_displayed()
    click(browser, "#every")
    held = browser.execute_script("return D.groups")
    assert len(all_of(browser, '[data-chart="cnn-all"]')) == len({g["place"] for g in held}) == 4
    looks = {}
    for node in all_of(browser, '[data-chart="cnn-all"] g[data-g]'):
        group, line = held[int(node.get_attribute("data-g"))], node.find_element("css selector", ".mean")
        colour = browser.execute_script("return getComputedStyle(arguments[0]).color", node)
        looks.setdefault(("hue", group["method"]), set()).add(colour)
        looks.setdefault(("dash", group["coordinate"]), set()).add(line.get_attribute("stroke-dasharray"))
    assert all(len(some) == 1 for some in looks.values())
    for kind, count in (("hue", 11), ("dash", 4)):
        assert len({str(some) for (what, _), some in looks.items() if what == kind}) == count


def test_the_verdict_of_each_pair_is_told_in_a_line(
    browser: Any, comparison: Path, settings: list[Group]
) -> None:
    show(browser, comparison, address="#memory=1%2C000+exemplars&long-tail=balanced")
    names, lines = (labels(browser, f"#gains text.{kind}") for kind in ("rowname", "verdict"))
    told = dict(zip(names, lines, strict=True))
    for g in settings:
        if g.base is None or "balanced, 1,000" not in g.own_place:
            continue
        mean, std = mean_std(g.gains("cnn"))
        spread = "" if std is None else f" ± {std:.1f}"
        want = f"{g.coordinate.upper()} {mean:+.1f}{spread}; old ".replace("-", "−")
        assert told.pop(g.name).startswith(want)
    assert not told
    line = dict(zip(names, lines, strict=True))["iCaRL + JIOC, reading printed"]
    assert line == "JIOC +3.2 ± 0.5; old +5.5, new −4.3  (3 seeds)"  # docs/results/table6.md


def test_sorting_within_each_setting(browser: Any, comparison: Path, settings: list[Group]) -> None:
    show(browser, comparison)
    before = labels(browser, "#summary tr.place")
    average = "#summary td:nth-child(3)"

    def bodies() -> list[list[float]]:
        found = []
        for body in all_of(browser, "#summary tbody"):
            cells = body.find_elements("css selector", "td:nth-child(3)")
            found.append([float(cell.get_attribute("textContent").split()[0]) for cell in cells])
        return found

    plain = bodies()
    click(browser, "#summary th:nth-child(3) button")
    assert bodies() == [sorted(some, reverse=True) for some in plain]
    assert len(all_of(browser, average)) == len(settings)
    head = all_of(browser, "#summary th:nth-child(3)")[0]
    assert head.get_attribute("aria-sort") == "descending" and labels(browser, "#summary tr.place") == before
    from selenium.webdriver.common.keys import Keys

    browser.switch_to.active_element.send_keys(Keys.ENTER)  # the head keeps the keyboard
    whole(browser)
    assert bodies() == [sorted(some) for some in plain] and "sort-summary=" in browser.current_url


def test_a_link_keeps_the_selection(browser: Any, comparison: Path, settings: list[Group]) -> None:
    show(browser, comparison)
    click(browser, '.chip[data-value="long tail paper"]')
    click(browser, "#legend input", 1)
    click(browser, "#legend .fold")
    click(browser, "#legend .runs ul input")
    click(browser, "#legend .name", 3)
    click(browser, "#summary th:nth-child(2) button")
    click(browser, "#contents a", 2)
    address = browser.execute_script("return location.hash")
    parts = ("#legend", "#summary", "#chips", "#chosen")
    kept = [all_of(browser, part)[0].get_attribute("outerHTML") for part in parts]
    show(browser, comparison, address=address)
    click(browser, "#legend .fold")  # which seeds are listed is no part of the selection
    assert browser.execute_script("return location.hash") == address
    assert [all_of(browser, part)[0].get_attribute("outerHTML") for part in parts] == kept
    top = browser.execute_script("return document.getElementById('curves').getBoundingClientRect().top")
    assert -5 < top < 200
    for odd in ("#runs=x.y&lit=z&memory=9&sort-summary=q&at=__proto__", "#%E0%A4%A", "#curves", "#at"):
        show(browser, comparison, address=odd)
        assert len(all_of(browser, "#summary tr[data-g]")) == len(settings)


def balanced_der(settings: list[Group]) -> list[Group]:
    return [g for g in settings if g.label.startswith("DER") and "balanced" in g.label]


def test_downloads(browser: Any, comparison: Path, settings: list[Group], tmp_path: Path) -> None:
    import csv
    import xml.etree.ElementTree as xml

    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    show(browser, comparison, address="#find=der+balanced&at=curves")

    def saved(selector: str, name: str) -> Path:
        from selenium.webdriver.support.ui import WebDriverWait

        click(browser, selector)
        WebDriverWait(browser, 20, 0.05).until(lambda _: (tmp_path / name).exists())
        return tmp_path / name

    def table(selector: str, name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(saved(selector, name).read_text(), newline="")))

    rows = table("#csv", "jioc-data.csv")
    kept = balanced_der(settings)
    names = [g.name for g in kept]
    assert names[:2] == ["DER", "DER + JIOC"] and {row["run"] for row in rows} == {*names}
    all_ = {float(row["all"]) for row in rows if row["read-out"] == "cnn"}
    assert all_ == {row.cnn.all for g in kept for run in g.runs for row in run.result.tasks}  # unrounded
    held = json.loads(saved("#json", "jioc-data.json").read_text())
    assert [g["name"] for g in held["groups"]] == names
    assert {g["base"] for g in held["groups"][1:]} == {0}
    assert float(table("#summary .save", "jioc-summary.csv")[1]["gain"]) == pytest.approx(
        mean_std(kept[1].gains("cnn"))[0]
    )
    root = xml.parse(saved("#curves figure .save", "jioc-cnn.svg")).getroot()
    svg = "{http://www.w3.org/2000/svg}"
    said = {"".join(node.itertext()) for node in root.iter(f"{svg}text")}
    assert {
        "CNN",
        *names,
        "All classes seen",
        "accuracy (%)",
        "classes seen",
    } <= said
    assert len([*root.iter(f"{svg}path")]) > 6 and not {*root.iter(f"{svg}script")}
    assert not any("class" in node.attrib or "style" in node.attrib for node in root.iter())
    picture = saved("#curves figure .save:nth-child(2)", "jioc-cnn.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000
    assert not browser.get_log("browser")


@pytest.mark.parametrize("size", SIZES)
def test_the_tip_stays_off_its_chart_and_follows_the_keyboard(
    browser: Any, comparison: Path, size: str
) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(browser, comparison, size)
    boxes = (
        "const box = (node) => node.getBoundingClientRect(), a = box(document.getElementById('tip'));"
        "const b = box(arguments[0]), beside = a.left >= b.right || a.right <= b.left;"
        "return a.width > 0 && (beside || a.top >= b.bottom || a.bottom <= b.top)"
    )
    for name in ('chart="cnn-all"', 'matrix="tasks"', 'chart="counts"'):
        chart = all_of(browser, f"[data-{name}] > svg")[0]
        area = chart.find_element("css selector", ".hit")
        hover(browser, area)
        ActionChains(browser).move_to_element_with_offset(area, -30, 30).perform()  # a cell that is filled
        assert browser.execute_script(boxes, chart), name
    chart = all_of(browser, '[data-chart="cnn-all"] svg')[0]
    browser.execute_script("arguments[0].focus()", chart)
    chart.send_keys(Keys.ARROW_RIGHT)
    assert "after 10 classes" in text(browser, "#tip")
    chart.send_keys(Keys.ARROW_RIGHT)
    assert "after 20 classes" in text(browser, "#tip") and browser.execute_script(boxes, chart)
    first = text(browser, "#tip .near .what")
    chart.send_keys(Keys.ARROW_DOWN)
    assert "after 20 classes" in text(browser, "#tip") and text(browser, "#tip .near .what") != first
    chart.send_keys(Keys.ENTER)
    assert "lit=" in browser.current_url and all_of(browser, "#main .dim")
    chart.send_keys(Keys.ESCAPE)
    assert "lit=" not in browser.current_url and not all_of(browser, "#main .dim")


def test_everything_can_be_reached_by_keyboard(browser: Any, comparison: Path, settings: list[Group]) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, comparison)
    browser.find_element("css selector", "body").send_keys("/")
    assert browser.switch_to.active_element.get_attribute("id") == "find"
    browser.switch_to.active_element.send_keys("der bal")
    whole(browser)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("class") == "chip"
    box = all_of(browser, "#legend input")[0]
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys(Keys.SPACE)
    whole(browser)
    found = len(balanced_der(settings))
    assert text(browser, "#chosen") == f"{found - 1} of {found} drawn"
    assert browser.switch_to.active_element.get_attribute("aria-label").startswith(
        "draw DER"
    )  # and stays there
    for scroll in all_of(browser, ".scroll"):
        assert scroll.get_attribute("tabindex") == "0"
    charts = len(all_of(browser, ".panel > svg"))
    assert len(all_of(browser, '.panel > svg[tabindex="0"][aria-label]')) == charts > 10


def test_a_wide_table_says_that_there_is_more_and_its_head_stays(browser: Any, comparison: Path) -> None:
    show(browser, comparison)
    box = all_of(browser, "#settings .tablebox")[0]
    assert "more" in box.get_attribute("class") and "less" not in box.get_attribute("class")
    move = "const s = arguments[0].querySelector('.scroll'); s.scrollTo(1e6, 300)"
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'});" + move, box)
    browser.execute_script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert "more" not in box.get_attribute("class").split() and "less" in box.get_attribute("class")
    tops = (
        "const top = (part) => arguments[0].querySelector(part).getBoundingClientRect().top;"
        "return top('thead th') - top('.scroll')"
    )
    assert abs(browser.execute_script(tops, box)) < 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_looks_of_many_runs(
    browser: Any, comparison: Path, tmp_path: Path, size: str, scheme: str
) -> None:
    folder = Path(os.environ.get("JIOC_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    for section in ("summary", "gains", "curves"):
        show(browser, comparison, size, scheme, f"#at={section}")
        wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1] == SIZES[size][0]
        assert browser.save_screenshot(str(folder / f"comparison-{section}-{size}-{scheme}.png"))


def test_many_runs_print_with_names_in_words(browser: Any, comparison: Path, tmp_path: Path) -> None:
    """No column of names is so narrow that a name would be broken into letters."""
    import base64

    show(browser, comparison)
    content = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    (Path(os.environ.get("JIOC_SCREENSHOTS") or tmp_path) / "comparison.pdf").write_bytes(content)
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (Debian: poppler-utils)")
    path = tmp_path / "page.pdf"
    path.write_bytes(content)
    pages = subprocess.run(
        ["pdftotext", "-layout", str(path), "-"], capture_output=True, text=True, check=True
    )
    first = pages.stdout.split("\f")[0]
    for row in ("BiC, batch-size 121 +1 +57.02", "DER +3 +63.58 ± 1.25", r"iCaRL \+ JIOC,\s+3 +52.16 ± 1.42"):
        assert re.search(row, first), row
    assert "difference" in pages.stdout.split("\f")[1]  # the head of the table stands on every sheet
    assert "long tail paper, 1,000 exemplars" in first and "balanced, 2,000 exemplars" in pages.stdout
