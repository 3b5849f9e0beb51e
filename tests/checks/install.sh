#!/usr/bin/env bash
# The build with make: it compiles what Bazel compiles, exports what packaging/*.map lists, installs, can be moved, and
# is found by pkg-config and CMake; docs/guides/ as readers follow them. With CC, as full/install.sh has it, both kinds
# of models are built by each generator of CMake; without, by one.
# Takes long.
set -uo pipefail
source tests/checks/checks.bash

stage=$work/stage prefix=$work/moved all_out=
build_options=(OUT="$work/out" CFLAGS="${CFLAGS:--O0}" PREFIX=/opt/ampc)

# ---- the build -----------------------------------------------------------------------------------

# libamp, whose size is looked at, is optimised, and the lexer, in which flex leaves a call of exit that nothing reaches
run 0 make -s -j2 "${build_options[@]}" CFLAGS="${CFLAGS:--O1}" libamp "$work/out/objects/frontend/lexer.o"
run 0 make -s -j2 "${build_options[@]}" all
build //tools:ampc //tools:amprun //runtime:amp_static //compiler:ampc_static
(cd "$work/out/generated" && find . -type f) | sort >"$work/generated"
expect 'make generates seven sources and two headers' 9 "$(wc -l <"$work/generated")"
while read -r file; do
    holds "$file is what Bazel generates" cmp "$bin/$file" "$work/out/generated/$file"
done <"$work/generated"
# is_made_of LIBRARY SOURCES [MAKE VARIABLE...]
is_made_of() {
    expect "$1 is made of what Bazel makes it of" "$2" \
        "$(make -s "${build_options[@]}" "${@:3}" sources_of_"$1" | tr ' ' '\n' | sort)"
}
for library in runtime:libamp runtime/comm:libamp_comm compiler:libampc; do
    label=//${library%%:*} name=${library##*:}
    sources=$(bazel query --noimplicit_deps "kind('source file', deps($label))" 2>/dev/null |
        sed -n 's,^//,,; s,:,/,; /\.c$/p' | sort)
    is_made_of "$name" "$sources"
done

finds 'a source that make leaves out' "$name is made of" \
    is_made_of "$name" "$sources" COMPILER="$(sed 1d <<<"$sources" | tr '\n' ' ')"

# ---- the ABI -------------------------------------------------------------------------------------

# functions HEADER...: the functions that are public
functions() { cat "$@" | grep -v '^ *\*' | grep -oE '\bamp_[a-z0-9_]+\(' | tr -d '(' | sort -u; }
for library in "libamp $(echo runtime/include/amp/{amp,cpu,cuda,data,inspect,serve,train,weights}.h)" \
    'libamp_comm runtime/include/amp/comm.h' \
    "libampc $(echo compiler/include/amp/{analyze,compile,onnx,trace}.h)"; do
    read -r -a headers <<<"$library"
    name=${headers[0]}
    listed=$(grep -oE 'amp_[a-z0-9_]+' "packaging/$name.map")
    expect "packaging/$name.map lists the functions of the headers" \
        "$(functions base/include/amp/base.h "${headers[@]:1}")" "$listed"
    shared=$(echo "$work"/out/"$name".so.*)
    expect "$name.so exports them and nothing else" "$listed" \
        "$(nm -D --defined-only "$shared" | awk '$2 == "T" { sub("@.*", "", $3); print $3 }' | sort)"
    expect "$name.so calls nothing that ends the process" '' "$(nm -D --undefined-only "$shared" |
        grep -oE '\b(_?exit|abort|__assert_fail)\b')"
    holds "$name.so names itself" bash -c 'readelf -d "$1" | grep -q "SONAME.*\[${1##*/}\]"' - "$shared"
    expect "$name.so holds no path of this machine" '' "$(strings "$shared" | grep -F "$PWD" | head -1)"
done
expect 'libamp.so is below 1 MB without its debug information' 1 \
    "$(strip -o "$work/stripped" "$work"/out/libamp.so.* && (($(stat -c %s "$work/stripped") < 1000000)) && echo 1)"

generators=('Unix Makefiles' Ninja) linked_generators=('Unix Makefiles' Ninja)
if [[ -z ${CC:-} ]]; then
    quick_models
    generators=(Ninja) linked_generators=('Unix Makefiles')
fi

# ---- installing, moving, removing ----------------------------------------------------------------

run 0 make -s "${build_options[@]}" DESTDIR="$stage" install
holds 'it can be moved' mv "$stage/opt/ampc" "$prefix"
expect 'nothing else was installed' '' "$(find "$stage" -type f)"
expect 'no installed text names a path of this machine' '' "$(grep -rIlF -e "$work" -e "$PWD" "$prefix" | head -1)"
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
for program in ampc amprun; do
    run 0 "$program" --version
    says "$program $(sed -n 's/^.define AMP_VERSION "\(.*\)"/\1/p' base/include/amp/version.h)"
done

for file in bash-completion/completions/ampc zsh/site-functions/_amprun fish/vendor_completions.d/ampc.fish; do
    holds "a completion is installed: $file" test -s "$prefix/share/$file"
done

# ---- a reader of docs/guides/cmake.md ------------------------------------------------------------

# write_blocks PAGE FOLDER: each listing and each block of commands as a script that writes or runs it
write_blocks() {
    mkdir "$2"
    python3 tests/checks/page_blocks.py "$1" "$2"
}
write_blocks docs/guides/cmake.md "$work/blocks"
mkdir "$work/reader"
if answers cmake --version; then
    export CMAKE_PREFIX_PATH=$prefix
    for block in "$work"/blocks/*; do
        run 0 bash -c 'cd "$1" && set -euo pipefail && source "$2"' - "$work/reader" "$block"
        [[ $(<"$block") != *./build/rings ]] || says 'step 300: loss 0.0' 'accuracy 1.00'
        [[ $(<"$block") != *'ampc explain'* ]] || says 'hidden.linear' 'min-cast-bf16.policy'
    done
    says '(0.6, 0.1) is in the inner ring' '(-1.2, 1.1) is in the outer ring' '(0.2, -0.7) is in the inner ring'
else
    skipped "docs/guides/cmake.md: $lacking"
    for block in "$work"/blocks/*; do
        grep -q '^cat >' "$block" && (cd "$work/reader" && bash "$block")
    done
fi

# in_reader COMMAND...
in_reader() { (cd "$work/reader" && "$@"); }
# cmake_build: what is made again
cmake_build() {
    in_reader cmake --build build 2>&1 | grep -oE 'Compiling model [^ ]+|Building C object' | sort | paste -sd ,
}
if answers cmake --version; then
    cat >"$work/reader/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(rings C)
find_package(ampc 0.1.0 REQUIRED)
add_executable(app main.c)
amp_add_model(model rings.amp NAME rings OUTPUT models/r.so PRECISION fp16 DEFINES WIDTH=8 POLICY own.policy
    OPTIONS --isa portable)
target_link_libraries(app PRIVATE ampc::amp_static model m)
CMAKE
    printf 'amp 1\nblock activate(x) -> y {\n    y = relu(x)\n}\n' >"$work/reader/part.amp"
    in_reader sed -i 's/^amp 1/&\ninclude "part.amp"\nconst WIDTH = 4/; s/out = 32/out = WIDTH/' rings.amp
    in_reader sed -i 's/relu(/activate(/' rings.amp
    cp "$prefix/share/ampc/policies/torch-fp16.policy" "$work/reader/own.policy"
    for generator in "${generators[@]}"; do
        if [[ $generator == Ninja ]] && ! answers ninja --version; then
            skipped "$lacking"
            continue
        fi
        in_reader rm -rf build
        mkdir "$work/reader/build"
        run 0 in_reader cmake -B build -G "$generator"
        expect "$generator: all is built" 'Building C object,Compiling model models/r.so' "$(cmake_build)"
        for file in part.amp own.policy; do
            sleep 1 # file systems and make count in whole seconds
            touch "$work/reader/$file"
            expect "$generator: $file has changed" 'Compiling model models/r.so' "$(cmake_build)"
        done
        expect "$generator: nothing has changed" '' "$(cmake_build)"
        run 0 in_reader env -u LD_LIBRARY_PATH build/app
        says 'accuracy 1.00'
    done
    sed -i 's/find_package(ampc 0.1.0/find_package(ampc 0.2/' "$work/reader/CMakeLists.txt"
    run 1 in_reader cmake -B refused
    says 'with requested version "0.2"'
    sed -i 's/find_package(ampc 0.2/find_package(ampc/; s/NAME rings/NAMED rings/' "$work/reader/CMakeLists.txt"
    run 1 in_reader cmake -B refused
    says 'unknown argument NAMED'
fi

# ---- readers of the other guides -----------------------------------------------------------------

# follow PAGE: what a reader of docs/guides/PAGE.md does, in an empty folder; what the last commands said stays in $out
follow() {
    mkdir "$work/$1" && write_blocks "docs/guides/$1.md" "$work/$1.blocks"
    for block in "$work/$1.blocks"/*; do
        run 0 bash -c 'cd "$1" && set -euo pipefail && source "$2"' - "$work/$1" "$block"
        all_out+=$out$err
    done
    out=$all_out all_out=
}
if answers cmake --version && links c++ vector && answers pkg-config --version; then
    follow cpp
    says 'step 300: loss 0.0' 'which is right' 'line: f32[2, 3]' \
        "m.amp:2:31: error: there is no block, layer or op 'reluu'"
else
    skipped "docs/guides/cpp.md: $lacking"
fi
mkdir "$work/python_programs"
for candidate in python3 .torch-env/python; do
    if answers pkg-config --version && $candidate -c 'import numpy' 2>/dev/null; then
        ln -s "$(realpath -s "$(command -v $candidate)")" "$work/python_programs/python3"
        break
    fi
done
if [[ -e $work/python_programs/python3 ]]; then
    export PYTHONDONTWRITEBYTECODE=1
    PATH=$work/python_programs:$PATH LD_LIBRARY_PATH='' follow python # the module finds the libraries of its prefix
    says 'loss 0.' 'after 450 steps' 'accuracy 1.00' "'first.weight': (32, 2)" 'first.linear: bf16 because {' \
        "input 'x' is float32 of shape (N, 2); an array of float64" 'an array of shape (64, 3)' 'model.amp:2:31: error'
else
    skipped 'docs/guides/python.md: pkg-config and a Python with NumPy are wanted'
fi

if answers pkg-config --version; then
    follow game-loop
    says $'0 allocations in 184 frames\nlearned: yes'
    follow serving
    says $'server 0: 8 of 8 right\nserver 1: 8 of 8 right\nversion 41 is the last'
    follow threads
    says $'two threads: the same\na stack of 64 KiB: the same\nrounding upward: the same, and the mode is still ours
parent: the same, child: the same\nended by signal 15, before its first step'
else
    skipped "docs/guides/game-loop.md, serving.md, threads.md: $lacking"
fi

if answers pkg-config --version && answers cmake --version; then
    follow static
    expect 'docs/guides/static.md: four programs learn' 4 \
        "$(paste -sd ' ' <<<"$out" | grep -o '0, 0: no 0, 1: yes 1, 0: yes 1, 1: no' | wc -l)"
else
    skipped "docs/guides/static.md: $lacking"
fi

# ---- linked models in CMake ----------------------------------------------------------------------

# linked_build: what is made again
linked_build() {
    cmake --build "$work/static/build" 2>&1 |
        grep -oE '(Compiling model|Linking C executable|Linking C static library) [^ ]+' |
        sed 's/.* //' | sort | paste -sd ' '
}
# An executable and an archive that have the model, a library of the model, as C; with and without keywords.
if answers cmake --version; then
    mkdir -p "$work/static"
    cat >"$work/static/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(gates C)
find_package(ampc REQUIRED)
add_executable(one program.c)
target_link_libraries(one ampc::amp_static)
amp_add_model(one gate.amp STATIC OPTIONS --isa portable)
amp_add_model(as_c gate.amp STATIC EMIT c SYMBOL gate_model OUTPUT c/wide.c DEFINES HIDDEN=24)
add_executable(two program.c)
target_link_libraries(two PRIVATE as_c ampc::amp)
add_library(whole STATIC program.c)
amp_add_model(whole gate.amp STATIC NAME third SYMBOL gate_model PRECISION bf16 OPTIONS --isa portable)
add_executable(three nothing.c)
target_link_libraries(whole PUBLIC ampc::amp_static)
target_link_libraries(three PRIVATE whole)
CMAKE
    printf 'amp 1\nblock bend(x) -> y {\n    y = tanh(x)\n}\n' >"$work/static/part.amp"
    sed -i 's/^amp 1/&\ninclude "part.amp"/; s/= tanh(/= bend(/' "$work/static/gate.amp"
    echo 'typedef int nothing;' >"$work/static/nothing.c"
    for generator in "${linked_generators[@]}"; do
        if [[ $generator == Ninja ]] && ! answers ninja --version; then continue; fi
        rm -rf "$work/static/build"
        run 0 cmake -S "$work/static" -B "$work/static/build" -G "$generator"
        models='c/wide.c gate.o libas_c.a libone_gate.a libwhole.a libwhole_third.a one third.o three two'
        expect "$generator: three models and what they are linked into" "$models" "$(linked_build)"
        for program in one two three; do
            run 0 "$work/static/build/$program"
            expect "$generator: $program learns" 'no yes yes no' "$(sed 's/.*: //' <<<"$out" | paste -sd ' ')"
        done
        sleep 1 # file systems and make count in whole seconds
        sed -i 's/tanh/sin/;t;s/sin/tanh/' "$work/static/part.amp"
        expect "$generator: an include has changed" \
            'c/wide.c gate.o libas_c.a libone_gate.a libwhole_third.a one third.o three two' "$(linked_build)"
        expect "$generator: nothing has changed" '' "$(linked_build)"
    done
    # refuses TEXT ARGUMENT...: of amp_add_model
    refuses() {
        printf 'cmake_minimum_required(VERSION 3.18)\nproject(gates %s)\nfind_package(ampc)\namp_add_model(%s)\n' \
            "$2" "$3" >"$work/static/CMakeLists.txt"
        run 1 cmake -S "$work/static" -B "$work/static/refused"
        out=$(tr -s '\n ' ' ' <<<"$out$err") err=
        says "$1"
        rm -rf "$work/static/refused"
    }
    refuses 'SYMBOL and EMIT are of models that are linked; add STATIC' C 'gate gate.amp SYMBOL g'
    refuses 'EMIT so: o or c' C 'gate gate.amp STATIC EMIT so'
    refuses 'EMIT c: the project has no C' NONE 'gate gate.amp STATIC EMIT c'
fi

# ---- pkg-config and make -------------------------------------------------------------------------

if answers pkg-config --version; then
    cat >"$work/reader/Makefile" <<'MAKE'
rings: main.c rings.so
	$(CC) -DAMP_MODEL_RINGS='"./rings.so"' $< $$(pkg-config --cflags --libs amp) -lm -o $@
rings.so: rings.amp
	ampc $< -o $@ --isa portable -MD -D WIDTH=8
-include rings.so.d
MAKE
    for cc in gcc clang; do
        if ! links $cc stdio.h; then
            skipped "$lacking"
            continue
        fi
        in_reader rm -f rings rings.so
        run 0 in_reader make CC=$cc
        run 0 in_reader ./rings
        says 'accuracy 1.00'
    done
    run 0 in_reader bash -c 'cc -DAMP_MODEL_RINGS=\"./rings.so\" $(pkg-config --cflags amp) main.c \
        $(pkg-config --variable=libdir amp)/libamp.a -lpthread -ldl -lm -o static_rings'
    expect 'it can be linked statically' '' "$(in_reader ldd static_rings | grep libamp)"
else
    skipped "$lacking"
fi

# ---- uninstalling --------------------------------------------------------------------------------

run 0 make -s OUT="$work/out" PREFIX="$prefix" uninstall
expect 'nothing is left' '' "$(find "$prefix" 2>/dev/null)"
finish
