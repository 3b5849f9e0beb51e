"""A model of one training step on many GPUs: how long each message takes, when it may start, what stays exposed.

Times are in seconds, sizes in bytes, bandwidths in bytes a second.  A message takes latency + size / bandwidth (the
alpha-beta model), by the fastest of three ways to add over N hosts of G GPUs, R = N G, each by two protocols:

    ring            2 (R - 1) steps, 2 (N - 1) of them between hosts;    2 (R - 1) / R x S / slower of NVLink, network
    tree            2 (G - 1) steps in a host, 2 log2 N between;         2 S / (0.9 x the same)
    hierarchical    2 (G - 1) steps in a host, 2 (N - 1) between,        2 (G - 1) / G x S / NVLink
                    where each GPU has a G-th of the network             + 2 (N - 1) / N x S / G / (its network)

What is gathered goes round the ring once, or in steps that double what each has, log2 G in a host and log2 N between.

The first two, and the numbers of LATENCY, are those by which NCCL chooses (src/graph/tuning.cc and topo.h of NCCL 2.2x;
its corrections for trees of middle sizes and for the plateau of rings are left out).
"""
import math
from dataclasses import dataclass, replace

MICRO = 1e-6
GPUS_OF_A_HOST = 8

# NCCL's: of a launch, and of a step within a host (NVLink) and between hosts; by way and protocol.
LATENCY = {
    ("ring", "simple"): (8.4 * MICRO, 3.4 * MICRO, 14.0 * MICRO),
    ("ring", "LL"): (6.6 * MICRO, 0.6 * MICRO, 2.7 * MICRO),
    ("tree", "simple"): (8.4 * MICRO, 4.0 * MICRO, 14.0 * MICRO),
    ("tree", "LL"): (6.8 * MICRO, 0.6 * MICRO, 5.0 * MICRO),
}
# LL sends a flag with every four bytes, and has no more than this share of the bandwidth.
SHARE = {("ring", "simple"): 1.0, ("ring", "LL"): 1 / 4, ("tree", "simple"): 0.9, ("tree", "LL"): 0.9 / 3.8}
LL_IN_A_HOST = 1.8  # its steps in a host take so much longer where there are several hosts


@dataclass(frozen=True)
class Network:
    name: str
    nvlink: float  # of a GPU, one way
    host: float  # of all adapters of a host, one way
    latency: float = 1.0  # times LATENCY

    def without_latency(self):
        return replace(self, latency=0.0)

    def without_limits(self):
        return replace(self, nvlink=math.inf, host=math.inf)


# NVLink: 18 links of an H100 at the 20.6 GB/s that NCCL counts for each (data sheet: 900 GB/s, both ways together).
# Networks: the line rate x 0.96, as NCCL counts 12.0 GB/s for 100 Gb/s.  InfiniBand: an adapter a GPU, as a DGX has
# them; Ethernet: one a host.
NVLINK = 18 * 20.6e9
LINE = 0.96 / 8
NETWORKS = (
    Network("InfiniBand NDR", NVLINK, GPUS_OF_A_HOST * 400e9 * LINE),
    Network("InfiniBand HDR", NVLINK, GPUS_OF_A_HOST * 200e9 * LINE),
    Network("100 GbE", NVLINK, 100e9 * LINE),
)


@dataclass(frozen=True)
class Message:
    op: str  # "all_reduce" or "all_gather"
    bytes: float  # as amprun info counts them: of a gather all ranks' bytes
    ready: float  # when it may start


def steps_latency(network, way, protocol, in_host, between):
    base, near, far = LATENCY[way, protocol]
    if between and protocol == "LL":
        near *= LL_IN_A_HOST
    return network.latency * (base + in_host * near + between * far)


def log2(n):
    """Rounded up."""
    return max(n - 1, 0).bit_length()


def groups(ranks):
    """GPUs of a host, and hosts."""
    return min(ranks, GPUS_OF_A_HOST), max(ranks // GPUS_OF_A_HOST, 1)


def slowest(network, hosts):
    return min(network.nvlink, network.host if hosts > 1 else math.inf)


def ring_time(network, size, ranks, protocol, turns=2):
    """turns: 2 to add (parts go round, then their sums), 1 to gather."""
    _, hosts = groups(ranks)
    between = turns * (hosts - 1)
    bandwidth = slowest(network, hosts) * SHARE["ring", protocol]
    return (steps_latency(network, "ring", protocol, turns * (ranks - 1) - between, between) +
            turns * (ranks - 1) / ranks * size / bandwidth)


def tree_time(network, size, ranks, protocol):
    group, hosts = groups(ranks)
    bandwidth = slowest(network, hosts) * SHARE["tree", protocol]
    return steps_latency(network, "tree", protocol, 2 * (group - 1), 2 * log2(hosts)) + 2 * size / bandwidth


def hierarchical_time(network, size, ranks, protocol):
    group, hosts = groups(ranks)
    share = SHARE["ring", protocol]
    moved = 2 * (group - 1) / group * size / (network.nvlink * share)
    if hosts > 1:
        moved += 2 * (hosts - 1) / hosts * size / (network.host * share)
    return steps_latency(network, "ring", protocol, 2 * (group - 1), 2 * (hosts - 1)) + moved


def doubling_time(network, size, ranks, protocol):
    group, hosts = groups(ranks)
    bandwidth = slowest(network, hosts) * SHARE["tree", protocol]
    return (steps_latency(network, "tree", protocol, log2(group), log2(hosts)) +
            (ranks - 1) / ranks * size / bandwidth)


WAYS = {"ring": ring_time, "tree": tree_time, "hierarchical": hierarchical_time}
PROTOCOLS = ("simple", "LL")


def choices(network, message, ranks):
    """(seconds, way, protocol) of each way."""
    if message.op == "all_gather":
        return [(ring_time(network, message.bytes, ranks, p, 1), "ring", p) for p in PROTOCOLS] + [
            (doubling_time(network, message.bytes, ranks, p), "doubling", p) for p in PROTOCOLS]
    return [(time(network, message.bytes, ranks, p), way, p) for way, time in WAYS.items() for p in PROTOCOLS]


def message_time(network, message, ranks):
    return min(choices(network, message, ranks))[0] if ranks > 1 else 0.0


@dataclass(frozen=True)
class Step:
    """What a rank computes: the micro-batches but the last, the last one, what comes after all messages."""
    before: float
    micro: float
    after: float
    statistics: float  # of one micro-batch; of all ranks' each
    accumulate: int = 1

    def alone(self):
        return self.before + self.micro + self.accumulate * self.statistics + self.after


@dataclass(frozen=True)
class Course:
    step: float
    alone: float  # of one rank
    sent: float  # what the messages take, one after the other
    exposed: float  # what of them the last micro-batch does not hide
    statistics: float  # what running statistics of other ranks' micro-batches take

    @property
    def efficiency(self):
        return self.alone / self.step

    @property
    def hidden(self):
        return 1 - self.exposed / self.sent if self.sent else 1.0


def run_step(network, ranks, step, messages, overlapped=True):
    """Messages go one after the other, in order, each when it is ready; all have arrived before weights change."""
    free = sent = 0.0
    for m in messages:
        took = message_time(network, m, ranks)
        sent += took
        free = max(free, m.ready if overlapped else step.micro) + took
    exposed = max(free - step.micro, 0.0)
    others = (ranks - 1) * step.accumulate * step.statistics
    return Course(step.alone() + exposed + others, step.alone(), sent, exposed, others)


# ---- buckets --------------------------------------------------------------------------------------------------------

MIB = 1 << 20
LEAST, LARGEST, BUCKETS, LITTLE = MIB, 64 * MIB, 16, 8  # passes/common/buckets.c, and targets.c for CUDA


def compilers_size(tensors):
    return min(max(sum(t.bytes for t in tensors) // BUCKETS, LEAST), LARGEST)


def fill(tensors, most, little=LITTLE):
    """As the compiler fills buckets for CUDA, of at most |most| bytes, but for what is little: tensors are in the order
    in which kernels complete them."""
    buckets, at = [], 0
    while at < len(tensors):
        size, begin = 0, at
        while at < len(tensors) and (size < most / little or size + tensors[at].bytes <= most):
            size += tensors[at].bytes
            at += 1
        buckets.append(tensors[begin:at])
    return buckets


def in_one_message(tensors):
    return Message("all_reduce", sum(t.bytes for t in tensors), max(t.ready for t in tensors))
