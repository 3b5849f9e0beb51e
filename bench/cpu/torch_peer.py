"""The peer of bench/run: the same MLP in PyTorch.  torch_peer.py PRECISION HIDDEN BATCH THREADS eager|compile

Prints "ready", then answers each line K with the milliseconds of K training steps.
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

precision, hidden, batch, threads, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
torch.set_num_threads(threads)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
low = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
x = torch.rand(batch, 784)
y = torch.randint(0, 10, (batch,))


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
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    print(" ".join(f"{t:.4f}" for t in times), flush=True)
