"""networks.py: PyTorch twins of models/networks/*.amp, small networks of many kinds, for the autocast oracle:
NETWORKS has the function of this file for each, by the name of its model."""
import torch
import torch.nn.functional as F
from torch import nn

BATCH = 4
NETWORKS = {}


def floats(*shape):
    return lambda device: torch.empty(BATCH, *shape, device=device)


def ids(*shape):
    return lambda device: torch.zeros(BATCH, *shape, dtype=torch.int64, device=device)


def network(name, *inputs):
    """Makes of a module what the oracle calls; its inputs are the model's, then its training's."""
    def builder(module):
        NETWORKS[name] = module.__name__
        return lambda device: (module(), tuple(make(device) for make in inputs), lambda loss: loss)
    return builder


def conv(fan_in, out, kernel=3, **options):
    return nn.Conv2d(fan_in, out, kernel, padding=kernel // 2, **options)


class Layers(nn.Module):
    """Its layers by name."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, nn.ModuleList(layer) if isinstance(layer, list) else layer)


@network("vgg", floats(3, 16, 16), ids())
class Vgg(Layers):
    def __init__(self):
        super().__init__(first=[conv(3, 8), conv(8, 16)], second=[conv(8, 8), conv(16, 16)],
                         fc=nn.Linear(256, 32), head=nn.Linear(32, 10))

    def forward(self, x, targets):
        for first, second in zip(self.first, self.second):
            x = F.max_pool2d(F.relu(second(F.relu(first(x)))), 2)
        return F.cross_entropy(self.head(F.relu(self.fc(x.flatten(1)))), targets)


@network("densenet", floats(3, 8, 8), ids())
class DenseNet(Layers):
    def __init__(self):
        widths = [3, 7, 11]
        super().__init__(norms=[nn.BatchNorm2d(width) for width in widths],
                         convs=[conv(width, 4, bias=False) for width in widths],
                         transition=conv(15, 8, 1), head=nn.Linear(8, 10))

    def forward(self, x, targets):
        for norm, layer in zip(self.norms, self.convs):
            x = torch.cat([x, layer(F.relu(norm(x)))], 1)
        x = self.transition(F.avg_pool2d(x, 2))
        return F.cross_entropy(self.head(x.mean((2, 3))), targets)


@network("squeeze_excite", floats(3, 8, 8), ids())
class SqueezeExcite(Layers):
    def __init__(self):
        super().__init__(conv=conv(3, 16), squeeze=nn.Linear(16, 4), excite=nn.Linear(4, 16), head=nn.Linear(64, 10))

    def forward(self, x, targets):
        x = self.conv(x)
        s = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        x = F.relu(x * s[..., None, None])
        return F.cross_entropy(self.head(F.max_pool2d(x, 4).flatten(1)), targets)


@network("mobilenet", floats(3, 8, 8), ids())
class MobileNet(Layers):
    def __init__(self):
        super().__init__(stem=conv(3, 8, bias=False), expand=conv(8, 24, 1, bias=False), bn1=nn.BatchNorm2d(24),
                         depthwise=conv(24, 24, groups=24, bias=False), bn2=nn.BatchNorm2d(24),
                         project=conv(24, 8, 1, bias=False), bn3=nn.BatchNorm2d(8), head=nn.Linear(8, 10))

    def forward(self, x, targets):
        x = self.stem(x)
        y = F.hardswish(self.bn1(self.expand(x)))
        y = self.bn3(self.project(F.hardswish(self.bn2(self.depthwise(y)))))
        return F.cross_entropy(self.head((x + y).mean((2, 3))), targets)


@network("inception", floats(3, 8, 8), ids())
class Inception(Layers):
    def __init__(self):
        super().__init__(stem=conv(3, 8), one=conv(8, 4, 1), three=[conv(8, 4, 1), conv(4, 6)],
                         five=[conv(8, 2, 1), conv(2, 4, 5)], pooled=conv(8, 4, 1), head=nn.Linear(18, 10))

    def forward(self, x, targets):
        x = F.relu(self.stem(x))
        a, b = self.one(x), self.three[1](F.relu(self.three[0](x)))
        c, d = self.five[1](F.relu(self.five[0](x))), self.pooled(F.max_pool2d(x, 3, 1, 1))
        return F.cross_entropy(self.head(F.relu(torch.cat([a, b, c, d], 1)).mean((2, 3))), targets)


@network("hourglass", floats(3, 8, 8), floats(1, 8, 8))
class Hourglass(Layers):
    def __init__(self):
        super().__init__(into=conv(3, 8), gn1=nn.GroupNorm(2, 8), down=conv(8, 8, stride=2), gn2=nn.GroupNorm(4, 8),
                         head=conv(8, 1, 1))

    def forward(self, x, targets):
        x = F.leaky_relu(self.gn1(self.into(x)), 0.1)
        y = F.leaky_relu(self.gn2(self.down(x)), 0.1)
        return F.binary_cross_entropy_with_logits(self.head(x + F.interpolate(y, scale_factor=2)), targets)


@network("style_transfer", floats(3, 8, 8), floats(3, 8, 8))
class StyleTransfer(Layers):
    def __init__(self):
        super().__init__(down=conv(3, 8, stride=2), in1=nn.InstanceNorm2d(8, affine=True), inner=conv(8, 8),
                         in2=nn.InstanceNorm2d(8, affine=True), up=nn.ConvTranspose2d(8, 3, 4, 2, 1))

    def forward(self, x, wanted):
        h = F.relu(self.in1(self.down(x)))
        h = F.relu(self.in2(h + self.inner(h)))
        return F.l1_loss(torch.tanh(self.up(h)), wanted)


@network("vit", floats(3, 8, 8), ids())
class Vit(Layers):
    def __init__(self):
        super().__init__(patches=nn.Conv2d(3, 16, 4, 4), ln1=nn.LayerNorm(16), ln2=nn.LayerNorm(16),
                         **{name: nn.Linear(16, 16) for name in "qkvo"},
                         fc1=nn.Linear(16, 32), fc2=nn.Linear(32, 16), head=nn.Linear(16, 10))
        self.places = nn.Parameter(torch.empty(4, 16))

    def forward(self, x, targets):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        y = self.ln1(x)
        q, k, v = (layer(y).reshape(BATCH, 4, 2, 8).transpose(1, 2) for layer in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(BATCH, 4, 16))
        x = x + self.fc2(F.gelu(self.fc1(self.ln2(x))))
        return F.cross_entropy(self.head(x.mean(1)), targets)


@network("mlp_mixer", floats(6, 12), ids())
class MlpMixer(Layers):
    def __init__(self):
        super().__init__(into=nn.Linear(12, 16), ln1=nn.LayerNorm(16), ln2=nn.LayerNorm(16), ln3=nn.LayerNorm(16),
                         tokens1=nn.Linear(6, 12), tokens2=nn.Linear(12, 6), channels1=nn.Linear(16, 32),
                         channels2=nn.Linear(32, 16), head=nn.Linear(16, 10))

    def forward(self, x, targets):
        x = self.into(x)
        y = self.ln1(x).transpose(1, 2).contiguous()  # else PyTorch's linear is a product and a sum
        x = x + self.tokens2(F.gelu(self.tokens1(y))).transpose(1, 2)
        x = x + self.channels2(F.gelu(self.channels1(self.ln2(x))))
        return F.cross_entropy(self.head(self.ln3(x).mean(1)), targets)


@network("translator", ids(5), ids(6), ids(6))
class Translator(Layers):
    def __init__(self):
        super().__init__(source=nn.Embedding(20, 16), before=nn.Embedding(20, 16), encoder=nn.Linear(16, 16),
                         ln1=nn.LayerNorm(16), ln2=nn.LayerNorm(16), head=nn.Linear(16, 20),
                         **{name: nn.Linear(16, 16) for name in "qkvo"})

    def forward(self, source, before, targets):
        memory = self.source(source)
        memory = self.ln1(memory + F.relu(self.encoder(memory)))
        x = self.before(before)
        q, k, v = self.q(x)[:, None], self.k(memory)[:, None], self.v(memory)[:, None]
        x = self.ln2(x + self.o(F.scaled_dot_product_attention(q, k, v).squeeze(1)))
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class Cell(Layers):
    def __init__(self):
        super().__init__(forget=nn.Linear(12, 8), candidate=nn.Linear(12, 8))

    def forward(self, x, h):
        f = torch.sigmoid(self.forget(torch.cat([x, h], 1)))
        c = torch.tanh(self.candidate(torch.cat([x, f * h], 1)))
        return (1.0 - f) * h + f * c


@network("gated_cell", floats(12), ids())
class GatedCell(Layers):
    def __init__(self):
        super().__init__(first=nn.Linear(12, 8), cell=Cell(), head=nn.Linear(8, 3))

    def forward(self, x, targets):
        h = torch.tanh(self.first(x))
        for at in (0, 4, 8):
            h = self.cell(x[:, at : at + 4], h)
        return F.cross_entropy(self.head(h), targets)


def unit(x):
    return x * torch.rsqrt((x * x).sum(1, keepdim=True))


@network("siamese", floats(12), floats(10))
class Siamese(Layers):
    def __init__(self):
        super().__init__(image=[nn.Linear(12, 16), nn.Linear(16, 8)], text=[nn.Linear(10, 16), nn.Linear(16, 8)])

    def forward(self, image, text):
        a, b = (unit(two(F.relu(one(x)))) for x, (one, two) in ((image, self.image), (text, self.text)))
        logits = 10.0 * (a @ b.T.contiguous())  # else the gradient is the same product transposed
        labels = torch.arange(BATCH, device=image.device)
        return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels))


@network("vae", floats(12), floats(4))
class Vae(Layers):
    def __init__(self):
        super().__init__(encoder=nn.Linear(12, 16), mean=nn.Linear(16, 4), log_var=nn.Linear(16, 4),
                         decoder1=nn.Linear(4, 16), decoder2=nn.Linear(16, 12))

    def forward(self, x, noise):
        h = F.relu(self.encoder(x))
        mean, log_var = self.mean(h), self.log_var(h)
        y = self.decoder2(F.relu(self.decoder1(mean + noise * torch.exp(0.5 * log_var))))
        divergence = -0.5 * torch.mean(1.0 + log_var - mean * mean - torch.exp(log_var))
        return F.binary_cross_entropy_with_logits(y, x) + divergence


@network("robust_losses", floats(12))
class RobustLosses(Layers):
    def __init__(self):
        super().__init__(trunk=nn.Linear(12, 16), **{name: nn.Linear(16, 12) for name in "abc"})

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        a, b, c = self.a(h), self.b(h), self.c(h)
        losses = F.l1_loss(a, x), F.smooth_l1_loss(b, x, beta=0.5), F.huber_loss(c, x, delta=0.5)
        return losses[0] + losses[1] + losses[2]


@network("distillation", floats(12), ids())
class Distillation(Layers):
    def __init__(self):
        super().__init__(large=[nn.Linear(12, 32), nn.Linear(32, 10)], small=[nn.Linear(12, 8), nn.Linear(8, 10)])

    def forward(self, x, targets):
        teacher, student = (two(F.relu(one(x))) for one, two in (self.large, self.small))
        hard = F.cross_entropy(teacher, targets)
        given, wanted = F.log_softmax(0.5 * student, -1), F.softmax(0.5 * teacher.detach(), -1)
        return hard + F.kl_div(given, wanted, reduction="batchmean")


@network("multi_task", floats(12), ids(), floats(1))
class MultiTask(Layers):
    def __init__(self):
        super().__init__(trunk=nn.Linear(12, 16), kind=[nn.Linear(16, 8), nn.Linear(8, 5)], size=nn.Linear(16, 1))

    def forward(self, x, targets, sizes):
        h = F.silu(self.trunk(x))
        logits, size = self.kind[1](F.silu(self.kind[0](h))), F.softplus(self.size(h))
        return F.cross_entropy(logits, targets) + 0.1 * F.mse_loss(size, sizes)


@network("bag_of_words", ids(6), ids())
class BagOfWords(Layers):
    def __init__(self):
        super().__init__(words=nn.Embedding(30, 16), head=nn.Linear(16, 4))

    def forward(self, words, targets):
        return F.cross_entropy(self.head(self.words(words).mean(1)), targets)


@network("wide_and_deep", floats(6), ids(3), floats(1))
class WideAndDeep(Layers):
    def __init__(self):
        super().__init__(wide=nn.Linear(6, 1), table=nn.Embedding(30, 4),
                         deep=[nn.Linear(18, 16), nn.Linear(16, 1, bias=False)])

    def forward(self, numbers, words, clicked):
        wide = self.wide(numbers)
        x = torch.cat([self.table(words).flatten(1), numbers], 1)
        return F.binary_cross_entropy_with_logits(wide + self.deep[1](F.relu(self.deep[0](x))), clicked)


@network("factorization_machine", ids(5), floats(6), floats(1))
class FactorizationMachine(Layers):
    def __init__(self):
        super().__init__(table=nn.Embedding(30, 4), linear=nn.Linear(6, 1))

    def forward(self, words, numbers, rating):
        v = self.table(words)
        whole = v.sum(1)
        pairs = 0.5 * (whole * whole - (v * v).sum(1)).sum(1, keepdim=True)
        return F.mse_loss(pairs + self.linear(numbers), rating)


@network("activations", floats(12), ids())
class Activations(Layers):
    def __init__(self):
        widths = [12] + 7 * [16] + [10]
        super().__init__(fc=[nn.Linear(*sizes) for sizes in zip(widths, widths[1:])], prelu=nn.PReLU())

    def forward(self, x, targets):
        functions = [self.prelu, F.elu, F.mish, F.hardsigmoid, lambda x: F.gelu(x, approximate="tanh"), F.softplus,
                     torch.sin, lambda x: x]
        for layer, function in zip(self.fc, functions):
            x = function(layer(x))
        return F.cross_entropy(x, targets)


@network("flow", floats(8))
class Flow(Layers):
    def __init__(self):
        super().__init__(inner=nn.Linear(4, 16), stretch=nn.Linear(16, 4), shift=nn.Linear(16, 4))

    def forward(self, x):
        h = torch.tanh(self.inner(x[:, :4]))
        s = torch.tanh(self.stretch(h))
        z = x[:, 4:] * torch.exp(s) + self.shift(h)
        stretched = s.sum(1)
        return (0.5 * (z * z).sum(1) - stretched).mean()


@network("mixture", floats(8), floats(1))
class Mixture(Layers):
    def __init__(self):
        super().__init__(trunk=nn.Linear(8, 16), share=nn.Linear(16, 4), centre=nn.Linear(16, 4),
                         log_width=nn.Linear(16, 4))

    def forward(self, x, y):
        h = torch.tanh(self.trunk(x))
        share, centre, log_width = self.share(h), self.centre(h), self.log_width(h)
        off = (y - centre) * torch.exp(-log_width)
        return -torch.logsumexp(F.log_softmax(share, -1) - log_width - 0.5 * off * off, 1).mean()


@network("survival", floats(8), floats(6))
class Survival(Layers):
    def __init__(self):
        super().__init__(trunk=nn.Linear(8, 16), risks=nn.Linear(16, 6))

    def forward(self, x, died):
        risks = F.softplus(self.risks(F.relu(self.trunk(x))))
        return (torch.cumsum(risks, 1) * (1.0 - died) - died * torch.log(risks)).mean()


@network("highway", floats(12), floats(3))
class Highway(Layers):
    def __init__(self):
        super().__init__(into=nn.Linear(12, 16), gate=nn.Linear(16, 16), h=nn.Linear(16, 16), head=nn.Linear(16, 3))

    def forward(self, x, t):
        x = self.into(x)
        gate = torch.sigmoid(self.gate(x))
        x = gate * F.relu(self.h(x)) + (1.0 - gate) * x
        off = torch.clamp(self.head(x), -2.0, 2.0) - t
        return torch.where(off > 0.0, 0.9 * off, -0.1 * off).mean()


@network("linear_attention", floats(6, 16), floats(6, 16))
class LinearAttention(Layers):
    def __init__(self):
        super().__init__(q=nn.Linear(16, 8), k=nn.Linear(16, 8), v=nn.Linear(16, 16), o=nn.Linear(16, 16))

    def forward(self, x, t):
        q, k, v = F.elu(self.q(x)) + 1.0, F.elu(self.k(x)) + 1.0, self.v(x)
        seen = q @ (k.transpose(1, 2) @ v)
        whole = (q * k.sum(1, keepdim=True)).sum(2, keepdim=True)
        return F.mse_loss(self.o(seen / whole), t)


@network("temporal_conv", floats(4, 16), floats(4, 16))
class TemporalConv(Layers):
    def __init__(self):
        super().__init__(near=nn.Conv1d(4, 8, 3), far=nn.Conv1d(8, 8, 3, dilation=2), head=nn.Conv1d(8, 4, 1))

    def forward(self, x, t):
        h = F.relu(self.near(F.pad(x, (2, 0))))
        h = h + F.relu(self.far(F.pad(h, (4, 0))))
        return F.mse_loss(self.head(h), t)


@network("graph_conv", floats(6, 8), floats(6, 6), ids())
class GraphConv(Layers):
    def __init__(self):
        super().__init__(first=nn.Linear(8, 16, bias=False), second=nn.Linear(16, 16, bias=False),
                         head=nn.Linear(16, 3))

    def forward(self, x, edges, targets):
        x = F.relu(edges @ self.first(x))
        x = F.relu(edges @ self.second(x))
        return F.cross_entropy(self.head(x.sum(1)), targets)


class Expert(Layers):
    def __init__(self):
        super().__init__(inner=nn.Linear(12, 8), outer=nn.Linear(8, 4))

    def forward(self, x, share, at):
        answer = self.outer(F.relu(self.inner(x)))
        return share[:, at : at + 1] * answer


@network("experts", floats(12), floats(4))
class Experts(Layers):
    def __init__(self):
        super().__init__(gate=nn.Linear(12, 3), experts=[Expert() for _ in range(3)])

    def forward(self, x, t):
        share = F.softmax(self.gate(x), 1)
        y = self.experts[0](x, share, 0)
        for at in (1, 2):
            y = y + self.experts[at](x, share, at)
        return F.mse_loss(y, t)


@network("tied_autoencoder", floats(12))
class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(5, 12)), nn.Parameter(torch.empty(12))

    def forward(self, x):
        y = torch.tanh(F.linear(x, self.weight)) @ self.weight + self.bias
        return F.mse_loss(y, x) + 0.01 * self.weight.abs().sum()


@network("maxout", floats(12), floats(5))
class Maxout(Layers):
    def __init__(self):
        super().__init__(pieces=nn.Linear(12, 24))
        self.points = nn.Parameter(torch.empty(1, 5, 8))

    def forward(self, x, t):
        h = self.pieces(x).reshape(BATCH, 3, 8).amax(1)
        far = (h.reshape(BATCH, 1, 8) - self.points).norm(dim=2)
        return F.mse_loss(torch.maximum(1.0 - far, 0.1 * far), t)


@network("gru", floats(8), ids())
class Gru(Layers):
    def __init__(self):
        super().__init__(of_input=nn.Linear(4, 24), of_state=nn.Linear(8, 24), norm=nn.LayerNorm(8),
                         head=nn.Linear(8, 3))

    def step(self, a, b, h=None):
        r, z = (torch.sigmoid(a[:, at : at + 8] + b[:, at : at + 8]) for at in (0, 8))
        n = torch.tanh(a[:, 16:] + r * b[:, 16:])
        return (1.0 - z) * n if h is None else (1.0 - z) * n + z * h

    def forward(self, x, targets):
        a = self.of_input(x[:, :4])
        h = self.step(a, self.of_state(torch.zeros(BATCH, 8, device=x.device)))
        a = self.of_input(x[:, 4:])
        return F.cross_entropy(self.head(self.norm(self.step(a, self.of_state(h), h))), targets)
