"""resnet.py: the twins of examples/resnet, under torchvision's names."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


def conv(channels, out, kernel, stride=1):
    return nn.Conv2d(channels, out, kernel, stride, (kernel - 1) // 2, bias=False)


class Block(nn.Module):
    """Convolutions of (channels, kernel, stride); the shortcut goes through one where shapes differ."""

    def __init__(self, channels, layers, stride):
        super().__init__()
        self.count, out = len(layers), layers[-1][0]
        before = channels
        for at, (width, kernel, step) in enumerate(layers, start=1):
            self.add_module(f"conv{at}", conv(before, width, kernel, step))
            self.add_module(f"bn{at}", nn.BatchNorm2d(width))
            before = width
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(conv(channels, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        y = x
        for at in range(1, self.count + 1):
            y = getattr(self, f"bn{at}")(getattr(self, f"conv{at}")(y))
            if at < self.count:
                y = F.relu(y)
        if hasattr(self, "downsample"):
            x = self.downsample(x)
        return F.relu(x + y)


def basic(channels, width, stride):
    return Block(channels, [(width, 3, stride), (width, 3, 1)], stride), width


def bottleneck(channels, width, stride):
    return Block(channels, [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)], stride), 4 * width


class ResNet(nn.Module):
    def __init__(self, kind, counts, CLASSES, CHANNELS, W, IMAGENET, MARGIN=0):
        super().__init__()
        self.imagenet, self.margin = IMAGENET, MARGIN
        self.conv1 = conv(CHANNELS, W, 7, 2) if IMAGENET else conv(CHANNELS, W, 3)
        self.bn1, channels = nn.BatchNorm2d(W), W
        for stage, count in enumerate(counts):
            blocks = []
            for at in range(count):
                block, channels = kind(channels, W * 2**stage, 2 if stage and not at else 1)
                blocks.append(block)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if isinstance(module, Block):  # as after some training: at 1, depth makes much of each rounding
                nn.init.constant_(getattr(module, f"bn{module.count}").weight, 0.2)

    def results(self, x):
        if self.margin:
            x = F.pad(x, (self.margin,) * 4)
        x = F.relu(self.bn1(self.conv1(x)))
        if self.imagenet:
            x = F.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return {"logits": self.fc(x.mean((2, 3)))}

    def forward(self, x, targets):
        return F.cross_entropy(self.results(x)["logits"], targets)


SIZES = {"CLASSES": 7, "CHANNELS": 3, "W": 4, "IMAGENET": False}
KINDS = {"resnet18": (basic, (2, 2, 2, 2)), "resnet50": (bottleneck, (3, 4, 6, 3)),
         "resnet101": (bottleneck, (3, 4, 23, 3))}


def traced(name, **sizes):
    def build(device):
        sizes_of_all = {**SIZES, **sizes}
        x = torch.empty(4, sizes_of_all["CHANNELS"], 16, 16, device=device)
        targets = torch.zeros(4, dtype=torch.int64, device=device)
        return ResNet(*KINDS[name], **sizes_of_all), (x, targets), lambda loss: loss
    return build


resnet18, resnet50, resnet101 = traced("resnet18"), traced("resnet50", IMAGENET=True), traced("resnet101")


def example(name, size, batch=4, trace=None, **sizes):
    sizes = {**SIZES, **sizes}
    defines = {"SIZE": size, **{key: str(value).lower() for key, value in sizes.items()}}
    return Example(f"resnet/{name}.amp", defines, lambda: ResNet(*KINDS[name], **sizes),
                   lambda: {"x": torch.randn(batch, sizes["CHANNELS"], size, size)},
                   lambda: torch.randint(0, sizes["CLASSES"], (batch,)), trace, clip=math.inf)


EXAMPLES = {"resnet18": example("resnet18", 16, trace="resnet18"),
            "resnet18, 28 pixels": example("resnet18", 12, W=8, CHANNELS=1, MARGIN=2),
            "resnet50": example("resnet50", 64, IMAGENET=True, trace="resnet50"),
            "resnet101": example("resnet101", 16, trace="resnet101")}
