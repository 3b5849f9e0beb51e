#!/usr/bin/env python3
"""Random graphs for painting, with the answers of oracle/tf_painting.py, as rows that `paint_vectors` reads.

    random_paint_graphs.py [--first SEED] [--count N] > FILE.jsonl

The graphs have what painting looks at: ops of every list, ops with types of their own for some operands, ports of a
fixed type, ops that stay as they are, kernels that are missing, casts, variables and what hands them on, loops, cycles
without one; and rows that stand before those that they read, because the order of rows is the order of pass 4.
"""
import argparse
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle"))
import tf_painting

# name: list, attributes of inputs and of outputs; "=int32" is a fixed type, "*" any number of the first
OPS = {
    "MatMul": ("allow", "T T", "T"),
    "Conv2DBackpropInput": ("allow", "=int32 T T", "T"),
    "Einsum": ("allow", "T *", "T"),
    "Mul": ("infer", "T T", "T"),
    "Softmax": ("infer", "T", "T"),
    "AddN": ("infer", "T *", "T"),
    "FusedBatchNormV3": ("infer", "T U U", "T U U"),
    "Exp": ("deny", "T", "T"),
    "Sum": ("deny", "T Tidx", "T"),
    "Relu": ("clear", "T", "T"),
    "Identity": ("clear", "T", "T"),
    "Reshape": ("clear", "T Tshape", "T"),
    "SelectV2": ("clear", "=bool T T", "T"),
    "Split": ("clear", "=int32 T", "T T"),
    "Shape": ("clear", "T", "out_type"),
    "Enter": ("clear", "T", "T"),
    "Exit": ("clear", "T", "T"),
    "Merge": ("clear", "T T", "T =int32"),
    "NextIteration": ("clear", "T", "T"),
    "Cast": (None, "SrcT", "DstT"),
    "Square": (None, "T", "T"),
    "LRN": (None, "=float32", "=float32"),
    "Placeholder": (None, "", "dtype"),
    "VariableV2": (None, "", "dtype"),
}
# Some are more likely, so that paint goes far, and loops and casts are met.
LIKELY = ["MatMul", "Mul", "Relu", "Identity", "Exp", "Softmax", "Reshape", "Merge", "NextIteration", "Cast"]
INTEGERS = {"Tidx", "Tshape", "out_type"}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.rows = []
        # a graph that is hard in one respect is easy in others
        self.skipped, self.missing, self.other_type, self.other_list = (
            self.random.choice((0.0, 0.0, 0.05, 0.3)) for _ in range(4))

    def likely(self, probability):
        return self.random.random() < probability

    def dtype(self, attr):
        if attr in INTEGERS:
            return self.random.choice(("int32", "int64"))
        return self.random.choice(("float64", "float16", "int32")) if self.likely(self.other_type) else "float32"

    def node(self, op):
        group, inputs, outputs = OPS[op]
        inputs = inputs.split()
        if inputs and inputs[-1] == "*":
            inputs = inputs[:1] * self.random.randint(1, 4)
        outputs = outputs.split()
        attrs = {attr: self.dtype(attr) for attr in [*inputs, *outputs] if attr[0] != "="}
        if self.likely(self.other_list):
            group = self.random.choice(("allow", "infer", "deny", "clear", None))
        allowed = {attr: not self.likely(self.missing) for attr in attrs}
        kernel = {attr: not self.likely(self.missing) for attr in attrs}
        self.rows.append({
            "kind": "node", "node": f"{op}_{len(self.rows)}", "op": op, "inputs": [], "in_attr": inputs,
            "out_attr": outputs, "attrs": attrs, "list": group,
            "skipped": "must be preserved" if self.likely(self.skipped) else None,
            "f16_allowed": allowed, "f16_kernel": kernel})
        return self.rows[-1]

    def source(self, rows, reader, attr):
        """A port for |reader|, most often of the same type, and of the last rows; None where there is none."""
        dtype = attr[1:] if attr[0] == "=" else reader["attrs"][attr]
        if reader["op"] in ("Identity", "Enter") and self.likely(0.3):  # what may hand on a variable
            rows = [row for row in rows if row["op"] in ("VariableV2", "Identity", "Enter")] or rows
        for tries in range(30 if rows else 0):
            row = self.random.choice(rows[-6:] if self.likely(0.7) else rows)
            if row["op"] == "NextIteration":
                continue
            port = self.random.randrange(len(row["out_attr"]))
            key = row["out_attr"][port]
            if tries > 20 or (key[1:] if key[0] == "=" else row["attrs"][key]) == dtype:
                return f"{row['node']}:{port}"
        return None

    def wire(self, row, rows):
        sources = [self.source(rows, row, attr) for attr in row["in_attr"]]
        kept = [i for i, source in enumerate(sources) if source]
        row["inputs"] = [sources[i] for i in kept]
        row["in_attr"] = [row["in_attr"][i] for i in kept]

    def close_loops(self):
        """Every NextIteration is read by one Merge, by several, or by none; by none but these."""
        merges = [row for row in self.rows if row["op"] == "Merge" and row["inputs"]]
        for row in self.rows:
            if row["op"] == "NextIteration" and merges:
                for merge in self.random.sample(merges, min(len(merges), self.random.choice((0, 1, 1, 1, 2)))):
                    merge["inputs"][-1] = row["node"] + ":0"

    def graph(self):
        ops = self.random.sample(sorted(OPS), self.random.randint(4, len(OPS))) + \
            self.random.sample(LIKELY, self.random.randint(1, len(LIKELY)))
        self.node("Placeholder")
        for _ in range(self.random.randint(2, 40)):
            self.node(self.random.choice(ops))
        back = self.random.choice((0.0, 0.0, 0.1))  # edges that may lead back
        for i, row in enumerate(self.rows):
            # An Enter that leads to itself is no graph of TensorFlow's.
            self.wire(row, self.rows if self.likely(back) and row["op"] != "Enter" else self.rows[:i])
        self.close_loops()
        if self.likely(0.3):
            self.random.shuffle(self.rows)
        return self.rows


def answered(seed):
    """The rows of one graph with the oracle's answer, and the row that ends it."""
    rows = Maker(seed).graph()
    mode, low = random.Random(seed).choice((("fp16", "float16"), ("bf16", "bfloat16")))
    answer = tf_painting.decide(rows)
    for row in rows:
        row["changed"] = {attr: low for attr in sorted(answer.changed.get(row["node"], ()))}
        row["paint"] = answer.paint.get(row["node"], {})
    casts = [{"src": source, "to": low if to == "low" else to, "consumers": readers}
             for source, to, readers in answer.casts]
    return [*rows, {"kind": "graph", "graph": f"seed_{seed}", "mode": mode, "casts": casts}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--count", type=int, default=300, metavar="N")
    options = parser.parse_args()
    for seed in range(options.first, options.first + options.count):
        for row in answered(seed):
            print(json.dumps(row, separators=(",", ":")))


if __name__ == "__main__":
    main()
