"""What the pages name is there: files and modules in back-ticks."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|md|json|csv|yaml))`")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
OURS = {path.name for at in (ROOT, ROOT / "jioc") for path in at.iterdir() if path.is_dir()}
MODULE = re.compile(r"(?:import|from) (jioc(?:\.\w+)*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = {path for path in FILE.findall(page.read_text()) if path.split("/")[0] in OURS}
    assert not [path for path in named if not any((ROOT / at / path).exists() for at in ("", "jioc"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        name, _, heading = target.partition("#")
        other = page.parent / name if name else page
        assert other.exists(), target
        if heading and other.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", other.read_text(), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in titles], (
                target
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_a_page_imports_exist(page: Path) -> None:
    for name in set(MODULE.findall(page.read_text())):
        assert importlib.util.find_spec(name), name
