"""Writes a file of safetensors without a library: what checks train on (PYTHONPATH=tests/checks)."""
import json
import struct


def write(path, arrays):
    """`arrays`: {name: (dtype as safetensors spells it, shape, packed bytes)}."""
    head, data = {}, b""
    for name, (dtype, shape, packed) in arrays.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
