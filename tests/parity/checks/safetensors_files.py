"""Mutated safetensors files: read or refused as the reference library does, except where ours is stricter, and says so.

The reference is the safetensors package (https://github.com/huggingface/safetensors).  What it refuses we refuse; what it
reads we read, unless the reason is one of STRICTER, which runtime/README.md lists.
"""
import json
import os
import random
import struct
import subprocess

import safetensors

import harness

# Reasons of ours for files that the reference reads.
STRICTER = [
    "is there twice",                        # duplicate keys
    "keys that the format does not know",
    "are at the same place",                 # empty tensors
    "dimensions; at most",
    "more elements than memory can hold",    # [0, 2^62, 2^62]
    "the header must end with } and spaces",
    "must begin with {",
    "a string may not hold U+0000",
    "too many values",
    "an integer does not fit", "this integer does not fit",
    "this number",                           # in values that are not read
]
DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "I16": 2, "F16": 2, "BF16": 2, "I32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8}
PIECES = [b"{", b"}", b"[", b"]", b",", b":", b'"', b" ", b"\n", b"null", b"true", b"-1", b"0", b"1e3", b"18446744073709551615",
          b"9223372036854775807", b"4611686018427387904", b'"dtype":', b'"shape":', b'"data_offsets":', b'"__metadata__":{"a":"b"},',
          b"\\u0000", b"\\ud800", b"\\u00e4", b"\xff", b"\xc3\xa4", b'"F32"', b'"F4"', b'"C64"', b'"x":1,']


def frame(header, data):
    return struct.pack("<Q", len(header)) + header + data


def good_file(rng):
    """A sound file of a few tensors."""
    header, at = {}, 0
    if rng.random() < 0.5:
        header["__metadata__"] = {f"k{i}": "v" * rng.randrange(5) for i in range(rng.randrange(3))}
    for i in range(rng.randrange(5)):
        dtype = rng.choice(list(DTYPES))
        shape = [rng.choice([0, 1, 1, 2, 3, 5]) for _ in range(rng.randrange(4))]
        size = DTYPES[dtype]
        for dim in shape:
            size *= dim
        header[f"t{i}" if rng.random() < 0.9 else "ä"] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=rng.choice([(",", ":"), (", ", ": ")])).encode()
    return text + b" " * rng.choice([0, 0, 3, -len(text) % 8]), bytes(rng.randrange(256) for _ in range(at))


def mutate(rng, header, data):
    header, data = bytearray(header), bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(header) + 1)
        kind = rng.randrange(9)
        if kind == 0 and at < len(header):
            header[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            header[at:at] = rng.choice(PIECES)
        elif kind == 2:
            del header[at:at + rng.randrange(1, 12)]
        elif kind == 3:
            header[at:at] = header[at:at + rng.randrange(1, 60)]
        elif kind == 4:  # a number becomes a neighbour of it
            digits = [i for i, c in enumerate(header) if 48 <= c <= 57]
            if digits:
                header[rng.choice(digits)] = 48 + rng.randrange(10)
        elif kind == 5:
            data += b"x" * rng.randrange(1, 5)
        elif kind == 6 and data:
            del data[rng.randrange(len(data)):]
        elif kind == 7:
            for dtype in DTYPES:
                if rng.random() < 0.3:
                    header = header.replace(f'"{dtype}"'.encode(), f'"{rng.choice(list(DTYPES))}"'.encode(), 1)
        elif kind == 8:
            header += rng.choice([b" ", b"\n", b"\0", b"}", b"x"])
    whole = frame(bytes(header), bytes(data))
    if rng.random() < 0.05:
        whole = whole[:rng.randrange(len(whole) + 1)]
    if rng.random() < 0.03:
        whole = struct.pack("<Q", rng.choice([0, 1, len(header) + 1, 10**8, 10**8 + 1, 2**63, 2**64 - 1])) + whole[8:]
    return whole


def reference(data):
    try:
        safetensors.deserialize(data)
        return "ok"
    except Exception as error:  # noqa: BLE001  whatever it raises, it refuses the file
        return f"{type(error).__name__}: {error}"


def ours(files):
    programs = os.environ.get("AMP_PROGRAMS", "bazel-bin")
    text = b"".join(struct.pack("<Q", len(f)) + f for f in files)
    done = subprocess.run([f"{programs}/tests/parity/safetensors_driver"], input=text, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode(errors="replace").splitlines()


def compare(files, verdicts, counts):
    """The differences, as text; what is equal or knowingly stricter is counted."""
    for data, verdict in zip(files, verdicts, strict=True):
        expected = reference(data)
        if (verdict == "ok") == (expected == "ok"):
            counts["both read" if verdict == "ok" else "both refuse"] += 1
        elif expected == "ok" and any(reason in verdict for reason in STRICTER):
            counts["ours is stricter"] += 1
        else:
            yield f"{data!r}: the reference says {expected}, ours {verdict}"


def checks(tally, options):
    rng = random.Random(7)
    counts = {"both read": 0, "both refuse": 0, "ours is stricter": 0}
    differences = []
    for _ in range(1000 if options.long else 20):
        files = [mutate(rng, *good_file(rng)) for _ in range(1000)]
        differences += compare(files, ours(files), counts)
    tally.same("mutated files", differences, ", ".join(f"{n} {what}" for what, n in counts.items()))
    tally.same("both kinds of answers", [what for what, n in counts.items() if n < 100])


def plants(tally, options):
    files = [frame(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x"), frame(b"{}", b"x")]
    counts = {"both read": 0, "both refuse": 0, "ours is stricter": 0}
    tally.seen("a reader that refuses everything", compare(files, ["refused"] * 2, counts))
    tally.seen("a reader that reads everything", compare(files, ["ok"] * 2, counts))


if __name__ == "__main__":
    harness.main(__doc__, [checks], [plants])
