#!/usr/bin/env bash
# amprun train --dist mpi over Open MPI and MPICH, whichever is installed (tools/setup --mpi): ranks make the steps of
# one rank with as many micro-batches, bit for bit; what is refused; signals, faults, and going on with other ranks.
#
#     distributed.sh          2 ranks; over the second MPI FP16, what one rank fails in, an ended launcher, a fault
#     distributed.sh --full   1 to 4 ranks, every precision, everything over both: full/distributed.sh
#
# Waits more than it computes: for launchers, and for timeouts.
set -uo pipefail
source tests/checks/checks.bash
source tests/checks/mpi.bash
source tests/checks/faults.bash
build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
quick_models
export FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1
tool() { PYTHONPATH=tests/checks python3 tests/checks/distributed.py "$@"; }
ranks=(2) precisions=(fp16 fp32) some=2
[[ ${1:-} != --full ]] || ranks=(1 2 3 4) precisions=(fp32 fp16 bf16) some=8

# model FILE ACCUMULATE LINE...: with labels that are ignored, dropout, clipping and a running mean. The layer in front
# of batch norm has no bias: its gradient would be rounding, and adamw would make steps of any rounding.
model() { ranks_model "$1" 'batch_norm(linear(x; out = 64, bias = false) as fc1) as bn' "$2" "$3" ''; }
tool data "$work/d.st" 150
tool data "$work/wild.st" 300 wild
tool data "$work/even.st" 160
small=(--data "safetensors:$work/d.st" --batch 16 --steps 50 --seed 3)

# ---- without an MPI ----

model "$work/one.amp" 1 'data_parallel = true'
run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision fp32 -o "$work/one.so"
run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision fp32 --distribute none -o "$work/alone.so"
run 0 "$ampc" "$work/one.amp" --dump-ir=distribute --emit ir -o /dev/null
says 'func reduce_step' 'all_reduce(%"fc2.weight/sum"' 'because {distribute, "losses, metrics and counts"}'
run 0 "$amprun" train "$work/one.so" "${small[@]}" --batch 15 --quiet --log "$work/one.log" --save "$work/one.st"
run 0 "$amprun" train "$work/alone.so" "${small[@]}" --batch 15 --quiet --log "$work/alone.log"
run 0 tool same "$work/one.log" "$work/alone.log" 1e-4
model "$work/sync.amp" 1 'data_parallel = true'
sed -i 's/ as fc1)/ as fc1; sync = true)/' "$work/sync.amp"
run 0 "$ampc" "$work/sync.amp" --dump-ir=distribute --emit ir -o /dev/null
says 'sum_ranks' 'because {sync, of bn.batch_norm, "squares around the mean of all ranks"}'
run 0 "$ampc" "$work/sync.amp" --target cpu --isa v3 --precision fp32 -o "$work/sync.so"
run 0 "$ampc" "$work/one.amp" --distribute zero1 --dump-ir=distribute --emit ir -o /dev/null
says 'reduce_scatter(%"fc2.weight/sum"' 'func gather_step' 'all_gather(%fc2.weight'
run 2 "$ampc" "$work/one.amp" --distribute all -o "$work/x.so"
says "unknown value 'all' of distribute; use none, data" 'or zero1'
run 2 "$amprun" train "$work/one.so" "${small[@]}" --reduce ordered
says 'only with --dist'
run 1 "$amprun" train "$work/one.so" "${small[@]}" --dist mpi --dist-library "$work/none.so"
says 'none.so'
run 2 env OMPI_COMM_WORLD_SIZE=4 "$amprun" train "$work/one.so" "${small[@]}"
says '4 processes were started (OMPI_COMM_WORLD_SIZE), and each would train alone' 'give --dist mpi' 'or --allow alone'
run 2 env OMPI_COMM_WORLD_SIZE=4 "$amprun" train "$work/one.so" "${small[@]}" --force
run 0 env OMPI_COMM_WORLD_SIZE=4 "$amprun" train "$work/one.so" "${small[@]}" --steps 1 --allow alone

# ---- the steps of one rank ----

# twins MPI N PRECISION: with the sums of the library within rounding, with ordered ones bit for bit
twins() {
    local mpi=$1 n=$2 p=$3 data=$work/d.st reduce tolerance=1e-5 drift=1e-5 nearest=twin
    [[ $p == fp32 ]] || tolerance=2e-2 drift=5e-2
    if [[ $p == fp16 ]]; then # as many steps between overflows, whatever the ranks
        data=$work/wild$n.st
        tool data "$data" $((75 * n)) wild
    fi
    small=(--data "safetensors:$data" --batch 16 --steps 50 --seed 3)
    model "$work/$n.amp" "$n" 'data_parallel = true'
    run 0 "$ampc" "$work/$n.amp" --target cpu --isa v3 --precision "$p" -o "$work/twin.so"
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision "$p" -o "$work/one.so"
    run 0 "$amprun" train "$work/twin.so" "${small[@]}" --quiet --log "$work/twin.log" --checkpoint "$work/twin.ck"
    # 4 ranks the libraries add in pairs. After 50 steps in f16 one rank that does so, too, has a running mean that is
    # 3.3 % of the largest off, and a moment 9.5 %.
    if [[ $n == 4 && $p != fp32 ]]; then
        nearest=tree
        run 0 "$ampc" "$work/$n.amp" --target cpu --isa v3 --precision "$p" --accumulate-order tree -o "$work/tree.so"
        run 0 "$amprun" train "$work/tree.so" "${small[@]}" --quiet --checkpoint "$work/tree.ck"
    fi
    for reduce in fast ordered; do
        [[ $reduce == fast ]] || nearest=twin
        run 0 "$mpi" "$n" "$amprun" train "$work/one.so" "${small[@]}" --quiet --dist mpi --reduce $reduce \
            --log "$work/$n.log" --checkpoint "$work/$n.ck"
        run 0 tool same "$work/twin.log" "$work/$n.log" $tolerance
        run 0 tool near "$work/$nearest.ck" "$work/$n.ck" $drift
    done
    run 0 tool same "$work/twin.log" "$work/$n.log" 0
    run 0 tool near "$work/twin.ck" "$work/$n.ck" 0
}

# Two micro-batches on each of two ranks, added as a tree.
in_pairs() {
    local mpi=$1
    small=(--data "safetensors:$work/wild.st" --batch 16 --steps 25 --seed 3 --quiet)
    model "$work/4.amp" 4 'data_parallel = true'
    model "$work/2.amp" 2 'data_parallel = true'
    run 0 "$ampc" "$work/4.amp" --target cpu --isa v3 --accumulate-order tree -o "$work/twin.so"
    run 0 "$ampc" "$work/2.amp" --target cpu --isa v3 --accumulate-order tree -o "$work/pair.so"
    run 0 "$ampc" "$work/2.amp" --target cpu --isa v3 -o "$work/left.so"
    run 0 "$amprun" train "$work/twin.so" "${small[@]}" --log "$work/twin.log" --checkpoint "$work/twin.ck"
    run 0 "$mpi" 2 "$amprun" train "$work/pair.so" "${small[@]}" --dist mpi --reduce ordered --log "$work/pair.log" \
        --checkpoint "$work/pair.ck"
    run 0 tool same "$work/twin.log" "$work/pair.log" 0
    run 0 tool near "$work/twin.ck" "$work/pair.ck" 0
    fails "$mpi" 2 "$amprun" train "$work/left.so" "${small[@]}" --dist mpi --reduce ordered
    says 'its 2 micro-batches from left to right' 'compile the model with --accumulate-order tree'
}

# Each rank with a share of the moments: the bits of ranks with all of them, whoever goes on from whose checkpoint. The
# norm for clipping is added by ranks, in another order.
shared() {
    local mpi=$1 n=$2 way
    small=(--data "safetensors:$work/wild.st" --batch 15 --seed 3 --quiet --dist mpi)
    sed '/clip_norm/d' "$work/one.amp" >"$work/free.amp"
    for way in data zero1; do
        run 0 "$ampc" "$work/free.amp" --target cpu --isa v3 --distribute $way -o "$work/$way.so"
        run 0 "$mpi" "$n" "$amprun" train "$work/$way.so" "${small[@]}" --reduce ordered --steps 30 \
            --log "$work/$way.log" --checkpoint "$work/$way.ck"
    done
    run 0 tool same "$work/data.log" "$work/zero1.log" 0
    run 0 tool near "$work/data.ck" "$work/zero1.ck" 0
    run 0 "$mpi" "$n" "$amprun" train "$work/zero1.so" "${small[@]}" --reduce ordered --steps 20 \
        --checkpoint "$work/half.ck" --checkpoint-every 7
    run 0 "$mpi" "$n" "$amprun" train "$work/zero1.so" "${small[@]}" --reduce ordered --steps 30 \
        --resume "$work/half.ck" --checkpoint "$work/half.ck" --checkpoint-every 0.2s
    run 0 tool near "$work/data.ck" "$work/half.ck" 0
    run 0 "$amprun" train "$work/data.so" --data "safetensors:$work/wild.st" --steps 32 --quiet --resume "$work/half.ck"
    # Of 4 ranks one overflows so often that the scale is at its floor after 131 steps.
    run 0 "$mpi" "$n" "$amprun" train "$work/zero1.so" "${small[@]}" --steps $((n < 4 ? 300 : 100))
    says 'rank 0: warning: step'
    expect 'rank 0 alone warns of the scale' '' "$(grep -o 'rank [1-9]: warning' <<<"$out$err" | head -n 1)"
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision fp32 -o "$work/data.so"
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision fp32 --distribute zero1 -o "$work/zero1.so"
    for way in data zero1; do
        run 0 "$mpi" "$n" "$amprun" train "$work/$way.so" "${small[@]}" --steps 30 --log "$work/$way.log"
    done
    run 0 tool same "$work/data.log" "$work/zero1.log" 1e-4
}

# However samples are divided, masks are the same, and so is the step, but for the order of sums.
divided() {
    local mpi=$1
    model "$work/plain.amp" 1 'data_parallel = true'
    sed -i 's/batch_norm(\(.*\)) as bn/\1/' "$work/plain.amp"
    run 0 "$ampc" "$work/plain.amp" --target cpu --isa v3 --precision fp32 -o "$work/plain.so"
    small=(--data "safetensors:$work/even.st" --steps 50 --seed 3 --quiet)
    run 0 "$amprun" train "$work/plain.so" "${small[@]}" --batch 32 --log "$work/whole.log"
    run 0 "$mpi" 2 "$amprun" train "$work/plain.so" "${small[@]}" --batch 16 --dist mpi --log "$work/two.log"
    run 0 tool same "$work/whole.log" "$work/two.log" 1e-4
}

# A batch norm that is sync has the statistics of all samples of a step; the last step has fewer.
synced() {
    local mpi=$1
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision fp32 -o "$work/one.so"
    small=(--data "safetensors:$work/d.st" --steps 50 --seed 3 --quiet)
    run 0 "$amprun" train "$work/one.so" "${small[@]}" --batch 32 --log "$work/whole.log"
    run 0 "$mpi" 2 "$amprun" train "$work/sync.so" "${small[@]}" --batch 16 --dist mpi --log "$work/two.log"
    run 0 tool same "$work/whole.log" "$work/two.log" 1e-4
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" "${small[@]}" --batch 16 --dist mpi --log "$work/apart.log"
    fails tool same "$work/whole.log" "$work/apart.log" 1e-2
}

# On CUDA, here the stand-in, what ranks exchange goes by the host: the bits of one rank on the same device.
on_cuda() {
    local mpi=$1
    small=(--data "safetensors:$work/d.st" --batch 16 --steps 6 --seed 3 --quiet --device cuda)
    model "$work/2.amp" 2 'data_parallel = true'
    run 0 "$ampc" "$work/2.amp" --isa v3 -o "$work/twin.so"
    run 0 "$ampc" "$work/one.amp" --isa v3 -o "$work/one.so"
    run 0 tools/with-fakecuda "$amprun" train "$work/twin.so" "${small[@]}" --log "$work/twin.log" \
        --checkpoint "$work/twin.ck"
    run 0 "$mpi" 2 tools/with-fakecuda "$amprun" train "$work/one.so" "${small[@]}" --dist mpi --reduce ordered \
        --log "$work/two.log" --checkpoint "$work/two.ck"
    run 0 tool same "$work/twin.log" "$work/two.log" 0
    run 0 tool near "$work/twin.ck" "$work/two.ck" 0
}

# ---- what is refused, and how it ends ----

# fails COMMAND...: with whatever status but 0, as launchers have their own
fails() {
    local status=0
    command_line="${*//$work\//}"
    "$@" >"$work/.out" 2>"$work/.err" || status=$?
    out=$(tr -d '\0' <"$work/.out") err=$(tr -d '\0' <"$work/.err")
    if ((status)); then passed; else failed "$command_line" 'should fail'; fi
}

refused() {
    local mpi=$1
    small=(--data "safetensors:$work/d.st" --batch 16 --steps 50 --seed 3)
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 -o "$work/one.so"
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --precision bf16 -o "$work/other.so"
    run 0 "$ampc" "$work/one.amp" --target cpu --isa v3 --distribute none -o "$work/alone.so"
    fails "$mpi" 2 "$amprun" train "$work/one.so" "${small[@]}" --save "$work/x.st"
    says '2 processes were started'
    fails "$mpi" 2 "$amprun" train "$work/alone.so" "${small[@]}" --dist mpi
    says 'was compiled to train alone, and there are 2 ranks; compile it with --distribute data'
    fails "$mpi" 1 "$amprun" train "$work/one.so" "${small[@]}" --dist mpi : \
        -n 1 "$amprun" train "$work/other.so" "${small[@]}" --dist mpi
    says 'rank 1 has another policy (SHA-256) than rank 0: '
    fails "$mpi" 1 "$amprun" train "$work/one.so" "${small[@]}" --dist mpi : \
        -n 1 "$amprun" train "$work/one.so" --data "safetensors:$work/d.st" --batch 16 --steps 50 --seed 4 --dist mpi
    says 'rank 1 has another seed than rank 0: 4 instead of 3'
}

# A checkpoint of two ranks goes on with one, whose batch is twice as large; bits of the twin.
resumed() {
    local mpi=$1
    small=(--data "safetensors:$work/d.st" --seed 3 --quiet)
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" "${small[@]}" --batch 15 --steps 20 --dist mpi \
        --checkpoint "$work/two.ck"
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" "${small[@]}" --steps 40 --dist mpi --resume "$work/two.ck" \
        --checkpoint "$work/on.ck"
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" "${small[@]}" --batch 15 --steps 40 --dist mpi \
        --checkpoint "$work/whole.ck"
    run 0 tool near "$work/on.ck" "$work/whole.ck" 0
    run 0 "$amprun" train "$work/one.so" "${small[@]}" --steps 40 --resume "$work/two.ck" --log "$work/rest.log"
    expect 'one rank takes the samples of two' 20 "$(grep -c '"iteration"' "$work/rest.log")"
    fails "$mpi" 4 "$amprun" train "$work/one.so" "${small[@]}" --steps 40 --dist mpi --resume "$work/two.ck"
    says 'was trained by 2 ranks with batches of 15; 4 ranks take the same steps with batches of 7.5'
}

# ---- ranks that end by themselves ----

# lone WHAT...: one rank fails, and the other says why, not that no rank answers
lone() {
    says "$@"
    expect "$command_line: no rank waits" '' "$(grep -o 'no answer' <<<"$out$err" | head -n 1)"
}

# alone_fails MPI EVERY: before the first step, in one, and rank 0 in one; with EVERY whatever else
alone_fails() {
    local mpi=$1 every=$2 one train=("$amprun" train "$work/one.so" --batch 16 --steps 50 --seed 3 --dist mpi)
    one="safetensors:$work/d.st"
    tool data "$work/damaged.st" 150 label
    fails "$mpi" 1 "${train[@]}" --data "$one" : -n 1 "${train[@]}" --data "safetensors:$work/damaged.st"
    lone 'rank 0: rank 1 says: ' 'damaged.st: input targets, sample 77: index 99 is neither in 0 .. 4'
    fails "$mpi" 1 "${train[@]}" --data "$one" : -n 1 "${train[@]}" --data "safetensors:$work/none.st"
    lone "rank 0: rank 1 says: $work/none.st: cannot open: No such file or directory"
    fails "$mpi" 2 "${train[@]}" --data "$one" --checkpoint /dev/full --checkpoint-every 5
    lone 'rank 1: rank 0 says: --checkpoint /dev/full: cannot write: No space left on device'
    [[ $every ]] || return 0
    tool data "$work/short.st" 140
    fails "$mpi" 1 "${train[@]}" --data "$one" : -n 1 "${train[@]}" --data "safetensors:$work/short.st"
    lone 'rank 1 has another number of samples in --data than rank 0: 140 instead of 150'
    fails "$mpi" 1 "${train[@]}" --data "$one" : -n 1 "${train[@]}" --data "$one" --epochs many
    lone 'rank 0: rank 1 says: --epochs many: a whole number from 1 to 2147483647 is wanted'
    fails "$mpi" 1 "${train[@]}" --data "$one" : -n 1 "${train[@]}" --data "$one" --stats 5
    lone 'rank 0: rank 1 says: train --stats: its lines go into the log'
    fails "$mpi" 2 "${train[@]}" --data "$one" --log /dev/full
    lone 'rank 1: rank 0 says: --log /dev/full: could not be written: No space left on device'
    fails "$mpi" 2 "${train[@]}" --data "$one" --save "$work/none/x.st"
    lone "rank 1: rank 0 says: --save $work/none/x.st: cannot create: No such file or directory"
    train[4]=400000 # --batch: 315 MB of activations
    fails "$mpi" 1 "${train[@]}" --data "$one" : \
        -n 1 bash -c 'ulimit -v 500000 && exec "$@"' - "${train[@]}" --data "$one"
    lone 'rank 1: ' 'no memory for' # rank 0, which clears as much, may be ended by the launcher before it can speak
}

# ---- signals and faults ----

# stopped MPI SIGNAL WHO: one rank, all of them or the launcher is asked to end: all ranks do, after the same step
stopped() {
    local mpi=$1 job last pids name=$work/stopped
    rm -f "$name".*
    set -m # lest SIGINT is ignored
    "$mpi" 2 bash -c 'echo $$ >"$0.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"; exec "$@"' "$name.pid" "$amprun" train \
        "$work/one.so" --data "safetensors:$work/d.st" --batch 15 --seed 3 --steps 1000000 --quiet --dist mpi \
        --checkpoint "$name.ck" --log "$name.log" >"$work/.out" 2>"$work/.err" &
    job=$!
    set +m
    for _ in {1..300}; do
        [[ ! -s $name.log ]] || (($(grep -c '"iteration"' "$name.log") < 5)) || break
        sleep 0.1
    done
    case $3 in
    all) mapfile -t pids < <(cat "$name".pid.*) ;;
    launcher) mapfile -t pids < <(pgrep -P "$(pgrep -o -f -- "$name.pid")") ;; # timeout would send it twice
    *) mapfile -t pids <"$name.pid.$3" ;;
    esac
    command_line="$mpi: SIG$2 of $3"
    holds "$command_line: they run" kill "-$2" "${pids[@]}"
    if [[ $mpi-$3 == mpich-launcher ]]; then
        wait "$job" # ended itself, it succeeds or not, where both ranks end with 143
    else
        holds "$command_line: the job says that it was ended" fails_of "$job"
    fi
    out=$(<"$work/.out") err=$(<"$work/.err")
    says "rank 0: SIG" ": training ended after step"
    last=$(tail -n 1 "$name.log" | sed 's/^{"iteration": \([0-9]*\),.*/\1/')
    says "training ended after step $last of 1000000; go on with --resume $name.ck"
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" --data "safetensors:$work/d.st" --seed 3 --quiet --dist mpi \
        --steps $((last + 5)) --resume "$name.ck" --checkpoint "$name.ck" --log "$name.log"
    run 0 "$mpi" 2 "$amprun" train "$work/one.so" --data "safetensors:$work/d.st" --batch 15 --seed 3 --quiet \
        --dist mpi --steps $((last + 5)) --checkpoint "$name.whole" --log "$name.all"
    run 0 tool near "$name.ck" "$name.whole" 0
    run 0 tool same "$name.log" "$name.all" 0
}
fails_of() { ! wait "$1"; }

[[ -z $(mpis) ]] || faults_inputs
for mpi in $(mpis); do
    every=''
    [[ $mpi != "$(mpis | head -n 1)" && ${1:-} != --full ]] || every=1
    for n in "${ranks[@]}"; do
        for p in "${precisions[@]}"; do
            if [[ $every || $p == fp16 ]]; then twins "$mpi" "$n" "$p"; fi
        done
    done
    if [[ $every ]]; then
        for n in "${ranks[@]}"; do ((n == 1)) || shared "$mpi" "$n"; done
        in_pairs "$mpi"
        divided "$mpi"
        synced "$mpi"
        on_cuda "$mpi"
        refused "$mpi"
        resumed "$mpi"
        stopped "$mpi" TERM 1
        stopped "$mpi" INT all
    fi
    alone_fails "$mpi" "$every"
    stopped "$mpi" TERM launcher
    run 0 faults "$mpi" $((every ? some : 1)) "$RANDOM"
    told
done
[[ -n $(mpis) ]] || skipped "$no_mpi"
finish
