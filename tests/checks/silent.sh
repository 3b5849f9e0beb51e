#!/usr/bin/env bash
# What goes wrong in FP16 while every loss is finite: how tensors of infinities are shown and named, what a training
# says of the ops that make them, and what is advised where no line of the precision block helps.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1
export FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
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
t = [random.randrange(4) for _ in range(512)]
for name, size, extra in (("large", 300.0, 3000.0), ("good", 1.0, 3.0)):
    x = [random.gauss(0, 1) * size + (extra if i == t[n] else 0) for n in range(512) for i in range(16)]
    arrays = {"x": ("F32", [512, 16], struct.pack(f"<{512 * 16}f", *x)),
              "t": ("I32", [512], struct.pack("<512i", *t))}
    safetensors_write.write(f"{sys.argv[1]}/{name}.st", arrays)
END

# make NAME MODEL [TARGET]: a model of 4 classes whose middle is MODEL
make() {
    {
        printf 'amp 1\nmodel %s(x: f32[N, 16]) -> y {\n%s\n    y = linear(h; out = 4) as head\n}\n' "$1" "$2"
        printf 'train %s {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n    optimizer = adamw(0.01)\n}\n' "$1"
        printf 'precision fp16 { loss_scale = dynamic(init = 1024.0) }\n'
    } >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" -o "$work/$1.so" --isa portable --target "${3:-cpu}" --force
}
# train NAME DATA OPTION...
train() { run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/$2.st" --batch 64 "${@:3}"; }

norm=$'    h = linear(x; out = 16) as stem
    h = h / sqrt(mean(h * h; dims = 1, keep = true) + 1e-6)'

# ---- tensors of a log

make norm "$norm"
train norm large --steps 4 --stats 4 --log "$work/log" --quiet
expect 'tensors are named, and what is infinite is largest' 'mul True inf []' "$(python3 -c 'import json, sys
told = [json.loads(line) for line in open(sys.argv[1])]
tensors = [t for line in told if "stats" in line for t in line["tensors"]]
whole = [t for t in tensors if t["infinities"] == t["count"]]
mul = [t for t in tensors if t["name"] == "mul"][0]
wrong = [t["name"] for t in tensors if t["name"].isdigit() or t["name"] in ("d.loss.scaled", "inverse_scale")]
print(mul["name"], mul["infinities"] > 0, whole[0]["largest"], wrong)' "$work/log")"

# ---- what a finite loss hides: tests/checks/full/silent.sh has 30 such models, and clean ones

train norm large --steps 2 --quiet
says 'amprun: step 1: mul (mul, ' 'norm.amp:4) makes infinities in f16, whatever the loss is: ' \
    'in the precision block: "mul": f32'
train norm large --steps 2 --quiet --stats 2 --log "$work/log"
says 'warning: --stats: iteration 2: of mul, ' ' numbers are infinite or NaN, and some of other tensors'
train norm good --steps 40 --quiet
expect 'of a clean training nothing is said' '' "$err"
small=$'    d = linear(x; out = 16) * 0.00002
    h = d / sqrt(mean(d * d; dims = 1, keep = true) + 1e-6)'
make small "$small"
train small good --steps 2 --quiet
says ': mul_1 (mul, ' 'small.amp:4) loses everything to zero in f16, whatever the loss is: '
input=$'    s = slice(x; dim = 1, from = 0, to = 1) * 1000.0
    h = tanh(linear(s; out = 16) as stem)'
make input "$input"
train input large --steps 1 --quiet
says 'step 1: stem.linear (linear, ' 'input.amp:4) makes infinities in f16, whatever the loss is: '

# on_device NAME MODEL DATA: on the stand-in kernels count what they round: the same is said as on the CPU
on_device() {
    local said
    make "$1" "$2" both
    train "$1" "$3" --steps 3 --quiet
    said=$err
    run 0 tools/with-fakecuda "$amprun" train "$work/$1.so" --device cuda --data "safetensors:$work/$3.st" --batch 64 \
        --steps 3 --quiet
    expect "$1 with $3: the device says what the CPU says" "$said" "$err"
}
on_device norm "$norm" large
on_device norm "$norm" good
on_device small "$small" good
on_device input "$input" large
run 0 "$amprun" suggest "$work/norm.so" --data "safetensors:$work/large.st" --batch 64 --steps 40
says 'as it is: every loss is finite' 'in fp32: every loss is finite' \
    'the loss is far above the one in fp32, though it is finite' '"mul": f32   # ' ', and finite in fp32' \
    'with these lines: every loss is finite'

# ---- where FP32 overflows too

make exp $'    e = exp(linear(x; out = 8) as fc)\n    h = e / sum(e; dims = 1, keep = true)'
train exp large --steps 2 --trace-nonfinite
says 'in fp32    the step is not finite either' 'mend       subtract the largest number first, as softmax(..; dim = 1)'
expect 'no rate is to blame before the first update' 0 "$(grep -c 'learning rate' <<<"$out$err")"
run 0 "$amprun" suggest "$work/exp.so" --data "safetensors:$work/large.st" --batch 64 --steps 3
says 'no line is proposed' 'no line mends iteration 1: overflow, exp (exp), and in fp32 the step is not finite either: '

finish
