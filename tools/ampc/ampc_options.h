/* ampc_options.h: the commands and options of ampc, as one table (options.h). */
#ifndef AMP_TOOLS_AMPC_OPTIONS_H
#define AMP_TOOLS_AMPC_OPTIONS_H

#include "tools/ampc/command.h"
#include "tools/options.h"

#define TEXT(field) INTO(TEXT, Command, field, 0)
#define FLAG(field) INTO(FLAG, Command, field, 0)
#define COUNT(field) INTO(COUNT, Command, field, 0)
#define OTHER                                                                                                          \
    { 0 }

enum {
    O_PRECISION = 256,
    O_POLICY,
    O_OVERRIDE,
    O_EMIT,
    O_STOP,
    O_NO_PASS,
    O_DUMP,
    O_DUMP_DIR,
    O_TIME,
    O_CC,
    O_ISA,
    O_TARGET,
    O_GPU_ARCH,
    O_MAX_OPS,
    O_BATCH_HINT,
    O_BATCH,
    O_GPU,
    O_SUMS,
    O_NO_FILES,
    O_SYMBOL,
    O_JSON,
    O_HTML,
    O_LOG,
    O_DOT,
    O_DTYPE,
    O_OP,
    O_RULE,
    O_SORT,
    O_ALL,
    O_AGAINST,
    O_AGAINST_PRECISION,
    O_AGAINST_POLICY,
    O_EVAL_PRECISION,
    O_DISTRIBUTE,
    O_ACCUMULATE_ORDER,
    O_FORCE,
    O_VERBOSE,
    O_COLOR,
    O_DESCRIBE,
    O_HELP,
    O_VERSION,
    O_RULES,
    O_RULES_FILE,
    O_ALLOW,
    O_STDIO
};

enum {
    COMPILE = 1,
    EXPLAIN = 2,
    LINT = 4,
    DIFF = 8,
    POLICIES = 16,
    SERVER = 32,
    SUGGESTING = 64,
    MODELS = COMPILE | EXPLAIN | LINT | DIFF,
    ALL = MODELS | POLICIES
};

static const ToolCommand ampc_commands[] = {
    {"", " MODEL -o model.so [options]", "compile a model (.amp) or IR (.ir)", NULL},
    {"explain", " MODEL|model.so [GLOB] [options]",
     "say why each op has its dtype; GLOB: of which paths; --against: what differs", NULL},
    {"lint", " MODEL [options]", "say what the precision makes slow or unsafe, and what to do", NULL},
    {"diff", " MODEL MODEL | MODEL [POLICY] POLICY [options]",
     "say what differs between two models, or with one model between policies: dtypes, casts, what a step takes", NULL},
    {"policy", " list | show POLICY | check POLICY | diff POLICY POLICY",
     "list the built-in policies, print one, check a file, say what differs between two", "list show check diff"},
    {"lsp", " [--stdio]", "serve editors on standard input and output (docs/guides/editors.md)", NULL},
    {"suggest", " --stats LOG [options] | MODEL.so --data SPEC [options]",
     "propose lines for a model's precision block, proven by training: amprun suggest (its options: ampc suggest "
     "--help)",
     NULL},
    {0},
};

#define PASSES                                                                                                         \
    "elaborate autocast means autodiff paint distribute scale optimizer simplify lower target turn_columns "           \
    "split_sums carry_moves barriers cancel_moves turn_inputs pack_batches pack_windows move_results drop_views fuse " \
    "masters weight_copies copy_results pack buffers postpone sequence merge_columns gather merge_lone_columns "       \
    "gather_sums gather_chains merge_scalars buckets join plan supersteps batch chain single_pass bundle"

static const ToolOption ampc_options[] = {
    {'o', NULL, "o", "FILE", VALUE_FILE, false, NULL, "MODEL with its ending replaced", "What to write.", COMPILE,
     TEXT(output)},
    {O_PRECISION, "precision", NULL, "W", VALUE_TEXT, false, "fp16 bf16 tf32 fp32", "the model's own word",
     "Compiles for fp16, bf16, tf32 or fp32. Overrides and loss scale of the model stay.", MODELS,
     TEXT(compile.precision)},
    {O_POLICY, "policy", NULL, "NAME|FILE", VALUE_FILE, false, NULL, "that of the precision",
     "Under a built-in policy (torch-fp16, min-cast, ...: docs/policies.md) or a policy file.", MODELS,
     TEXT(compile.policy)},
    {O_OVERRIDE, "override", NULL, "PATH=WORD", VALUE_TEXT, false, NULL, NULL,
     "Adds the line \"PATH\": WORD to the model's precision block, where it is the last: to try it out. PATH is a glob "
     "on the paths of ops, WORD f32, low, or a class of the policy. May be repeated.",
     MODELS, OTHER},
    {O_BATCH_HINT, "batch-hint", NULL, "N", VALUE_TEXT, false, NULL, "32",
     "The batch for which a policy of algorithm min_cut (min-cast) counts the bytes that a step moves.", MODELS,
     COUNT(compile.batch_hint)},
    {O_BATCH, "batch", NULL, "N", VALUE_TEXT, false, NULL, "32",
     "The samples of the step whose costs diff compares, whose sums lint counts, and whose casts explain puts in "
     "order.",
     EXPLAIN | LINT | DIFF, COUNT(batch)},
    {O_GPU, "gpu", NULL, "NAME", VALUE_TEXT, false, "H200 H100 A100 RTX4090 T4", "H100",
     "The GPU on which the time of a step is modelled: H200, H100, A100, RTX4090 or T4. lint models it only where this "
     "is given, which takes the C compiler; so does explain --html, but of a model.so it models it anyway.",
     EXPLAIN | LINT | DIFF, TEXT(gpu)},
    {O_EVAL_PRECISION, "eval-precision", NULL, "fp32", VALUE_TEXT, false, "fp32", NULL,
     "Adds FP32 forms of evaluation and inference to the model, for amprun eval --precision fp32; as `eval_precision = "
     "fp32' in its precision block.",
     COMPILE | EXPLAIN, TEXT(compile.eval_precision)},
    {O_DISTRIBUTE, "distribute", NULL, "none|data|zero1", VALUE_TEXT, false, "none data zero1", "the model's own word",
     "data: several processes may train the model together, each on samples of its own; as `data_parallel = true' in a "
     "train block. It also trains alone. zero1: the same, and each keeps a share of the optimizer's moments alone. "
     "none: not.",
     COMPILE | EXPLAIN | LINT, TEXT(compile.distribute)},
    {O_ACCUMULATE_ORDER, "accumulate-order", NULL, "left|tree", VALUE_TEXT, false, "left tree", "left",
     "The order in which a step adds its micro-batches: left, one after the other, or tree, pairs, pairs of pairs and "
     "so "
     "on. With tree, ranks of which each has a power of two of them get the bits of one rank with all (amprun train "
     "--reduce ordered); it takes log2(accumulate) - 1 more sums of each gradient.",
     COMPILE | EXPLAIN, TEXT(compile.accumulate_order)},
    {O_SUMS, "sums", NULL, "ieee|sm_80|sm_90", VALUE_TEXT, false, "ieee sm_80 sm_90", "ieee",
     "How the CPU adds up products of f16, bf16 and tf32. ieee: f32 multiply-adds. sm_80, sm_90: bit for bit as tensor "
     "cores of that architecture do in the model's CUDA code, to see without one what they do to training; tens of "
     "times slower.",
     COMPILE | EXPLAIN, TEXT(compile.sums)},
    {'D', NULL, "D", "NAME=VALUE", VALUE_TEXT, false, NULL, NULL, "Overrides a const of the model. May be repeated.",
     MODELS, OTHER},
    {O_TARGET, "target", NULL, "cpu|cuda|both", VALUE_TEXT, false, "cpu cuda both", "both",
     "What to make kernels for. A model always has those for the CPU. both: for CUDA too, where every op has code for "
     "it; where one has not, the model says which when it is asked to run on CUDA. cuda: the same, but that is an "
     "error, "
     "and IR that is dumped or emitted is CUDA's. lint with cpu says nothing of CUDA's kernels.",
     COMPILE | LINT, TEXT(compile.target)},
    {O_GPU_ARCH, "gpu-arch", NULL, "LIST", VALUE_TEXT, false, NULL, "when the model is loaded",
     "Compiles the CUDA kernels now, by NVRTC, for architectures such as sm_80,sm_90. The machine code is kept in the "
     "model; explain says its registers, shared memory and spills.",
     COMPILE | EXPLAIN, TEXT(compile.gpu_arch)},
    {O_EMIT, "emit", NULL, "so|o|c|ir|cu|ptx", VALUE_TEXT, false, "so o c ir cu ptx", "so",
     "What is written. A shared object; an object or one C file to link into a program (amp_model_from_static); IR, "
     "the CUDA kernels as CUDA C, or as PTX for the first of --gpu-arch "
     "(sm_80).",
     COMPILE, OTHER},
    {O_SYMBOL, "symbol", NULL, "NAME", VALUE_TEXT, false, NULL, "the model's own and _model",
     "With --emit o or c: the model's name in the program.", COMPILE, TEXT(compile.symbol)},
    {O_STOP, "stop-after", NULL, "PASS", VALUE_TEXT, false, PASSES, NULL,
     "Stops after a pass; only with --emit ir. A later run goes on from the file and gives the same bytes.", COMPILE,
     OTHER},
    {O_NO_PASS, "no-pass", NULL, "PASS", VALUE_TEXT, false, "simplify rewrite fuse layout order join", NULL,
     "Leaves out a pass, or all of a group that can be left out: simplify, rewrite, fuse, layout, order. May be "
     "repeated.",
     COMPILE, OTHER},
    {O_DUMP, "dump-ir", NULL, "PASS", VALUE_TEXT, true, PASSES, NULL,
     "Prints the IR after every pass, or after one, to standard output.", COMPILE, OTHER},
    {O_DUMP_DIR, "dump-dir", NULL, "DIR", VALUE_FOLDER, false, NULL, NULL,
     "Writes the IR after every pass to DIR/NN-PASS.ir.", COMPILE, TEXT(dump_dir)},
    {O_TIME, "time-passes", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Prints the time of every pass to standard error, and (unchanged) after a pass that left the IR as it was; then "
     "of "
     "what is no pass, and the total.",
     COMPILE, FLAG(time_passes)},
    {O_ISA, "isa", NULL, "portable|v3|v4|native", VALUE_TEXT, false, "portable v3 v4 native", "v4",
     "The largest instruction set to compile for (v3: AVX2, v4: AVX-512). Smaller ones are always there; a session "
     "takes the best that its processor has. native: the best of this machine alone, which compiles faster; other "
     "processors may lack it and then refuse the model.",
     COMPILE, TEXT(compile.isa)},
    {O_CC, "cc", NULL, "PROGRAM", VALUE_FILE, false, NULL, "cc", "The C compiler that makes the shared object.", MODELS,
     TEXT(compile.c_compiler)},
    {O_RULES, NULL, "MD", NULL, VALUE_TEXT, false, NULL, NULL,
     "Also writes a rule for make or Ninja that names each file that was read (the model, what it includes, policy "
     "files), to the output's name and .d.",
     COMPILE, OTHER},
    {O_RULES_FILE, NULL, "MF", "FILE", VALUE_FILE, false, NULL, NULL, "As -MD, to FILE.", COMPILE, OTHER},
    {O_MAX_OPS, "max-ops", NULL, "N", VALUE_TEXT, false, NULL, "250,000",
     "Refuses programs that cost more. An op costs 1, a parameter 20 more, and each of these takes about 15 kB while "
     "compiling.",
     MODELS, COUNT(compile.max_ops)},
    {O_NO_FILES, "no-files", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Lets the model read no other files. include is an error, and its precision must name a built-in policy. For "
     "texts "
     "of strangers, whose messages could otherwise quote files of this machine.",
     MODELS, FLAG(compile.no_files)},
    {O_JSON, "json", NULL, "FILE", VALUE_FILE, false, NULL, NULL,
     "Writes JSON for tools. Its rows list every op of the step: id, function, op, path, phase (forward, backward, "
     "update), inputs (dtypes as the op reads them), accumulate, output, rule, policy, policy_line, because, "
     "source_line; its casts each cast of the step: name, value, from, to, for (the op that asked), phase, bytes, "
     "place "
     "(the kernel), file, line; its parameters how each is trained: groups, lr_scale, weight_decay. With --against: "
     "before, after, same, changed, other_reason, only_before, only_after, casts_gone, casts_came. diff has these and "
     "step: what a step takes on both sides, and ratios. Of policy list, "
     "check and diff what they tell. Of lint findings, each with id, file, line, column, message, line_to_add (of the "
     "precision block), help, paths.",
     EXPLAIN | LINT | DIFF | POLICIES, TEXT(json)},
    {O_HTML, "html", NULL, "FILE", VALUE_FILE, false, NULL, NULL,
     "Writes a report to look at in a browser, one file that needs no network: the graph by blocks, the ops with the "
     "text of the model beside them, casts, kernels, memory over the step, findings of lint, and with --against what "
     "differs. Graphviz's dot lays the graph out where it is installed.",
     EXPLAIN, TEXT(html)},
    {O_LOG, "log", NULL, "FILE", VALUE_FILE, false, NULL, NULL,
     "With --html: what amprun train --log has written. The report shows the training: loss, loss scale, skipped "
     "steps, "
     "faults (--trace-nonfinite) and how large the numbers of tensors are (--stats).",
     EXPLAIN, TEXT(log)},
    {O_DOT, "dot", NULL, "FILE", VALUE_FILE, false, NULL, NULL,
     "Writes the graph for Graphviz: a cluster for each block, coloured by dtype, casts on the edges.", EXPLAIN,
     TEXT(dot)},
    {O_DTYPE, "dtype", NULL, "T", VALUE_TEXT, false, "f16 bf16 tf32 f32 i32 i64 bool", NULL,
     "Only ops that read or make this dtype. Filters and GLOB combine.", EXPLAIN | DIFF, TEXT(which.dtype)},
    {O_OP, "op", NULL, "NAME", VALUE_TEXT, false, NULL, NULL,
     "Only ops of this name, such as linear, or of this layer, such as cross_entropy.", EXPLAIN | DIFF, TEXT(which.op)},
    {O_RULE, "rule", NULL, "CLASS", VALUE_TEXT, false, "lower f32_out f32 widest follow override", NULL,
     "Only ops whose dtype this class of the policy decided; override: a line of the model's precision block.",
     EXPLAIN | DIFF, TEXT(which.rule)},
    {O_SORT, "sort", NULL, "bytes", VALUE_TEXT, false, "bytes", "the model's order",
     "The ops whose casts move the most bytes first, and such casts in JSON; at --batch.", EXPLAIN, TEXT(which.sort)},
    {O_ALL, "all", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Tells of each op by itself. Without it the ops of repeated layers and of a loop's steps are told of once, and "
     "those that only keep a layer's statistics, such as the running mean of a batch norm, are one line of that layer. "
     "JSON has them always.",
     EXPLAIN, FLAG(which.all)},
    {O_AGAINST, "against", NULL, "FILE", VALUE_FILE, false, NULL, NULL,
     "Compares the model with another, an older one say, which is called before. Shows the ops whose dtype differs, "
     "why "
     "on each side, the casts that came and went, and totals. The exit status is 0 whether they differ or not; JSON "
     "has "
     "same. --precision, --policy and -D hold for both.",
     EXPLAIN, TEXT(against)},
    {O_AGAINST_PRECISION, "against-precision", NULL, "W", VALUE_TEXT, false, "fp16 bf16 tf32 fp32", NULL,
     "As --against, with what the file (the model itself without --against) is in this precision.", EXPLAIN,
     TEXT(against_precision)},
    {O_AGAINST_POLICY, "against-policy", NULL, "NAME|FILE", VALUE_FILE, false, NULL, NULL,
     "As --against, with what the file (the model itself without --against) is under this policy.", EXPLAIN,
     TEXT(against_policy)},
    {O_ALLOW, "allow", NULL, "ID[:GLOB]", VALUE_TEXT, false, NULL, NULL,
     "What lint does not tell: a check by its id, or with GLOB of ops whose paths match. May be repeated. In a model a "
     "comment `# lint: allow ID' in the line of the op does the same.",
     LINT, OTHER},
    {O_STDIO, "stdio", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Says what the server does anyway: standard input and output, as some editors ask for.", SERVER, OTHER},
    {O_FORCE, "force", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Also replaces files that ampc did not write. Without it such a file is refused: a model, C, IR, CUDA code, JSON "
     "or "
     "rule for make that it did write is recognised by its content. No option lets an output replace a file that the "
     "same command reads.",
     ALL, FLAG(files.force)},
    {O_VERBOSE, "verbose", "v", NULL, VALUE_TEXT, false, NULL, NULL,
     "Says on standard error what the library is doing: each stage, and how many there are.", COMPILE, OTHER},
    {O_COLOR, "color", NULL, "auto|always|never", VALUE_TEXT, false, "auto always never", "auto",
     "Whether to colour what is printed. auto: on a terminal, unless NO_COLOR is set.", ALL | SUGGESTING, OTHER},
    {O_DESCRIBE, "describe", NULL, "FORM", VALUE_TEXT, false, "bash zsh fish man", NULL,
     "Prints these options for other programs. bash, zsh, fish: a completion; man: the list of the manual page.",
     ALL | SERVER | SUGGESTING, OTHER},
    {O_HELP, "help", "h", NULL, VALUE_TEXT, false, NULL, NULL, "Prints this.", ALL | SERVER | SUGGESTING, OTHER},
    {O_VERSION, "version", NULL, NULL, VALUE_TEXT, false, NULL, NULL, "Prints the version.", ALL | SERVER | SUGGESTING,
     OTHER},
    {0},
};

static const Tool ampc_tool = {"ampc", ampc_commands, ampc_options,
                               "FILE may be - for standard output, MODEL - for standard input.\n"
                               "Exit status: 0 success, 1 the model or a file was refused, 2 wrong arguments.\n"
                               "Of lint: 0 no finding, 1 findings, 2 the model was refused, or wrong arguments.\n"
                               "Passes: "};

#endif
