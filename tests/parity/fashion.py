"""fashion.py: Fashion-MNIST as tensors, from the four IDX files; synthetic pixels of the same form where they are not installed."""
import gzip
import os

import torch

FOLDER = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
IMAGE_HEADER, LABEL_HEADER = 16, 8  # bytes before the data: http://yann.lecun.com/exdb/mnist/


def _bytes(name, header):
    with gzip.open(os.path.join(FOLDER, name + ".gz")) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def _synthetic(count, generator):
    """Blurred noise with most pixels zero, as in photographs of clothes on black."""
    noise = torch.rand(count, 1, 28, 28, generator=generator)
    smooth = torch.nn.functional.avg_pool2d(noise, 5, stride=1, padding=2)
    return ((smooth - 0.5).clamp(min=0) * 8).clamp(max=1).view(count, 784), torch.randint(10, (count,), generator=generator)


def load(count=60000):
    """(pixels f32 [count, 784] in 0..1, labels i64 [count])"""
    if not os.path.isdir(FOLDER):
        return _synthetic(min(count, 8192), torch.Generator().manual_seed(1))
    images = _bytes("train-images-idx3-ubyte", IMAGE_HEADER).view(-1, 784)[:count]
    labels = _bytes("train-labels-idx1-ubyte", LABEL_HEADER)[:count]
    return images.float() / 255.0, labels.long()


def batches(size, count, seed=0):
    """|count| batches of |size| samples, drawn without replacement."""
    x, targets = load(size * count if size * count > 8192 else 8192)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    picks = [order[(i * size) % (len(x) - size + 1):][:size] for i in range(count)]
    return [(x[pick], targets[pick]) for pick in picks]
