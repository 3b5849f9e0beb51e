#!/usr/bin/env bash
# amprun train --dist nccl, over the stand-ins for the CUDA driver and for NCCL (fakecuda/nccl): ranks make the bits
# that they make over MPI; a step is two graph launches, also with sums over ranks inside of one (batch norm with sync),
# and the host waits no more often than one rank alone; a call of NCCL that fails and a rank that is late, dead,
# stopped or elsewhere is an error that says so, and nothing hangs. Ranks that meet in a folder, without an MPI, make
# the same bits.
#
#     cuda_distributed.sh          2 ranks
#     cuda_distributed.sh --full   2 to 4 ranks, every precision, the other MPI, every call more than once: what differs
#                                  from a fault of the short form only in the call or in the graph
#
# Takes long.
set -uo pipefail
source tests/checks/cuda.bash
source tests/checks/mpi.bash
build //tools:ampc //tools:amprun //fakecuda:libcuda.so.1 //fakecuda/nccl:libnccl.so.2 \
    //tests/runtime/comm:nccl_program
ampc=$bin/tools/ampc amprun=$bin/tools/amprun MPI_LIMIT=60
quick_models
export FAKECUDA_LIBRARY=$bin/fakecuda/libcuda.so.1 FAKECUDA_DEVICES=4
tool() { PYTHONPATH=tests/checks python3 -B tests/checks/distributed.py "$@"; }
ranks=(2) precisions=(fp16) again=(1) full=0
[[ ${1:-} != --full ]] || ranks=(2 3 4) precisions=(fp32 bf16 fp16) again=(1 2 7) full=1

segments() { find /dev/shm -maxdepth 1 -name 'fakecuda-nccl-*' | sort; }
segments=$(segments)

# model FILE ACCUMULATE NORM: labels that are ignored, dropout; with NORM clipping, a running mean, and gradients that
# travel in bf16. Without clipping, whose norm ranks with shares (zero1) add up by shares, they make the bits of ranks
# that have all.
model() {
    local hidden='linear(x; out = 64) as fc1'
    [[ -z $3 ]] || hidden="batch_norm($hidden) as bn"
    ranks_model "$1" "$hidden" "$2" 'data_parallel = true' "${3:+reduce = bf16}"
    [[ $3 ]] || sed -i '/clip_norm/d' "$1"
}

# ---- the numbers, against nccl.h ----

header=''
for folder in "${NCCL_HOME:-/none}/include" /usr/include /usr/local/include /usr/local/cuda/include \
    .torch-env/lib/python3*/site-packages/nvidia/nccl/include; do
    [[ -n $header || ! -f $folder/nccl.h ]] || header=$folder
done
cuda_headers=(/usr/local/cuda/include .torch-env/lib/python3*/site-packages/nvidia/cu*/include)
if [[ -n $header && -f ${cuda_headers[0]}/cuda_runtime.h ]]; then
    run 0 cc -std=c11 -Wall -Wextra -Werror -I. -isystem "$header" -isystem "${cuda_headers[0]}" -c \
        tests/runtime/comm/nccl_numbers.c -o "$work/numbers.o"
else
    skipped 'no nccl.h is installed: our declarations are not compared with it'
fi

# ---- what is refused ----

tool data "$work/d.st" 150
tool data "$work/wild.st" 150 wild
model "$work/one.amp" 1 ''
run 2 "$amprun" train "$work/one.so" --data "$work/d.st" --dist nccl
says '--dist nccl adds up in the memory of GPUs: give --device cuda, or take --dist mpi'
run 2 "$amprun" train "$work/one.so" --data "$work/d.st" --dist nccl --device cuda --reduce ordered
says '--reduce ordered only with --dist mpi: NCCL adds in an order of its own'

printf 'amp 1\nmodel probe(x: f32[N, 8]) -> y { y = x + x }\n' >"$work/probe.amp"
"$ampc" "$work/probe.amp" --isa v3 -o "$work/probe.so" --target cuda --gpu-arch sm_80 2>"$work/probe.err" || {
    have_nvrtc && failed "ampc --gpu-arch sm_80" "$(<"$work/probe.err")"
    have_nvrtc || skipped 'NVRTC is not installed (tools/setup --nvrtc): nothing is trained'
    finish
}

# compile NAME MODEL [ampc option...]: NAME.so of MODEL.amp; its kernels once, not by each of the ranks
compile() {
    run 0 "$ampc" "$work/$2.amp" --isa v3 -o "$work/$1.so" "${@:3}"
    run 0 tools/with-fakecuda "$amprun" info "$work/$1.so" --device cuda --batch "$batch"
}
batch=16

# ---- without an MPI: under torchrun's variables, in a folder ----

# torchrun FOLDER FILE LIMIT [option...]: two ranks into FILE.ck, and what rank R says into FILE.R
torchrun() {
    local meet=$1 file=$2 rank
    shift 2
    for rank in 1 0; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 timeout 60 tools/with-fakecuda "$amprun" train \
            "$work/one.so" --data "safetensors:$work/d.st" --batch 16 --seed 3 --quiet --device cuda \
            --dist-folder "$meet" "$@" >"$file.$rank" 2>&1 &
    done
    wait
}
compile one one
for engine in files nccl; do
    torchrun "$work/meet" "$work/$engine" --steps 12 --dist $engine --checkpoint "$work/$engine.ck"
    expect "two ranks of --dist $engine say nothing" '' "$(cat "$work/$engine".[01])"
    holds "--dist $engine: the folder is gone" test ! -e "$work/meet"
done
run 0 tool near "$work/files.ck" "$work/nccl.ck" 0
FAKECUDA_NCCL=kill:1:9 torchrun "$work/meet" "$work/dead" --steps 40 --dist nccl --dist-timeout 2
out=$(<"$work/dead.0") err='' command_line='a rank of --dist nccl that was killed, without an MPI'
says 'rank 0: ' 'no answer from rank 1 for 2.0 s: died, hangs or was stopped'
holds 'what a dead rank left is taken for nothing' torchrun "$work/meet" "$work/again" --steps 12 --dist nccl \
    --checkpoint "$work/again.ck"
run 0 tool near "$work/files.ck" "$work/again.ck" 0

# program MODE: two ranks of a program that has a communicator of NCCL; what rank R says is in MODE.R
program() {
    local rank
    for rank in 1 0; do
        RANK=$rank WORLD_SIZE=2 timeout 60 tools/with-fakecuda "$bin/tests/runtime/comm/nccl_program" "$1" \
            "$work/one.so" 6 "$work/meet" "$work/$1.id" >"$work/$1.$rank" 2>&1 &
    done
    wait
}
for mode in own given wrong; do program $mode; done
expect 'a program makes six steps' 6 "$(grep -c '^0x' "$work/own.0")"
expect 'and the same over its own communicator' "$(cat "$work"/own.[01])" "$(cat "$work"/given.[01])"
out=$(cat "$work"/wrong.[01]) err='' command_line='a communicator that has other ranks'
says "the program's communicator of NCCL has this process as rank " 'of 2: give both the same ranks'

[[ -n $(mpis) ]] || {
    skipped "$no_mpi"
    finish
}
mpi=$(mpis | head -n 1) # which of them brings ranks together makes little difference
((!full)) || mpi=$(mpis | tail -n 1)
small=(--data "safetensors:$work/d.st" --batch 16 --seed 3 --quiet --device cuda)

run 1 tools/with-fakecuda "$amprun" train "$work/one.so" "${small[@]}" --steps 1 --dist nccl \
    --dist-library "$work/none.so"
says 'the NCCL library cannot be opened' 'none.so'
echo 'no library' >"$work/libnccl.so.2"
run 1 env LD_LIBRARY_PATH="$work" "$amprun" train "$work/one.so" "${small[@]}" --steps 1 --dist nccl
says 'no NCCL: ' '/libnccl.so.2: ' 'install it (libnccl2' 'or take the engine "mpi"'
rm "$work/libnccl.so.2"
run 1 tools/with-fakecuda "$amprun" train "$work/one.so" "${small[@]}" --steps 1 --dist nccl \
    --dist-library "$bin/fakecuda/libcuda.so.1"
says 'is no NCCL of version 2.18 or newer: it has no ncclGetVersion'

# ---- the same bits as over MPI ----

# over ENGINE MPI RANKS MODEL STEPS [option...]: into ENGINE.log, ENGINE.ck and ENGINE-PROCESS.json
over() {
    local engine=$1 mpi=$2 n=$3 model=$4 steps=$5
    shift 5
    rm -f "$work/$engine"-*.json
    run 0 "$mpi" "$n" tools/with-fakecuda --report "$work/$engine-%p.json" "$amprun" train "$work/$model.so" \
        "${small[@]}" --steps "$steps" --dist "$engine" --log "$work/$engine.log" --checkpoint "$work/$engine.ck" "$@"
}

# Of two ranks the sum has one order.  Of more the stand-in adds in f32 by rank, as the ordered sums of MPI do.
alike() {
    local mpi=$1 n=$2 p=$3 model=$4 order=fast
    ((n == 2)) || order=ordered
    over mpi "$mpi" "$n" "$model" 12 --reduce $order
    over nccl "$mpi" "$n" "$model" 12
    run 0 tool same "$work/mpi.log" "$work/nccl.log" 0
    run 0 tool near "$work/mpi.ck" "$work/nccl.ck" 0
    for report in "$work"/nccl-*.json; do
        asked "$n ranks, $p, $model: the stand-in's report" report "$report" clean
    done
}

# steps MODEL GRAPHS CALLS SHORT: a step of two ranks is GRAPHS graph launches.  Of the device the host waits for
# nothing but, once in each of its CALLS of amp_step at most, the report of a call several ones before, as one rank
# alone does.  Sums that are complete before the last kernel of micro_step wait for no more than they need.  SHORT, and
# three times as many steps are compared.
steps() {
    run 0 "$amprun" info "$work/$1.so" --ranks 2 --device cuda --json
    cp "$work/.out" "$work/info.json"
    over nccl "$mpi" 2 "$1" "$4"
    mapfile -t short < <(ls "$work"/nccl-*.json)
    mkdir "$work/short"
    mv "${short[@]}" "$work/short"
    over nccl "$mpi" 2 "$1" $((3 * $4))
    run 0 python3 -B tests/checks/cuda_distributed.py "$work/short" "$work" $((2 * $4)) "$2" "$3" "$work/info.json"
    printf '%s: %s\n' "$1" "$out"
    rm -r "$work/short"
}

for p in "${precisions[@]}"; do
    for n in "${ranks[@]}"; do
        small=(--data "safetensors:$work/d.st" --batch 16 --seed 3 --quiet --device cuda)
        [[ $p != fp16 ]] || small[1]=safetensors:$work/wild.st
        compile one one --precision "$p"
        alike "$mpi" "$n" "$p" one
    done
    small[1]=safetensors:$work/d.st
    model "$work/norm.amp" 2 norm
    compile norm norm --precision "$p"
    alike "$mpi" 2 "$p" norm
    run 0 "$mpi" 2 "$amprun" train "$work/norm.so" --data "${small[1]}" --batch 16 --seed 3 --quiet --steps 12 \
        --dist mpi --checkpoint "$work/cpu.ck"
    run 0 tool near "$work/cpu.ck" "$work/nccl.ck" 0.05 running_var
done
ranks_model "$work/sync.amp" 'batch_norm(linear(x; out = 64) as fc1; sync = true) as bn' 2 'data_parallel = true' ''
compile sync sync
run 0 "$amprun" info "$work/sync.so" --kernels
says 'collective ' 'bn.batch_norm.sums.ranks: sum_ranks'
alike "$mpi" 2 fp16 sync
# Where ranks have shares a step is micro_step, apply_step and the copies of weights that have been gathered.
compile zero1 one --distribute zero1
over nccl "$mpi" 2 one 20
mv "$work/nccl.log" "$work/data.log"
mv "$work/nccl.ck" "$work/data.ck"
over nccl "$mpi" 2 zero1 20
cp "$work/nccl.log" "$work/zero1.log"
cp "$work/nccl.ck" "$work/zero1.ck"
run 0 tool same "$work/data.log" "$work/zero1.log" 0
run 0 tool near "$work/data.ck" "$work/zero1.ck" 0
for report in "$work"/nccl-*.json; do asked "zero1: the stand-in's report" report "$report" clean; done
over nccl "$mpi" 2 zero1 11
cp "$work/nccl.ck" "$work/half.ck"
over nccl "$mpi" 2 zero1 20 --resume "$work/half.ck"
run 0 tool near "$work/data.ck" "$work/nccl.ck" 0
((!full)) || over nccl "$mpi" 3 zero1 13 --resume "$work/half.ck" --allow other-batch
run 0 "$amprun" train "$work/one.so" --data "safetensors:$work/d.st" --steps 22 --quiet --resume "$work/nccl.ck"
steps zero1 3 1 6
run 1 "$mpi" 2 tools/with-fakecuda "$amprun" train "$work/zero1.so" "${small[@]}" --steps 1 --dist mpi
says 'shares of the moments (zero1) only where they exchange on the device itself' '--dist nccl'
run 0 "$amprun" info "$work/zero1.so" --ranks 4 --device cuda
says 'moments  ' ' on each rank' 'on rank 0: the masters of others are away while a step runs'
steps one 2 1 6
steps sync 3 2 6
expect 'two numbers of samples are captured, of three sums each' 6 \
    "$(sed -n 's/.*"ncclAllReduce":{[^}]*"captured":\([0-9]*\)}.*/\1/p' "$work"/nccl-*.json | sort -n | tail -n 1)"
steps norm 4 2 6 # two micro-batches, the statistics of four in one graph, apply_step
env_of() { (export "$1" && "${@:2}"); }
cp "$work/nccl.ck" "$work/straight.ck"
env_of FAKECUDA_NCCL=late:1:5 over nccl "$mpi" 2 norm 18
run 0 tool near "$work/straight.ck" "$work/nccl.ck" 0

# Buckets that are complete in turn, of 1 MiB and more.  Other orders of streams leave the bits as they are.
ranks_model "$work/deep.amp" 'linear(relu(linear(relu(linear(x; out = 500) as a); out = 560) as b); out = 480) as fc1' \
    1 'data_parallel = true' ''
sed -i '/clip_norm/d' "$work/deep.amp"
batch=4
compile deep deep
small_data=("${small[@]}") deep_data=(--data "safetensors:$work/wild.st" --batch 4 --seed 3 --quiet --device cuda)
small=("${deep_data[@]}")
over mpi "$mpi" 2 deep 3 --reduce fast
env_of FAKECUDA_SEED=3 over nccl "$mpi" 2 deep 3
run 0 tool near "$work/mpi.ck" "$work/nccl.ck" 0
steps deep 2 1 1
expect 'three buckets of four go beside micro_step' 1 "$(grep -c ' 4 calls of ncclAllReduce, 3 of them' <<<"$out")"
run 0 tool near "$work/mpi.ck" "$work/nccl.ck" 0
cp "$work/nccl.ck" "$work/data.ck"
compile deep-zero1 deep --distribute zero1
over nccl "$mpi" 2 deep-zero1 3
run 0 tool near "$work/data.ck" "$work/nccl.ck" 0
says_early() { grep -o '"ncclReduceScatter":{"calls":9,"bytes":[0-9]*,"early":9,' "$1"; }
for report in "$work"/nccl-*.json; do
    holds 'three buckets that are divided go beside micro_step' says_early "$report"
done
small=("${small_data[@]}")

# ---- what fails ----

# Runs that fail mostly wait, so several go on at once: begin_* starts them, ended NAME TEXT... checks each.
train=(tools/with-fakecuda "$amprun" train)
options=("${small[@]}" --steps 40 --dist nccl --dist-timeout 2)
mkdir "$work/faults"

# begin NAME COMMAND...
begin() {
    local name=$1 at=$work/faults/$1
    shift
    (($(jobs -r | wc -l) < 4)) || wait -n
    { "$@" >"$at.out" 2>&1; echo $? >"$at.status"; } &
}
# begin_one FAULT MODEL: rank 1 has it, rank 0 has not
begin_one() {
    local to=$work/faults/one-$1.ck
    begin "one-$1" "$mpi" 1 "${train[@]}" "$work/$2.so" "${options[@]}" --checkpoint "$to" : \
        -n 1 env FAKECUDA_NCCL="$1" "${train[@]}" "$work/$2.so" "${options[@]}"
}
# begin_driver CALL:K: rank 1's driver fails in it. Open MPI is told not to end rank 0 then, which may be in a step for
# longer than the launcher leaves it.
begin_driver() {
    local all=("$work/deep.so" "${deep_data[@]}" --steps 40 --dist nccl)
    begin "driver-$1" env_of OMPI_MCA_orte_abort_on_non_zero_status=0 "$mpi" 1 "${train[@]}" "${all[@]}" : \
        -n 1 env FAKECUDA_FAIL="$1" "${train[@]}" "${all[@]}"
}
begin_all() { begin "all-$1" env_of FAKECUDA_NCCL="$1" "$mpi" 2 "${train[@]}" "$work/$2.so" "${options[@]}"; }
# output_of NAME: what it said is what is looked at next
output_of() { command_line="fault $1" err='' out=$(tr -d '\0' <"$work/faults/$1.out"); }
# ended NAME TEXT...: it has failed by itself, with whatever status, as launchers have their own, and says TEXT
ended() {
    local status
    status=$(<"$work/faults/$1.status")
    output_of "$1"
    if ((status && status != 124)); then passed; else failed "$command_line" "ended with $status" "$(end_of "$out")"; fi
    says "${@:2}"
}
# said NAME TEXT...: the same, of a launcher that succeeds where a rank fails
said() {
    output_of "$1"
    holds "$command_line ends in time" test "$(<"$work/faults/$1.status")" != 124
    says "${@:2}"
}
# called CALL: the runs in which CALL fails
called() {
    local k
    for k in "${again[@]}"; do
        ended "one-fail:$1:$k" "$1: unhandled system error" 'rank 1: ' 'rank 0: rank 1 says: ' \
            ': planted; libnccl.so.2, NCCL 2.28.9'
    done
}
# whole NAME: the checkpoint of the last run is of the step after which it says that it ended
whole() {
    local last
    last=$(sed -n 's/.*training ended after step \([0-9]*\) of.*/\1/p' <<<"$out")
    over nccl "$mpi" 2 one "${last:-0}"
    run 0 tool near "$work/$1.ck" "$work/nccl.ck" 0
}
calls=(ncclAllReduce ncclAllGather)
late=(fail:ncclCommGetAsyncError:1) ends=(ncclCommFinalize)
shares=(fail:ncclReduceScatter:3)       # and of weights, after apply_step
inside=(fail:ncclAllReduce:2 dead:1:10) # of sums in micro_step's graph
if ((full)); then
    calls+=(ncclGroupStart ncclGroupEnd) late+=(fail:ncclCommGetAsyncError:20) ends+=(ncclCommDestroy)
    shares+=(fail:ncclReduceScatter:1 fail:ncclAllGather:2)
    inside+=(stop:1:8 count:1:2 fail:ncclAllReduce:{1,3} fail:ncclGroupEnd:2)
fi

for call in ncclGetVersion ncclGetUniqueId; do begin_all fail:$call:1 one; done
begin_one fail:ncclCommInitRankConfig:1 norm
for call in "${calls[@]}"; do
    for k in "${again[@]}"; do begin_one "fail:$call:$k" norm; done
done
for fault in "${late[@]}"; do begin_one $fault norm; done
for fault in async:1:6 dead:1:5 stop:1:5 count:1:4 order:1:4 fail:ncclAllReduce:3,fail:ncclCommAbort:1; do
    begin_one $fault one
done
# In the graph of micro_step; and between graphs, where a step has 9 waits and 15 records.
driver=(cuEventRecordWithFlags:3 cuStreamWaitEvent:34)
((!full)) || driver=(cuEventRecordWithFlags:{1..3} cuStreamWaitEvent:{100..108} cuEventRecord:{100..114})
for fault in "${driver[@]}"; do begin_driver "$fault"; done
for fault in "${shares[@]}"; do begin "shares-$fault" "$mpi" 1 "${train[@]}" "$work/zero1.so" "${options[@]}" : \
    -n 1 env FAKECUDA_NCCL="$fault" "${train[@]}" "$work/zero1.so" "${options[@]}"; done
for fault in "${inside[@]}"; do begin "inside-$fault" "$mpi" 1 "${train[@]}" "$work/sync.so" "${options[@]}" : \
    -n 1 env FAKECUDA_NCCL="$fault" "${train[@]}" "$work/sync.so" "${options[@]}"; done
begin duplicate env_of FAKECUDA_DEVICES=1 "$mpi" 2 "${train[@]}" "$work/one.so" "${options[@]}"
# A rank whose data are damaged: rank 0 itself, which can keep what is whole, and rank 1, which leaves rank 0 in a step;
# Open MPI is to leave it the time to say so.
tool data "$work/damaged.st" 150 label
damaged=(--data "safetensors:$work/damaged.st" "${options[@]:2}")
begin own "$mpi" 1 "${train[@]}" "$work/one.so" "${damaged[@]}" --checkpoint "$work/own.ck" : \
    -n 1 "${train[@]}" "$work/one.so" "${options[@]}"
# Or whose driver fails in an update, when the gradients of the step are under way.
begin launch "$mpi" 1 env FAKECUDA_FAIL=cuGraphLaunch:9 "${train[@]}" "$work/one.so" "${options[@]}" \
    --checkpoint "$work/launch.ck" : -n 1 "${train[@]}" "$work/one.so" "${options[@]}"
begin other env_of OMPI_MCA_orte_abort_on_non_zero_status=0 "$mpi" 1 "${train[@]}" "$work/one.so" "${options[@]}" \
    --checkpoint "$work/other.ck" : -n 1 "${train[@]}" "$work/one.so" "${damaged[@]}"
# A real NCCL takes our calls until it wants a GPU. Both ranks fail by themselves, and either may say so first.
real=$(find .torch-env/lib/python3*/site-packages/nvidia/nccl/lib /usr/local/cuda/lib* -name libnccl.so.2 2>/dev/null |
    head -n 1)
[[ -z $real ]] || begin real env_of NCCL_SOCKET_IFNAME=lo "$mpi" 2 "${train[@]}" "$work/one.so" "${options[@]}" \
    --dist-library "$(realpath "$real")"
# If the ranks have nothing more to do together, no rank is there to be told.
for call in "${ends[@]}"; do
    begin "last-$call" env_of FAKECUDA_NCCL=fail:$call:1 "$mpi" 2 "${train[@]}" "$work/one.so" "${options[@]}"
done
wait

ended all-fail:ncclGetVersion:1 'ncclGetVersion: unhandled system error' ': planted; '
ended all-fail:ncclGetUniqueId:1 'ncclGetUniqueId: unhandled system error' 'rank 1: rank 0 says: ncclGetUniqueId'
ended one-fail:ncclCommInitRankConfig:1 'ncclCommInitRankConfig: unhandled system error' 'rank 0: rank 1 says: '
for call in "${calls[@]}"; do called "$call"; done
ended one-fail:ncclCommGetAsyncError:1 'ncclCommGetAsyncError after ncclCommInitRankConfig: ' 'rank 0: rank 1 says: '
((!full)) || ended one-fail:ncclCommGetAsyncError:20 'ncclCommGetAsyncError' ': planted; ' 'rank 0: rank 1 says: '
ended one-fail:ncclAllReduce:3,fail:ncclCommAbort:1 'ncclAllReduce: unhandled system error' 'rank 0: rank 1 says: '
ended one-async:1:6 'rank 0: rank 1 says: ' \
    ': remote process exited or there was a network error (6): planted: collective 6'
ended one-dead:1:5 'all ranks are in it, and nothing came for 2.0 s: the network or libnccl.so.2, NCCL 2.28.9 is at' \
    '--save and --checkpoint were not written: a step was under way on the devices'
expect "$command_line: no checkpoint of half a step" '' "$(ls "$work/faults/one-dead:1:5.ck" 2>/dev/null)"
# In the gradients or, if it stops before it has brought it, in what ranks have in common: the host's next message.
ended one-stop:1:5 'rank 0: ' 'no answer from rank 1 for 2.0 s: died, hangs or was stopped'
ended one-count:1:4 'invalid usage (5): rank 1 is in collective 4, of ' 'ncclCommGetAsyncError'
ended one-order:1:4 'invalid usage (5): rank 1 is in collective 5, of ' 'ncclCommGetAsyncError'
for fault in "${shares[@]}"; do
    ended "shares-$fault" 'unhandled system error' 'rank 0: rank 1 says: ' ': planted; libnccl.so.2, NCCL 2.28.9'
done
for fault in "${inside[@]}"; do
    [[ $fault == fail:* ]] || continue
    ended "inside-$fault" 'unhandled system error' 'rank 0: rank 1 says: ' ': planted; libnccl.so.2, NCCL 2.28.9'
done
ended inside-dead:1:10 'micro_step: all ranks are in it, and nothing came for 2.0 s: the network or libnccl.so.2'
if ((full)); then
    ended inside-stop:1:8 'rank 0: ' 'no answer from rank 1 for 2.0 s: died, hangs or was stopped'
    ended inside-count:1:2 'invalid usage (5): rank 1 is in collective 2, of ' 'ncclCommGetAsyncError'
fi
ended duplicate 'ncclCommGetAsyncError after ncclCommInitRankConfig: invalid usage (5): Duplicate GPU detected' \
    '; start no more ranks on a host than it has GPUs'
for fault in "${driver[@]}"; do
    said "driver-$fault" "${fault%:*}: CUDA_ERROR_UNKNOWN" 'rank 0: rank 1 says: '
done
ended own 'rank 0: safetensors:' 'sample 77: index 99 is neither' 'rank 1: rank 0 says: ' '; go on with --resume '
whole own
ended launch 'rank 0: cuGraphLaunch: CUDA_ERROR_UNKNOWN' 'rank 1: rank 0 says: ' '; go on with --resume '
whole launch
# By the moment rank 0 has something under way, or nothing; what it saves is whole.
said other 'rank 0: rank 1 says: safetensors:' 'sample 77: index 99 is neither'
if [[ -e $work/other.ck ]]; then whole other; else says '--save and --checkpoint were not written'; fi
if [[ -n $real ]]; then ended real ': ncclCommInitRankConfig: unhandled cuda error' "libnccl.so.2, NCCL 2."; else
    skipped 'no NCCL is installed: none but the stand-in is opened'
fi
for call in "${ends[@]}"; do
    expect "$call fails at the end" 0 "$(<"$work/faults/last-$call.status")"
done
expect 'no shared memory is left' "$segments" "$(segments)"
finish
