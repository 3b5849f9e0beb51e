"""autoencoder.py: the twin of examples/autoencoder."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


def down(channels, out):
    return nn.ModuleDict({"conv": nn.Conv2d(channels, out, 3, 2, 1, bias=False), "bn": nn.BatchNorm2d(out)})


def up(channels, out):
    return nn.ModuleDict({"conv": nn.ConvTranspose2d(channels, out, 4, 2, 1, bias=False), "bn": nn.BatchNorm2d(out)})


def through(block, x):
    return F.relu(block["bn"](block["conv"](x)))


class Autoencoder(nn.Module):
    def __init__(self, SIZE, W, CODE):
        super().__init__()
        self.shape = 2 * W, SIZE // 4, SIZE // 4
        count = math.prod(self.shape)
        self.encoder = nn.ModuleDict({"down1": down(1, W), "down2": down(W, 2 * W), "fc": nn.Linear(count, CODE)})
        self.decoder = nn.ModuleDict({"fc": nn.Linear(CODE, count), "up1": up(2 * W, W),
                                      "up2": nn.ConvTranspose2d(W, 1, 4, 2, 1)})

    def results(self, x):
        h = through(self.encoder["down2"], through(self.encoder["down1"], x))
        code = self.encoder["fc"](torch.flatten(h, 1))
        h = F.relu(self.decoder["fc"](code)).reshape(-1, *self.shape)
        return {"y": torch.sigmoid(self.decoder["up2"](through(self.decoder["up1"], h))), "code": code}

    def forward(self, x):
        return F.mse_loss(self.results(x)["y"], x)


SIZES = {"SIZE": 12, "W": 6, "CODE": 5}


def autoencoder(device):
    return Autoencoder(**SIZES), (torch.empty(4, 1, 12, 12, device=device),), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}
    return Example("autoencoder/autoencoder.amp", sizes, lambda: Autoencoder(**sizes),
                   lambda: {"x": torch.rand(8, 1, sizes["SIZE"], sizes["SIZE"])}, lambda: None, trace, clip=math.inf)


EXAMPLES = {"autoencoder": example("autoencoder")}
