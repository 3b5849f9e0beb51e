"""The bytes of device memory that a training step has to move, derived from a model's forward graph.

    step_bytes.py MODEL.ir N        MODEL.ir: ampc --emit ir --stop-after autocast; N: samples of a batch

The list. Elementwise ops, casts and views are part of what makes or reads their values; a tensor is as large as its
dtype makes it; a value is written once, where some op below reads it from memory.

forward     product             reads its operands
            attention           reads q, k, v; writes a number in f32 for each query, which backward reads, and with
                                dropout a bit for each score (keys up to the next 64)
            batch norm          reads x twice: for the statistics, and for y
            other norms         read x once
            pooling             reads x; of a maximum, writes where it was
            embedding           reads a row for each id
            cross-entropy       reads the logits, writes their gradient
            elementwise         reads operands that are not just being made
backward    product             dx: reads dy and w, writes dx; dw: reads dy and x, writes dw in f32; a bias reads dy
            attention           reads q, k, v, y and dy, writes dq, dk, dv
            batch norm          reads dy and x twice (sums; dx), writes dx
            other norms         read dy and x, write dx
            pooling             reads dy and places, writes dx
            embedding           reads dy, writes the table's gradient
            relu                reads y, but for one after batch norm, which reads x; gelu and its like read x
            values read twice   a further gradient is read once more, and written unless it is a sum's
update      reads parameter, gradient and moments, writes parameter, moments and the copy in the low type

Pooling whose windows do not overlap is part of a batch norm in front of it: nothing between them is written, and the
norm's backward reads the pooling's dy.
"""

import os
import re
import sys

C_BYTES = {"float": 4, "double": 8, "int32_t": 4, "int64_t": 8, "uint16_t": 2, "uint8_t": 1}
TYPES = os.path.join(os.path.dirname(__file__), "../../base/dtypes.def")
with open(TYPES, encoding="utf-8") as rows:
    BYTES = {name: C_BYTES[file] for name, file in re.findall(
        r"^(?:CODED_)?DTYPE\(\w+, +(\w+), +\w+, +\w+, +\w+, +(\w+), +\w+\)$", rows.read(), re.M)}
PRODUCTS = {"linear", "conv2d", "conv_transpose2d", "conv1d", "matmul"}
NORMS = {"layer_norm", "rms_norm", "softmax", "group_norm"}
POOLS = {"max_pool2d": 4, "avg_pool2d": 0, "adaptive_avg_pool2d": 0}  # bytes that say where a maximum was
VIEWS = {"cast", "reshape", "flatten", "transpose", "slice", "permute", "expand", "unsqueeze", "squeeze"}
CURVES = {"gelu", "silu", "tanh", "sigmoid"}
FREE = {"const", "increment", "accuracy", "top_k_accuracy", "iota", "nll_loss", "mse_loss"}
MOMENTS = {"sgd": 0, "sgd with momentum": 1, "adam": 2, "adamw": 2}
SMALL = 4096  # sums of statistics and the like, which do not count


class Value:
    def __init__(self, number, name, dtype, dims):
        self.number, self.name, self.dtype, self.dims = number, name, dtype, dims
        self.kind, self.op, self.inputs, self.attributes, self.first = "op", None, [], "", True
        self.count = 1
        for d in dims:
            self.count *= d
        self.bytes = self.count * BYTES[dtype]


def sizes(text, n):
    """Of `[N, 4 * N, 7]` at n."""
    dims = []
    for dim in text[1:-1].split(",") if text else []:
        dims.append(1)
        for factor in dim.split("*"):
            dims[-1] *= n if factor.strip() == "N" else int(factor)
    return dims


def read_model(path, n):
    """The values of `func forward`, in order; the optimizer."""
    values, optimizer, inside = {}, None, False

    def add(name, dtype, dims):
        values[name] = Value(len(values), name, dtype, sizes(dims, n))
        return values[name]

    for line in open(path):
        if line.startswith("  optimizer "):
            optimizer = line.split()[1].split("(")[0]
            if optimizer == "sgd" and re.search(r"momentum = 0\.[0-9]*[1-9]", line):
                optimizer += " with momentum"
        inside = inside and not line.startswith("}") or line.startswith("func forward")
        given = re.match(r"  (input|state) (\S+)\s*: ([a-z0-9]+)(\[[^\]]*\])?", line)
        made = re.match(r"  (%.*?) += ([a-z_0-9]+)\((.*)\)\s*: (.*?)\s+[@{b]", line)
        if inside and given:
            add(given[2], given[3], given[4]).kind = given[1]
        elif inside and made:
            names, op, arguments, results = made.groups()
            inputs = [values[x] for x in re.findall(r"%[^\s,;)]+", arguments.split("; ")[0]) if x in values]
            types = re.findall(r"\b([a-z]+[0-9]*)(\[[^\]]*\])?(?:,|$)", results)
            for i, (name, (dtype, dims)) in enumerate(zip(names.split(", "), types)):
                v = add(name, dtype, dims)
                v.op, v.inputs, v.attributes, v.first = op, inputs, arguments, i == 0
    return list(values.values()), optimizer


def origin(v):
    while v.op in VIEWS:
        v = v.inputs[0]
    return v


def source(v):
    """What is in memory of |v|: views are seen through, and casts of what a kernel makes."""
    while v.op in VIEWS and not (v.op == "cast" and v.inputs[0].kind != "op"):
        v = v.inputs[0]
    return v


def in_memory(v):
    """The bytes of |v|, which a kernel converts as it loads, or has converted as it stored."""
    return min(v.bytes, source(v).bytes)


def is_parameter(v):
    return origin(v).kind == "state"


class Step:
    def __init__(self, values, optimizer):
        self.values, self.optimizer = values, optimizer
        self.list, self.stored, self.trained = {}, set(), {}
        self.pooled = {}  # by batch norm: the bytes of dy that its backward reads, of the pooling that it makes

    def add(self, what, count):
        self.list[what] = self.list.get(what, 0) + count

    def store(self, v):
        v = source(v)
        if v.kind == "op" and v.name not in self.stored:
            self.stored.add(v.name)
            self.add("values written", v.bytes)

    def read(self, v, what, times=1):
        self.store(v)
        self.add(what, times * in_memory(v))

    def has_gradient(self, v):
        v = origin(v)
        if v.kind != "op":
            return v.kind == "state" and v.dtype == "f32"
        if v.name not in self.trained:
            self.trained[v.name] = v.op not in FREE and any(self.has_gradient(x) for x in v.inputs)
        return self.trained[v.name]

    def derive(self):
        ops = [v for v in self.values if v.op and v.first and v.op not in FREE and v.op not in VIEWS]
        ops = [v for v in ops if v.count > SMALL or v.op not in ("mul", "add")]
        for v in ops:
            if v.op in POOLS and self.norm_of_pooling(v):
                self.pooled[self.norm_of_pooling(v).name] = v.bytes + v.count * POOLS[v.op]
        for v in ops:
            self.visit(v, [x for x in v.inputs if not is_parameter(x)])
        self.sum_gradients(ops)
        self.update(ops)
        return self.list

    def norm_of_pooling(self, v):
        kernel, stride = (re.search(word + r" = (\([^)]*\))", v.attributes) for word in ("kernel", "stride"))
        x = source(v.inputs[0])
        while x.op == "relu":
            x = source(x.inputs[0])
        return x if kernel and stride and kernel[1] == stride[1] and x.op == "batch_norm" else None

    def visit(self, v, tensors):
        if v.op in PRODUCTS:
            self.product(v)
        elif v.op == "attention":
            for x in v.inputs[:3]:
                self.read(x, "attention", 2)
                self.add("gradients written", x.bytes)
            queries = v.inputs[0].count // v.inputs[0].dims[-1]
            self.add("attention", 2 * v.bytes + 2 * 4 * queries)
            if re.search(r"\bp = 0\.[0-9]*[1-9]", v.attributes):
                self.add("attention", 2 * queries * ((v.inputs[1].dims[-2] + 63) // 64 * 8))
        elif v.op == "batch_norm":
            self.read(tensors[0], "batch norm", 4)
            self.add("batch norm", 2 * self.pooled.get(v.name, v.bytes))
            if self.has_gradient(tensors[0]):
                self.add("gradients written", tensors[0].bytes)
        elif v.op in NORMS:
            self.read(tensors[0], "norms", 2)
            self.add("norms", v.bytes)
            self.add("gradients written", in_memory(tensors[0]))
        elif v.op in POOLS:
            places = v.count * POOLS[v.op]
            self.add("pooling", places)
            if not self.norm_of_pooling(v):
                self.read(tensors[0], "pooling")
                self.add("pooling", places + v.bytes)
                self.add("gradients written", tensors[0].bytes)
        elif v.op == "embedding":
            self.add("embedding", 2 * v.bytes + 2 * v.inputs[0].bytes + origin(v.inputs[1]).bytes)
        elif v.op == "log_softmax":
            self.read(tensors[0], "loss")
            self.add("loss", tensors[0].bytes)
        else:
            self.elementwise(v, [x for x in tensors if x.count > 1])

    def product(self, v):
        x, w = v.inputs[0], v.inputs[1]
        self.read(x, "products", 2)  # forward, and for dw
        self.add("products", w.bytes + v.bytes)
        self.add("products", origin(w).count * 4 if is_parameter(w) else w.bytes)
        if self.has_gradient(x):
            self.add("products", v.bytes + w.bytes)
            self.add("gradients written", x.bytes)
        if len(v.inputs) > 2:
            self.add("bias gradients", v.bytes)

    def elementwise(self, v, tensors):
        latest = max(tensors, key=lambda x: source(x).number, default=None)
        for x in tensors:
            if x is not latest:
                self.read(x, "elementwise operands")
        if v.op == "relu" and source(latest).op != "batch_norm":
            self.add("elementwise backward", v.bytes)
        if v.op in CURVES:
            self.store(latest)
            self.add("elementwise backward", latest.bytes)

    def sum_gradients(self, ops):
        readers = {}
        for v in ops:
            for x in {source(x).name: source(x) for x in v.inputs if self.has_gradient(x)}.values():
                if x.kind == "op":
                    readers.setdefault(x.name, (x, []))[1].append(v.op)
        for v, by in readers.values():
            for op in sorted(by, key=lambda op: op == "add")[1:]:
                self.add("gradients that are added", v.bytes if op == "add" else 2 * v.bytes)

    def update(self, ops):
        parameters = {origin(x).name: origin(x) for v in ops for x in v.inputs if is_parameter(x)}
        low = {v.inputs[0].name for v in self.values if v.op == "cast"}
        for w in parameters.values():
            if w.dtype == "f32" and "running_" not in w.name:
                each = 4 * (3 + 2 * MOMENTS[self.optimizer]) + (2 if w.name in low else 0)
                self.add("update", w.count * each)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lines = Step(*read_model(sys.argv[1], int(sys.argv[2]))).derive()
    for what, count in lines.items():
        print(f"{what:28} {count:14}")
    print(f"{'total':28} {sum(lines.values()):14}")


main()
