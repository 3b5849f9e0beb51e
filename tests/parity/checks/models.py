"""models.py: many small models, each op in several surroundings and odd sizes: loss and every gradient against PyTorch in float64, in every precision, with and
without fusion and layout.
"""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

import ampc_tools as tools
import harness

BOUNDS = {"fp32": 2e-5, "tf32": 4e-2, "bf16": 1.2e-1, "fp16": 2e-2}  # relative, of the loss and of each gradient's norm
VARIANTS = {"fp32": ([], ["--no-pass=fuse"], ["--no-pass=layout"]), "bf16": ([], ["--no-pass=fuse"], ["--no-pass=layout"])}
FP16_SCALE = 1024.0

TEXT = """amp 1
model m(x: f32[N, {features}]) -> logits {{
{body}
}}
train m {{
    input targets: i32[N]
    loss = {loss}
    optimizer = sgd(lr = 1.0)
}}
precision fp32 {{ }}
"""
CROSS_ENTROPY = "cross_entropy(logits, targets)"


class Case:
    def __init__(self, body, layers, forward, loss=CROSS_ENTROPY, torch_loss=F.cross_entropy, features=19, n=13, classes=7):
        self.body, self.layers, self.forward, self.loss, self.torch_loss = body, layers, forward, loss, torch_loss
        self.features, self.n, self.classes = features, n, classes


class Twin(nn.Module):
    """The layers of a case, under their names."""

    def __init__(self, case):
        super().__init__()
        for name, sizes in case.layers.items():
            many = isinstance(sizes, list)
            setattr(self, name, nn.ModuleList(nn.Linear(*s) for s in sizes) if many else nn.Linear(*sizes))
        self.run = case.forward

    def forward(self, x):
        return self.run(self, x)


def centred(h):
    return h - h.mean(1, keepdim=True)


def normalised(h):
    return centred(h) / torch.sqrt((centred(h) ** 2).mean(1, keepdim=True) + 1e-5)


def stacked(m, x):
    for layer in m.l:
        x = F.relu(layer(x))
    return m.c(x)


def residual(m, x):
    h = x + F.relu(m.a(x))
    return m.c(h * h - x / 2.0)


def softplus_like(m, x):
    h = torch.exp(m.a(x))
    return m.c(torch.log(1.0 + h) + torch.sqrt(h))


def pooled(m, x):
    h = F.max_pool1d(m.a(x).reshape(-1, 4, 12), 3, 2, 1)
    h = F.avg_pool1d(h, 2)
    return m.c(torch.cat([h.flatten(1), h.std(2)], 1))


CLASS_WEIGHTS = [0.5, 0.7, 1.0, 2.0, 0.1, 1.0, 3.0]
ONE = "logits = linear(x; out = {}) as a"
NORMALISED = "d = h - mean(h; dims = (1), keep = true)\nh = d / sqrt(mean(d * d; dims = (1), keep = true) + 0.00001)\n"
CASES = {
    "one layer": Case(ONE.format(7), {"a": (19, 7)}, lambda m, x: m.a(x)),
    "one sample": Case(ONE.format(7), {"a": (19, 7)}, lambda m, x: m.a(x), n=1),
    "a thousand classes": Case(ONE.format(1000), {"a": (19, 1000)}, lambda m, x: m.a(x), n=40, classes=1000),
    "no bias, 33 wide": Case("h = gelu(linear(x; out = 33, bias = false) as a)\nlogits = linear(h; out = 7, bias = false) as c",
                             {"a": (19, 33, False), "c": (33, 7, False)}, lambda m, x: m.c(F.gelu(m.a(x))), n=33),
    "gelu by tanh": Case("h = gelu(linear(x; out = 65) as a; approximate = tanh)\nlogits = linear(h; out = 7) as c", {"a": (19, 65), "c": (65, 7)},
                         lambda m, x: m.c(F.gelu(m.a(x), approximate="tanh"))),
    "sigmoid and tanh": Case("h = sigmoid(linear(x; out = 31) as a)\nh = tanh(linear(h; out = 32) as b)\nlogits = linear(h; out = 7) as c",
                             {"a": (19, 31), "b": (31, 32), "c": (32, 7)}, lambda m, x: m.c(torch.tanh(m.b(torch.sigmoid(m.a(x)))))),
    "residual arithmetic": Case("h = x + relu(linear(x; out = 19) as a)\nh = h * h - x / 2.0\nlogits = linear(h; out = 7) as c",
                                {"a": (19, 19), "c": (19, 7)}, residual),
    "exp, log, sqrt": Case("h = exp(linear(x; out = 5) as a)\nh = log(1.0 + h) + sqrt(h)\nlogits = linear(h; out = 7) as c",
                           {"a": (19, 5), "c": (5, 7)}, softplus_like),
    "softmax inside": Case("h = softmax(linear(x; out = 40) as a)\nlogits = linear(h; out = 7) as c", {"a": (19, 40), "c": (40, 7)},
                           lambda m, x: m.c(F.softmax(m.a(x), -1))),
    "log_softmax inside": Case("h = log_softmax(linear(x; out = 40) as a)\nlogits = linear(h; out = 7) as c", {"a": (19, 40), "c": (40, 7)},
                               lambda m, x: m.c(F.log_softmax(m.a(x), -1))),
    "label smoothing": Case(ONE.format(7), {"a": (19, 7)}, lambda m, x: m.a(x), "cross_entropy(logits, targets; label_smoothing = 0.1)",
                            lambda logits, y: F.cross_entropy(logits, y, label_smoothing=0.1)),
    "ignored label": Case(ONE.format(7), {"a": (19, 7)}, lambda m, x: m.a(x), "cross_entropy(logits, targets; ignore = 3)",
                          lambda logits, y: F.cross_entropy(logits, y, ignore_index=3)),
    "two loss terms": Case("h = relu(linear(x; out = 20) as a)\nlogits = linear(h; out = 7) as c", {"a": (19, 20), "c": (20, 7)},
                           lambda m, x: m.c(F.relu(m.a(x))), CROSS_ENTROPY + " + 0.01 * mean(logits * logits)",
                           lambda logits, y: F.cross_entropy(logits, y) + 0.01 * (logits * logits).mean()),
    "five layers by repeat": Case("h = x\nrepeat i in 0..5 { h = relu(linear(h; out = 19) as l[i]) }\nlogits = linear(h; out = 7) as c",
                                  {"l": [(19, 19)] * 5, "c": (19, 7)}, stacked),
    "a normalisation by hand": Case("h = linear(x; out = 50) as a\n" + NORMALISED + "logits = linear(h; out = 7) as c", {"a": (19, 50), "c": (50, 7)},
                                    lambda m, x: m.c(normalised(m.a(x)))),
    "weights of one element": Case("h = relu(linear(x; out = 1) as a)\nh = relu(linear(h; out = 1) as b)\nlogits = linear(h; out = 7) as c",
                                   {"a": (19, 1), "b": (1, 1), "c": (1, 7)}, lambda m, x: m.c(F.relu(m.b(F.relu(m.a(x)))))),
    "pools and deviations": Case("h = reshape(linear(x; out = 48) as a; shape = [N, 4, 12])\nh = max_pool1d(h; kernel = 3, stride = 2, padding = 1)\n"
                                 "h = avg_pool1d(h; kernel = 2)\nh = concat(flatten(h), std(h; dims = 2); dim = 1)\nlogits = linear(h; out = 7) as c",
                                 {"a": (19, 48), "c": (16, 7)}, pooled),
    "given numbers": Case("h = ((linear(x; out = 3) as a) - [0.5, -0.25, 0.1]) * tensor(2, 1, 0.5)\nlogits = linear(h; out = 7) as c",
                          {"a": (19, 3), "c": (3, 7)}, lambda m, x: m.c((m.a(x) - x.new_tensor([0.5, -0.25, 0.1])) * x.new_tensor([2, 1, 0.5])),
                          f"cross_entropy(logits, targets, {CLASS_WEIGHTS})", lambda logits, y: F.cross_entropy(logits, y, logits.new_tensor(CLASS_WEIGHTS))),
    "one feature": Case("h = relu(linear(x; out = 64) as a)\nlogits = linear(h; out = 2) as c", {"a": (1, 64), "c": (64, 2)},
                        lambda m, x: m.c(F.relu(m.a(x))), features=1, n=100, classes=2),
}


def prepare(case):
    """A twin in float64 whose weights are f32 numbers, with its batch, loss and gradients."""
    torch.manual_seed(0)
    module = Twin(case)
    x, y = torch.randn(case.n, case.features), torch.randint(0, case.classes, (case.n,))
    module.double()
    loss = case.torch_loss(module(x.double()), y)
    loss.backward()
    return module, (x, y), loss.item(), {name: p.grad for name, p in module.named_parameters()}


def differences(ours, loss, grads, bound):
    """What is further from float64 than |bound|: the loss and each gradient."""
    our_loss, our_grads = ours
    if abs(our_loss - loss) > bound * abs(loss):
        yield f"loss {our_loss:.7g}, wanted {loss:.7g}"
    for name, g in grads.items():
        error = float((our_grads[name].double() - g).norm() / (g.norm() + 1e-12))
        if not error <= bound:
            yield f"gradient of {name}: relative error {error:.3g}, bound {bound:g}"


def run(options, case, module, batch, precision, extra):
    path = os.path.join(options.work, "model")
    with open(path + ".amp", "w") as f:
        f.write(TEXT.format(features=case.features, body=case.body, loss=case.loss))
    model = tools.compile_model(path + ".amp", path + ".so", "--isa", "portable", "--precision", precision, *extra)
    weights = tools.write_weights(path + ".weights.safetensors", module)
    inputs = tools.write_batch(path + ".batch.safetensors", *batch)
    scale = ["--scale", FP16_SCALE] if precision == "fp16" else []
    report, = tools.step(model, "--weights", weights, "--inputs", inputs, "--grads", path + ".grads.safetensors", *scale)
    return report["loss"], tools.read_tensors(path + ".grads.safetensors")


def every_model(tally, options):
    for name, case in CASES.items():
        module, batch, loss, grads = prepare(case)
        for precision, bound in BOUNDS.items():
            for extra in VARIANTS.get(precision, ([],)) if options.long else ([],):
                ours = run(options, case, module, batch, precision, extra)
                tally.same(" ".join([name, precision, *extra]), differences(ours, loss, grads, bound))


def a_wrong_gradient_is_seen(tally, options):
    case = CASES["one layer"]
    module, batch, loss, grads = prepare(case)
    our_loss, our_grads = run(options, case, module, batch, "fp32", [])
    our_grads["a.bias"] = our_grads["a.bias"] * 1.001
    tally.seen("a gradient that is 0.1 % too long", differences((our_loss, our_grads), loss, grads, BOUNDS["fp32"]))
    tally.seen("a loss that is 0.1 % too large", differences((our_loss * 1.001, our_grads), loss, {}, BOUNDS["fp32"]))


if __name__ == "__main__":
    harness.main(__doc__, [every_model], [a_wrong_gradient_is_seen])
