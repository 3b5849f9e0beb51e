#!/usr/bin/env bash
# AArch64 by qemu: libamp and the compiler, built by a cross compiler; the conformance suite of the CPU; every kind of
# generated kernel against the oracle; the perceptron and the convolutional network, which have the bits of x86-64 where
# the portable form is chosen.
set -uo pipefail
source tests/checks/checks.bash

readonly CROSS=aarch64-linux-gnu GTEST=/usr/src/googletest/googletest
if ! links "$CROSS-gcc" stdio.h || ! links "$CROSS-g++" vector || ! answers qemu-aarch64-static --version; then
    skipped "$lacking (tools/setup --cross)"
    finish
fi
emulate() { qemu-aarch64-static -L "/usr/$CROSS" "$@"; }
make_arm() { make -s -j2 CC="$CROSS-gcc" OUT="$work/out" CFLAGS='-O2 -Wall -Wextra -Werror' "$@"; }
objects_of() { make_arm "objects_of_$1"; }

# ---- building ------------------------------------------------------------------------------------

run 0 make_arm libamp libampc
cxx=("$CROSS-g++" -std=c++17 -O1 -I. "-I$work/out/generated" -Ibase/include -Iruntime/include -Icompiler/include
    "-I$GTEST/include" "-I$GTEST" -include tests/precompiled/gtest.h)
# compile_tests FOLDER SOURCE...: into objects of that folder
compile_tests() {
    mkdir -p "$work/$1"
    printf '%s\n' "${@:2}" | xargs -P2 -I{} sh -c 'source=$1 folder=$2; shift 2
        "$@" -c "$source" -o "$folder/$(basename "$source").o"' - {} "$work/$1" "${cxx[@]}"
}
run 0 compile_tests gtest "$GTEST/src/gtest-all.cc" "$GTEST/src/gtest_main.cc"
run 0 compile_tests conformance tests/conformance/training_test.cc
run 0 compile_tests codegen tests/codegen/*_test.cc
for source in tests/conformance/{devices,skeleton_device}.c tests/runtime/tiny_model.c \
    tests/runtime/device/cuda/tiny_cuda.c; do
    run 0 "$CROSS-gcc" -std=c11 -O1 -ffp-contract=off -I. -Ibase/include -Iruntime/include -c "$source" \
        -o "$work/conformance/$(basename "$source").o"
done
read -ra runtime <<<"$(objects_of libamp)"
read -ra compiler <<<"$(objects_of libampc)"
# The suite brings a list of devices of its own.
others=()
for object in "${runtime[@]}"; do [[ $object == */runtime/device/devices.o ]] || others+=("$object"); done
link=("$CROSS-g++" "$work"/gtest/*.o)
run 0 "${link[@]}" "$work"/conformance/*.o "${others[@]}" -lpthread -ldl -lm -o "$work/conformance_test"
run 0 "${link[@]}" "$work"/codegen/*.o "${compiler[@]}" -lz -lpthread -ldl -lm -o "$work/codegen_test"

# ---- the suites ----------------------------------------------------------------------------------

# gtest PROGRAM FILTER: counts its cases
gtest() {
    local log=$work/gtest.log cases
    emulate "$1" --gtest_filter="$2" >"$log" 2>&1
    cases=$(grep -c '^\[       OK \]' "$log")
    ((good += cases))
    ((bad += $(grep -cE '^\[  FAILED  \] .*\(' "$log")))
    grep -B3 -A8 -E ': Failure$' "$log" | head -40
    holds "$1 $2 ran to its end: $cases cases" grep -q '^\[  PASSED  \]' "$log"
}
gtest "$work/conformance_test" 'Cpu/*:Skeleton/*'
# Models are compiled by what PATH has as cc.
mkdir "$work/path"
ln -s "$(command -v "$CROSS-gcc")" "$work/path/cc"
ln -s "$(command -v "$CROSS-gcc")" "$work/path/gcc"
ln -s "$(command -v "$CROSS-gcc")" "$work/path/clang"
# qemu's vfork does not tell that a program is missing, as SaysWhatIsWrong expects of posix_spawn.
PATH=$work/path:$PATH gtest "$work/codegen_test" '-*ClangMakesOneToo:*SaysWhatIsWrong'

# ---- training ------------------------------------------------------------------------------------

build //tools:ampc //runtime:amp_static
run 0 cc -std=c11 -O1 -Ibase/include -Iruntime/include tests/checks/train_made_up.c "$bin/runtime/libamp.a" \
    -lpthread -ldl -lm -o "$work/train_x86"
run 0 "$CROSS-gcc" -std=c11 -O1 -Ibase/include -Iruntime/include \
    tests/checks/train_made_up.c "$work/out/libamp.a" \
    -lpthread -ldl -lm -o "$work/train_arm"
for model in mlp:fp16 mlp:bf16 cnn:fp32 cnn:fp16; do
    name=${model%%:*} precision=${model##*:}
    options=(examples/fashion_mnist/"$name".amp --precision "$precision" --target cpu)
    [[ $name == cnn ]] || options+=(-D HIDDEN=64)
    steps=20
    [[ $name == cnn ]] && steps=3
    run 0 "$bin/tools/ampc" "${options[@]}" --isa portable -o "$work/x86.so"
    run 0 "$bin/tools/ampc" "${options[@]}" --cc "$CROSS-gcc" -o "$work/arm.so"
    run 0 "$work/train_x86" "$work/x86.so" portable $steps "$work/x86.st"
    said=$out
    run 0 emulate "$work/train_arm" "$work/arm.so" portable $steps "$work/arm.st"
    expect "$model: the loss of the portable form equals x86-64's" "$said" "$out"
    holds "$model: its weights have the same bits" cmp "$work/x86.st" "$work/arm.st"
    run 0 emulate "$work/train_arm" "$work/arm.so" neon $steps "$work/neon.st"
    expect "$model: products by vector instructions train alike" "${said:0:8}" "${out:0:8}"
    run 1 "$work/train_x86" "$work/arm.so" best 1 "$work/none.st"
    says 'arm.so: compiled for another processor (ELF machine 183, here 62)'
done
run 1 emulate "$work/train_arm" "$work/arm.so" v3 1 "$work/none.st"
says 'isa v3: this processor does not have it'
finish
