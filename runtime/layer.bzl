"""One folder of the runtime as a library.

Its `deps` are the folders that it may include from: a layer only uses those below it.
"""

load("//tools/build:defs.bzl", "amp_cc_library")

# The initialisers promise the same bits everywhere: no compiler may merge a product and a sum.
COPTS = ["-ffp-contract=off"]

def amp_runtime_layer(name, deps = [], hdrs = None, visibility = ["//runtime:__subpackages__"], **kwargs):
    """All sources and headers of the package, for other layers of the runtime alone; everybody else uses //runtime."""
    amp_cc_library(
        name = name,
        srcs = native.glob(["*.c"]),
        hdrs = native.glob(["*.h"]) if hdrs == None else hdrs,
        copts = COPTS,
        visibility = visibility,
        deps = ["//base", "//runtime:amp_headers"] + deps,
        **kwargs
    )
