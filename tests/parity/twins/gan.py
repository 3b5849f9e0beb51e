"""gan.py: the twin of examples/gan, with both updates of a step."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from twins import Example


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.gen = nn.ModuleDict({"first": nn.Linear(4, 16), "last": nn.Linear(16, 1)})
        self.disc = nn.ModuleDict({"first": nn.Linear(1, 16), "last": nn.Linear(16, 1, bias=False)})
        nn.init.normal_(self.disc["first"].weight)
        nn.init.normal_(self.disc["first"].bias, std=3.0)
        nn.init.normal_(self.disc["last"].weight, std=0.3)

    def discriminated(self, x):
        return self.disc["last"](torch.tanh(self.disc["first"](x)))

    def results(self, noise, real):
        made = self.gen["last"](torch.tanh(self.gen["first"](noise)))
        return {"made": made, "of_made": self.discriminated(made), "of_real": self.discriminated(real)}

    def losses(self, noise, real):
        """Of one forward pass, by the parameters that each of them trains."""
        results = self.results(noise, real)
        of_made, of_real = results["of_made"], results["of_real"]
        return {"gen.": F.softplus(-of_made).mean(), "disc.": F.softplus(-of_real).mean() + F.softplus(of_made).mean()}

    def forward(self, noise, real):
        return sum(self.losses(noise, real).values())

    def optimizer(self):
        groups = [{"params": self.gen.parameters(), "lr": 0.001}, {"params": self.disc.parameters(), "lr": 0.01}]
        return torch.optim.Adam(groups, betas=(0.5, 0.999))


def gan(device):
    module = Gan()
    module.forward = module.losses
    return module, (torch.empty(16, 4, device=device), torch.empty(16, 1, device=device)), lambda losses: losses


EXAMPLES = {"gan": Example("gan/gan.amp", {}, Gan, lambda: {"noise": torch.randn(16, 4), "real": torch.randn(16, 1)},
                           lambda: None, "gan", clip=math.inf)}
