#!/usr/bin/env bash
# The layers of docs/design/architecture.md hold: an include that points up fails to build, with and without the
# dependency that would go with it.
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
forbidden onnx/read.c ir/ir.h
forbidden codegen/walk.c passes/passes.h codegen/BUILD //passes:passes
forbidden ir/shape.c targets/target.h ir/BUILD //targets:targets
forbidden frontend/expr.c codegen/codegen.h frontend/BUILD //codegen:codegen
forbidden tools/outputs.c runtime/model/model.h tools/BUILD //runtime/model:model
forbidden tools/outputs.c compiler/compile.h tools/BUILD //compiler:compiler
forbidden cuda_sdk/nvrtc.c runtime/model/model.h cuda_sdk/BUILD //runtime/model:model
(cd "$copy" && bazel --output_base="$work/output" shutdown) >/dev/null 2>&1
chmod -R u+w "$work/output"
finish
