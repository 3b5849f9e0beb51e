#!/usr/bin/env bash
# What CONTRIBUTING.md says of a new dtype, kind of kernels, form of a launch, pass and device is enough: they are
# added to a copy of the tree, by its steps alone. The copy builds, stores moments in the new type, looks up rows in
# kernels of the new kind on the CPU and on the stand-in for a GPU, launches kernels in the new form with the bits of
# each alone, dumps the new stage, and passes the cases of the new pass and the conformance suite on the new device.
set -uo pipefail
source tests/checks/checks.bash

copy=$work/copy
mkdir "$copy"
git ls-files -z | xargs -0 cp --parents -t "$copy" 2>/dev/null
cd "$copy" || exit 1
[[ -z ${NVRTC_PATH:-} ]] || export NVRTC_PATH
bazel() { command bazel --output_base="$work/output" "$@"; }
stop() {
    command bazel --output_base="$work/output" shutdown >/dev/null 2>&1
    chmod -R u+w "$work/output"
    finish
}

# ---- a pass: its file, its row in stages.def, its cases --------------------------------------------------------------

touch "$work/before" && sleep 0.1 # file times are a few milliseconds apart at least
cat >passes/rewrite/rename_results.c <<'PASS'
/* rename_results: a value that is a result gets the result's name.
 *
 *     %7 = add(%5, %6) : f32        =>     %total = add(%5, %6) : f32
 *     result total = %7                    result total = %total
 */
#include "passes/passes.h"

bool pass_rename_results(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        Func *f = c->m->funcs.data[i];
        for (int j = 0; j < f->results.len; j++)
            if (ir_def(f, f->results.data[j].value)) ir_rename(f, f->results.data[j].value, f->results.data[j].name);
    }
    return true;
}
PASS
row='STAGE(RENAME_RESULTS, rename_results, "rewrite", PASS_SKIPPED, "results get their names")'
sed -i "/^STAGE(DROP_VIEWS,/a $row" ir/stages.def
cat >tests/passes/cases/rename_results.ir <<'CASES'
# rename_results: a value that is a result gets the result's name.
# test: stage=drop_views pass=rename_results values=exact

## AResultGetsItsName
  input %x : f32[N, 4]
  %y = exp(%x) : f32[N, 4]
  %z = add(%y, %x) : f32[N, 4]
  result total = %z
---
  %y = exp(%x) : f32[N, 4]
  %total = add(%y, %x) : f32[N, 4]
  result total = %total

## AnInputKeepsItsOwn
# test: same
  input %x : f32[N, 4]
  %y = exp(%x) : f32[N, 4]
  result y = %y
  result copy = %x

## OtherValuesStay
# test: same
  input %x : f32[N, 4]
  %h = exp(%x) : f32[N, 4]
  %y = exp(%h) : f32[N, 4]
  result y = %y
CASES
# added WHAT: the files that were touched since $work/before
added() {
    touched=$(find . -type f -newer "$work/before" | sed 's,^./,,' | sort)
    printf '%s:\n%s\n' "$1" "$touched"
    files=$(wc -l <<<"$touched")
}
added 'a pass with its text test'
holds 'a pass with its text test takes 3 files' test "$files" -eq 3
cat >"$work/total.amp" <<'MODEL'
amp 1
model total(x: f32[N, 4]) -> total {
    total = sum(x * 2.0) + 1.0
}
MODEL

# ---- a dtype of a state: f8x, with the codes of f8v, for second moments ----------------------------------------------

# again FILE...: after each function, declaration and row of f8v the same of f8x
again() {
    local file
    for file in "$@"; do
        awk '/^[^ #].*f8v/ {
            block = $0
            if (/{$/) do { getline; block = block "\n" $0 } while (!/^}/)
            print block
            $0 = block
            gsub(/f8v/, "f8x"); sub(/\(F8V,/, "(F8X,")
        } { print }' "$file" >"$work/again"
        cp "$work/again" "$file"
    done
}
sed -i 's/AMP_DT_F8V = 11 /AMP_DT_F8X = 12, AMP_DT_F8V = 11 /' base/include/amp/base.h
again base/dtypes.def base/rounding.[ch] codegen/prelude/functions.h codegen/cpu/prelude/moments.h \
    codegen/cuda/prelude/memory.cuh
sed -i 's/second_moments.dtype = AMP_DT_F8V/second_moments.dtype = AMP_DT_F8X/' passes/training/low_states.c
cat >"$work/moments.amp" <<'MODEL'
amp 1
model m(x: f32[N, 4]) -> y { y = linear(x; out = 3) as fc }
train m {
    input t: f32[N, 3]
    loss = mse_loss(y, t)
    optimizer = adamw(0.01)
}
precision bf16 { moments = f8 }
MODEL

# ---- a kind of kernels: lookup, of the op gather, in at most 10 files ------------------------------------------------

touch "$work/before" && sleep 0.1
echo 'KERNEL(LOOKUP, lookup, gather, TILES, APART, 0.3, 0.5)' >>base/kernels.def
sed -i '/^static bool is_scatter/i static bool is_gather(const Op *o) { return o->code == OP_gather; }' ir/operands.c
sed -i 's/AMP_KERNEL_COLLECTIVE = 7/AMP_KERNEL_LOOKUP = 8, &/' runtime/include/amp/model_abi.h
last='[>:] AMP_KERNEL_COLLECTIVE\(;\|)\)' # the checks that name the last kind
sed -i "/$last/s/AMP_KERNEL_COLLECTIVE/AMP_KERNEL_LOOKUP/" $(grep -l "$last" runtime/model/*.c)
echo 'amp_status cuda_emit_lookup(CudaKernel *ck) { return cuda_emit_tile(ck); }' >>codegen/cuda/kinds/tile_kernel.c
added 'a kind of kernels'
holds 'a kind of kernels takes at most 10 files' test "$files" -le 10
cat >"$work/words.amp" <<'MODEL'
amp 1
model words(x: i32[N, 5]) -> y { y = relu(embedding(x; count = 9, dim = 40) as table) }
MODEL

# ---- a form of a launch: two neighbours of other code, in 2 files ----------------------------------------------------

touch "$work/before" && sleep 0.1
cat >passes/launch/pairs.c <<'PASS'
/* pairs.c: two neighbours of other code in one launch. */
#include "passes/launch/share.h"

static void add_one(Sharing *s, Launch *l) {
    if (l->by_columns || l->parts.len > 1 || l->first + l->count >= s->f->kernels.len) return;
    const int at = s->next;
    const Launch next = share_launch_at(s, l->first + l->count);
    vec_push(s->f->module->arena, &l->parts, next.parts.data[0]);
    if (next.parts.len > 1 || next.by_columns || !bundle_fits(s, l)) {
        l->parts.len--;
        s->next = at;
        return;
    }
    l->count += next.count;
    share_order_parts(s->facts, l);
}

bool pass_pairs(PassContext *c) { return share_launches(c, add_one); }
PASS
row='STAGE(PAIRS, pairs, "launch", PASS_SKIPPED, "two neighbours", WHERE(batches_updates))'
sed -i "/^STAGE(BUNDLE,/i $row" ir/stages.def
added 'a form of a launch'
holds 'a form of a launch takes 2 files' test "$files" -eq 2

# ---- a device: a copy of the skeleton, its rows ----------------------------------------------------------------------

mkdir runtime/device/copied
sed 's/skeleton/copied/g; s/SKELETON/COPIED/g; s#tests/conformance/#runtime/device/copied/#' \
    tests/conformance/skeleton_device.c >runtime/device/copied/copied_device.c
sed 's/skeleton/copied/g; s/SKELETON/COPIED/g; s/TESTS_CONFORMANCE/RUNTIME_DEVICE_COPIED/' \
    tests/conformance/skeleton_device.h >runtime/device/copied/copied_device.h
dependencies='deps = ["//runtime/device", "//runtime/device/cpu"]'
sed "s/name = \"null\"/name = \"copied\"/; s#deps = \[\"//runtime/device\"\]#$dependencies#" \
    runtime/device/null/BUILD >runtime/device/copied/BUILD
sed -i 's/amp_device_null;/amp_device_null, amp_device_copied;/' runtime/device/device.h
sed -i 's/&amp_device_null}/\&amp_device_null, \&amp_device_copied}/' runtime/device/devices.c
sed -i 's#"//runtime/device/null",#&\n        "//runtime/device/copied",#' runtime/device/BUILD
sed -i 's/&amp_device_null,/&\n\&amp_device_copied,/' tests/conformance/devices.c
rows='{"copied", "portable", 1, false, false, 1e-4},\n    {"copied", "v3", 1, false, true, 1e-4},'
sed -i "s/{\"skeleton\", \"portable\", 1, false, false, 1e-4},/&\n    $rows/" tests/conformance/training_test.cc

run 0 bazel build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1
((bad == 0)) || { cat "$work/.err"; stop; }
bin=$(bazel info bazel-bin 2>/dev/null)
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
run 0 "$ampc" "$work/total.amp" --emit ir --stop-after rename_results -o "$work/total.ir"
out=$(<"$work/total.ir")
says 'stage rename_results' '%total = ' 'result total = %total'
run 0 "$ampc" "$work/total.ir" --emit c -o "$work/total.c" # the stage reads back, and the passes that are left run
run 0 "$ampc" --describe bash
says ' drop_views rename_results fuse ' # completion has it
run 0 bazel test --test_output=errors --nocache_test_results //tests/passes:passes_test \
    --test_filter='rename_results_text.*'
((bad == 0)) || cat "$work/.err" "$work/.out"
xml=$(find -L "$(bazel info bazel-testlogs 2>/dev/null)/tests/passes/passes_test" -name test.xml)
expect 'the cases of the new pass ran' 3 "$(cat $xml | grep -c '<testcase name=.* classname="rename_results_text"')"
run 0 "$ampc" examples/fashion_mnist/cnn.amp --target both --emit c -o "$work/cnn.c"

run 0 "$ampc" "$work/moments.amp" --emit ir -o "$work/moments.ir"
out=$(<"$work/moments.ir")
says ': f8m[3, 4]  moment m of fc.weight' ': f8x[3, 4]  moment v of fc.weight'
run 0 "$ampc" "$work/moments.ir" -o "$work/moments.so" # it is compiled as C
run 0 "$ampc" "$work/moments.amp" --target cuda --emit cu -o "$work/moments.cu"
out=$(<"$work/moments.cu")
says 'DEFINE_F8(f8x, number_f8x_i32, code_f8x_f32)'
run 0 "$amprun" info "$work/moments.so"

# infer DEVICE [command that goes before]: y of the words into DEVICE.y
infer() {
    run 0 "${@:2}" "$amprun" infer "$work/words.so" --weights "$work/words.start" --inputs "$work/words.in" \
        --outputs "$work/$1.y" --device "$1"
}
python3 -B tests/checks/cuda.py data "$work/words.in" 1 x=I32:33x5:9
python3 -B tests/checks/cuda.py data "$work/words.start" 2 table.weight=F32:9x40
run 0 "$ampc" "$work/words.amp" --target cpu --emit ir -o "$work/words.ir"
out=$(<"$work/words.ir")
says ' lookup ' ' tile '
run 0 "$ampc" "$work/words.amp" --target cpu -o "$work/words.so"
infer cpu
run 0 bazel test --test_output=errors //tests/codegen:models_test --test_filter=CoreModelTest.TablesByIds
((bad == 0)) || cat "$work/.err" "$work/.out" # against the interpreter
if AMPC_CACHE_DIR=$work/cache "$ampc" "$work/words.amp" --gpu-arch sm_80 -o "$work/words.so" 2>"$work/nvrtc.err"; then
    export FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
    run 0 "$amprun" info "$work/words.so" --kernels
    says ' lookup '
    infer cuda tools/with-fakecuda --arch 80
    holds 'the stand-in looks up the same rows' cmp "$work/cpu.y" "$work/cuda.y"
elif lacks_nvrtc "$work/nvrtc.err"; then skipped 'kernels of the new kind on the stand-in: NVRTC is not installed'
else failed 'the new kind on CUDA' "$(<"$work/nvrtc.err")"; fi

# step NAME OPTION...: a step of the moments' model on the stand-in into NAME.st
step() {
    run 0 "$ampc" "$work/moments.amp" --gpu-arch sm_80 -o "$work/$1.so" "${@:2}"
    run 0 tools/with-fakecuda --arch 80 "$amprun" step "$work/$1.so" --weights "$work/moments.start" \
        --inputs "$work/moments.in" --device cuda --save "$work/$1.st"
}
if [[ -n ${FAKECUDA_LIBRARY:-} ]]; then
    python3 -B tests/checks/cuda.py data "$work/moments.in" 1 x=F32:16x4 t=F32:16x3
    python3 -B tests/checks/cuda.py data "$work/moments.start" 2 fc.weight=F32:3x4 fc.bias=F32:3
    run 0 "$ampc" "$work/moments.amp" --target cuda --no-pass join --no-pass bundle --emit ir -o "$work/pairs.ir"
    holds 'kernels are launched in pairs' grep -qE 'part k[0-9, k]+ part k' "$work/pairs.ir"
    run 0 "$ampc" "$work/pairs.ir" --target cuda --emit cu -o "$work/pairs.cu" # it reads back
    step pairs --no-pass join --no-pass bundle
    step alone --no-pass launch
    holds 'pairs have the bits of each kernel alone' cmp "$work/pairs.st" "$work/alone.st"
fi

run 0 bazel test --test_output=errors //tests/conformance:training_test
((bad == 0)) || cat "$work/.err" "$work/.out"
says 'training_test'
xml=$(find -L "$(bazel info bazel-testlogs 2>/dev/null)/tests/conformance/training_test" -name test.xml)
holds 'the suite ran on the new device' grep -q 'copied, portable' $xml
stop
