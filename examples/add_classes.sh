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

session = onnxruntime.InferenceSession(sys.argv[1])
names = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
_, height, width, channels = session.get_inputs()[0].shape
picture = ImageOps.exif_transpose(Image.open(sys.argv[2]))
if "A" in picture.getbands():
    picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture.convert("RGBA"))
picture = ImageOps.fit(picture.convert("L" if channels == 1 else "RGB"), (width, height), Image.Resampling.BILINEAR)
(scores,) = session.run(["scores"], {"pixels": np.asarray(picture).reshape(1, height, width, channels)})
print(f"{sys.argv[2]}: {names[scores[0].argmax()]}")
PYTHON
