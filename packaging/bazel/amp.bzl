"""amp_model: a model in the .amp language as a shared object that libamp loads. amp_static_model: linked instead."""

def _compile(ctx, out, options):
    """Runs ampc for `ctx.file.src`."""
    arguments = ctx.actions.args()
    arguments.add(ctx.file.src)
    arguments.add("-o", out)
    if ctx.attr.precision:
        arguments.add("--precision", ctx.attr.precision)
    if ctx.file.policy:
        arguments.add("--policy", ctx.file.policy)
    for name, value in sorted(ctx.attr.defines.items()):
        arguments.add("-D", "%s=%s" % (name, value))
    arguments.add_all(options + ctx.attr.options)
    ctx.actions.run(
        executable = ctx.executable._ampc,
        arguments = [arguments],
        inputs = depset([ctx.file.src] + ctx.files.includes + ctx.files.policy),
        outputs = [out],
        mnemonic = "AmpModel",
        progress_message = "Compiling model " + out.short_path,
        # ampc starts a C compiler, cc unless `options` says otherwise, which is looked for in PATH.
        use_default_shell_env = True,
    )

_ATTRS = {
    "defines": attr.string_dict(doc = "Values of the model's constants"),
    "includes": attr.label_list(allow_files = True, doc = "Files that the model includes"),
    "options": attr.string_list(doc = "Further options of ampc: [\"--target\", \"cpu\"]"),
    "policy": attr.label(allow_single_file = [".policy"], doc = "A policy file instead of the model's own"),
    "precision": attr.string(doc = "fp16, bf16, tf32 or fp32 instead of the model's own"),
    "src": attr.label(allow_single_file = [".amp", ".ir"], mandatory = True),
    "_ampc": attr.label(default = "//:ampc_program", executable = True, cfg = "exec", allow_files = True),
}

def _amp_model_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".so")
    _compile(ctx, out, [])
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

# NAME.so of the model `src`. As `data` of a program it is found beside it, at the path of its package.
amp_model = rule(implementation = _amp_model_impl, attrs = _ATTRS)

def _amp_linked_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + "." + ctx.attr.emit)
    outs = [out]
    _compile(ctx, out, ["--emit", ctx.attr.emit, "--symbol", ctx.attr.symbol])
    if ctx.attr.emit == "o": # its code is independent of its position, which Bazel reads from the name
        outs.append(ctx.actions.declare_file(ctx.label.name + ".pic.o"))
        ctx.actions.symlink(output = outs[1], target_file = out)
    return [DefaultInfo(files = depset(outs))]

_amp_linked = rule(
    implementation = _amp_linked_impl,
    attrs = dict(
        _ATTRS,
        emit = attr.string(values = ["o", "c"], default = "o"),
        symbol = attr.string(mandatory = True),
    ),
)

def amp_static_model(name, symbol = None, emit = "o", visibility = None, testonly = None, tags = None, **attrs):
    """A cc_library of the model `src`, for the `deps` of programs.

    A program declares it by AMP_STATIC_MODEL(NAME_model); and opens it by amp_model_from_static(NAME_model, ...).

    Args:
      name: of the library.
      symbol: the model's name in the program instead of NAME_model. Models of one program need different ones.
      emit: "o", an object with each instruction set; "c", a C file that the toolchain compiles for one processor.
      visibility: of the library.
      testonly: of the library.
      tags: of the library.
      **attrs: the attributes of amp_model: src, includes, precision, policy, defines, options.
    """
    _amp_linked(
        name = name + "_compiled",
        symbol = symbol or name + "_model",
        emit = emit,
        tags = tags,
        testonly = testonly,
        visibility = ["//visibility:private"],
        **attrs
    )
    native.cc_library(
        name = name,
        srcs = [":" + name + "_compiled"],
        copts = ["-std=gnu11", "-O1", "-w", "-fno-math-errno"] if emit == "c" else [],
        linkstatic = True,
        tags = tags,
        testonly = testonly,
        visibility = visibility,
    )
