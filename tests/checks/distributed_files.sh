#!/usr/bin/env bash
# amprun train --dist files, which needs no MPI: ranks make the same steps as one rank, and as with --dist mpi, bit for
# bit; who they are, by torchrun's variables, SLURM's or an option; what is refused; ranks that die, stop, fail or are
# asked to end; and going on afterwards in the folder that they left.
#
#     distributed_files.sh --full     also 3 ranks, 4 beside an MPI, and PyTorch's torchrun: full/distributed_files.sh
#
# Waits more than it computes: for ranks that are late, and for timeouts.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/mpi.bash
build //tools:ampc //tools:amprun //tests/runtime/comm:mpi_ranks
ampc=$bin/tools/ampc amprun=$bin/tools/amprun counts=(2 4) full=0
[[ ${1:-} != --full ]] || counts=(2 3 4) full=1
quick_models
tool() { PYTHONPATH=tests/checks python3 tests/checks/distributed.py "$@"; }
for name in OMPI_COMM_WORLD_SIZE PMI_SIZE WORLD_SIZE RANK SLURM_NTASKS SLURM_PROCID; do unset $name; done
meet=$work/meet small=(--data "safetensors:$work/d.st" --batch 16 --seed 3 --quiet)
files=(--dist files --dist-folder "$meet" --dist-timeout 2)

model() { ranks_model "$1" 'batch_norm(linear(x; out = 64, bias = false) as fc1) as bn' "$2" "$3" ''; }
tool data "$work/d.st" 150
model "$work/one.amp" 1 'data_parallel = true'
run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 -o "$work/one.so"
train=("$amprun" train "$work/one.so" "${small[@]}" "${files[@]}")

# as_torchrun R N COMMAND..., as_srun, as_option: rank R of N; N is what it is told
as_torchrun() { RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 "${@:3}"; }
as_srun() { SLURM_PROCID=$1 SLURM_NTASKS=$2 SLURM_LOCALID=$1 "${@:3}"; }
as_option() { "${@:3}" --dist-rank "$1/$2"; }

# ranks N STATUS HOW COMMAND...: N ranks at once, which all end with STATUS; what rank R says is in $work/said.R
ranks() {
    local n=$1 wanted=$2 how=$3 rank status jobs=()
    command_line="$n ranks $how: ${*:4}" command_line=${command_line//$work\//} out='' err=''
    for ((rank = n - 1; rank >= 0; rank--)); do
        "$how" "$rank" "$n" timeout 60 "${@:4}" >"$work/said.$rank" 2>&1 &
        jobs[rank]=$!
    done
    for ((rank = 0; rank < n; rank++)); do
        status=0
        wait "${jobs[rank]}" || status=$?
        expect "$command_line: rank $rank" "$wanted" "$status"
        out+=$(<"$work/said.$rank")
    done
    ((wanted)) || expect "$command_line: nothing is left" '' "$(ls -A "$meet" 2>/dev/null)"
}

# ---- the steps of one rank ----

for n in "${counts[@]}"; do
    model "$work/twin.amp" $n 'data_parallel = true'
    run 0 "$ampc" "$work/twin.amp" --target cpu --isa v3 -o "$work/twin.so"
    run 0 "$amprun" train "$work/twin.so" "${small[@]}" --steps 30 --log "$work/twin.log" --checkpoint "$work/twin.ck"
    how=as_torchrun
    ((n < 3)) || how=as_srun
    ((n < 4)) || how=as_option
    ranks $n 0 $how "${train[@]}" --steps 30 --log "$work/n.log" --checkpoint "$work/n.ck"
    run 0 tool same "$work/twin.log" "$work/n.log" 0
    run 0 tool near "$work/twin.ck" "$work/n.ck" 0
    mpi=$(mpis | head -n 1)
    [[ -n $mpi ]] && ((full || n == 2)) || continue
    run 0 "$mpi" $n "$amprun" train "$work/one.so" "${small[@]}" --steps 30 --dist mpi --reduce ordered \
        --checkpoint "$work/mpi.ck"
    holds "$n ranks: the checkpoint of --dist mpi" cmp "$work/n.ck" "$work/mpi.ck"
done
[[ -n $(mpis) ]] || skipped "$no_mpi"
holds 'the folder that they made is gone' test ! -e "$meet"

# ---- large messages ----

export AMP_FOLDER=$meet
ranks 3 0 as_torchrun "$bin/tests/runtime/comm/mpi_ranks" large 50
says 'rank 0 of 3: ' 'rank 2 of 3: '
ranks 2 0 as_torchrun "$bin/tests/runtime/comm/mpi_ranks" values
says 'rank 1 of 2: all values are right'
ranks 2 1 as_torchrun env AMP_PLANTED=1 "$bin/tests/runtime/comm/mpi_ranks" values ordered
says 'FAIL all_reduce f32 [0]'
unset AMP_FOLDER

# ---- evaluation, and going on ----

mkdir "$meet"
ranks 2 0 as_torchrun "${train[@]}" --steps 12 --checkpoint "$work/two.ck" --save "$work/two.st"
ranks 2 0 as_torchrun "${train[@]}" --steps 30 --resume "$work/two.ck" --checkpoint "$work/on.ck"
ranks 2 0 as_torchrun "${train[@]}" --steps 30 --checkpoint "$work/whole.ck"
run 0 tool near "$work/on.ck" "$work/whole.ck" 0
holds 'a folder that was there stays' test -d "$meet"
run 0 "$amprun" eval "$work/one.so" --data "safetensors:$work/d.st" --batch 16 --weights "$work/two.st"
alone=$out
ranks 2 0 as_srun "$amprun" eval "$work/one.so" --data "safetensors:$work/d.st" --batch 16 --weights "$work/two.st" \
    "${files[@]}"
loss='"loss": [0-9.]{8}'
expect 'an evaluation of two ranks' "$(grep -oE "$loss" <<<"$alone")" "$(grep -oE "$loss" "$work/said.0")"
says '"samples": 150'
if ((full)) && ! answers .torch-env/bin/torchrun --help; then
    skipped "$lacking (tools/torch-env)"
elif ((full)); then
    run 0 .torch-env/bin/torchrun --standalone --nproc-per-node 2 --no-python "${train[@]}" --steps 30 \
        --checkpoint "$work/torchrun.ck"
    run 0 tool near "$work/torchrun.ck" "$work/whole.ck" 0
fi

# ---- what is refused ----

run 2 "$amprun" train "$work/one.so" "${small[@]}" --dist files
says '--dist files: ranks meet in a folder that all of them see; name it with --dist-folder'
run 2 "$amprun" train "$work/one.so" "${small[@]}" --dist mpi --dist-folder "$meet"
says '--dist-folder only with --dist files or --dist nccl'
run 2 "$amprun" train "$work/one.so" "${small[@]}" --dist mpi --dist-rank 0/2
says '--dist-rank only with --dist-folder'
run 2 "$amprun" train "$work/one.so" "${small[@]}" "${files[@]}" --dist-library libmpi.so
says 'leave out --dist-library'
for wrong in 2/2 -1/2 1 1/2/3 x/2; do
    run 2 "${train[@]}" --dist-rank=$wrong
    says "--dist-rank $wrong: R/N is wanted"
done
run 2 env WORLD_SIZE=4 "$amprun" train "$work/one.so" "${small[@]}"
says '4 processes were started (WORLD_SIZE), and each would train alone' 'or --dist files --dist-folder DIR'
run 1 "${train[@]}" --steps 1
says 'nothing says which rank this process is' '--dist-rank'
run 1 env WORLD_SIZE=2 "${train[@]}" --steps 1
says 'WORLD_SIZE says that 2 processes were started, but not which one of them this is'
echo text >"$meet/notes.txt"
run 1 "${train[@]}" --steps 1 --dist-rank 0/2
says "$meet holds notes.txt, which is not a file of ranks: give a folder that is empty"
rm "$meet/notes.txt"
as_torchrun 1 3 "${train[@]}" --steps 1 >"$work/other" 2>&1 &
run 1 as_torchrun 0 2 "${train[@]}" --steps 1
says 'a process was started as rank 1 of 3, and rank 0 as one of 2: start all with the same number of ranks'
wait $!
expect 'and so says the other' 1 "$(grep -c 'rank 1 of 3, and rank 0 as one of 2' "$work/other")"
ranks 2 1 as_torchrun bash -c 'exec "$@" --seed $((3 + RANK))' - "${train[@]}" --steps 5
says 'rank 1 has another seed than rank 0: 4 instead of 3'

# ---- faults ----

tool data "$work/damaged.st" 150 label
ranks 2 1 as_torchrun bash -c 'data=$0; ((RANK)) || data=$1; shift; exec "$@" --data "safetensors:$data"' \
    "$work/damaged.st" "$work/d.st" "${train[@]}" --steps 50
says 'rank 0: rank 1 says: ' 'damaged.st: input targets, sample 77: index 99 is neither in 0 .. 4'

# begin STEPS: two ranks in the background, pids in $zero and $one, until rank 0 has made some steps
begin() {
    rm -f "$work/run.log"
    set -m # lest SIGINT is ignored
    env RANK=0 WORLD_SIZE=2 "${train[@]}" --steps "$1" --log "$work/run.log" --checkpoint "$work/run.ck" \
        --checkpoint-every 5 >"$work/said.0" 2>&1 &
    zero=$!
    env RANK=1 WORLD_SIZE=2 "${train[@]}" --steps "$1" >"$work/said.1" 2>&1 &
    one=$!
    set +m
    for _ in {1..300}; do
        [[ ! -s $work/run.log ]] || (($(grep -c '"iteration"' "$work/run.log") < 20)) || break
        sleep 0.05
    done
}
ends() { # WHAT PID STATUS
    local status=0
    wait "$2" || status=$?
    expect "$1" "$3" "$status"
}

for signal in KILL STOP; do
    begin 1000000
    start=$(date +%s%3N)
    kill -$signal "$one"
    ends "rank 0 after SIG$signal of rank 1" "$zero" 1
    took=$(($(date +%s%3N) - start))
    kill -KILL "$one" 2>/dev/null
    wait "$one" 2>/dev/null
    out=$(<"$work/said.0") err='' command_line="SIG$signal of rank 1"
    says 'rank 0: ' 'no answer from rank 1 for 2.0 s: died, hangs or was stopped'
    holds "$command_line: within the bound ($took ms)" test $took -lt 7000
    holds "$command_line: files are left" test -n "$(ls -A "$meet")"
    last=$(tail -n 1 "$work/run.log" | sed 's/^{"iteration": \([0-9]*\),.*/\1/')
    to=$((last + 7))
    ranks 2 0 as_torchrun "${train[@]}" --steps $to --resume "$work/run.ck" --checkpoint "$work/on.ck"
    ranks 2 0 as_torchrun "${train[@]}" --steps $to --checkpoint "$work/whole.ck"
    run 0 tool near "$work/on.ck" "$work/whole.ck" 0
done

begin 1000000
kill -TERM "$one"
ends 'rank 0 after SIGTERM of rank 1' "$zero" 143
ends 'rank 1 after SIGTERM' "$one" 143
out=$(<"$work/said.0") err='' command_line='SIGTERM of rank 1'
says 'rank 0: SIGTERM: training ended after step ' "go on with --resume $work/run.ck"
expect "$command_line: nothing is left" '' "$(ls -A "$meet")"
finish
