"""PyTorch's side of gpu-check: answers each line of JSON with a line of JSON.

{"mlp": [784, 512, 512, 10], "precision": P, "batch": B}   the model that "steps" trains from now on
{"cnn": WIDTH, "precision": P, "batch": B}                 likewise: examples/fashion_mnist/cnn.amp, channels last
{"steps": K, "mode": "copied"|"resident"}                  microseconds a step: by the host's clock until the device is done; by device events
{"matmul": [N, K, M], "order": O, "repeats": R}            one fp16 product of a linear layer, "forward" (with bias), "data" or "weight":
                                                           median of single ones, mean of R in a row
"""
import json
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
import torch.nn as nn
import torch.nn.functional as F

LOW = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}
SETS = 8


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


class Training:
    def __init__(self, made, precision, batch):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, shape = made()
        model = model.cuda()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        self.scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")
        self.x, self.y = torch.rand(batch, *shape, device="cuda"), torch.zeros(batch, dtype=torch.int64, device="cuda")
        self.host = [(torch.rand(batch, *shape).pin_memory(), torch.randint(0, 10, (batch,)).pin_memory()) for _ in range(SETS)]
        low = LOW[precision]

        @torch.compile(mode="reduce-overhead")
        def loss_of(x, y):
            with torch.autocast("cuda", dtype=low or torch.bfloat16, enabled=low is not None):
                return F.cross_entropy(model(x), y)

        self.loss_of = loss_of
        for i in range(20):
            self.step(i, True)
        torch.cuda.synchronize()

    def step(self, i, copied):
        if copied:
            x, y = self.host[i % SETS]
            self.x.copy_(x, non_blocking=True)
            self.y.copy_(y, non_blocking=True)
        torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(self.loss_of(self.x, self.y)).backward()
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


def answer(state, ask):
    for name, make in (("mlp", mlp), ("cnn", cnn)):
        if name in ask:
            state["training"] = None
            state["training"] = Training(lambda: make(ask[name]), ask["precision"], ask["batch"])
            return {}
    if "steps" in ask:
        return state["training"].time(ask["steps"], ask["mode"] == "copied")
    return time_matmul(*ask["matmul"], ask["order"], ask["repeats"])


def main():
    torch.set_float32_matmul_precision("highest")
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name()}), flush=True)
    state = {}
    for line in sys.stdin:
        try:
            result = answer(state, json.loads(line))
        except Exception as error:
            result = {"error": f"PyTorch: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(result), flush=True)


main()
