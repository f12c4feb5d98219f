"""`jioc export`: write a saved model as a file for other programs; `integrations/onnx.py` makes it."""

import sys
from importlib.util import find_spec
from pathlib import Path

from jioc.cli.flags import OWN_METHOD, Parser
from jioc.errors import Failed, os_errors, refuse_if
from jioc.files import write
from jioc.training.store import model_folder, unfinished


def main(argv: list[str]) -> int:
    parser = Parser(
        "jioc export", "Write a saved model as a file for other programs, preprocessing included."
    )
    parser.add("model", type=Path, help="a run's folder, or a copy of its model")
    parser.add("--onnx", type=Path, metavar="FILE", help="the ONNX file to write")
    parser.add("--readout", help="cnn, nme, or another that the method has; by default its headline")
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    args = parser.parse(argv)
    refuse_if(args.onnx is None, "jioc export needs to know what to write: --onnx FILE")
    folder, target = model_folder(args.model), args.onnx.absolute().parent
    refuse_if(not target.is_dir(), f"there is no folder {str(target)!r} to write to")
    missing = find_spec("onnx") is None or find_spec("onnxscript") is None
    refuse_if(missing, "jioc export --onnx needs the extra onnx: pip install 'jioc[onnx]'")
    from jioc.integrations.onnx import OPSET, to_onnx
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print(f"note: {note}", file=sys.stderr)
    learner = load_model(folder, method=args.method)
    content, checked = to_onnx(learner, args.readout)
    with os_errors(f"{str(args.onnx)!r} cannot be written", Failed):
        write(args.onnx, content)
    c, h, w = learner.preprocessing.shape
    print(f"pixels: uint8 (n, {h}, {w}, {c}); scores: float32 (n, {len(learner.classes)}); opset {OPSET}")
    print(f"{checked}; kept in {args.onnx}")
    return 0
