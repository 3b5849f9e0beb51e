"""simulate.py formulas|buckets INFO.json|rows ROWS.json|plot FILE.svg|ring RANKS BYTES SECONDS BANDWIDTH LATENCY

What bench/distributed/simulate computes against closed formulas, against the compiler's own buckets, and against a ring
that SimGrid has simulated.  Prints what is wrong, or ok.
"""
import json
import math
import os
import sys
import xml.dom.minidom
from dataclasses import replace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/distributed"))
import step_model  # noqa: E402
from step_model import MIB, Message, Network, Step, message_time, run_step  # noqa: E402

WRONG = []


def expect(what, got, want, tolerance=1e-12):
    if not math.isclose(got, want, rel_tol=tolerance, abs_tol=1e-15):
        WRONG.append(f"{what}: {got!r}, not {want!r}")


def formulas():
    net = Network("net", nvlink=300e9, host=100e9)
    bare, endless = net.without_latency(), net.without_limits()
    one = Message("all_reduce", 64 * MIB, 0.0)
    busy = Step(before=0.0, micro=0.030, after=0.002, statistics=0.0)
    idle = Step(before=0.0, micro=0.0, after=0.0, statistics=0.0)

    # nothing but one message: within a host the ring, between hosts what is slowest
    expect("8 GPUs", message_time(bare, one, 8), 2 * 7 / 8 * one.bytes / 300e9)
    expect("32 GPUs", message_time(bare, one, 32), 2 * 31 / 32 * one.bytes / 100e9)
    expect("no computing", run_step(bare, 32, idle, [one]).step, 2 * 31 / 32 * one.bytes / 100e9)
    expect("hierarchical", step_model.hierarchical_time(bare, one.bytes, 32, "simple"),
           2 * 7 / 8 * one.bytes / 300e9 + 2 * 3 / 4 * one.bytes / 8 / (100e9 / 8))
    expect("a tree", step_model.tree_time(bare, one.bytes, 32, "simple"), 2 * one.bytes / (0.9 * 100e9))
    expect("gathered", message_time(bare, replace(one, op="all_gather"), 32), 31 / 32 * one.bytes / 100e9)
    # nothing but latency
    expect("of doubling", step_model.doubling_time(endless, one.bytes, 64, "simple"), 8.4e-6 + 3 * 4e-6 + 3 * 14e-6)
    expect("latency of a ring", step_model.ring_time(endless, one.bytes, 32, "simple"),
           8.4e-6 + 56 * 3.4e-6 + 6 * 14e-6)
    expect("of a tree", step_model.tree_time(endless, one.bytes, 64, "simple"), 8.4e-6 + 14 * 4e-6 + 6 * 14e-6)
    expect("of LL", step_model.tree_time(endless, one.bytes, 64, "LL"), 6.8e-6 + 14 * 1.8 * 0.6e-6 + 6 * 5e-6)
    if not message_time(net, replace(one, bytes=64), 4096) < step_model.ring_time(net, 64, 4096, "simple") / 10:
        WRONG.append("a small message does not take a tree")

    # a network that costs nothing, or one rank: a step as alone
    many = [replace(one, ready=0.01), replace(one, ready=0.03), Message("all_reduce", 512, 0.03)]
    expect("a free network", run_step(endless.without_latency(), 64, busy, many).step, 0.032)
    expect("one rank", run_step(net, 1, busy, many).step, 0.032)
    # a message that is complete at the end is exposed as a whole, an early one not at all
    took = message_time(net, one, 64)
    expect("late", run_step(net, 64, busy, [replace(one, ready=0.030)]).step, 0.032 + took)
    early = run_step(net, 64, busy, [replace(one, ready=0.010)])
    expect("early", early.step, 0.032)
    expect("early, hidden", early.hidden, 1.0)
    expect("not overlapped", run_step(net, 64, busy, [one], overlapped=False).step, 0.032 + took)
    # in their order: the second waits for the first, although it is complete before
    two = [replace(one, ready=0.0295), replace(one, ready=0.001)]
    expect("in order", run_step(net, 64, busy, two).step, 0.0295 + 2 * took + 0.002)
    # the statistics of all ranks' micro-batches, one after the other; micro-batches before the last
    expect("statistics", run_step(endless.without_latency(), 64, replace(busy, statistics=1e-6), many).step,
           0.032 + 64e-6)
    expect("accumulate", run_step(endless.without_latency(), 64, replace(busy, before=0.09, accumulate=4,
                                                                         statistics=1e-6), many).step, 0.122 + 256e-6)
    expect("more ranks cost more", float(run_step(net, 512, busy, many).step < run_step(net, 4096, busy, many).step), 1)


def buckets(file):
    """The compiler's rule, written again for other sizes, makes the compiler's own list, in the order of kernels."""
    with open(file, encoding="utf-8") as f:
        told = [m for m in json.load(f)["messages"] if m["kind"] == "gradients"]
    tensors = [Message("all_reduce", t["bytes"], t["complete_after"]) for m in told for t in m["tensors"]]
    if [t.ready for t in tensors] != sorted(t.ready for t in tensors):
        WRONG.append("tensors are not in the order in which kernels complete them")
    made = step_model.fill(tensors, step_model.compilers_size(tensors))
    if len(told) < 5:
        WRONG.append(f"{len(told)} messages are too few to tell rules apart")
    if [len(b) for b in made] != [len(m["tensors"]) for m in told]:
        WRONG.append(f"{[len(b) for b in made]} tensors, not {[len(m['tensors']) for m in told]}")
    if [sum(t.bytes for t in b) for b in made] != [m["bytes"] for m in told]:
        WRONG.append("other bytes")


def rows(file):
    with open(file, encoding="utf-8") as f:
        told = json.load(f)
    if len(told) != 2 * len(step_model.NETWORKS):
        WRONG.append(f"{len(told)} rows")
    for r in told:
        expect("step", r["step_ms"], r["alone_ms"] + r["exposed_ms"] + r["statistics_ms"], 1e-9)
        expect("efficiency", r["efficiency"], r["alone_ms"] / r["step_ms"], 1e-9)
        if not 0 < r["not_overlapped"] <= r["efficiency"] <= 1 or not r["efficiency"] <= r["best"] + 0.02:
            WRONG.append(f"efficiencies of {r['network']}, {r['gpus']} GPUs")


def plot(file):
    paths = xml.dom.minidom.parse(file).getElementsByTagName("path")
    if sum(p.getAttribute("stroke-dasharray") == "2 4" for p in paths) != len(step_model.NETWORKS):
        WRONG.append("not a dotted line a network")


def ring(ranks, size, seconds, bandwidth, latency):
    """Of a ring whose steps all have one latency, without a host's inner links."""
    ranks, size, bandwidth, latency = int(ranks), float(size), float(bandwidth), float(latency)
    bare = Network("ring", nvlink=bandwidth, host=bandwidth, latency=0.0)
    expect("the ring of SimGrid", float(seconds),
           step_model.ring_time(bare, size, ranks, "simple") + 2 * (ranks - 1) * latency, 0.03)


if __name__ == "__main__":
    {"formulas": formulas, "buckets": buckets, "rows": rows, "plot": plot, "ring": ring}[sys.argv[1]](*sys.argv[2:])
    print("; ".join(WRONG) or "ok")
    sys.exit(bool(WRONG))
