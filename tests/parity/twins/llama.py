"""llama.py: the twin of examples/llama, under the names of Hugging Face's LlamaForCausalLM."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


def projection(features, out):
    layer = nn.Linear(features, out, bias=False)
    nn.init.normal_(layer.weight, std=0.02)
    return layer


def tables(length, size, theta, like):
    half = torch.arange(size // 2, device=like.device).to(like.dtype)
    place = torch.arange(length, device=like.device).to(like.dtype)
    angle = place[:, None] * torch.exp(half * (-2 * math.log(theta) / size))
    angle = torch.cat([angle, angle], -1)
    return angle.cos(), angle.sin()


def turned(x, cosines, sines):
    half = x.shape[-1] // 2
    return x * cosines + torch.cat([-x[..., half:], x[..., :half]], -1) * sines


class Layer(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.self_attn = nn.ModuleDict({"q_proj": projection(width, width), "k_proj": projection(width, groups * size),
                                        "v_proj": projection(width, groups * size), "o_proj": projection(width, width)})
        self.mlp = nn.ModuleDict({"gate_proj": projection(width, hidden), "up_proj": projection(width, hidden),
                                  "down_proj": projection(hidden, width)})

    def attend(self, x, cosines, sines):
        at, (n, length, width) = self.self_attn, x.shape
        q, k, v = (at[f"{name}_proj"](x).reshape(n, length, count, -1).transpose(1, 2)
                   for name, count in (("q", self.heads), ("k", self.groups), ("v", self.groups)))
        seen = F.scaled_dot_product_attention(turned(q, cosines, sines), turned(k, cosines, sines), v, is_causal=True,
                                              enable_gqa=True)
        return at["o_proj"](seen.transpose(1, 2).reshape(n, length, width))

    def forward(self, x, cosines, sines):
        x = x + self.attend(self.input_layernorm(x), cosines, sines)
        y, mlp = self.post_attention_layernorm(x), self.mlp
        return x + mlp["down_proj"](F.silu(mlp["gate_proj"](y)) * mlp["up_proj"](y))


class Llama(nn.Module):
    def __init__(self, V, T, C, L, H, G, HIDDEN, THETA, TIED):
        super().__init__()
        self.model = nn.ModuleDict({"embed_tokens": nn.Embedding(V, C),
                                    "layers": nn.ModuleList(Layer(C, H, G, HIDDEN) for _ in range(L)),
                                    "norm": nn.RMSNorm(C, 1e-6)})
        nn.init.normal_(self.model["embed_tokens"].weight, std=0.02)
        self.of_tables = C // H, THETA
        if not TIED:
            self.lm_head = projection(C, V)

    def results(self, tokens):
        table = self.model["embed_tokens"].weight
        cosines, sines = tables(tokens.shape[1], *self.of_tables, table)
        x = self.model["embed_tokens"](tokens)
        for layer in self.model["layers"]:
            x = layer(x, cosines, sines)
        head = self.lm_head.weight if hasattr(self, "lm_head") else table
        return {"logits": F.linear(self.model["norm"](x), head)}

    def forward(self, tokens, targets):
        return F.cross_entropy(self.results(tokens)["logits"].flatten(0, 1), targets.flatten())


SIZES = {"V": 50, "T": 16, "C": 32, "L": 2, "H": 4, "G": 2, "HIDDEN": 88, "THETA": 100.0, "TIED": False}


def llama(device):
    ids = torch.zeros(2, SIZES["T"], dtype=torch.int64, device=device)
    return Llama(**SIZES), (ids, torch.zeros_like(ids)), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}

    def ids():
        return torch.randint(0, sizes["V"], (3, sizes["T"]))

    defines = {name: str(value).lower() for name, value in sizes.items()}
    return Example("llama/llama.amp", defines, lambda: Llama(**sizes), lambda: {"tokens": ids()}, ids, trace)


EXAMPLES = {"llama": example(trace="llama"), "llama, tied": example(TIED=True, G=1, T=70)}
