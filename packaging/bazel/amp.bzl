"""amp_model: a model in the .amp language as a shared object that libamp loads."""

def _amp_model_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".so")
    arguments = ctx.actions.args()
    arguments.add(ctx.file.src)
    arguments.add("-o", out)
    if ctx.attr.precision:
        arguments.add("--precision", ctx.attr.precision)
    if ctx.file.policy:
        arguments.add("--policy", ctx.file.policy)
    for name, value in sorted(ctx.attr.defines.items()):
        arguments.add("-D", "%s=%s" % (name, value))
    arguments.add_all(ctx.attr.options)
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
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

# NAME.so of the model `src`. As `data` of a program it is found beside it, at the path of its package.
amp_model = rule(
    implementation = _amp_model_impl,
    attrs = {
        "defines": attr.string_dict(doc = "Values of the model's constants"),
        "includes": attr.label_list(allow_files = True, doc = "Files that the model includes"),
        "options": attr.string_list(doc = "Further options of ampc: [\"--target\", \"cpu\"]"),
        "policy": attr.label(allow_single_file = [".policy"], doc = "A policy file instead of the model's own"),
        "precision": attr.string(doc = "fp16, bf16, tf32 or fp32 instead of the model's own"),
        "src": attr.label(allow_single_file = [".amp", ".ir"], mandatory = True),
        "_ampc": attr.label(default = "//:ampc_program", executable = True, cfg = "exec", allow_files = True),
    },
)
