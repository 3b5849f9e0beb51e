#!/usr/bin/env bash
# No more than six files reach one another in a circle, and no room of a folder uses one above it. That an include which
# points up fails to build is every build's claim; full/layers.sh plants such includes.
set -uo pipefail
source tests/checks/checks.bash

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
    --down "$PASSES,passes/training,passes/precision,passes/common,precision" "${archives[@]}"
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
says 'up: ' # planted: the rooms the other way round
finish
