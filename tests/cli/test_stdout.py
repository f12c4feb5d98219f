"""Standard output whose reader may leave, and which may lack letters."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.results import keep, made


def test_only_the_reader_of_its_output_ends_a_command() -> None:
    """A pipe to another process may break, inside a library, in a data file or in a user's method."""
    broken = (
        "import subprocess, sys, types; from jioc.cli import main as cli\n"
        "def command(words):\n"
        "    subprocess.run(['true'], input=bytes(10_000_000)); print('goes on', flush=True); return 3\n"
        "cli.COMMANDS['broken'] = ''\n"
        "sys.modules['jioc.cli.broken'] = types.SimpleNamespace(main=command)\n"
        "sys.exit(cli.main(['broken']))"
    )
    program = [sys.executable, "-c", broken]
    first = broken.replace("sys.exit", "print('first'); sys.exit")
    heard = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True)
    assert (heard.returncode, heard.stdout, heard.stderr) == (3, "first\ngoes on\n", "")
    read, write = os.pipe()
    os.close(read)
    unheard = subprocess.run(program, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (unheard.returncode, unheard.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("how", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_an_output_that_lacks_a_letter_ends_no_command(tmp_path: Path, how: dict[str, str]) -> None:
    keep(tmp_path, made(seed=1, alls=[50.0] * 5), made(seed=2, alls=[60.0] * 5), made("replay", data="日本"))
    code = (
        "import sys, types; from jioc.cli import main as cli; from jioc.report.lines import task_line\n"
        "from jioc.results import Accuracy, TaskRow\n"
        "row = TaskRow(task=1, classes=[0, 2], seconds=1.0, cnn=Accuracy(all=50.0, new=50.0))\n"
        "command = lambda argv: print(task_line(row, 2)) or 0\n"
        "cli.COMMANDS['task'] = ''\n"
        "sys.modules['jioc.cli.task'] = types.SimpleNamespace(main=command)\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    environment = os.environ | {"PYTHONCOERCECLOCALE": "0"} | how
    told = []
    for words in (["task"], ["table", str(tmp_path)]):
        done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        told.append(done.stdout.decode("ascii"))
    assert "cnn 50.00 (old     -, new 50.00)" in told[0]
    assert "55.00 +- 7.07" in told[1] and "??" in told[1]


def test_a_full_device_is_a_sentence(tmp_path: Path) -> None:
    runs = str(keep(tmp_path, made()))
    for words in (["table", runs], ["list", "methods"], ["--version"], ["run", "--help"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.executable, "-m", "jioc", *words], stdout=full, stderr=subprocess.PIPE)
        told = b"jioc: standard output cannot be written: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, told)
