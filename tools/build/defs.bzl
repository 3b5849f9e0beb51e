"""Build macros of this project: C11 and C++17 with warnings as errors, and flex and bison.

The language standards are set in .bazelrc, because Bazel knows there which of the two languages a file is in.
"""

load("//tools/build:layers.bzl", "layer_visibility")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
]

# Rows of tables leave out what is zero in them; where they name their fields, only clang remarks it (--config=clang).
_CLANG = select({
    "//tools/build:clang": ["-Wno-missing-field-initializers"],
    "//conditions:default": [],
})

# Symbols leave a shared object only where AMP_API says so.
_COPTS = _WARNINGS + ["-fvisibility=hidden"] + _CLANG

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

def _amp_public_library_impl(ctx):
    headers = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.headers])
    return [CcInfo(
        compilation_context = headers.compilation_context,
        linking_context = ctx.attr.library[CcInfo].linking_context,
    )]

# `library` for those who see no more of it than `headers`: an include of another header fails to build.
amp_public_library = rule(
    implementation = _amp_public_library_impl,
    attrs = {
        "headers": attr.label_list(providers = [CcInfo]),
        "library": attr.label(providers = [CcInfo]),
    },
    provides = [CcInfo],
)

def amp_cc_binary(name, copts = [], visibility = ["//visibility:public"], **kwargs):
    """A program, or with `linkshared = True` a shared object."""
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        visibility = visibility,
        **kwargs
    )

# C++ is tests only, and most of their time is compilation: see --cxxopt in .bazelrc. Few compute so much that this
# pays.
_COMPUTES = ["-O1"]

def _precompiled(name):
    """The dependency and the option that bring GoogleTest's precompiled header `name` in before the first line."""
    return "//tests/precompiled:" + name, ["-Winvalid-pch", "-include", "$(BINDIR)/tests/precompiled/%s/gtest.h" % name]

def amp_test_library(name, computes = False, copts = [], deps = [], **kwargs):
    """C++ that several files of tests share: its .cc is compiled once, not in each file that includes its .h.

    `computes`: so much that it is optimised.
    """
    header, header_options = _precompiled("optimised" if computes else "plain")
    native.cc_library(
        name = name,
        testonly = True,
        copts = _COPTS + copts + (_COMPUTES if computes else []) + header_options,
        linkstatic = True,
        visibility = layer_visibility(native.package_name()),
        deps = deps + [header, "@googletest//:gtest_main"],
        **kwargs
    )

# Of several files one compilation has GoogleTest's templates once: six take 0.6 of the time that they take one by one.
_FILES_A_COMPILATION = 6

def _together(name, files):
    """C++ files that include `files`, `_FILES_A_COMPILATION` each.

    Each file is in a namespace of its own, so names do not meet. Its headers come before: in there they would be too.
    """
    parts = []
    for first in range(0, len(files), _FILES_A_COMPILATION):
        some = files[first:first + _FILES_A_COMPILATION]
        parts.append("%s_%d.cc" % (name, first // _FILES_A_COMPILATION))
        native.genrule(
            name = parts[-1][:-len(".cc")],
            testonly = True,
            srcs = some,
            outs = parts[-1:],
            cmd = "$(location //tools/build:together) $(SRCS) > $@",
            tools = ["//tools/build:together"],
            message = "Listing tests",
        )
    return parts

def amp_cc_tests(name, srcs = [], computes = [], cases_of = [], deps = [], copts = [], tags = [], **kwargs):
    """The GoogleTest files of a folder as one program; its main() comes from @googletest//:gtest_main.

    Files are compiled some together (`_together`), after the precompiled header of GoogleTest and the standard library.
    `computes` are the files of `srcs` that compute so much that they are optimised. `shard_count` keeps the cores busy.
    `cases_of` are other programs of the folder whose cases this one has, too, say with another `env`: they are compiled
    once.

    Tags that mean something here: `tsan` (starts threads, runs under the thread sanitizer too), `no_asan` (cannot run
    under the address sanitizer), `full` (runs in tools/test --full only). Files with other tags are another program.
    """
    headers = [src for src in srcs if src.endswith(".h")]
    plain = [src for src in srcs if src.endswith(".cc") and src not in computes]
    cases = [":%s_cases" % other for other in cases_of]
    for suffix, files, precompiled, options in [
        ("_computes", computes, "optimised", _COMPUTES),
        ("_cases", plain, "plain", []),
    ]:
        if not srcs or suffix == "_computes" and not computes:
            continue
        header, header_options = _precompiled(precompiled)
        native.cc_library(
            name = name + suffix,
            testonly = True,
            srcs = _together(name + suffix, files) + headers,
            textual_hdrs = files,
            copts = _COPTS + copts + options + header_options,
            linkstatic = True,
            alwayslink = True,
            tags = tags,
            deps = deps + cases + [header, "@googletest//:gtest_main"],
        )
        cases = [":" + name + suffix]
    native.cc_test(
        name = name,
        size = kwargs.pop("size", "small"),
        linkstatic = True,
        tags = tags,
        deps = cases + ["@googletest//:gtest_main"],
        **kwargs
    )

def _amp_precompiled_header_impl(ctx):
    toolchain = ctx.attr._toolchain[cc_common.CcToolchainInfo]
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    deps = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    headers = deps.compilation_context
    arguments = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = "c++-compile",
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            include_directories = headers.includes,
            quote_include_directories = headers.quote_includes,
            system_include_directories = headers.system_includes,
            preprocessor_defines = headers.defines,
            use_pic = True,
        ),
    )
    header = ctx.actions.declare_file(ctx.label.name + "/" + ctx.file.hdr.basename)
    ctx.actions.expand_template(output = header, template = ctx.file.hdr, substitutions = {})
    if ctx.var.get("compiler") == "clang": # which finds the header again by its path in the sandbox that compiled it
        text = cc_common.create_compilation_context(headers = depset([header]))
        return [
            DefaultInfo(files = depset([header])),
            cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = text), deps]),
        ]
    compiled = ctx.actions.declare_file(header.basename + ".gch", sibling = header)
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = "c++-compile"),
        arguments = arguments + ["-x", "c++-header", "-c", header.path, "-o", compiled.path],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = "c++-compile",
            variables = cc_common.create_compile_variables(feature_configuration = features, cc_toolchain = toolchain),
        ),
        inputs = depset([header], transitive = [headers.headers, toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "AmpPrecompile",
        progress_message = "Precompiling " + header.short_path,
    )
    context = cc_common.create_compilation_context(headers = depset([header, compiled]))
    return [
        DefaultInfo(files = depset([compiled])),
        cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = context), deps]),
    ]

# `hdr`, compiled by itself with the options of C++ and `copts`: a source that is compiled with the same options and
# `-include`s it starts from there. gcc says so where the options do not fit (-Winvalid-pch).
_amp_precompiled_header = rule(
    implementation = _amp_precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def amp_precompiled_headers(hdr, deps):
    """`plain` and `optimised`: what amp_cc_tests includes first, for its two kinds of files."""
    for name, options in {"plain": [], "optimised": _COMPUTES}.items():
        _amp_precompiled_header(
            name = name,
            testonly = True,
            copts = _COPTS + options,
            hdr = hdr,
            visibility = layer_visibility(native.package_name()),
            deps = deps,
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
