#!/usr/bin/env bash
# `amprun train --trace-nonfinite` as a person calls it: what it says of faults in data, weights, ops and types, on the
# CPU and the stand-in for CUDA; that the lines it proposes mend the training; and that it says nothing of steps that
# are finite, or skipped as a loss scale wants it.  Which op each of many faults is traced to: tests/e2e/trace_test.cc.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

cat >"$work/make.py" <<'END'
"""make.py FILE [SCALE] [SAMPLE VALUE]: 256 samples of 16 features times SCALE; one feature of SAMPLE is VALUE."""
import random
import struct
import sys

import safetensors_write

random.seed(1)
scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
x = [random.gauss(0, 1) * scale for _ in range(256 * 16)]
if len(sys.argv) > 3:
    x[int(sys.argv[3]) * 16 + 3] = float(sys.argv[4])
arrays = {"x": ("F32", [256, 16], struct.pack("<4096f", *x)),
          "targets": ("I32", [256], struct.pack("<256i", *(random.randrange(4) for _ in range(256))))}
safetensors_write.write(sys.argv[1], arrays)
END
make_data() { PYTHONPATH=tests/checks python3 -B "$work/make.py" "$work/$1.st" "${@:2}"; }
make_data good
make_data wrong 1 77 nan
make_data large 60

# make NAME PRECISION LINES: a model whose middle is LINES
make() {
    {
        printf 'amp 1\nmodel %s(x: f32[N, 16]) -> y {\n    h = relu(linear(x; out = 32) as fc1)\n%s\n' "$1" "$3"
        printf '}\ntrain %s {\n    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n' "$1"
        printf '    optimizer = adamw(lr = %s)\n}\n%s\n' "${4:-0.001}" "$2"
    } >"$work/$1.amp"
    run 0 "$ampc" "$work/$1.amp" -o "$work/$1.so" --isa portable --target "${5:-cpu}" --force
}
cubes=$'    g = linear(h; out = 32) as fc2\n    y = linear(g * g * g; out = 4) as fc3'
plain='    y = linear(h; out = 4) as fc2'
make plain 'precision fp16 { }' "$plain" 0.001 both
make cubes 'precision fp16 { }' "$cubes"

# train MODEL DATA OPTION...
train() { run 0 "$amprun" train "$work/$1.so" --data "safetensors:$work/$2.st" --batch 64 "${@:3}" --trace-nonfinite; }

# ---- nothing to say

train plain good --steps 1000 --log "$work/log"
expect 'clean steps raise no alarm' '' "$(grep -c amprun: <<<"$out" | grep -v '^0$')"
expect 'nor a line of the log' '0' "$(grep -c traced "$work/log")"
make scaled 'precision fp16 { loss_scale = dynamic(init = 16777216.0, interval = 20) }' "$plain"
train scaled large --steps 300 --log "$work/log"
expect 'steps that are skipped, as they should be, raise none' '' "$(grep amprun: <<<"$out")"
expect 'the log says why they were' 'True' "$(python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
traced = [line for line in lines if "traced" in line]
print(len(traced) >= 1 and all(line["expected"] and line["gradient"] for line in traced)
      and any(line.get("skipped") for line in lines))' "$work/log")"
train scaled large --steps 20 --verbose
says 'too large at this loss scale alone; the step is skipped, as it should be'
expect 'temporary files are removed' '' "$(ls "$TMPDIR")"

# ---- data

train plain wrong --epochs 1 --log "$work/log"
says 'the loss is NaN' 'data       x' 'clean the data' \
    '1 of 1024 numbers are not finite in this input, the first in sample 77 of the data'
expect 'the log' 'data x 1' "$(python3 -c 'import json, sys
found = [json.loads(line) for line in open(sys.argv[1]) if "traced" in line][0]
print(found["fault"], found["path"], found["result"]["nans"])' "$work/log")"

# ---- types: the lines that are proposed mend the training

train cubes large --steps 7
says 'nothing more is traced'
train cubes large --steps 3 --log "$work/log"
says 'iteration 1: the loss is NaN' 'overflow   mul_1 (mul)  cubes.amp:5' 'f16 holds 65504 at most' \
    'reads      mul' 'in fp32    the step is finite' '"mul_1": f32   in the precision block' '"fc3.linear": f32' \
    'iteration 2: the loss is NaN, as before: overflow mul_1'
lines=$(python3 -c 'import json, sys
found = [json.loads(line) for line in open(sys.argv[1]) if "traced" in line][0]
print("\n".join(f"    \"{path}\": f32" for path in found["mend"]))' "$work/log")
make mended $'precision fp16 {\n'"$lines"$'\n}' "$cubes"
train mended large --steps 60 --log "$work/log"
expect 'it trains with them' '0' "$(grep -c '"expected": false' "$work/log")"
expect 'and every loss is finite' '0' "$(grep -c '"loss": "' "$work/log")"

run 0 "$amprun" suggest "$work/cubes.so" --data "safetensors:$work/large.st" --batch 64 --steps 8
says 'as it is: not every loss is finite' '"mul_1": f32   # iteration 1: overflow, mul_1' '"fc3.linear": f32' \
    'with these lines: every loss is finite'
run 0 "$amprun" suggest "$work/plain.so" --data "safetensors:$work/good.st" --batch 64 --steps 8
says 'no line is proposed'
run 2 "$amprun" suggest "$work/plain.so"
says 'suggest needs --data'
run 2 "$amprun" suggest "$work/plain.so" --data "safetensors:$work/good.st" --device null
says '--device null'

# one sample in a batch that comes later, when the scaler has counted steps
make_data outlier 8
python3 - "$work/outlier.st" <<'END'
import struct
import sys

with open(sys.argv[1], "r+b") as file:
    head = struct.unpack("<Q", file.read(8))[0]
    file.seek(8 + head + 4 * 16 * 200)
    row = struct.unpack("<16f", file.read(64))
    file.seek(-64, 1)
    file.write(struct.pack("<16f", *(30 * v for v in row)))
END
train cubes outlier --epochs 1
says 'overflow   mul_1' 'in fp32    the step is finite' '"mul_1": f32   in the precision block'

# ---- a model whose parameters learn it: the step is found again

make roots 'precision bf16 { }' $'    y = linear(log(h * h); out = 4) as fc2'
status=0
"$amprun" train "$work/roots.so" --data "safetensors:$work/good.st" --batch 64 --steps 40 --trace-nonfinite \
    >"$work/told" 2>&1 || status=$?
out=$(<"$work/told")
expect 'training ends, as its parameters are lost' 1 "$status"
says 'iteration 1: ' 'undefined  log  roots.amp:4' 'the op has no finite result for what it reads' \
    'in fp32    the step is not finite either' 'an epsilon'
make steep 'precision bf16 { }' "$plain" 1e30
"$amprun" train "$work/steep.so" --data "safetensors:$work/good.st" --batch 64 --steps 40 --trace-nonfinite \
    >"$work/told" 2>&1
out=$(<"$work/told")
says 'overflow   ' 'a lower learning rate'

# ---- one step, and CUDA

run 0 "$amprun" train "$work/plain.so" --data "safetensors:$work/good.st" --steps 1 --save "$work/plain.weights"
run 0 "$amprun" step "$work/plain.so" --weights "$work/plain.weights" --inputs "$work/wrong.st" --trace-nonfinite
says 'data       x' 'sample 77 of the batch'
if "$ampc" "$work/plain.amp" --target cuda --gpu-arch sm_80 -o "$work/probe.so" 2>"$work/probe.err"; then
    run 0 tools/with-fakecuda --arch 80 "$amprun" step "$work/plain.so" --weights "$work/plain.weights" \
        --inputs "$work/wrong.st" --device cuda --trace-nonfinite
    says 'data       x' 'sample 77 of the batch'
elif lacks_nvrtc "$work/probe.err"; then
    skipped "tracing on CUDA: $lacking"
else
    failed 'ampc --gpu-arch sm_80' "$(<"$work/probe.err")"
fi

# ---- watching a log

train cubes large --steps 12 --stats 4 --log "$work/log"
run 0 "$amprun" watch "$work/log"
says 'cubes, min-cast: iteration 12, 0 updates, 12 skipped' 'loss scale ' ', as a power of 2' 'overflow' \
    'in f16, iteration 12:' 'to zero  overflow not finite' 'was not finite: overflow mul_1  cubes.amp:5'
train plain good --steps 40 --log "$work/log"
run 0 "$amprun" watch "$work/log"
says 'plain, min-cast: iteration 40, 40 updates, 0 skipped' 'loss '
# In braille where the locale has it, else in ASCII; a terminal that does not clear its screen is drawn on once.
run 0 env LC_ALL=C.UTF-8 "$amprun" watch "$work/log"
holds 'braille' python3 -c 'import sys
assert any(0x2800 < ord(c) < 0x2900 for c in open(sys.argv[1], encoding="utf-8").read())' "$work/.out"
run 0 env LC_ALL=C TERM=dumb "$amprun" watch "$work/log"
says 'plain, min-cast: iteration 40, 40 updates, 0 skipped' 'loss '
holds 'ASCII alone' python3 - "$work/.out" <<'PLAIN'
import re, sys
lines = open(sys.argv[1], encoding="ascii").read().splitlines()
first = next(i for i, line in enumerate(lines) if line.startswith("loss "))
curve = [line[11:] for line in lines[first + 1 : first + 9]]
assert all(set(row) <= set(" .':") for row in curve) and sum(c != " " for row in curve for c in row) >= 30, curve
assert not re.search(r"\x1b", "".join(lines))
PLAIN
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    run 0 timeout 20 script -qec "env LC_ALL=C TERM=dumb $amprun watch $work/log" /dev/null </dev/null
    says 'plain, min-cast: iteration 40'
    expect 'no move of the cursor' 0 "$(grep -c $'\033' "$work/.out")"
    # What is reported meanwhile replaces the moving line, and is broken between words.
    said=$work/said
    train cubes large --steps 12
    cat "$work/.err" "$work/.out" >"$said"
    training="$amprun train $work/cubes.so --data safetensors:$work/large.st --batch 64 --steps 12 --trace-nonfinite"
    run 0 script -qec "stty cols 80; env TERM=xterm LC_ALL=C.UTF-8 NO_COLOR=1 $training" /dev/null </dev/null
    holds 'a terminal of 80 columns shows whole words, and each report on a line of its own' \
        python3 - "$work/.out" "$said" <<'SCREEN'
import re, sys
typed, said = (open(name, encoding="utf-8", newline="").read() for name in sys.argv[1:])
lines = [line.rstrip("\r").split("\r\x1b[K")[-1] for line in typed.split("\n")]
report = re.search(r"amprun: iteration 1:.*?(?=\namprun: |\nepoch|\Z)", said, re.S).group()
assert max(map(len, lines)) <= 80, max(lines, key=len)
assert any(line.startswith("amprun: iteration 1:") for line in lines), lines
assert " ".join(report.split()) in " ".join(" ".join(lines).split()), (report, lines)
assert max(map(len, report.split("\n"))) > 80, "nothing was broken"
SCREEN
else
    skipped 'no pseudo-terminal can be made here, so nothing is drawn on one'
fi
printf '{"iteration": 41, "los' >>"$work/log" # a line that is being written
run 0 "$amprun" watch "$work/log"
says 'iteration 40'
printf 'x\n' >>"$work/log"
run 1 "$amprun" watch "$work/log"
says 'line 42: ' 'is it a log of amprun train?'
expect 'and nothing besides' 1 "$(grep -c amprun: <<<"$err")"
printf '{"model": "a\\u001b[2J", "policy": "b"}\n' >"$work/log"
run 0 "$amprun" watch "$work/log"
says 'a?[2J, b: iteration 0'
printf '{"stats": 1, "tensors": [{"name": "h"}, 7]}\n{"stats": 2}\n[]\n7\n' >"$work/log" # not what training writes
run 0 "$amprun" watch "$work/log"
printf '{"stats": 3, "tensors": [{"name": "h", "dtype": "f16", "count": 8, "zeros": 0, "nans": 1, "infinities": 1,
    "largest": 1, "f16": {"flushed": 0, "subnormal": 0, "overflow": 0}}]}' | tr -d '\n' >"$work/log"
echo >>"$work/log"
run 0 "$amprun" watch "$work/log"
says 'h                                f16            1    0.000%    0.000%    25.000%' # of what is broken already
run 1 "$amprun" watch "$work/nosuch"
says 'nosuch: '

# ---- what cannot be done

run 2 "$amprun" train "$work/plain.so" --data "safetensors:$work/good.st" --profile -
says '--profile -: a trace is no text'

run 2 "$amprun" train "$work/plain.so" --data "safetensors:$work/good.st" --device null --stats 2 --log "$work/log"
says 'train --stats: device null computes nothing to count; choose cpu or cuda'
run 2 "$amprun" train "$work/plain.so" --data "safetensors:$work/good.st" --device null --trace-nonfinite
says 'device null computes nothing'
mkdir "$work/no_compiler"
run 0 env "PATH=$work/no_compiler" "$amprun" train "$work/plain.so" --data "safetensors:$work/wrong.st" --batch 64 \
    --epochs 1 --trace-nonfinite
says '--trace-nonfinite: ' 'nothing more is traced'
run 1 env "TMPDIR=$work/nosuch" "$amprun" train "$work/plain.so" --data "safetensors:$work/good.st" --trace-nonfinite
says 'TMPDIR'

finish
