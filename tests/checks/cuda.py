"""cuda.py: what tests/checks/cuda.bash computes: inputs, and comparisons of what two devices wrote. Standard library only.

    cuda.py data FILE SEED NAME=DTYPE:DIMxDIM[:SCALE|:CLASSES] ...   a safetensors file of random arrays
    cuda.py steps WANTED GOT BOUND          two outputs of `amprun step`
    cuda.py params START WANTED GOT BOUND   parameters after training
    cuda.py zeros WANTED GOT                elements that are 0 are 0 in both: masks of dropout
    cuda.py floats WANTED GOT TOTAL BOUND   values of a step
    cuda.py report FILE QUESTION ...        of the stand-in's report; see QUESTIONS

Each prints one line of what it found and fails where the comparison does."""
import array
import json
import math
import random
import struct
import sys

CODES = {"F32": "f", "F16": "e", "I32": "i", "I64": "q", "U8": "B", "BOOL": "B"}


def read_tensors(path):
    """Name to (dims, list of numbers)."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(size)), file.read()
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            code = CODES[entry["dtype"]]
            out[name] = entry["shape"], struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", data[begin:end])
    return out


def write_tensors(path, tensors):
    """Of (name, dtype, dims, numbers)."""
    header, data = {}, b""
    for name, dtype, dims, numbers in tensors:
        packed = struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)
        header[name] = {"dtype": dtype, "shape": dims, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def data(path, seed, *specs):
    draw, tensors = random.Random(int(seed)), []
    for spec in specs:
        name, rest = spec.split("=")
        dtype, dims, *more = rest.split(":")
        dims = [int(d) for d in dims.split("x")]
        count, last = math.prod(dims), float(more[0]) if more else 1.0
        if dtype == "F32":
            # f32 numbers exactly, so that the file says what the device reads
            numbers = array.array("f", (draw.uniform(-last, last) for _ in range(count)))
        else:
            numbers = [draw.randrange(int(last)) for _ in range(count)]
        tensors.append((name, dtype, dims, list(numbers)))
    write_tensors(path, tensors)


def fail(text):
    sys.exit(text)


# ---- two devices ------------------------------------------------------------------------------------------------------------


def steps(wanted, got, bound):
    want, have = ([json.loads(line) for line in open(path, encoding="utf-8")] for path in (wanted, got))
    if not want or len(want) != len(have):
        fail(f"{len(want)} steps and {len(have)}")
    largest = 0.0
    for a, b in zip(want, have):
        for key in ("step", "iteration", "scale", "skipped"):
            if a[key] != b[key]:
                fail(f"iteration {a['iteration']}: {key} {b[key]}, not {a[key]}")
        if a["loss"] == b["loss"] or (a["skipped"] and not isinstance(a["loss"], float)):
            continue
        difference = abs(a["loss"] - b["loss"]) / abs(a["loss"])
        largest = max(largest, difference)
        if not difference <= float(bound):
            fail(f"iteration {a['iteration']}: loss {b['loss']}, not {a['loss']}: {difference:.2e} beyond {bound}")
    print(f"{len(want)} steps, {sum(s['skipped'] for s in want)} skipped, scales {sorted({s['scale'] for s in want})}, "
          f"loss within {largest:.1e}")


def norm(numbers):
    return math.sqrt(sum(x * x for x in numbers))


def params(start, wanted, got, bound):
    """The distance of the two results over the way that training went."""
    before, want, have = (read_tensors(path) for path in (start, wanted, got))
    if not want or want.keys() != have.keys():
        fail(f"{sorted(want)} and {sorted(have)}")
    largest = 0.0
    for name, (dims, numbers) in want.items():
        if not all(map(math.isfinite, numbers + have[name][1])):
            fail(f"{name}: not finite")
        way = norm([a - b for a, b in zip(numbers, before[name][1])])
        apart = norm([a - b for a, b in zip(numbers, have[name][1])])
        if way == 0 or not apart <= float(bound) * way:
            fail(f"{name}: {apart:.2e} apart after a way of {way:.2e}")
        largest = max(largest, apart / way)
    print(f"{len(want)} parameters within {largest:.1e} of their way")


def zeros(wanted, got):
    want, have = read_tensors(wanted), read_tensors(got)
    if not want or want.keys() != have.keys():
        fail(f"{sorted(want)} and {sorted(have)}")
    counts = []
    for name, (_, numbers) in want.items():
        if [x == 0 for x in numbers] != [x == 0 for x in have[name][1]]:
            fail(f"{name}: the masks differ")
        counts.append((sum(x == 0 for x in numbers), len(numbers)))
        if counts[-1][0] in (0, len(numbers)):
            fail(f"{name}: nothing or all is dropped")
    print("masks equal:", ", ".join(f"{z} of {n} dropped" for z, n in counts))


# ---- the stand-in's report -------------------------------------------------------------------------------------------------


def kernels(report, pattern):
    found = [k for k in report["kernels"] if pattern in k["name"]]
    if not found:
        fail(f"no kernel {pattern}")
    return found


def ask_value(report, path, *wanted):
    """totals.launches = 12: that number."""
    value = report
    for key in path.split("."):
        value = value.get(key, 0)
    return value


def ask_clean(report):
    """No fault, misuse, leak or unknown call."""
    for key in ("faults", "misuse", "leaks", "unknown"):
        if report[key]:
            fail(f"{key}: {report[key]}")
    return "clean"


QUESTIONS = {"clean": ask_clean, "value": ask_value}


def report(path, question, *arguments):
    with open(path, encoding="utf-8") as file:
        print(QUESTIONS[question](json.load(file), *arguments))


if __name__ == "__main__":
    {"data": data, "steps": steps, "params": params, "zeros": zeros, "report": report}[sys.argv[1]](*sys.argv[2:])
