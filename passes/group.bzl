"""One group of passes as a library: the pipeline and tests may depend on it, and groups that its BUILD file names."""

load("//tools/build:defs.bzl", "amp_cc_library")

def amp_pass_group(name, srcs = [], deps = [], users = []):
    """All sources and headers of the package, over what every group shares."""
    amp_cc_library(
        name = name,
        srcs = native.glob(["*.c"]) + srcs,
        hdrs = native.glob([
            "*.h",
            "*.def",
        ]),
        visibility = [
            "//passes:__pkg__",
            "//tests:__subpackages__",
        ] + users,
        deps = [
            "//base",
            "//ir",
            "//passes:interface",
            "//passes/common",
        ] + deps,
    )
