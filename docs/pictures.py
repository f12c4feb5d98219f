"""Draw the pictures of docs/explanation.md.

    python docs/pictures.py            says which are not current, and exits with 1
    python docs/pictures.py --write    draws them

Each has its own ground, light or dark as the reader's system is, so that it can be read on any page.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

FIGURES = Path(__file__).parent / "figures"
TASKS = ("cat dog", "car bus", "oak elm")  # the classes of each task
STYLE = """
text { font: 15px system-ui, sans-serif; fill: #1c1f23 } .small { font-size: 13px } .bold { font-weight: 600 }
.soft { fill: #5f6368 } .ground { fill: #fff } .box { fill: #f1f3f5; stroke: #c3c8ce }
.t0 { fill: #0072b2 } .t1 { fill: #b34f00 } .t2 { fill: #00795a } .on { fill: #fff } .faint { opacity: .25 }
.line { stroke: #5f6368; stroke-width: 1.5; fill: none } .tip { fill: #5f6368 }
.hot { stroke: #b3005e; fill: none; stroke-width: 2 } .hottip, .hottext { fill: #b3005e }
@media (prefers-color-scheme: dark) {
text { fill: #e8eaed } .soft { fill: #a6acb3 } .ground { fill: #1b1e23 }
.box { fill: #2a2e35; stroke: #4a5058 }
.t0 { fill: #56b4e9 } .t1 { fill: #f0a04b } .t2 { fill: #35c79a }
.on { fill: #111418 } .line { stroke: #a6acb3 } .tip { fill: #a6acb3 }
.hot { stroke: #ff7ab8 } .hottip, .hottext { fill: #ff7ab8 } }
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, w: float, h: float, kind: str = "box", r: float = 6) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{r:g}" class="{kind}"/>'


def arrow(x1: float, y1: float, x2: float, y2: float, kind: str = "line", tip: str = "tip") -> str:
    """Draw an arrow along one of the axes, or one that bends where it leaves them."""
    down = abs(y2 - y1) > abs(x2 - x1)
    a, b = ((x2 - 5, y2 - 8), (x2 + 5, y2 - 8)) if down else ((x2 - 8, y2 - 5), (x2 - 8, y2 + 5))
    head = f'<path d="M{x2:g} {y2:g} L{a[0]:g} {a[1]:g} L{b[0]:g} {b[1]:g} Z" class="{tip}"/>'
    return f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" class="{kind}"/>{head}'


def chip(x: float, y: float, word: str, task: int, w: float = 52, faint: bool = False) -> str:
    """A class, in the colour of its task."""
    shown = box(x, y, w, 26, f"t{task}" + " faint" * faint, 13)
    return shown + text(x + w / 2, y + 18, word, "small" + " on" * (not faint), "middle")


def picture(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    ground = box(0, 0, width, height, "ground", 8)
    return "\n".join(
        [head, f"<title>{escape(title)}</title><style>{STYLE}</style>", ground, *parts, "</svg>", ""]
    )


def tasks() -> str:
    """Classes arrive task by task; after each, one classifier knows all, and a few images are kept."""
    parts, left, step = [], 28, 262
    for t, names in enumerate(TASKS):
        x = left + t * step
        parts += [text(x, 34, f"Task {t + 1}", "bold"), text(x + 58, 34, "all images of", "small soft")]
        parts += [chip(x + 58 * i, 46, name, t) for i, name in enumerate(names.split())]
        parts += [arrow(x + 55, 76, x + 55, 104), box(x, 106, 206, 40)]
        parts += [text(x + 103, 131, "train", "bold", "middle"), arrow(x + 55, 148, x + 55, 172)]
        known = [(name, k) for k in range(t + 1) for name in TASKS[k].split()]
        parts.append(text(x, 190, "One classifier for", "small soft"))
        parts += [
            chip(x + 68 * (i // 2), 200 + 32 * (i % 2), name, k, 62) for i, (name, k) in enumerate(known)
        ]
        if t + 1 < len(TASKS):
            share = 6 // (t + 1)
            parts.append(arrow(x + 208, 126, x + step - 4, 126))
            dots = [
                box(x + 212 + 8 * i, 86 + 9 * n, 6, 6, f"t{n // 2}", 0)
                for n in range(2 * (t + 1))
                for i in range(share)
            ]
            parts += [*dots, text(x + 236, 160, "memory", "small", "middle")]
            parts.append(text(x + 236, 176, f"{share} a class", "small soft", "middle"))
    return picture(820, 282, "Classes arrive task by task", parts)


def forgetting() -> str:
    """A batch of the last task holds few old images, so old images end up on new classes."""
    parts = [
        text(28, 34, "What task 3 trains on", "bold"),
        text(28, 54, "images of each class", "small soft"),
    ]
    parts += [text(440, 34, "Where an old image ends up", "bold")]
    parts += [text(440, 54, "probability of each class for a photograph of a cat", "small soft")]
    names = [(name, t) for t, both in enumerate(TASKS) for name in both.split()]
    for i, (name, t) in enumerate(names):
        x, high = 36 + 56 * i, 150 if t == 2 else 12
        y = 448 + 56 * i
        score = (0.2, 0.05, 0.05, 0.05, 0.35, 0.3)[i]
        parts += [box(x, 220 - high, 38, high, f"t{t}", 3), text(x + 19, 240, name, "small", "middle")]
        parts += [
            box(y, 220 - 400 * score, 38, 400 * score, f"t{t}", 3),
            text(y + 19, 240, name, "small", "middle"),
        ]
    parts += [text(36 + 112, 190, "exemplars: few", "small soft", "middle")]
    parts += [text(448 + 80, 118, "the true class loses", "hottext small", "middle")]
    parts += [
        arrow(467, 124, 467, 136, "hot", "hottip"),
        text(36, 266, "The new classes fill the batches, the network", "small soft"),
    ]
    parts += [text(36, 284, "answers with them, and old classes are forgotten.", "small soft")]
    return picture(820, 300, "Why old classes are forgotten", parts)


def coordination() -> str:
    """What JIOC changes: a weight for each image, a teacher for each past head, silence on new heads."""
    parts = [text(28, 34, "A training step of task 3 with JIOC", "bold")]
    parts += [chip(28, 118, "cat", 0), text(54, 108, "exemplar", "small soft", "middle")]
    parts += [chip(28, 188, "oak", 2), text(54, 178, "new image", "small soft", "middle")]
    parts += [arrow(84, 131, 148, 146), arrow(84, 201, 148, 186), box(150, 126, 110, 80)]
    parts += [text(205, 171, "network", "", "middle"), arrow(262, 166, 316, 166)]
    for t, names in enumerate(TASKS):
        x = 320 + 156 * t
        parts += [text(x + 57, 198, f"head of task {t + 1}", "small soft", "middle")]
        parts += [chip(x + 60 * i, 152, name, t, 54) for i, name in enumerate(names.split())]
    parts += [box(320, 244, 270, 34), text(455, 266, "network before task 3 (teacher)", "small", "middle")]
    parts += [_up(377, 242, 206), _up(533, 242, 206)]
    parts += [
        text(602, 258, "2 each past head keeps", "hottext small"),
        text(602, 276, "its teacher's answers", "hottext small"),
    ]
    parts += [
        '<path d="M54 92 C 150 30, 560 40, 684 140" class="hot"/>',
        '<path d="M690 147 L678 142 L687 133 Z" class="hottip"/>',
    ]
    parts += [
        text(604, 64, "3 an exemplar puts nothing", "hottext small"),
        text(604, 82, "on the new head", "hottext small"),
    ]
    parts += [
        text(28, 246, "1 an image counts by how wrong", "hottext small"),
        text(28, 264, "the network is about it: 1 − p", "hottext small"),
    ]
    parts += [_up(54, 230, 218)]
    return picture(820, 300, "What JIOC changes in a training step", parts)


def _up(x: float, y1: float, y2: float) -> str:
    head = f'<path d="M{x:g} {y2:g} L{x - 5:g} {y2 + 8:g} L{x + 5:g} {y2 + 8:g} Z" class="hottip"/>'
    return f'<path d="M{x:g} {y1:g} L{x:g} {y2:g}" class="hot"/>{head}'


PICTURES: dict[str, Callable[[], str]] = {
    "explained-tasks.svg": tasks,
    "explained-forgetting.svg": forgetting,
    "explained-jioc.svg": coordination,
}


def main(argv: list[str] | None = None) -> int:
    write, stale = "--write" in (sys.argv[1:] if argv is None else argv), 0
    for name, draw in PICTURES.items():
        path = FIGURES / name
        if path.exists() and path.read_text(encoding="utf-8") == draw():
            continue
        stale += 1
        if write:
            path.write_text(draw(), encoding="utf-8")
        print(f"{name}: {'drawn' if write else 'not current; --write makes it so'}")
    return 0 if write else min(stale, 1)


if __name__ == "__main__":
    sys.exit(main())
