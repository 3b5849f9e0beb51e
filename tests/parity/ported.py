"""ported.py: ConvNeXt-T and Swin-T as PyTorch modules under torchvision's names, and the temporal convolutional network
under its authors', for models/published_convnext.amp, published_swin.amp and published_tcn.amp.  Nothing is dropped, so
that steps can be compared.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Permute(nn.Module):
    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(self.dims)


# ---- ConvNeXt-T ------------------------------------------------------------------------------------------------------


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layer_scale = nn.Parameter(torch.full((channels, 1, 1), 1e-6))
        self.block = nn.Sequential(nn.Conv2d(channels, channels, 7, padding=3, groups=channels), Permute(0, 2, 3, 1),
                                   nn.LayerNorm(channels, 1e-6), nn.Linear(channels, 4 * channels), nn.GELU(),
                                   nn.Linear(4 * channels, channels), Permute(0, 3, 1, 2))

    def forward(self, x):
        return x + self.layer_scale * self.block(x)


class ConvNeXt(nn.Module):
    def __init__(self, classes=1000, channels=96, depths=(3, 3, 9, 3)):
        super().__init__()
        features = [nn.Sequential(nn.Conv2d(3, channels, 4, 4), ChannelNorm(channels, 1e-6))]
        for i, depth in enumerate(depths):
            if i:
                features.append(nn.Sequential(ChannelNorm(channels, 1e-6), nn.Conv2d(channels, 2 * channels, 2, 2)))
                channels *= 2
            features.append(nn.Sequential(*(ConvNeXtBlock(channels) for _ in range(depth))))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(ChannelNorm(channels, 1e-6), nn.Flatten(), nn.Linear(channels, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3), keepdim=True))


# ---- Swin-T ----------------------------------------------------------------------------------------------------------


def windows(x, side):
    """[N, H, W, C] as [N, windows, side * side, C]."""
    n, height, width, channels = x.shape
    x = x.view(n, height // side, side, width // side, side, channels).transpose(2, 3)
    return x.reshape(n, -1, side * side, channels)


class WindowAttention(nn.Module):
    def __init__(self, channels, heads, side, shift):
        super().__init__()
        self.heads, self.side, self.shift = heads, side, shift
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.relative_position_bias_table = nn.Parameter(0.02 * torch.randn((2 * side - 1) ** 2, heads))
        places = torch.cartesian_prod(torch.arange(side), torch.arange(side))
        apart = places[:, None] - places + side - 1
        self.register_buffer("relative_position_index", (apart[..., 0] * (2 * side - 1) + apart[..., 1]).flatten())

    def mask(self, height, width, down, across):
        """-100 between pixels of a window that the shift brought there from different ends."""
        rows, columns = torch.zeros(height), torch.zeros(width)
        for strips, size, shift in (rows, height, down), (columns, width, across):
            if shift:
                strips[size - self.side:size - shift], strips[size - shift:] = 1, 2
        regions = windows((3 * rows[:, None] + columns)[None, :, :, None], self.side)[0, ..., 0]
        return -100.0 * (regions[:, :, None] != regions[:, None]).to(self.proj.weight.dtype)[:, None]

    def forward(self, x):
        n, height, width, channels = x.shape
        y = F.pad(x, (0, 0, 0, -width % self.side, 0, -height % self.side))
        shifts = [self.shift if size > self.side else 0 for size in y.shape[1:3]]
        shape, y = y.shape, windows(y.roll([-s for s in shifts], (1, 2)), self.side)
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(3, 0, 1, 4, 2, 5)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        area = self.side ** 2
        bias = self.relative_position_bias_table[self.relative_position_index].view(area, area, -1).permute(2, 0, 1)
        scores = scores + (bias + self.mask(*shape[1:3], *shifts) if any(shifts) else bias)
        y = self.proj((scores.softmax(-1) @ v).transpose(2, 3).flatten(3))
        y = y.view(n, shape[1] // self.side, shape[2] // self.side, self.side, self.side, channels).transpose(2, 3)
        return y.reshape(shape).roll(shifts, (1, 2))[:, :height, :width]


class SwinBlock(nn.Module):
    def __init__(self, channels, heads, side, shift):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attn = WindowAttention(channels, heads, side, shift)
        self.mlp = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(), nn.Identity(),
                                 nn.Linear(4 * channels, channels))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.reduction, self.norm = nn.Linear(4 * channels, 2 * channels, bias=False), nn.LayerNorm(4 * channels)

    def forward(self, x):
        x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        return self.reduction(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    def __init__(self, classes=1000, channels=96, depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), side=7):
        super().__init__()
        features = [nn.Sequential(nn.Conv2d(3, channels, 4, 4), Permute(0, 2, 3, 1), nn.LayerNorm(channels))]
        for i, depth in enumerate(depths):
            if i:
                features.append(PatchMerging(channels))
                channels *= 2
            features.append(nn.Sequential(*(SwinBlock(channels, heads[i], side, k % 2 * (side // 2))
                                            for k in range(depth))))
        self.features, self.norm = nn.Sequential(*features), nn.LayerNorm(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.norm(self.features(x)).mean((1, 2)))


# ---- the temporal convolutional network ------------------------------------------------------------------------------


class NormedConv1d(nn.Module):
    """Under the names of torch.nn.utils.weight_norm, as files of that time have it."""

    def __init__(self, channels, out, kernel, dilation):
        super().__init__()
        conv = nn.Conv1d(channels, out, kernel)
        self.bias, self.weight_v = conv.bias, conv.weight
        self.weight_g = nn.Parameter(conv.weight.detach().norm(dim=(1, 2), keepdim=True))
        self.dilation = dilation

    def forward(self, x):
        weight = self.weight_g * self.weight_v / self.weight_v.norm(dim=(1, 2), keepdim=True)
        past = (weight.shape[2] - 1) * self.dilation
        return F.conv1d(x, weight, self.bias, padding=past, dilation=self.dilation)[:, :, :x.shape[2]]


class TemporalBlock(nn.Module):
    """The convolutions have two names each, as the authors' have."""

    def __init__(self, channels, out, kernel, dilation):
        super().__init__()
        self.conv1 = NormedConv1d(channels, out, kernel, dilation)
        self.conv2 = NormedConv1d(out, out, kernel, dilation)
        self.net = nn.Sequential(self.conv1, nn.Identity(), nn.ReLU(), nn.Identity(),
                                 self.conv2, nn.Identity(), nn.ReLU(), nn.Identity())
        self.downsample = nn.Conv1d(channels, out, 1) if channels != out else None

    def forward(self, x):
        return F.relu(self.net(x) + (self.downsample(x) if self.downsample else x))


class TemporalConvNet(nn.Module):
    def __init__(self, channels, hidden, kernel):
        super().__init__()
        self.network = nn.Sequential(*(TemporalBlock(hidden[i - 1] if i else channels, out, kernel, 2 ** i)
                                       for i, out in enumerate(hidden)))

    def forward(self, x):
        return self.network(x)


class Tcn(nn.Module):
    def __init__(self, channels=1, classes=10, hidden=8 * (25,), kernel=7):
        super().__init__()
        self.tcn, self.linear = TemporalConvNet(channels, hidden, kernel), nn.Linear(hidden[-1], classes)

    def forward(self, x):
        return self.linear(self.tcn(x)[:, :, -1])
