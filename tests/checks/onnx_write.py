"""A small ONNX model, written by hand, for checks that have no ONNX package.

    onnx_write.py OUT.onnx [--large] [--domain NAME] [--opset N]
    onnx_write.py OUT.onnx --external LAYERS

x [N, 4] goes through MatMul, Add, Relu and Softmax to y. --large: the weight has 1e5, which f16 cannot hold; --domain:
Relu is an op of that domain. --external: x goes through LAYERS MatMuls, whose weights have 100 MiB
each, zeros in OUT.onnx.weights, which takes no room on the disk.
"""
import argparse
import os
import struct


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, payload):
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(field << 3 | 2) + varint(len(payload)) + payload


FLOAT = 1


def tensor(name, dims, numbers):
    return (b"".join(number(1, d) for d in dims) + number(2, FLOAT) + data(8, name) +
            data(9, struct.pack(f"<{len(numbers)}f", *numbers)))


def external(name, dims, location, offset):
    props = b"".join(data(13, data(1, key) + data(2, word)) for key, word in (("location", location),
                                                                              ("offset", str(offset))))
    return b"".join(number(1, d) for d in dims) + number(2, FLOAT) + data(8, name) + props + number(14, 1)


def value(name, dims):
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, FLOAT) + data(2, shape)))


def node(op, inputs, output, domain=""):
    return (b"".join(data(1, i) for i in inputs) + data(2, output) + data(3, f"node_{op}") + data(4, op) +
            (data(7, domain) if domain else b""))


def model(large, domain, opset):
    weight = [1e5 if large else 0.5, -0.25, 1e-9, 0.0] * 4
    graph = b"".join(data(1, n) for n in (node("MatMul", ["x", "w"], "t"), node("Add", ["t", "b"], "u"),
                                          node("Relu", ["u"], "v", domain), node("Softmax", ["v"], "y")))
    graph += data(2, "small") + data(5, tensor("w", [4, 4], weight)) + data(5, tensor("b", [4], [0.1] * 4))
    graph += data(11, value("x", ["N", 4])) + data(12, value("y", ["N", 4]))
    opsets = data(8, data(1, "") + number(2, opset)) + (data(8, data(1, domain) + number(2, 1)) if domain else b"")
    return number(1, 10) + data(2, "onnx_write") + data(7, graph) + opsets


def deep(layers, location):
    rows = 5120
    graph = b"".join(data(1, node("MatMul", [f"v{i}", f"w{i}"], f"v{i + 1}")) for i in range(layers)) + data(2, "deep")
    graph += b"".join(data(5, external(f"w{i}", [rows, rows], location, 4 * rows * rows * i)) for i in range(layers))
    graph += data(11, value("v0", ["N", rows])) + data(12, value(f"v{layers}", ["N", rows]))
    return number(1, 10) + data(7, graph) + data(8, data(1, "") + number(2, 18)), 4 * rows * rows * layers


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--domain", default="")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--external", type=int)
    given = parser.parse_args()
    content = model(given.large, given.domain, given.opset)
    if given.external:
        content, size = deep(given.external, os.path.basename(given.out) + ".weights")
        with open(given.out + ".weights", "wb") as file:
            file.truncate(size)
    with open(given.out, "wb") as file:
        file.write(content)
