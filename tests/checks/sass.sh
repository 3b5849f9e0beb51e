#!/usr/bin/env bash
# The machine code of products, for four architectures, without a GPU: instructions in the main loop for each HMMA, and
# no local memory (sass.py). With AMP_SHOW=1 it also prints what was found.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
PATH=$PATH:$PWD/.nvdisasm/nvidia/cu13/bin
if ! command -v nvdisasm >/dev/null || ! python3 tests/checks/sass.py 2>/dev/null; then
    skipped 'there is no NVRTC or no nvdisasm (tools/setup --nvrtc)'
    finish
fi
for size in 1024 4096 16384; do
    run 0 "$bin/tools/ampc" bench/gpu/models/chain.amp --precision fp16 --target cuda -D "SIZE=$size" --emit cu \
        -o "$work/$size.cu"
    run 0 python3 tests/checks/sass.py "$work/$size.cu" 80 89 90 120
    [[ -z ${AMP_SHOW:-} ]] || printf '%s\n' "$out"
    says 'sm_120'
    holds "$size: every product has its loop" test "$(grep -c '^ok' <<<"$out")" -ge 28
done
run 0 "$bin/tools/ampc" bench/gpu/models/convs.amp --precision fp16 --target cuda --emit cu -o "$work/convs.cu"
run 0 python3 tests/checks/sass.py "$work/convs.cu" 80 89 90 120
[[ -z ${AMP_SHOW:-} ]] || printf '%s\n' "$out"
holds 'every convolution has its loop' test "$(grep -c '^ok.*\(windows\|elements\)' <<<"$out")" -ge 36
finish
