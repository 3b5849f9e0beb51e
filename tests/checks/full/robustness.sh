#!/usr/bin/env bash
# Bad input at length: 100,000 random mutations of each kind of file under the sanitizers, and 3,000 kills while saving.
set -uo pipefail
source tests/checks/checks.bash

# test_only FILTER OPTION...: the cases that match; there must be some
test_only() {
    local filter=$1
    shift
    bazel run --test_sharding_strategy=disabled "$@" //tests/robustness:robustness_test -- --gtest_list_tests --gtest_filter="$filter" 2>/dev/null | grep -q '^  ' &&
        bazel test --test_filter="$filter" "$@" //tests/robustness:robustness_test
}

mutations=(--config=asan --test_env=AMP_MUTATIONS=100000 --test_timeout=14400)
for files in 'Safetensors.*:Params.*:Checkpoint.*' 'Idx*.*' '*/Ir.*:*/Models.*:Policies.*' 'Model*.*'; do
    holds "$files, 100,000 mutations" test_only "$files" "${mutations[@]}"
done
# Kernel IR and tables of model.so that are accepted: compiled and run, so thousands each, and for what runs no sanitizer.
holds 'IR at stages layout and plan, 3,000 edits of each model' test_only '*/Plans.*:PlanEdits.*' --config=asan \
    --test_env=AMP_MUTATIONS=30000 --test_timeout=14400
holds 'tables of model.so, 10,000 that run' test_only 'ModelTables.AcceptedOnesRun' --test_env=AMP_MUTATIONS=40000 \
    --test_timeout=14400
holds 'every allocation fails' test_only 'Compile.*:Runtime.*' "${mutations[@]}"
holds '3,000 kills' test_only '*/SaveTest.*' --test_env=AMP_KILLS=3000 --test_timeout=3600
finish
