"""The peer of bench/run: the same model in PyTorch.

torch_peer.py mlp|cnn|gpt|resnet WIDTH PRECISION BATCH THREADS eager|compile|channels_last

Prints "ready", then answers each line K with the milliseconds of K training steps
(of processor time, where BENCH_CLOCK=processor in the environment).

BENCH_RANKS=FILE, RANK and WORLD_SIZE in the environment: one of several processes of DistributedDataParallel (gloo).
"""
import os
import sys
import time

import torch
import torch.distributed
import torch.nn as nn
import torch.nn.functional as F

clock = time.process_time if os.environ.get("BENCH_CLOCK") == "processor" else time.perf_counter
kind, width, precision, batch, threads, mode = sys.argv[1:7]
width, batch = int(width), int(batch)
torch.set_num_threads(int(threads))
torch.manual_seed(0)


def make_mlp():
    layers = [nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
    return nn.Sequential(*layers), torch.rand(batch, 784)


def make_cnn():
    def stage(channels, out):
        conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        return [conv, nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*stage(1, width), *stage(width, 2 * width), nn.Flatten(), nn.Linear(49 * 2 * width, 10)]
    return nn.Sequential(*layers), torch.rand(batch, 1, 28, 28)


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.downsample = nn.Sequential()
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def make_resnet():
    """bench/cpu/models/resnet.amp."""
    layers = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    for stage in range(4):
        out = width << stage
        layers += [Block(out // 2 if stage else out, out, 2 if stage else 1), Block(out, out, 1)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10)]
    return nn.Sequential(*layers), torch.rand(batch, 3, 32, 32)


VOCABULARY, TOKENS, HEADS, LAYERS = 256, 128, 4, 4


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        q, k, v = (
            part.reshape(-1, TOKENS, HEADS, width // HEADS).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(-1, TOKENS, width))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


class Gpt(nn.Module):
    """bench/cpu/models/gpt.amp."""

    def __init__(self):
        super().__init__()
        self.wpe = nn.Parameter(0.02 * torch.randn(TOKENS, width))
        self.wte = nn.Embedding(VOCABULARY, width)
        self.h = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe
        for layer in self.h:
            x = layer(x)
        return self.head(self.ln_f(x)).flatten(0, 1)


def make_gpt():
    return Gpt(), torch.randint(0, VOCABULARY, (batch, TOKENS))


model, x = {"mlp": make_mlp, "cnn": make_cnn, "gpt": make_gpt, "resnet": make_resnet}[kind]()
if mode == "channels_last":
    model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
if "BENCH_RANKS" in os.environ:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{os.environ['BENCH_RANKS']}", rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]))
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
low = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
y = torch.randint(0, 10, (batch * TOKENS if kind == "gpt" else batch,))


def loss_of(x, y):
    with torch.autocast("cpu", dtype=low or torch.bfloat16, enabled=low is not None):
        return F.cross_entropy(model(x), y)


if mode == "compile":
    loss_of = torch.compile(loss_of)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(x, y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


step()
print("ready", flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = clock()
        step()
        times.append(1e3 * (clock() - start))
    print(" ".join(f"{t:.4f}" for t in times), flush=True)
