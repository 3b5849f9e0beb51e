"""cnn.py: the TensorFlow twins of examples/fashion_mnist/cnn.amp (batch norm) and examples/cnn/cnn.amp (biases)."""
import tensorflow as tf

from tensorflow_twins import BATCH, CLASSES, Example, Model, max_pool2d, op, relu

IMAGES = {"x": tf.TensorSpec([BATCH, 1, 8, 8])}


def flatten(x):
    return op("flatten", tf.reshape, x, [x.shape[0], -1])


class Cnn(Model):
    inputs = IMAGES

    def logits(self, batch):
        h = self.batch_norm(self.conv2d(batch["x"], 8, 3, "conv1"), "bn1")
        h = max_pool2d(relu(h, "relu"), 2, "max_pool2d")
        h = self.batch_norm(self.conv2d(h, 16, 3, "conv2"), "bn2")
        h = max_pool2d(relu(h, "relu_1"), 2, "max_pool2d_1")
        return self.linear(flatten(h), CLASSES, "fc")


class WideCnn(Model):
    inputs = IMAGES

    def logits(self, batch):
        x = relu(self.conv2d(batch["x"], 8, 3, "conv1", bias=True), "relu")
        x = relu(self.conv2d(max_pool2d(x, 2, "max_pool2d"), 16, 3, "conv2", bias=True), "relu_1")
        return self.linear(flatten(max_pool2d(x, 2, "max_pool2d_1")), CLASSES, "fc1")


EXAMPLES = {"cnn": Example("examples/fashion_mnist/cnn.amp", Cnn), "wide_cnn": Example("examples/cnn/cnn.amp", WideCnn)}
