#!/usr/bin/env bash
# Faults of ranks that train together, over each MPI that is installed (tools/setup --mpi): kill, stop, pause and delay
# each rank of two and three before the first step, in a step, while a checkpoint is written and at the end.  The others
# end in time and by name, nothing is left running, and training goes on to the bits of a run without a fault.
#
#     faults_distributed.sh [COUNT] [SEED] [FIRST]      200 in all; FIRST: the number of the first over each, 0
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/mpi.bash
source tests/checks/faults.bash
build //tools:ampc //tools:amprun
faults_inputs
mapfile -t found < <(mpis)
seed=${2:-$RANDOM}
printf 'seed %s\n' "$seed"
for mpi in "${found[@]}"; do
    run 0 faults "$mpi" $((${1:-200} / ${#found[@]})) "$seed" "${3:-0}"
    told
done
((${#found[@]})) || skipped "$no_mpi"
finish
