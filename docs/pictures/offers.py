"""offers.py FILE: 4096 samples of 16 features; one in 128 is fifty times as large as the others."""
import json
import random
import struct
import sys

SAMPLES, FEATURES, CLASSES = 4096, 16, 4

random.seed(1)
x, targets = [], []
for sample in range(SAMPLES):
    row = [random.gauss(0, 1) for _ in range(FEATURES)]
    targets.append(max(range(CLASSES), key=lambda c: row[c] + row[c + 4] + random.gauss(0, 0.5)))
    x += [value * (50 if sample % 128 == 0 else 1) for value in row]
arrays = {"x": ("F32", [SAMPLES, FEATURES], struct.pack(f"<{len(x)}f", *x)),
          "targets": ("I32", [SAMPLES], struct.pack(f"<{SAMPLES}i", *targets))}
head, data = {}, b""
for name, (dtype, shape, packed) in arrays.items():
    head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
    data += packed
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
