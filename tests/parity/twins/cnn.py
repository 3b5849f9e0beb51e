"""cnn.py: the twin of examples/cnn."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


class Cnn(nn.Module):
    def __init__(self, C1, C2, CLASSES, SIZE, POOL):
        super().__init__()
        self.pool = POOL
        self.conv1, self.conv2 = nn.Conv2d(1, C1, 3, padding=1), nn.Conv2d(C1, C2, 3, padding=1)
        self.fc1 = nn.Linear(C2 * (SIZE // POOL // 2) ** 2, CLASSES)

    def results(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), self.pool)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return {"logits": self.fc1(torch.flatten(x, 1))}

    def forward(self, x, targets):
        return F.cross_entropy(self.results(x)["logits"], targets)


SIZES = {"C1": 21, "C2": 50, "CLASSES": 10, "SIZE": 12, "POOL": 2}


def cnn(device):
    targets = torch.zeros(4, dtype=torch.int64, device=device)
    return Cnn(**SIZES), (torch.empty(4, 1, 12, 12, device=device), targets), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}
    return Example("cnn/cnn.amp", sizes, lambda: Cnn(**sizes),
                   lambda: {"x": torch.randn(4, 1, sizes["SIZE"], sizes["SIZE"])},
                   lambda: torch.randint(0, sizes["CLASSES"], (4,)), trace, clip=math.inf)


EXAMPLES = {"cnn": example(trace="cnn"), "cnn, 420 and 1000 channels": example(C1=420, C2=1000, SIZE=8),
            "cnn, 32 and 64 channels": example(C1=32, C2=64, SIZE=16),  # the second layer by Winograd's products
            "cnn, pooling by 4": example(SIZE=16, POOL=4)}
