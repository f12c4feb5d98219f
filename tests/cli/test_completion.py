"""`jioc completion`: what a shell offers after the words so far."""

import shutil
import subprocess
from pathlib import Path

import pytest

from jioc.cli.main import COMMANDS, main
from jioc.methods import SPECS
from jioc.resolve.presets import PRESETS

ASK = """
source {script}
while read -r -a COMP_WORDS; do
    [ "${{COMP_WORDS[-1]}}" = NOTHING ] && COMP_WORDS[-1]=
    COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); _jioc; echo "${{COMPREPLY[*]}}"
done
"""


def test_bash_offers_commands_methods_flags_and_their_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "jioc.bash"
    script.write_text(capsys.readouterr().out)
    wanted = {
        "jioc NOTHING": " ".join(COMMANDS),
        "jioc r": "run report",
        "jioc run NOTHING": " ".join([*SPECS, *PRESETS]),
        "jioc run icarl --coordinate NOTHING": "none ic oc jioc",
        "jioc run icarl --coordinate = ji": "jioc",
        "jioc run icarl --coord": "--coordinate",
        "jioc run podnet --spa": "--spatial",
        "jioc run icarl --spa": "",
        "jioc run icarl --data c": "cifar10 cifar100 cub200",
        "jioc table runs --format m": "markdown",
        "jioc grid table6 --on s": "slurm",
        "jioc list b": "backbones",
        "jioc completion NOTHING": "bash zsh fish",
        "jioc report NOTHING": "",  # files
    }
    asked = subprocess.run(
        ["bash", "--norc", "-c", ASK.format(script=script)],
        input="\n".join(wanted) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stderr == ""
    assert dict(zip(wanted, asked.stdout.split("\n"), strict=False)) == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(captured := capsys.readouterr().out)
    assert (
        all(name in captured for name in COMMANDS)
        and "--coordinate" in captured
        or "-l coordinate" in captured
    )
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n", str(script)], check=True)
    if shell == "fish":
        ask = f'source {script}; complete -C "jioc run icarl --coordinate "'
        asked = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, check=True)
        assert {"none", "ic", "oc", "jioc"} <= set(asked.stdout.split())
