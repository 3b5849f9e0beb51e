/* ampc_options.c: the commands and options of ampc as tables: where values go, and what goes together (options.h).
 *
 * A value that no form of options.h reads has a function here. */
#include <string.h>

#include "tools/ampc/command.h"
#include "tools/options.h"

#define TEXT(field) INTO(TEXT, Command, field)
#define FLAG(field) INTO(FLAG, Command, field)
#define COUNT(field) INTO(COUNT, Command, field)
#define LIST(field) INTO(LIST, Command, field)

enum {
    COMPILE = 1,
    EXPLAIN = 2,
    LINT = 4,
    DIFF = 8,
    POLICIES = 16,
    AUTOCAST = 32,
    SERVER = 64,
    SUGGESTING = 128,
    MODELS = COMPILE | EXPLAIN | LINT | DIFF,
    ALL = MODELS | POLICIES | AUTOCAST
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *take_define(OptionsRead *r, char *text) {
    Command *c = r->args;
    char *equals = strchr(text, '=');
    if (!equals || equals == text) return "write -D NAME=VALUE";
    if (c->compile.define_count == MAX_DEFINES) return "too many definitions";
    *equals = 0;
    c->defines[c->compile.define_count++] = (amp_define){text, equals + 1};
    return NULL;
}

static const char *take_override(OptionsRead *r, char *text) {
    Command *c = r->args;
    char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1]) return "write --override PATH=WORD, 'h.0.*=f32' say";
    if (c->compile.override_count == MAX_OVERRIDES) return "too many of them";
    *equals = 0;
    c->overrides[c->compile.override_count++] = (amp_override){.path = text, .word = equals + 1};
    return NULL;
}

/* The words become one text, with commas between. */
static const char *take_no_pass(OptionsRead *r, char *pass) {
    Command *c = r->args;
    const size_t used = strlen(c->no_pass), size = strlen(pass) + 1;
    if (used + 1 + size > sizeof c->no_pass) return "too many of them";
    if (used) c->no_pass[used] = ',';
    memcpy(c->no_pass + used + (used > 0), pass, size);
    c->compile.no_pass = c->no_pass;
    return NULL;
}

static const char *take_emit(OptionsRead *r, char *what) {
    const int emit = emit_named(what);
    if (emit < 0) return "so, o, c, ir, cu or ptx is wanted";
    ((Command *)r->args)->compile.emit = (amp_emit)emit;
    return NULL;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const ToolCommand ampc_commands[] = {
    {"", " MODEL -o model.so [options]", "compile a model (.amp) or IR (.ir)", .none = "no model was given", .most = 1},
    {"explain", " MODEL|model.so [GLOB] [options]",
     "say why each op has its dtype; GLOB: of which paths; --against: what differs", .none = "no model was given",
     .most = 2},
    {"lint", " MODEL [options]", "say what the precision makes slow or unsafe, and what to do",
     .none = "no model was given", .most = 1},
    {"diff", " MODEL MODEL | MODEL [POLICY] POLICY [options]",
     "say what differs between two models, or with one model between policies: dtypes, casts, what a step takes; of "
     "two ONNX models types, casts, weights",
     .none = "give two models, or a model and one or two policies", .most = 3},
    {"policy", " list | show POLICY | check POLICY | diff POLICY POLICY",
     "list the built-in policies, print one, check a file, say what differs between two", "list show check diff",
     .none = "say list, show, check or diff", .most = 3},
    {"autocast", " MODEL.onnx [-o OUT.onnx] [options]",
     "write an ONNX model with f16 or bf16 and casts in it, and a reason for each node (docs/onnx.md)",
     .none = "no model was given", .most = 1},
    {"lsp", " [--stdio]", "serve editors on standard input and output (docs/guides/editors.md)", .most = 0},
    {"suggest", " --stats LOG [options] | MODEL.so --data SPEC [options]",
     "propose lines for a model's precision block, proven by training: amprun suggest (its options: ampc suggest "
     "--help)",
     .most = 0},
    {0},
};

/* clang-format off */
static const ToolOption ampc_options[] = {
    {.letter = "o", .value = "FILE", .kind = VALUE_FILE, .preset = "MODEL with its ending replaced", TEXT(output),
     .commands = COMPILE | AUTOCAST,
     .help = "What to write. autocast has no preset: without -o it says what it would write."},
    {.name = "precision", .value = "W", .words = "fp16 bf16 tf32 fp32", .preset = "the model's own word",
     TEXT(compile.precision), .commands = MODELS | AUTOCAST,
     .help = "Compiles for fp16, bf16, tf32 or fp32. Overrides and loss scale of the model stay. autocast: fp16 (as "
             "without a word) or bf16."},
    {.name = "policy", .value = "NAME|FILE", .kind = VALUE_FILE, .preset = "that of the precision",
     TEXT(compile.policy), .commands = MODELS | AUTOCAST,
     .help = "Under a built-in policy (torch-fp16, min-cast, ...: docs/policies.md) or a policy file."},
    {.name = "override", .value = "PATH=WORD", TAKEN_BY(take_override), .commands = MODELS,
     .help = "Adds the line \"PATH\": WORD to the model's precision block, where it is the last: to try it out. PATH "
             "is a glob on the paths of ops, WORD f32, low, or a class of the policy. May be repeated."},
    {.name = "batch-hint", .value = "N", .preset = "32", COUNT(compile.batch_hint), .commands = MODELS | AUTOCAST,
     .help = "The batch for which a policy of algorithm min_cut (min-cast) counts the bytes that a step moves. Of "
             "autocast the size of each dimension that only has a name."},
    {.name = "batch", .value = "N", .preset = "32", COUNT(batch), .commands = EXPLAIN | LINT | DIFF,
     .help = "The samples of the step whose costs diff compares, whose sums lint counts, and whose casts explain puts "
             "in order."},
    {.name = "gpu", .value = "NAME", .words = "H200 H100 A100 RTX4090 T4", .preset = "H100", TEXT(gpu),
     .commands = EXPLAIN | LINT | DIFF,
     .help = "The GPU on which the time of a step is modelled: H200, H100, A100, RTX4090 or T4. lint models it only "
             "where this is given, which takes the C compiler; so does explain --html, but of a model.so it models it "
             "anyway."},
    {.name = "eval-precision", .value = "fp32", .words = "fp32", TEXT(compile.eval_precision),
     .commands = COMPILE | EXPLAIN,
     .help = "Adds FP32 forms of evaluation and inference to the model, for amprun eval --precision fp32; as "
             "`eval_precision = fp32' in its precision block."},
    {.name = "distribute", .value = "none|data|zero1", .words = "none data zero1", .preset = "the model's own word",
     TEXT(compile.distribute), .commands = COMPILE | EXPLAIN | LINT,
     .help = "data: several processes may train the model together, each on samples of its own; as `data_parallel = "
             "true' in a train block. It also trains alone. zero1: the same, and each keeps a share of the "
             "optimizer's moments alone. none: not."},
    {.name = "accumulate-order", .value = "left|tree", .words = "left tree", .preset = "left",
     TEXT(compile.accumulate_order), .commands = COMPILE | EXPLAIN,
     .help = "The order in which a step adds its micro-batches: left, one after the other, or tree, pairs, pairs of "
             "pairs and so on. With tree, ranks of which each has a power of two of them get the bits of one rank "
             "with all (amprun train --reduce ordered); it takes log2(accumulate) - 1 more sums of each gradient."},
    {.name = "sums", .value = "ieee|sm_80|sm_90", .words = "ieee sm_80 sm_90", .preset = "ieee", TEXT(compile.sums),
     .commands = COMPILE | EXPLAIN,
     .help = "How the CPU adds up products of f16, bf16 and tf32. ieee: f32 multiply-adds. sm_80, sm_90: bit for bit "
             "as tensor cores of that architecture do in the model's CUDA code, to see without one what they do to "
             "training; tens of times slower."},
    {.letter = "D", .value = "NAME=VALUE", TAKEN_BY(take_define), .commands = MODELS,
     .help = "Overrides a const of the model, or gives its size T a number. May be repeated."},
    {.name = "target", .value = "cpu|cuda|both", .words = "cpu cuda both",
     .preset = "both; with --emit o or c cpu", TEXT(compile.target),
     .commands = COMPILE | LINT,
     .help = "What to make kernels for. A model always has those for the CPU. both: for CUDA too, where every op has "
             "code for it; where one has not, the model says which when it is asked to run on CUDA. cuda: the same, "
             "but that is an error, and IR that is dumped or emitted is CUDA's. lint with cpu says nothing of CUDA's "
             "kernels."},
    {.name = "gpu-arch", .value = "LIST", .preset = "when the model is loaded", TEXT(compile.gpu_arch),
     .commands = COMPILE | EXPLAIN,
     .help = "Compiles the CUDA kernels now, by NVRTC, for architectures such as sm_80,sm_90. The machine code is "
             "kept in the model; explain says its registers, shared memory and spills."},
    {.name = "emit", .value = "so|o|c|ir|cu|ptx", .words = "so o c ir cu ptx", .preset = "so", TAKEN_BY(take_emit),
     .commands = COMPILE,
     .help = "What is written. A shared object; an object or one C file to link into a program "
             "(amp_model_from_static); IR, the CUDA kernels as CUDA C, or as PTX for the first of --gpu-arch (sm_80)."},
    {.name = "symbol", .value = "NAME", .preset = "the model's own and _model", TEXT(compile.symbol),
     .commands = COMPILE,
     .help = "With --emit o or c: the model's name in the program."},
    {.name = "no-ir", FLAG(compile.no_ir), .commands = COMPILE,
     .help = "Leaves the text of the IR out of the model, for one that is shipped: what runs is the same. explain, "
             "diff, --trace-nonfinite and compiling the file again need the text, and say so."},
    {.name = "stop-after", .value = "PASS", .word = amp_compile_pass, TEXT(compile.stop_after), .commands = COMPILE,
     .help = "Stops after a pass; only with --emit ir. A later run goes on from the file and gives the same bytes."},
    {.name = "no-pass", .value = "PASS", .words = "simplify rewrite fuse layout order launch", TAKEN_BY(take_no_pass),
     .commands = COMPILE,
     .help = "Leaves out a pass, or all of a group that can be left out: simplify, rewrite, fuse, layout, order, "
             "launch. May be repeated."},
    {.name = "dump-ir", .value = "PASS", .optional = true, .word = amp_compile_pass, TEXT(dump_pass),
     .commands = COMPILE,
     .help = "Prints the IR after every pass, or after one, to standard output."},
    {.name = "dump-dir", .value = "DIR", .kind = VALUE_FOLDER, TEXT(dump_dir), .commands = COMPILE,
     .help = "Writes the IR after every pass to DIR/NN-PASS.ir."},
    {.name = "time-passes", FLAG(time_passes), .commands = COMPILE,
     .help = "Prints the time of every pass to standard error, and (unchanged) after a pass that left the IR as it "
             "was; then of what is no pass, and the total."},
    {.name = "isa", .value = "portable|v3|v4|native", .words = "portable v3 v4 native", .preset = "v4",
     TEXT(compile.isa), .commands = COMPILE,
     .help = "The largest instruction set to compile for (v3: AVX2, v4: AVX-512). Smaller ones are always there; a "
             "session takes the best that its processor has. native: the best of this machine alone, which compiles "
             "faster; other processors may lack it and then refuse the model."},
    {.name = "cc", .value = "PROGRAM", .kind = VALUE_FILE, .preset = "cc", TEXT(compile.c_compiler), .commands = MODELS,
     .help = "The C compiler that makes the shared object."},
    {.letter = "MD", FLAG(dependencies.wanted), .commands = COMPILE,
     .help = "Also writes a rule for make or Ninja that names each file that was read (the model, what it includes, "
             "policy files), to the output's name and .d."},
    {.letter = "MF", .value = "FILE", .kind = VALUE_FILE, TEXT(dependencies.path), .commands = COMPILE,
     .help = "As -MD, to FILE."},
    {.name = "max-ops", .value = "N", .preset = "250,000", COUNT(compile.max_ops), .commands = MODELS,
     .help = "Refuses programs that cost more. An op costs 1, a parameter 20 more, and each of these takes about 15 "
             "kB while compiling."},
    {.name = "no-files", FLAG(compile.no_files), .commands = MODELS,
     .help = "Lets the model read no other files. include is an error, and its precision must name a built-in policy. "
             "For texts of strangers, whose messages could otherwise quote files of this machine."},
    {.name = "json", .value = "FILE", .kind = VALUE_FILE, TEXT(json),
     .commands = EXPLAIN | LINT | DIFF | POLICIES | AUTOCAST,
     .help = "Writes JSON for tools. Its rows list every op of the step: id, function, op, path, phase (forward, "
             "backward, update), inputs (dtypes as the op reads them), accumulate, output, rule, policy, policy_line, "
             "because, source_line; its casts each cast of the step: name, value, from, to, for (the op that asked), "
             "phase, bytes, place (the kernel), file, line; its parameters how each is trained: groups, lr_scale, "
             "weight_decay, optimizer. With --against: before, after, same, changed, other_reason, only_before, "
             "only_after, casts_gone, casts_came. diff has these and step: what a step takes on both sides, and "
             "ratios. Of policy list, check and diff what they tell. Of lint findings, each with id, file, line, "
             "column, message, line_to_add (of the precision block), help, paths. Of autocast counts of casts and "
             "bytes, groups of reasons, weights and decisions, one for each node."},
    {.name = "html", .value = "FILE", .kind = VALUE_FILE, TEXT(html), .commands = EXPLAIN | AUTOCAST,
     .help = "Writes a report to look at in a browser, one file that needs no network: the graph by blocks, the ops "
             "with the text of the model beside them, casts, kernels, memory over the step, findings of lint, and "
             "with --against what differs. Graphviz's dot lays the graph out where it is installed. autocast: reasons, "
             "nodes, casts, weights and ranges."},
    {.name = "log", .value = "FILE", .kind = VALUE_FILE, TEXT(log), .commands = EXPLAIN,
     .help = "With --html: what amprun train --log has written. The report shows the training: loss, loss scale, "
             "skipped steps, faults (--trace-nonfinite) and how large the numbers of tensors are (--stats)."},
    {.name = "dot", .value = "FILE", .kind = VALUE_FILE, TEXT(dot), .commands = EXPLAIN,
     .help = "Writes the graph for Graphviz: a cluster for each block, coloured by dtype, casts on the edges."},
    {.name = "dtype", .value = "T", .words = "f16 bf16 tf32 f32 i32 i64 bool", TEXT(which.dtype),
     .commands = EXPLAIN | DIFF,
     .help = "Only ops that read or make this dtype. Filters and GLOB combine."},
    {.name = "op", .value = "NAME", TEXT(which.op), .commands = EXPLAIN | DIFF,
     .help = "Only ops of this name, such as linear, or of this layer, such as cross_entropy."},
    {.name = "rule", .value = "CLASS", .words = "lower f32_out f32 widest follow override", TEXT(which.rule),
     .commands = EXPLAIN | DIFF,
     .help = "Only ops whose dtype this class of the policy decided; override: a line of the model's precision block."},
    {.name = "sort", .value = "bytes", .words = "bytes", .preset = "the model's order", TEXT(which.sort),
     .commands = EXPLAIN,
     .help = "The ops whose casts move the most bytes first, and such casts in JSON; at --batch."},
    {.name = "all", FLAG(which.all), .commands = EXPLAIN | AUTOCAST,
     .help = "Tells of each op by itself, autocast of each node. Without it the ops of repeated layers and of a loop's "
             "steps are told of once, and those that only keep a layer's statistics, such as the running mean of a "
             "batch norm, are one line of that layer. JSON has them always."},
    {.name = "against", .value = "FILE", .kind = VALUE_FILE, TEXT(against), .commands = EXPLAIN,
     .help = "Compares the model with another, an older one say, which is called before. Shows the ops whose dtype "
             "differs, why on each side, the casts that came and went, and totals. The exit status is 0 whether they "
             "differ or not; JSON has same. --precision, --policy and -D hold for both."},
    {.name = "against-precision", .value = "W", .words = "fp16 bf16 tf32 fp32", TEXT(against_precision),
     .commands = EXPLAIN,
     .help = "As --against, with what the file (the model itself without --against) is in this precision."},
    {.name = "against-policy", .value = "NAME|FILE", .kind = VALUE_FILE, TEXT(against_policy), .commands = EXPLAIN,
     .help = "As --against, with what the file (the model itself without --against) is under this policy."},
    {.name = "allow", .value = "ID[:GLOB]", LIST(allowed), .commands = LINT,
     .help = "What lint does not tell: a check by its id, or with GLOB of ops whose paths match. May be repeated. In "
             "a model a comment `# lint: allow ID' in the line of the op does the same."},
    {.name = "keep", .value = "OP|GLOB", LIST(kept), .commands = AUTOCAST,
     .help = "Keeps nodes in f32: an op, such as Softmax, or a glob on names of nodes, such as '*layer.3*'. May be "
             "repeated."},
    {.name = "keep-io", FLAG(onnx.keep_io), .commands = AUTOCAST,
     .help = "The model's inputs and outputs keep their types. Without it those that are read or made in the low "
             "type have it."},
    {.name = "ranges", .value = "FILE", .kind = VALUE_FILE, TEXT(onnx.ranges), .commands = AUTOCAST,
     .help = "What values were measured to be, as JSON: {\"VALUE\": [SMALLEST, LARGEST], ...}. What the low type does "
             "not hold stays in f32. Weights are looked at anyway."},
    {.name = "assume", .value = "VALUE=TYPE", LIST(assumed), .commands = AUTOCAST | DIFF,
     .help = "The type of a value where the file says none, as of the result of an unknown op: float32, float16, "
             "int64, ... May be repeated."},
    {.name = "opset", .value = "N", .preset = "the model's own", COUNT(onnx.opset), .commands = AUTOCAST,
     .help = "Writes the graph in a later opset of ai.onnx, where each of its nodes means the same there. bf16 needs "
             "22 for convolutions."},
    {.name = "stdio", .commands = SERVER,
     .help = "Says what the server does anyway: standard input and output, as some editors ask for."},
    {.name = "force", FLAG(files.force), .commands = ALL,
     .help = "Also replaces files that ampc did not write. Without it such a file is refused: a model, C, IR, CUDA "
             "code, JSON or rule for make that it did write is recognised by its content. No option lets an output "
             "replace a file that the same command reads."},
    {.name = "verbose", .letter = "v", FLAG(verbose), .commands = COMPILE,
     .help = "Says on standard error what the library is doing: each stage, and how many there are."},
    {OPTION_COLOR, .commands = ALL | SUGGESTING},
    {OPTION_DESCRIBE, .commands = ALL | SERVER | SUGGESTING},
    {OPTION_HELP, .commands = ALL | SERVER | SUGGESTING},
    {OPTION_VERSION, .commands = ALL | SERVER | SUGGESTING},
    {0},
};
/* clang-format on */
_Static_assert(sizeof ampc_options / sizeof *ampc_options <= OPTIONS_MOST, "OptionsRead has a place for each");

static const OptionRule ampc_rules[] = {
    {.commands = EXPLAIN, .of = "log|gpu", .needs = "html", .why = "the report shows it"},
    {.commands = EXPLAIN,
     .of = "dot",
     .excludes = "against|against-precision|against-policy",
     .why = "a comparison is no drawing"},
    {0},
};

const Tool ampc_tool = {"ampc",
                        ampc_commands,
                        ampc_options,
                        ampc_rules,
                        "FILE may be - for standard output, MODEL - for standard input.\n"
                        "Exit status: 0 success, 1 the model or a file was refused, 2 wrong arguments.\n"
                        "Of lint: 0 no finding, 1 findings, 2 the model was refused, or wrong arguments.\n",
                        amp_compile_version};
