"""trace_file.py TRACE TABLE [--perfetto]: the trace of `amprun --profile TRACE` holds what the table TABLE says.

The trace is decoded by the formats' own definitions; with --perfetto also by the message classes of PyPI's perfetto,
which have to find the same.  Slices nest and do not overlap.  Every row of the table, and its sums, are computed from
the slices again and have to be the same text.  Prints `ok`, and how many slices and rows there were.
"""

import re
import sys
from collections import defaultdict

from protobuf_read import decode

CLOCK = {1: ("id", "uint"), 2: ("time", "uint")}
TRACK = {1: ("uuid", "uint"), 3: ("process", {1: ("pid", "int"), 6: ("process_name", "text")}),
         4: ("thread", {1: ("pid", "int"), 2: ("tid", "int"), 5: ("thread_name", "text")}), 5: ("parent_uuid", "uint")}
ANNOTATION = {3: ("uint_value", "uint"), 5: ("double_value", "double"), 6: ("string_value", "text"),
              10: ("name", "text")}
SOURCE = {2: ("file_name", "text"), 4: ("line_number", "uint")}
EVENT = {4: ("debug_annotations", ANNOTATION), 9: ("type", "int"), 11: ("track_uuid", "uint"),
         22: ("categories", "text"), 23: ("name", "text"), 33: ("source_location", SOURCE)}
PACKET = {6: ("clock_snapshot", {1: ("clocks", CLOCK)}), 8: ("timestamp", "uint"),
          10: ("trusted_packet_sequence_id", "uint"), 11: ("track_event", EVENT), 13: ("sequence_flags", "uint"),
          60: ("track_descriptor", TRACK)}
BEGIN, END = 1, 2


class Slice:
    def __init__(self, name, category, begin, annotations):
        self.name, self.category, self.begin, self.annotations = name, category, begin, annotations
        self.end = None
        self.inner = []


# ---- events: (time, type, track, name, category, annotations), in the order of the file


def value_of(annotation):
    (kind,) = set(annotation) - {"name"}
    return annotation[kind][0]


def read_by_definition(data):
    packets = decode(data, {1: ("packet", PACKET)})["packet"]
    assert packets[0]["sequence_flags"] == [1]
    assert {clock["id"][0] for clock in packets[0]["clock_snapshot"][0]["clocks"]} == {1, 3, 6}
    assert all(packet["trusted_packet_sequence_id"] == [1] for packet in packets)
    tracks = [packet["track_descriptor"][0] for packet in packets if "track_descriptor" in packet]
    process, thread = tracks[0]["process"][0], tracks[1]["thread"][0]
    assert process["process_name"][0].startswith("amprun: ") and thread["pid"] == process["pid"]
    assert tracks[1]["parent_uuid"] == tracks[0]["uuid"]
    assert any("source_location" in event for packet in packets for event in packet.get("track_event", []))
    for packet in packets:
        for event in packet.get("track_event", []):
            assert event["track_uuid"] == tracks[1]["uuid"]
            yield (packet["timestamp"][0], event["type"][0], event["track_uuid"][0], *event.get("name", [None]),
                   *event.get("categories", [None]),
                   {a["name"][0]: value_of(a) for a in event.get("debug_annotations", [])})


def read_by_perfetto(data):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(data)
    for packet in trace.packet:
        if packet.HasField("track_event"):
            event = packet.track_event
            annotations = {a.name: getattr(a, a.WhichOneof("value")) for a in event.debug_annotations}
            yield (packet.timestamp, event.type, event.track_uuid, event.name if event.HasField("name") else None,
                   event.categories[0] if event.categories else None, annotations)


def nest(events):
    """The outermost slices."""
    outer, open_slices, now = [], [], 0
    for time, kind, _, name, category, annotations in events:
        assert time >= now, "events go back in time"
        now = time
        if kind == BEGIN:
            opened = Slice(name, category, time, annotations)
            (open_slices[-1].inner if open_slices else outer).append(opened)
            open_slices.append(opened)
        else:
            assert kind == END
            open_slices.pop().end = time
    assert not open_slices, "a slice has no end"
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
    events = list(read_by_definition(data))
    if "--perfetto" in sys.argv:
        assert list(read_by_perfetto(data)) == events
    kernels, rows = compare(nest(events), table)
    print(f"ok {kernels} kernels, {rows} rows")


if __name__ == "__main__":
    main()
