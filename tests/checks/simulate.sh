#!/usr/bin/env bash
# bench/distributed/simulate: its model of a step against closed formulas, its buckets against the compiler's,
# and its ring against one that SimGrid has simulated (Debian's libsimgrid-dev), where that is installed.
set -uo pipefail
source tests/checks/checks.bash
build //tools:ampc //tools:amprun
quick_models # tables are read
ampc=$bin/tools/ampc amprun=$bin/tools/amprun
agrees() { run 0 python3 -B tests/checks/simulate.py "$@" && says ok; }

agrees formulas
for model in resnet/resnet50 gpt/gpt2; do
    run 0 "$ampc" "examples/$model.amp" --precision bf16 --target cuda --distribute data -o "$work/model.so"
    run 0 "$amprun" info "$work/model.so" --ranks 8 --device cuda --json
    cp "$work/.out" "$work/info.json"
    agrees buckets "$work/info.json"
done

run 0 bench/distributed/simulate --only ResNet-50 --gpus 8,512 --json "$work/rows.json" --svg "$work/plot.svg"
says 'ResNet-50, 128 samples a rank: 20 messages' '| 512 | 100 GbE |'
agrees rows "$work/rows.json"
agrees plot "$work/plot.svg"
run 2 bench/distributed/simulate --gpus 12
says 'up to 8, or whole hosts of 8'

if links smpicc mpi.h && command -v smpirun >/dev/null; then
    cat >"$work/cluster.xml" <<'XML'
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-31" speed="1Tf" bw="12GBps" lat="2us" sharing_policy="SPLITDUPLEX"/>
</platform>
XML
    printf 'n%d\n' {0..31} >"$work/hosts"
    run 0 smpicc -O1 tests/checks/simulate_ring.c -o "$work/ring"
    for ranks in 8 32; do
        for count in 262144 4194304; do
            # a bandwidth and a latency, and nothing of what SimGrid adds for TCP; lr: the ring
            run 0 smpirun -np $ranks -platform "$work/cluster.xml" -hostfile "$work/hosts" --cfg=smpi/allreduce:lr \
                --cfg=smpi/simulate-computation:no --cfg=network/model:CM02 --cfg=network/crosstraffic:0 \
                --cfg=network/bandwidth-factor:1 --cfg=network/latency-factor:1 --cfg=network/weight-S:0 \
                --cfg=network/TCP-gamma:0 "$work/ring" $count
            agrees ring $ranks $((4 * count)) "$(sed -n 's/^took //p' "$work/.out")" 12e9 4e-6 # two links of 2 us
        done
    done
else
    skipped "no SimGrid (libsimgrid-dev), or a part of it: no ring is simulated"
fi
finish
