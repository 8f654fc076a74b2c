#!/bin/sh
# Train examples/NAME in a copy (build/demo/NAME) and localize its fault: demo.sh NAME
set -eu
cd "$(dirname "$0")/.."
name=$1
python=$PWD/.venv/bin/python
guider=$PWD/.venv/bin/guider-ls

mkdir -p build/demo
rm -rf "build/demo/$name"
cp -R "examples/$name" "build/demo/$name"
cd "build/demo/$name"
# TensorFlow's own start-up notes are no part of the demonstration.
export TF_CPP_MIN_LOG_LEVEL=2 TF_ENABLE_ONEDNN_OPTS=0

echo "== Training: python train.py   (in build/demo/$name)"
"$python" train.py
echo
echo "== Which layer is to blame? guider-ls localize train.py"
"$guider" localize train.py
