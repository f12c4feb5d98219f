"""What mkdocs does with the pages besides turning them into HTML: `make docs`, by mkdocs.yml."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import Abort
from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
ROOT = HERE.parent
PROJECT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md"}
FENCE = re.compile(r"(^ *```.*?^ *```[^\S\n]*$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]*)(#[^)\s]*)?\)")
ELSEWHERE = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>""")


def on_config(config: Any) -> Any:
    """Name headings as a forge does, so that a link holds here and there."""
    config.mdx_configs["toc"] = {"permalink": "¶", "slugify": slug, "toc_depth": 3}
    return config


def slug(heading: str, separator: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", separator)


def generated() -> dict[str, Any]:
    """The functions of generate.py by their pages."""
    sys.path.insert(0, str(HERE))
    try:
        import generate
    finally:
        sys.path.remove(str(HERE))
    return generate.PAGES


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made from the code, and those of the repository's own folder."""
    for name, make in generated().items():
        files.append(File.generated(config, name, content=make()))
    for name, source in PROJECT.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links out of this folder into links to the site's pages, or into text where there is none."""
    at = page.file.src_uri
    source = ROOT / PROJECT[at] if at in PROJECT else HERE / at
    text = LINK.sub(lambda link: f"]({moved(link[1], source, at)}{link[2] or ''})", markdown)
    text = re.sub(r"\[([^\]]*)\]\(nowhere[^)]*\)", r"\1", text)
    return "".join(part if i % 2 else spaced(part) for i, part in enumerate(FENCE.split(text)))


def moved(target: str, source: Path, at: str) -> str:
    """The path of a page in the site, from the page `at`."""
    path = (source.parent / target).resolve()
    names = {(ROOT / source).resolve(): name for name, source in PROJECT.items()} | {
        ROOT / "README.md": "index.md"
    }
    if path in names:
        place = names[path]
    elif path.is_relative_to(HERE):
        place = path.relative_to(HERE).as_posix()
    else:
        return "nowhere"
    return "../" * at.count("/") + place


def spaced(text: str) -> str:
    """Write what Python-Markdown reads otherwise than a forge.

    A list that follows a line of text begins with an empty line, and a bar in code is not escaped.
    """
    text = re.sub(r"`[^`\n]*`", lambda code: code[0].replace(r"\|", "|"), text)
    return re.sub(r"^((?![-*\d|#<> ]).+)\n(?=(?:[-*]|\d+\.) )", r"\1\n\n", text, flags=re.MULTILINE)


def on_post_build(config: Any) -> None:
    """Refuse a site that loads anything from elsewhere."""
    for path in sorted(Path(config.site_dir).rglob("*.html")):
        if found := ELSEWHERE.search(path.read_text(encoding="utf-8")):
            raise Abort(f"{path.relative_to(config.site_dir)} loads from elsewhere: {found[0]}")
