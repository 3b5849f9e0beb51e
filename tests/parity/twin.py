"""twin.py: PyTorch twins of the models that the comparisons run, with the same parameter names.

    Mlp((784, 512, 512, 10))   examples/fashion_mnist/mlp.amp
    Mlp((16, 32, 10))          tests/parity/models/mlp_16_32_10.amp
    Cnn()                      examples/fashion_mnist/cnn.amp
    SmallCnn()                 tests/parity/models/cnn_16.amp
    TiedTokens()               tests/parity/models/tied_tokens.amp

The autocast oracle runs mlp(), small(), cnn(), small_cnn() and tied_tokens() on tensors without storage; the numeric comparisons run Mlp itself on the CPU.
"""
import torch
import torch.nn.functional as F
from torch import nn

MLP = (784, 512, 512, 10)
SMALL = (16, 32, 10)


class Mlp(nn.Module):
    """Linear layers fc1, fc2, ... with relu between them; the loss is the mean cross entropy."""

    def __init__(self, sizes):
        super().__init__()
        for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:]), start=1):
            self.add_module(f"fc{i}", nn.Linear(fan_in, fan_out))

    def logits(self, x, linear=lambda x, layer: layer(x)):
        layers = list(self.children())
        for layer in layers[:-1]:
            x = F.relu(linear(x, layer))
        return linear(x, layers[-1])

    def preactivations(self, x):
        """What relu is applied to, layer by layer."""
        found = []
        for layer in list(self.children())[:-1]:
            found.append(layer(x))
            x = F.relu(found[-1])
        return found

    def forward(self, x, targets):
        return F.cross_entropy(self.logits(x), targets)

    def forward_with_casts(self, x, targets, low):
        """The loss with the casts that CUDA autocast inserts, written out, so that it runs on a CPU.

        From the oracle (tests/parity/oracle): the operands of each linear, bias included, are cast to |low|; relu and the log_softmax
        inside cross_entropy stay in it; nll_loss runs in f32.  Autograd reverses each cast.
        """
        x = self.logits(x.to(low), lambda x, layer: F.linear(x, layer.weight.to(low), layer.bias.to(low)))
        return F.nll_loss(F.log_softmax(x, dim=1).float(), targets)


class Cnn(nn.Module):
    """Twice convolution, batch norm, relu and pooling, then one linear layer; the loss is the mean cross entropy."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64)
        self.fc = nn.Linear(64 * 7 * 7, 10)

    def logits(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(torch.flatten(x, 1))

    def forward(self, x, targets):
        return F.cross_entropy(self.logits(x), targets)


class SmallCnn(nn.Module):
    """The same with one convolution that has a bias, for images [3, 16, 16]."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x, targets):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return F.cross_entropy(self.fc(torch.flatten(x, 1)), targets)


class TiedTokens(nn.Module):
    """A block of a language model without its attention; the table of the tokens makes the logits too."""

    def __init__(self, vocabulary=40, length=8, width=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.ln1, self.lnf = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        x = x + self.fc2(F.gelu(self.fc1(self.ln1(x)), approximate="tanh"))
        logits = F.linear(self.lnf(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_cnn(seed=0):
    torch.manual_seed(seed)
    return Cnn()


def make(sizes, seed=0):
    torch.manual_seed(seed)
    return Mlp(sizes)


def _oracle_case(sizes, device):
    targets = torch.zeros(4, dtype=torch.int64, device=device)
    return Mlp(sizes), (torch.empty(4, sizes[0], device=device), targets), lambda loss: loss


def cnn(device):
    targets = torch.zeros(4, dtype=torch.int64, device=device)
    return Cnn(), (torch.empty(4, 1, 28, 28, device=device), targets), lambda loss: loss


def small_cnn(device):
    targets = torch.zeros(4, dtype=torch.int64, device=device)
    return SmallCnn(), (torch.empty(4, 3, 16, 16, device=device), targets), lambda loss: loss


def tied_tokens(device):
    ids = torch.zeros(4, 8, dtype=torch.int64, device=device)
    return TiedTokens(), (ids, torch.zeros_like(ids)), lambda loss: loss


def mlp(device):
    return _oracle_case(MLP, device)


def small(device):
    return _oracle_case(SMALL, device)
