"""`jioc export`: write a saved model as a file for other programs; `integrations/onnx.py` makes it."""

import sys
from importlib.util import find_spec

from jioc.cli.flags import FORCE, OWN_METHOD, Parser, named_path
from jioc.errors import Failed, os_errors, refuse_if
from jioc.files import output, write
from jioc.training.store import model_folder, unfinished

MARK = b"\x0a\x04jioc\x12"  # the name `jioc` in the metadata of an ONNX file


def build_parser() -> Parser:
    parser = Parser(
        "jioc export",
        "Write a saved model as a file for other programs, preprocessing included.",
        examples={"jioc export runs/photos --onnx photos.onnx": "takes pixels, gives a score for each class"},
    )
    parser.add("model", type=named_path, help="a run's folder, or a copy of its model")
    parser.add("--onnx", type=named_path, metavar="FILE", help="the ONNX file to write")
    parser.add(
        "--readout", metavar="NAME", help="cnn, nme, or another that the method has; by default its headline"
    )
    parser.add("--method", metavar="FILE", help=OWN_METHOD)
    parser.add("--force", action="store_true", help=FORCE)
    return parser


def main(argv: list[str]) -> int:
    args = build_parser().parse(argv)
    refuse_if(args.onnx is None, "jioc export needs to know what to write: --onnx FILE")
    folder, target = model_folder(args.model), output(args.onnx, MARK, args.force)
    refuse_if(not target.parent.is_dir(), f"there is no folder {str(target.parent)!r} to write to")
    missing = find_spec("onnx") is None or find_spec("onnxscript") is None
    refuse_if(missing, "jioc export --onnx needs the extra onnx: pip install 'jioc[onnx]'")
    from jioc.integrations.onnx import OPSET, to_onnx
    from jioc.training.load import load_model

    if note := unfinished(folder):
        print(f"note: {note}", file=sys.stderr)
    learner = load_model(folder, judged=False, method=args.method)
    content, checked = to_onnx(learner, args.readout)
    with os_errors(f"{str(args.onnx)!r} cannot be written", Failed):
        write(target, content)
    c, h, w = learner.preprocessing.shape
    print(f"pixels: uint8 (n, {h}, {w}, {c}); scores: float32 (n, {len(learner.classes)}); opset {OPSET}")
    print(f"{checked}; kept in {args.onnx}")
    return 0
