"""bert.py: the twin of examples/bert: BERT with a classification head, its parameters under Hugging Face's names."""
import torch
import torch.nn.functional as F
from torch import nn

from twins import Example

EPS = 1e-12
SIZES = {"V": 50, "LONGEST": 20, "T": 16, "C": 32, "L": 2, "H": 4, "CLASSES": 3}


def norm(width):
    return nn.LayerNorm(width, eps=EPS)


def dense(features, out):
    return nn.ModuleDict({"dense": nn.Linear(features, out)})


def dense_and_norm(features, out):
    return nn.ModuleDict({"dense": nn.Linear(features, out), "LayerNorm": norm(out)})


class Embeddings(nn.Module):
    def __init__(self, vocabulary, longest, width):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings, self.token_type_embeddings = nn.Embedding(longest, width), nn.Embedding(2, width)
        self.LayerNorm = norm(width)

    def forward(self, ids, types):
        x = self.word_embeddings(ids) + self.token_type_embeddings(types)
        return self.LayerNorm(x + self.position_embeddings.weight[: ids.shape[1]])


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention = nn.ModuleDict({
            "self": nn.ModuleDict({part: nn.Linear(width, width) for part in ("query", "key", "value")}),
            "output": dense_and_norm(width, width)})
        self.intermediate, self.output = dense(width, 4 * width), dense_and_norm(4 * width, width)

    def attend(self, x, seen):
        n, length, width = x.shape
        parts = (self.attention["self"][part](x) for part in ("query", "key", "value"))
        q, k, v = (part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.attention["output"]["dense"](y.transpose(1, 2).reshape(n, length, width))

    def forward(self, x, seen):
        x = self.attention["output"]["LayerNorm"](x + self.attend(x, seen))
        y = self.output["dense"](F.gelu(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + y)


class Bert(nn.Module):
    def __init__(self, vocabulary, longest, length, width, layers, heads, classes):
        super().__init__()
        self.bert = nn.ModuleDict({
            "embeddings": Embeddings(vocabulary, longest, width),
            "encoder": nn.ModuleDict({"layer": nn.ModuleList(Layer(width, heads) for _ in range(layers))}),
            "pooler": dense(width, width)})
        self.classifier = nn.Linear(width, classes)

    def results(self, input_ids, token_type_ids, attention_mask):
        x = self.bert["embeddings"](input_ids, token_type_ids)
        seen = attention_mask[:, None, None, :] != 0
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x, seen)
        return {"logits": self.classifier(torch.tanh(self.bert["pooler"]["dense"](x[:, 0])))}

    def forward(self, input_ids, token_type_ids, attention_mask, targets):
        return F.cross_entropy(self.results(input_ids, token_type_ids, attention_mask)["logits"], targets)


def batch(sizes, samples=3):
    """Samples of several lengths, each of two sentences, padded by tokens that the mask leaves out."""
    places, shape = torch.arange(sizes["T"]), (samples, sizes["T"])
    lengths = torch.randint(sizes["T"] // 2, sizes["T"] + 1, (samples, 1))
    firsts = torch.randint(2, sizes["T"] // 2, (samples, 1))
    return {"input_ids": torch.randint(0, sizes["V"], shape), "token_type_ids": (places >= firsts).long(),
            "attention_mask": (places < lengths).long()}


def bert(device):
    ids = torch.zeros(2, SIZES["T"], dtype=torch.int64, device=device)
    targets = torch.zeros(2, dtype=torch.int64, device=device)
    return Bert(*SIZES.values()), (ids, torch.zeros_like(ids), torch.zeros_like(ids), targets), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}
    return Example("bert/bert.amp", {**sizes, "P": 0.0}, lambda: Bert(*sizes.values()), lambda: batch(sizes),
                   lambda: torch.randint(0, sizes["CLASSES"], (3,)), trace)


EXAMPLES = {"bert": example(trace="bert"), "bert, long": example(LONGEST=140, T=140)}
