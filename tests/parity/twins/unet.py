"""unet.py: the twin of examples/unet, under the names of Pytorch-UNet."""
import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


class DoubleConv(nn.Module):
    def __init__(self, channels, mid, out, groups):
        super().__init__()

        def norm(count):
            return nn.GroupNorm(groups, count) if groups else nn.BatchNorm2d(count)

        self.double_conv = nn.Sequential(
            nn.Conv2d(channels, mid, 3, padding=1, bias=False), norm(mid), nn.ReLU(),
            nn.Conv2d(mid, out, 3, padding=1, bias=False), norm(out), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, channels, out, groups):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(channels, out, out, groups))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, channels, out, bilinear, groups):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True) if bilinear \
            else nn.ConvTranspose2d(channels, channels // 2, 2, 2)
        self.conv = DoubleConv(channels, channels // 2 if bilinear else out, out, groups)

    def forward(self, x, left):
        return self.conv(torch.cat([left, self.up(x)], 1))


class Unet(nn.Module):
    def __init__(self, S, C, BILINEAR, GROUPS):
        super().__init__()
        narrow = 2 if BILINEAR else 1
        self.inc = DoubleConv(1, C, C, GROUPS)
        self.down1, self.down2 = Down(C, 2 * C, GROUPS), Down(2 * C, 4 * C, GROUPS)
        self.down3, self.down4 = Down(4 * C, 8 * C, GROUPS), Down(8 * C, 16 * C // narrow, GROUPS)
        self.up1, self.up2 = (Up(2 * k * C, k * C // narrow, BILINEAR, GROUPS) for k in (8, 4))
        self.up3, self.up4 = Up(4 * C, 2 * C // narrow, BILINEAR, GROUPS), Up(2 * C, C, BILINEAR, GROUPS)
        self.outc = nn.ModuleDict({"conv": nn.Conv2d(C, 1, 1)})
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):  # not the statistics of a network that has seen nothing
                nn.init.normal_(module.running_mean, std=0.1)
                nn.init.uniform_(module.running_var, 0.5, 1.5)

    def logits(self, image):
        x1 = self.inc(image.to(self.outc["conv"].weight.dtype))
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        return self.outc["conv"](self.up4(self.up3(self.up2(x, x3), x2), x1))

    def results(self, image):
        self.eval()
        logits = self.logits(image)
        self.train()
        return {"logits": logits}

    def forward(self, image, targets):
        logits, targets = self.logits(image), targets.to(self.outc["conv"].weight.dtype)
        bce, p = F.binary_cross_entropy_with_logits(logits, targets), logits.sigmoid()
        return bce + (1 - (2 * (p * targets).sum() + 1) / (p.sum() + targets.sum() + 1))


SIZES = {"S": 32, "C": 4, "BILINEAR": False, "GROUPS": 0}


def traced(device, **sizes):
    image = torch.zeros(2, 1, SIZES["S"], SIZES["S"], device=device)
    return Unet(**{**SIZES, **sizes}), (image, torch.zeros_like(image)), lambda loss: loss


def unet(device):
    return traced(device)


def unet_bilinear(device):
    return traced(device, BILINEAR=True, GROUPS=4)


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}
    shape = (3, 1, sizes["S"], sizes["S"])
    defines = {name: str(value).lower() for name, value in sizes.items()}
    return Example("unet/unet.amp", defines, lambda: Unet(**sizes), lambda: {"image": torch.randn(shape)},
                   lambda: torch.randint(0, 2, shape).float(), trace)


EXAMPLES = {"unet": example("unet"), "unet, bilinear": example("unet_bilinear", BILINEAR=True, GROUPS=4),
            "unet, bilinear, batch norm": example(BILINEAR=True)}
