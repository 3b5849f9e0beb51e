#!/usr/bin/env bash
# The dtypes of MLP, CNNs, ResNet-18 and a small BERT under tf-fp16 and tf-bf16, beside TensorFlow run on their twins.
set -uo pipefail
source tests/checks/checks.bash
python=$(tools/tf-env) || {
    skipped 'TensorFlow cannot be installed: see above'
    finish
}
build -c opt //tools:ampc
AMP_PROGRAMS=$bin PYTHONPATH=tests/parity PYTHONDONTWRITEBYTECODE=1 \
    "$python" tests/parity/checks/tensorflow_decisions.py "$@"
