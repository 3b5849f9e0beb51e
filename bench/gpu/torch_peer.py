"""PyTorch's side of gpu-check: answers each line of JSON with a line of JSON.

{"mlp": [784, 512, 512, 10], "precision": P, "batch": B}   the model that "steps" trains from now on
{"cnn": WIDTH, "precision": P, "batch": B}                 likewise: examples/fashion_mnist/cnn.amp, channels last
{"twin": NAME, "arguments": A, "optimizer": O, "precision": P, "batch": B}   likewise: a file of twins/, its `example` given A
{"steps": K, "mode": "copied"|"resident"}                  microseconds a step: by the host's clock until the device is done; by device events
{"kernels": K}                                             each kernel of K steps by name: how often, microseconds in all
{"matmul": [N, K, M], "order": O, "repeats": R}            one fp16 product of a linear layer, "forward" (with bias), "data" or "weight":
                                                           median of single ones, mean of R in a row
"""
import importlib
import json
import math
import os
import statistics
import sys
import time
import warnings
from collections import namedtuple

warnings.filterwarnings("ignore")
import torch
import torch.nn as nn
import torch.nn.functional as F

LOW = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
SETS = 8
DEVICE = "cuda"


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), (sizes[0],)


def cnn(width):
    def block(channels, out):
        return [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]

    layers = [*block(1, width), *block(width, 2 * width), nn.Flatten(), nn.Linear(2 * width * 7 * 7, 10)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last), (1, 28, 28)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, fused=True)


OPTIMIZERS = {
    "adamw": adamw,
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True),
    "nesterov": lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True),
}

# loss: of the values on the device; draw(): a batch's values, in host memory; clip: the largest norm of the gradients
Network = namedtuple("Network", "module loss draw optimizer clip")


def classifier(make, batch):
    model, shape = make()
    return Network(model, lambda x, y: F.cross_entropy(model(x), y),
                   lambda: [torch.rand(batch, *shape), torch.randint(0, 10, (batch,))], adamw, math.inf)


def twin(name, arguments, optimizer, batch):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    example = importlib.import_module("twins." + name).example(**arguments)
    model = example.make()

    def draw():
        values = [torch.cat([value] * -(-batch // value.shape[0]))[:batch] for value in (*example.inputs().values(), example.targets())]
        return [value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value for value in values]

    if any(isinstance(part, nn.Conv2d) for part in model.modules()):
        model = model.to(memory_format=torch.channels_last)
    return Network(model, model, draw, OPTIMIZERS[optimizer], example.clip)


class Training:
    def __init__(self, make, precision):
        torch._dynamo.reset()
        torch.manual_seed(0)
        network = make()
        network.module.to(DEVICE)
        self.parameters, self.clip = list(network.module.parameters()), network.clip
        self.optimizer = network.optimizer(self.parameters)
        self.scaler = torch.amp.GradScaler(DEVICE, enabled=precision == "fp16")
        self.host = [[value.pin_memory() for value in network.draw()] for _ in range(SETS)]
        self.values = [value.to(DEVICE) for value in self.host[0]]
        low = LOW[precision]

        @torch.compile(mode="reduce-overhead")
        def loss_of(*values):
            with torch.autocast(DEVICE, dtype=low or torch.bfloat16, enabled=low is not None):
                return network.loss(*values)

        self.loss_of = loss_of
        for i in range(20):
            self.step(i, True)
        torch.cuda.synchronize()

    def step(self, i, copied):
        if copied:
            for value, host in zip(self.values, self.host[i % SETS]):
                value.copy_(host, non_blocking=True)
        torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(self.loss_of(*self.values)).backward()
        if math.isfinite(self.clip):
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def time(self, steps, copied):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        wall = time.perf_counter()
        start.record()
        for i in range(steps):
            self.step(i, copied)
        end.record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - wall
        return {"wall_us": 1e6 * wall / steps, "device_us": 1e3 * start.elapsed_time(end) / steps}


    def kernels(self, steps):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            self.time(steps, False)
        rows = [{"name": row.key, "count": row.count, "us": row.self_device_time_total} for row in seen.key_averages()]
        return sorted(rows, key=lambda row: -row["us"])


PRODUCTS = {"forward": F.linear, "data": lambda x, w, b, dy: dy @ w, "weight": lambda x, w, b, dy: dy.t() @ x}


def time_matmul(n, k, m, order, repeats):
    sets = max(2, min(16, (256 << 20) // (2 * (n * k + k * m + n * m)) + 2))
    draw = lambda *shape: torch.rand(*shape, device="cuda", dtype=torch.float16) - 0.5
    operands = [(draw(n, k), draw(m, k), draw(m), draw(n, m))[:3 if order == "forward" else 4] for _ in range(sets)]
    product = PRODUCTS[order]
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    single = []
    for i in range(repeats + 5):
        start.record()
        product(*operands[i % sets])
        end.record()
        torch.cuda.synchronize()
        if i >= 5:
            single.append(1e3 * start.elapsed_time(end))
    graph = torch.cuda.CUDAGraph()  # so that the host's launches are not what is measured
    with torch.cuda.graph(graph):
        for i in range(repeats):
            product(*operands[i % sets])
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return {"us": statistics.median(single), "us_in_a_row": 1e3 * start.elapsed_time(end) / repeats}


def network_of(ask):
    if "twin" in ask:
        return lambda: twin(ask["twin"], ask["arguments"], ask["optimizer"], ask["batch"])
    name = "mlp" if "mlp" in ask else "cnn"
    return lambda: classifier(lambda: {"mlp": mlp, "cnn": cnn}[name](ask[name]), ask["batch"])


def answer(state, ask):
    if "precision" in ask:
        state["training"] = None
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = ask["precision"] == "tf32"
        state["training"] = Training(network_of(ask), ask["precision"])
        return {}
    if "kernels" in ask:
        return {"kernels": state["training"].kernels(ask["kernels"])}
    if "steps" in ask:
        return state["training"].time(ask["steps"], ask["mode"] == "copied")
    return time_matmul(*ask["matmul"], ask["order"], ask["repeats"])


def main():
    torch.backends.cudnn.benchmark = True
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name()}), flush=True)
    state = {}
    for line in sys.stdin:
        try:
            result = answer(state, json.loads(line))
        except Exception as error:
            result = {"error": f"PyTorch: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(result), flush=True)


main()
