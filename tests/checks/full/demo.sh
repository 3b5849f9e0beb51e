#!/usr/bin/env bash
# tools/demo with three seeds: in each run at least 87.5 % (mlp) and 90 % (cnn), FP16 within half a point of FP32 on average, and all four
# trainings together in less than five minutes.
set -uo pipefail
source tests/checks/checks.bash

for seed in 1 2 3; do
    run 0 tools/demo --seed $seed --json "$work/$seed.json"
    python3 -c '
import json, sys
for r in json.load(open(sys.argv[1])):
    print(r["model"], r["precision"], r["test_accuracy"])
' "$work/$seed.json" >"$work/$seed.rows"
    while read -r model precision accuracy; do
        printf 'seed %d, %s %s: %s\n' $seed "$model" "$precision" "$accuracy"
        least=$([[ $model == cnn ]] && echo 0.90 || echo 0.875)
        holds "seed $seed, $model $precision: at least $least" python3 -c "assert $accuracy >= $least"
        printf '%s\n' "$accuracy" >>"$work/$model-$precision"
    done <"$work/$seed.rows"
    expect "seed $seed: four trainings" 4 "$(wc -l <"$work/$seed.rows")"
    # 5 epochs of 60,000 samples each
    seconds=$(python3 -c '
import json, sys
print(round(sum(5 * 60000 / r["samples_per_s"] for r in json.load(open(sys.argv[1])))))
' "$work/$seed.json")
    printf 'seed %d: %s seconds of training\n' $seed "$seconds"
    holds "seed $seed: the trainings take less than 300 seconds" test "$seconds" -lt 300
done
for model in mlp cnn; do
    holds "$model: the means are within half a point" python3 -c '
import statistics, sys
means = [statistics.mean(map(float, open(path))) for path in sys.argv[1:]]
assert abs(means[0] - means[1]) <= 0.005, means
' "$work/$model-fp16" "$work/$model-fp32"
done
finish
