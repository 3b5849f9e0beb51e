"""tables.py: a step of an embedding of 2^12 and of 2^19 rows of 64 numbers with a linear layer after it, by Adam: all
rows updated, and the rows that the step reads (`lazy`), beside PyTorch's Adam and SparseAdam.

    .torch-env/python bench/cpu/tables.py [ROUNDS]

Each round runs all forms one after the other, on two threads; the table has the median of the rounds, and the memory of
a session (`amprun info`) or of PyTorch's weights, gradients and moments.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

PROGRAMS = os.environ.get("AMP_PROGRAMS", "bazel-bin/tools")
DIM, SAMPLES, THREADS, STEPS = 64, 256, 2, 48
MODEL = """amp 1
model table(ids: i32[N, {places}]) -> logits {{
    logits = linear(mean(embedding(ids; count = {rows}, dim = {dim}) as table; dims = (1)); out = 10) as head
}}
train table {{
    input label: i32[N]
    loss = cross_entropy(logits, label)
    optimizer = adam(lr = 0.001)
{group}}}
"""


def draw(rows, places, count):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(rows, (count, places), generator=generator, dtype=torch.int32)
    return ids, torch.randint(10, (count,), generator=generator, dtype=torch.int32)


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Ours:
    def __init__(self, folder, rows, places, lazy):
        path = os.path.join(folder, f"{rows}-{places}-{lazy}")
        group = '    group "table.*": lazy = true\n' if lazy else ""
        with open(path + ".amp", "w", encoding="utf-8") as file:
            file.write(MODEL.format(rows=rows, places=places, dim=DIM, group=group))
        run(f"{PROGRAMS}/ampc", path + ".amp", "--precision", "fp32", "--target", "cpu", "-o", path + ".so")
        ids, label = draw(rows, places, 8 * SAMPLES)
        save_file({"ids": ids, "label": label}, path + ".data")
        self.path = path

    def milliseconds(self):
        said = run(f"{PROGRAMS}/amprun", "train", self.path + ".so", "--data", f"safetensors:{self.path}.data",
                   "--batch", str(SAMPLES), "--steps", str(STEPS), "--threads", str(THREADS))
        speeds = [float(s) for s in re.findall(r"(\d+) samples/s", said)]
        return 1e3 * SAMPLES / statistics.median(speeds[1:])

    def megabytes(self):
        info = json.loads(run(f"{PROGRAMS}/amprun", "info", self.path + ".so", "--batch", str(SAMPLES), "--json"))
        return info["memory"]["total"] / 1e6


class Theirs:
    def __init__(self, rows, places, lazy):
        torch.manual_seed(0)
        self.table, self.head = torch.nn.Embedding(rows, DIM, sparse=lazy), torch.nn.Linear(DIM, 10)
        if lazy:
            self.optimizers = [torch.optim.SparseAdam(self.table.parameters()),
                               torch.optim.Adam(self.head.parameters())]
        else:
            self.optimizers = [torch.optim.Adam([*self.table.parameters(), *self.head.parameters()], fused=True)]
        ids, label = draw(rows, places, 8 * SAMPLES)
        self.batches = [(ids[i::8].long().contiguous(), label[i::8].long()) for i in range(8)]

    def step(self, ids, label):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        F.cross_entropy(self.head(self.table(ids).mean(1)), label).backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def milliseconds(self):
        for batch in self.batches:
            self.step(*batch)
        start = time.perf_counter()
        for i in range(STEPS):
            self.step(*self.batches[i % 8])
        return 1e3 * (time.perf_counter() - start) / STEPS

    def megabytes(self):
        count = 4 * self.table.weight.numel()
        grad = self.table.weight.grad
        rows = 4 * grad._values().numel() + 8 * grad._indices().numel() if grad.is_sparse else count
        return (3 * count + rows) / 1e6


def main():
    torch.set_num_threads(THREADS)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        forms = {}
        for places in (1, 16):
            for rows in (1 << 12, 1 << 19):
                for lazy in (False, True):
                    forms["ours", places, rows, lazy] = Ours(folder, rows, places, lazy)
                    forms["PyTorch", places, rows, lazy] = Theirs(rows, places, lazy)
        times = {key: [] for key in forms}
        for _ in range(rounds):
            for key, form in forms.items():
                times[key].append(form.milliseconds())
        print("| ids a step | rows | | all rows, ms | lazy, ms | all rows, MB | lazy, MB |")
        print("|--:|--:|---|--:|--:|--:|--:|")
        for who, places, rows, lazy in forms:
            if lazy:
                continue
            pair = [(who, places, rows, form) for form in (False, True)]
            cells = [f"{statistics.median(times[key]):.2f}" for key in pair]
            cells += [f"{forms[key].megabytes():.1f}" for key in pair]
            print(f"| {places * SAMPLES:,} | {rows:,} | {who} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
