"""tensor_models.py: models of hundreds of trained tensors, whose update, check of gradients, clipping and sums of
micro-batches are more than a kernel takes (512 ops). Needs Python alone."""
import json
import math
import os
import random

import mean_models as files
from programs import program, run

WIDTH, CLASSES, SAMPLES = 8, 4, 16
# What a layer has besides its residual: trained tensors, and lines of the model by its name.
LAYERS = {
    "plain": (1, "h = h + 0.1 * tanh(linear(h; out = 8, bias = false) as {0})"),
    "biased": (2, "h = h + 0.1 * tanh(linear(h; out = 8) as {0})"),
    "layer_norm": (3, "h = h + 0.1 * tanh(linear(layer_norm(h) as {0}_n; out = 8, bias = false) as {0})"),
    "batch_norm": (3, "h = h + 0.1 * tanh(linear(batch_norm(h) as {0}_n; out = 8, bias = false) as {0})"),
}
KINDS = [["plain"], ["biased"], ["layer_norm", "plain"], ["batch_norm", "biased"], list(LAYERS)]
FEW, MANY = range(480, 521), range(1000, 1031)  # counts that are tried


class Model:
    """A chain of residual layers with exactly `count` trained tensors; other features by `number`."""

    def __init__(self, number, count, precision=None):
        r = random.Random(number)
        self.count = count
        self.precision = precision or ["fp32", "fp16", "bf16"][number % 3]
        self.kinds = KINDS[number % len(KINDS)]
        self.micro_batches = [1, 2, 3][number // 2 % 3]
        self.clip = [None, 0.5, "inf"][number // 3 % 3]
        self.blocks = ["a", "b"] if number % 2 else ["a"]
        self.optimizer = ["sgd(0.1)", "adamw(0.01, eps = 0.01)"][number // 5 % 2]
        self.layers = []  # (name, kind)
        left = count - len(self.blocks)  # their heads
        while left:
            kind = r.choice(self.kinds)
            kind = kind if LAYERS[kind][0] <= left else "plain"
            left -= LAYERS[kind][0]
            self.layers.append([len(self.layers), kind])
        half = len(self.layers) // len(self.blocks)
        self.layers = [(f"{self.blocks[min(i // half, len(self.blocks) - 1)]}{i}", kind) for i, kind in self.layers]

    def __str__(self):
        clip = "" if self.clip is None else f", clip_norm = {self.clip}"
        return f"{self.count} trained tensors, {self.precision}, {'/'.join(self.kinds)}, {self.optimizer}, " \
            f"{len(self.blocks)} blocks, {self.micro_batches} micro-batches{clip}"

    def trained(self):
        """The names of the trained tensors."""
        ends = {"biased": [".weight", ".bias"], "layer_norm": [".weight", "_n.weight", "_n.bias"]}
        ends["batch_norm"] = ends["layer_norm"]
        return [name + end for name, kind in self.layers for end in ends.get(kind, [".weight"])] + \
            [f"{block}_head.weight" for block in self.blocks]

    def text(self):
        heads = ", ".join(f"y_{block}" for block in self.blocks)
        lines = ["amp 1", f"model many(x: f32[N, {WIDTH}]) -> {heads} {{", "    h = x"]
        for i, (name, kind) in enumerate(self.layers):
            lines.append("    " + LAYERS[kind][1].format(name))
            if i + 1 == len(self.layers) or self.layers[i + 1][0][0] != name[0]:
                lines.append(f"    y_{name[0]} = linear(h; out = {CLASSES}, bias = false) as {name[0]}_head")
        lines.append("}")
        for block in self.blocks:
            lines += [f"train many for \"{block}*\" {{" if self.blocks[1:] else "train many {"]
            lines += ["    input t: i32[N]"]
            lines += [f"    loss part_{block} = cross_entropy(y_{block}, t)", f"    optimizer = {self.optimizer}"]
            lines += [f"    clip_norm = {self.clip}"] if self.clip is not None else []
            lines += [f"    accumulate = {self.micro_batches}", "}"]
        return "\n".join(lines + [f"precision {self.precision} {{ }}", ""])


def batch(seed=1):
    """x, t: t can be told from x."""
    r = random.Random(seed)
    x = [[r.gauss(0, 1) for _ in range(WIDTH)] for _ in range(SAMPLES)]
    return x, [max(range(CLASSES), key=row.__getitem__) for row in x]


# ---- what is run of them ----


def plan_differences(model, folder):
    """Every pass for both targets, whose results the compiler checks."""
    path = os.path.join(folder, "many.amp")
    with open(path, "w", encoding="utf-8") as file:
        file.write(model.text())
    for target in ("cpu", "cuda"):
        try:
            run(program("tools/ampc"), path, "--target", target, "--emit", "ir", "-o", path + ".ir", "--force")
        except RuntimeError as error:
            yield f"{target}: {error}"


class Trained:
    """A model that was compiled and trained: `losses` of each step; parameters by name, `first` and `last`."""

    def __init__(self, model, folder, steps):
        path = os.path.join(folder, "many")
        with open(path + ".amp", "w", encoding="utf-8") as file:
            file.write(model.text())
        x, t = batch()
        files.write(path + ".data", {"x": ((SAMPLES, WIDTH), sum(x, [])), "t": ((SAMPLES, ), t)})
        run(program("tools/ampc"), path + ".amp", "-o", path + ".so", "--target", "cpu", "--isa", "portable", "--force")
        run(program("tools/amprun"), "train", path + ".so", "--quiet", "--steps", 1, "--batch",
            SAMPLES // model.micro_batches, "--data", f"safetensors:{path}.data", "--save", path + ".first", "--force")
        said = run(program("tools/amprun"), "step", path + ".so", "--inputs", path + ".data", "--weights",
                   path + ".first", "--steps", steps, "--save", path + ".last", "--force")
        self.losses = [float(json.loads(line)["loss"]) for line in said.splitlines()]
        self.first, self.last = (files.read(path + end) for end in (".first", ".last"))


def training_differences(model, trained):
    """Every loss is finite, the last is lower than the first, and every trained tensor has moved."""
    losses = trained.losses
    if not all(math.isfinite(loss) for loss in losses):
        yield f"losses {losses}"
    if not losses[-1] < 0.95 * losses[0]:
        yield f"the loss goes from {losses[0]} to {losses[-1]}"
    for name in model.trained():
        if trained.first[name] == trained.last[name] or not all(map(math.isfinite, trained.last[name])):
            yield f"{name} was not trained"
