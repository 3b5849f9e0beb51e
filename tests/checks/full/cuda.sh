#!/usr/bin/env bash
# tests/checks/cuda.sh at length: every architecture and precision, each buffer in an allocation of its own and all in one,
# many sequences of the loss scaler, random programs, and every op on every architecture.
set -uo pipefail
source tests/checks/cuda.bash
cuda_setup

# ---- training ---------------------------------------------------------------------------------------------------------------------

for arch in 75 80 86 89 90 120; do
    for precision in fp16 bf16 tf32 fp32; do
        # sm_75 has neither: cuda.sh sees that they are refused
        if [[ $arch == 75 && $precision == [bt]f* ]]; then continue; fi
        steps=2
        [[ $precision != fp16 ]] || steps=20
        follows dropout $precision $arch $steps
        follows odd $precision $arch $steps
        follows mlp $precision $arch $steps -D HIDDEN=96
        follows cnn $precision $arch 2
    done
done

waits_not 2 # micro-batches

# ---- loss scaling -------------------------------------------------------------------------------------------------------------------

for arch in 75 80 86 89 90 120; do
    for setting in '2.0 0.5 1' '2.0 0.5 3' '2.0 0.5 50' '1.5 0.75 3' '4.0 0.125 2' '1.001 0.9 1' '3.0 0.3 50'; do
        scales_alike $arch 40 $setting
    done
    scales_alike $arch 20 2.0 0.5 7 '' # the default floor and ceiling
done
for setting in '2.0 0.5 2' '2.0 0.5 7' '2.0 0.5 333' '2.0 0.5 2000'; do scales_alike 90 1000 $setting; done

# ---- random programs --------------------------------------------------------------------------------------------------------------

# COUNT of them on sm_80 and as many others on sm_90, beside the CPU, and as many with a T: tests/random/README.md
build //tests/random:random_programs
count=${COUNT:-100}
runs=(80 90 '80 --size T' '90 --size T')
for run in "${runs[@]}"; do
    read -r arch size <<<"$run"
    # shellcheck disable=SC2086 # of two words, or none
    tools/with-fakecuda --arch $arch "$bin/tests/random/random_programs" $size --first $arch --step 97 --count "$count" \
        --device cuda --cc "$PWD/tests/random/cc_unoptimised" --folder "$work" >"$work/random.$run" 2>&1 &
done
wait
for run in "${runs[@]}"; do
    grep -v ' passed, \|^seed' "$work/random.$run"
    read -r right _ wrong _ without _ < <(tail -n 1 "$work/random.$run" | tr -d ,)
    if [[ ${wrong:-} =~ ^[0-9]+$ && $((right + wrong + without)) == "$count" ]]; then
        ((good += right, bad += wrong))
        printf 'sm_%s: %d random programs as on the CPU, %d without CUDA code\n' "$run" "$right" "$without"
    else
        failed "random programs on sm_$run ended early" "$(tail -n 3 "$work/random.$run")"
    fi
done

# ---- every op -----------------------------------------------------------------------------------------------------------------------

if [[ -z ${AMP_PROGRAMS:-} ]]; then
    status=0
    bazel test --test_tag_filters= --build_tag_filters= --test_env=AMP_CUDA_ARCHS=75,80,86,89,90,120 --test_env=AMP_FAILURES=all --test_timeout=14400 \
        //tests/conformance:cuda_ops_test //tests/conformance:cuda_counters_test //tests/codegen/cuda:all //tests/e2e:cuda_test \
        //tests/e2e:on_cuda_all_test //tests/runtime/device/cuda:generated_failure_test >"$work/.ops" 2>&1 || status=$?
    holds 'every op on every architecture, every failure of the driver' test $status = 0
    ((status == 0)) || tail -n 20 "$work/.ops"
fi
finish
