"""ops.py: every op of the language that is differentiated, each with its attributes, odd sizes and broadcasts: gradients through the whole pipeline against
PyTorch in float64, in every precision.

A model holds the cases of one theme, each in a block of its own: `total` is the sum of every case's result, weighted by random numbers: an input where the
result has a row for each sample, else a parameter, whose gradient is the result itself. Each case has the parameters that its block declares; one called `s`
scales the input, so that a gradient flows through it. In FP16 and BF16 that product is rounded too (the built-in policy with one line more), so that ops which
follow their inputs compute in the low type.
"""
import os
import re

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import ampc_tools as tools
import harness

BOUNDS = {"fp32": 3e-5, "bf16": 6e-2, "fp16": 8e-3}  # relative, of each gradient's norm
FP16_SCALE = 256.0
N = 13
INPUTS = {  # what cases compute from, by type in the model
    "x": ("f32", [N, 19], lambda: torch.randn(N, 19)),
    "p": ("f32", [N, 19], lambda: torch.rand(N, 19) + 0.5),
    "i": ("f32", [N, 4, 7, 6], lambda: torch.randn(N, 4, 7, 6)),
    "t": ("f32", [N, 5, 8], lambda: torch.randn(N, 5, 8)),
    "u": ("f32", [N, 19], lambda: torch.rand(N, 19)),
    "k": ("i32", [N, 5], lambda: torch.randint(0, 11, (N, 5))),
    "c": ("i32", [N], lambda: torch.randint(0, 19, (N,))),
}


class Case:
    """code: statements of the block that end in `y = ...`; params: {name: sizes}; torch_code(input, params...) in the order of params;
    loosen: how much wider the bounds are."""

    def __init__(self, inputs, code, params, torch_code, loosen=1.0, positive=False):
        self.inputs, self.code, self.params, self.torch_code = inputs.split(), code, params, torch_code
        self.loosen, self.positive = loosen, positive


def unary(call, function, inputs="x", **options):
    return Case(inputs, f"h = {inputs} * s\ny = {call}", {"s": [19]}, lambda x, s: function(x * s), **options)


def binary(expression, function, b=(19,), **options):
    return Case("x", f"h = x * s\ny = {expression}", {"s": [19], "b": list(b)}, lambda x, s, b: function(x * s, b), **options)


def image(call, function, params=None, **options):
    return Case("i", f"h = i * s\ny = {call}", {"s": [4, 1, 1], **(params or {})}, lambda i, s, *p: function(i * s, *p), **options)


def sequence(call, function, params=None, **options):
    return Case("t", f"h = t * s\ny = {call}", {"s": [8], **(params or {})}, lambda t, s, *p: function(t * s, *p), **options)


def grouped(h):
    return F.scaled_dot_product_attention(h, h[:, :2], h[:, :2], is_causal=True, enable_gqa=True)


def normalised(h, w, b):
    return F.batch_norm(torch.tanh(h), None, None, w, b, training=True)  # tanh: a mere factor has no gradient


def running(channels):
    return torch.linspace(-0.5, 0.5, channels), torch.linspace(0.5, 1.5, channels)


def by_running(h, w, b):
    mean, variance = running(h.shape[1])
    return F.batch_norm(h, mean.double(), variance.double(), w, b)


POINTWISE = re.compile(r'POINTWISE\((\w+), (?:NO_ATTRS|"(.*?)"), (\S+), \S+,\s*"(.*?)",')


def pointwise_rows():
    """The rows of pointwise.def: op, attributes, least number, and its PyTorch expression of h."""
    with open(os.path.join(tools.ROOT, "tests/ops/pointwise.def"), encoding="utf-8") as file:
        rows = POINTWISE.findall(file.read())
    return [(op, attributes, float(low), eval(f"lambda h: {code}", {"F": F, "torch": torch})) for op, attributes, low, code in rows]


def pointwise_cases(written):
    """A case for each row whose op is not among |written|."""
    cases = {}
    for op, attributes, low, function in pointwise_rows():
        if not any(op + "(" in case.code for case in written.values()):
            options = {} if low < 0 else {"inputs": "p", "positive": True}
            cases[op + re.sub(r"\W+", "_", attributes)] = unary(f"{op}(h{attributes})", function, **options)
    return cases


FUNCTIONS = {
    "exp": unary("exp(0.5 * h)", lambda h: torch.exp(0.5 * h)),
    "log": unary("log(h)", torch.log, "p", positive=True),
    "sqrt": unary("sqrt(h)", torch.sqrt, "p", positive=True),
    "rsqrt": unary("rsqrt(h)", torch.rsqrt, "p", positive=True),
    "abs": unary("abs(h)", torch.abs),
    "erf": unary("erf(h)", torch.erf),
    "neg": unary("-(h)", torch.neg),
    "cube": unary("pow(h; e = 3.0)", lambda h: h.pow(3.0)),
    "power": unary("pow(h; e = -1.5)", lambda h: h.pow(-1.5), "p", positive=True),
    "clamp": unary("clamp(h; low = -0.5, high = 0.7)", lambda h: h.clamp(-0.5, 0.7), loosen=4),
}
ACTIVATIONS = {
    "expm1": unary("expm1(0.5 * h)", lambda h: torch.expm1(0.5 * h)),
    "hard_sigmoid": unary("hard_sigmoid(h)", F.hardsigmoid, loosen=4),
    "prelu": image("prelu(0.1 * h; count = 4) as a", lambda h, w: F.prelu(0.1 * h, w), {"a.weight": [4]}),
}
POINTWISE_CASES = pointwise_cases({**FUNCTIONS, **ACTIVATIONS, "neg": unary("neg(h)", torch.neg)})
ARITHMETIC = {
    "add": binary("h + b", torch.add),
    "sub": binary("b - h", lambda h, b: b - h),
    "mul": binary("h * b", torch.mul),
    "div": binary("h / b", torch.div, positive=True),
    "div_by": binary("b / (h * h + 1.0)", lambda h, b: b / (h * h + 1.0)),
    "add_column": binary("h + b", torch.add, (1,)),
    "mul_scalar": binary("h * b", torch.mul, ()),
    "where": binary("where(x > 0.1, h, b)", None),
    "where_scalar": binary("where(x <= 0.1, b, h)", None, ()),
    "remainder": binary("(3.0 * h) % (0.5 * tanh(b) + 1.0)", lambda h, b: torch.remainder(3.0 * h, 0.5 * b.tanh() + 1.0), loosen=4),
    "remainder_row": binary("h % (0.2 * tanh(b) - 0.7)", lambda h, b: torch.remainder(h, 0.2 * b.tanh() - 0.7), (1,), loosen=4),
    "maximum": binary("maximum(h, b)", torch.maximum),
    "minimum": binary("minimum(b, h)", lambda h, b: torch.minimum(b, h), (1,)),
    "maximum_of_equals": binary("maximum(relu(h), relu(b))", lambda h, b: torch.maximum(h.relu(), b.relu())),
    "prelu": binary("prelu(h, b)", F.prelu),
    "prelu_shared": binary("prelu(h, b)", F.prelu, (1,)),
    "twice": binary("h * h + h * b - h", lambda h, b: h * h + h * b - h),
}
ARITHMETIC["where"].torch_code = lambda x, s, b: torch.where(x > 0.1, x * s, b)
ARITHMETIC["where_scalar"].torch_code = lambda x, s, b: torch.where(x <= 0.1, b, x * s)

PRODUCTS = {
    "linear": Case("x", "y = linear(x * s, w, b)", {"s": [19], "w": [7, 19], "b": [7]}, lambda x, s, w, b: F.linear(x * s, w, b)),
    "linear_t": Case("x", "y = linear(x * s, w; transposed = true)", {"s": [19], "w": [19, 33]}, lambda x, s, w: (x * s) @ w),
    "linear_3d": sequence("linear(h, w, b)", F.linear, {"w": [9, 8], "b": [9]}),
    "matmul": Case("x", "y = matmul(x * s, w)", {"s": [19], "w": [19, 5]}, lambda x, s, w: (x * s) @ w),
    "matmul_3d": sequence("matmul(h, w)", torch.matmul, {"w": [8, 6]}),
    "matmul_batch": sequence("matmul(h, transpose(h))", lambda h: h @ h.transpose(1, 2)),
    "matmul_broadcast": sequence("matmul(w, h)", lambda h, w: w @ h, {"w": [3, 5]}),
}
CONVOLUTIONS = {
    "conv": image("conv2d(h, w, b)", F.conv2d, {"w": [5, 4, 3, 3], "b": [5]}),
    "conv_1x1": image("conv2d(h, w)", F.conv2d, {"w": [33, 4, 1, 1]}),
    "conv_stride": image("conv2d(h, w, b; stride = (2, 3), padding = (1, 2))", lambda h, w, b: F.conv2d(h, w, b, (2, 3), (1, 2)), {"w": [3, 4, 3, 2], "b": [3]}),
    "conv_dilation": image("conv2d(h, w; padding = 2, dilation = (2, 1))", lambda h, w: F.conv2d(h, w, None, 1, 2, (2, 1)), {"w": [3, 4, 3, 3]}),
    "conv_groups": image("conv2d(h, w, b; padding = 1, groups = 2)", lambda h, w, b: F.conv2d(h, w, b, 1, 1, 1, 2), {"w": [6, 2, 3, 3], "b": [6]}),
    "conv_depthwise": image("conv2d(h, w; padding = 1, groups = 4, stride = 2)", lambda h, w: F.conv2d(h, w, None, 2, 1, 1, 4), {"w": [4, 1, 3, 3]}),
    "conv_groups_wide": image("conv2d(conv2d(h, v) * 0.1, w; padding = 1, groups = 8)",
                              lambda h, v, w: F.conv2d(F.conv2d(h, v) * 0.1, w, None, 1, 1, 1, 8), {"v": [32, 4, 1, 1], "w": [64, 4, 3, 3]}),
    "conv_depthwise_wide": image("conv2d(conv2d(h, v) * 0.1, w; padding = 1, groups = 40, stride = 2)",
                                 lambda h, v, w: F.conv2d(F.conv2d(h, v) * 0.1, w, None, 2, 1, 1, 40), {"v": [40, 4, 1, 1], "w": [40, 1, 3, 3]}),
}
TRANSPOSED = {
    "transposed": image("conv_transpose2d(h, w, b)", F.conv_transpose2d, {"w": [4, 5, 3, 3], "b": [5]}),
    "transposed_stride": image("conv_transpose2d(h, w, b; stride = 2)", lambda h, w, b: F.conv_transpose2d(h, w, b, 2), {"w": [4, 3, 2, 2], "b": [3]}),
    "transposed_all": image("conv_transpose2d(h, w; stride = (2, 3), padding = (1, 0), output_padding = (1, 2), dilation = (2, 1), groups = 2)",
                            lambda h, w: F.conv_transpose2d(h, w, None, (2, 3), (1, 0), (1, 2), 2, (2, 1)), {"w": [4, 3, 3, 2]}),
    "transposed_dilation": image("conv_transpose2d(h, w; stride = (1, 2), padding = 1, output_padding = (1, 2), dilation = (2, 3))",
                                 lambda h, w: F.conv_transpose2d(h, w, None, (1, 2), 1, (1, 2), 1, (2, 3)), {"w": [4, 3, 2, 3]}),
    "conv1d_dilation": sequence("conv1d(transpose(h); out = 8, kernel = 2, padding = 2, dilation = 2, groups = 4, bias = false) as c",
                                lambda h, w: F.conv1d(h.transpose(1, 2), w, None, 1, 2, 2, 4), {"c.weight": [8, 2, 2]}),
    "conv1d": sequence("conv1d(transpose(h); out = 6, kernel = 3, stride = 2, padding = 1, groups = 2) as c",
                       lambda h, w, b: F.conv1d(h.transpose(1, 2), w, b, 2, 1, 1, 2), {"c.weight": [6, 4, 3], "c.bias": [6]}),
}
NORMS = {
    "batch_norm": image("batch_norm(tanh(h)) as bn", normalised, {"bn.weight": [4], "bn.bias": [4]}, loosen=4),
    "batch_norm_2d": Case("x", "y = batch_norm(tanh(x * s)) as bn", {"s": [19], "bn.weight": [19], "bn.bias": [19]},
                          lambda x, s, w, b: normalised(x * s, w, b), loosen=4),
    "batch_norm_1d": sequence("batch_norm(transpose(tanh(h))) as bn", lambda h, w, b: F.batch_norm(h.tanh().transpose(1, 2), None, None, w, b, training=True),
                              {"bn.weight": [8], "bn.bias": [8]}, loosen=4),
    "batch_norm_frozen": image("batch_norm(h; frozen = true) as bn", by_running, {"bn.weight": [4], "bn.bias": [4]}),
    "batch_norm_frozen_2d": Case("x", "y = batch_norm(x * s; frozen = true) as bn", {"s": [19], "bn.weight": [19], "bn.bias": [19]},
                                 lambda x, s, w, b: by_running(x * s, w, b)),
    "layer_norm": sequence("layer_norm(h) as ln", lambda h, w, b: F.layer_norm(h, (8,), w, b), {"ln.weight": [8], "ln.bias": [8]}, loosen=4),
    "group_norm": image("group_norm(tanh(h); groups = 2) as gn", lambda h, w, b: F.group_norm(h.tanh(), 2, w, b), {"gn.weight": [4], "gn.bias": [4]}, loosen=4),
    "group_norm_1d": sequence("group_norm(transpose(tanh(h)); groups = 4, affine = false) as gn", lambda h: F.group_norm(h.tanh().transpose(1, 2), 4), loosen=4),
    "instance_norm": image("instance_norm(tanh(h))", lambda h: F.instance_norm(h.tanh()), loosen=4),
    "instance_norm_affine": image("instance_norm(h * h + h; affine = true) as n", lambda h, w, b: F.instance_norm(h * h + h, weight=w, bias=b),
                                  {"n.weight": [4], "n.bias": [4]}, loosen=4),
    "rms_norm": sequence("rms_norm(h) as ln", lambda h, w: F.rms_norm(h, (8,), w, 1e-6), {"ln.weight": [8]}, loosen=4),
}
IMAGES = {
    "max_pool": image("max_pool2d(h; kernel = 2)", lambda h: F.max_pool2d(h, 2), loosen=4),
    "max_pool_overlap": image("max_pool2d(h; kernel = 3, stride = (1, 2), padding = 1)", lambda h: F.max_pool2d(h, 3, (1, 2), 1), loosen=4),
    "avg_pool": image("avg_pool2d(h; kernel = (3, 2))", lambda h: F.avg_pool2d(h, (3, 2))),
    "avg_pool_padding": image("avg_pool2d(h; kernel = 3, stride = 2, padding = 1)", lambda h: F.avg_pool2d(h, 3, 2, 1)),
    "adaptive_pool": image("adaptive_avg_pool2d(h; out = (3, 4))", lambda h: F.adaptive_avg_pool2d(h, (3, 4))),
    "adaptive_pool_even": image("adaptive_avg_pool2d(h; out = (7, 2))", lambda h: F.adaptive_avg_pool2d(h, (7, 2))),
    "upsample_nearest": image("upsample(h)", lambda h: F.interpolate(h, scale_factor=2)),
    "upsample_bilinear": image("upsample(h; scale = (2, 3), mode = bilinear)", lambda h: F.interpolate(h, scale_factor=(2, 3), mode="bilinear")),
    "upsample_corners": image("upsample(h; mode = bilinear, align_corners = true)", lambda h: F.interpolate(h, scale_factor=2, mode="bilinear", align_corners=True)),
    "upsample_size": image("upsample(h; size = (5, 9))", lambda h: F.interpolate(h, (5, 9))),
    "upsample_size_bilinear": image("upsample(h; size = (5, 9), mode = bilinear)", lambda h: F.interpolate(h, (5, 9), mode="bilinear")),
    "max_pool1d": sequence("max_pool1d(h; kernel = 2)", lambda h: F.max_pool1d(h, 2), loosen=4),
    "max_pool1d_overlap": sequence("max_pool1d(h; kernel = 3, stride = 2, padding = 1)", lambda h: F.max_pool1d(h, 3, 2, 1), loosen=4),
    "avg_pool1d": sequence("avg_pool1d(h; kernel = 3)", lambda h: F.avg_pool1d(h, 3)),
    "avg_pool1d_padding": sequence("avg_pool1d(h; kernel = 3, stride = 2, padding = 1)", lambda h: F.avg_pool1d(h, 3, 2, 1)),
    "upsample1d": sequence("upsample1d(h; size = 11, mode = linear)", lambda h: F.interpolate(h, 11, mode="linear")),
    "upsample1d_nearest": sequence("upsample1d(h; scale = 3)", lambda h: F.interpolate(h, scale_factor=3)),
    "global_pool": image("global_avg_pool(h)", lambda h: h.mean((2, 3))),
    "flatten": image("flatten(h)", lambda h: h.flatten(1)),
    "attention": sequence("attention(h, h, h)", lambda h: F.scaled_dot_product_attention(h, h, h), loosen=4),
    "attention_causal": sequence("attention(h, linear(h, w), h; causal = true, scale = 0.3)",
                                 lambda h, w: F.scaled_dot_product_attention(h, F.linear(h, w), h, is_causal=True, scale=0.3), {"w": [8, 8]}, loosen=4),
    "attention_masked": sequence("attention(h, h, h, m)", lambda h, m: F.scaled_dot_product_attention(h, h, h, m), {"m": [5, 5]}, loosen=4),
    # a key is seen by chance: some queries see none
    "attention_chosen": Case("t", "h = t * s\ny = attention(h, h, h, slice(t; dim = 2, from = 0, to = 5) > 1.2)", {"s": [8]},
                             lambda t, s: F.scaled_dot_product_attention(t * s, t * s, t * s, t[:, :, :5] > 1.2), loosen=4),
    "attention_grouped": Case("t", "h = transpose(reshape(t * s; shape = [N, 5, 4, 2]); a = 1, b = 2)\nk = slice(h; dim = 1, from = 0, to = 2)\n"
                              "y = attention(h, k, k; causal = true)", {"s": [8]}, lambda t, s: grouped((t * s).unflatten(2, (4, 2)).transpose(1, 2)), loosen=4),
}
REDUCTIONS = {
    "sum_all": sequence("sum(h * h)", lambda h: (h * h).sum()),
    "sum_last": sequence("sum(h * h; dims = (2))", lambda h: (h * h).sum(2)),
    "sum_middle": sequence("sum(h * h; dims = (1), keep = true)", lambda h: (h * h).sum(1, keepdim=True)),
    "mean_all": sequence("mean(h * h)", lambda h: (h * h).mean()),
    "mean_two": sequence("mean(h * h; dims = (0, 2))", lambda h: (h * h).mean((0, 2))),
    "max_last": sequence("max(h; dims = (2))", lambda h: h.amax(2), loosen=4),
    "min_middle": sequence("min(h; dims = (1), keep = true)", lambda h: h.amin(1, keepdim=True), loosen=4),
    "max_all": sequence("max(h)", lambda h: h.amax(), loosen=4),
    "var_last": sequence("var(h; dims = (2))", lambda h: h.var(2), loosen=2),
    "var_all": sequence("var(h; correction = 0, keep = true)", lambda h: h.var((0, 1, 2), correction=0, keepdim=True), loosen=2),
    "std_last": sequence("std(h; dims = (2))", lambda h: h.std(2), loosen=2),
    "std_all": sequence("std(h; correction = 0, keep = true)", lambda h: h.std((0, 1, 2), correction=0, keepdim=True), loosen=2),
    "softmax": sequence("softmax(h)", lambda h: h.softmax(-1), loosen=2),
    "softmax_middle": sequence("softmax(h; dim = 1)", lambda h: h.softmax(1), loosen=2),
    "log_softmax": sequence("log_softmax(h; dim = 1)", lambda h: h.log_softmax(1), loosen=2),
}
MOVEMENT = {
    "reshape": sequence("reshape(h; shape = [N, 4, 2, 5])", lambda h: h.reshape(N, 4, 2, 5)),
    "reshape_rows": sequence("reshape(reshape(h; shape = [5 * N, 8]) * w; shape = [N, 5, 8])", lambda h, w: h * w, {"w": [8]}),
    "transpose": sequence("transpose(h)", lambda h: h.transpose(1, 2)),
    "transpose_n": sequence("transpose(transpose(h; a = 0, b = 1) * w; a = 0, b = 1)", lambda h, w: h * w.transpose(0, 1), {"w": [5, 1, 8]}),
    "permute": sequence("permute(permute(h; dims = (2, 0, 1)) * w; dims = (1, 2, 0))", lambda h, w: h * w.permute(1, 2, 0), {"w": [8, 1, 5]}),
    "slice": sequence("slice(h; dim = 2, from = 3, to = 7)", lambda h: h[:, :, 3:7]),
    "slice_middle": sequence("slice(h; dim = 1, from = -2, to = 5)", lambda h: h[:, 3:5]),
    "pad": sequence("pad(h; dim = 2, before = 2, after = 1, value = 0.5)", lambda h: F.pad(h, (2, 1), value=0.5)),
    "pad_middle": sequence("pad(h; dim = 1, before = 1, after = 0)", lambda h: F.pad(h, (0, 0, 1, 0))),
    "concat": sequence("concat(h, h * h, h; dim = 2)", lambda h: torch.cat([h, h * h, h], 2)),
    "concat_middle": sequence("concat(h, h * h; dim = 1)", lambda h: torch.cat([h, h * h], 1)),
    "stack": sequence("stack(h, h * h; dim = 1)", lambda h: torch.stack([h, h * h], 1)),
    "embedding_of_floor": Case("k", "y = embedding(to_i32(floor(to_f32(k) * 0.5)) * 7 % 6, w)", {"w": [6, 6]},
                               lambda k, w: F.embedding(torch.floor(k * 0.5).to(torch.int32) * 7 % 6, w)),
    "embedding": Case("k", "y = embedding(k, w)", {"w": [11, 6]}, lambda k, w: F.embedding(k, w)),
}
LOSSES = {
    "cross_entropy": Case("x c", "y = cross_entropy(x * s, c)", {"s": [19]}, lambda x, c, s: F.cross_entropy(x * s, c.long()), loosen=2),
    "smoothed": Case("x c", "y = cross_entropy(x * s, c; label_smoothing = 0.2, ignore = 3)", {"s": [19]},
                     lambda x, c, s: F.cross_entropy(x * s, c.long(), label_smoothing=0.2, ignore_index=3), loosen=2),
    "cross_entropy_3d": Case("t k", "y = cross_entropy(linear(t, w), k)", {"w": [11, 8]},
                             lambda t, k, w: F.cross_entropy(F.linear(t, w).flatten(0, 1), k.flatten().long()), loosen=2),
    "mse": Case("x p", "y = mse_loss(x * s, p * q)", {"s": [19], "q": [19]}, lambda x, p, s, q: F.mse_loss(x * s, p * q)),
    "bce": Case("x u", "y = bce_with_logits(x * s, u)", {"s": [19]}, lambda x, u, s: F.binary_cross_entropy_with_logits(x * s, u)),
}
CLASS_WEIGHTS = [0.5 + 0.25 * c for c in range(19)]
CLASS_WEIGHT = "w = 0.5 + 0.25 * to_f32(arange(; count = 19))\n"
MORE_LOSSES = {
    "weighted": Case("x c", CLASS_WEIGHT + "y = cross_entropy(x * s, c, w; label_smoothing = 0.2, ignore = 3)", {"s": [19]},
                     lambda x, c, s: F.cross_entropy(x * s, c.long(), x.new_tensor(CLASS_WEIGHTS), label_smoothing=0.2, ignore_index=3), loosen=2),
    "given_weights": Case("t k", "y = cross_entropy(linear(t * s, w), k, [0.5, 0.7, 1, 2.5, 0.1, 1.0, 1.5, 3.0, 0.25, 1.0, 2.0])", {"s": [8], "w": [11, 8]},
                          lambda t, k, s, w: F.cross_entropy(F.linear(t * s, w).flatten(0, 1), k.flatten().long(),
                                                             t.new_tensor([0.5, 0.7, 1, 2.5, 0.1, 1.0, 1.5, 3.0, 0.25, 1.0, 2.0])), loosen=2),
    "given_kernel": image("conv2d(h, tensor(1, 0, -1, 2, 0, -2, 1, 0, -1; shape = [1, 1, 3, 3]) * w)",
                          lambda h, w: F.conv2d(h, h.new_tensor([[1, 0, -1], [2, 0, -2], [1, 0, -1]]) * w), {"w": [2, 4, 1, 1]}),
    "l1": Case("x p", "y = l1_loss(x * s, p * q)", {"s": [19], "q": [19]}, lambda x, p, s, q: F.l1_loss(x * s, p * q), loosen=4),
    "smooth_l1": Case("x p", "y = smooth_l1_loss(x * s, p * q; beta = 0.7)", {"s": [19], "q": [19]},
                      lambda x, p, s, q: F.smooth_l1_loss(x * s, p * q, beta=0.7)),
    "huber": Case("x p", "y = huber_loss(x * s, p * q; delta = 0.7)", {"s": [19], "q": [19]}, lambda x, p, s, q: F.huber_loss(x * s, p * q, delta=0.7)),
    "kl": Case("x p", "y = kl_div(log_softmax(x * s), softmax(p * q))", {"s": [19], "q": [19]},
               lambda x, p, s, q: F.kl_div((x * s).log_softmax(1), (p * q).softmax(1), reduction="batchmean"), loosen=4),
    "kl_mean": Case("x p", "y = kl_div(x * s, p; reduction = mean)", {"s": [19]}, lambda x, p, s: F.kl_div(x * s, p, reduction="mean")),
    "dice": Case("x u", "y = dice_loss(sigmoid(x * s), u)", {"s": [19]},
                 lambda x, u, s: 1 - (2 * ((x * s).sigmoid() * u).sum() + 1) / ((x * s).sigmoid().sum() + u.sum() + 1), loosen=2),
    "cosine": Case("x p", "y = cosine_similarity(x * s, p * q)", {"s": [19], "q": [19]}, lambda x, p, s, q: F.cosine_similarity(x * s, p * q), loosen=2),
    "cosine_small": Case("t", "y = cosine_similarity(t * s, t; dim = -1, eps = 2.0)", {"s": [8]}, lambda t, s: F.cosine_similarity(t * s, t, dim=-1, eps=2.0)),
    "logsumexp": sequence("logsumexp(h; dims = 2)", lambda h: h.logsumexp(2)),
    "logsumexp_two": sequence("logsumexp(h; dims = (1, 2), keep = true)", lambda h: h.logsumexp((1, 2), keepdim=True)),
    "norm": sequence("norm(h; dims = 1)", lambda h: torch.linalg.vector_norm(h, 2, 1)),
    "norm_1": sequence("norm(h; p = 1, dims = (0, 2))", lambda h: torch.linalg.vector_norm(h, 1, (0, 2)), loosen=4),
    "norm_3": sequence("norm(h; p = 3, dims = 2, keep = true)", lambda h: torch.linalg.vector_norm(h, 3, 2, keepdim=True)),
    "norm_0": sequence("norm(h; p = 0, dims = 2) * norm(h; dims = 2)", lambda h: torch.linalg.vector_norm(h, 0, 2) * torch.linalg.vector_norm(h, 2, 2)),
    "norm_inf": sequence("norm(h; p = inf, dims = 1)", lambda h: torch.linalg.vector_norm(h, torch.inf, 1), loosen=4),
    "prod": sequence("prod(tanh(h) + 1.2; dims = 1)", lambda h: (h.tanh() + 1.2).prod(1), loosen=4),
}
LINES = {
    "cumsum": sequence("cumsum(h; dim = 2)", lambda h: h.cumsum(2)),
    "cumsum_middle": sequence("cumsum(h; dim = 1)", lambda h: h.cumsum(1)),
    "top_k": Case("t", "y, at = top_k(t * s; k = 3)\ny = y * (to_f32(at) + 1.0)", {"s": [8]}, lambda t, s: (t * s).topk(3)[0] * ((t * s).topk(3)[1] + 1), loosen=4),
    "top_k_middle": Case("t", "y, at = top_k(t * s; k = 5, dim = 1)\ny = y * (to_f32(at) + 1.0)", {"s": [8]},
                         lambda t, s: (t * s).topk(5, 1)[0] * ((t * s).topk(5, 1)[1] + 1), loosen=4),
    "roll": sequence("roll(h; shift = 3, dim = 2)", lambda h: h.roll(3, 2)),
    "roll_back": sequence("roll(h; shift = -2, dim = 1)", lambda h: h.roll(-2, 1)),
    "tril": sequence("tril(h; diagonal = 1)", lambda h: h.tril(1)),
    "triu": sequence("triu(h; diagonal = -1)", lambda h: h.triu(-1)),
    "one_hot": Case("k", "y = linear(one_hot(k; count = 11), w)", {"w": [4, 11]}, lambda k, w: F.linear(F.one_hot(k, 11).to(w), w)),
    "gather": Case("x k", "y = gather(x * s, k; dim = 1)", {"s": [19]}, lambda x, k, s: (x * s).gather(1, k)),
    "scatter_add": Case("x k t", "y = scatter_add(x * s, k, slice(reshape(t; shape = [N, 40]); dim = 1, from = 0, to = 5) * q; dim = 1)", {"s": [19], "q": [5]},
                        lambda x, k, t, s, q: (x * s).scatter_add(1, k, t.flatten(1)[:, :5] * q)),
}


def angles(count, size, theta, together):
    """[count, size]: together says how the angles of pairs become the angles of features."""
    of_pairs = torch.arange(count).double()[:, None] / theta ** (torch.arange(0, size, 2).double() / size)
    return together(of_pairs)


def twice(t):
    return torch.cat([t, t], -1)


def interleaved(t):
    return t.repeat_interleave(2, -1)


def turned(h, theta=10000.0):
    """LLaMA's convention."""
    a, half = angles(h.shape[-2], h.shape[-1], theta, twice), h.shape[-1] // 2
    return h * a.cos() + torch.cat([-h[..., half:], h[..., :half]], -1) * a.sin()


def turned_interleaved(h, theta=10000.0):
    a = angles(h.shape[-2], h.shape[-1], theta, interleaved)
    return h * a.cos() + torch.stack([-h[..., 1::2], h[..., ::2]], -1).flatten(-2) * a.sin()


ROTARY = {
    "halves": sequence("rotary(h)", turned),
    "halves_theta": sequence("rotary(h; theta = 50.0)", lambda h: turned(h, 50.0)),
    "interleaved": sequence("rotary(h; interleaved = true, theta = 500000)", lambda h: turned_interleaved(h, 500000)),
    "heads": image("rotary(h)", turned),
    "heads_interleaved": image("rotary(h; interleaved = true)", turned_interleaved),
    "tables": Case("i", "c, n = rotary_tables(; count = 7, size = 6, theta = 20.0)\ny = rotary(i * s, c, n)", {"s": [4, 1, 1]}, lambda i, s: turned(i * s, 20.0)),
    "tables_interleaved": Case("i", "c, n = rotary_tables(; count = 7, size = 6, interleaved = true)\ny = rotary(i * s, c, n; interleaved = true)", {"s": [4, 1, 1]},
                               lambda i, s: turned_interleaved(i * s)),
}


def einsum(equation, *sizes, **options):
    """Of h [N, 5, 8], and a parameter where the equation has two tensors."""
    params = {"w": list(sizes)} if sizes else {}
    return sequence(f'einsum(h{", w" if sizes else ""}; equation = "{equation}")', lambda h, *w: torch.einsum(equation, h, *w), params, **options)


EINSUM = {
    "einsum_sum": einsum("bij->bi"),
    "einsum_permute": einsum("bij->bji"),
    "einsum_middle": einsum("b i j -> b j"),
    "einsum_matrix": einsum("bti,oi->bto", 7, 8),
    "einsum_default": einsum("bti,io", 8, 7),
    "einsum_vector": einsum("bij,j->bi", 8),
    "einsum_both": einsum("bij,ij->b", 5, 8),
    "einsum_rows": einsum("bij,kj->bki", 3, 8),
    "einsum_elements": einsum("bij,i->bij", 5),
    "einsum_outer": einsum("bij,k->bkj", 3),
    "einsum_all": einsum("bij,ij->", 5, 8),
    "einsum_batch": Case("t", 'y = einsum(t * s, t; equation = "bij,bik->jk")', {"s": [8]}, lambda t, s: torch.einsum("bij,bik->jk", t * s, t)),
    "einsum_heads": Case("i", 'y = einsum(i * s, i; equation = "bhtd,bhsd->bhts")', {"s": [4, 1, 1]}, lambda i, s: torch.einsum("bhtd,bhsd->bhts", i * s, i)),
    "einsum_mixed": Case("i t", 'y = einsum(i * s, slice(t; dim = 2, from = 0, to = 7); equation = "bhtd,bct->bdhc")', {"s": [4, 1, 1]},
                         lambda i, t, s: torch.einsum("bhtd,bct->bdhc", i * s, t[:, :, :7])),
}


def recurrent(name, hidden, options="", layers=1, states=0, **settings):
    """torch.nn's layer over t [N, 5, 8]; settings: its other arguments, options: ours; states: the number of first states, made of t."""
    module = getattr(torch.nn, name.upper())(8, hidden, layers, batch_first=True, **settings).double()
    sizes = {p: list(value.shape) for p, value in module.named_parameters()}

    def run(h, *params):
        first = [part.transpose(0, 1) for part in (h[:, :runs, :hidden], h[:, -runs:, -hidden:])][:states]
        state = () if not states else (tuple(first) if states > 1 else first[0],)
        return torch.func.functional_call(module, dict(zip(sizes, params)), (h, *state))[0]

    runs = layers * (2 if settings.get("bidirectional") else 1)
    parts = [f"transpose(slice(slice(h; dim = 1, from = {i}, to = {i + runs}); dim = 2, from = {j}, to = {j + hidden}); a = 0, b = 1)"
             for i, j in ((0, 0), (5 - runs, 8 - hidden))][:states]
    code = f"{name}({', '.join(['h'] + parts)}; hidden = {hidden}{f', layers = {layers}' if layers > 1 else ''}{options}) as a"
    return sequence(code, run, {f"a.{p}": size for p, size in sizes.items()}, loosen=4)


RECURRENT = {
    "rnn": recurrent("rnn", 6),
    "rnn_relu": recurrent("rnn", 2, ", relu = true, bias = false", nonlinearity="relu", bias=False),
    "rnn_both": recurrent("rnn", 4, ", bidirectional = true", 2, bidirectional=True),
    "lstm": recurrent("lstm", 6),
    "lstm_bare": recurrent("lstm", 9, ", bias = false", bias=False),
    "lstm_both": recurrent("lstm", 3, ", bidirectional = true", 2, bidirectional=True),
    "gru": recurrent("gru", 6),
    "gru_bare": recurrent("gru", 9, ", bias = false", bias=False),
    "rnn_states": recurrent("rnn", 4, ", bias = false", states=1, bias=False),
    "lstm_states": recurrent("lstm", 3, ", bidirectional = true", 2, states=2, bidirectional=True),
    "gru_states": recurrent("gru", 3, "", 2, states=1),
    "gru_both": recurrent("gru", 3, ", bidirectional = true", 2, bidirectional=True),
}


def pairs(code, function, inputs="x p", params=None, **options):
    """z: [N, N], every sample of h beside every one of p, in rows of h."""
    return Case(inputs, f"h = x * s\nz = 0.1 * matmul(h, transpose(p))\n{code}", {"s": [19], **(params or {})},
                lambda x, p, s, *more: function(0.1 * ((x * s) @ p.T), x, p, *([s] if function.__code__.co_argcount > 3 else []), *more), **options)


def numbers(z):
    return torch.arange(len(z))


def without_own(z):
    return torch.where(torch.eye(len(z)) > 0, -9.0, z)


OWN = "d = arange(; count = N)\nown = reshape(d; shape = [N, 1]) == d\n"
SAMPLES = {
    "softmax": pairs("y = matmul(softmax(z), x)", lambda z, x, p: z.softmax(1) @ x),
    "softmax_down": pairs("y = matmul(softmax(z; dim = 0), x)", lambda z, x, p: z.softmax(0) @ x),
    "entropy": pairs("y = cross_entropy(z, arange(; count = N))", lambda z, x, p: F.cross_entropy(z, numbers(z)), loosen=2),
    "entropy_down": pairs("y = cross_entropy(transpose(z), arange(; count = N))", lambda z, x, p: F.cross_entropy(z.T, numbers(z)), loosen=2),
    "entropy_both": pairs("y = cross_entropy(z, arange(; count = N)) + cross_entropy(transpose(z), arange(; count = N))",
                          lambda z, x, p: F.cross_entropy(z, numbers(z)) + F.cross_entropy(z.T, numbers(z)), loosen=2),
    "smoothed": pairs("y = cross_entropy(z, arange(; count = N); label_smoothing = 0.2)",
                      lambda z, x, p: F.cross_entropy(z, numbers(z), label_smoothing=0.2), loosen=2),
    "stacked": pairs("y = cross_entropy(stack(z, transpose(z); dim = 0), stack(arange(; count = N), arange(; count = N); dim = 0))",
                     lambda z, x, p: F.cross_entropy(torch.cat([z, z.T]), torch.cat([numbers(z), numbers(z)])), loosen=2),
    "others": pairs(OWN + "y = mean(log_softmax(where(own, -9.0, z)); dims = 1)", lambda z, x, p: without_own(z).log_softmax(1).mean(1), loosen=2),
    "diagonal": pairs(OWN + "y = sum(where(own, z, 0.0 * z); dims = 1)", lambda z, x, p: z.diagonal()),
    "diagonal_down": pairs(OWN + "y = sum(where(own, z, 0.0 * z); dims = 0)", lambda z, x, p: z.diagonal()),
    "transposed": pairs("y = sum(z * transpose(z) * relu(z); dims = 1)", lambda z, x, p: (z * z.T * z.relu()).sum(1), loosen=4),
    "mse": pairs("y = mse_loss(z, transpose(z))", lambda z, x, p: F.mse_loss(z, z.T)),
    "bce": pairs(OWN + "y = bce_with_logits(z, where(own, 1.0 + 0.0 * z, 0.0 * z))",
                 lambda z, x, p: F.binary_cross_entropy_with_logits(z, torch.eye(len(z), dtype=z.dtype))),
    "reshaped": pairs("y = sum(reshape(reshape(z * z; shape = [1, N, N]); shape = [N, N]); dims = 0)",
                      lambda z, x, p: (z * z).sum(0)),
    "product_of": pairs("y = matmul(matmul(z, z), x)", lambda z, x, p: z @ z @ x),
    "product_of_transposed": pairs("y = matmul(matmul(z, transpose(z)), x)", lambda z, x, p: z @ z.T @ x),
    "product_by": pairs("y = matmul(transpose(z), matmul(z, x))", lambda z, x, p: z.T @ (z @ x)),
    "batched": Case("x p", "b = stack(x * s, p; dim = 0)\ny = sum(softmax(0.1 * matmul(b, transpose(b))); dims = (0, 1))", {"s": [19]},
                    lambda x, p, s: (0.1 * torch.stack([x * s, p]) @ torch.stack([x * s, p]).transpose(1, 2)).softmax(2).sum((0, 1))),
    "tokens": Case("t x", "h = reshape(linear(t, w); shape = [5 * N, 19])\nz = reshape(matmul(h, transpose(x)); shape = [N, 5, N])\n"
                          "y = cross_entropy(0.1 * max(z; dims = 1), arange(; count = N))", {"w": [19, 8]},
                   lambda t, x, w: F.cross_entropy(0.1 * (F.linear(t, w).flatten(0, 1) @ x.T).view(N, 5, N).amax(1), torch.arange(N)), loosen=4),
    "token_pairs": Case("t x", "h = reshape(linear(t, w); shape = [5 * N, 19])\nz = reshape(matmul(h, transpose(x)); shape = [N, 5, N])\n"
                               "y = sum(softmax(0.1 * z; dim = 1) * z; dims = (0, 1))", {"w": [19, 8]},
                        lambda t, x, w: ((0.1 * (z := (F.linear(t, w).flatten(0, 1) @ x.T).view(N, 5, N))).softmax(1) * z).sum((0, 1)), loosen=4),
    "turned": pairs("y = sum(transpose(matmul(transpose(p), z)); dims = 1)", lambda z, x, p: (p.T @ z).T.sum(1)),
    "row_of_samples": pairs("y = sum(transpose(h) * sum(z; dims = 1); dims = 1)", lambda z, x, p, s: ((x * s).T * z.sum(1)).sum(1)),
}
SAMPLE_SUMS = {
    "sum": pairs("y = sum(z * z)", lambda z, x, p: (z * z).sum()),
    "mean": pairs("y = mean(z * z)", lambda z, x, p: (z * z).mean()),
    "sum_right": pairs("y = sum(z * z; dims = 1)", lambda z, x, p: (z * z).sum(1)),
    "mean_down": pairs("y = mean(z * z; dims = 0)", lambda z, x, p: (z * z).mean(0)),
    "mean_kept": pairs("y = sum(z * mean(z; dims = 0, keep = true); dims = 1)", lambda z, x, p: (z * z.mean(0, keepdim=True)).sum(1)),
    "max_right": pairs("y = max(z; dims = 1)", lambda z, x, p: z.amax(1), loosen=4),
    "min_down": pairs("y = min(z; dims = 0)", lambda z, x, p: z.amin(0), loosen=4),
    "var": pairs("y = var(z + 0.1; correction = 0)", lambda z, x, p: z.var(correction=0), loosen=4),
    "std_down": pairs("y = std(z; dims = 0)", lambda z, x, p: z.std(0), loosen=4),
    "var_down": pairs("y = var(z; dims = 0, correction = 0)", lambda z, x, p: z.var(0, correction=0), loosen=4),
    "along_rows": pairs("v = mean(h; dims = 1)\ny = sum(tanh(z + v) * v; dims = 1)",
                        lambda z, x, p, s: (torch.tanh(z + (x * s).mean(1)) * (x * s).mean(1)).sum(1)),
    "down_rows": pairs("v = mean(h; dims = 1, keep = true)\ny = sum(tanh(z + v) * v; dims = 0)",
                       lambda z, x, p, s: (torch.tanh(z + (x * s).mean(1, keepdim=True)) * (x * s).mean(1, keepdim=True)).sum(0)),
    "outer": pairs("v = mean(h; dims = 1)\ny = sum(exp(reshape(v; shape = [N, 1]) - v) * z; dims = 1)",
                   lambda z, x, p, s: (torch.exp((x * s).mean(1)[:, None] - (x * s).mean(1)) * z).sum(1)),
    "distances": pairs("q = sum(h * h; dims = 1, keep = true) + sum(p * p; dims = 1) - z\ny = mean(sqrt(q * q + 1.0))",
                       lambda z, x, p, s: (((x * s) ** 2).sum(1, keepdim=True) + (p * p).sum(1) - z).square().add(1).sqrt().mean()),
}


def halves(*tensors):
    return torch.cat(tensors)


def nt_xent(h, p):
    """SimCLR's loss: a sample of 2 N has to find its other view among all others."""
    z = 0.1 * halves(h, p) @ halves(h, p).T
    return F.cross_entropy(torch.where(torch.eye(len(z)) > 0, -1000.0, z), (torch.arange(len(z)) + len(h)) % len(z))


BATCH = {
    "concat_batch": Case("x p", "c = concat(x * s, p * q; dim = 0)\ny = slice(c; dim = 0, from = N, to = 2 * N) * slice(c; dim = 0, from = 0, to = N)",
                         {"s": [19], "q": [19]}, lambda x, p, s, q: x * s * p * q),
    "concat_parts": Case("x p", "c = concat(x * s, concat(p, x * s; dim = 0); dim = 0)\nl = slice(c; dim = 0, from = N, to = 3 * N)\n"
                                "y = mean(tanh(l) * l; dims = 1)\ny = slice(y; dim = 0, from = N, to = 2 * N)", {"s": [19]},
                         lambda x, p, s: (torch.tanh(x * s) * x * s).mean(1)),
    "concat_images": Case("i", "c = concat(i * s, i; dim = 0)\ny = slice(conv2d(c, w; padding = 1); dim = 0, from = 0, to = N)", {"s": [4, 1, 1], "w": [3, 4, 3, 3]},
                          lambda i, s, w: F.conv2d(i * s, w, padding=1)),
    "concat_columns": pairs("c = concat(z, z * z; dim = 1)\ny = sum(softmax(c) * slice(c; dim = 1, from = 0, to = 2 * N); dims = 1)",
                            lambda z, x, p: (torch.cat([z, z * z], 1).softmax(1) * torch.cat([z, z * z], 1)).sum(1), loosen=2),
    "slice_columns": pairs("c = concat(z, z * z; dim = 1)\ny = sum(softmax(slice(c; dim = 1, from = N, to = 2 * N)) * z; dims = 0)",
                           lambda z, x, p: ((z * z).softmax(1) * z).sum(0), loosen=2),
    "nt_xent": Case("x p", "c = concat(x * s, p; dim = 0)\nz = 0.1 * matmul(c, transpose(c))\nd = arange(; count = 2 * N)\n"
                           "z = where(reshape(d; shape = [2 * N, 1]) == d, -1000.0, z)\n"
                           "other = concat(slice(d; dim = 0, from = N, to = 2 * N), slice(d; dim = 0, from = 0, to = N); dim = 0)\n"
                           "y = cross_entropy(z, other)", {"s": [19]}, lambda x, p, s: nt_xent(x * s, p), loosen=2),
}
MOST_CASES = 13  # in a model that reads two inputs besides a weight for each case: amprun feeds 16


def in_parts(name, cases):
    names, count = list(cases), -(-len(cases) // MOST_CASES)
    return {f"{name}_{i}": {n: cases[n] for n in names[i::count]} for i in range(count)}


THEMES = {**in_parts("pointwise", POINTWISE_CASES), "functions": FUNCTIONS, "activations": ACTIVATIONS, "arithmetic": ARITHMETIC, "products": PRODUCTS,
          "convolutions": CONVOLUTIONS, "transposed": TRANSPOSED, "norms": NORMS, "images": IMAGES, "reductions": REDUCTIONS, "movement": MOVEMENT, "losses": LOSSES,
          "more_losses": MORE_LOSSES, "lines": LINES, "rotary": ROTARY, "einsum": EINSUM, "recurrent": RECURRENT, "samples": SAMPLES, "sample_sums": SAMPLE_SUMS, "batch": BATCH}


# ---- PyTorch's side ---------------------------------------------------------------------------------------------------------------


def make_params(cases):
    return {f"{name}.{param}": torch.rand(sizes) + 0.5 if case.positive else torch.randn(sizes)
            for name, case in cases.items() for param, sizes in case.params.items()}


def buffers(cases):
    """What batch norm keeps besides its parameters."""
    found = {}
    for name, case in cases.items():
        for channels in (sizes for param, sizes in case.params.items() if param == "bn.weight"):
            found[f"{name}.bn.running_mean"], found[f"{name}.bn.running_var"] = running(channels[0])
            found[f"{name}.bn.num_batches_tracked"] = torch.tensor(0)
    return found


class Reference:
    """The cases of a theme in float64, from numbers that f32 holds."""

    def __init__(self, cases):
        torch.manual_seed(0)
        names = [name for name in INPUTS if any(name in case.inputs for case in cases.values())]
        self.inputs = {name: INPUTS[name][2]() for name in names}
        self.params, self.buffers = make_params(cases), buffers(cases)
        self.weights, self.grads = {}, {}
        wide = {name: t.double() if t.is_floating_point() else t for name, t in self.inputs.items()}
        for name, case in cases.items():
            own = [self.params[f"{name}.{p}"].double().requires_grad_() for p in case.params]
            y = case.torch_code(*(wide[i] for i in case.inputs), *own)
            self.weights[name] = torch.rand(y.shape) + 0.5
            (y * self.weights[name].double()).sum().backward()
            self.grads.update((f"{name}.{p}", value.grad) for p, value in zip(case.params, own))
            if not self.by_sample(name):
                self.grads[f"{name}.r"] = y.detach()

    def by_sample(self, name):
        """Whether the case's result has a row for each sample, so that its weights are an input."""
        shape = self.weights[name].shape
        return len(shape) > 0 and shape[0] == N


# ---- our side ---------------------------------------------------------------------------------------------------------------------


def shape_text(shape):
    """[13, 5] as [N, 5]: a dimension that is a multiple of the batch depends on it."""
    dims = [f"{d // N} * N" if d != N and d % N == 0 else "N" if d == N else str(d) for d in shape]
    return f"[{', '.join(dims)}]" if dims else ""


def block_text(name, case, reference):
    own = {p: sizes for p, sizes in case.params.items() if "." not in p}  # the others belong to layers
    if not reference.by_sample(name):
        own["r"] = reference.weights[name].shape
    params = "".join(f"    param {p}: f32{shape_text(sizes)} = zeros()\n" for p, sizes in own.items())
    code = "".join(f"    {line}\n" for line in case.code.split("\n"))
    inputs = case.inputs + ([] if "r" in own else ["r"])
    return f"block case_{name}({', '.join(inputs)}) {{\n{params}{code}    return sum(y * r)\n}}\n"


def model_text(cases, reference):
    inputs = [f"{name}: {INPUTS[name][0]}{shape_text(INPUTS[name][1])}" for name in reference.inputs]
    inputs += [f"r_{name}: f32{shape_text(w.shape)}" for name, w in reference.weights.items() if reference.by_sample(name)]
    calls = ""
    for name, case in cases.items():
        given = case.inputs + ([f"r_{name}"] if reference.by_sample(name) else [])
        calls += f"    y_{name} = case_{name}({', '.join(given)}) as {name}\n"
    return ("amp 1\n" + "".join(block_text(name, case, reference) for name, case in cases.items()) +
            f"model m({', '.join(inputs)}) -> total {{\n{calls}    total = {' + '.join('y_' + name for name in cases)}\n}}\n" +
            "train m {\n    loss = total\n    optimizer = sgd(lr = 1.0)\n}\nprecision fp32 { }\n")


def precision_options(options, precision):
    if precision == "fp32":
        return ["--precision", "fp32"]
    path = os.path.join(options.work, f"{precision}.policy")
    with open(os.path.join(tools.ROOT, f"precision/policies/torch-{precision}.policy"), encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "op mul lower\n")
    return ["--policy", path]


def our_gradients(options, theme, reference, precision, extra=()):
    path = os.path.join(options.work, theme)
    with open(path + ".amp", "w", encoding="utf-8") as file:
        file.write(model_text(THEMES[theme], reference))
    model = tools.compile_model(path + ".amp", path + ".so", "--isa", "portable", *precision_options(options, precision), *extra)
    weights = {**reference.params, **reference.buffers}
    weights.update((f"{name}.r", w) for name, w in reference.weights.items() if not reference.by_sample(name))
    save_file({name: t.contiguous() for name, t in weights.items()}, path + ".weights.safetensors")
    batch = {name: t if t.is_floating_point() else t.to(torch.int32) for name, t in reference.inputs.items()}
    batch.update((f"r_{name}", w) for name, w in reference.weights.items() if reference.by_sample(name))
    save_file({name: t.contiguous() for name, t in batch.items()}, path + ".batch.safetensors")
    scale = ["--scale", FP16_SCALE] if precision == "fp16" else []
    tools.step(model, "--weights", path + ".weights.safetensors", "--inputs", path + ".batch.safetensors", "--grads", path + ".grads.safetensors", *scale)
    return tools.read_tensors(path + ".grads.safetensors")


def differences(ours, reference, name, case, bound):
    for param in [*case.params] + ([] if reference.by_sample(name) else ["r"]):
        wanted = reference.grads[f"{name}.{param}"]
        error = float((ours[f"{name}.{param}"].double() - wanted).norm() / (wanted.norm() + 1e-12))
        if not error <= bound * case.loosen:
            yield f"gradient of {param}: relative error {error:.3g}, bound {bound * case.loosen:.3g}"


# ---- checks -------------------------------------------------------------------------------------------------------------------------


def every_op(tally, options):
    for theme, cases in THEMES.items():
        reference = Reference(cases)
        for precision, bound in BOUNDS.items():
            variants = ([], ["--no-pass=fuse"], ["--no-pass=layout"]) if options.long else ([],)
            for extra in variants:
                ours = our_gradients(options, theme, reference, precision, extra)
                for name, case in cases.items():
                    tally.same(" ".join([theme, name, precision, *extra]), differences(ours, reference, name, case, bound))


def every_op_is_here(tally, options):
    """The ops that gradient_cases.h and pointwise.def list: those that autodiff differentiates."""
    with open(os.path.join(tools.ROOT, "tests/passes/gradient_cases.h"), encoding="utf-8") as file:
        ops = set(re.findall(r"%y(?:, %\w+)* = (\w+)\(", file.read())) - {"cast", "dropout", "expand"}
    ops |= {row[0] for row in pointwise_rows()}
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "remainder": "%", "neg": "-("}
    layers = {"log_softmax": "log_softmax(", "nll_loss": "cross_entropy("}
    code = " ".join(case.code for cases in THEMES.values() for case in cases.values())
    tally.same("every op has a case", [op for op in sorted(ops) if signs.get(op, layers.get(op, op + "(")) not in code])


def a_wrong_gradient_is_seen(tally, options):
    reference = Reference(LOSSES)
    ours = our_gradients(options, "losses", reference, "fp32")
    ours["mse.q"] = -ours["mse.q"]
    tally.seen("a gradient of the wrong sign", differences(ours, reference, "mse", LOSSES["mse"], BOUNDS["fp16"]))
    ours["bce.s"] = ours["bce.s"] * 1.001
    tally.seen("a gradient that is 0.1 % too long", differences(ours, reference, "bce", LOSSES["bce"], BOUNDS["fp32"]))


if __name__ == "__main__":
    harness.main(__doc__, [every_op, every_op_is_here], [a_wrong_gradient_is_seen])
