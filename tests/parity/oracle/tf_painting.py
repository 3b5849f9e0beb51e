#!/usr/bin/env python3
"""TensorFlow's automatic mixed precision in plain Python: the painting of auto_mixed_precision.cc of 2.20 and 2.21.

    tf_painting.py FILE.jsonl...    paints each graph, prints where the file says otherwise, and a summary

README.md, beside this file, says what the rows of a file are. `decide` answers for one graph: it is what random graphs
are compared with, written with sets and depth first, in no way like precision/paint.c.
"""
import collections
import json
import sys

Answer = collections.namedtuple("Answer", "changed casts paint")
LOOP, CAST = 7, 8  # after the six passes


class Graph:
    """Vertices are (node, type attribute); a port of a fixed type has an attribute of its own, "=int32"."""

    def __init__(self, rows):
        self.rows = {row["node"]: row for row in rows}
        self.types = {}  # in order of their first mention
        for row in rows:
            for key in [*row["in_attr"], *row["out_attr"], *row["attrs"]]:
                self.types[row["node"], key] = key[1:] if key[0] == "=" else row["attrs"][key]
        self.inputs, self.outputs = collections.defaultdict(list), collections.defaultdict(list)
        self.readers = collections.defaultdict(list)  # of (node, port): (node, number of its input)
        for row in rows:
            for i, source in enumerate(row["inputs"]):
                node, port = split(source)
                written, read = (node, self.rows[node]["out_attr"][port]), (row["node"], row["in_attr"][i])
                self.inputs[read].append(written)
                self.outputs[written].append(read)
                self.readers[node, port].append((row["node"], i))

    def list(self, x):
        return self.rows[x[0]].get("list")

    def may_change(self, x):
        return self.rows[x[0]].get("skipped") is None

    def is_f32(self, x):
        return self.types[x] == "float32"

    def admits_low(self, x):
        return self.rows[x[0]].get("f16_allowed", {}).get(x[1], False)

    def has_kernel(self, x):
        return self.rows[x[0]].get("f16_kernel", {}).get(x[1], False)

    def reads_variable(self, node):
        row = self.rows[node]
        while row["op"] == "Enter" and row["inputs"]:
            row = self.rows[split(row["inputs"][0])[0]]
        if row["op"] != "Identity" or not row["inputs"]:
            return False
        return self.rows[split(row["inputs"][0])[0]]["op"] in ("Variable", "VariableV2")


def split(source):
    node, _, port = source.rpartition(":")
    return node, int(port)


def walk(root, neighbours, may_enter, visit):
    """Depth first; a vertex is asked for when its turn comes, by what was visited until then."""
    seen, stack = set(), [root]
    while stack:
        x = stack.pop()
        if x not in seen and (x == root or may_enter(x)):
            seen.add(x)
            visit(x)
            for near in neighbours:
                stack.extend(near[x])


class Painting:
    def __init__(self, graph):
        self.graph = graph
        self.allow, self.deny = {}, set()  # allow: vertex -> pass
        self.removed = {}

    def add(self, x, by):
        self.allow.setdefault(x, by)
        self.removed.pop(x, None)

    def remove(self, x, by):
        if self.allow.pop(x, None):
            self.removed[x] = by

    def sources(self):
        return [x for x in self.graph.types if self.graph.may_change(x) and self.graph.list(x) == "allow"]

    def pass_1(self):
        for x in self.sources():
            self.add(x, 1)

    def pass_2(self):
        g, leading = self.graph, set()
        for x in g.types:
            if g.list(x) in ("deny", "infer"):
                walk(x, [g.inputs], lambda y: y not in leading and g.list(y) == "clear", leading.add)
        for x in g.types:
            if g.list(x) == "deny" and x not in self.deny:
                walk(x, [g.outputs], lambda y: y not in self.deny and y in leading, self.deny.add)

    def can_become_low(self, x):
        g = self.graph
        return x not in self.deny and g.may_change(x) and g.is_f32(x) and g.has_kernel(x)

    def pass_3(self):
        g, down, up = self.graph, set(), set()
        for x in self.sources():
            walk(x, [g.outputs], lambda y: y not in down and g.list(y) in ("clear", "infer") and self.can_become_low(y),
                 down.add)
        for x in self.sources():
            if x not in up:
                walk(x, [g.inputs], lambda y: y not in up and y in down, lambda y: (up.add(y), self.add(y, 3)))

    def pass_4(self):
        g = self.graph
        for x in g.types:
            if not g.may_change(x) or x in self.deny or x in self.allow or g.list(x) != "infer":
                continue
            if g.is_f32(x) and g.admits_low(x) and not self.deny.intersection(g.inputs[x]) and \
                    any(y in self.allow for y in g.inputs[x]):
                self.add(x, 4)

    def pass_5(self):
        g, beside = self.graph, set()
        for x in g.types:
            if g.may_change(x) and x not in beside and x in self.allow:
                walk(x, [g.inputs, g.outputs], lambda y: y not in self.allow and self.can_become_low(y) and
                     g.list(y) == "clear" and not g.reads_variable(y[0]), lambda y: (beside.add(y), self.add(y, 5)))

    def pass_6(self):
        for x in self.graph.types:
            if self.graph.list(x) == "allow" and x in self.allow and not self.graph.admits_low(x):
                self.remove(x, 6)

    def match_loops(self):
        g = self.graph
        for node, row in g.rows.items():
            if row["op"] != "NextIteration":
                continue
            merges = [(reader, "T") for reader, _ in g.readers[node, 0]]
            if all(x in self.allow for x in merges):
                self.add((node, "T"), LOOP)
            else:
                for x in [*merges, (node, "T")]:
                    self.remove(x, LOOP)

    def match_casts(self):
        g = self.graph
        for node, row in g.rows.items():
            readers = [(reader, g.rows[reader]["in_attr"][i]) for reader, i in g.readers[node, 0]]
            if row["op"] == "Cast" and g.types[node, "DstT"] == "float32" and readers and \
                    all(x in self.allow for x in readers):
                self.add((node, "DstT"), CAST)

    def run(self):
        self.pass_1()
        if not self.allow:
            return self
        for step in (self.pass_2, self.pass_3, self.pass_4, self.pass_5, self.pass_6):
            step()
        self.match_loops()
        self.match_casts()
        return self

    def said(self, x):
        if x in self.allow:
            return f"ALLOW@{self.allow[x]}"
        return f"UNALLOW@{self.removed[x]}" if x in self.removed else "DENY@2" if x in self.deny else None


def decide(rows):
    """Of the rows of one graph: changed {node: its type attributes that become low}, casts [(source port, "low" or
    "float32", readers)], paint {node: {attribute, without "=": what was painted last, and by which pass}}."""
    graph = Graph(rows)
    painting = Painting(graph).run()
    changed, paint, casts = collections.defaultdict(set), collections.defaultdict(dict), []
    for x in graph.types:
        node, key = x
        if x in painting.allow and graph.is_f32(x) and key[0] != "=":
            changed[node].add(key)
        if painting.said(x):
            paint[node][key.lstrip("=")] = painting.said(x)
    for node, row in graph.rows.items():
        for port, key in enumerate(row["out_attr"]):
            is_low = (node, key) in painting.allow
            readers = sorted(f"{reader}:{i}" for reader, i in graph.readers[node, port]
                             if ((reader, graph.rows[reader]["in_attr"][i]) in painting.allow) != is_low)
            if readers and graph.is_f32((node, key)):
                casts.append((f"{node}:{port}", "float32" if is_low else "low", readers))
    return Answer(changed, casts, paint)


def direction(dtype):
    return "float32" if dtype == "float32" else "low"


def same_paint(wanted, ours):
    """TensorFlow logs the six passes alone, so what was decided after them counts where a row says that it knows it."""
    late = ("@7", "@8")
    for key in {*wanted, *ours}:
        is_known = wanted.get(key, "").endswith(late) or not ours.get(key, "").endswith(late)
        if is_known and wanted.get(key) != ours.get(key):
            return False
    return True


def differences(rows, end):
    """What the rows of one graph, and the row that ends it, say otherwise than `decide`."""
    answer = decide(rows)
    for row in rows:
        node, wanted, paint = row["node"], set(row.get("changed", ())), row.get("paint", {})
        ours, our_paint = set(answer.changed.get(node, ())), answer.paint.get(node, {})
        if wanted != ours:
            yield f"node {node} ({row['op']}): changed: expected {sorted(wanted)}, ours {sorted(ours)}"
        if not same_paint(paint, our_paint):
            yield f"node {node} ({row['op']}): paint: expected {paint}, ours {our_paint}"
    wanted = [(cast["src"], direction(cast["to"]), sorted(cast["consumers"])) for cast in end["casts"]]
    for cast in wanted:
        if cast not in answer.casts or wanted.count(cast) > 1:
            yield f"cast {cast}: expected, not ours"
    for cast in answer.casts:
        if cast not in wanted:
            yield f"cast {cast}: ours, not expected"


def graphs(path):
    """(rows, row that ends them) of each graph of a file, in each mode that its last row names."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            rows.append(json.loads(line))
            if rows[-1]["kind"] == "graph":
                for mode in rows[-1].get("modes", ["fp16"]):
                    *nodes, end = [in_mode(row, mode) for row in rows]
                    yield nodes, end
                rows = []


def in_mode(row, mode):
    """A row with what it says otherwise of that mode; null: it says nothing."""
    return {key: value for key, value in {**row, **row.get(mode, {})}.items() if value is not None}


def main(paths):
    count = nodes = casts = wrong = 0
    for path in paths:
        for rows, end in graphs(path):
            count, nodes, casts = count + 1, nodes + len(rows), casts + len(end["casts"])
            for text in differences(rows, end):
                wrong += 1
                print(f"{end['graph']}: {text}")
    print(f"{count} graphs, {nodes} nodes, {casts} casts: {wrong} differences")
    return wrong > 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
