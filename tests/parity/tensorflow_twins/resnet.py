"""resnet.py: the TensorFlow twin of examples/resnet/resnet18.amp."""
import tensorflow as tf

from tensorflow_twins import BATCH, CLASSES, Example, Model, add, op, relu

WIDTHS = 8, 16, 32, 64


class ResNet18(Model):
    inputs = {"x": tf.TensorSpec([BATCH, 3, 16, 16])}

    def block(self, x, width, stride, path):
        y = self.batch_norm(self.conv2d(x, width, 3, f"{path}.conv1", stride), f"{path}.bn1")
        y = self.conv2d(relu(y, f"{path}.relu"), width, 3, f"{path}.conv2")
        y = self.batch_norm(y, f"{path}.bn2")
        if stride != 1:
            x = self.batch_norm(self.conv2d(x, width, 1, f"{path}.downsample.0", stride), f"{path}.downsample.1")
        return relu(add(x, y, f"{path}.add"), f"{path}.relu_1")

    def logits(self, batch):
        x = relu(self.batch_norm(self.conv2d(batch["x"], WIDTHS[0], 3, "conv1"), "bn1"), "relu")
        for stage, width in enumerate(WIDTHS, 1):
            x = self.block(x, width, 2 if stage > 1 else 1, f"layer{stage}.0")
            x = self.block(x, width, 1, f"layer{stage}.1")
        return self.linear(op("global_avg_pool", tf.reduce_mean, x, [2, 3]), CLASSES, "fc")


EXAMPLES = {"resnet18": Example("examples/resnet/resnet18.amp", ResNet18)}
