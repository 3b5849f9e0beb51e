"""Random ONNX graphs that hold what makes lowering hard: unknown domains, If, Loop, local functions, quantised nodes,
casts that are there already, f64, i64, strings, Resize and Clip, shapes that are computed.

    onnx_graphs.py SEED OUT.onnx

Each passes onnx.checker with full_check. Outputs that follow from a comparison or a rounding (TopK, ArgMax, Greater,
QuantizeLinear) are named `step_...`: a small error may make them jump.
"""
import random
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

OPSETS = (13, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25)
CUSTOM = "com.example"


class Value:
    def __init__(self, name, dtype, shape, stepped=False):
        self.name, self.dtype, self.shape, self.stepped = name, dtype, tuple(shape), stepped


class Builder:
    """Nodes of one graph; an inner one sees the values around it."""

    def __init__(self, rng, opset, outer=None):
        self.rng, self.opset, self.outer = rng, opset, outer
        self.root = outer.root if outer else self
        self.nodes, self.values, self.infos = [], list(outer.values) if outer else [], []
        if not outer:
            self.count, self.weights, self.functions, self.uses_custom, self.runs = 0, [], {}, False, True

    def name(self, what):
        self.root.count += 1
        return f"{what}_{self.root.count}"

    def weight(self, array, what="w"):
        name = self.name(what)
        self.root.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape, scale=None):
        fan_in = int(np.prod(shape[:-1])) if len(shape) > 1 else 1
        numbers = self.root.numbers.normal(size=shape) * (scale or 1.0 / np.sqrt(max(fan_in, 1)))
        return self.weight(numbers.astype(np.float32))

    def ints(self, *numbers):
        """An initializer, or now and then a Constant."""
        array = np.array(numbers, np.int64)
        if self.rng.random() < 0.3:
            return self.op("Constant", [], [("i64", array.shape)], value=numpy_helper.from_array(array))[0].name
        return self.weight(array, "ints")

    def op(self, op_type, inputs, outputs, domain="", stepped=None, **attributes):
        """|inputs|: values or names; |outputs|: dtype and shape of each."""
        values = [v for v in inputs if isinstance(v, Value)]
        stepped = any(v.stepped for v in values) if stepped is None else stepped
        made = [Value(self.name(op_type.lower()), dtype, shape, stepped) for dtype, shape in outputs]
        self.nodes.append(h.make_node(op_type, [v.name if isinstance(v, Value) else v for v in inputs],
                                      [v.name for v in made], name=self.name("node"), domain=domain, **attributes))
        return made

    def pick(self, dtype="f32", rank=None, least_rank=0):
        found = [v for v in self.values if v.dtype == dtype and (rank is None or len(v.shape) == rank)
                 and len(v.shape) >= least_rank]
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found) if found else None


DTYPES = {"f32": T.FLOAT, "f16": T.FLOAT16, "f64": T.DOUBLE, "i64": T.INT64, "i32": T.INT32, "u8": T.UINT8,
          "bool": T.BOOL, "str": T.STRING}


# ---- makers: each adds nodes and returns new values, or None where nothing fits -------------------------------------

def cast(b, x, dtype):
    return b.op("Cast", [x], [(dtype, x.shape)], to=DTYPES[dtype])[0]


def linear(b):
    x = b.pick(least_rank=2)
    if not x:
        return None
    width = b.rng.choice([4, 8, 8, 12])
    if len(x.shape) == 2 and b.rng.random() < 0.5:
        return b.op("Gemm", [x, b.normal(x.shape[1], width), b.normal(width)], [("f32", (x.shape[0], width))])
    y = b.op("MatMul", [x, b.normal(x.shape[-1], width)], [("f32", (*x.shape[:-1], width))])[0]
    return b.op("Add", [y, b.normal(width)], [("f32", y.shape)])


def conv(b):
    x = b.pick(rank=4)
    if not x:
        return None
    n, c, height, width = x.shape
    made = b.op("Conv", [x, b.normal(6, c, 3, 3, scale=0.2), b.normal(6)], [("f32", (n, 6, height, width))],
                kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    if b.rng.random() < 0.5:
        statistics = [b.weight(np.full(6, v, np.float32)) for v in (1.1, 0.1, 0.05, 0.9)]
        made = b.op("BatchNormalization", [made[0], *statistics], [("f32", made[0].shape)], epsilon=1e-5)
    return made


def unary(b):
    x = b.pick()
    name = b.rng.choice(["Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "Identity", "Abs", "Neg", "LeakyRelu", "Elu",
                         "HardSigmoid", "Sin", "Cos", "Dropout"] + ["Gelu"] * (b.opset >= 20))
    return b.op(name, [x], [("f32", x.shape)])


def large(b):
    """What overflows f16 where it is large."""
    x = b.pick()
    bounded = b.op("Tanh", [x], [("f32", x.shape)])[0]
    if b.rng.random() < 0.5:
        return b.op("Exp", [bounded], [("f32", x.shape)])
    return b.op("Pow", [bounded, b.weight(np.float32(2.0))], [("f32", x.shape)])


def binary(b):
    x = b.pick()
    same = [v for v in b.values if v.dtype == "f32" and v.shape == x.shape]
    y = b.rng.choice(same)
    name = b.rng.choice(["Add", "Sub", "Mul", "Max", "Min", "Div"])
    if name == "Div":
        y = b.op("Sigmoid", [y], [("f32", y.shape)])[0]
        y = b.op("Add", [y, b.weight(np.float32(0.5))], [("f32", y.shape)])[0]
    return b.op(name, [x, y], [("f32", x.shape)])


def softmax(b):
    x = b.pick(least_rank=2)
    return x and b.op(b.rng.choice(["Softmax", "LogSoftmax"]), [x], [("f32", x.shape)], axis=-1)


def norm(b):
    x = b.pick(least_rank=2)
    if not x:
        return None
    last, width = ("f32", x.shape), x.shape[-1]
    scale, shift = b.weight(np.full(width, 1.2, np.float32)), b.normal(width)
    if b.opset >= 23 and b.rng.random() < 0.4:
        return b.op("RMSNormalization", [x, scale], [last])
    if b.opset >= 17 and b.rng.random() < 0.4:
        return b.op("LayerNormalization", [x, scale, shift], [last])
    thin = ("f32", (*x.shape[:-1], 1))
    mean = reduce_op(b, "ReduceMean", x)
    middle = b.op("Sub", [x, mean], [last])[0]
    square = b.op("Pow", [middle, b.weight(np.float32(2.0))], [last])[0]
    variance = b.op("Add", [reduce_op(b, "ReduceMean", square), b.weight(np.float32(1e-5))], [thin])[0]
    ready = b.op("Div", [middle, b.op("Sqrt", [variance], [thin])[0]], [last])[0]
    return b.op("Add", [b.op("Mul", [ready, scale], [last])[0], shift], [last])


def reduce_op(b, name, x):
    shape = (*x.shape[:-1], 1)
    if b.opset >= (13 if name == "ReduceSum" else 18):
        return b.op(name, [x, b.ints(-1)], [("f32", shape)], keepdims=1)[0]
    return b.op(name, [x], [("f32", shape)], axes=[-1], keepdims=1)[0]


def reduction(b):
    x = b.pick(least_rank=2)
    return x and [reduce_op(b, b.rng.choice(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"]), x)]


def transpose(b):
    x = b.pick(least_rank=2)
    if not x:
        return None
    order = list(range(len(x.shape)))
    b.rng.shuffle(order)
    return b.op("Transpose", [x], [("f32", [x.shape[i] for i in order])], perm=order)


def reshape(b):
    x = b.pick(least_rank=2)
    if not x:
        return None
    flat = (x.shape[0], int(np.prod(x.shape[1:])))
    if b.rng.random() < 0.5:
        return b.op("Reshape", [x, b.ints(0, -1)], [("f32", flat)])
    shape = b.op("Shape", [x], [("i64", (len(x.shape),))])[0]
    first = b.op("Gather", [shape, b.ints(0)], [("i64", (1,))])[0]
    wanted = b.op("Concat", [first, b.ints(-1)], [("i64", (2,))], axis=0)[0]
    return b.op("Reshape", [x, wanted], [("f32", flat)])


def pieces(b):
    x = b.pick(least_rank=2)
    if not x:
        return None
    kind = b.rng.choice(["Slice", "Gather", "Concat", "Split", "Pad", "Unsqueeze"])
    if kind == "Slice" and x.shape[-1] > 2:
        return b.op("Slice", [x, b.ints(1), b.ints(x.shape[-1]), b.ints(-1)],
                    [("f32", (*x.shape[:-1], x.shape[-1] - 1))])
    if kind == "Gather":
        return b.op("Gather", [x, b.ints(0, x.shape[-1] - 1)], [("f32", (*x.shape[:-1], 2))], axis=-1)
    if kind == "Split" and x.shape[-1] % 2 == 0:
        half = x.shape[-1] // 2
        return b.op("Split", [x, b.ints(half, half)], [("f32", (*x.shape[:-1], half))] * 2, axis=-1)
    if kind == "Pad":
        rank = len(x.shape)
        return b.op("Pad", [x, b.ints(*[0] * (2 * rank - 1), 1), b.weight(np.float32(0.5))],
                    [("f32", (*x.shape[:-1], x.shape[-1] + 1))])
    if kind == "Unsqueeze":
        wide = b.op("Unsqueeze", [x, b.ints(0)], [("f32", (1, *x.shape))])[0]
        return b.op("Squeeze", [wide, b.ints(0)], [("f32", x.shape)])
    return b.op("Concat", [x, x], [("f32", (*x.shape[:-1], 2 * x.shape[-1]))], axis=-1)


def resize(b):
    x = b.pick(rank=4)
    if not x:
        return None
    n, c, height, width = x.shape
    scales = b.weight(np.array([1, 1, 2, 1], np.float32), "scales")
    roi = b.weight(np.zeros(0, np.float32), "roi") if b.rng.random() < 0.5 else ""
    return b.op("Resize", [x, roi, scales], [("f32", (n, c, 2 * height, width))],
                mode=b.rng.choice(["nearest", "linear"]))


def clip(b):
    x = b.pick()
    bounds = [b.weight(np.float32(-3.0)), b.weight(np.float32(3.0))]
    if b.rng.random() < 0.4:
        bounds[b.rng.randrange(2)] = ""
    return b.op("Clip", [x, *bounds], [("f32", x.shape)])


def where(b):
    x = b.pick()
    test = b.op("Greater", [x, b.weight(np.float32(0.1))], [("bool", x.shape)], stepped=True)[0]
    return b.op("Where", [test, x, b.weight(np.float32(0.25))], [("f32", x.shape)])


def top(b):
    x = b.pick(least_rank=2)
    if not x or x.shape[-1] < 2:
        return None
    if b.rng.random() < 0.5:
        return b.op("ArgMax", [x], [("i64", x.shape[:-1])], axis=-1, keepdims=0, stepped=True)
    return b.op("TopK", [x, b.ints(2)], [("f32", (*x.shape[:-1], 2)), ("i64", (*x.shape[:-1], 2))], stepped=True)


def there_already(b):
    """Casts as a converter or an author left them."""
    x = b.pick()
    half = cast(b, x, "f16")
    if b.rng.random() < 0.5:
        half = b.op(b.rng.choice(["Relu", "Sigmoid", "Neg"]), [half], [("f16", x.shape)])[0]
    return [cast(b, half, "f32")]


def double(b):
    x = b.pick()
    wide = cast(b, x, "f64")
    wide = b.op("Mul", [wide, b.weight(np.float64(1.5))], [("f64", x.shape)])[0]
    return [cast(b, wide, "f32"), wide]


def whole(b):
    x = b.pick()
    number = b.op("Cast", [x], [("i64", x.shape)], to=T.INT64, stepped=True)[0]
    number = b.op("Add", [number, b.weight(np.int64(2))], [("i64", x.shape)])[0]
    return [cast(b, number, "f32"), number]


def quantised(b):
    x = b.pick()
    scale, zero = b.weight(np.float32(0.05), "scale"), b.weight(np.uint8(128), "zero")
    small = b.op("QuantizeLinear", [x, scale, zero], [("u8", x.shape)], stepped=True)[0]
    return b.op("DequantizeLinear", [small, scale, zero], [("f32", x.shape)])


def unknown(b):
    """An op of a domain without schemas: what it makes is in value_info alone."""
    x = b.pick()
    made = b.op("Mystery", [x], [("f32", x.shape)], domain=CUSTOM)
    b.root.uses_custom, b.root.runs = True, False
    b.infos += [h.make_tensor_value_info(v.name, DTYPES[v.dtype], v.shape) for v in made]
    return made


def called(b):
    """A function of the model's own."""
    x = b.pick()
    b.root.functions["Twice"] = h.make_function(
        "ampc.tests", "Twice", ["x"], ["y"],
        [h.make_node("Add", ["x", "x"], ["s"]), h.make_node("Sigmoid", ["s"], ["y"])],
        [h.make_opsetid("", b.opset)])
    return b.op("Twice", [x], [("f32", x.shape)], domain="ampc.tests")


def branches(b):
    """If, whose branches read values around it."""
    x = b.pick(least_rank=1)
    if not x:
        return None
    graphs = []
    for which in ("then", "else"):
        inner = Builder(b.rng, b.opset, b)
        y = x
        for _ in range(b.rng.randrange(1, 3)):
            name = b.rng.choice(["Relu", "Neg", "Sigmoid", "Tanh"])
            y = inner.op(name, [y], [("f32", x.shape)])[0]
        y = inner.op("Mul", [y, b.weight(np.float32(0.7))], [("f32", x.shape)])[0]
        graphs.append(h.make_graph(inner.nodes, b.name(which), [],
                                   [h.make_tensor_value_info(y.name, T.FLOAT, x.shape)], value_info=inner.infos))
    test = b.weight(np.array(b.rng.random() < 0.5), "test")
    return b.op("If", [test], [("f32", x.shape)], stepped=x.stepped, then_branch=graphs[0], else_branch=graphs[1])


def loop(b):
    """Two iterations over a carried value, with a product inside, and what each made side by side."""
    x = b.pick(rank=2)
    if not x:
        return None
    inner = Builder(b.rng, b.opset, b)
    i, test, carried = (b.name(n) for n in ("i", "test", "carried"))
    y = inner.op("MatMul", [carried, b.normal(x.shape[1], x.shape[1])], [("f32", x.shape)], stepped=x.stepped)[0]
    y = inner.op("Tanh", [y], [("f32", x.shape)])[0]
    seen = inner.op("Identity", [y], [("f32", x.shape)])[0]
    again = inner.op("Identity", [test], [("bool", ())])[0]
    body = h.make_graph(inner.nodes, b.name("body"),
                        [h.make_tensor_value_info(i, T.INT64, ()), h.make_tensor_value_info(test, T.BOOL, ()),
                         h.make_tensor_value_info(carried, T.FLOAT, x.shape)],
                        [h.make_tensor_value_info(again.name, T.BOOL, ()),
                         h.make_tensor_value_info(y.name, T.FLOAT, x.shape),
                         h.make_tensor_value_info(seen.name, T.FLOAT, x.shape)])
    return b.op("Loop", [b.weight(np.int64(2)), b.weight(np.array(True)), x],
                [("f32", x.shape), ("f32", (2, *x.shape))], body=body)


def strings(b):
    x = b.pick("str")
    if not x:
        return None
    return b.op("Identity", [x], [("str", x.shape)])


MAKERS = [linear, linear, linear, conv, conv, unary, unary, unary, binary, binary, large, softmax, norm, reduction,
          transpose, reshape, pieces, pieces, resize, clip, where, top, there_already, double, whole, quantised,
          unknown, called, branches, branches, loop, loop, strings]


def graph(seed):
    """A model of |seed|, and whether a runtime knows all of its ops."""
    rng = random.Random(seed)
    b = Builder(rng, rng.choice(OPSETS))
    b.numbers = np.random.default_rng(seed)
    sizes = [("table", "f32", (3, 8)), ("image", "f32", (2, 4, 6, 6)), ("words", "f32", (2, 5, 8)),
             ("ids", "i64", (3,)), ("labels", "str", (3,))]
    inputs = [Value(*rng.choice(sizes[:3]))]
    inputs += [Value(*s) for s in sizes if s[0] != inputs[0].name and rng.random() < 0.4]
    b.values = list(inputs)
    for _ in range(rng.randrange(4, 16)):
        maker = rng.choice(MAKERS)
        if maker is unknown and rng.random() < 0.6:  # else few graphs would run
            continue
        b.values += maker(b) or []
    read = {name for node in b.nodes for name in node.input}
    outputs = [v for v in b.values if v not in inputs and v.name not in read][:6] or [b.values[-1]]
    # An output of its own for each, by Identity: names say what may jump.
    for i, v in enumerate(outputs):
        name = f"{'step' if v.stepped else 'out'}_{i}"
        b.nodes.append(h.make_node("Identity", [v.name], [name]))
        outputs[i] = Value(name, v.dtype, v.shape)
    return finish(b, inputs, outputs), b.runs


def finish(b, inputs, outputs):
    info = [[h.make_tensor_value_info(v.name, DTYPES[v.dtype], v.shape) for v in values]
            for values in (inputs, outputs)]
    opsets = [h.make_opsetid("", b.opset)]
    if b.uses_custom:
        opsets.append(h.make_opsetid(CUSTOM, 1))
    if b.functions:
        opsets.append(h.make_opsetid("ampc.tests", 1))
    made = h.make_model(h.make_graph(b.nodes, "random", *info, initializer=b.weights, value_info=b.infos),
                        opset_imports=opsets, functions=list(b.functions.values()),
                        ir_version=max(8, onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True)))
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    onnx.save(graph(int(sys.argv[1]))[0], sys.argv[2])
