"""mean_calls.py: mean_calls.c by the module ampc.

    mean_calls.py MODEL.so WEIGHTS.safetensors SAMPLES BATCH INPUT..."""
import json
import sys

import numpy as np

import ampc


def show(call, loss, losses, metrics):
    print(json.dumps({"call": call, "loss": loss, **{f"loss.{name}": v for name, v in losses.items()}, **metrics}))


def main():
    path, weights, samples, batch, *files = sys.argv[1:]
    samples, batch = int(samples), int(batch)
    model = ampc.Model(path)
    params = ampc.Params(model)
    params.load(weights)
    types = {"f32": np.float32, "i32": np.int32}
    inputs = [
        np.fromfile(file, types[info.dtype]).reshape((samples, *info.shape[1:]))
        for file, info in zip(files, model.inputs, strict=True)
    ]
    whole, parts = (ampc.Session(model, params, capacity=capacity) for capacity in (samples, batch))
    for call, session in (("Session.evaluate", whole), ("Session.evaluate, batches", parts)):
        found = session.evaluate(*inputs)
        show(call, found.loss, found.losses, found.metrics)
    n = samples // model.info.accumulate
    for i in range(model.info.accumulate):
        report = whole.step(*(array[i * n:(i + 1) * n] for array in inputs))
    assert report.complete
    show("Session.step", report.loss, whole.losses(), whole.metrics())


main()
