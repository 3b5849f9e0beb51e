#!/usr/bin/env bash
# The examples' `train` scripts: three seeds in FP32 and in BF16. Each must reach its bound, and the means of the two
# precisions may differ by no more than seeds do, or 1 %. ONLY=NAME tries one.
set -uo pipefail
source tests/checks/checks.bash
[[ -n ${TEXT:-} ]] || tools/setup --text

# name, metric, and what it must be; an example without a row fails
declare -Ar BOUNDS=(
    [autoencoder]='part <= 0.2'
    [bert]='accuracy >= 0.95'
    [cnn]='accuracy >= 0.88'
    [gan]='distance <= 0.2' # a generator that makes nothing but the mean: 0.4
    [gpt]='bits_per_byte <= 2.3'
    [llama]='bits_per_byte <= 2.3'
    [lstm]='bits_per_byte <= 2.5' # a bigram model: 3.36
    [resnet]='accuracy >= 0.9'
    [tabular]='accuracy >= 0.85' # its linear baseline: 0.56
    [unet]='dice >= 0.95'
)
readonly SEEDS='1 2 3'

# values NAME PRECISION METRIC: the metric's values for all seeds, into $out
values() {
    local seed all=''
    for seed in $SEEDS; do
        run 0 "examples/$1/train" "$2" "$seed"
        tail -1 <<<"$out"
        all+=" $(sed -n "s/^$1 $2 seed $seed: $3 //p" <<<"$out")"
    done
    out=$all
}

for script in examples/*/train; do
    name=$(basename "$(dirname "$script")")
    [[ -z ${ONLY:-} || $ONLY == "$name" ]] || continue
    read -r metric comparison bound <<<"${BOUNDS[$name]:-none}"
    values "$name" fp32 "$metric" && single=$out
    values "$name" bf16 "$metric"
    run 0 python3 - "$comparison" "$bound" "$single" "$out" <<'PYTHON'
import sys

comparison, bound, *columns = sys.argv[1:]
single, low = ([float(value) for value in column.split()] for column in columns)
assert len(single) == len(low) == 3, "a value is missing"
for value in single + low:
    good = value <= float(bound) if comparison == "<=" else value >= float(bound)
    assert good, f"{value} is not {comparison} {bound}"
mean = [sum(values) / len(values) for values in (single, low)]
noise = max(max(single) - min(single), max(low) - min(low), 0.01 * abs(mean[0]))
assert abs(mean[0] - mean[1]) <= noise, f"means {mean[0]:.4g} and {mean[1]:.4g}, noise {noise:.2g}"
PYTHON
done
finish
