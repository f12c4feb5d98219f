#!/bin/sh
# A model that keeps learning: train on a folder of classes, ask it, teach it another folder's classes, ship it.
#
#   sh examples/add_classes.sh FIRST LATER OUT METHOD [options of jioc run]
#
# FIRST and LATER hold a folder of images for each class; OUT gets the model. Needs jioc[onnx] for the last two steps.
set -eu
first=$1 later=$2 out=$3 method=$4
shift 4
jioc() { ${JIOC:-command jioc} "$@"; }
images() { find "$@" -type f ! -name '.*' | sort; }
one() { images "$1" | head -n 1; }

echo "== today: the classes of $first"
jioc run "$method" --data "$first" --tasks 1 --out "$out" "$@"
jioc predict "$out" "$(one "$first")"

echo "== a fortnight later: those of $later, too"
jioc learn "$out" "$later"
jioc predict "$out" "$(one "$first")" "$(one "$later")" --top 3
images "$first" "$later" | jioc predict "$out" - --json > "$out/answers.jsonl" || [ $? = 1 ] # 1: some were no images

echo "== elsewhere: no jioc, no torch"
jioc export "$out" --onnx "$out/model.onnx"
${PYTHON:-python3} - "$out/model.onnx" "$(one "$later")" <<'PYTHON'
import json
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps


def pixels_of(path, canvas, channels):
    with Image.open(path) as file:
        file.draft(None, (2 * canvas, 2 * canvas))  # a large JPEG is decoded at 1/2, 1/4 or 1/8
        picture = ImageOps.exif_transpose(file)
    if picture.mode.startswith("I"):  # 16 bits a level
        picture = Image.fromarray(((np.asarray(picture, "int64") + 128) // 257).astype("uint8"))
    elif "A" in picture.getbands() or "transparency" in picture.info:
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture.convert("RGBA"))
    picture = picture.convert("L" if channels == 1 else "RGB")
    picture = ImageOps.fit(picture, (canvas, canvas), Image.Resampling.BILINEAR)
    return np.asarray(picture).reshape(canvas, canvas, channels)


session = onnxruntime.InferenceSession(sys.argv[1])
names = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
_, canvas, _, channels = session.get_inputs()[0].shape
(scores,) = session.run(["scores"], {"pixels": pixels_of(sys.argv[2], canvas, channels)[None]})
print(f"{sys.argv[2]}: {names[scores[0].argmax()]}")
PYTHON
