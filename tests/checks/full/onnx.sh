#!/usr/bin/env bash
# ONNX at length: a million random changes of a model under the sanitizers; what `ampc autocast` takes for 2.5 GB of
# external data, and for BERT-base if tools/onnx-env is set up.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
export PYTHONDONTWRITEBYTECODE=1

python3 tests/checks/onnx_write.py "$work/deep.onnx" --external 25
run 0 python3 tests/checks/full/onnx_cost.py "$bin/tools/ampc" "$work/deep.onnx" "$work/out.onnx" 200
told
expect 'all weights are converted' $((25 * 100 << 19)) "$(stat -c %s "$work/out.onnx.data")"
rm -f "$work"/*.onnx*
if imports .onnx-env/python onnxscript transformers; then
    run 0 .onnx-env/python tests/checks/onnx_models.py bert_base 23 "$work/bert_base.onnx"
    run 0 python3 tests/checks/full/onnx_cost.py "$bin/tools/ampc" "$work/bert_base.onnx" "$work/out.onnx" 200 1
    told
    rm -f "$work"/*.onnx*
else
    skipped "$lacking (tools/onnx-env)"
fi

holds 'a million mutations' bazel test --config=asan --test_env=AMP_MUTATIONS=1000000 --test_timeout=14400 \
    --test_filter='OnnxDamage.*' //tests/onnx:onnx_test
finish
