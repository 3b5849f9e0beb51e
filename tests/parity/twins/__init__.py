"""PyTorch twins of the models in examples/, written for these comparisons: one file per folder there, the same
parameters by name and layout, at sizes that -D sets.

A file has EXAMPLES, by the name that the tests print. A twin's `results` takes the model's inputs and returns its
results by name; the module itself takes the targets too and returns the loss. Where several blocks train, `losses`
gives the loss of each by the beginning of its parameters' names, and `optimizer` updates all.
"""
import importlib
import os
import pkgutil
from collections import namedtuple

import torch

# model: its file in examples/
# defines: -D, by name
# make(): the twin
# inputs(): a batch, by name, without the targets
# targets(): a batch's, or None where the loss needs none
# trace: the function of the file that hands the twin to the autocast oracle, or None
# clip: the norm that the model's gradients are clipped to
Example = namedtuple("Example", "model defines make inputs targets trace clip", defaults=[1.0])


def file_of(name):
    return os.path.join(os.path.dirname(__file__), name + ".py")


def examples():
    """Of every file: (name, file, example)."""
    for module in pkgutil.iter_modules(__path__):
        for name, example in importlib.import_module(f"twins.{module.name}").EXAMPLES.items():
            yield name, file_of(module.name), example


def losses_of(module, batch):
    """By the beginning of the names of the parameters that each trains."""
    return module.losses(*batch) if hasattr(module, "losses") else {"": module(*batch)}


def gradients_of(module, losses, scale=1.0):
    """Of each parameter, by the loss that trains it, which is multiplied by |scale| meanwhile."""
    grads = {}
    for start, loss in losses.items():
        names, parameters = zip(*((name, p) for name, p in module.named_parameters() if name.startswith(start)))
        found = torch.autograd.grad(loss * scale, parameters, retain_graph=True)
        grads.update((name, g / scale if scale != 1.0 else g) for name, g in zip(names, found))
    return grads
