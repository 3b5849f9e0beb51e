"""lstm.py: the twin of examples/lstm. Its results are torch.nn.LSTM's; the autocast oracle sees the cell's equations
written out, because PyTorch's own layer is one call on a GPU."""
import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


class Lstm(nn.Module):
    def __init__(self, length, width, hidden, layers):
        super().__init__()
        self.length = length
        self.embedding, self.head = nn.Embedding(256, width), nn.Linear(hidden, 256)
        self.lstm = self.recurrent(width, hidden, layers)

    def recurrent(self, width, hidden, layers):
        return nn.LSTM(width, hidden, layers, batch_first=True)

    def states(self, x):
        return self.lstm(x)[0]

    def written_out(self):
        """The same step by step, for casts inside of it: of one layer."""
        twin = WrittenOut(self.length, self.embedding.embedding_dim, self.lstm.hidden_size, self.lstm.num_layers)
        twin.load_state_dict(self.state_dict())
        return twin

    def results(self, tokens):
        return {"logits": self.head(self.states(self.embedding(tokens)))}

    def forward(self, tokens, targets):
        return F.cross_entropy(self.results(tokens)["logits"].flatten(0, 1), targets.flatten())


class WrittenOut(Lstm):
    """The same of one layer, step by step."""

    def recurrent(self, width, hidden, layers):
        sizes = {"weight_ih": (width,), "weight_hh": (hidden,), "bias_ih": (), "bias_hh": ()}
        return nn.ParameterDict({f"{name}_l0": torch.zeros(4 * hidden, *more) for name, more in sizes.items()})

    def states(self, x):
        w, u, a, b = (self.lstm[f"{name}_l0"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        return self.steps(F.linear(x, w, a), u, b)

    def steps(self, of_x, u, b):
        size = u.shape[1]
        h, c = torch.zeros(of_x.shape[0], size, device=of_x.device), None
        joined = None
        for t in range(self.length):
            gates = of_x[:, t : t + 1].reshape(-1, 4 * size) + F.linear(h, u, b)
            i = gates[:, :size].sigmoid()
            if c is not None:
                f = gates[:, size : 2 * size].sigmoid()
            g, o = gates[:, 2 * size : 3 * size].tanh(), gates[:, 3 * size :].sigmoid()
            c = i * g if c is None else f * c + i * g
            h = o * c.tanh()
            one = h.unsqueeze(1)
            joined = one if joined is None else torch.cat([joined, one], 1)
        return joined


SIZES = {"T": 5, "C": 12, "H": 16, "L": 1}


def lstm(device):
    ids = torch.zeros(2, SIZES["T"], dtype=torch.int64, device=device)
    return WrittenOut(*SIZES.values()), (ids, torch.zeros_like(ids)), lambda loss: loss


def example(trace=None, **sizes):
    sizes = {**SIZES, **sizes}

    def ids():
        return torch.randint(0, 256, (3, sizes["T"]))

    return Example("lstm/lstm.amp", sizes, lambda: Lstm(*sizes.values()), lambda: {"tokens": ids()}, ids, trace)


EXAMPLES = {"lstm": example(trace="lstm"), "lstm, two layers": example(L=2, T=20)}
