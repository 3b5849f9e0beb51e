"""silent_examples.py FOLDER: made-up data that the examples can learn, for each at a small size.

Prints a line for each: the file, its data, and the definitions of its small size. Of data that an example brings or its
own program makes the name: tests/checks/full/silent.sh has them."""
import random
import struct
import sys

import safetensors_write

SAMPLES = 512
IMAGES = "-D CHANNELS=1 -D SIZE=12 -D MARGIN=2"
# file: data, definitions
EXAMPLES = {
    "fashion_mnist/mlp": ("flat", ""),
    "fashion_mnist/cnn": ("images", ""),
    "cnn/cnn": ("images", "-D POOL=4"),
    "autoencoder/autoencoder": ("pictures", ""),
    "gan/gan": ("gan", ""),
    "gpt/bytes": ("text", "-D T=16 -D C=32 -D L=1 -D H=2"),
    "gpt/gpt2": ("tokens", "-D V=50 -D T=8 -D LONGEST=9 -D C=16 -D L=2 -D H=2"),
    "llama/llama": ("tokens", "-D V=50 -D T=8 -D C=16 -D L=2 -D HIDDEN=40"),
    "lstm/lstm": ("text", "-D T=12 -D C=16 -D H=32"),
    "bert/bert": ("bert", "-D V=50 -D LONGEST=20 -D T=8 -D C=16 -D L=2 -D H=2"),
    "bert/small": ("sentences", "-D C=16 -D L=1"),
    "resnet/resnet18": ("small_images", IMAGES + " -D W=8"),
    "resnet/resnet50": ("small_images", IMAGES + " -D W=8 -D IMAGENET=false -D CLASSES=10"),
    "resnet/resnet101": ("small_images", IMAGES + " -D W=4 -D IMAGENET=false -D CLASSES=10"),
    "unet/unet": ("shapes", "-D C=4"),
    "tabular/tabular": ("loans", ""),
    "tabular/linear": ("loans", ""),
    "own_data/flowers": ("flowers", ""),
    "several_results/points": ("points", ""),
}


def floats(shape, values):
    return "F32", [SAMPLES, *shape], struct.pack(f"<{len(values)}f", *values)


def ints(shape, values):
    return "I32", [SAMPLES, *shape], struct.pack(f"<{len(values)}i", *values)


def images(r, side):
    """Ten classes: the class's row is bright, the others are dark."""
    t = [r.randrange(10) for _ in range(SAMPLES)]
    rows = [(r.random() < 0.3) * r.random() + (y * 10 // side == c) * 0.7 for c in t for y in range(side)
            for _ in range(side)]
    return [min(v, 1.0) for v in rows], t


def chains(r, words, length):
    """Each word is mostly three times the one before it and one more; the last is the target of the one before."""
    inputs, targets = [], []
    for _ in range(SAMPLES):
        row = [r.randrange(words)]
        while len(row) <= length:
            row.append((3 * row[-1] + 1) % words if r.random() < 0.9 else r.randrange(words))
        inputs += row[:-1]
        targets += row[1:]
    return inputs, targets


def data(r):
    out = {}
    x, t = images(r, 28)
    out["flat"] = {"x": floats([784], x), "targets": ints([], t)}
    out["images"] = {"x": floats([1, 28, 28], x), "targets": ints([], t)}
    out["pictures"] = {"x": floats([1, 28, 28], x)}
    x, t = images(r, 12)
    out["small_images"] = {"x": floats([1, 12, 12], x), "targets": ints([], t)}
    normal = [r.gauss(0, 1) for _ in range(4 * SAMPLES)]
    out["gan"] = {"noise": floats([4], normal), "real": floats([1], [r.gauss(3, 0.5) for _ in range(SAMPLES)])}
    tokens, targets = chains(r, 50, 8)
    out["tokens"] = {"tokens": ints([8], tokens), "targets": ints([8], targets)}
    ids = [r.randrange(50) for _ in range(8 * SAMPLES)]
    known = [int(i < 5 or r.random() < 0.5) for _ in range(SAMPLES) for i in range(8)]
    out["bert"] = {"input_ids": ints([8], ids), "token_type_ids": ints([8], [i % 8 // 4 for i in range(8 * SAMPLES)]),
                   "attention_mask": ints([8], known), "targets": ints([], [int(i < 25) for i in ids[::8]])}
    x = [r.gauss(0, 1) for _ in range(2 * SAMPLES)]
    pairs = list(zip(x[::2], x[1::2]))
    out["points"] = {"x": floats([2], x), "which": ints([], [2 * (a > 0) + (b > 0) for a, b in pairs]),
                     "far": floats([1], [(a * a + b * b)**0.5 for a, b in pairs])}
    return out


def main():
    made = data(random.Random(1))
    for name, arrays in made.items():
        safetensors_write.write(f"{sys.argv[1]}/{name}", arrays)
    for file, (name, definitions) in EXAMPLES.items():
        print(file, f"safetensors:{sys.argv[1]}/{name}" if name in made else name, definitions)


main()
