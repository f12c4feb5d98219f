"""`jioc export`: a saved model as a file for other programs. The file itself is made in `onnx_file.py`."""

import sys
from importlib.util import find_spec
from pathlib import Path

from jioc.cli.flags import Parser
from jioc.errors import Failed, Refused
from jioc.files import write
from jioc.training.store import model_folder, unfinished


def main(argv: list[str]) -> int:
    parser = Parser(
        "jioc export", description="A saved model as a file for other programs, preprocessing included."
    )
    parser.add_argument("model", type=Path, help="a run's folder, or a copy of its model")
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="the ONNX file to write")
    parser.add_argument("--readout", help="cnn, nme, or another that the method has; by default its headline")
    parser.add_argument(
        "--method", metavar="FILE", help="the Python file of a method of your own, which is run"
    )
    found = parser.parse(argv)
    if found.onnx is None:
        raise Refused("jioc export needs to know what to write: --onnx FILE")
    folder = model_folder(found.model)
    if not found.onnx.absolute().parent.is_dir():
        raise Refused(f"there is no folder {str(found.onnx.absolute().parent)!r} to write to")
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        raise Refused("jioc export --onnx needs the extra onnx: pip install 'jioc[onnx]'")
    from jioc.integrations.onnx import OPSET, to_onnx
    from jioc.training.load import load

    if told := unfinished(folder):
        print(f"note: {told}", file=sys.stderr)
    learner = load(folder, method=found.method)
    content, checked = to_onnx(learner, found.readout)
    try:
        write(found.onnx, content)
    except OSError as error:
        raise Failed(f"{str(found.onnx)!r} cannot be written: {error.strerror or error}") from None
    c, h, w = learner.preprocessing.shape
    print(f"pixels: uint8 (n, {h}, {w}, {c}); scores: float32 (n, {len(learner.classes)}); opset {OPSET}")
    print(f"{checked}; kept in {found.onnx}")
    return 0
