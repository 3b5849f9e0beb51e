"""Networks of ten families as ONNX files, exported here and now: onnx_zoo.py tries `ampc autocast` on them.

    onnx_models.py FAMILY OPSET OUT.onnx      opset 17: PyTorch's legacy exporter; above: its default one

Weights are random; widths and lengths are small where the graph is the same.
"""
import sys
import warnings

import numpy as np
import torch
from torch.export import Dim

OPSETS = (17, 18, 23, 25)  # 17 by the legacy exporter


class First(torch.nn.Module):
    """The first output of a module of transformers, called by keywords."""

    def __init__(self, module, *names, of=None):
        super().__init__()
        self.module, self.names, self.of = module, names, of

    def forward(self, *inputs):
        out = self.module(**dict(zip(self.names, inputs)))
        return getattr(out, self.of) if self.of else out[0]


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(24, 32, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def image(name, size=64):
    def make():
        import torchvision
        options = {"image_size": size} if name.startswith("vit") else {}
        return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(2, 3, size, size),), {0: "N"}
    return make


def tokens(n=2, t=16, vocabulary=500):
    return torch.randint(0, vocabulary, (n, t))


SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "vocab_size": 500}


def bert(**sizes):
    from transformers import BertConfig, BertModel
    mask = torch.ones(2, 16, dtype=torch.int64)
    mask[1, 9:] = 0
    return First(BertModel(BertConfig(**sizes)), "input_ids", "attention_mask"), (tokens(), mask), {0: "N", 1: "T"}


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=500, use_cache=False)
    return First(GPT2LMHeadModel(config), "input_ids", of="logits"), (tokens(),), {0: "N", 1: "T"}


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(**SMALL, num_key_value_heads=2, use_cache=False)
    return First(LlamaForCausalLM(config), "input_ids", of="logits"), (tokens(),), {0: "N", 1: "T"}


def whisper():
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = WhisperConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128,
                           max_source_positions=50)
    return First(WhisperEncoder(config), "input_features"), (torch.randn(2, 80, 100),), {0: "N"}


FAMILIES = {
    "resnet18": image("resnet18"),
    "mobilenet_v3_large": image("mobilenet_v3_large"),
    "efficientnet_b0": image("efficientnet_b0"),
    "convnext_tiny": image("convnext_tiny"),
    "vit_b_16": image("vit_b_16"),
    "bert": lambda: bert(**SMALL),
    "gpt2": gpt2,
    "llama": llama,
    "whisper": whisper,
    "lstm": lambda: (Recurrent(), (torch.randn(2, 7, 24),), {0: "N", 1: "T"}),
}
FULL_SIZE = {"bert_base": bert}
# What the legacy exporter cannot export: masks of transformers have ops without a legacy form.
WITHOUT_LEGACY = {"gpt2", "llama"}


def calibrate(module, inputs):
    """Batch norms get the statistics of these inputs, without which numbers vanish from layer to layer."""
    norms = [m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    if norms:
        with torch.no_grad():
            module.train()(*inputs)


def network(family, calibrated=True):
    """The module, its inputs, and which of their dims vary, by name."""
    torch.manual_seed(3)
    torch.backends.mha.set_fastpath_enabled(False)  # one op without an ONNX form
    module, inputs, dims = {**FAMILIES, **FULL_SIZE}[family]()
    for name, parameter in module.named_parameters():
        if name.endswith("layer_scale"):  # 1e-6 at first, which hides the block
            torch.nn.init.constant_(parameter, 0.5)
        if name == "heads.head.weight":  # zeros at first
            torch.nn.init.normal_(parameter, std=0.05)
    if calibrated:
        calibrate(module, inputs)
    return module.eval(), inputs, dims


def export(family, opset, path, calibrated=True):
    """Returns the inputs, and the program that PyTorch's default exporter made (None of the legacy one)."""
    module, inputs, dims = network(family, calibrated)
    program = None
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        if opset == 17:
            names = [f"input_{i}" for i in range(len(inputs))]
            torch.onnx.export(module, inputs, path, dynamo=False, opset_version=17, input_names=names,
                              dynamic_axes={name: dims for name in names})
        else:
            shapes = tuple({axis: Dim.DYNAMIC for axis in dims} for _ in inputs)
            if isinstance(module, First):
                shapes = (shapes,)  # of *inputs
            program = torch.onnx.export(module, inputs, path, dynamo=True, opset_version=opset, dynamic_shapes=shapes,
                                        verbose=False)
    return inputs, program and program.exported_program


# ---- sklearn ---------------------------------------------------------------------------------------------------------

def pipelines():
    """Names, fitted pipelines, and the samples that they were fitted to."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    random = np.random.default_rng(5)
    x = random.normal(size=(200, 5)).astype(np.float32)
    label, value = (x[:, 0] * x[:, 1] > 0).astype(np.int64), (x[:, 0] + x[:, 2] ** 2).astype(np.float32)
    colours = random.choice(["red", "green", "blue"], size=(200, 1))
    network = {"hidden_layer_sizes": (16,), "max_iter": 60}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "mlp_classifier", make_pipeline(StandardScaler(), MLPClassifier(**network)).fit(x, label), x
        yield "mlp_regressor", make_pipeline(StandardScaler(), MLPRegressor(**network)).fit(x, value), x
        yield "logistic", make_pipeline(StandardScaler(), LogisticRegression()).fit(x, label), x
        yield "forest", make_pipeline(StandardScaler(), RandomForestRegressor(5)).fit(x, value), x
        columns = ColumnTransformer([("colour", OneHotEncoder(), [0])])
        yield "strings", make_pipeline(columns, LogisticRegression()).fit(colours, label), colours


def export_pipeline(pipeline, samples, path):
    from skl2onnx import to_onnx
    with open(path, "wb") as file:
        file.write(to_onnx(pipeline, samples[:1], target_opset={"": 18, "ai.onnx.ml": 3}).SerializeToString())


if __name__ == "__main__":
    export(sys.argv[1], int(sys.argv[2]), sys.argv[3])
