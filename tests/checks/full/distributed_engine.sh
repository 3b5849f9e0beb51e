#!/usr/bin/env bash
# libamp_comm over MPI at sizes that the short check does not have: a message that is more than an int counts in bytes,
# in pieces, added by the MPI and by us; and many failures at many moments; each must end in time by name.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/mpi.bash
build //tests/runtime/comm:mpi_ranks
program=$bin/tests/runtime/comm/mpi_ranks MPI_LIMIT=300

# stopped MPI RANK SECONDS: that rank of 3 is stopped so long after the first steps
stopped() {
    local mpi=$1 rank=$2 job pid begin took
    : >"$work/.out"
    "$mpi" 3 "$program" loop 2 >"$work/.out" 2>"$work/.err" &
    job=$!
    for _ in {1..300}; do
        (($(grep -c ': pid ' "$work/.out") < 3)) || break
        sleep 0.1
    done
    pid=$(sed -n "s/^rank $rank of 3: pid //p" "$work/.out")
    sleep "$3"
    begin=$(date +%s%3N)
    kill -STOP "$pid"
    wait "$job"
    took=$(($(date +%s%3N) - begin))
    kill -KILL "$pid" 2>/dev/null
    command_line="$mpi: rank $rank stopped after $3 s"
    out=$(<"$work/.out") err=''
    says "no answer from rank $rank for 2.0 s: died, hangs or was stopped"
    holds "$command_line: within the bound (took $took ms)" test "$took" -lt 12000
}

for mpi in openmpi mpich; do
    if ! has_mpi $mpi; then
        skipped "$lacking (tools/setup --mpi)"
        continue
    fi
    if (($(awk '/^MemAvailable/ { print $2 }' /proc/meminfo) > 8000000)); then
        run 0 $mpi 2 "$program" large 2100
        says 'rank 0 of 2: all values are right' 'rank 1 of 2: all values are right'
        run 0 $mpi 3 "$program" large 600 ordered
        says 'rank 2 of 3: all values are right'
    else
        skipped 'messages of 2 GB: not enough memory'
    fi
    for k in {0..14}; do stopped $mpi $((k % 3)) "0.$((k * 17 % 60 + 10))"; done
done
finish
