#!/usr/bin/env bash
# tools/demo with three seeds: at least 87.5 % in each run, and FP16 within half a point of FP32 on average.
set -uo pipefail
source tests/checks/checks.bash

for seed in 1 2 3; do
    run 0 tools/demo --seed $seed --json "$work/$seed.json"
    for precision in fp16 fp32; do
        accuracy=$(python3 -c '
import json, sys
print(*(r["test_accuracy"] for r in json.load(open(sys.argv[1])) if r["precision"] == sys.argv[2]))
' "$work/$seed.json" $precision)
        printf 'seed %d, %s: %s\n' $seed $precision "$accuracy"
        holds "seed $seed, $precision: at least 87.5 %" python3 -c "assert $accuracy >= 0.875"
        printf '%s\n' "$accuracy" >>"$work/$precision"
    done
done
holds 'the means are within half a point' python3 -c '
import statistics, sys
means = [statistics.mean(map(float, open(path))) for path in sys.argv[1:]]
assert abs(means[0] - means[1]) <= 0.005, means
' "$work/fp16" "$work/fp32"
finish
