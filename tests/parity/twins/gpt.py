"""gpt.py: the twin of examples/gpt: GPT-2."""
import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


class Turned(nn.Module):
    """A linear layer that stores its weight as [in, out], as GPT-2 does."""

    def __init__(self, features, out):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(features, out) * 0.02), nn.Parameter(torch.randn(out) * 0.02)

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Gpt2(nn.Module):
    def __init__(self, vocabulary, length, width, layers, heads):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(nn.ModuleDict({
            "ln_1": nn.LayerNorm(width), "ln_2": nn.LayerNorm(width),
            "attn": nn.ModuleDict({"c_attn": Turned(width, 3 * width), "c_proj": Turned(width, width)}),
            "mlp": nn.ModuleDict({"c_fc": Turned(width, 4 * width), "c_proj": Turned(4 * width, width)}),
        }) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)

    def attend(self, layer, x):
        n, length, width = x.shape
        y = layer["c_attn"](x)
        # Three slices, whose gradients are as ours; the gradient of split is one op of its own.
        q, k, v = (y[..., at * width : (at + 1) * width] for at in range(3))
        q, k, v = (part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return layer["c_proj"](seen.transpose(1, 2).reshape(n, length, width))

    def results(self, tokens):
        length, places = tokens.shape[1], self.wpe.weight
        x = self.wte(tokens) + (places[:length] if length < len(places) else places)
        for layer in self.h:
            x = x + self.attend(layer["attn"], layer["ln_1"](x))
            x = x + layer["mlp"]["c_proj"](F.gelu(layer["mlp"]["c_fc"](layer["ln_2"](x)), approximate="tanh"))
        return {"logits": F.linear(self.ln_f(x), self.wte.weight)}

    def forward(self, tokens, targets):
        return F.cross_entropy(self.results(tokens)["logits"].flatten(0, 1), targets.flatten())


GPT_SIZES = {"V": 50, "T": 16, "C": 32, "L": 2, "H": 4}


def gpt2(device):
    ids = torch.zeros(2, GPT_SIZES["T"], dtype=torch.int64, device=device)
    return Gpt2(*GPT_SIZES.values()), (ids, torch.zeros_like(ids)), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**GPT_SIZES, **sizes}

    def ids():
        return torch.randint(0, sizes["V"], (3, sizes["T"]))

    return Example("gpt/gpt2.amp", {**sizes, "P": 0.0}, lambda: Gpt2(*sizes.values()), lambda: {"tokens": ids()}, ids,
                   trace)


EXAMPLES = {"gpt2": example(trace="gpt2"), "gpt2, long": example(T=150)}
