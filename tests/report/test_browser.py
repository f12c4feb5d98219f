"""The report in a real browser: Debian's chromium, without network, driven through its own driver."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import NAMES as HOSTILE
from helpers.results import keep, made, read_out
from jioc.cli.main import main

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


def show(browser: Any, page: Path, size: str = "desktop", scheme: str = "light") -> None:
    """Open the page; nothing may be said on the console."""
    width, height = SIZES[size]
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(page.as_uri())
    said = browser.get_log("browser")
    assert not said, said


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
    all_of(browser, "#legend input")[0].click()  # hides iCaRL
    assert len(all_of(browser, "#summary tbody tr")) == 1 and drawn == 6
    assert not all_of(browser, '#main [data-g="0"]') and "3 of 6" in text(browser, "#chosen")
    all_of(browser, "#legend .fold")[1].click()
    all_of(browser, "#legend ul input")[0].click()  # and one seed of iCaRL + JIOC
    assert f"{sum(averages[1:]) / 2:.2f}" in all_of(browser, "#summary tbody tr")[0].text
    all_of(browser, "#every")[0].click()

    all_of(browser, "#legend > li[data-g='1'] > .line .name")[0].click()  # highlights it everywhere
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
    assert len(all_of(browser, "#legend > li")) == len(all_of(browser, "#summary tbody tr")) == len(results)
    assert all_of(browser, '[data-chart="cnn-all"] circle')
    assert not browser.execute_script(
        "return document.getElementById('main').innerHTML.match(/NaN|undefined|Infinity/)"
    )
    for figure in all_of(browser, "figure"):
        assert figure.find_element("css selector", "figcaption .say").text.strip().endswith((".", "!"))
        for svg in figure.find_elements("css selector", ".panel > svg"):
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
        settings = [cell.text for cell in all_of(browser, "#summary tbody td:nth-child(2)")]
        assert settings == ["1,000 exemplars", "", "500 exemplars"]
        assert "53.30" in all_of(browser, "#summary tbody tr")[2].text  # 53.31 where it is rounded twice
    if name == "twenty settings":
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
