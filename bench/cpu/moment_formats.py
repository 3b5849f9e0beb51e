"""moment_formats.py: which short numbers Adam's moments may be, tried in PyTorch before any was built: AdamW of a
perceptron (Fashion-MNIST, three epochs, constant rate) and of a small GPT over bytes (400 steps, cosine, beta2 = 0.98,
clipped) with moments rounded after each step, three seeds each.

    .torch-env/bin/python bench/cpu/moment_formats.py [--models mlp,gpt] [--formats NAME;NAME]

Names say what m and v are, as bits of exponent and mantissa (e5m2 with a sign, for m).  |blocks| are the codes of
Dettmers et al. 2022, to nearest, with a scale for 32 neighbours; the others are rounded stochastically.  Parameters of
one dimension keep f32 moments.
"""
import argparse
import gzip
import math
import os
import statistics
import subprocess

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

IMAGES = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")

# ---- formats ---------------------------------------------------------------------------------------------------------


def rounded(x, mantissa, smallest, codes):
    """To numbers of |mantissa| bits from 2^smallest on, stochastically: |codes| of them, and 0."""
    bits = x.view(torch.int32)
    sign, size = bits & -2**31, bits & 0x7FFFFFFF
    drop = 23 - mantissa
    least = (smallest + 127) << 23
    up = torch.randint(0, 1 << drop, x.shape, dtype=torch.int32)
    cut = ((size + up) & ~((1 << drop) - 1)).clamp(max=least + ((codes - 1) << drop))
    share = size.view(torch.float32) * 2.0**-smallest
    rises = torch.rand_like(x) < share
    below = torch.where(rises, torch.full_like(cut, least), torch.zeros_like(cut))
    return (torch.where(size < least, below, cut) | sign).view(torch.float32)


def second_e6m2(x):
    """What is not zero stays so."""
    least = 1.25 * 2.0**-52
    return torch.where(x > 0, rounded(x.clamp(min=least), 2, -52, 255), x)


def dynamic_codes(bits):
    """Decades with twice as many numbers each as the one below it."""
    numbers = [0.0, 1.0]
    for i in range(bits):
        bounds = torch.linspace(0.1, 1, 2**i + 1)
        middle = (bounds[:-1] + bounds[1:]) / 2
        decade = (10.0**(i - bits + 1) * middle).tolist()
        numbers += decade if bits == 8 else decade + [-x for x in decade]
    return torch.tensor(sorted(numbers))


def in_blocks(x, codes):
    flat = x.reshape(-1)
    rows = F.pad(flat, (0, -flat.numel() % 32)).view(-1, 32)
    scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-38)
    nearest = codes[torch.bucketize(rows / scale, (codes[1:] + codes[:-1]) / 2)]
    return (nearest * scale).view(-1)[:x.numel()].view(x.shape)


SIGNED, UNSIGNED = dynamic_codes(7), dynamic_codes(8)
FORMATS = {
    "f32": (lambda m: m, lambda v: v),
    "e5m2, e6m2": (lambda m: rounded(m, 2, -26, 127), second_e6m2),
    "e6m1, e7m1": (lambda m: rounded(m, 1, -40, 126), lambda v: rounded(v, 1, -94, 254)),
    "blocks": (lambda m: in_blocks(m, SIGNED), lambda v: in_blocks(v, UNSIGNED)),
}

# ---- training --------------------------------------------------------------------------------------------------------


class AdamW:
    def __init__(self, net, form, beta2, decay):
        self.params = list(net.parameters())
        self.form, self.beta2, self.decay, self.steps = FORMATS[form], beta2, decay, 0
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, rate):
        self.steps += 1
        of_m, of_v = 1 - 0.9**self.steps, 1 - self.beta2**self.steps
        for i, p in enumerate(self.params):
            m = self.m[i] * 0.9 + (1 - 0.9) * p.grad
            v = self.v[i] * self.beta2 + (1 - self.beta2) * p.grad * p.grad
            p.mul_(1 - rate * self.decay).add_((m / of_m) / ((v / of_v).sqrt() + 1e-8), alpha=-rate)
            if p.dim() > 1:
                m, v = self.form[0](m), self.form[1](v)
            self.m[i], self.v[i], p.grad = m, v, None


def read_images(name, skip, shape):
    with gzip.open(os.path.join(IMAGES, name)) as file:
        return np.frombuffer(file.read(), np.uint8)[skip:].reshape(shape)


def read_pictures(part):
    x = read_images(f"{part}-images-idx3-ubyte.gz", 16, (-1, 784)).astype(np.float32) / 255 - 0.286
    y = read_images(f"{part}-labels-idx1-ubyte.gz", 8, -1).astype(np.int64)
    return torch.tensor(x) / 0.353, torch.tensor(y)


def train_mlp(form, seed):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = read_pictures("train")
    optimizer, order = AdamW(net, form, 0.999, 0.01), torch.Generator().manual_seed(seed)
    for _ in range(3):
        shuffled = torch.randperm(60000, generator=order)
        for i in range(60000 // 128):
            at = shuffled[i * 128:i * 128 + 128]
            F.cross_entropy(net(x[at]), y[at]).backward()
            optimizer.step(5e-4)
    with torch.no_grad():
        x, y = read_pictures("t10k")
        return F.cross_entropy(net(x), y).item()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.next, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = [z.view(b, t, 2, -1).transpose(1, 2) for z in self.qkv(self.norm(x)).split(c, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.next(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, 64), nn.Embedding(64, 64)
        self.blocks = nn.ModuleList(Block(64) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 256, bias=False)
        nn.init.normal_(self.bytes.weight, std=.02)
        nn.init.normal_(self.places.weight, std=.02)

    def forward(self, x):
        h = self.bytes(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def read_text():
    told = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    text = "\n".join(line.split(" ", 1)[-1] for line in told.splitlines())
    return torch.tensor(np.frombuffer(text.encode(), np.uint8).astype(np.int64))


def loss_of(net, text, at):
    x = torch.stack([text[k:k + 65] for k in at])
    return F.cross_entropy(net(x[:, :-1]).reshape(-1, 256), x[:, 1:].reshape(-1))


def train_gpt(form, seed):
    torch.manual_seed(seed)
    net, text, places = Gpt(), read_text(), torch.Generator().manual_seed(seed)
    optimizer, held_out = AdamW(net, form, 0.98, 0.1), len(text) * 9 // 10
    for i in range(400):
        loss_of(net, text, torch.randint(0, held_out - 65, (32,), generator=places)).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step(3e-3 * min(1, (i + 1) / 40) * 0.5 * (1 + math.cos(math.pi * i / 400)))
    places = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return statistics.mean(
            loss_of(net, text, torch.randint(held_out, len(text) - 65, (64,), generator=places)).item()
            for _ in range(20))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,gpt")
    parser.add_argument("--formats", default=";".join(FORMATS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for model in options.models.split(","):
        print(f"\n| {model} | loss |\n|---|---|", flush=True)
        for form in options.formats.split(";"):
            losses = [{"mlp": train_mlp, "gpt": train_gpt}[model](form, seed) for seed in (1, 2, 3)]
            print(f"| {form} | {statistics.mean(losses):.4f} ± {statistics.stdev(losses):.4f} |", flush=True)


if __name__ == "__main__":
    main()
