#!/usr/bin/env bash
# Bad input at length: 100,000 random mutations of each kind of file under the sanitizers, and 3,000 kills while saving.
set -uo pipefail
source tests/checks/checks.bash

for test in safetensors_damage_test idx_damage_test text_damage_test model_damage_test; do
    holds "$test, 100,000 mutations" bazel test --config=asan --test_env=AMP_MUTATIONS=100000 --test_timeout=14400 "//tests/robustness:$test"
done
holds 'every allocation fails' bazel test --config=asan --test_env=AMP_MUTATIONS=100000 --test_timeout=14400 //tests/robustness:allocation_test
holds '3,000 kills' bazel test --test_env=AMP_KILLS=3000 --test_timeout=3600 //tests/robustness:save_test
finish
