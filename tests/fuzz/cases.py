"""Draw attacks: right files and right words, changed by hypothesis."""

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from fuzz import places
from fuzz.bench import Case
from fuzz.places import GRID_RUN, Line
from helpers.hostile import CONTENTS, ODD_TEXTS, ODD_VALUES
from jioc.cli.main import COMMANDS
from jioc.cli.run import build_parser
from jioc.methods import SPECS

Draw = Callable[[Any], Any]
Cases = st.SearchStrategy[Case]

odd_values = st.one_of(
    st.sampled_from(ODD_VALUES),
    st.sampled_from(ODD_TEXTS),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.recursive(st.none() | st.booleans() | st.integers(-9, 9), lambda inner: st.lists(inner, max_size=3)),
).map(copy.deepcopy)  # what is drawn may be changed in its turn
SNIPPETS = [
    b"[", b"]", b"{", b"}", b'"', b",", b":", b"\n", b"\x00", b"\xff", b"\x1b[31m", b"&a ", b"*a ", b"<<: ",
    b"- ", b"!!python/object/apply:os.system ['touch ran']", b"NaN", b"1e999", b"\\ud800", b"\xef\xbb\xbf",
    b"9" * 30, b"#", b"\r", b"\xe2\x80\xa8",
]  # fmt: skip


@st.composite
def changed(draw: Draw, value: Any) -> Any:
    """A tree of plain values with some of them replaced, dropped, repeated or added."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        parent, key = value, None
        while True:  # down to some place, so that the few upper ones are chosen as often as the many lower
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(parent[key], dict | list) or not parent[key] or draw(st.integers(0, 3)) == 0:
                break
            parent = parent[key]
        act = draw(st.sampled_from(["replace", "replace", "replace", "drop", "add", "repeat"]))
        if key is None or act == "add":
            new = draw(odd_values)
            parent.append(new) if isinstance(parent, list) else parent.update(
                {draw(st.sampled_from(ODD_TEXTS)): new}
            )
        elif act == "drop":
            del parent[key]
        elif act == "repeat" and isinstance(parent, list):
            parent.extend([copy.deepcopy(parent[key])] * draw(st.integers(1, 40)))
        elif act == "repeat":
            parent[draw(st.sampled_from(list(parent)))] = copy.deepcopy(parent[key])
        else:
            parent[key] = draw(odd_values)
    return value


@st.composite
def torn(draw: Draw, content: bytes) -> bytes:
    """A file's bytes, cut, doubled, flipped, or with a snippet in between."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(content)))
        size = draw(st.sampled_from([0, 1, 1, 4, 40, len(content)]))
        before, part, after = content[:at], content[at : at + size], content[at + size :]
        middle = draw(st.sampled_from([b"", part + part, bytes(byte ^ 0x41 for byte in part), *SNIPPETS]))
        content = before + middle + after
    return content


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def as_yaml(value: Any) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode(errors="surrogatepass")


def as_csv(rows: Any) -> bytes:
    def line(row: Any) -> str:
        cells = row if isinstance(row, list) else [row]
        return ",".join(str(cell)[:200_000] for cell in cells)

    return "\n".join(map(line, rows)).encode(errors="surrogatepass")


def documents(content: bytes, read: Callable[[bytes], Any], write: Callable[[Any], bytes]) -> Any:
    """Files like this one: with other values in it, or with other bytes."""
    return st.one_of(changed(read(content)).map(write), changed(read(content)).map(write), torn(content))


def odd_file(kind: str, files: dict[str, Any], lines: list[Line]) -> Cases:
    """Commands before files of which one is odd."""
    return st.builds(
        lambda line, files: line.case(kind, files), st.sampled_from(lines), st.fixed_dictionaries(files)
    )


# --- command lines ---

WORDS = [
    *COMMANDS.keys() - {"demo"}, *SPECS, *build_parser(SPECS["bic"])._option_string_actions,
    "--seeds", "--only", "--scale", "--pack", "--on", "--format", "--top", "--json", "--figures", "--recipe",
    "--", "-", "-o", "run", "photos", "photos.csv", "config.yaml", "recipe.yaml", "pycil.json", "trap.py",
    "order", "digits", "1", "2,2", "0.5", "cpu", "none", "jioc", "auto",
]  # fmt: skip
ODD_WORDS = [  # a new file outside of the case's folder would be what was asked for
    text
    for text in ODD_TEXTS
    if "\x00" not in text and ".." not in text and (text[:1] != "/" or os.path.exists(text))
]
STARTS = [
    f"{places.RUN} --dry-run", "run --config config.yaml --dry-run", "run --pycil pycil.json --dry-run",
    "run trap.py --dry-run", "grid recipe.yaml --dry-run", "grid table6 --dry-run --only icarl", "table run",
    "table run --format csv", "report run -o page.html", "predict run photos --top 2", "learn run nowhere",
    "export run --onnx x.onnx", "list methods", "data list", "data check photos", "",
]  # fmt: skip
EVERY_PART = ("run", "photos", "photos.csv", "config.yaml", "recipe.yaml", "pycil.json", "order", "cache")


@st.composite
def command_lines(draw: Draw) -> Case:
    words = draw(st.sampled_from(STARTS)).split()
    odd = st.one_of(st.sampled_from(WORDS), st.sampled_from(ODD_WORDS), st.text(max_size=8))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words)))
        words[at : at + draw(st.integers(0, 1))] = draw(st.lists(odd, max_size=3))
    words = [word.replace("\x00", "") for word in words]
    if words[:1] and words[0] in ("run", "grid") and "--dry-run" not in words:
        words.insert(1 + (words[0] == "grid"), "--dry-run")
    if words[:2] == ["data", "get"] or words[:1] == ["learn"] and "nowhere" not in words:
        words.append("nowhere")
    return Case("command line", tuple(words), {}, EVERY_PART, ("",), "yes")


# --- all of them ---


def kinds(base: Path) -> dict[str, Cases]:
    """The attacks by kind; `base` holds the right files."""

    def right(name: str) -> bytes:
        return (base / name).read_bytes()

    result = documents(right("run/result.json"), json.loads, as_json)
    model = documents(right("run/model.json"), json.loads, as_json)
    config = documents(right("config.yaml"), yaml.safe_load, as_yaml)
    recipe = documents(right("recipe.yaml"), yaml.safe_load, as_yaml)
    pycil = documents(right("pycil.json"), json.loads, as_json)
    table = documents(
        right("photos.csv"), lambda raw: [row.split(",") for row in raw.decode().splitlines()], as_csv
    )
    (about,) = [str(path.relative_to(base)) for path in base.glob("cache/*/about.json")]
    (latest,) = [str(p.relative_to(base)) for p in sorted(base.glob("run/checkpoint/*/checksums.json"))[-1:]]
    image = st.one_of(
        torn(right("photos/0/0.png")),
        st.sampled_from([content for name, content in CONTENTS.items() if "png" in name]).flatmap(torn),
    )
    files: dict[str, tuple[dict[str, Any], list[Line]]] = {
        "result.json in a table": ({"run/result.json": result}, places.TABLES),
        "result.json on a page": ({"run/result.json": result}, [places.REPORT]),
        "result.json of a run": ({"run/result.json": result}, [places.RESUME, places.PREDICT]),
        "result.json of a grid": ({f"{GRID_RUN}/result.json": result}, [places.GRID]),
        "model.json": ({"run/model.json": model}, [places.PREDICT, places.LEARN, places.LEARN_HELP]),
        "config.yaml": ({"config.yaml": config}, [places.CONFIG, places.CONFIG_HELP]),
        "config.yaml of a run": ({"run/config.yaml": config}, [places.RESUME]),
        "recipe": ({"recipe.yaml": recipe}, [places.RECIPE]),
        "PyCIL's file": ({"pycil.json": pycil}, [places.PYCIL]),
        "csv": ({"photos.csv": table}, [places.CSV, places.CSV_RUN]),
        "cache": ({about: documents(right(about), json.loads, as_json)}, [places.CHECK]),
        "checkpoint": ({latest: documents(right(latest), json.loads, as_json)}, [places.RESUME]),
        "image": ({"odd.png": image}, [places.IMAGE]),
    }
    drawn = {kind: odd_file(kind, *parts) for kind, parts in files.items()}
    weights = signed(right("run/model.json"), right("run/model.safetensors"))
    return drawn | {"weights": weights, "command line": command_lines()}


def traps(base: Path) -> Iterator[Case]:
    """A Python file's name in place of each text of a file that is read: it must not be run for that."""
    readers = {
        "run/result.json": [places.TABLES[0], places.RESUME],
        "run/config.yaml": [places.RESUME],
        "run/model.json": [places.PREDICT, places.LEARN, places.LEARN_HELP],
        "config.yaml": [places.CONFIG, places.CONFIG_HELP],
        "recipe.yaml": [places.RECIPE],
        "pycil.json": [places.PYCIL],
    }
    for name, lines in readers.items():
        read, write = (json.loads, as_json) if name.endswith(".json") else (yaml.safe_load, as_yaml)
        for place, value in with_text(read((base / name).read_bytes()), "HERE/trap.py"):
            for line in lines:
                yield line.case(f"trap in {place}", {name: write(value)})
            if name in ("run/result.json", "run/config.yaml"):
                there = f"{GRID_RUN}/{name.removeprefix('run/')}"
                yield places.GRID.case(f"trap in {place}", {there: write(value)})


def with_text(value: Any, text: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """The tree with this text in place of another, for each other; of a list only the first."""
    if isinstance(value, str):
        yield place, text
    elif isinstance(value, dict):
        for key, part in value.items():
            for name, changed in with_text(part, text, key):
                yield name, value | {key: changed}
    elif isinstance(value, list) and value:
        for name, changed in with_text(value[0], text, place):
            yield name, [changed, *value[1:]]


def signed(about: bytes, tensors: bytes) -> Cases:
    """Weights with other bytes, and the checksum of these in model.json."""

    def case(line: Line, content: bytes) -> Case:
        values = json.loads(about)
        values["files"]["model.safetensors"] = {
            "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(),
        }  # fmt: skip
        return line.case("weights", {"run/model.json": as_json(values), "run/model.safetensors": content})

    size = int.from_bytes(tensors[:8], "little")
    header, data = tensors[8 : 8 + size], tensors[8 + size :]
    names = changed(json.loads(header)).map(as_json)
    packed = st.one_of(names, torn(header)).map(lambda head: len(head).to_bytes(8, "little") + head + data)
    return st.builds(case, st.sampled_from([places.PREDICT, places.LEARN]), st.one_of(packed, torn(tensors)))
