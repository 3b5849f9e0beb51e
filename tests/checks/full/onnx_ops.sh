#!/usr/bin/env bash
# The table of ONNX's ops, onnx/ops.def, against the schemas of the onnx wheel, for each op and opset.
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
. tests/checks/checks.bash

python=.onnx-env/bin/python
if ! imports "$python" onnx; then
    skipped "$lacking (tools/onnx-env)"
    finish
    exit
fi
run 0 bazel build --show_result=0 //tests/onnx:print_ops
run 0 "$bin/tests/onnx/print_ops"
cp "$out" "$work/ops"
run 0 "$python" tests/checks/full/onnx_ops.py "$work/ops"
told
finish
