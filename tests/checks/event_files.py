"""event_files.py FOLDER [LOG] [--tensorboard]: what `amprun train --tensorboard FOLDER --log LOG` wrote is the log's.

Records, their sums and their events are read by the formats' own definitions; with --tensorboard also by PyPI's
tensorboard, which has to find the same.  Prints `ok`, and how much was compared.
"""

import json
import math
import os
import struct
import sys

from protobuf_read import decode

HISTOGRAM = {1: ("min", "double"), 2: ("max", "double"), 3: ("num", "double"), 4: ("sum", "double"),
             5: ("sum_squares", "double"), 6: ("bucket_limit", "doubles"), 7: ("bucket", "doubles")}
VALUE = {1: ("tag", "text"), 2: ("simple_value", "float"), 5: ("histo", HISTOGRAM)}
EVENT = {1: ("wall_time", "double"), 2: ("step", "int"), 3: ("file_version", "text"),
         5: ("summary", {1: ("value", VALUE)}), 7: ("session_log", {1: ("status", "int")})}


def masked_crc32c(data):
    """RFC 3720; the reversed polynomial is 0x82F63B78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


assert masked_crc32c(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        size, head_crc = struct.unpack_from("<QI", data, at)
        assert head_crc == masked_crc32c(data[at:at + 8]), f"{path}: the sum of a length"
        record = data[at + 12:at + 12 + size]
        assert len(record) == size and at + 16 + size <= len(data), f"{path}: a record is cut off"
        (crc,) = struct.unpack_from("<I", data, at + 12 + size)
        assert crc == masked_crc32c(record), f"{path}: the sum of a record"
        yield record
        at += 16 + size


def is_same(a, b):
    """Up to the last bit: the log's nine digits are rounded a second time."""
    return math.isclose(a, b, rel_tol=1.2e-7) or (math.isnan(a) and math.isnan(b))


def read(folder):
    """(tag, step) -> value, histograms as dicts; what a later file begins again is dropped."""
    scalars, histograms = {}, {}
    for name in sorted(os.listdir(folder)):
        assert name.startswith("events.out.tfevents."), name
        events = [decode(record, EVENT) for record in records(os.path.join(folder, name))]
        assert events[0]["file_version"] == ["brain.Event:2"] and events[1]["session_log"] == [{"status": [1]}], name
        assert all(event["wall_time"][0] > 1.6e9 for event in events)
        first = events[1]["step"][0]
        for found in scalars, histograms:
            for key in [key for key in found if key[1] >= first]:
                del found[key]
        for event in events[2:]:
            for value in event["summary"][0]["value"]:
                kind = histograms if "histo" in value else scalars
                (number,) = value["histo"] if "histo" in value else value["simple_value"]
                key = value["tag"][0], event["step"][0]
                assert key not in kind, f"{key} is there twice"
                kind[key] = number
    return scalars, histograms


# ---- the same numbers as in the log


def f32(value):
    value = float(value)
    return struct.unpack("<f", struct.pack("<f", value))[0] if math.isfinite(value) else value


def logged_scalars(lines):
    """(tag, step) -> value as a log has it; `samples_per_s` of steps is in none."""
    scalars, step = {}, 0
    for line in lines:
        if "iteration" in line:
            step = line["iteration"]
        elif "epoch" not in line:
            continue
        for tag, value in line.items():
            if tag not in ("iteration", "step", "epoch", "scale_is", "samples_per_s"):
                scalars[tag, step] = f32(value)
    return scalars


def compare_scalars(scalars, lines):
    rates = {key: value for key, value in scalars.items() if key[0] == "samples_per_s"}
    others = {key: value for key, value in scalars.items() if key not in rates}
    logged = logged_scalars(lines)
    assert all(value > 0 for value in rates.values())
    assert {step for _, step in rates} == {line["iteration"] for line in lines if "iteration" in line}
    assert set(others) == set(logged), (set(others) ^ set(logged))
    for key, value in others.items():
        assert is_same(value, logged[key]), (key, value, logged[key])


def compare_histograms(histograms, lines):
    """Zeros in a bucket up to 0, each exponent of the log in one up to the next power of two."""
    logged = {("magnitude/" + tensor["name"], line["stats"]): tensor
              for line in lines if "stats" in line for tensor in line["tensors"]}
    assert set(histograms) == set(logged), set(histograms) ^ set(logged)
    for key, histogram in histograms.items():
        (limits,), (buckets,), tensor = histogram["bucket_limit"], histogram["bucket"], logged[key]
        wanted = {2.0 ** (tensor["exponents"]["from"] + i + 1): n for i, n in enumerate(tensor["exponents"]["counts"])}
        wanted[0.0] = tensor["zeros"]
        assert limits == sorted(set(limits)) and len(limits) == len(buckets), key
        assert {a: n for a, n in zip(limits, buckets) if n} == {a: n for a, n in wanted.items() if n}, key
        assert histogram["num"] == [sum(buckets)] and is_same(histogram["max"][0], tensor["largest"]), key


# ---- as TensorBoard reads them


def compare_with_tensorboard(folder, scalars, histograms):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(folder, size_guidance={"scalars": 0, "histograms": 0}).Reload()
    tags = accumulator.Tags()
    assert set(tags["scalars"]) == {tag for tag, _ in scalars}, tags["scalars"]
    assert set(tags["histograms"]) == {tag for tag, _ in histograms}, tags["histograms"]
    for tag in tags["scalars"]:
        found = {(tag, event.step): event.value for event in accumulator.Scalars(tag)}
        ours = {key: value for key, value in scalars.items() if key[0] == tag}
        assert set(found) == set(ours), tag
        assert all(is_same(found[key], ours[key]) for key in ours), tag
    for tag in tags["histograms"]:
        for event in accumulator.Histograms(tag):
            ours = histograms[tag, event.step]
            found = event.histogram_value
            assert [list(found.bucket_limit)] == ours["bucket_limit"] and [list(found.bucket)] == ours["bucket"], tag


def main():
    folder, *others = sys.argv[1:]
    scalars, histograms = read(folder)
    if others:
        with open(others[0]) as file:
            lines = [json.loads(line) for line in file]
        compare_scalars(scalars, lines)
        compare_histograms(histograms, lines)
    if "--tensorboard" in others:
        compare_with_tensorboard(folder, scalars, histograms)
    print(f"ok {len(scalars)} scalars, {len(histograms)} histograms")


main()
