#!/usr/bin/env bash
# `ampc suggest --stats LOG`: the steps of a log are taken again, bit for bit, and its statistics and steps lead to
# lines that are proven; what a log lacks, or what has changed since, is said with the remedy.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

PYTHONPATH=tests/checks python3 -B - "$work" <<'END'
import random
import struct
import sys

import safetensors_write

random.seed(1)
for name, scale, count in (("good", 1.0, 256), ("large", 60.0, 256), ("other", 60.5, 256), ("short", 1.0, 200)):
    x = [random.gauss(0, 1) * scale for _ in range(count * 16)]
    classes = [max(range(4), key=lambda k: x[16 * i + k]) for i in range(count)]
    arrays = {"x": ("F32", [count, 16], struct.pack(f"<{16 * count}f", *x)),
              "targets": ("I32", [count], struct.pack(f"<{count}i", *classes))}
    safetensors_write.write(f"{sys.argv[1]}/{name}.st", arrays)
END

# make NAME POLICY MODEL LINES: a model whose middle is MODEL
make() {
    {
        printf 'amp 1\nmodel %s(x: f32[N, 16]) -> y {\n    h = relu(linear(x; out = 32) as fc1)\n%s\n' "$1" "$3"
        printf '}\ntrain %s {\n    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n' "$1"
        printf '    optimizer = adamw(lr = 0.01)\n}\nprecision fp16 {\n%s\n}\n' "${4:-}"
    } >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" --policy "$2" -o "$work/$1.so" --isa native --target cpu --force
}
# train NAME DATA OPTION...: into NAME.log
train() {
    run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/$2.st" --batch 64 --quiet --log "$work/$1.log" \
        --force --allow nan "${@:3}"
}
suggest() { run 0 "$ampc" suggest --stats "$work/$1.log" "${@:2}"; }

# ---- a model that overflows

cubes=$'    g = linear(h; out = 32) as fc2\n    y = linear(g * g * g; out = 4) as fc3'
make cubes min-cast "$cubes"
train cubes large --steps 12 --stats 3 --seed 7
suggest cubes
says 'cubes.log: ' '12 of its 12 steps of 64 samples' 'they give what the log says, bit for bit' \
    'as it is: not every loss is finite' '"mul_1": f32   # iteration 1: overflow, mul_1; ' \
    'numbers are infinite at iteration' 'with these lines: every loss is finite'
lines=$(grep '": f32' <<<"$out")
make mended min-cast "$cubes" "$lines"
train mended large --steps 60 --seed 7
expect 'with the lines every loss is finite' 0 "$(grep -c '"loss": "' "$work/mended.log")"
expect 'temporary files are removed' '' "$(ls "$TMPDIR")"
# Links to a diary at every name that could be guessed of the next processes.
echo 'dear diary' >"$work/diary"
for ((next = BASHPID; next < BASHPID + 400; next++)); do ln -s "$work/diary" "$TMPDIR/amprun-suggest-$next"; done
suggest cubes --steps 3
expect 'nothing is written through a link' 'dear diary' "$(head -c 100 "$work/diary" | tr -d '\0')"
expect 'no other file is left' 400 "$(find "$TMPDIR" -mindepth 1 | wc -l)"
rm -r "$TMPDIR"
mkdir "$TMPDIR"
says '3 of its 12 steps of 64 samples' 'they give what the log says, bit for bit' \
    'iteration 4, which was not finite or skipped, is not among them; --steps 4 takes it, too'

# ---- infinities that no loss shows, and what is too small

make clamped torch-fp16 $'    c = linear(h * 100.0; out = 32) as fc2
    y = linear(maximum(minimum(c * 20.0, 3.0), -3.0); out = 4) as fc3'
train clamped large --steps 12 --stats 3
suggest clamped
says 'as it is: every loss is finite' '"mul_1": f32   # ' ' of 2048 numbers are infinite at iteration ' \
    'with these lines: every loss is finite'
make small torch-fp16 $'    g = linear(h * 0.00000006; out = 32, bias = false) as fc2
    y = linear(g * 500000.0; out = 4) as fc3'
train small good --steps 60 --stats 20
suggest small
says '"mul": f32   # ' '% of what it makes is subnormal at iteration ' '"fc2.linear": f32   # ' \
    '% of what it reads is subnormal'

# ---- a healthy one, with options that decide the numbers, from another folder

norm=$'    n = layer_norm(h) as ln
    g = exp(linear(n; out = 32) as fc2)
    y = linear(sigmoid(g) + g; out = 4) as fc3'
make healthy torch-fp16 "$norm"
run 0 "$amprun" train "$work/healthy.so" --data "safetensors:$work/good.st" --steps 3 --quiet --save "$work/healthy.st"
run 0 env -C "$work" "$amprun" train healthy.so --data safetensors:good.st --batch 48 --seed 18446744073709551615 \
    --eval-split 0.25 --weights healthy.st --fresh 'fc3.*' --threads 1 --steps 40 --stats 5 --log healthy.log --quiet
suggest healthy
says 'they give what the log says, bit for bit' '"exp": low   # up to ' 'would become zero in f16' \
    'with all lines: every loss is finite' 'the difference is within'
suggest healthy --batch 32
says 'steps of 32 samples' 'taken again, iteration 1 has the loss ' 'and the log says '
suggest healthy --seed 1 --json
holds 'the same as JSON' python3 -c 'import json, sys
told = json.loads(sys.argv[1])
assert told["steps"] == told["log"]["steps"] == 40 and told["log"]["same"] is False, told
assert told["log"]["differs_at"] == 1 and told["log"]["loss"] != told["log"]["logged"] and told["low"], told' "$out"

# a table: its schema, and what it holds out
python3 - "$work/table.csv" <<'END'
import sys

with open(sys.argv[1], "w") as file:
    file.write("a,b,c,kind\n")
    for i in range(300):
        file.write(f"{i * 37 % 63},{i * 29 % 41},{i * i % 17},{'yes' if i * 37 % 63 > 30 else 'no'}\n")
END
printf 'amp 1\nmodel table(x: f32[N, 3]) -> y {\n    y = linear(x; out = 2) as fc1\n}\ntrain table {\n%s\n}\n%s\n' \
    $'    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n    optimizer = adamw(lr = 0.01)' \
    'precision fp16 { }' >"$work/table.amp"
run 0 "$ampc" "$work/table.amp" -o "$work/table.so" --isa native --target cpu
run 0 env -C "$work" "$amprun" schema csv:table.csv,target=kind
grep -v '^held' <<<"$out" >"$work/table.schema"
run 0 env -C "$work" "$amprun" train table.so --data csv:table.csv,schema=table.schema --eval-split 0.3 --batch 16 \
    --steps 10 --stats 5 --log table.log --quiet
suggest table
says 'they give what the log says, bit for bit'

# ---- a log that another run went on with

train cubes good --steps 10 --stats 5 --checkpoint "$work/cubes.checkpoint"
run 0 "$amprun" train "$work/cubes.so" --data "safetensors:$work/good.st" --quiet --steps 20 --stats 5 \
    --resume "$work/cubes.checkpoint" --log "$work/cubes.log" --checkpoint "$work/cubes.checkpoint"
suggest cubes
says '20 of its 20 steps' 'they give what the log says, bit for bit'
run 0 "$amprun" train "$work/cubes.so" --data "safetensors:$work/good.st" --quiet --steps 30 --stats 5 \
    --resume "$work/cubes.checkpoint" --log "$work/later.log"
refused() { run "$1" "$amprun" suggest --stats "$work/$2.log" "${@:3}"; }
refused 1 later
says 'later.log: begins at iteration 21, as the training went on from ' 'give the log of the whole training'

# ---- what has changed, and what a log lacks

refused 0 cubes --data "safetensors:$work/other.st"
says 'taken again, iteration 1 has the loss '
cp "$work/good.st" "$work/kept.st"
cp "$work/short.st" "$work/good.st"
refused 1 cubes
says 'good.st: has 200 samples to train on, and had 256 when ' 'cubes.log was written' '--data SPEC'
rm "$work/good.st"
refused 1 cubes
says 'good.st: cannot be read; ' 'was trained on it: put it back, or give --data SPEC'
refused 0 cubes --data "safetensors:$work/kept.st"
says 'they give what the log says, bit for bit'
mv "$work/kept.st" "$work/good.st"
rm "$work/healthy.st"
refused 1 healthy
says 'healthy.st: No such file' 'was trained from these weights' '--weights F'
make cubes min-cast "$cubes" '    "fc1.linear": f32'
refused 1 cubes
says 'cubes.so: is another model than the one of ' 'its SHA-256 is ' 'give it as an argument'
refused 0 cubes "$work/cubes.so"
says 'taken again, iteration '
rm "$work/cubes.so"
refused 1 cubes
says 'cubes.so: No such file' 'was trained with it: compile it again, or give MODEL.so as an argument'

make cubes min-cast "$cubes"
train cubes good --steps 10
refused 1 cubes
says 'cubes.log: has no statistics; train with --log FILE --stats 100'
head -1 "$work/cubes.log" >"$work/few.log"
refused 1 few
says 'few.log: has no steps'
train cubes good --steps 10 --stats 5
grep -v '"iteration": 4,' "$work/cubes.log" >"$work/gap.log"
refused 1 gap
says 'gap.log: iteration 5 comes after 3, so that steps are missing'
tail -n +2 "$work/cubes.log" >"$work/headless.log"
refused 1 headless
says 'headless.log: does not say which model was trained'
sed '1s/.*/{"model": "cubes", "policy": "min-cast", "batch": 64, "peak_bytes": 1}/' "$work/cubes.log" >"$work/old.log"
refused 2 old
says 'old.log: does not say where its model is; give MODEL.so'
refused 2 old "$work/cubes.so"
says 'old.log: does not say what was trained on; give --data SPEC'
refused 0 old "$work/cubes.so" --data "safetensors:$work/good.st"
says 'they give what the log says, bit for bit'
cp "$work/cubes.amp" "$work/model.log"
refused 1 model
says 'model.log: line 1: ' 'is it a log of amprun train?'
refused 1 nosuch
says 'nosuch.log: cannot open: No such file' 'amprun train --log writes such a file'
sed '1s/"batch": 64/"batch": -1, "weights": 7, "rename": [1, {}]/; 1s/"seed": 0/"seed": [], "eval_split": "inf"/' \
    "$work/cubes.log" >"$work/odd.log" # not what training writes
printf '{"stats": 1, "tensors": [{"name": "h"}, 7]}\n{"stats": 2}\n[]\n7\n{"iteration": 11, "lo' >>"$work/odd.log"
refused 0 odd
says '10 of its 10 steps of 128 samples'
run 2 "$amprun" suggest --data "safetensors:$work/good.st"
says 'suggest: no model was given'
refused 2 cubes --device null
says '--device null'

# ---- ampc without amprun

mkdir "$work/alone"
cp "$ampc" "$work/alone/ampc"
run 1 env "PATH=$work/nosuch" "$work/alone/ampc" suggest --stats "$work/cubes.log"
says 'ampc: suggest: ' '/alone/amprun: No such file' 'must be beside ampc or in a folder of PATH'
run 0 env "PATH=$(dirname "$(realpath "$amprun")"):$PATH" "$work/alone/ampc" suggest --help
says 'usage: amprun suggest'
finish
