"""tabular.py: the twin of examples/tabular: entity embeddings and numbers into a perceptron with batch norm."""
import torch
import torch.nn.functional as F
from torch import nn

from twins import Example

SIZES = {"NUMBERS": 4, "TRADES": 17, "REGIONS": 11, "PURPOSES": 9, "CLASSES": 2, "WIDE": 24, "DEEP": 2}
DIMS = (8, 6, 5)


class Tabular(nn.Module):
    def __init__(self, numbers, trades, regions, purposes, classes, wide, deep):
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(*sizes) for sizes in zip((trades, regions, purposes), DIMS))
        self.bn_cont = nn.BatchNorm1d(numbers)
        widths = [numbers + sum(DIMS)] + deep * [wide]
        self.layers = nn.ModuleList(nn.ModuleDict({"linear": nn.Linear(*sizes), "norm": nn.BatchNorm1d(sizes[1])})
                                    for sizes in zip(widths, widths[1:]))
        self.head = nn.Linear(wide, classes)

    def logits(self, numbers, *categories):
        x = torch.cat([*(table(ids) for table, ids in zip(self.embeds, categories)), self.bn_cont(numbers)], 1)
        for layer in self.layers:
            x = layer["norm"](F.relu(layer["linear"](x)))
        return self.head(x)

    def results(self, **inputs):
        """By the running statistics, as inference is."""
        self.eval()
        logits = self.logits(*(v.to(self.head.weight.dtype) if v.is_floating_point() else v for v in inputs.values()))
        self.train()
        return {"logits": logits}

    def forward(self, numbers, trade, region, purpose, targets):
        return F.cross_entropy(self.logits(numbers.to(self.head.weight.dtype), trade, region, purpose), targets)


def ids(sizes, samples):
    return {name: torch.randint(0, sizes[name.upper() + "S"], (samples,)) for name in ("trade", "region", "purpose")}


def tabular(device):
    integers = (torch.zeros(8, dtype=torch.int64, device=device) for _ in range(4))
    return Tabular(*SIZES.values()), (torch.empty(8, SIZES["NUMBERS"], device=device), *integers), lambda loss: loss


def example(trace=None, samples=32, **sizes):
    sizes = {**SIZES, **sizes}
    return Example("tabular/tabular.amp", {**sizes, "P": 0.0}, lambda: Tabular(*sizes.values()),
                   lambda: {"numbers": torch.randn(samples, sizes["NUMBERS"]), **ids(sizes, samples)},
                   lambda: torch.randint(0, sizes["CLASSES"], (samples,)), trace)


EXAMPLES = {"tabular": example(trace="tabular"), "tabular, odd": example(samples=13, WIDE=37, DEEP=3, CLASSES=5)}
