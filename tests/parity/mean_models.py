"""mean_models.py: random models of losses and metrics that are means, their data, and what is run of them. Needs Python
alone: tests/checks/means.py compares it with PyTorch's answers of oracle/means.jsonl, checks/means.py with PyTorch
itself.

Losses ignore labels, have weights for classes, label smoothing, masks, several terms that are means over different
counts, or are sums; some parts have no label at all."""
import array
import json
import math
import os
import random
import re
import struct
import subprocess

from programs import program, run

SAMPLES, FEATURES, HIDDEN, CLASSES, WORDS, OUTPUTS = 24, 5, 7, 4, 3, 2
STEPS, RATE = 3, 0.05
ADAM_RATE, ADAM_EPS = 0.05, 0.1  # an epsilon that shows how large a gradient is, and not its sign alone
FIGURE_BOUND = {"fp32": 1e-6, "bf16": 2e-2, "fp16": 4e-3}  # relative, or of 1
WEIGHT_BOUND = {"fp32": 1e-6, "bf16": 4e-3, "fp16": 5e-4}  # of the largest element
RANKS, MICRO_BATCHES = (2, 3, 4), 2  # of each rank; the smallest has three samples

HEAD = f"""amp 1
model made(x: f32[N, {FEATURES}]) -> logits, words, y {{
    h = tanh(linear(x; out = {HIDDEN}, bias = false) as body)
    logits = linear(h; out = {CLASSES}, bias = false) as head
    words = linear(h; out = {WORDS * CLASSES}, bias = false) as each
    y = linear(h; out = {OUTPUTS}, bias = false) as fit
}}
train made {{
"""
INPUTS = {"t": "i32[N]", "u": f"i32[N, {WORDS}]", "m": f"f32[N, {OUTPUTS}]", "z": f"f32[N, {OUTPUTS}]"}
WEIGHTS = {
    "body.weight": (HIDDEN, FEATURES),
    "head.weight": (CLASSES, HIDDEN),
    "each.weight": (WORDS * CLASSES, HIDDEN),
    "fit.weight": (OUTPUTS, HIDDEN)
}
REST = "0.01 * mean(logits * logits) + 0.01 * mean(words * words) + 0.01 * mean(y * y)"  # every layer is reached
OPTIMIZERS = {"sgd": f"sgd({RATE})", "adam": f"adam({ADAM_RATE}, eps = {ADAM_EPS})"}

# A term: its text, and the same by PyTorch: of `v`, the values by name, for all samples, and `F`, its functions.
TERMS = [
    ("cross_entropy(logits, t)", lambda v, F: F.cross_entropy(v["logits"], v["t"])),
    ("cross_entropy(logits, t, to_f32(arange(; count = 4)) * 1.5 + 0.25; label_smoothing = 0.1)",
     lambda v, F: F.cross_entropy(v["logits"], v["t"], v["classes"], label_smoothing=0.1)),
    ("cross_entropy(reshape(words; shape = [3 * N, 4]), reshape(u; shape = [3 * N]); ignore = -1)",
     lambda v, F: F.cross_entropy(v["words"].reshape(-1, 4), v["u"].reshape(-1), ignore_index=-1)),
    ("mse_loss(y, z)", lambda v, F: F.mse_loss(v["y"], v["z"])),
    ("smooth_l1_loss(y, z; beta = 0.5)", lambda v, F: F.smooth_l1_loss(v["y"], v["z"], beta=0.5)),
    ("sum(abs(y - z) * m) / maximum(sum(m), 1.0)", lambda v, F:
     (abs(v["y"] - v["z"]) * v["m"]).sum() / v["m"].sum().clamp(min=1)),
    ("mean(y * y * m) / (mean(m) + 1e-6)", lambda v, F: (v["y"]**2 * v["m"]).mean() / (v["m"].mean() + 1e-6)),
    ("0.05 * sum(y * y)", lambda v, F: 0.05 * (v["y"]**2).sum()),
    ("bce_with_logits(y, m)", lambda v, F: F.binary_cross_entropy_with_logits(v["y"], v["m"])),
]

METRICS = [
    ("exp(loss)", lambda v, F: v["loss"].exp()),
    ("loss", lambda v, F: v["loss"]),
    ("accuracy(logits, t; ignore = -100)", lambda v, F: share(v["logits"].argmax(-1) == v["t"], v["t"] != -100)),
    ("accuracy(reshape(words; shape = [3 * N, 4]), reshape(u; shape = [3 * N]))", lambda v, F:
     (v["words"].reshape(SAMPLES, WORDS, CLASSES).argmax(-1) == v["u"]).double().mean()),
    ("sqrt(mse_loss(y, z))", lambda v, F: F.mse_loss(v["y"], v["z"]).sqrt()),
    ("sum(m)", lambda v, F: v["m"].sum()),
    ("2.0 * sum(m * z) / (sum(m) + sum(z * z) + 1.0)", lambda v, F: 2 * (v["m"] * v["z"]).sum() /
     (v["m"].sum() + (v["z"]**2).sum() + 1)),
    ("mean(abs(y); dims = 1)", lambda v, F: v["y"].abs().mean()),
    ("cross_entropy(logits, t) + mse_loss(y, z)",
     lambda v, F: F.cross_entropy(v["logits"], v["t"]) + F.mse_loss(v["y"], v["z"])),
]


def share(right, counted):
    return (right & counted).double().sum() / counted.sum().clamp(min=1)


def parts(count):
    """Samples of each part: a step is of all."""
    assert SAMPLES % count == 0
    return SAMPLES // count


# ---- models ----


class Case:
    """A random model, its data and its weights: lists of numbers, row by row."""

    def __init__(self, seed, work):
        r = random.Random(seed)
        self.seed, self.path = seed, os.path.join(work, f"means-{seed}")
        self.terms = r.sample(TERMS, r.choice([1, 1, 2, 3]))
        self.factors = [r.choice([1.0, 0.5, 2.0]) for _ in self.terms]
        self.metrics = r.sample(METRICS, 3)
        self.named = len(self.terms) > 1 and r.random() < 0.5
        self.precision = r.choice(["fp32", "fp32", "fp32", "bf16", "fp16"])
        self.data = self.make_data(r)
        self.weights = {name: normal(r, shape, 0.6) for name, shape in WEIGHTS.items()}
        write(self.path + ".data", {name: self.data[name] for name in ["x", *self.inputs()]})
        write(self.path + ".weights", {name: (WEIGHTS[name], w) for name, w in self.weights.items()})

    def __str__(self):
        return f"{self.seed}: {self.precision}, " + " + ".join(text for text, _ in self.terms)

    def make_data(self, r):
        t = [-100 if r.random() < 0.4 else r.randrange(CLASSES) for _ in range(SAMPLES)]
        u = [-1 if r.random() < 0.5 else r.randrange(CLASSES) for _ in range(SAMPLES * WORDS)]
        m = [float(r.random() < 0.6) for _ in range(SAMPLES * OUTPUTS)]
        for i in range(8):  # micro-batches without anything that counts
            u[WORDS * i:WORDS * (i + 1)], m[OUTPUTS * i:OUTPUTS * (i + 1)] = [-1] * WORDS, [0.0] * OUTPUTS
            t[10 + i] = -100
        t[0], u[18 * WORDS], m[18 * OUTPUTS] = 1, 2, 1.0
        numbers = {"t": (t, SAMPLES), "u": (u, SAMPLES, WORDS), "m": (m, SAMPLES, OUTPUTS)}
        out = {name: (shape, values) for name, (values, *shape) in numbers.items()}
        for name, columns in (("x", FEATURES), ("z", OUTPUTS)):
            out[name] = ([SAMPLES, columns], normal(r, (SAMPLES, columns)))
        return out

    def inputs(self):
        """What a model may declare: what it reads."""
        texts = " ".join(text for text, _ in self.terms + self.metrics)
        return [name for name in INPUTS if re.search(rf"\b{name}\b", texts)]

    def text(self, micro_batches, parallel, optimizer):
        terms = [f"{f} * ({text})" for f, (text, _) in zip(self.factors, self.terms)]
        if self.named:
            losses = [f"loss part{i} = {term}" for i, term in enumerate(terms)] + [f"loss rest = {REST}"]
        else:
            losses = [f"rest = {REST}", "loss = rest + " + " + ".join(terms)]
        lines = losses + [f"metric m{i} = {text}" for i, (text, _) in enumerate(self.metrics)] + \
            [f"optimizer = {OPTIMIZERS[optimizer]}", f"accumulate = {micro_batches}"] + \
            ["data_parallel = true"] * parallel
        inputs = [f"input {name}: {INPUTS[name]}" for name in self.inputs()]
        return HEAD + "".join(f"    {line}\n" for line in inputs + lines) + "}\n" + \
            f"precision {self.precision} {{ {'loss_scale = static(256.0)' if self.precision == 'fp16' else ''} }}\n"

    def compile(self, micro_batches, parallel=False, optimizer="sgd", target="cpu", isa="native"):
        name = f"{self.path}-{micro_batches}-{optimizer}-{target}{'-ranks' if parallel else ''}"
        with open(name + ".amp", "w", encoding="utf-8") as file:
            file.write(self.text(micro_batches, parallel, optimizer))
        only = ["--isa", isa] if target == "cpu" else []
        run(program("tools/ampc"), name + ".amp", "-o", name + ".so", "--target", target, *only)
        return name + ".so"

    # ---- what is run ----

    def arguments(self, batch, *more):
        data = ["--data", f"safetensors:{self.path}.data", "--weights", self.path + ".weights"]
        return [*data, "--batch", batch, "--threads", 1, *more]

    def evaluate(self, model, batch, *device, start=()):
        """The figures of `amprun eval`."""
        return json.loads(run(*start, program("tools/amprun"), "eval", model, *self.arguments(batch), *device))

    def train(self, model, batch, *device, steps=STEPS, ranks=1, start=()):
        """The figures of the first step, of every rank, and the weights after the last."""
        ends = []
        folder, after = self.path + ".meet", self.path + ".after"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for rank in range(ranks):
            command = [
                *start, program("tools/amprun"), "train", model, "--quiet", "--steps", steps, "--force", "--save",
                after, "--log", f"{self.path}.log{rank}", *self.arguments(batch), *device
            ]
            if ranks > 1:
                command += ["--dist", "files", "--dist-folder", folder, "--dist-rank", f"{rank}/{ranks}"]
            ends.append(subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True))
        said = [end.communicate()[1] for end in ends]
        if any(end.returncode for end in ends):
            raise RuntimeError(f"{ranks} ranks: " + " ".join(said))
        with open(self.path + ".log0", encoding="utf-8") as file:
            figures = next(line for line in map(json.loads, file) if line.get("step") == 1)
        return figures, read(after)


def normal(r, shape, deviation=1.0):
    """Numbers that are exact in f32."""
    return list(array.array("f", (r.gauss(0, deviation) for _ in range(math.prod(shape)))))


# ---- files ----


def write(path, tensors):
    """A file of safetensors, of (shape, numbers) by name."""
    head, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        code = "i" if isinstance(numbers[0], int) else "f"
        packed = struct.pack(f"<{len(numbers)}{code}", *numbers)
        head[name] = {
            "dtype": {"i": "I32", "f": "F32"}[code],
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(packed)]
        }
        data += packed
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """The f32 numbers of each tensor of a file of safetensors."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        head, data = json.loads(file.read(size)), file.read()
    spans = {name: entry["data_offsets"] for name, entry in head.items() if name != "__metadata__"}
    return {name: struct.unpack(f"<{(end - start) // 4}f", data[start:end]) for name, (start, end) in spans.items()}


# ---- comparing ----


def figure_differences(ours, theirs, bound, what):
    for name, their in theirs.items():
        if not abs(float(ours[name]) - their) <= bound * max(1, abs(their)):
            yield f"{what}: {name} {ours[name]}, PyTorch {their:.9g}"


def weight_differences(ours, theirs, bound, what):
    largest = max(abs(w) for values in theirs.values() for w in values)
    for name, their in theirs.items():
        error = max(abs(a - b) for a, b in zip(ours[name], their, strict=True))
        if not error <= bound * largest:
            yield f"{what}: {name} is off by {error:.3g}, largest element {largest:.3g}"


def evaluation_differences(case, model, figures, batches, *device, start=()):
    for batch in batches:
        ours = case.evaluate(model, batch, *device, start=start)
        yield from figure_differences(ours, figures, FIGURE_BOUND[case.precision], f"batches of {batch}")


def training_differences(case, model, answers, what, batch, *device, optimizer="sgd", ranks=1, start=()):
    """Of three steps of sgd or one of Adam on all samples."""
    steps = STEPS if optimizer == "sgd" else 1
    figures, weights = case.train(model, batch, *device, steps=steps, ranks=ranks, start=start)
    yield from figure_differences(figures, answers["figures"], FIGURE_BOUND[case.precision], what)
    yield from weight_differences(weights, answers[optimizer], WEIGHT_BOUND[case.precision], what)


def rank_differences(case, model, answers, ranks, optimizer="sgd"):
    for count in ranks:
        what = f"{optimizer}, {count} ranks of {MICRO_BATCHES} micro-batches"
        yield from training_differences(case, model, answers, what, parts(count * MICRO_BATCHES), optimizer=optimizer,
                                        ranks=count)
