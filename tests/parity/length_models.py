"""length_models.py: a PyTorch twin of each model in models/lengths, which have a size T, and batches of any length."""
import os
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

from twins import bert, gpt, llama

SAMPLES, V, CLASSES = 3, 50, 3  # of the models of a test


class Layer(nn.Module):
    """Of `texts`, whose lists of parts are by layer: norm1.0, norm1.1, ..."""

    def __init__(self, width):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, seen, heads):
        n, length, width = x.shape
        y = self.c_attn(x)
        q, k, v = (y[..., at * width : (at + 1) * width].reshape(n, length, heads, -1).transpose(1, 2)
                   for at in range(3))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.c_proj(y.transpose(1, 2).reshape(n, length, width))


class Texts(nn.Module):
    def __init__(self, V=1000, MOST=512, C=64, L=2, H=4, CLASSES=2):
        super().__init__()
        self.heads = H
        self.place, self.words = nn.Parameter(torch.randn(MOST, C) * 0.02), nn.Embedding(V, C)
        self.norm1, self.norm2 = (nn.ModuleList(nn.LayerNorm(C) for _ in range(L)) for _ in range(2))
        self.attention = nn.ModuleList(Layer(C) for _ in range(L))
        self.up = nn.ModuleList(nn.Linear(C, 4 * C) for _ in range(L))
        self.down = nn.ModuleList(nn.Linear(4 * C, C) for _ in range(L))
        self.head = nn.Linear(C, CLASSES)

    def forward(self, tokens, mask):
        x = self.words(tokens) + self.place[: tokens.shape[1]]
        seen = mask[:, None, None, :] != 0
        for norm1, attention, norm2, up, down in zip(self.norm1, self.attention, self.norm2, self.up, self.down):
            x = x + attention(norm1(x), seen, self.heads)
            x = x + down(F.gelu(up(norm2(x))))
        counts = mask[:, :, None].to(x.dtype)
        return self.head((x * counts).sum(1) / counts.sum(1).clamp(min=1.0))


class TextsLoss(Texts):
    def results(self, tokens, mask):
        return {"logits": super().forward(tokens, mask)}

    def forward(self, tokens, mask, targets):
        return F.cross_entropy(super().forward(tokens, mask), targets)


def ids(length):
    return torch.randint(0, V, (SAMPLES, length))


def mask(length):
    """Samples of several lengths, at least a token each, one of them of all."""
    seen = torch.randint(1, length + 1, (SAMPLES, 1))
    seen[0] = length
    return (torch.arange(length) < seen).long()


def classes(_):
    return torch.randint(0, CLASSES, (SAMPLES,))


# defines: -D, besides MOST and UNIT
# make(MOST): the twin
# inputs(length), targets(length): a batch
Model = namedtuple("Model", "unit defines make inputs targets")
MODELS = {
    "bert": Model(1, {}, lambda most: bert.Bert(V, most, None, 32, 2, 4, CLASSES),
                  lambda t: {"input_ids": ids(t), "token_type_ids": ids(t) % 2, "attention_mask": mask(t)}, classes),
    "gpt": Model(1, {}, lambda most: gpt.Gpt2(V, most, 32, 2, 4), lambda t: {"tokens": ids(t)}, ids),
    "llama": Model(1, {}, lambda most: llama.Llama(**{**llama.SIZES, "T": None}), lambda t: {"tokens": ids(t)}, ids),
    "texts": Model(8, {"V": V, "C": 32, "CLASSES": CLASSES},
                   lambda most: TextsLoss(V=V, MOST=most, C=32, CLASSES=CLASSES),
                   lambda t: {"tokens": ids(t), "mask": mask(t)}, classes),
}


def path_of(name):
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "lengths", f"{name}.amp")


class AsWritten(torch.overrides.TorchFunctionMode):
    """Makes of a twin's calls the ops that a model with a size T has for them."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.__getitem__ and isinstance(args[1], slice):  # the first rows of a table
            return F.embedding(torch.arange(args[1].stop, device=args[0].device), args[0])
        if func is torch.Tensor.__getitem__ and args[1] == (slice(None), 0):  # the first token
            x = args[0]
            first = torch.arange(x.shape[1], device=x.device)[:, None] == 0
            return torch.where(first, x, torch.scalar_tensor(0.0, device=x.device)).sum(1)
        if func is torch.Tensor.clamp:
            return torch.maximum(args[0], torch.scalar_tensor(kwargs["min"], device=args[0].device))
        return func(*args, **(kwargs or {}))


def traced(name, device):
    """For the autocast oracle: the twin at one length."""
    model, length = MODELS[name], 16
    module = model.make(512)
    forward = module.forward

    def as_written(*batch):
        with AsWritten():
            return forward(*batch)

    module.forward = as_written
    batch = [*model.inputs(length).values(), model.targets(length)]
    return module, [torch.zeros(t.shape, dtype=t.dtype, device=device) for t in batch], lambda loss: loss


def of_bert(device):
    return traced("bert", device)


def of_gpt(device):
    return traced("gpt", device)


def of_llama(device):
    return traced("llama", device)


def of_texts(device):
    return traced("texts", device)
