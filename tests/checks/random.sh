#!/usr/bin/env bash
# 8 random programs, forward and backward, two of them with a T: tests/random/README.md.  COUNT=10000 LENGTHS=20000, as
# full/random.sh has it, checks as many.
set -uo pipefail
source tests/checks/checks.bash
count=${COUNT:-6} lengths=${LENGTHS:-2} cc=$PWD/tests/random/cc_unoptimised
build //tests/random:random_programs

# two processes, each with every other seed
for shard in 1 2; do
    {
        "$bin/tests/random/random_programs" --first $shard --step 2 --count $((count / 2)) --cc "$cc" --folder "$work" \
            >"$work/shard$shard" 2>&1
        "$bin/tests/random/random_programs" --size T --first $shard --step 2 --count $((lengths / 2)) --cc "$cc" \
            --folder "$work" >"$work/lengths$shard" 2>&1
    } &
done
wait
# ran FILE COUNT: what was said of COUNT programs
ran() {
    local passed failed
    grep -v ' passed, ' "$1"
    read -r passed _ failed _ < <(tail -n 1 "$1" | tr -d ,)
    if [[ ${failed:-} =~ ^[0-9]+$ && $((passed + failed)) == "$2" ]]; then
        ((good += passed, bad += failed))
    else
        failed "${1##*/} ended early" "$(tail -n 3 "$1")"
    fi
}
for shard in 1 2; do
    ran "$work/shard$shard" $((count / 2))
    ran "$work/lengths$shard" $((lengths / 2))
done

# The second model is compiled to add up in another order; there is no third, in which a smaller program is looked for.
cat >"$work/cc" <<'CC'
#!/bin/sh
case $* in
*-DAMP_ISA=*)
    echo >>"$0.models"
    case $(wc -l <"$0.models") in
    1) ;;
    2) set -- "$@" -fassociative-math -fno-signed-zeros ;;
    *) exit 1 ;;
    esac
    ;;
esac
exec cc "$@" -O1
CC
chmod +x "$work/cc"
"$bin/tests/random/random_programs" --first 1 --count 1 --cc "$work/cc" --folder "$work" >"$work/planted" 2>&1
finds 'sums in another order' 'seed 1: without fuse: * is *, not ' ran "$work/planted" 1

# Each op of the language, and of its gradients, is in some program.  Not written by anybody: what broadcasts and
# checkpoints become, and what a batch norm over several ranks does (tests/e2e/sync_test.cc); programs have one rank.
# covered COUNT
covered() {
    expect 'ops without a random program' '' "$("$bin/tests/random/random_programs" --missing "$1" |
        grep -vxE 'expand|barrier|batch_norm_(sums|squares|grad_sums)')"
}
covered 1400
finds 'too few programs' 'ops without a random program' covered 1
finish
