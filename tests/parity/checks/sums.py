"""sums.py: how far sums along rows of 10 to 10^6 numbers are from float64, and what is made of them: means,
variances, norms, softmax, and the gradients of all, beside PyTorch's on the CPU. In units in the last place of the
largest number of a result's row."""
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import ampc_tools as tools
import harness

ROWS = 4
SHORT, LONG = (10, 1000), (10, 100, 1000, 4096, 10_000, 100_000, 1_000_000)
CUMSUM_MOST = 10_000  # longer ones take memory for each doubling

# Each: the text of the op on `x`, and the same by PyTorch.
OPS = {
    "total": ("sum(x; dims = 1)", lambda x: x.sum(1)),
    "average": ("mean(x; dims = 1)", lambda x: x.mean(1)),
    "variance": ("var(x; dims = 1)", lambda x: x.var(1)),
    "length": ("norm(x; dims = 1)", lambda x: x.norm(dim=1)),
    "log_sum": ("logsumexp(x; dims = 1)", lambda x: x.logsumexp(1)),
    "softened": ("softmax(x; dim = 1)", lambda x: x.softmax(1)),
    "normed": ("layer_norm(x; bias = false) as ln", lambda x: F.layer_norm(x, x.shape[1:])),
    "rooted": ("rms_norm(x) as rn", lambda x: F.rms_norm(x, x.shape[1:], eps=1e-6)),
    "running": ("cumsum(x; dim = 1)", lambda x: x.cumsum(1)),
}
LINES = ("softened", "normed", "rooted", "running")  # results of a row's length
# At most this many units, whatever PyTorch's are; of the others, no more than PyTorch's and a little.
UNITS = {"total": 3, "average": 3, "variance": 4, "length": 3, "log_sum": 4, "running": 1}
A_LITTLE = 8


def rows(kind, t):
    torch.manual_seed(t)
    if kind == "normal":
        return torch.randn(ROWS, t)
    if kind == "far from 0":
        return 1000 + torch.randn(ROWS, t)
    return torch.tensor([0.1, 3.7, 1e-3, 1e4])[:, None].expand(ROWS, t).clone()  # equal


def weights_of(t):
    """What each result of a line counts in a loss."""
    return torch.cos(0.7 * torch.arange(ROWS * t)).reshape(ROWS, t)


def in_units(ours, exact):
    """The largest error, in units in the last place (f32) of the row's largest number."""
    exact = exact.double().reshape(ROWS, -1)
    largest = exact.abs().max(1, keepdim=True).values.clamp(min=1e-30)
    unit = torch.exp2(torch.floor(torch.log2(largest)) - 23)
    return float(((ours.double().reshape(ROWS, -1) - exact).abs() / unit).max())


def ops_of(t):
    return {name: op for name, op in OPS.items() if name != "running" or t <= CUMSUM_MOST}


def forward(work, t, x):
    """Results of the model by name."""
    ops = ops_of(t)
    path = os.path.join(work, f"forward-{t}")
    if not os.path.exists(path + ".so"):
        lines = "".join(f"    {name} = {text}\n" for name, (text, _) in ops.items())
        with open(path + ".amp", "w", encoding="utf-8") as file:
            file.write(f"amp 1\nmodel m(x: f32[N, {t}]) -> {', '.join(ops)} {{\n{lines}}}\n")
        tools.compile_model(path + ".amp", path + ".so", "--target", "cpu")
    save_file({"x": x}, path + ".in")
    save_file({"ln.weight": torch.ones(t), "rn.weight": torch.ones(t)}, path + ".st")
    tools.run(tools.program("tools/amprun"), "infer", path + ".so", "--weights", path + ".st", "--inputs", path + ".in",
              "--outputs", path + ".out", "--force", "--batch", ROWS)
    return tools.read_tensors(path + ".out")


def backward(work, t, x, factors):
    """Gradients of a loss that is each result times a factor, added up, by the name of the op."""
    ops = ops_of(t)
    path = os.path.join(work, f"backward-{t}")
    if not os.path.exists(path + ".so"):
        lines = "    k = sum(w; dims = 0)\n    each = sum(v; dims = 0)\n"
        for name, (text, _) in ops.items():
            lines += f"    param p_{name}: f32[{ROWS}, {t}] = zeros()\n"
            lines += f"    y_{name} = {text.replace('(x', f'(p_{name}')}\n"
            lines += f"    s_{name} = sum(y_{name} * {'each' if name in LINES else 'k'})\n"
        total = " + ".join(f"s_{name}" for name in ops)
        with open(path + ".amp", "w", encoding="utf-8") as file:
            file.write(f"amp 1\nmodel m(w: f32[N, {ROWS}], v: f32[N, {ROWS}, {t}]) -> y {{\n{lines}"
                       f"    y = {total}\n}}\n"
                       "train m {\n    loss = y\n    optimizer = sgd(0.0)\n}\n")
        tools.compile_model(path + ".amp", path + ".so", "--target", "cpu")
    save_file({"w": factors[None], "v": weights_of(t)[None]}, path + ".in")
    norms = {"ln.weight": torch.ones(t), "rn.weight": torch.ones(t)}
    save_file({**{f"p_{name}": x.clone() for name in ops}, **norms}, path + ".st")
    tools.step(path + ".so", "--weights", path + ".st", "--inputs", path + ".in", "--grads", path + ".out", "--force")
    return {name: tools.read_tensors(path + ".out")[f"p_{name}"] for name in ops}


def by_torch(x, factors, t, dtype):
    results, gradients = {}, {}
    for name, (_, op) in ops_of(t).items():
        value = x.to(dtype).clone().requires_grad_()
        y = op(value)
        results[name] = y.detach()
        (y * (weights_of(t) if name in LINES else factors).to(dtype)).sum().backward()
        gradients[name] = value.grad
    return results, gradients


def compare(tally, work, t, kind):
    x, factors = rows(kind, t), torch.tensor([1.0, -0.5, 2.0, 0.25])
    exact, exact_grads = by_torch(x, factors, t, torch.float64)
    theirs, their_grads = by_torch(x, factors, t, torch.float32)
    ours, our_grads = forward(work, t, x), backward(work, t, x, factors)
    for what, a, b, c in ("", ours, theirs, exact), ("gradient of ", our_grads, their_grads, exact_grads):
        for name in c:
            own, other = in_units(a[name], c[name]), in_units(b[name], c[name])
            bound = UNITS[name] if not what and name in UNITS else other * 1.2 + A_LITTLE
            note = f"{own:.2f} units, PyTorch {other:.2f}"
            tally.same(f"{what}{name} of rows of {t}, {kind}", [] if own <= bound else [f"at most {bound:.2f}"], note)
    if kind == "equal":
        tally.same(f"layer_norm of {t} equal numbers is 0", [] if not ours["normed"].any() else ["it is not"])


def checks(tally, options):
    for t in LONG if options.long else SHORT:
        for kind in ("normal", "far from 0", "equal"):
            tally.attempt(compare, options.work, t, kind)


def plants(tally, options):
    x = rows("far from 0", 1000)
    wrong = x.mean(1) * (1 + 2**-20)
    tally.seen("a mean 8 units off", ["it is"] if in_units(wrong, x.double().mean(1)) > UNITS["average"] else [])


if __name__ == "__main__":
    harness.main(__doc__, [checks], [plants])
