"""What ranks did in a step, from the reports of fakecuda of a short run and of a longer one.

cuda_distributed.py FOLDER FOLDER STEPS GRAPHS CALLS INFO     the second run made STEPS steps more, each of GRAPHS graph
                                                              launches and CALLS calls of amp_step; INFO: what `amprun
                                                              info --ranks --json` says of the model on CUDA
"""
import glob
import json
import sys


def reports(folder):
    paths = sorted(glob.glob(f"{folder}/nccl-*.json"))
    with_names = [json.load(open(path, encoding="utf-8")) for path in paths]
    # Processes have no order but what they do: the rank with the last samples has graphs for two numbers of them, and
    # rank 0 reads more.
    return sorted(with_names, key=lambda r: (captured(r), -r["totals"]["host_synchronisations"]))


def captured(report):
    return sum(calls.get("captured", 0) for calls in report.get("outside", {}).values())


def sums(info):
    """The sums of a step, and how many of them may begin before its last kernel has ended."""
    told = [m for m in info["messages"] if m["op"] == "all_reduce"]
    return len(told), sum(m["complete_after"] < info["kernels"] - 1 for m in told)


def more(short, long, *keys):
    for key in keys:
        short, long = short.get(key, {}), long.get(key, {})
    return (long or 0) - (short or 0)


short, long = reports(sys.argv[1]), reports(sys.argv[2])
steps, graphs, calls = map(int, sys.argv[3:6])
wanted, early = sums(json.load(open(sys.argv[6], encoding="utf-8")))
if not short or len(short) != len(long):
    sys.exit(f"{len(short)} reports and {len(long)}")
for a, b in zip(short, long):
    made = more(a, b, "totals", "graph_launches")
    if made != graphs * steps:
        sys.exit(f"{made} graph launches in {steps} steps, not {graphs} in each")
    # When a session begins and ends it may have to wait, or find that all is done. Steps whose number is a power of two
    # read what their casts count, after each of at most two micro-batches.
    looks = (steps * 3 // 2).bit_length() - (steps // 2).bit_length()
    for call in {*a["synchronisations"], *b["synchronisations"]} - {"cuEventSynchronize"}:
        if more(a, b, "synchronisations", call) > 2 + 2 * looks:
            sys.exit(f"{call} waited {more(a, b, 'synchronisations', call)} times in {steps} steps")
    waits = more(a, b, "synchronisations", "cuEventSynchronize")
    if waits > steps * calls:
        sys.exit(f"the host waited {waits} times for a report in {steps} steps")
    reduced = more(a, b, "outside", "ncclAllReduce", "calls")
    if reduced != wanted * steps:
        sys.exit(f"{reduced} calls of ncclAllReduce in {steps} steps, not {wanted} in each")
    before = more(a, b, "outside", "ncclAllReduce", "early")
    if before != early * steps:
        sys.exit(f"{before} calls of ncclAllReduce in {steps} steps wait for a part of micro_step, not {early} in each")
print(f"{graphs} graph launches a step, {wanted} calls of ncclAllReduce, {early} of them beside micro_step, "
      "no wait but for reports")
