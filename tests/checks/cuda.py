"""cuda.py: what tests/checks/cuda.bash computes: inputs, and comparisons of what two devices wrote. Standard library only.

    cuda.py data FILE SEED NAME=DTYPE:DIMxDIM[:SCALE|:CLASSES] ...   a safetensors file of random arrays
    cuda.py nudge FROM TO SEED              a safetensors file with each f32 number one unit in the last place off, or not
    cuda.py steps WANTED GOT BOUND [NUDGED ...]
                                            two outputs of `amprun step`
    cuda.py params START WANTED GOT BOUND   parameters after training
    cuda.py update START WANTED GOT GRADS BOUND [NUDGED ...]
                                            the same of all parameters together, where the gradient is no rounding
    cuda.py grads WANTED GOT BOUND [NUDGED ...]
                                            gradients, each of max(own norm, 0.05 of the largest)
    cuda.py zeros WANTED GOT                elements that are 0 are 0 in both: masks of dropout
    cuda.py floats WANTED GOT TOTAL BOUND   values of a step
    cuda.py report FILE QUESTION ...        of the stand-in's report; see QUESTIONS

Each prints one line of what it found and fails where the comparison does. NUDGED are what the wanted device writes from
nudged numbers: a model that amplifies roundings, such as one with batch norm over a few pixels, may be as far apart on two
devices as that, twice over, where it is more than BOUND."""
import array
import json
import math
import random
import struct
import sys

SHARE_OF_LARGEST = 0.05
OF_NUDGED = 2  # times what nudged numbers change
COUNTED = 0.02  # of the root-mean-square gradient, for update()
CODES = {"F32": "f", "F16": "e", "I32": "i", "I64": "q", "U8": "B", "BOOL": "B"}


def read_file(path):
    """A safetensors file: the text of its header, and what comes after it."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        return file.read(size), file.read()


def write_file(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_tensors(path):
    """Name to (dims, list of numbers)."""
    text, data = read_file(path)
    out = {}
    for name, entry in json.loads(text).items():
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
    write_file(path, header, data)


def nudge(source, target, seed):
    text, data = read_file(source)
    header = json.loads(text)
    metadata = header.get("__metadata__", {})
    for key in [key for key in metadata if key.startswith("amp.xxh64")]:
        del metadata[key]  # the sum of what was saved
    values = bytearray(data)
    draw = random.Random(int(seed))
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = entry["data_offsets"]
        numbers = struct.unpack(f"<{(end - begin) // 4}f", values[begin:end])
        moved = [x * (1 + draw.choice((-1, 0, 1)) * 2.0**-23) for x in numbers]
        values[begin:end] = struct.pack(f"<{len(moved)}f", *moved)
    write_file(target, header, values)
    print("nudged")


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


def allowed(bound, nudged, measure):
    """The bound, or what nudged numbers change, twice over."""
    return max([float(bound), *(OF_NUDGED * measure(path) for path in nudged)])


def steps(wanted, got, bound, *nudged):
    want, have = read_steps(wanted), read_steps(got)
    if not want or len(want) != len(have):
        fail(f"{len(want)} steps and {len(have)}")
    for a, b in zip(want, have):
        for key in ("step", "iteration", "scale", "skipped"):
            if a[key] != b[key]:
                fail(f"iteration {a['iteration']}: {key} {b[key]}, not {a[key]}")
    bound = allowed(bound, nudged, lambda path: losses_apart(want, read_steps(path)))
    apart = losses_apart(want, have)
    if not apart <= bound:
        fail(f"losses {[s['loss'] for s in have]}, not {[s['loss'] for s in want]}: {apart:.2e}, beyond {bound:.2e}")
    print(f"{len(want)} steps, {sum(s['skipped'] for s in want)} skipped, scales {sorted({s['scale'] for s in want})}, "
          f"loss within {apart:.1e} of {bound:.1e}")


def read_steps(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def losses_apart(want, have):
    """The largest difference, relatively; of skipped steps only where the wanted loss is a number."""
    largest = 0.0
    for a, b in zip(want, have):
        if a["loss"] == b["loss"] or (a["skipped"] and not isinstance(a["loss"], float)):
            continue
        difference = abs(a["loss"] - b["loss"]) / abs(a["loss"])
        largest = difference if difference > largest or math.isnan(difference) else largest
    return largest


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


def two_files(wanted, got):
    """What both hold, by the same names, and nothing that is not finite."""
    want, have = read_tensors(wanted), read_tensors(got)
    if not want or want.keys() != have.keys():
        fail(f"{sorted(want)} and {sorted(have)}")
    for name, (_, numbers) in have.items():
        if not all(map(math.isfinite, numbers)):
            fail(f"{name}: not finite")
    return want, have


def update(start, wanted, got, gradients, bound, *nudged):
    """The way of all parameters together.  adam makes steps of one length of gradients of any: where a gradient is as
    small as its own rounding, such as the gradient of the bias of attention's keys, neither device's step is the right
    one.  So only gradients count that are more than COUNTED of the root-mean-square of their parameter's."""
    before, (want, have) = read_tensors(start), two_files(wanted, got)
    slopes, total = read_tensors(gradients), sum(len(numbers) for _, numbers in want.values())
    counts = {}
    for name, (_, numbers) in want.items():
        slope = slopes[name][1] if name in slopes else [1.0] * len(numbers)
        least = COUNTED * norm(slope) / math.sqrt(len(slope))
        counts[name] = [abs(g) > least for g in slope]

    def between(a, b):
        return norm([x - y for name in want for x, y, counted in zip(a[name][1], b[name][1], counts[name]) if counted])

    way, apart = between(want, before), between(want, have)
    bound = allowed(bound, nudged, lambda path: between(want, read_tensors(path)) / way if way else 0.0)
    if way == 0 or not apart <= bound * way:
        fail(f"{apart:.2e} apart after a way of {way:.2e}, beyond {bound:.2e} of it")
    print(f"{sum(map(sum, counts.values()))} of {total} numbers within {apart / way:.1e} of their way, of {bound:.1e}")


def grads(wanted, got, bound, *nudged):
    want, have = two_files(wanted, got)
    sizes = {name: norm(numbers) for name, (_, numbers) in want.items()}
    largest = max(sizes.values())

    def distances(other):
        return {name: norm([a - b for a, b in zip(want[name][1], other[name][1])]) for name in want}

    def shares(apart):
        return {name: apart[name] / max(sizes[name], SHARE_OF_LARGEST * largest) for name in want}

    bound = allowed(bound, nudged, lambda path: max(shares(distances(read_tensors(path))).values()))
    apart = distances(have)
    whole, share = norm(apart.values()) / norm(sizes.values()), shares(apart)
    worst = max(share, key=share.get)
    if not share[worst] <= bound:
        fail(f"{worst}: {share[worst]:.2e} apart, beyond {bound:.2e}; the whole gradient {whole:.2e}")
    print(f"{len(want)} gradients within {share[worst]:.1e} of {bound:.1e}, the whole within {whole:.1e}")


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


def ask_graphs(report, steps):
    """One launch of a graph for each step and no kernel besides; one more where loaded parameters are rounded first."""
    steps, totals = int(steps), report["totals"]
    alone = [k["name"] for k in report["kernels"] if k["launches"] != k["graph_launches"]]
    refreshed = any(k["launches"] for k in report["kernels"] if k["name"].startswith("refresh_"))
    if totals["graph_launches"] != steps + refreshed or alone:
        fail(f"{totals['graph_launches']} graphs in {steps} steps, {refreshed:d} of them before; outside of graphs: {alone}")
    return f"{steps} steps are {steps} graphs, {totals['launches']} kernels"


def ask_warps(report, most):
    """No warp executes more instructions: the work of a launch is spread."""
    longest = max(report["kernels"], key=lambda k: k["longest_warp"])
    if longest["longest_warp"] > int(most):
        fail(f"a warp of {longest['name']} executes {longest['longest_warp']} instructions, more than {most}")
    return f"at most {longest['longest_warp']} instructions of a warp, in {longest['name']}"


QUESTIONS = {"clean": ask_clean, "value": ask_value, "graphs": ask_graphs, "warps": ask_warps}


def report(path, question, *arguments):
    with open(path, encoding="utf-8") as file:
        print(QUESTIONS[question](json.load(file), *arguments))


def spills(path):
    """Of `ampc explain --json`: no kernel spills."""
    with open(path, encoding="utf-8") as file:
        made = [k for d in json.load(file)["decisions"] for k in d["cuda_kernels"]]
    spilled = sorted({f"{k['kernel']} {k['arch']}: {k['spill_bytes']}" for k in made if k["spill_bytes"]})
    if not made or spilled:
        fail(f"{len(made)} kernels, spilled bytes: {', '.join(spilled)}")
    count = len({(k["kernel"], k["arch"]) for k in made})
    print(f"{count} kernels of {', '.join(sorted({k['arch'] for k in made}))}, no spills")


COMMANDS = {"data": data, "nudge": nudge, "steps": steps, "params": params, "update": update, "grads": grads,
            "zeros": zeros, "report": report, "spills": spills}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
