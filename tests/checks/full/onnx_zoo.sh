#!/usr/bin/env bash
# `ampc autocast` on ONNX files of ten families, exported now, and on 500 random graphs (tests/checks/onnx_zoo.py); its
# types beside PyTorch's autocast of the same networks (onnx_decisions.py); planted overflows (onnx_planted.py).
#
#     tests/checks/full/onnx_zoo.sh --peers --table FILE.md        also beside onnxconverter-common and ModelOpt
#
# Without tools/onnx-env, which is not set up for this alone, it is skipped.
set -uo pipefail
source tests/checks/checks.bash
if [[ ! -e .onnx-env/packages ]]; then
    skipped 'no ONNX, PyTorch and their exporters here (tools/onnx-env)'
    finish
fi
python=$(tools/onnx-env)
build -c opt //tools:ampc
export PYTHONDONTWRITEBYTECODE=1
run 0 "$python" tests/checks/onnx_zoo.py "$bin/tools/ampc" --random 500 "$@"
told
for check in decisions planted; do
    run 0 "$python" tests/checks/onnx_$check.py "$bin/tools/ampc"
    told
done
finish
