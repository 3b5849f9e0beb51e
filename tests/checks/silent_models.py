"""silent_models.py FOLDER: models whose infinities or zeros in FP16 vanish again before the loss, clean models, data.

Prints a line for each model: its name, the data that it trains on, options of `amprun train`, and the path of the op
that is at fault; "-" where there is none."""
import random
import struct
import sys

import safetensors_write

STEM = "h = linear(x; out = 16) as stem"
IMAGE = STEM + "\ni = reshape(h; shape = [N, 1, 4, 4])"
FLAT = "h = flatten(i)"
# name: data, the op at fault, lines of the model
PLANTED = {
    "division": ("large", "mul", STEM, "h = h / sqrt(mean(h * h; dims = 1, keep = true) + 1e-6)"),
    "reciprocal": ("large", "mul", STEM, "h = 1.0 / (h * h + 1.0)"),
    "rsqrt": ("large", "mul", STEM, "h = h * rsqrt(h * h + 1.0)"),
    "exp": ("large", "mul", STEM, "h = exp(-(h * h))"),
    "tanh": ("large", "mul", STEM, "h = tanh(h * h)"),
    "sigmoid": ("large", "mul", STEM, "h = sigmoid(h * h)"),
    "silu": ("large", "mul", STEM, "h = silu(-(h * h))"),
    "clamp": ("large", "mul", STEM, "h = clamp(h * h; low = -1.0, high = 1.0)"),
    "minimum": ("large", "mul", STEM, "h = minimum(h * h, 5.0)"),
    "maximum": ("large", "mul", STEM, "h = maximum(-(h * h), -5.0)"),
    "where": ("large", "mul", STEM, "s = h * h\nh = where(s > 1000.0, h * 0.001, s * 0.001)"),
    "max_pool": ("large", "matmul",
        "param w: f32[16, 16] = ones()", STEM, "h = -relu(matmul(abs(h) * 40.0, w))",
        "i = max_pool2d(reshape(h; shape = [N, 1, 4, 4]); kernel = 2)", FLAT),
    "cube": ("large", "mul", STEM, "h = tanh(h * h * h)"),
    "product": ("large", "matmul", "param w: f32[16, 16] = ones()", STEM, "h = tanh(matmul(abs(h) * 40.0, w))"),
    "relu6": ("large", "matmul",
        "param w: f32[16, 16] = ones()", STEM, "h = minimum(relu(matmul(abs(h) * 40.0, w)), 6.0)"),
    "matmul": ("large", "matmul",
        "param w: f32[16, 16] = ones()", STEM, "h = clamp(matmul(abs(h) * 40.0, w); low = -3.0, high = 3.0)"),
    "softmax": ("large", "matmul",
        "param w: f32[16, 16] = ones()", STEM, "h = softmax(minimum(matmul(abs(h) * 40.0, w), 100.0); dim = 1)"),
    "add": ("large", "add", STEM, "a = h * 50.0\nh = tanh(a + a)"),
    "scale": ("large", "mul", STEM, "h = tanh(h * 5000.0)"),
    "square_of_sum": ("large", "mul", STEM, "s = mean(abs(h); dims = 1, keep = true)\nh = h / (1.0 + s * s)"),
    "distance": ("large", "mul",
        STEM, "d = h - mean(h; dims = 1, keep = true)\nh = 1.0 / (1.0 + mean(d * d; dims = 1, keep = true)) * h"),
    "gate": ("large", "mul", STEM, "h = sigmoid(h * h) * tanh(h)"),
    "in_block": ("large", "mul", STEM, "repeat i in 0..2 {\n    h = tanh(h * h * 3000.0)\n}"),
    "one_sample": ("one", "mul", STEM, "h = tanh(h * h)"),
    "small_square": ("good", "mul_2", STEM, "d = h * 0.00005\nh = h * 0.1 + d * d * 1000.0"),
    "small_variance": ("good", "mul_1",
        STEM, "d = h * 0.00005\nv = mean(d * d; dims = 1, keep = true)\nh = d / sqrt(v + 0.000001)"),
    "small_product": ("good", "mul_1", STEM, "h = h * 0.0001 * 0.0001 * 30000.0 * 3000.0"),
    "epsilon": ("good", "add", STEM, "h = h + clamp(1.0 / (relu(h) + 1e-8); low = 0.0, high = 4.0)"),
    "micro": ("large", "mul", STEM, "h = tanh(h * h)"),
    "evaluation": ("good", "mul", STEM, "h = tanh(h * h)"),
}
CLEAN = {
    "plain": ("good", STEM, "h = relu(h)"),
    "large_inputs": ("large", STEM, "h = tanh(h)"),
    "layer_norm": ("large", STEM, "h = layer_norm(h) as ln"),
    "batch_norm": ("large", STEM, "h = relu(batch_norm(h) as bn)"),
    "standardize": ("good", STEM, "h = h / sqrt(mean(h * h; dims = 1, keep = true) + 1e-6)"),
    "softmax": ("good", STEM, "h = softmax(h * 30.0; dim = 1)"),
    "masked": ("good", STEM, "h = softmax(where(x > 0.0, h, full(; shape = [N, 16], value = -inf)); dim = 1)"),
    "bias_mask": ("good", STEM, "h = softmax(h + where(x > 0.0, 0.0, -10000.0); dim = 1)"),
    "dropout": ("good", STEM, "h = dropout(relu(h); p = 0.5)"),
    "gelu": ("large", STEM, "h = gelu(h)"),
    "silu": ("large", STEM, "h = silu(h)"),
    "closed": ("good", STEM, "h = sigmoid(h * 10.0 - 30.0) + h"),
    "residual": ("good", STEM, "repeat i in 0..4 {\n    h = h + relu(linear(h; out = 16) as fc[i])\n}"),
    "gate": ("good", STEM, "h = sigmoid(h) * tanh(h)"),
    "pool": ("good", IMAGE, "i = max_pool2d(relu(conv2d(i; out = 4, kernel = 3, padding = 1) as c); kernel = 2)", FLAT),
    "zeros": ("zeros", STEM, "h = relu(h) * x"),
    "one_hot": ("good", STEM, "h = where(x > 1.0, h, 0.0)"),
    "safe_division": ("zeros", STEM, "h = where(x == 0.0, 0.0, h / x) * 0.01"),
    "swish": ("good", STEM, "h = h * sigmoid(h * 2.0)"),
    "exp": ("good", STEM, "h = exp(h - max(h; dims = 1, keep = true))"),
}


def write_data(folder):
    random.seed(1)
    t = [random.randrange(4) for _ in range(512)]
    for name, size, extra in (("large", 300.0, 3000.0), ("good", 1.0, 3.0), ("one", 1.0, 3.0), ("zeros", 1.0, 3.0)):
        x = [random.gauss(0, 1) * size + (extra if i == t[n] else 0) for n in range(512) for i in range(16)]
        if name == "one":
            x = [v * (3000 if i // 16 % 32 == 7 else 1) for i, v in enumerate(x)]
        if name == "zeros":
            x = [0.0 if random.random() < 0.5 else v for v in x]
        arrays = {"x": ("F32", [512, 16], struct.pack("<8192f", *x)), "t": ("I32", [512], struct.pack("<512i", *t))}
        safetensors_write.write(f"{folder}/{name}.st", arrays)


def write_model(path, name, lines):
    body = "\n".join(lines).replace("\n", "\n    ")
    extra = "\n    accumulate = 2" if name == "micro" else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"amp 1\nmodel m(x: f32[N, 16]) -> y {{\n    {body}\n    y = linear(h; out = 4) as head\n}}\n"
                   "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n"
                   f"    optimizer = adamw(0.003){extra}\n}}\n"
                   "precision fp16 { loss_scale = dynamic(init = 1024.0) }\n")


def main():
    folder = sys.argv[1]
    write_data(folder)
    for name, (data, op, *lines) in PLANTED.items():
        write_model(f"{folder}/planted_{name}.amp", name, lines)
        print(f"planted_{name} {data} {op}")
    for name, (data, *lines) in CLEAN.items():
        write_model(f"{folder}/clean_{name}.amp", name, lines)
        print(f"clean_{name} {data} -")


main()
