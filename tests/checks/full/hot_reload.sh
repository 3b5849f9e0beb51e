#!/usr/bin/env bash
# 100 edits of a model, each compiled in the process and loaded at the same path while the one before answers: always
# the newest, and no descriptor, mapping or memory is left of the others.
set -uo pipefail
source tests/checks/checks.bash
build //examples/hot_reload
run 0 bash -c 'cd "$1" && "$2" "$3" 100' - "$work" "$bin/examples/hot_reload/hot_reload" \
    "$PWD/examples/hot_reload/scores.amp"
printf '%s\n' "$out"
says '100 edits, each served' ' 0 failed'
[[ $out =~ descriptors\ ([0-9]+)\ -\>\ ([0-9]+),\ mappings\ ([0-9]+)\ -\>\ ([0-9]+),\ memory\ ([0-9]+)\ -\>\ ([0-9]+) ]]
numbers=("${BASH_REMATCH[@]}")
expect 'no descriptor is left open' "${numbers[1]}" "${numbers[2]}"
expect 'no mapping is left' "${numbers[3]}" "${numbers[4]}"
# A model of this size is 60 kB; the heap goes to the size of the largest compilation and stays there.
holds 'memory grows by less than 2 MB' test "$((numbers[6] - numbers[5]))" -lt 2048
finish
