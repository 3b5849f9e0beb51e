#!/usr/bin/env bash
# The table of ONNX's ops, onnx/ops.def, against the schemas of the onnx wheel, for each op and opset; and the types and
# shapes of the wheel's node tests.
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
. tests/checks/checks.bash

python=.onnx-env/bin/python
if ! imports "$python" onnx; then
    skipped "$lacking (tools/onnx-env)"
    finish
    exit
fi
build //tests/onnx:print_ops //tests/onnx:print_types
"$bin/tests/onnx/print_ops" >"$work/ops"
run 0 "$python" tests/checks/full/onnx_ops.py "$work/ops"
told
mkdir "$work/models"
run 0 "$python" -W ignore tests/checks/full/onnx_types.py "$bin/tests/onnx/print_types" "$work/models"
told
finish
