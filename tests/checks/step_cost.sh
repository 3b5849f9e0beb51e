#!/usr/bin/env bash
# Instructions of libamp in a call of amp_step without a report, with inputs on the device, counted by valgrind under a
# driver that does nothing. They must not grow with the model's buffers: many layers take about what few do.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //bench/gpu:step_bench
if ! answers valgrind --version || ! links cc stdlib.h; then
    skipped "$lacking"
    finish
    exit
fi
export AMPC_CUDA_COMPILE=quick AMPC_CACHE_DIR=$work/cache
mkdir "$work/driver"
run 0 cc -shared -fPIC -I. -w -DTINY_RESULT=CU_SUCCESS -o "$work/driver/libcuda.so.1" tests/checks/null_driver.c \
    tests/runtime/device/cuda/tiny_driver_rest.c
quick_models

# model LAYERS: a perceptron with LAYERS hidden layers, too wide to be one launch
model() {
    cat >"$work/model.amp" <<AMP
amp 1
block layer(x) { return relu(linear(x; out = 136) as fc) }
model m(x: f32[N, 136]) -> y {
    repeat i in 0..$1 { x = layer(x) as h[i] }
    y = linear(x; out = 4) as head
}
train m {
    input labels: i32[N]
    loss = cross_entropy(y, labels)
    optimizer = adamw(lr = 0.001)
}
AMP
    run 0 "$bin/tools/ampc" "$work/model.amp" --precision fp16 --target cuda -o "$work/model.so"
}

bench() { # STEPS COMMAND...
    LD_LIBRARY_PATH=$work/driver${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "${@:2}" "$bin/bench/gpu/step_bench" \
        --inputs device "$work/model.so" 2 labels=4 <<<"$1"
}

# counted STEPS: of libamp, in 2 * STEPS calls
counted() {
    bench "$1" valgrind --tool=callgrind --toggle-collect=amp_step --callgrind-out-file="$work/calls" >&2 || return
    callgrind_annotate --threshold=100 "$work/calls" | python3 -c '
import re, sys
counts = re.findall(r"^ *([\d,]+) \(.*?%\).*\[.*/step_bench\]", sys.stdin.read(), re.M)
print(sum(int(count.replace(",", "")) for count in counts))'
}

# most LAYERS BOUND: of the last 20 of 40 calls, so that nothing of a first one is counted
most() {
    local ten twenty each
    model "$1"
    run 0 bench 1 env # compiles
    if lacks_nvrtc <(printf '%s' "$err"); then
        skipped "$lacking"
        return
    fi
    ten=$(counted 10 2>"$work/valgrind") twenty=$(counted 20 2>"$work/valgrind")
    each=$(((${twenty:-0} - ${ten:-0}) / 20))
    printf '%s layers: %s instructions a step\n' "$1" "$each"
    holds "$1 layers: instructions are counted" test "$each" -gt 1000
    holds "$1 layers: at most $2 instructions a step" test "$each" -le "$2"
}
most 2 6000
most 24 7000
finish
