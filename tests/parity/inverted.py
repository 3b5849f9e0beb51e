"""inverted.py: MobileNetV3-small and EfficientNet-B0 as PyTorch modules under torchvision's names, for
models/published_mobilenet.amp and published_efficientnet.amp.  Nothing is dropped, so that steps can be compared.
"""
import torch
import torch.nn.functional as F
from torch import nn


def conv_norm(channels, out, kernel=1, stride=1, groups=1, activation=None, **norm):
    layers = [nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(out, **norm)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeeze, activation, gate):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, squeeze, 1), nn.Conv2d(squeeze, channels, 1)
        self.activation, self.gate = activation, gate

    def forward(self, x):
        return x * self.gate(self.fc2(self.activation(self.fc1(x.mean((2, 3), keepdim=True)))))


class Residual(nn.Module):
    def __init__(self, channels, wide, out, kernel, stride, activation, excite, **norm):
        super().__init__()
        self.adds = stride == 1 and channels == out
        parts = [conv_norm(channels, wide, activation=activation, **norm)] if wide != channels else []
        parts.append(conv_norm(wide, wide, kernel, stride, wide, activation, **norm))
        parts += [SqueezeExcite(wide, *excite)] if excite else []
        self.block = nn.Sequential(*parts, conv_norm(wide, out, **norm))

    def forward(self, x):
        return x + self.block(x) if self.adds else self.block(x)


class Network(nn.Module):
    def __init__(self, features, *classifier):
        super().__init__()
        self.features, self.classifier = nn.Sequential(*features), nn.Sequential(*classifier)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


# kernel, channels inside, channels, channels squeezed, h-swish, stride
SMALL = [(3, 16, 16, 8, False, 2), (3, 72, 24, 0, False, 2), (3, 88, 24, 0, False, 1), (5, 96, 40, 24, True, 2),
         (5, 240, 40, 64, True, 1), (5, 240, 40, 64, True, 1), (5, 120, 48, 32, True, 1), (5, 144, 48, 40, True, 1),
         (5, 288, 96, 72, True, 2), (5, 576, 96, 144, True, 1), (5, 576, 96, 144, True, 1)]
# times as many channels inside, kernel, stride, channels, blocks
B0 = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
      (6, 3, 1, 320, 1)]


def mobilenet_v3_small(classes=1000):
    norm, channels = {"eps": 0.001, "momentum": 0.01}, 16
    features = [conv_norm(3, channels, 3, 2, activation=nn.Hardswish, **norm)]
    for kernel, wide, out, squeeze, hard, stride in SMALL:
        excite = (squeeze, F.relu, F.hardsigmoid) if squeeze else None
        features.append(Residual(channels, wide, out, kernel, stride, nn.Hardswish if hard else nn.ReLU, excite,
                                 **norm))
        channels = out
    features.append(conv_norm(channels, 576, activation=nn.Hardswish, **norm))
    return Network(features, nn.Linear(576, 1024), nn.Hardswish(), nn.Identity(), nn.Linear(1024, classes))


def efficientnet_b0(classes=1000):
    channels, features = 32, [conv_norm(3, 32, 3, 2, activation=nn.SiLU)]
    for expand, kernel, stride, out, count in B0:
        stage = []
        for i in range(count):
            stage.append(Residual(channels, expand * channels, out, kernel, 1 if i else stride, nn.SiLU,
                                  (channels // 4, F.silu, torch.sigmoid)))
            channels = out
        features.append(nn.Sequential(*stage))
    features.append(conv_norm(channels, 1280, activation=nn.SiLU))
    return Network(features, nn.Identity(), nn.Linear(1280, classes))
