"""The page of `jioc report` at the size of all kept runs: its bytes, and how fast a click is answered.

    python benchmarks/page.py [RUNS ...]    default: benchmarks/results

Needs chromium, chromedriver and the extra `browser`. A click's time runs from the click to the end of its
answer, laid out: on the clock, and of the processor alone, which other work on the machine does not lengthen.
The middle of five; what lies off the screen is drawn afterwards.
"""

import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from jioc.report import page, runs

RESULTS = Path(__file__).parent / "results"
CLICKS = {
    "a tick of the list": "document.querySelector('#legend input')",
    "a value of a facet": "document.querySelector('.chip')",
    "a head of the summary": "document.querySelector('#summary th:nth-child(3) button')",
    "light and dark": "document.getElementById('theme')",
}
TIMED = """
const start = performance.now();
FIND.click();
document.body.offsetHeight;
return performance.now() - start;
"""
WHOLE = """
const done = arguments[0], page = document.documentElement;
const look = () => page.hasAttribute("data-drawn") ? done() : setTimeout(look, 20);
look();
"""


def main(places: list[Path]) -> None:
    groups = runs.group(runs.read(places))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        page.save(groups, file)
        count = sum(len(g.runs) for g in groups)
        print(f"{count} runs of {len(groups)} settings: {file.stat().st_size / 1e6:.2f} MB")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        sandbox = ["--no-sandbox"] * (os.geteuid() == 0)
        for word in ("--headless", "--disable-gpu", "--window-size=1400,900", *sandbox):
            options.add_argument(word)
        browser = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
        )
        try:
            _clicks(browser, file)
        finally:
            browser.quit()


def _clicks(browser: webdriver.Chrome, file: Path) -> None:
    browser.set_script_timeout(60)
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    for drawn, first in (
        ("first eight drawn", ""),
        ("all drawn", "document.getElementById('every').click()"),
    ):
        browser.get(file.as_uri())
        browser.execute_script(first)
        for name, find in CLICKS.items():
            clock, processor = [], []
            for _ in range(5):
                browser.execute_async_script(WHOLE)
                before = _busy(browser)
                clock.append(browser.execute_script(TIMED.replace("FIND", find)))
                processor.append(_busy(browser) - before)
            middle = statistics.median(clock), 1000 * statistics.median(processor)
            print(f"{drawn}, {name}: {middle[0]:.0f} ms, of the processor {middle[1]:.0f} ms")


def _busy(browser: webdriver.Chrome) -> float:
    """Seconds that the page has kept the processor busy."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]] or [RESULTS])
