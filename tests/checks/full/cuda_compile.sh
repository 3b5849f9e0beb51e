#!/usr/bin/env bash
# Every kernel of the examples, compiled by NVRTC for one architecture of each generation that it knows, the small
# examples' kernels for all of them: no spills and no stack. And how long one kernel takes on one processor (less than
# 150 ms for the median, less than 40 ms for a trivial one, on a machine that does nothing else and on which NVRTC
# itself is not slower than that). Half an hour on two processors; with AMP_ALL all architectures for all examples,
# which takes hours.
set -uo pipefail
source tests/checks/cuda.bash
cuda_setup

# Of NVIDIA's architectures since Turing, those that this NVRTC compiles for.
known=()
printf 'amp 1\nmodel trivial(x: f32[N, 64]) -> y { y = x + 1.0 }\n' >"$work/trivial.amp"
for arch in 75 80 86 87 88 89 90 100 103 110 120 121; do
    ! "$ampc" "$work/trivial.amp" --gpu-arch sm_$arch --isa portable -o "$work/known.so" 2>/dev/null || known+=("$arch")
done
printf 'architectures: %s\n' "${known[*]}"
holds 'sm_80 and sm_90 are among them' grep -q ' 80 .* 90 ' <<<" ${known[*]} "

# What a model's machine code needs, a line for each kernel and architecture.
uses() { objcopy -O binary --only-section=.amp.gpu.uses "$1" /dev/stdout | tr -d '\0'; }

# archs_of FILE.cu: of a generation the first is compiled for every model
archs_of() {
    local IFS=, arch archs=() functions
    functions=$(grep -c '^extern "C" __global__' "$1")
    for arch in "${known[@]}"; do
        if [[ -n ${AMP_ALL:-} || " 75 80 90 100 120 " == *" $arch "* || $functions -le 40 ]]; then
            archs+=("sm_$arch")
        fi
    done
    printf '%s' "${archs[*]}"
}
for model in examples/*/*.amp; do
    for precision in fp16 bf16 tf32 fp32; do
        name="$(basename "$model") in $precision"
        if ! "$ampc" "$model" --precision $precision --target cuda --emit cu -o "$work/example.cu" 2>"$work/why"; then
            skipped "$name has no CUDA code: $(<"$work/why")"
            continue
        fi
        archs=$(archs_of "$work/example.cu")
        run 0 "$ampc" "$model" --precision $precision --isa portable --gpu-arch "$archs" -o "$work/example.so"
        uses "$work/example.so" >"$work/uses"
        printf '%s: %s\n' "$name" "$(awk '{ kernels[$1 $2]; archs[$3]; if ($5 > most) most = $5 } END { print length(kernels), "kernels,", length(archs), "architectures, at most", most, "registers" }' "$work/uses")"
        expect "$name: kernels that spill or use the stack" '' "$(awk '$9 || $11' "$work/uses")"
        # sm_75 has no bf16 and no tf32
        wanted=$(tr , '\n' <<<"$archs" | grep -c sm_)
        holds "$name: code for every architecture" test "$(awk '{ print $3 }' "$work/uses" | sort -u | wc -l)" -ge $((wanted - 1))
    done
done

# ---- how long it takes ------------------------------------------------------------------------------------------------------------

# times MODEL ARCH: milliseconds of each kernel, one after the other, each the least of three
times() {
    for _ in 1 2 3; do
        taskset -c 0 "$ampc" "$1" --isa portable --gpu-arch "sm_$2" --time-passes -o "$work/timed.so" 2>&1 | awk '$1 == "nvrtc" { print $2, $4 }'
    done | sort -k 1,1 -k 2,2n | awk '$1 != last { print $2; last = $1 }' | sort -n
}
median() { awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
busy() { python3 -c '
import os, time
def idle(): return sum(map(int, open("/proc/stat").readline().split()[4:6])) / os.sysconf("SC_CLK_TCK")
before, start = idle(), time.time(); time.sleep(2)
print(int((idle() - before) / (time.time() - start) / os.cpu_count() < 0.9))'; }
for arch in 75 90 120; do
    [[ " ${known[*]} " == *" $arch "* ]] || continue
    kernel=$(times examples/fashion_mnist/mlp.amp $arch | median) trivial=$(times "$work/trivial.amp" $arch | head -n 1)
    floor=$(taskset -c 0 python3 tests/checks/nvrtc_floor.py $arch)
    printf 'sm_%s: mlp.amp: median %s ms a kernel; a trivial one: %s ms; one assignment, without anything of ours: %s ms\n' $arch "$kernel" "$trivial" "$floor"
    if [[ $(busy) == 1 ]]; then
        skipped 'the machine is busy: compile times are not judged'
        continue
    fi
    holds "sm_$arch: median below 150 ms" awk "BEGIN { exit !($kernel < 150) }"
    # Where NVRTC itself needs most of the 40 ms for nothing, what we add to that is judged.
    holds "sm_$arch: a trivial kernel below 40 ms" awk "BEGIN { exit !($trivial < 40 || ($floor > 25 && $trivial < 1.5 * $floor)) }"
done
finish
