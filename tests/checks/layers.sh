#!/usr/bin/env bash
# The layers of docs/design/architecture.md hold: an include that points up fails to build, with and without the
# dependency that would go with it, and no more than six files reach one another in a circle.
set -uo pipefail
source tests/checks/checks.bash

copy=$work/copy
mkdir "$copy"
git ls-files -z | xargs -0 cp --parents -t "$copy" 2>/dev/null
rm -f "$copy/.bazelrc.user"

in_copy() { (cd "$copy" && bazel --output_base="$work/output" "$@"); }

# forbidden FILE HEADER [BUILD TARGET]: FILE may not include HEADER; with BUILD, not even where its folder depends on
# TARGET.
forbidden() {
    local file=$1 header=$2 build=${3:-} target=${4:-}
    cp "$copy/$file" "$work/file"
    sed -i "1i #include \"$header\"" "$copy/$file"
    if [[ -z $build ]]; then
        run 1 in_copy build --compile_one_dependency "$file"
        says "$header"
    else
        cp "$copy/$build" "$work/build"
        sed -i "0,/    deps = \\[/s||    deps = [\"$target\", |" "$copy/$build"
        run 1 in_copy build --nobuild --compile_one_dependency "$file"
        says "$target"
        cp "$work/build" "$copy/$build"
    fi
    cp "$work/file" "$copy/$file"
}

run 0 in_copy build --nobuild //...
forbidden ir/shape.c passes/passes.h
forbidden ir/shape.c targets/target.h
forbidden runtime/session/session_run.c ir/ir.h
forbidden runtime/comm/calls.c runtime/model/model.h
forbidden passes/lower/lower.c passes/fuse/fuse.h
forbidden tools/roofline/roofline.c runtime/model/cuda_launch.h
forbidden tools/amprun/info/live_bytes.c runtime/memory/memory_plan.h
forbidden tools/ampc/lsp/server.c ir/ir.h
forbidden codegen/walk.c passes/passes.h codegen/BUILD //passes:passes
forbidden ir/shape.c targets/target.h ir/BUILD //targets:targets
forbidden frontend/expr.c codegen/codegen.h frontend/BUILD //codegen:codegen
forbidden tools/outputs.c runtime/model/model.h tools/BUILD //runtime/model:model
forbidden tools/outputs.c compiler/compile.h tools/BUILD //compiler:compiler
forbidden cuda_sdk/nvrtc.c runtime/model/model.h cuda_sdk/BUILD //runtime/model:model
(cd "$copy" && bazel --output_base="$work/output" shutdown) >/dev/null 2>&1
chmod -R u+w "$work/output"

# Read from archives; a library without sources has none.
readonly LIBRARIES='kind(cc_library, deps(//compiler + //runtime + //tools:amprun)) ^ //...'
mapfile -t libraries < <(bazel query --noshow_progress "attr(srcs, '[a-z]', $LIBRARIES)" 2>/dev/null)
build "${libraries[@]}"
archives=()
for library in "${libraries[@]}"; do
    archive=$bin/${library#//}
    archive=${archive%:*}/lib${library##*:}.a
    [[ ! -f $archive ]] || archives+=("$archive")
done
readonly PASSES=passes,passes/launch,passes/order,passes/layout,passes/fuse,passes/rewrite,passes/lower,passes/simplify
run 0 python3 tools/build/circles.py --limit 6 --except expr.c \
    --down "$PASSES,passes/training,passes/precision,passes/common" "${archives[@]}"
((bad == 0)) || printf '%s\n' "${out//$bin\//}"
says ' rooms, ' ' between their files, 0 up'
readonly CUDA=codegen/cuda
run 0 python3 tools/build/circles.py --down $CUDA/launch,$CUDA/kinds,$CUDA/product,$CUDA $CUDA
says '4 rooms, ' ' between their files, 0 up'
readonly C=compiler
run 0 python3 tools/build/circles.py \
    --down $C/analyze,$C/trace,$C/compare,$C/policy,$C/lint,$C/explain,$C/report,$C $C
says '8 rooms, ' ' between their files, 0 up'
rooms=$(printf ',tools/amprun/%s' suggest train tensorboard profile trace stats watch log info data)
run 0 python3 tools/build/circles.py --down "${rooms#,}" tools/amprun
says '10 rooms, ' ' between their files, 0 up'
run 1 python3 tools/build/circles.py --limit 6 --except expr.c --down passes/fuse,passes/layout "${archives[@]}"
says 'up: ' # the rooms the other way round
finish
