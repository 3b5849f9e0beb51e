"""The kernels of a training step that only move what others have made, or round it besides, and the bytes of each.

    copies.py MODEL.ir N        MODEL.ir: ampc --target cuda --emit ir; N: samples of a batch; T is the largest

What reads inputs and states alone is left out: it brings what a caller gives into the form that kernels read. So is
what has nothing to do, for its result has the memory of its operand. The last line is the sum.
"""

import math
import re
import sys

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "tf32": 4, "i32": 4, "bool": 4, "i64": 8, "f64": 8}
IN_PLACE = {"reshape", "slice", "concat"}
MOVES = IN_PLACE | {"cast", "permute", "pad", "expand", "gather", "const", "iota", "extent", "reduce_or", "is_finite"}


def count(dims, sizes):
    """Of `N, 4 * T, 7` at these sizes."""
    return math.prod(sizes.get(f) or int(f) for f in re.findall(r"\w+", dims or ""))


def read_step(path):
    text = open(path).read()
    longest = re.search(r"^  length (\d+)", text, re.M)
    text = text.split("\nfunc train_step {")[1].split("\n}")[0]
    dims, buffers = {}, {}
    for names, types in re.findall(r"^ +(?:input|state)? *(%.*?) +[:=] (.*)$", text, re.M):
        types = types.rsplit(" : ", 1)[-1]
        shapes = re.findall(r"(?:bool|[a-z]+[0-9]+)(?:\[([^\]]*)\])?", types)
        dims.update(zip(names.split(", "), shapes))
    line = re.compile(r"^  buffer (\S+) +(\S+)(?: of \S+)? +(%\S+) +(\S+) +\S+(.*)$", re.M)
    for name, kind, value, storage, more in line.findall(text):
        place = re.search(r" in (b\d+)", more)
        buffers[name] = (kind, value, storage, place[1] if place else name)
    return text, dims, buffers, int(longest[1]) if longest else 0


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text, dims, buffers, longest = read_step(sys.argv[1])
    sizes, total = {"N": int(sys.argv[2]), "T": longest}, 0
    for name, title, lists, body in re.findall(r'^  kernel (\S+) \S+ "(.*?)"(.*?)\{\n(.*?)\n  \}', text, re.S | re.M):
        ops = set(re.findall(r"^ +(?:%.*? += )?([a-z_0-9]+)\(", body, re.M))
        reads, writes = ((re.findall(r"\bb\d+", x) for x in (lists.split(" writes ") + [""])[:2]))
        writes = [b for b in writes if buffers[b][0] != "look"]  # counts, in few runs
        places = {buffers[b][3] for b in reads + writes}
        made = [b for b in reads if buffers[b][0] not in ("input", "state")]
        if not ops <= MOVES or not made or not writes or (ops <= IN_PLACE and len(places) == 1):
            continue
        size = sum(count(dims[buffers[b][1]], sizes) * BYTES[buffers[b][2]] for b in set(reads + writes))
        total += size
        print(f"{name} {title}: {size}")
    print(f"total {total}")


main()
