"""distributed.py: trainings of two ranks, amprun's over MPI and PyTorch's DistributedDataParallel over gloo, from the
same weights, each rank with the same batches: the loss of each step and the weights at the end in FP32; in FP16 the
loss scale, where a sample of one rank alone overflows."""
import os
import subprocess

import torch
from torch import nn

import ampc_tools as tools
import ddp
import harness
import training
import twin

RANKS, STEPS, SAMPLES = 2, 20, 32  # samples of a rank in a step
SEED = 3
KINK = 1e-4         # how far from relu's kink preactivations are: further than 20 steps drift apart
LOSS_BOUND = 1e-5   # relative, as in steps.py; of what 20 steps have changed: as in training.py
FP16_LOSS_BOUND = 2e-3
WILD = {6: 1, 13: 0}  # step: the rank whose sample overflows f16


class Smooth(nn.Module):
    """tests/parity/models/smooth_cnn.amp"""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x, targets):
        x = torch.tanh(self.conv2(torch.tanh(self.conv1(x))))
        return nn.functional.cross_entropy(self.fc(torch.flatten(x, 1)), targets)


def make_smooth():
    torch.manual_seed(SEED)
    return Smooth()


def make_mlp():
    return twin.make(twin.SMALL, SEED)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


# ---- data ------------------------------------------------------------------------------------------------------------


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., SC 2011)."""
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


def order_of_samples(count):
    """Which rows of a file amprun takes one after the other in the first epoch."""
    path = 0x811C9DC5
    for byte in b"data.shuffle":
        path = (path ^ byte) * 0x01000193 & 0xFFFFFFFF
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = philox(SEED, (path, 0, 0, i // 4))[i % 4] * (i + 1) >> 32
        order[i], order[j] = order[j], order[i]
    return order


def draw(shape, generator, count):
    return torch.randn(count, *shape, generator=generator), torch.randint(10, (count,), generator=generator)


def away_from_kinks(module, batch):
    """A step's samples: the first of |batch| whose preactivations are so far from 0 that rounding turns no relu."""
    x, targets = batch
    if hasattr(module, "preactivations"):
        with torch.no_grad():
            safe = torch.stack([z.abs().min(dim=1).values > KINK for z in module.preactivations(x)]).all(dim=0)
        x, targets = x[safe], targets[safe]
    return x[:RANKS * SAMPLES], targets[:RANKS * SAMPLES]


def make_batches(make, make_optimizer, shape):
    """[step][rank]: chosen along the way of one process that has all of a step's samples."""
    module, generator, batches = make(), torch.Generator().manual_seed(SEED), []
    optimizer = make_optimizer(module.parameters())
    for _ in range(STEPS):
        x, targets = away_from_kinks(module, draw(shape, generator, 2 * RANKS * SAMPLES))
        optimizer.zero_grad()
        module(x, targets).backward()
        optimizer.step()
        batches.append(list(zip(x.split(SAMPLES), targets.split(SAMPLES))))
    return batches


def write_data(path, batches):
    """Such that rank r takes batches[s][r] in step s: its micro-batch is the one numbered s * RANKS + r."""
    x, targets = (torch.cat([part[i] for step in batches for part in step]) for i in (0, 1))
    rows = torch.empty(len(x), dtype=torch.int64)
    rows[torch.tensor(order_of_samples(len(x)))] = torch.arange(len(x))
    return tools.write_batch(path, x[rows], targets[rows])


# ---- ours ------------------------------------------------------------------------------------------------------------


def mpis():
    return subprocess.run(["bash", "-c", "source tests/checks/mpi.bash; mpis"], cwd=tools.ROOT, check=True, text=True,
                          capture_output=True).stdout.split()


def train_over(mpi, model, batches, path, module):
    """(the log's steps, the last checkpoint) of as many ranks as there are batches in a step"""
    data = write_data(path + ".data", batches)
    tools.write_weights(path + ".weights", module)
    tools.run("bash", "-c", 'source tests/checks/mpi.bash; "$@"', "-", mpi, len(batches[0]),
              tools.program("tools/amprun"), "train", model, "--dist", "mpi", "--data", f"safetensors:{data}",
              "--batch", SAMPLES, "--steps", len(batches), "--seed", SEED, "--threads", 1, "--quiet",
              "--weights", path + ".weights", "--log", path + ".log", "--checkpoint", path + ".checkpoint")
    steps = [line for line in tools.json_lines(path + ".log") if "loss" in line and "iteration" in line]
    return steps, tools.read_tensors(path + ".checkpoint")


# ---- FP32 ------------------------------------------------------------------------------------------------------------


def loss_differences(ours, theirs, bound):
    """|theirs|: by rank.  Ours is the mean over all samples, and batches are as large on every rank."""
    for at, (our, their) in enumerate(zip(ours, zip(*theirs), strict=True)):
        mean = sum(step["loss"] for step in their) / len(their)
        if not any(step["skipped"] for step in their):
            yield from training.number_differences("loss of step", at, float(our["loss"]), mean, bound)


def check_model(tally, options, name, text, make, make_optimizer, shape, over=None):
    """Of each MPI, (start, our steps, PyTorch's, our checkpoint, PyTorch's weights)"""
    path, results = os.path.join(options.work, name), []
    model = tools.compile_model(text, path + ".so", "--distribute", "data", "--precision", "fp32")
    batches = make_batches(make, make_optimizer, shape)
    start = tools.named_state(make())
    theirs, weights = ddp.train(make, make_optimizer, batches, options.work)
    tally.same(f"{name}: PyTorch's ranks have the same weights", tools.bit_differences(*weights))
    for mpi in over or mpis():
        ours, after = train_over(mpi, model, batches, path, make())
        error = tools.relative_error(training.changed(after, start), training.changed(weights[0], start))
        tally.same(f"{mpi}: {name}: loss of {STEPS} steps within {LOSS_BOUND:g}",
                   loss_differences(ours, theirs, LOSS_BOUND))
        tally.same(f"{mpi}: {name}: weights within {training.WEIGHT_BOUND:g}",
                   training.weight_differences(start, after, weights[0]), f"{error:.2g}")
        results.append((start, ours, theirs, after, weights[0]))
    return results


def mlp(options):
    text = os.path.join(tools.MODELS, "mlp_16_32_10.amp")
    scale = f"dynamic(init = {ddp.INIT}, interval = {ddp.INTERVAL}, min = 1.0, max = inf)"
    return tools.variant(text, os.path.join(options.work, "mlp.amp"), loss_scale=scale)


def check_fp32(tally, options):
    cnn = os.path.join(tools.MODELS, "smooth_cnn.amp")
    check_model(tally, options, "perceptron", mlp(options), make_mlp, adamw, (16,))
    check_model(tally, options, "convolutions", cnn, make_smooth, momentum, (3, 8, 8))


# ---- FP16 ------------------------------------------------------------------------------------------------------------


def scale_differences(ours, theirs):
    for at, (our, their) in enumerate(zip(ours, zip(*theirs), strict=True)):
        for rank, step in enumerate(their):
            if float(our["scale"]) != step["scale"] or our["skipped"] != step["skipped"]:
                yield (f"step {at}: scale {our['scale']}, skipped {our['skipped']}; PyTorch's rank {rank}: "
                       f"{step['scale']}, {step['skipped']}")


def fp16_batches():
    batches = make_batches(make_mlp, adamw, (16,))
    for step, rank in WILD.items():
        batches[step][rank][0][SAMPLES // 2, 5] = 1e30
    return batches


def check_fp16(tally, options):
    """With the casts of torch-fp16, and without simplify, as in steps.py."""
    path, batches = os.path.join(options.work, "fp16"), fp16_batches()
    model = tools.compile_model(mlp(options), path + ".so", "--distribute", "data", "--policy", "torch-fp16",
                                "--no-pass=simplify")
    theirs, weights = ddp.train(make_mlp, adamw, batches, options.work, torch.float16)
    last = theirs[0][-1]
    end = {"scaler/scale": torch.tensor(last["scale_after"]),
           "scaler/growth_tracker": torch.tensor(last["growth_tracker"], dtype=torch.int32),
           "counter/step": torch.tensor(STEPS - len(WILD))}
    tally.same("fp16: PyTorch's ranks have the same weights", tools.bit_differences(*weights))
    for mpi in mpis():
        ours, after = train_over(mpi, model, batches, path, make_mlp())
        tally.same(f"{mpi}: fp16: scale and skips of each step equal those on each of PyTorch's ranks",
                   scale_differences(ours, theirs), f"{ours[0]['scale']} to {last['scale_after']:g}")
        tally.same(f"{mpi}: fp16: where one rank overflows, and nowhere else, steps are skipped",
                   [] if [at for at, step in enumerate(ours) if step["skipped"]] == sorted(WILD) else ["other steps"])
        tally.same(f"{mpi}: fp16: scale, tracker and steps at the end", tools.bit_differences(after, end, end))
        tally.same(f"{mpi}: fp16: loss within {FP16_LOSS_BOUND:g}", loss_differences(ours, theirs, FP16_LOSS_BOUND))


# ---- planted ---------------------------------------------------------------------------------------------------------


def plant(tally, options):
    if not mpis():
        return tally.skipped("no MPI is installed (tools/setup --mpi)")
    path, mpi = os.path.join(options.work, "planted"), mpis()[0]
    (start, ours, theirs, after, weights), = check_model(tally, options, "planted", mlp(options), make_mlp, adamw,
                                                         (16,), [mpi])
    off = {name: w + (w - start[name]) * 2e-4 for name, w in after.items() if name in start}
    tally.seen("the loss of rank 0 in place of the mean", loss_differences(ours, theirs[:1], LOSS_BOUND))
    tally.seen("an update that is off by 2e-4", training.weight_differences(start, off, weights))
    batches = make_batches(make_mlp, adamw, (16,))
    swapped = batches[:1] + [[batches[1][1], batches[2][0]], [batches[1][0], batches[2][1]]] + batches[3:]
    other, _ = train_over(mpi, path + ".so", swapped, path, make_mlp())
    tally.seen("batches of two steps in another order", loss_differences(other, theirs, LOSS_BOUND))
    history = [{"scale": step["scale"], "skipped": step["skipped"]}
               for step in ddp.train(make_mlp, adamw, fp16_batches(), options.work, torch.float16)[0][0]]
    tally.same("a history is its own", scale_differences(history, [history, history]))
    stubborn = [{**step, "skipped": False} for step in history]
    tally.seen("a rank that does not skip", scale_differences(history, [history, stubborn]))
    tally.seen("a scale that grows a step late", scale_differences(history[:1] + history[:-1], [history, history]))


if __name__ == "__main__":
    harness.main(__doc__, [check_fp32, check_fp16], [plant])
