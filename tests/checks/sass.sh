#!/usr/bin/env bash
# The machine code of products and attention, without a GPU: instructions in the main loop for each HMMA, no local
# memory, accesses of 16 bytes, and fences of one thread (sass.py), these of every kernel whose blocks wait for one
# another; each form for one architecture here, for four in full/sass.sh.
# With AMP_SHOW=1 it also prints what was found.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc
PATH=$PATH:$PWD/.nvdisasm/nvidia/cu13/bin
if ! answers nvdisasm --version || ! answers python3 tests/checks/sass.py; then
    skipped "$lacking (tools/setup --nvrtc)"
    finish
fi
# looks_at MODEL WORD LEAST EPILOGUES ARCH.. [-- OPTION..]: of each architecture at least LEAST kernels that read as
# WORD says, and EPILOGUES that read a matrix; products of attention are as in chain. With AMP_ALL
# (tests/checks/full/sass.sh) for every architecture.
looks_at() {
    local model=$1 word=$2 least=$3 epilogues=$4 archs=()
    shift 4
    while (($# > 0)) && [[ $1 != -- ]]; do archs+=("$1") && shift; done
    [[ -z ${AMP_ALL:-} ]] || archs=(80 89 90 120)
    run 0 "$bin/tools/ampc" "bench/gpu/models/$model.amp" --precision fp16 --target cuda --emit cu \
        -o "$work/$model.cu" "${@:2}"
    run 0 python3 tests/checks/sass.py "$work/$model.cu" "$word" "${archs[@]}"
    [[ -z ${AMP_SHOW:-} ]] || printf '%s\n' "$out"
    holds "$model ${*:2}: every kernel has its loop" \
        test "$(grep -c "^ok.*HMMA" <<<"$out")" -ge $((least * ${#archs[@]}))
    holds "$model ${*:2}: every epilogue that reads a matrix" \
        test "$(grep -c "^ok.*epilogues:" <<<"$out")" -ge $((epilogues * ${#archs[@]}))
}

looks_at chain '' 7 4 80 -- -D SIZE=4096
looks_at chain '' 7 3 90 -- -D SIZE=1024
[[ -z ${AMP_ALL:-} ]] || looks_at chain '' 7 4 89 -- -D SIZE=16384
looks_at attention attention 3 0 90 -- -D HEADS=64
if [[ -n ${AMP_ALL:-} ]]; then
    looks_at attention attention 3 0 120 -- -D WIDTH=128 -D HEADS=32
    looks_at attention_mask attention 3 0 90 --
fi
looks_at attention_mask attention 3 0 120 -- -D HEADS=12
looks_at convs '' 9 5 90

# supersteps, phases of sums down columns, sums of several blocks
archs=(90)
[[ -z ${AMP_ALL:-} ]] || archs=(75 80 89 90 120)
run 0 "$bin/tools/ampc" examples/tabular/tabular.amp --precision fp16 --target cuda --emit cu -o "$work/tabular.cu"
run 0 python3 tests/checks/sass.py --fences "$work/tabular.cu" "${archs[@]}"
[[ -z ${AMP_SHOW:-} ]] || printf '%s\n' "$out"
holds 'tabular: every fence is of one thread' test "$(grep -c '^ok' <<<"$out")" -ge $((4 * ${#archs[@]}))

# what gpu-check's part probe asks of a device
run 0 python3 tests/checks/wgmma.py ${AMP_ALL:+all}
says 'ok f16 128x256 s3 00 residual: '
finish
