"""Build sdist and wheel into dist/, check what they hold, use the wheel where there is no checkout.

`make release` runs it. Nothing is uploaded. The wheel is installed with its dependencies into a new
environment in a temporary folder, where `jioc demo` and `jioc predict` run.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
LARGEST = 2 * 2**20  # bytes of an archive
NEEDED = (
    "py.typed",
    "report/web/page.html",
    "report/web/page.css",
    "report/public.json",
    "report/web/start.js",
    "report/paper.json",
    "methods/icarl.py",
)  # below jioc/
ELSEWHERE = ("tests/", "benchmarks/")  # needs the repository: results, and tests that read them
IMAGE = """
from PIL import Image
from sklearn.datasets import load_digits
Image.fromarray((load_digits().images[0] * 15).astype("uint8")).save("zero.png")
"""


def wrong(names: list[str], package: list[str], size: int) -> list[str]:
    """Say what is wrong with an archive by the names in it, those of the package's files, and its size."""
    below = [name.partition("/")[2] if "/" in name else name for name in names]
    found = [
        f"lacks jioc/{name}"
        for name in (*NEEDED, *package)
        if not any(n.endswith(f"jioc/{name}") for n in names)
    ]
    found += [f"holds {name}" for name in below if name.startswith(ELSEWHERE)]
    return found + [f"has {size:,} bytes, more than {LARGEST:,}"] * (size > LARGEST)


def package_files() -> list[str]:
    """What git tracks below jioc/."""
    listed = run("git", "ls-files", "jioc", cwd=ROOT, capture=True).splitlines()
    return [name.removeprefix("jioc/") for name in listed]


def run(*line: str, cwd: Path, capture: bool = False) -> str:
    """Run a program without this one's Python settings; end with it where it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(line, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE if capture else None)
    if done.returncode:
        sys.exit(f"{' '.join(line)} exited with {done.returncode}")
    return done.stdout or ""


def build() -> tuple[Path, Path]:
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT), cwd=ROOT)
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel), cwd=ROOT)
    return sdist, wheel


def check(sdist: Path, wheel: Path) -> None:
    with tarfile.open(sdist) as tar, zipfile.ZipFile(wheel) as archive:
        held = {sdist: tar.getnames(), wheel: archive.namelist()}
    for path, names in held.items():
        if problems := wrong(names, package_files(), path.stat().st_size):
            sys.exit(f"{path.name} {', '.join(problems)}")
        print(f"{path.name}: {len(names)} files, {path.stat().st_size:,} bytes")


def use(wheel: Path) -> None:
    """Install the wheel into a new environment elsewhere, and run demo and predict there."""
    with tempfile.TemporaryDirectory(prefix="jioc-release-") as name:
        place = Path(name)
        run(sys.executable, "-m", "venv", "env", cwd=place)
        python, jioc = str(place / "env/bin/python"), str(place / "env/bin/jioc")
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*install, "-c", str(ROOT / "constraints.txt"), str(wheel), cwd=place)
        where = run(python, "-c", "import jioc; print(jioc.__file__)", cwd=place, capture=True)
        if not where.startswith(str(place.resolve())):
            sys.exit(f"the wheel's jioc is not the one that is imported: {where}")
        run(jioc, "demo", cwd=place)
        run(python, "-c", IMAGE, cwd=place)
        run(jioc, "run", "icarl", "--tasks", "1", "--epochs", "34", "--out", "model", cwd=place)
        print(
            answer := run(jioc, "predict", "model", "zero.png", "--top", "3", cwd=place, capture=True), end=""
        )
        if not answer.startswith("zero.png\t"):
            sys.exit("jioc predict gave no answer")


def main() -> int:
    sdist, wheel = build()
    check(sdist, wheel)
    use(wheel)
    print(f"release: {sdist.relative_to(ROOT)} and {wheel.relative_to(ROOT)} are good; nothing was uploaded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
