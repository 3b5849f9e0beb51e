#!/usr/bin/env bash
# 12 random programs, forward and backward: tests/random/README.md.  COUNT=10000, as full/random.sh has it, checks as many.
set -uo pipefail
source tests/checks/checks.bash
count=${COUNT:-12}
build //tests/random:random_programs

# two processes, each with every other seed
for shard in 1 2; do
    "$bin/tests/random/random_programs" --first $shard --step 2 --count $((count / 2)) --cc "$PWD/tests/random/cc_unoptimised" \
        --folder "$work" >"$work/shard$shard" 2>&1 &
done
wait
for shard in 1 2; do
    grep -v ' passed, ' "$work/shard$shard"
    read -r passed _ failed _ < <(tail -n 1 "$work/shard$shard" | tr -d ,)
    if [[ ${failed:-} =~ ^[0-9]+$ && $((passed + failed)) == $((count / 2)) ]]; then
        ((good += passed, bad += failed))
    else
        failed "shard $shard ended early" "$(tail -n 3 "$work/shard$shard")"
    fi
done

# Each op of the language, and of its gradients, is in some program.  Not written by anybody: what broadcasts and
# checkpoints become, and what a batch norm over several ranks does (tests/e2e/sync_test.cc); programs have one rank.
missing=$("$bin/tests/random/random_programs" --missing 2000 | grep -vxE 'expand|barrier|batch_norm_(sums|squares|grad_sums)')
expect 'ops without a random program' '' "$missing"
finish
