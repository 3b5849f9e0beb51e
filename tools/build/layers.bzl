"""The layers of the project: who may depend on each folder. docs/design/architecture.md draws them.

A library that states no visibility gets its folder's row: the folder itself, the folders above it that may use it, and
the tests. Bazel refuses every other dependency, and a header without a dependency is not found. What everybody may use
of compiler and runtime, `tools/` too, is a library of its own: `amp_public_library`.
"""

_USERS = {
    "base": [
        "bench",
        "codegen",
        "compiler",
        "cuda_sdk",
        "fakecuda",
        "frontend",
        "ir",
        "onnx",
        "passes",
        "precision",
        "runtime",
        "targets",
        "tools",
    ],
    "bench": [],
    "codegen": ["compiler"],
    "compiler": ["bench", "examples"],
    "cuda_sdk": ["codegen", "fakecuda", "runtime"],
    "examples": [],
    "fakecuda": [],
    "frontend": ["compiler"],
    "ir": ["codegen", "compiler", "frontend", "onnx", "passes", "precision", "targets"],
    "onnx": ["compiler"],
    "passes": ["compiler"],
    "precision": ["compiler", "onnx", "passes"],
    "runtime": ["bench", "examples", "fakecuda"],
    "targets": ["codegen", "compiler", "passes"],
    "tests": ["fakecuda"],
    "tools": ["bench"],
}

def layer_visibility(package):
    """The packages that may depend on a library of `package`."""
    folder = package.split("/")[0]
    users = [folder] + _USERS[folder] + ([] if folder == "tests" else ["tests"])
    return ["//%s:__subpackages__" % user for user in users]
