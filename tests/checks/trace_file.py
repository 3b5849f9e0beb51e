"""trace_file.py TRACE TABLE: the trace of `amprun --profile TRACE` holds what the table TABLE says.

The trace is JSON in the trace event format.  Slices nest and do not overlap.  Every row of the
table, and its sums, are computed from the slices again and have to be the same text.  Prints `ok`, and how many slices
and rows there were.
"""

import json
import re
import sys
from collections import defaultdict


class Slice:
    def __init__(self, name, category, begin, end, annotations):
        self.name, self.category, self.begin, self.end, self.annotations = name, category, begin, end, annotations
        self.inner = []


# ---- events: (begin, duration, name, category, annotations) in nanoseconds, in the order of the file


def nanoseconds(microseconds):
    whole = round(1000 * microseconds)
    assert abs(1000 * microseconds - whole) < 0.1, f"{microseconds} is no whole number of nanoseconds"
    return whole


def read_by_json(data):
    trace = json.loads(data)
    assert set(trace) == {"traceEvents"}
    process, thread, *events = trace["traceEvents"]
    assert [event["ph"] for event in (process, thread)] == ["M", "M"] and process["name"] == "process_name"
    assert process["args"]["name"].startswith("amprun: ") and thread["name"] == "thread_name"
    assert any(":" in event["args"].get("source", "") for event in events)
    for event in events:
        assert event["ph"] == "X" and (event["pid"], event["tid"]) == (thread["pid"], thread["tid"])
        yield nanoseconds(event["ts"]), nanoseconds(event["dur"]), event["name"], event["cat"], event["args"]


def nest(events):
    """The outermost slices: others lie in the one before, and do not overlap."""
    outer, now = [], 0
    for begin, duration, name, category, annotations in events:
        opened = Slice(name, category, begin, begin + duration, annotations)
        assert duration >= 0 and begin >= now, "events go back in time"
        if outer and begin < outer[-1].end:
            assert opened.end <= outer[-1].end, "a kernel goes on after its step"
            outer[-1].inner.append(opened)
            now = opened.end
        else:
            outer.append(opened)
            now = begin
    return outer


# ---- the table, from slices


def sums_by_op(kernels):
    sums = defaultdict(lambda: [0, 0, 0.0, 0.0])
    for k in kernels:
        row = sums[k.annotations["program"], k.name]
        row[0] += k.end - k.begin
        row[1] += 1
        row[2] += k.annotations["bytes"]
        row[3] += k.annotations["flops"]
    return sums


def text_of(row, steps, whole):
    nanoseconds, calls, amount, flops = row
    seconds = 1e-9 * nanoseconds
    return (f"{1e-6 * (nanoseconds / steps):.4f}", f"{100 * nanoseconds / whole:.1f}%", f"{calls / steps:.4g}",
            f"{1e-9 * amount / seconds:.2f}", f"{1e-9 * flops / seconds:.2f}")


ROW = re.compile(r" *([\d.]+) +([\d.]+%) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+%|-)  (memory|compute|launch|-|)  *(\S.*)")
FOOT = re.compile(r" *([\d.]+) +([\d.]+%) (outside kernels|step)")


def compare(outer, table):
    kernels = [kernel for call in outer for kernel in call.inner]
    steps = len({re.match(r"step (\d+)", call.name).group(1) for call in outer})
    whole = sum(call.end - call.begin for call in outer)
    sums = sums_by_op(kernels)
    wanted = sorted(((name, text_of(row, steps, whole)) for (_, name), row in sums.items()), key=str)
    every = [sum(row[i] for row in sums.values()) for i in range(4)]
    rows = [match.groups() for match in map(ROW.match, table) if match]
    named = [(row[7], row[:5]) for row in rows if not row[7].startswith("(")]
    for row in named:
        assert row in wanted, (row, [other for other in wanted if other[0] == row[0]])
    others = [int(re.match(r"\((\d+) others", row[7]).group(1)) for row in rows if row[7].endswith("others)")]
    assert len(named) + sum(others) == len(wanted), (len(named), others, len(wanted))
    assert [row[:5] for row in rows if row[7] == "(all kernels)"] == [text_of(every, steps, whole)]
    foot = {match.group(3): match.group(1) for match in map(FOOT.match, table) if match}
    assert foot["outside kernels"] == f"{1e-6 * ((whole - every[0]) / steps):.4f}"
    assert foot["step"] == f"{1e-6 * (whole / steps):.4f}"
    return len(kernels), len(rows)


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    with open(sys.argv[2]) as file:
        table = file.read().splitlines()
    events = list(read_by_json(data))
    kernels, rows = compare(nest(events), table)
    print(f"ok {kernels} kernels, {rows} rows")


if __name__ == "__main__":
    main()
