#!/usr/bin/env bash
# dist/gpu-check (with --whole: as it goes to a GPU) runs to its end under the stand-in, says what fails and goes on after it.
# Takes long.
set -uo pipefail
source tests/checks/checks.bash
build //fakecuda:libcuda.so.1

form=--stand-in
[[ ${1:-} != --whole ]] || form=
run 0 tools/make-dist $form
holds 'dist is below 48 MiB' test "$(du -sm dist | cut -f1)" -lt 48
run 0 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report"
says '159 kernels of' '2 tests of 2 passed on the device' 'steps follow the CPU' 'of processor time a call' 'AdamW over' 'TFLOP/s' \
    'of a copy' '    pageable ' '    pinned ' '    device ' '13 passed, 0 failed, 4 skipped' 'the stand-in has no wgmma' 'conformance of cuBLASLt: 24 of 24 tests passed' '16 x 10 x 32 forward + bias: cuBLASLt ' 'with our bits ' '(3 of 4)' 'ours, small: times the speed of its own FP32: tf32' 'gan-fp16, 16 samples: 2 steps follow the CPU' 'small-fp16 without supersteps' 'small-fp16 without library' 'small-fp16 without own-bits' 'small-fp16 without overlap' 'small-fp16 without carveouts' 'tabular fp16 batch 16' 'the model of time'
# part STATUS NAME...: what the report says of parts
part() {
    local status=$1 name
    shift
    for name in "$@"; do
        expect "part $name" "$status" "$(python3 - "$work/report/report.json" "$name" <<'PYTHON'
import json, sys
print(next((part["status"] for part in json.load(open(sys.argv[1]))["parts"] if part["part"] == sys.argv[2]), "missing"))
PYTHON
)"
    done
}
part passed facts library kernels conformance follow training steps forms tables optimizer matmul examples precisions
part skipped sanitizer profile prepare
part 'not run' probe
holds 'the text report is there' grep -q '13 passed, 0 failed' "$work/report/report.txt"

run 0 bench/gpu/classes "$work/report/report.json"
says '### small-fp16, 16 samples' '| products forward | ' '| both gradients | ' '| optimizer | ' 'A step, inputs on the device: '
expect 'classes hold every launch' "$(python3 -c '
import json, sys
print(next(len(part["data"][0]["run"]["kernels"]) for part in json.load(open(sys.argv[1]))["parts"] if part["part"] == "tables"))
' "$work/report/report.json")" "$(sed -n 's/^| sum | \([0-9]*\) .*/\1/p' <<<"$out")"

# 128 tiles of 128 x 192, 12 steps of k: 6.69 us, 0.92 for their results, 3 for the call
kernel='"kind": "product", "flops": 1e9, "bytes": 1e7, "tile": [128, 128], "sizes": [4096, 768, 768], "products": [[3145728, 768]]'
printf '{"model": "m", "roofline": {"batch": 8, "kernels": [%s, %s, %s]}}\n' \
    "{\"title\": \"q: linear + bias\", \"microseconds\": 20.7, $kernel}" \
    "{\"title\": \"r: linear + gelu\", \"microseconds\": 14, $kernel}" \
    "{\"title\": \"s: conv2d\", \"microseconds\": 7, ${kernel/768, 768]/768, 768, 3, 3, 1, 1]}}" >"$work/library.json"
run 0 bench/gpu/classes --library "$work/library.json"
says '| sum | 3 | 1 | 42 | 32 | ' 'need no kernel of elements: 10 us' '| 4096 x 768 x 768 | products forward | 1 | 128 x 128 | 20.7 | 128 x 192 | 10.6 |' \
    '| 4096 x 768 x 768 + gelu | products forward | 1 | 128 x 128 | 14.0 | 128 x 192 | ' ' | no |' 'not dense, or beside such: 1, 7 us.'

# planted: a driver that cannot start a kernel any more after the tenth: nothing is taken for right, and all parts are tried
run 1 tools/with-fakecuda --fail 'cuLaunchKernel:10:719,cuLaunchKernelEx:1:719' dist/gpu-check --stand-in --out "$work/report" --only kernels,follow,optimizer,probe
says 'CUDA_ERROR_LAUNCH_FAILED' 'FAIL '
part failed kernels follow optimizer probe
# a profiler that has only the command line and the file format of Nsight Compute
mkdir "$work/profiler"
cat >"$work/profiler/ncu" <<'NCU'
#!/usr/bin/env bash
while [[ $1 != bin/* ]]; do
    [[ $1 != --log-file ]] || log=$2
    shift
done
printf '==PROF== Connected\n"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n' >"$log"
"$@" | python3 -c '
import json, sys
for number, kernel in enumerate(json.load(sys.stdin)["kernels"]):
    print(f"\"{number}\",\"" + kernel["name"] + "\",\"GPU Speed Of Light\",\"Duration\",\"us\",\"7.5\"")' >>"$log"
NCU
chmod +x "$work/profiler/ncu"
PATH="$work/profiler:$PATH" run 0 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report" --only profile
says 'small-fp16 k' 'Duration 7.5 us' '1 passed, 0 failed, 0 skipped'
expect 'kernels that were profiled' 6 "$(grep -c '^small-fp16 k' "$work/report/report.txt")"
printf '#!/bin/sh\necho "==ERROR== ERR_NVGPUCTRPERM"\nexit 1\n' >"$work/profiler/ncu"
PATH="$work/profiler:$PATH" run 0 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report" --only profile
says 'ERR_NVGPUCTRPERM' '0 passed, 0 failed, 1 skipped'

# without cuBLASLt, and a driver beside which there is none
mkdir "$work/alone"
cp "$bin/fakecuda/libcuda.so.1" "$work/alone/"
FAKECUDA_LIBRARY=$work/alone/libcuda.so.1 CUBLASLT_PATH=$work/alone run 1 tools/with-fakecuda dist/gpu-check --stand-in \
    --out "$work/report" --only library --models none
says 'conformance of cuBLASLt: not run: cuBLASLt is not installed' "searched: CUBLASLT_PATH=$work/alone"

# machine code is what conformance loads: the stand-in has no use for it
AMP_KERNELS_AS=cubin run 1 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report" --only conformance
says 'this stand-in runs PTX only'
if [[ ${1:-} == --whole ]]; then
    # a machine on which the programs do not start: what measures is built there
    mkdir "$work/old"
    tar -C "$work/old" -xJf dist/programs.tar.xz
    printf '#!/bin/sh\necho "amprun: version GLIBC_2.99 not found" >&2\nexit 1\n' >"$work/old/bin/amprun"
    cp dist/programs.tar.xz "$work/carried.tar.xz"
    tar -C "$work/old" -cJf dist/programs.tar.xz bin models tests
    CFLAGS=-O0 run 0 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report" --only facts,kernels,steps,optimizer,conformance
    mv "$work/carried.tar.xz" dist/programs.tar.xz
    says 'GLIBC_2.99 not found' 'built here by make' 'of processor time a call' 'AdamW over' 'on_device is not built here' '3 passed, 0 failed, 2 skipped'
fi
# no time: nothing that was not run is a failure
run 0 tools/with-fakecuda dist/gpu-check --stand-in --out "$work/report" --limit 8 --only conformance,sanitizer
part 'not run' conformance
run 2 dist/gpu-check --stand-in --only none
says 'there is no part none'
finish
