"""Writes golden/torch_values.txt: what PyTorch computes in float64 for small inputs, for tests/ir/torch_test.cc.

Run it with a Python that has PyTorch: python tests/ir/torch_values.py > tests/ir/golden/torch_values.txt
A case is its stage and an op, more ops of the same numbers in lines that begin with "+", and four lines: types of the
operands %a, %b, ...; types of the results %y0, %y1, ... of all ops; values of the operands; values of the results.
"""

import re
import string

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(7)


def text(t):
    return " ".join(format(float(v), ".12g") for v in t.reshape(-1))


def type_of(t, wide=None):
    name = {torch.int32: "i32", torch.bool: "bool"}.get(t.dtype, "f64" if t is wide else "f32")
    return name + (str(list(t.shape)) if t.dim() else "")


class Case:
    """Ops over the same numbers; operands and results are (type, values)."""

    def __init__(self, stage):
        self.stage, self.lines, self.operands, self.results = stage, [], [], []

    def shares(self, operands):
        return any(" " in values and (kind, values) in self.operands + self.results for kind, values in operands)

    def name(self, operand):
        if operand in self.operands:
            return "%" + string.ascii_lowercase[self.operands.index(operand)]
        if operand in self.results:
            return f"%y{self.results.index(operand)}"
        self.operands.append(operand)
        return self.name(operand)

    def add(self, op, operands, results):
        names = dict(zip(string.ascii_lowercase, [self.name(operand) for operand in operands]))
        made = ", ".join(f"%y{len(self.results) + i}" for i in range(len(results)))
        self.lines.append(f"{made} = " + re.sub(r"%([a-z])", lambda m: names[m[1]], op))
        self.results += results

    def __str__(self):
        columns = ["; ".join(part[i] for part in parts) for i in range(2) for parts in (self.operands, self.results)]
        return "\n".join([f"{self.stage} " + "\n+ ".join(self.lines), *columns])


cases = [Case(None)]


def add(stage, op, operands, results):
    if cases[-1].stage != stage or not cases[-1].shares(operands):
        cases.append(Case(stage))
    cases[-1].add(op, operands, results)


def case(op, operands, results, stage="simplify", wide=None):
    results = results if isinstance(results, (list, tuple)) else [results]
    add(stage, op, [(type_of(t, wide), text(t)) for t in operands], [(type_of(t, wide), text(t.detach())) for t in results])


def rand(*shape):
    return (torch.rand(*shape) * 4 - 2).mul(256).round() / 256


def grads(f, dy, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(f(*inputs), inputs, dy)


def index(t):
    return t.to(torch.int32)


# ---- elementwise --------------------------------------------------------------------------------

x = torch.tensor([-25.0, -2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0, 19.0, 20.0, 20.5, 30.0])
positive = torch.tensor([0.25, 1.0, 2.0, 100.0])
dy = rand(12)
unary = {
    "abs": torch.abs,
    "silu": F.silu,
    "softplus": F.softplus,
    "clamp": lambda v: torch.clamp(v, -1.0, 3.0),
    "erf": torch.erf,
    "pow": lambda v: torch.pow(v, 3.0),
    "leaky_relu": lambda v: F.leaky_relu(v, 0.25),
    "elu": lambda v: F.elu(v, 1.5),
    "hard_swish": F.hardswish,
    "hard_sigmoid": lambda v: F.relu6(v + 3) / 6,  # the gradient of F.hardsigmoid has a sixth of f32
    "mish": F.mish,
}
attrs = {"clamp": "; low = -1.0, high = 3.0", "pow": "; e = 3.0", "leaky_relu": "; slope = 0.25", "elu": "; alpha = 1.5"}
for name, f in unary.items():
    case(f"{name}(%a{attrs.get(name, '')})", [x], f(x))
    case(f"{name}_grad(%a, %b{attrs.get(name, '')})", [dy, x], grads(f, dy, x)[0])
case("rsqrt(%a)", [positive], positive.rsqrt())
case("rsqrt_grad(%a, %b)", [dy[:4], positive.rsqrt()], grads(torch.rsqrt, dy[:4], positive)[0])
case("pow_grad(%a, %b; e = -0.5)", [dy[:4], positive], grads(lambda v: v.pow(-0.5), dy[:4], positive)[0])
case("pow_grad(%a, %b; e = 0.0)", [dy, x], grads(lambda v: v.pow(0.0), dy, x)[0])
c = torch.tensor([[True], [False]])
a, b = rand(3), rand(2, 3)
case("where(%a, %b, %c)", [c, a, b], torch.where(c, a, b))

# ---- products -----------------------------------------------------------------------------------

a, b = rand(2, 1, 3, 4), rand(3, 4, 5)
case("matmul(%a, %b)", [a, b], a @ b)
case("matmul(%a, %b; ta = true)", [a.mT.contiguous(), b], a @ b)
case("matmul(%a, %b; tb = true)", [a, b.mT.contiguous()], a @ b)
a, b = rand(2, 3, 4), rand(2, 4, 5)
case("batch_contract(%a, %b)", [a, b], a @ b, stage="lower")
case("batch_contract(%a, %b; ta = true, tb = true)", [a.mT.contiguous(), b.mT.contiguous()], a @ b, stage="lower")
case("contract(%a, %b)", [a, b[0]], a @ b[0], stage="lower")
case("contract(%a, %b; ta = true)", [a, rand(2, 3, 5)][:1] + [a2 := rand(2, 3, 5)], torch.einsum("bij,bik->jk", a, a2), stage="lower")

for shape, weight, stride, padding, dilation, groups in [
    ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 7, 5), (6, 2, 3, 2), (2, 1), (1, 2), (2, 1), 2),
    ((1, 3, 4, 4), (3, 1, 2, 2), (3, 2), (1, 1), (1, 2), 3),
    ((2, 2, 1, 1), (3, 2, 1, 1), (1, 1), (0, 0), (1, 1), 1),
]:
    x, w, bias = rand(*shape), rand(*weight), rand(weight[0])
    f = lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups)
    given = f"stride = {stride}, padding = {padding}, dilation = {dilation}, groups = {groups}"
    y = f(x, w)
    dy = rand(*y.shape)
    dx, dw = grads(f, dy, x, w)
    case(f"conv2d(%a, %b, %c; {given})", [x, w, bias], y + bias[None, :, None, None])
    case(f"conv2d_input_grad(%a, %b, %c; {given})", [dy, w, x], dx)
    case(f"conv2d_weight_grad(%a, %b, %c; {given})", [dy, x, w], dw)
    nhwc = lambda t: t.permute(0, 2, 3, 1).contiguous()
    hwio = lambda t: t.permute(2, 3, 1, 0).contiguous()
    # [KH, KW, O / groups, C]: each output channel of a group goes with the input channels of that group
    per = weight[0] // groups
    wd = w.reshape(groups, per, weight[1], *weight[2:]).permute(3, 4, 1, 0, 2).reshape(*weight[2:], per, shape[1])
    case(f"conv(%a, %b; {given})", [nhwc(x), hwio(w)], nhwc(y), stage="lower")
    case(f"conv_data(%a, %b; {given})", [nhwc(dy), wd.contiguous()], nhwc(dx), stage="lower")
    case(f"conv_weight(%a, %b; {given})", [nhwc(x), nhwc(dy)], hwio(dw), stage="lower")

# ---- pooling ------------------------------------------------------------------------------------

for shape, kernel, stride, padding in [((2, 3, 6, 7), (2, 3), (2, 2), (1, 1)), ((1, 2, 5, 5), (3, 3), (1, 2), (0, 1))]:
    x = rand(*shape)
    given = f"kernel = {kernel}, stride = {stride}, padding = {padding}"
    y, at = F.max_pool2d(x, kernel, stride, padding, return_indices=True)
    rows = torch.arange(y.shape[2])[:, None] * stride[0] - padding[0]
    cols = torch.arange(y.shape[3])[None, :] * stride[1] - padding[1]
    which = index((at // shape[3] - rows) * kernel[1] + at % shape[3] - cols)
    mean = F.avg_pool2d(x, kernel, stride, padding)
    dy = rand(*y.shape)
    dmax = grads(lambda v: F.max_pool2d(v, kernel, stride, padding), dy, x)[0]
    dmean = grads(lambda v: F.avg_pool2d(v, kernel, stride, padding), dy, x)[0]
    area = kernel[0] * kernel[1]
    case(f"max_pool2d(%a; {given})", [x], [y, which])
    case(f"avg_pool2d(%a; {given})", [x], mean)
    case(f"max_pool2d_grad(%a, %b, %c; {given})", [dy, which, x], dmax)
    case(f"avg_pool2d_grad(%a, %b; {given})", [dy, x], dmean)
    case(f"window_max(%a; {given})", [nhwc(x)], [nhwc(y), nhwc(which)], stage="lower")
    case(f"window_sum(%a; {given})", [nhwc(x)], nhwc(mean * area), stage="lower")
    case(f"window_max_grad(%a, %b; {given})", [nhwc(dy), nhwc(which)], nhwc(dmax), stage="lower")
    case(f"window_sum_grad(%a; {given})", [nhwc(dy)], nhwc(dmean * area), stage="lower")
pool = lambda v: v.mean((2, 3))
dy = rand(*shape[:2])
case("global_avg_pool(%a)", [x], pool(x))
case("global_avg_pool_grad(%a, %b)", [dy, x], grads(pool, dy, x)[0])

# ---- normalisation ------------------------------------------------------------------------------

for shape in [(4, 3), (2, 3, 5), (2, 3, 2, 2)]:
    x, w, b, dy = rand(*shape), rand(3), rand(3), rand(*shape)
    mean, var = torch.zeros(3), torch.zeros(3)
    y = F.batch_norm(x, mean, var, w, b, True, 1.0, 1e-3)  # momentum 1: the statistics are the batch's
    dims = [d for d in range(x.dim()) if d != 1]
    rstd = (x.var(dims, correction=0) + 1e-3).rsqrt()
    dx, dw, db = grads(lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.0, 1e-3), dy, x, w, b)
    case("batch_norm(%a, %b, %c, %d, %e; eps = 0.001)", [x, w, b, rand(3), rand(3)], [y, mean, var, rstd])
    case("batch_norm_grad(%a, %b, %c, %d, %e)", [dy, x, w, mean, rstd], [dx, dw, db])
    running, spread = rand(3), rand(3).abs()
    case("batch_norm_eval(%a, %b, %c, %d, %e)", [x, w, b, running, spread], F.batch_norm(x, running, spread, w, b))
    frozen = grads(lambda x, w, b: F.batch_norm(x, running, spread, w, b, eps=1e-3), dy, x, w, b)
    case("batch_norm_eval_grad(%a, %b, %c, %d, %e; eps = 0.001)", [dy, x, w, running, spread], frozen)
for shape in [(5,), (2, 3, 5)]:
    x, w, b, dy = rand(*shape), rand(5), rand(5), rand(*shape)
    f = lambda x, w, b: F.layer_norm(x, (5,), w, b, 1e-3)
    mean, rstd = x.mean(-1, keepdim=True), (x.var(-1, correction=0, keepdim=True) + 1e-3).rsqrt()
    case("layer_norm(%a, %b, %c; eps = 0.001)", [x, w, b], [f(x, w, b), mean, rstd])
    case("layer_norm_grad(%a, %b, %c, %d, %e)", [dy, x, w, mean, rstd], grads(f, dy, x, w, b))

# ---- reductions, losses, tables -----------------------------------------------------------------

x = torch.tensor([[[1.0, 5.0, 5.0], [2.0, -1.0, 0.5]], [[5.0, 0.25, 3.0], [-4.0, -4.0, 2.0]]])
for dims in [(0, 2), (1,), (0, 1, 2)]:
    given = f"dims = ({', '.join(map(str, dims))})"
    for name, f in [("max", torch.amax), ("min", torch.amin)]:
        y = f(x, dims)
        dy = rand(*y.shape) if y.dim() else torch.tensor(1.5)
        case(f"{name}(%a; {given})", [x], y)
        case(f"extreme_grad(%a, %b, %c; {given})", [dy, x, y], grads(lambda v: f(v, dims), dy, x)[0])
    for correction in [0, 1]:
        f = lambda v: torch.var(v, dims, correction=correction)
        case(f"var(%a; {given}, correction = {correction})", [x], f(x))
        case(f"var_grad(%a, %b; {given}, correction = {correction})", [dy, x], grads(f, dy, x)[0])
        s = lambda v: torch.std(v, dims, correction=correction)
        case(f"std(%a; {given}, correction = {correction})", [x], s(x))
        case(f"std_grad(%a, %b, %c; {given}, correction = {correction})", [dy, x, s(x)], grads(s, dy, x)[0])
case("argmax(%a; dim = 1)", [x], index(x.argmax(1)))
a, b, g = rand(2, 3), rand(2, 3), torch.tensor(1.5)
for name, f in [("mse_loss", F.mse_loss), ("bce_with_logits", F.binary_cross_entropy_with_logits)]:
    case(f"{name}(%a, %b)", [a, b], f(a, b))
    case(f"{name}_grad(%a, %b, %c)", [g, a, b], grads(f, g, a, b))
ids, table, dy = index(torch.tensor([[0, 3, 3], [1, 0, 0]])), rand(4, 2), rand(2, 3, 2)
case("embedding(%a, %b)", [ids, table], F.embedding(ids, table))
case("gather(%a, %b)", [table, ids], F.embedding(ids, table), stage="lower")
dtable = grads(lambda t: F.embedding(ids, t), dy, table)[0]
case("embedding_grad(%a, %b, %c)", [dy, ids, table], dtable)
case("scatter(%a, %b)", [dy, ids], dtable, stage="lower")

# ---- attention ----------------------------------------------------------------------------------


def attend(q, k, v, mask=None, **options):
    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True, **options)


def attention_cases():
    def sums(q, k, mask, causal, scale):
        s = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(-2, -1) * (scale or q.shape[-1] ** -0.5)
        if causal:
            s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
        return (s if mask is None else s + mask).logsumexp(-1, keepdim=True)

    for heads, groups, rows, keys, masked, causal, scale in [
        (1, 1, 3, 3, None, False, None), (4, 2, 3, 5, None, True, 0.5), (2, 1, 4, 2, (1, 1, 1, 2), False, None),
        (2, 2, 3, 4, (2, 2, 3, 4), False, 0.25),
    ]:
        q, k, v, dy = rand(2, heads, rows, 3), rand(2, groups, keys, 3), rand(2, groups, keys, 2), rand(2, heads, rows, 2)
        mask = rand(*masked) if masked else None
        operands, names = [q, k, v] + ([mask] if masked else []), "%a, %b, %c" + (", %d" if masked else "")
        f = lambda q, k, v, mask=None: attend(q, k, v, mask, is_causal=causal, scale=scale)
        attrs = f"; scale = {scale or 0.0}, causal = {str(causal).lower()}"
        y, lse = f(*operands), sums(q, k, mask, causal, scale)
        case(f"attention({names}{attrs})", operands, [y, lse])
        back = [dy, q, k, v, y, lse] + ([mask] if masked else [])
        names = ", ".join("%" + letter for letter in "abcdefg"[: len(back)])
        gradients = grads(f, dy, *operands)
        case(f"attention_grad({names}{attrs})", back, gradients[:3])
        if masked == (2, 2, 3, 4):
            case(f"attention_mask_grad({names}{attrs})", back, gradients[3])


attention_cases()

# ---- training -----------------------------------------------------------------------------------

for most in [0.5, 100.0]:
    p = [torch.zeros(3, requires_grad=True), torch.zeros(2, 2, requires_grad=True)]
    before = [rand(3), rand(2, 2)]
    for t, grad in zip(p, before):
        t.grad = grad.clone()
    norm = torch.nn.utils.clip_grad_norm_(p, most)
    case("global_norm(%a, %b)", before, norm, wide=norm)
    case(f"clip_by_norm(%a, %b; max = {most})", [before[1], norm], p[1].grad, wide=norm)
for steps in [4, 10]:
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=steps)
    for step in range(steps):
        rate = format(schedule.get_last_lr()[0], ".12g")
        add("simplify", f"one_cycle_rate(%a; peak = 0.5, steps = {steps})", [("i64", str(step))], [("f64", rate)])
        optimizer.step()
        if step + 1 < steps:
            schedule.step()

# ---- corners and ties ---------------------------------------------------------------------------

nan, inf = float("nan"), float("inf")
corners = torch.tensor([nan, inf, -inf, 0.0, 3.0, -3.0, 2.5, -2.5])
dc = rand(8)
cornered = {name: unary[name] for name in ("leaky_relu", "elu", "hard_swish", "hard_sigmoid")}
for name, f in {**cornered, "sign": torch.sign, "floor": torch.floor, "expm1": torch.expm1, "log1p": torch.log1p, "reciprocal": torch.reciprocal}.items():
    case(f"{name}(%a{attrs.get(name, '')})", [corners], f(corners))
for name, f in {**cornered, "log1p": torch.log1p}.items():
    case(f"{name}_grad(%a, %b{attrs.get(name, '')})", [dc, corners], grads(f, dc, corners)[0])
for name, f in {"expm1": torch.expm1, "reciprocal": torch.reciprocal}.items():
    case(f"{name}_grad(%a, %b)", [dc, f(corners)], grads(f, dc, corners)[0])
a, b = torch.tensor([1.0, nan, 1.0, 2.0, inf, -0.0, -inf, 1.0]), torch.tensor([1.0, 1.0, nan, 1.0, inf, 0.0, inf, 2.0])
for name, f in {"maximum": torch.maximum, "minimum": torch.minimum}.items():
    case(f"{name}(%a, %b)", [a, b], f(a, b))
    case(f"{name}_grad(%a, %b, %c)", [dc, a, b], grads(f, dc, a, b))
case("remainder(%a, %b)", [a, b], torch.remainder(a, b))
a, b = torch.tensor([5.5, -5.5, 5.5, -5.5, 6.0, 0.0, 1.0, 7.25]), torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, -1.5, -inf, 0.3])
case("remainder(%a, %b)", [a, b], torch.remainder(a, b))
for shape, channels in [((3, 4), 4), ((2, 3, 2, 2), 3), ((2, 3), 1), ((5,), 1)]:
    a, w = rand(*shape), rand(channels)
    d = rand(*shape)
    case("prelu(%a, %b)", [a, w], F.prelu(a, w))
    case("prelu_grad(%a, %b, %c)", [d, a, w], grads(F.prelu, d, a, w))

# ---- losses and folds at their corners ----------------------------------------------------------

a = torch.tensor([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 1.75])
b, g = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 1.5]), torch.tensor(1.5)
pairs = {
    "l1_loss": ("", F.l1_loss),
    "smooth_l1_loss": ("; beta = 0.5", lambda x, y: F.smooth_l1_loss(x, y, beta=0.5)),
    "huber_loss": ("; delta = 0.5", lambda x, y: F.huber_loss(x, y, delta=0.5)),
}
for name, (given, f) in pairs.items():
    case(f"{name}(%a, %b{given})", [a, b], f(a, b))
    case(f"{name}_grad(%a, %b, %c{given})", [g, a, b], grads(f, g, a, b))
case("smooth_l1_loss(%a, %b; beta = 0.0)", [a, b], F.smooth_l1_loss(a, b, beta=0.0))
broken = torch.where(torch.arange(8) == 2, nan, a)
for name, (given, f) in pairs.items():
    case(f"{name}_grad(%a, %b, %c{given})", [g, broken, b], grads(f, g, broken, b))
x, t = rand(3, 4).log_softmax(1), rand(3, 4).softmax(1)
t[0, 1] = 0.0
for reduction in ["batchmean", "mean"]:
    f = lambda v, w: F.kl_div(v, w, reduction=reduction)
    case(f"kl_div(%a, %b; reduction = {reduction})", [x, t], f(x, t))
    case(f"kl_div_grad(%a, %b, %c; reduction = {reduction})", [g, x, t], grads(f, g, x, t))
x, t, w = rand(2, 3, 4).log_softmax(2), torch.tensor([[0, 3, 1], [2, 2, -100]]), torch.tensor([0.5, 2.0, 1.0, 3.0])
for smoothing in [0.0, 0.2]:
    # F.cross_entropy of log-probabilities is nll_loss with smoothing: their softmax is themselves
    f = lambda v: F.cross_entropy(v.flatten(0, 1), t.flatten(), w, label_smoothing=smoothing)
    case(f"nll_loss(%a, %b, %c; label_smoothing = {smoothing})", [x, index(t), w], f(x))
f = lambda v: F.nll_loss(v.flatten(0, 1), t.flatten(), w)
case("nll_loss_grad(%a, %b, %c, %d)", [g, x, index(t), w], grads(f, g, x)[0])
x = rand(2, 3, 2)
for dims, given in [((1,), "dims = (1)"), ((0, 2), "dims = (0, 2)"), ((0, 1, 2), "")]:
    f = lambda v: torch.logsumexp(v, dims)
    dy = rand(*f(x).shape) if f(x).dim() else g
    case(f"logsumexp(%a; {given})" if given else "logsumexp(%a)", [x], f(x))
    case(f"logsumexp_grad(%a, %b, %c; {given})" if given else "logsumexp_grad(%a, %b, %c)", [dy, x, f(x)], grads(f, dy, x)[0])
    for p in [1.0, 2.0, 3.0, 0.5, 0.0, inf]:
        h = lambda v: torch.linalg.vector_norm(v, p, dims)
        also = f"; {given}, p = {p}" if given else f"; p = {p}"
        case(f"norm(%a{also})", [x], h(x))
        if p:  # of order 0 PyTorch says that there is no gradient
            case(f"norm_grad(%a, %b, %c{also})", [dy, x, h(x)], grads(h, dy, x)[0])
rows = torch.tensor([[-inf, -inf], [inf, 1.0], [1.0, nan], [-inf, 0.0], [0.0, 0.0], [0.0, 2.0]])
dy = rand(6)
folds = {"logsumexp": ("", lambda v: torch.logsumexp(v, 1))}
folds.update({f"norm {p}": (f", p = {p}", lambda v, p=p: torch.linalg.vector_norm(v, p, 1)) for p in [1.0, 2.0, 3.0, inf]})
for name, (also, f) in folds.items():
    name = name.split()[0]
    case(f"{name}(%a; dims = (1){also})", [rows], f(rows))
    case(f"{name}_grad(%a, %b, %c; dims = (1){also})", [dy, rows, f(rows)], grads(f, dy, rows)[0])
rows = torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [2.0, -3.0, 4.0], [0.0, 0.0, 0.0]])
broken = torch.tensor([[nan, 1.0, 2.0], [inf, 2.0, 3.0]])  # apart: a zero anywhere changes PyTorch's formula, and what it makes of them
f = lambda v: v.prod(1)
for x in [rows, broken]:
    case("prod(%a; dims = (1))", [x], f(x))
    case("prod_grad(%a, %b; dims = (1))", [dy[:len(x)], x], grads(f, dy[:len(x)], x)[0])
case("reduce_prod(%a; dims = (1))", [rows], f(rows), stage="lower")

# ---- rms norm, transposed convolutions ----------------------------------------------------------

for shape in [(5,), (2, 3, 5)]:
    x, w, dy = rand(*shape), rand(5), rand(*shape)
    f = lambda x, w: F.rms_norm(x, (5,), w, 1e-3)
    factor = (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt()
    case("rms_norm(%a, %b; eps = 0.001)", [x, w], [f(x, w), factor])
    case("rms_norm_grad(%a, %b, %c, %d)", [dy, x, w, factor], grads(f, dy, x, w))
for shape, weight, stride, padding, more, dilation, groups in [
    ((2, 3, 4, 5), (3, 4, 3, 2), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    ((2, 4, 3, 4), (4, 3, 3, 2), (2, 3), (1, 2), (1, 2), (2, 1), 2),
    ((1, 3, 2, 2), (3, 1, 2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 3),
    ((2, 2, 1, 1), (2, 3, 1, 1), (3, 1), (0, 0), (2, 0), (1, 1), 1),
]:
    x, w, bias = rand(*shape), rand(*weight), rand(weight[1] * groups)
    given = f"stride = {stride}, padding = {padding}, output_padding = {more}, dilation = {dilation}, groups = {groups}"
    y = F.conv_transpose2d(x, w, None, stride, padding, more, groups, dilation)
    case(f"conv_transpose2d(%a, %b; {given})", [x, w], y)
    case(f"conv_transpose2d(%a, %b, %c; {given})", [x, w, bias], y + bias[None, :, None, None])
for x, dim in [(rand(2, 5), 1), (rand(3, 2, 2), 0), (torch.tensor([1.0, inf, 2.0, -inf, 3.0, nan, 1.0]), 0)]:
    dy = rand(*x.shape)
    case(f"cumsum(%a; dim = {dim})", [x], x.cumsum(dim))
    case(f"cumsum(%a; dim = {dim}, reverse = true)", [dy], grads(lambda v: v.cumsum(dim), dy, x)[0])

# ---- group norm, instance norm ------------------------------------------------------------------

for shape, groups in [((2, 6), 3), ((2, 4, 3), 2), ((2, 4, 2, 3), 1), ((2, 4, 2, 3), 4)]:
    channels = shape[1]
    x, w, b, dy = rand(*shape), rand(channels), rand(channels), rand(*shape)
    f = lambda x, w, b: F.group_norm(x, groups, w, b, 1e-3)
    parts = x.reshape(shape[0], groups, -1)
    mean, rstd = parts.mean(-1), (parts.var(-1, correction=0) + 1e-3).rsqrt()
    mean, rstd = (t.repeat_interleave(channels // groups, 1) for t in (mean, rstd))
    case(f"group_norm(%a, %b, %c; groups = {groups}, eps = 0.001)", [x, w, b], [f(x, w, b), mean, rstd])
    case(f"group_norm_grad(%a, %b, %c, %d, %e; groups = {groups})", [dy, x, w, mean, rstd], grads(f, dy, x, w, b))
    if groups == channels:
        case("instance_norm(%a, %b, %c; eps = 0.001)", [x, w, b], [F.instance_norm(x, weight=w, bias=b, eps=1e-3), mean, rstd])
        case("instance_norm(%a, %b; eps = 0.001)", [x, w], [F.instance_norm(x, weight=w, eps=1e-3), mean, rstd])

# ---- images in another size ---------------------------------------------------------------------

for side, out in [((5, 7), (2, 3)), ((4, 6), (2, 3)), ((3, 2), (5, 5)), ((4, 3), (1, 1))]:
    x, dy = rand(2, 3, *side), rand(2, 3, *out)
    f = lambda x: F.adaptive_avg_pool2d(x, out)
    case(f"adaptive_avg_pool2d(%a; out = {out})", [x], f(x))
    case(f"adaptive_avg_pool2d_grad(%a, %b; out = {out})", [dy, x], grads(f, dy, x))
    last = lambda t: t.permute(0, 2, 3, 1)
    case("resample(%a)", [last(x)], last(f(x)), stage="lower")
    case("resample_grad(%a)", [last(dy)], last(grads(f, dy, x)[0]), stage="lower")
for side, scale, mode in [((2, 3), (2, 2), {}), ((3, 2), (1, 3), {"mode": "nearest"}), ((3, 4), (2, 2), {"mode": "bilinear"}),
                          ((2, 3), (3, 1), {"mode": "bilinear"}), ((3, 4), (2, 3), {"mode": "bilinear", "align_corners": True}),
                          ((1, 2), (4, 2), {"mode": "bilinear", "align_corners": True}), ((1, 1), (2, 3), {"mode": "bilinear"})]:
    x = rand(2, 2, *side)
    f = lambda x: F.interpolate(x, scale_factor=scale, **mode)
    given = ", ".join([f"scale = {scale}"] + [f"{k} = {str(v).lower()}" for k, v in mode.items()])
    dy = rand(*f(x).shape)
    case(f"upsample(%a; {given})", [x], f(x))
    case(f"upsample_grad(%a, %b; {given})", [dy, x], grads(f, dy, x))
x, w = rand(1, 2, 2, 3), rand(2, 2, 2, 2)
y = F.conv_transpose2d(x, w, None, (1, 2), (1, 0), (2, 3), 1, (3, 4))
case("conv_transpose2d(%a, %b; stride = (1, 2), padding = (1, 0), output_padding = (2, 3), dilation = (3, 4))", [x, w], y)

# ---- the k largest ------------------------------------------------------------------------------

for x, k, dim in [(rand(3, 5), 2, 1), (rand(2, 4, 3), 4, 1), (torch.tensor([1.0, -inf, 3.0, nan, inf]), 5, 0), (rand(2, 1), 1, 1)]:
    y, at = x.topk(k, dim)
    dy = rand(*y.shape)
    case(f"top_k(%a; k = {k}, dim = {dim})", [x], [y, index(at)])
    case(f"top_k_grad(%a, %b, %c; dim = {dim})", [dy, index(at), x], grads(lambda v: v.topk(k, dim)[0], dy, x)[0])
for x in [torch.tensor([[-2.0, 1.0, 2.0], [0.0, 0.0, 0.0]]), torch.tensor([[nan, -1.0, nan], [inf, -inf, 1.0]])]:
    f = lambda v: torch.linalg.vector_norm(v, inf, 1)
    dy = rand(2)
    case("norm(%a; dims = (1), p = 0.0)", [x], torch.linalg.vector_norm(x, 0.0, 1))
    case("norm(%a; dims = (1), p = inf)", [x], f(x))
    case("norm_grad(%a, %b, %c; dims = (1), p = inf)", [dy, x, f(x)], grads(f, dy, x)[0])

# ---- images of a given size ---------------------------------------------------------------------

for side, size, mode in [((3, 4), (5, 3), {"mode": "nearest"}), ((5, 2), (2, 2), {"mode": "nearest"}), ((3, 4), (5, 2), {"mode": "bilinear"}),
                         ((4, 3), (2, 7), {"mode": "bilinear", "align_corners": True})]:
    x = rand(2, 2, *side)
    f = lambda x: F.interpolate(x, size, **mode)
    given = ", ".join([f"size = {size}"] + [f"{k} = {str(v).lower()}" for k, v in mode.items()])
    dy = rand(*f(x).shape)
    case(f"upsample(%a; {given})", [x], f(x))
    case(f"upsample_grad(%a, %b; {given})", [dy, x], grads(f, dy, x))

print(*cases[1:], sep="\n")
