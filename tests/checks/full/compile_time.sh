#!/usr/bin/env bash
# Compile time (of the processor) is linear: a linear and a relu, repeated up to 100,000 times, up to the plan; and elementwise ops in one
# chain, all different, up to the model.so, which is the C compiler's time; large models in 8 seconds for the CPU, and one for CUDA in 20 on
# two processors. The exponent of a line through log(time) over log(count) is at most 1.15; --layers "100 1000" and --ops "500 2000" measure
# others.  100,000 layers need 20 GB of memory.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
layers='100 1000 10000 100000' ops='1000 4000 16000'
while (($#)); do
    case $1 in
    --layers) layers=$2 ;;
    --ops) ops=$2 ;;
    esac
    shift 2
done

cat >"$work/deep.amp" <<'AMP'
amp 1
const LAYERS = 100
model deep(x: f32[N, 8]) -> x {
    repeat i in 0..LAYERS { x = relu(linear(x; out = 8) as h[i]) }
}
train deep {
    input targets: i32[N]
    loss = cross_entropy(x, targets)
    optimizer = sgd(0.1)
}
precision fp16 { loss_scale = dynamic(init = 65536.0) }
AMP

cat >"$work/chain.amp" <<'AMP'
amp 1
const OPS = 1000
model chain(x: f32[N, 8]) -> h {
    h = x
    repeat i in 0..OPS / 2 { h = tanh(h) * (1.0 + 0.001 * i) }
}
AMP

# What `times` writes: the second line is the processor time of this shell's children.
seconds() {
    python3 - "$work/$1" "$work/$2" <<'PYTHON'
import re, sys
first, last = (sum(60 * int(m) + float(s) for m, s in re.findall(r"(\d+)m([\d.]+)s", open(path).readlines()[1])) for path in sys.argv[1:])
print(round(last - first, 3))
PYTHON
}

# exponent NAME CONST COUNTS OPTIONS...: one line for each count
exponent() {
    local name=$1 const=$2 counts=$3 count exponent
    shift 3
    for count in $counts; do
        times >"$work/first"
        run 0 "$bin/tools/ampc" "$work/$name.amp" -D "$const=$count" "$@" -o "$work/$name.out"
        times >"$work/last"
        printf '%s %s %s\n' "$count" "$(seconds first last)" "$(wc -c <"$work/$name.out")" | tee -a "$work/$name.times"
    done
    exponent=$(python3 - "$work/$name.times" <<'PYTHON'
import math, sys
# below a tenth of a second starting the program is what is measured
rows = [(float(n), float(t)) for n, t, _ in map(str.split, open(sys.argv[1]))]
points = [(math.log(n), math.log(t)) for n, t in rows if t > 0.1] or [(math.log(n), math.log(t)) for n, t in rows]
mx, my = (sum(axis) / len(points) for axis in zip(*points))
spread = sum((x - mx) ** 2 for x, _ in points)
print(f"{sum((x - mx) * (y - my) for x, y in points) / spread:.3f}" if spread else "1.000")
PYTHON
    )
    printf '%s: exponent %s\n' "$name" "$exponent"
    holds "$name: the exponent is at most 1.15" python3 -c "assert $exponent <= 1.15"
}

# bound NAME FILE: a large model, in its three instruction sets, takes at most 8 seconds of the processor.
bound() {
    times >"$work/first"
    run 0 "$bin/tools/ampc" "$2" --target cpu -o "$work/$1.so"
    times >"$work/last"
    printf '%s: %s s of the processor\n' "$1" "$(seconds first last)"
    holds "$1: 8 seconds of the processor" python3 -c "assert $(seconds first last) <= 8"
}

# cuda_bound FILE: its CUDA code, for one architecture, takes at most 20 seconds on two idle processors: 40 of the
# processor, and on two or more also by the clock.
cuda_bound() {
    local start end
    times >"$work/first"
    start=$(date +%s.%N)
    run 0 "$bin/tools/ampc" "$1" --target cuda --precision fp16 --gpu-arch sm_90 -o "$work/cuda.so"
    end=$(date +%s.%N)
    times >"$work/last"
    printf '%s for sm_90: %s s of the processor, %.1f s\n' "$1" "$(seconds first last)" "$(python3 -c "print($end - $start)")"
    holds "$1: CUDA code in 40 seconds of the processor" python3 -c "assert $(seconds first last) <= 40"
    [[ $(nproc) == 1 ]] || holds "$1: CUDA code in 20 seconds" python3 -c "assert $end - $start <= 20"
}

exponent deep LAYERS "$layers" --stop-after=plan --emit ir --max-ops 10000000
exponent chain OPS "$ops" --isa portable --target cpu
for model in gpt/gpt2 bert/bert resnet/resnet50; do
    [[ ! -e examples/$model.amp ]] || bound "${model#*/}" "examples/$model.amp"
done
if python3 tests/checks/sass.py 2>/dev/null; then
    cuda_bound examples/resnet/resnet50.amp
else
    skipped 'there is no NVRTC: the time of CUDA code is not measured (tools/setup --nvrtc)'
fi
finish
