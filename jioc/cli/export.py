"""`jioc export`: write a saved model as a file for other programs; `integrations/onnx.py` makes it."""

import sys
from importlib.util import find_spec
from pathlib import Path

from jioc.cli.flags import OWN_METHOD, Parser
from jioc.errors import Failed, Refused
from jioc.files import write
from jioc.training.store import model_folder, unfinished


def main(argv: list[str]) -> int:
    about = "Write a saved model as a file for other programs, preprocessing included."
    parser = Parser("jioc export", description=about)
    parser.add_argument("model", type=Path, help="a run's folder, or a copy of its model")
    parser.add_argument("--onnx", type=Path, metavar="FILE", help="the ONNX file to write")
    parser.add_argument("--readout", help="cnn, nme, or another that the method has; by default its headline")
    parser.add_argument("--method", metavar="FILE", help=OWN_METHOD)
    args = parser.parse(argv)
    if args.onnx is None:
        raise Refused("jioc export needs to know what to write: --onnx FILE")
    folder = model_folder(args.model)
    if not args.onnx.absolute().parent.is_dir():
        raise Refused(f"there is no folder {str(args.onnx.absolute().parent)!r} to write to")
    if find_spec("onnx") is None or find_spec("onnxscript") is None:
        raise Refused("jioc export --onnx needs the extra onnx: pip install 'jioc[onnx]'")
    from jioc.integrations.onnx import OPSET, to_onnx
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print(f"note: {note}", file=sys.stderr)
    learner = load_model(folder, method=args.method)
    content, checked = to_onnx(learner, args.readout)
    try:
        write(args.onnx, content)
    except OSError as error:
        raise Failed(f"{str(args.onnx)!r} cannot be written: {error.strerror or error}") from None
    c, h, w = learner.preprocessing.shape
    print(f"pixels: uint8 (n, {h}, {w}, {c}); scores: float32 (n, {len(learner.classes)}); opset {OPSET}")
    print(f"{checked}; kept in {args.onnx}")
    return 0
