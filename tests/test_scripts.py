"""A user's Python file as a module."""

import subprocess
import sys
from pathlib import Path

BEFORE_TORCH = """
import pickle, sys
from pathlib import Path
from jioc.scripts import imported

assert "torch" not in sys.modules  # as in a grid, which reads the files of its methods first
own, place = imported(Path(sys.argv[1])), Path(sys.argv[2])
import torch

objects = [torch.contiguous_format, torch.preserve_format, own.Own]
for i, one in enumerate(objects):
    (place / str(i)).write_bytes(pickle.dumps(one))
    assert pickle.loads(pickle.dumps(one)) is one
assert __import__(own.__name__) is own
"""
ELSEWHERE = """
import pickle, sys
from pathlib import Path

for i, name in enumerate(["contiguous_format", "preserve_format"]):
    one = pickle.loads(Path(sys.argv[2], str(i)).read_bytes())
    assert one is getattr(sys.modules["torch"], name) and not any("jioc" in module for module in sys.modules)
from jioc.scripts import imported

own = imported(Path(sys.argv[1]))
assert pickle.loads(Path(sys.argv[2], "2").read_bytes()) is own.Own
"""


def test_what_a_file_imports_and_defines_can_be_pickled(tmp_path: Path) -> None:
    own = tmp_path / "my method-1.0.py"
    own.write_text("import torch\n\n\nclass Own:\n    size = torch.zeros(1)\n")
    for code in (BEFORE_TORCH, ELSEWHERE):
        subprocess.run([sys.executable, "-c", code, str(own), str(tmp_path)], check=True, timeout=60)
