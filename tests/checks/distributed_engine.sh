#!/usr/bin/env bash
# libamp_comm over Open MPI, MPICH and the ABI of MPI 5, whichever is installed (tools/setup --mpi): one program, built
# without an MPI, in 1 to 4 ranks: every collective against float64 and bit by bit, ranks that are killed, stopped, late
# or disagree, the launcher of the other MPI, libraries that are not there; our numbers against the header of each.
# Waits more than it computes: for launchers, and for timeouts.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/mpi.bash
build //tests/runtime/comm:mpi_ranks
program=$bin/tests/runtime/comm/mpi_ranks MPI_LIMIT=60

# abi COUNT COMMAND...: the MPI of .mpi, which has the ABI of MPI 5
abi() { (export LD_LIBRARY_PATH=$PWD/.mpi/lib && timeout "$MPI_LIMIT" .mpi/bin/mpiexec.hydra -iface lo -n "$@"); }
declare -Ar NAME=([openmpi]='Open MPI' [mpich]='MPICH')
declare -Ar SIZE=([openmpi]=OMPI_COMM_WORLD_SIZE [mpich]=PMI_SIZE)

# each N WHAT: N ranks have said it, in the last command
each() {
    local wanted='' rank
    for ((rank = 0; rank < $1; rank++)); do wanted+="rank $rank of $1: $2"$'\n'; done
    expect "$command_line" "${wanted%$'\n'}" "$(grep '^rank ' <<<"$out" | sort)"
}

# ---- values ----

values() {
    local mpi=$1 ranks
    for ranks in 1 2 4; do
        run 0 "$mpi" "$ranks" "$program" values
        each "$ranks" 'all values are right'
    done
    run 0 "$mpi" 3 "$program" values ordered
    each 3 'all values are right'
    ((planted++ == 0)) || return 0
    run 1 env_of AMP_PLANTED=1 "$mpi" 2 "$program" values ordered
    says 'FAIL all_reduce f32 [0]'
}
planted=0
# env_of NAME=VALUE COMMAND...: for functions, which env cannot run
env_of() { (export "$1" && "${@:2}"); }

fails() { ! "$@"; }

# An application that has initialised MPI: with the thread of the comm (MPI_THREAD_MULTIPLE, 3), and without (0).
own_mpi() {
    local mpi=$1 level
    for level in 0 3; do
        run 0 env_of AMP_LOADS_MPI="${LIBRARY[$mpi]}" env_of AMP_THREADS=$level "$mpi" 3 "$program" values
        each 3 'all values are right'
    done
}

# ---- failures ----

# signalled MPI SIGNAL: rank 1 of 3 gets it after some steps; |took| is the time to the end in milliseconds
signalled() {
    local pid begin status=0 job
    : >"$work/.out" # before the job, lest the lines of the last one are read
    "$1" 3 "$program" loop 2 >"$work/.out" 2>"$work/.err" &
    job=$!
    for _ in {1..200}; do
        (($(grep -c ': pid ' "$work/.out") < 3)) || break
        sleep 0.1
    done
    pid=$(sed -n 's/^rank 1 of 3: pid //p' "$work/.out")
    begin=$(date +%s%3N)
    holds "$1: rank 1 runs" kill "-$2" "$pid"
    wait "$job" || status=$?
    took=$(($(date +%s%3N) - begin))
    kill -KILL "$pid" 2>/dev/null # the launcher cannot end what is stopped
    out=$(<"$work/.out") err='' command_line="$1: rank 1 after SIG$2"
    holds "$command_line: the job fails" test "$status" -ne 0
}

failures() {
    local mpi=$1 rank
    run 0 fails "$mpi" 3 "$program" mismatch # with whatever status, since the launcher may end some
    says "meet: AMP_PEER_FAILED: rank " ": rank 1 meets for 'checkpoint' (8 bytes, after 2 collectives), this rank for"
    run 0 fails "$mpi" 3 "$program" absent
    says 'all_reduce bucket 0 (fc1.weight ..): rank 1 is alive, but has not joined for 2.0 s: it computes in step 117'
    signalled "$mpi" STOP
    for rank in 0 2; do
        says "rank $rank of 3: wait: AMP_PEER_FAILED: rank $rank: " \
            'all_reduce bucket 1 (fc2.weight ..): no answer from rank 1 for 2.0 s: died, hangs or was stopped'
    done
    holds "$command_line: within the bound (took $took ms)" test "$took" -lt 12000
    signalled "$mpi" KILL # ends others before they can speak, or leaves them to the deadline
    holds "$command_line: within the bound (took $took ms)" test "$took" -lt 12000
}

# ---- libraries ----

libraries() {
    local mpi=$1 other=$2
    run 0 "$mpi" 2 "$program" open "${LIBRARY[$mpi]}"
    each 2 opened
    run 1 "$mpi" 2 "$program" open /nowhere/libmpi.so
    says 'amp_comm_open: AMP_NOT_FOUND: the MPI library cannot be opened: /nowhere/libmpi.so: '
    run 1 env_of WORLD_SIZE=4 "$program" open "${LIBRARY[$mpi]}" # by torchrun, or alone in a job of four
    says 'AMP_MISMATCH: the launcher started 4 processes (WORLD_SIZE), but ' ' says that this is rank 0 of 1'
    has_mpi "${other##*.}" || return
    run 1 "$mpi" 2 "$program" open "${LIBRARY[${other##*.}]}"
    says "AMP_MISMATCH: the launcher started 2 processes (${SIZE[$mpi]}), but " \
        "${NAME[${other##*.}]}" ' says that this is rank 0 of 1: they do not belong together; start it with the mpi' \
        '--dist-library'
}

# numbers COMPILER...
numbers() {
    run 0 "$@" -std=c11 -Wall -Wextra -Werror -I. -Ibase/include tests/runtime/comm/mpi_numbers.c -o "$work/numbers"
    run 0 "$work/numbers"
    says 'the numbers are right'
}

for mpi in openmpi mpich; do
    [[ $mpi == openmpi ]] && other=mpiexec.mpich || other=mpirun.openmpi
    if ! has_mpi $mpi; then
        skipped "$lacking (tools/setup --mpi)"
        continue
    fi
    values $mpi
    own_mpi $mpi
    failures $mpi
    libraries $mpi $other
    if links mpicc.$mpi mpi.h; then numbers mpicc.$mpi; else skipped "our numbers and ${NAME[$mpi]}'s: $lacking"; fi
done

# ---- the ABI of MPI 5, by the file's name; the same MPICH by its own numbers ----

if [[ -e .mpi/lib/libmpi_abi.so.1 ]] && abi 1 true >/dev/null 2>&1; then
    for library in libmpi_abi.so.1 libmpi.so.12; do
        run 0 env_of AMP_LIBRARY=$library abi 3 "$program" values ordered
        each 3 'all values are right'
    done
    run 0 env_of LD_DEBUG=files abi 1 "$program" values # which library the launcher's variables choose
    says 'libmpi_abi.so.1' 'all values are right'
    run 0 fails abi 3 "$program" mismatch
    says "rank 1 meets for 'checkpoint'"
    signalled abi STOP
    says 'no answer from rank 1 for 2.0 s: died, hangs or was stopped'
    if [[ -e .mpi/include/mpi.h ]]; then numbers cc -DABI -I.mpi/include; else skipped 'no .mpi/include/mpi.h here'; fi
else
    skipped 'no MPI with the ABI of MPI 5 here (tools/setup --mpi)'
fi

# ---- the library ----

echo 'no library' >"$work/libmpi.so.40"
run 1 env LD_LIBRARY_PATH="$work" OMPI_COMM_WORLD_SIZE=2 "$program" open
says "AMP_NOT_FOUND: no MPI: tried libmpi.so.40: $work/libmpi.so.40: " '; install Open MPI or MPICH, name the file' \
    '--dist-folder'
expect 'the program is built without an MPI' '' "$(ldd "$program" | grep -i mpi)"
finish
