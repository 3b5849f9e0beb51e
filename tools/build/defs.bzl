"""Build macros of this project: C11 and C++17 with warnings as errors, and flex and bison.

The language standards are set in .bazelrc, because Bazel knows there which of the two languages a file is in.
"""

load("//tools/build:layers.bzl", "layer_visibility")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

# Symbols leave a shared object only where AMP_API says so.
_COPTS = _WARNINGS + ["-fvisibility=hidden"]

def amp_cc_library(name, copts = [], visibility = None, **kwargs):
    """A C library. Includes are relative to the workspace root; public headers come in through `includes`.

    Who may depend on it is what layers.bzl says of its folder, where `visibility` does not say less.
    """
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        linkstatic = True,
        visibility = visibility or layer_visibility(native.package_name()),
        **kwargs
    )

def amp_cc_binary(name, copts = [], visibility = ["//visibility:public"], **kwargs):
    """A program, or with `linkshared = True` a shared object."""
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        visibility = visibility,
        **kwargs
    )

def amp_cc_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A GoogleTest program; its main() comes from @googletest//:gtest_main.

    Tags that mean something here: `tsan` (starts threads, runs under the thread sanitizer too), `no_asan` (cannot run
    under the address sanitizer), `full` (runs in tools/test --full only).
    """
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        linkstatic = True,
        deps = deps + ["@googletest//:gtest_main"],
        **kwargs
    )

def amp_flex(name, src):
    """Generates `<name>.c` from a flex specification.

    Without #line directives, which would name files of the sandbox; never interactive and without unistd.h, because
    the scanner reads memory and strict C11 declares neither isatty nor fileno.
    """
    native.genrule(
        name = name + "_flex",
        srcs = [src],
        outs = [name + ".c"],
        cmd = "flex --noline --never-interactive --nounistd --outfile=$@ $<",
        message = "Generating lexer",
    )

def amp_bison(name, src):
    """Generates `<name>.c` and `<name>.h` from a bison grammar, without #line directives. Warnings are errors.

    Bison is run beside its outputs, so that the include guard and the #include of the header hold no path.
    """
    native.genrule(
        name = name + "_bison",
        srcs = [src],
        outs = [
            name + ".c",
            name + ".h",
        ],
        cmd = ("grammar=$$PWD/$< && cd $(RULEDIR) && " +
               "bison --no-lines -Werror --header={name}.h --output={name}.c $$grammar").format(name = name),
        message = "Generating parser",
    )

def _amp_static_archive_impl(ctx):
    archives = []
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                archive = library.pic_static_library or library.static_library
                if archive and archive not in archives:
                    archives.append(archive)
    whole, hidden, public = [
        ctx.actions.declare_file(ctx.label.name + ending)
        for ending in [".o", ".hidden", ".public"]
    ]
    symbols = "readelf -sW {whole} | awk '$5 == \"GLOBAL\" && $6 == \"%s\" && $7 != \"UND\" {{ print $8 }}' > {%s}"
    ctx.actions.run_shell(
        inputs = archives,
        outputs = [whole, hidden, public, ctx.outputs.out],
        # Only symbols that are defined here are changed: a weak reference would bring in nothing of libm or libgcc.
        command = " && ".join([
            "ld -r -o {whole} --whole-archive {archives}",
            symbols % ("HIDDEN", "hidden"),
            symbols % ("DEFAULT", "public"),
            "objcopy --localize-symbols={hidden} --weaken-symbols={public} {whole}",
            "ar rcD {out} {whole}",
        ]).format(
            archives = " ".join([a.path for a in archives]),
            hidden = hidden.path,
            out = ctx.outputs.out.path,
            public = public.path,
            whole = whole.path,
        ),
        mnemonic = "AmpStaticArchive",
        progress_message = "Merging " + ctx.outputs.out.short_path,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

# One archive of the libraries `deps` and of all that they depend on, for applications that are not built with Bazel.
# Only the public functions stay visible, so that no name inside can clash with one of the application; they are weak,
# so that an application can link two such archives that share a library.
amp_static_archive = rule(
    implementation = _amp_static_archive_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "out": attr.output(mandatory = True),
    },
)
