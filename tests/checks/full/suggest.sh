#!/usr/bin/env bash
# `amprun suggest`: twelve models that overflow, or lose numbers that they divide by, in 16 bits are mended by lines of
# the precision block alone, and train with these lines written into the model; what it calls safe in the lower type
# leaves the loss of a small GPT within the noise of seeds. The logs of these trainings give the same lines.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

PYTHONPATH=tests/checks python3 -B - "$work" <<'END'
import random
import struct
import sys

import safetensors_write

random.seed(1)
for name, scale in (("plain", 1.0), ("large", 60.0), ("huge", 3e5), ("tiny", 1e-4)):
    x = [random.gauss(0, 1) * scale for _ in range(128 * 16)]
    arrays = {"x": ("F32", [128, 16], struct.pack("<2048f", *x)),
              "targets": ("I32", [128], struct.pack("<128i", *(random.randrange(4) for _ in range(128))))}
    safetensors_write.write(f"{sys.argv[1]}/{name}.st", arrays)
END

# write NAME LINES PRECISION
write() {
    {
        printf 'amp 1\nmodel %s(x: f32[N, 16]) -> y {\n%s\n}\ntrain %s {\n    input targets: i32[N]\n' "$1" "$2" "$1"
        printf '    loss = cross_entropy(y, targets)\n    optimizer = adamw(lr = 0.0001)\n}\n'
        printf 'precision fp16 {\n%s\n}\n' "$3"
    } >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" --policy "$policy" -o "$work/$1.so" --isa native --target cpu --force
}

# mends NAME DATA LINES: it does not train as it is; it does with the lines that are proposed
mends() {
    write "$1" "$3" ''
    run 0 "$amprun" suggest "$work/$1.so" --data "safetensors:$work/$2.st" --batch 32 --steps 30 --json
    told=$out
    # it ends, and says so, where the loss scale is at its floor
    "$amprun" train "$work/$1.so" --data "safetensors:$work/$2.st" --batch 32 --steps 30 --stats 5 --quiet --force \
        --allow nan --log "$work/recorded.log" 2>"$work/said"
    run 0 "$ampc" suggest --stats "$work/recorded.log" --json
    expect "$1: its log gives the same steps and lines" True "$(python3 -c 'import json, sys
told, recorded = (json.loads(text) for text in sys.argv[1:])
paths = [[line["path"] for line in one["f32"]] for one in (told, recorded)]
print(recorded["log"]["same"] and recorded["with_f32"]["finite"] and paths[0] == paths[1][:len(paths[0])] or paths)' \
        "$told" "$out")"
    lines=$(python3 -c 'import json, sys
told = json.loads(sys.argv[1])
assert not told["before"]["finite"] and told["with_f32"]["finite"] and told["f32"], told
print("\n".join("    \"{path}\": f32".format(**line) for line in told["f32"]))' "$told" 2>"$work/why") ||
        failed "$1 is mended" "$(tail -1 "$work/why")"
    write "$1" "$3" "$lines"
    run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/$2.st" --batch 32 --steps 60 --log "$work/$1.log" \
        --quiet --force
    expect "$1: every loss is finite" 0 "$(grep -c '"loss": "' "$work/$1.log")"
}

head='    h = linear(x; out = 16) as fc1'
policy=min-cast
mends cubes large "$head"$'\n    y = linear(h * h * h; out = 4) as fc2'
mends scores large "    q = reshape(linear(x; out = 16) as query; shape = [N, 4, 4])
    k = reshape(linear(30.0 * x; out = 16) as key; shape = [N, 4, 4])
    a = softmax(matmul(q, transpose(k)))
    y = linear(reshape(matmul(a, q); shape = [N, 16]); out = 4) as fc2"
mends input huge $'    y = linear(relu(linear(x; out = 16) as fc1); out = 4) as fc2'
mends products large $'    h = linear(x * 300.0; out = 16) as fc1\n    y = linear(h * 5.0; out = 4) as fc2'
mends growth large "$head"$'\n    y = linear(exp(abs(h) * 0.05 + 9.0); out = 4) as fc2'
policy=torch-fp16
mends sums large "$head"$'\n    y = linear(h * abs(h) * 30.0; out = 4) as fc2'
mends differences large "$head"$'\n    a = h * 500.0\n    b = h * 499.0\n    y = linear(a * a - b * b; out = 4) as fc2'
mends norms large "$head"$'\n    y = linear(layer_norm(h * h * h) as ln; out = 4) as fc2'
mends scales tiny $'    h = linear(x; out = 16, bias = false) as fc1\n    y = linear(h * 1e9; out = 4) as fc2'
mends maxima large "$head"$'\n    y = linear(maximum(h * h, 1.0) * 20.0; out = 4) as fc2'
mends silus large "$head"$'\n    y = linear(silu(h * 2000.0); out = 4) as fc2'
mends powers large "$head"$'\n    y = linear(pow(abs(h); e = 3.0); out = 4) as fc2'

# ---- what is safe

if [[ -n ${TEXT:-} ]] || answers bible -f gen1:1; then
    [[ -n ${TEXT:-} ]] || bible -f gen1:1-exo40:38 | sed 's/^[^ ]* //' >"$work/text"
    [[ -z ${TEXT:-} ]] || cp "$TEXT" "$work/text"
    run 0 "$ampc" examples/gpt/bytes.amp -D T=64 -D C=64 -D L=2 -D STEPS=200 --policy torch-fp16 --target cpu \
        -o "$work/gpt.so"
    run 0 "$amprun" suggest "$work/gpt.so" --data "tokens:$work/text,held=0" --batch 16 --steps 120 --json
    expect 'a GPT: lines are proposed, and the loss stays within the noise' True "$(python3 -c 'import json, sys
told = json.loads(sys.argv[1])
print(len(told["low"]) >= 5 and abs(told["with_all"]["loss"] - told["before"]["loss"]) <= told["noise"])' "$out")"
    run 0 "$amprun" train "$work/gpt.so" --data "tokens:$work/text,held=0" --batch 16 --steps 120 --stats 20 --quiet \
        --log "$work/gpt.log"
    run 0 "$ampc" suggest --stats "$work/gpt.log" --json
    expect 'so does its log' True "$(python3 -c 'import json, sys
told = json.loads(sys.argv[1])
print(told["log"]["same"] and len(told["low"]) >= 5
      and abs(told["with_all"]["loss"] - told["before"]["loss"]) <= told["noise"])' "$out")"
else
    skipped "a GPT: $lacking (tools/setup --text)"
fi
finish
