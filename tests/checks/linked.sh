#!/usr/bin/env bash
# Models without a model.so: C and objects that link into programs, several in one, by gcc and clang, in static
# programs, with musl; and C that was compiled by hand as its first lines say. All train to the bits of the model.so, as
# it does with loaders that leave its addresses to libamp.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //runtime:amp_static
ampc=$bin/tools/ampc
headers=(-Ibase/include -Iruntime/include)
libraries=(-lpthread -ldl -lm)

cat >"$work/small.amp" <<'MODEL'
amp 1
const CLASSES = 10
model small(x: f32[N, 40]) -> logits {
    h = relu(linear(x; out = 16) as fc1)
    logits = linear(h; out = CLASSES) as fc2
}
train small {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 {}
MODEL

# What train_made_up.c does with a file, a linked model does.
sed -e 's/^int main/AMP_STATIC_MODEL(MODEL);\n\n&/' -e 's/amp_model_load(argv\[1\], /amp_model_from_static(MODEL, /' \
    tests/checks/train_made_up.c >"$work/train.c"
train() { "$@" linked best 30 "$work/linked.st"; }
# trains_alike WHAT PROGRAM...
trains_alike() {
    run 0 train "${@:2}"
    expect "$1: loss" "$said" "$out"
    holds "$1: the same bits" cmp "$work/so.st" "$work/linked.st"
    rm -f "$work/linked.st"
}

run 0 "$ampc" "$work/small.amp" --target cpu -o "$work/small.so"
run 0 cc -std=c11 "${headers[@]}" tests/checks/train_made_up.c "$bin/runtime/libamp.a" "${libraries[@]}" \
    -o "$work/train_so"
run 0 "$work/train_so" "$work/small.so" best 30 "$work/so.st"
said=$out

# ---- objects -------------------------------------------------------------------------------------

for cc in gcc clang; do
    if ! links $cc stdio.h; then
        skipped "$lacking"
        continue
    fi
    run 0 "$ampc" "$work/small.amp" --target cpu --emit o --cc $cc -o "$work/$cc.o"
    run 0 $cc -std=c11 -DMODEL=small_model "${headers[@]}" "$work/train.c" "$work/$cc.o" "$bin/runtime/libamp.a" \
        "${libraries[@]}" -o "$work/program"
    trains_alike "an object by $cc" "$work/program"
done
expect 'an object defines one public name' small_model \
    "$(nm "$work/gcc.o" | awk '$2 ~ /[A-Z]/ && $2 != "U" { print $3 }' | grep -v '^small_model_' | paste -sd ' ')"
expect 'and needs nothing but what every C library has' '' \
    "$(nm -u "$work/gcc.o" | awk '{ print $2 }' | grep -vE '^(memcpy|memset|memmove|_GLOBAL_OFFSET_TABLE_)$')"

# ---- C -------------------------------------------------------------------------------------------

run 0 "$ampc" "$work/small.amp" --target cpu --emit c -o "$work/small.c"
# command N: the N-th command of the file's first lines, for this folder
command_of_header() { sed -n 's/^ \* *\(cc .*\)/\1/p' "$work/small.c" | sed -n "$1p"; }
expect 'its first lines tell two commands' 2 "$(grep -c '^ \* *cc ' "$work/small.c")"
for cc in cc clang; do
    links $cc stdio.h || continue
    run 0 bash -c "cd '$work' && cp small.c model.c && ${cc}$(command_of_header 1 | cut -c3-)"
    run 0 $cc -std=c11 -DMODEL=small_model "${headers[@]}" "$work/train.c" "$work/model.o" "$bin/runtime/libamp.a" \
        "${libraries[@]}" -o "$work/program"
    trains_alike "C compiled by $cc" "$work/program"
    run 0 bash -c "cd '$work' && ${cc}$(command_of_header 2 | cut -c3-)"
    run 0 "$work/train_so" "$work/model.so" best 30 "$work/linked.st"
    expect "a model.so compiled by hand with $cc: loss" "$said" "$out"
    holds 'the same bits' cmp "$work/so.st" "$work/linked.st"
done
run 1 cc -O1 -ffast-math -c "$work/small.c" -o "$work/none.o"
says '-ffast-math changes what the model computes'
# A hash that was damaged is not one that was never written.
python3 - "$work/model.so" "$work/zeroed.so" \
    "$(sed -n 's/^#define AMP_MODEL_UNSEALED *"\(.*\)".*/\1/p' runtime/include/amp/model_abi.h)" <<'PYTHON'
import sys
data = open(sys.argv[1], "rb").read()
mark = sys.argv[3].encode()
assert data.count(mark) == 1
open(sys.argv[2], "wb").write(data.replace(mark, bytes(32)))
PYTHON
run 1 "$work/train_so" "$work/zeroed.so" best 1 "$work/none.st"
says 'zeroed.so: the file is damaged'

# ---- loaders and linkers that do not know DT_RELR ------------------------------------------------

# FROM TO [WORD]: writes other numbers for the entries that say where addresses are; WORD: the first address
cat >"$work/hide.py" <<'PYTHON'
import struct, sys
from hashlib import sha256
data = bytearray(open(sys.argv[1], "rb").read())
segments, sections = struct.unpack_from("<QQ", data, 32)
count, _, section_count, names = struct.unpack_from("<HHHH", data, 56)
at = {}
strings, = struct.unpack_from("<Q", data, sections + names * 64 + 24)
for i in range(section_count):
    name, _, _, _, offset, size = struct.unpack_from("<IIQQQQ", data, sections + i * 64)
    at[data[strings + name:data.index(0, strings + name)].decode()] = offset, size
hidden = 0
offset, size = at[".dynamic"]
for entry in range(offset, offset + size, 16):
    tag, = struct.unpack_from("<Q", data, entry)
    if tag in (35, 36, 37):
        struct.pack_into("<Q", data, entry, 0x6000000D + tag)
        hidden += 1
assert hidden in (0, 3)
if len(sys.argv) > 3:
    struct.pack_into("<Q", data, at[".relr.dyn"][0], int(sys.argv[3], 0))
offset, size = at[".amp.sha256"]
data[offset:offset + size] = bytes(size)
data[offset:offset + size] = sha256(data).digest()
open(sys.argv[2], "wb").write(data)
print(hidden)
PYTHON
run 0 python3 "$work/hide.py" "$work/small.so" "$work/old_loader.so"
if [ "$out" = 3 ]; then
    run 0 "$work/train_so" "$work/old_loader.so" best 30 "$work/linked.st"
    expect 'a loader that adds no addresses: loss' "$said" "$out"
    holds 'the same bits' cmp "$work/so.st" "$work/linked.st"
    run 0 python3 "$work/hide.py" "$work/small.so" "$work/outside.so" 0x10
    run 1 "$work/train_so" "$work/outside.so" best 1 "$work/none.st"
    says 'outside.so: an address is outside its tables: it is damaged'
else
    skipped 'the linker makes no DT_RELR'
fi
if echo 'int x;' | gcc -fuse-ld=gold -shared -x c - -o "$work/x.so" 2>/dev/null; then
    run 0 "$ampc" "$work/small.amp" --target cpu --cc 'gcc -fuse-ld=gold' -o "$work/gold.so"
    run 0 "$work/train_so" "$work/gold.so" best 30 "$work/linked.st"
    expect 'a linker that makes none: loss' "$said" "$out"
else
    skipped 'gold is not installed'
fi

# ---- several in one program, their names, C++ ----------------------------------------------------

run 0 "$ampc" "$work/small.amp" --target cpu --emit o --symbol first_net -o "$work/first.o"
run 0 "$ampc" "$work/small.amp" --target cpu --emit o --symbol second_net -D CLASSES=4 -o "$work/second.o"
cat >"$work/two.cc" <<'PROGRAM'
#include <cstdio>
#include <initializer_list>

#include "amp/amp.h"
extern "C" {
AMP_STATIC_MODEL(first_net);
AMP_STATIC_MODEL(second_net);
}
int main() {
    amp_error err;
    for (amp_static_model linked : {first_net, second_net}) {
        amp_model *model;
        amp_tensor_info result;
        if (amp_model_from_static(linked, nullptr, &model, &err)) return std::puts(err.message), 1;
        if (amp_model_result_at(model, 0, {1, 0}, &result, &err)) return std::puts(err.message), 1;
        std::printf("%lld\n", static_cast<long long>(result.dims[1]));
        amp_model_release(model);
    }
}
PROGRAM
run 0 c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "${headers[@]}" "$work/two.cc" "$work/first.o" "$work/second.o" \
    "$bin/runtime/libamp.a" "${libraries[@]}" -o "$work/two"
run 0 "$work/two"
expect 'two models in one program' '10 4' "$(paste -sd ' ' <<<"$out")"
run 2 "$ampc" "$work/small.amp" --emit o --symbol '2 nets' -o "$work/none.o"
says "symbol '2 nets' is not a name of C"
run 2 "$ampc" "$work/small.amp" --emit c --symbol '' -o "$work/none.c"
says "symbol '' is not a name of C"

# ---- static programs -----------------------------------------------------------------------------

run 0 cc -static -w -std=c11 -DMODEL=small_model "${headers[@]}" "$work/train.c" "$work/gcc.o" "$bin/runtime/libamp.a" \
    "${libraries[@]}" -o "$work/program"
trains_alike 'a static program' "$work/program"
if links musl-gcc stdio.h; then
    run 0 make -s -j2 CC=musl-gcc OUT="$work/musl" CFLAGS=-O1 "$work/musl/libamp.a"
    run 0 "$ampc" "$work/small.amp" --target cpu --emit o --cc musl-gcc -o "$work/musl.o"
    run 0 musl-gcc -static -std=c11 -DMODEL=small_model "${headers[@]}" "$work/train.c" "$work/musl.o" \
        "$work/musl/libamp.a" -lm -o "$work/program"
    trains_alike 'a static program with musl' "$work/program"
    expect 'it needs nothing' 'not a dynamic executable' "$(ldd "$work/program" 2>&1 | sed 's/^[[:space:]]*//')"
else
    skipped "$lacking (tools/setup --cross)"
fi
finish
