/* amprun_options.c: the commands and options of amprun as tables: where values go, and what goes together (options.h).
 *
 * A value that no form of options.h reads has a function here. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/options.h"

#define TEXT(field) INTO(TEXT, Args, field)
#define FLAG(field) INTO(FLAG, Args, field)
#define WHOLE(field) INTO(COUNT, Args, field)
#define CHOICE(field) INTO(CHOICE, Args, field)
#define WORDS(field) INTO(WORDS, Args, field)
#define LIST(field) INTO(LIST, Args, field)
#define PAIR(field, file) INTO_TWO(Args, field, file)

enum {
    INFO = 1,
    TRAIN = 2,
    EVAL = 4,
    INFER = 8,
    STEP = 16,
    SCHEMA = 32,
    DOCTOR = 64,
    SUGGEST = 128,
    WATCH = 256,
    TUNE = 512,
    ANY = 31,
    ALL = 1023
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* A number above 0. */
static bool positive(const char *text, double most, double *out) {
    char *end;
    *out = strtod(text, &end);
    return !*end && end != text && *out > 0 && *out <= most;
}

static const char *take_ranks(OptionsRead *r, char *text) {
    Args *a = r->args;
    int64_t ranks;
    const char *wrong = options_whole(text, &ranks);
    if (!wrong && ranks > RANKS_MOST) return "more than 1048576 ranks are not counted";
    a->ranks = (int32_t)ranks;
    return wrong;
}

/* "128,64" */
static const char *take_sizes(Args *a, char *text) {
    a->batch = a->size_count = 0;
    for (char *next; text; text = next) {
        next = strchr(text, ',');
        if (next) *next++ = '\0';
        const char *wrong =
            a->size_count < SIZES_MOST ? options_whole(text, &a->sizes[a->size_count]) : "64 numbers are the most";
        if (wrong) return wrong;
        if (a->sizes[a->size_count] > a->batch) a->batch = a->sizes[a->size_count];
        a->size_count++;
    }
    return NULL;
}

/* "auto", of info: as many as fit.  Of tune several. */
static const char *take_batch(OptionsRead *r, char *text) {
    Args *a = r->args;
    if (1u << r->command & TUNE) return take_sizes(a, text);
    a->batch_auto = !strcmp(text, "auto");
    return a->batch_auto ? NULL : options_whole(text, &a->batch);
}

/* The same of tokens. */
static const char *take_tokens(OptionsRead *r, char *text) {
    Args *a = r->args;
    a->tokens_auto = !strcmp(text, "auto");
    return a->tokens_auto ? NULL : options_whole(text, &a->tokens);
}

/* "8589934592", "8GiB", "8.5G" */
static const char *take_memory(OptionsRead *r, char *text) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},         {"K", 1e3},      {"M", 1e6},      {"G", 1e9},     {"T", 1e12},
                 {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *end;
    const double value = strtod(text, &end);
    for (size_t i = 0; *text >= '0' && *text <= '9' && i < sizeof units / sizeof units[0]; i++) {
        const double bytes = value * units[i].bytes;
        if (strcmp(end, units[i].name) || !(bytes >= 1 && bytes < 0x1p53)) continue;
        ((Args *)r->args)->memory = (uint64_t)bytes;
        return NULL;
    }
    return "a number of bytes is wanted, such as 8589934592, 24G (10^9) or 8GiB (2^30)";
}

static const char *take_scale(OptionsRead *r, char *text) {
    return positive(text, HUGE_VAL, &((Args *)r->args)->scale) ? NULL : "a positive number is wanted";
}

static const char *take_seed(OptionsRead *r, char *text) {
    Args *a = r->args;
    char *end;
    errno = 0;
    a->seed_given = true;
    a->seed = strtoull(text, &end, 10);
    return errno || *end || end == text || *text == '-' ? "a whole number is wanted" : NULL;
}

/* "100" steps; "30s", "10m", "2h" of time. */
static const char *take_every(OptionsRead *r, char *text) {
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    Args *a = r->args;
    char *end;
    double v = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (end == text || !(v > 0) || v > INT32_MAX || (unit ? end[1] : *end) || (!unit && v != (double)(int64_t)v))
        return "a number of steps is wanted, or a time such as 30s, 10m or 2h";
    a->every_seconds = unit ? v * seconds[unit - units] : 0;
    a->every_steps = unit ? 0 : (int64_t)v;
    return NULL;
}

static const char *take_split(OptionsRead *r, char *text) {
    double *out = &((Args *)r->args)->eval_split;
    if (!positive(text, INT32_MAX, out) || (*out >= 1 && *out != (double)(int64_t)*out))
        return "a part such as 0.1, or a number of samples is wanted";
    return NULL;
}

static const char *take_timeout(OptionsRead *r, char *text) {
    return positive(text, 1e6, &((Args *)r->args)->dist_timeout) ? NULL
                                                                 : "a number of seconds is wanted, at most a million";
}

/* "1/4": the second of four. */
static const char *take_dist_rank(OptionsRead *r, char *text) {
    Args *a = r->args;
    int end = 0;
    if (sscanf(text, "%" SCNd32 "/%" SCNd32 "%n", &a->dist_rank, &a->dist_ranks, &end) == 2 && !text[end] &&
        a->dist_rank >= 0 && a->dist_rank < a->dist_ranks && a->dist_ranks <= RANKS_MOST)
        return NULL;
    return "R/N is wanted, as 0/4 for the first and 3/4 for the last of four";
}

/* One of the option's words. */
static const char *take_products(OptionsRead *r, char *text) {
    Args *a = r->args;
    a->cuda.products = !strcmp(text, "own")       ? AMP_PRODUCTS_OWN
                       : !strcmp(text, "fastest") ? AMP_PRODUCTS_FASTEST
                                                  : AMP_PRODUCTS_SAME_BITS;
    return NULL;
}

static const char *take_seconds(OptionsRead *r, char *text) {
    return positive(text, 1e6, &((Args *)r->args)->cuda.products_seconds)
               ? NULL
               : "a number of seconds is wanted, at most a million";
}

/* "cuda:1": the second of them. */
static const char *take_device(OptionsRead *r, char *text) {
    Args *a = r->args;
    const char *number = strncmp(text, "cuda:", 5) ? NULL : text + 5;
    char *end = NULL;
    a->device = number ? "cuda" : text;
    a->numbers_device = number != NULL;
    if (!number) return NULL;
    errno = 0;
    long v = strtol(number, &end, 10);
    if (errno || *end || end == number || *number < '0' || *number > '9' || v > INT32_MAX)
        return "cuda:N counts devices from 0";
    a->cuda.index = (int32_t)v;
    return NULL;
}

/* "all" may follow. */
static const char *take_trace(OptionsRead *r, char *text) {
    Args *a = r->args;
    const char *next = r->argv[optind];
    (void)text;
    a->trace = true;
    if (next && !strcmp(next, "all")) optind++, a->inspect.looks_at_all = 1;
    return NULL;
}

/* suggest reads what train and step write. */
static const char *take_stats(OptionsRead *r, char *text) {
    Args *a = r->args;
    if (!(1u << r->command & SUGGEST)) return options_whole(text, &a->stats);
    a->stats_log = text;
    return NULL;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const ToolCommand amprun_commands[] = {
    {"info", " MODEL.so [options]", "report parameters, inputs, results, and the memory of a session, to the byte",
     .none = "no model was given", .most = 1},
    {"train", " MODEL.so --data SPEC [--epochs E | --steps K] [options]",
     "train, and evaluate after each epoch where there is something to evaluate on", .needs = "data",
     .none = "no model was given", .most = 1},
    {"eval", " MODEL.so --data SPEC --weights F [options]", "print loss and metrics as one line of JSON",
     .needs = "data weights", .none = "no model was given", .most = 1},
    {"infer", " MODEL.so --weights F --inputs F --outputs F [options]", "write the results of all samples of a file",
     .needs = "weights inputs outputs", .none = "no model was given", .most = 1},
    {"step", " MODEL.so --weights F | --resume F --inputs F [options]",
     "train on exactly one batch, all samples of a file; a line of JSON per step", .needs = "inputs weights|resume",
     .none = "no model was given", .most = 1},
    {"schema", " csv:FILE[,target=COLUMN][,schema=FILE]",
     "print what the columns of a table are to a model, with what is derived of them", .none = "no table was given",
     .most = 1},
    {"doctor", " [MODEL.so] [--device D] [--json]",
     "say what this machine has of what a model needs on a device, and what to do about the rest", .most = 1},
    {"suggest", " MODEL.so --data SPEC [--steps K] [options] | [MODEL.so] --stats LOG [options]",
     "propose lines for the model's precision block, found and proven by training it, or by the steps of a log",
     .needs = "data|stats", .most = 1},
    {"watch", " LOG",
     "draw a log that amprun train --log is writing: loss, loss scale, what f16 would lose (--stats), faults",
     .none = "no model was given", .most = 1},
    {"tune", " MODEL.so [--batch N,..] [--products P] [--seconds S] [-o FILE]",
     "measure on a GPU whether NVIDIA's cuBLASLt makes matrix products faster, and keep what was chosen",
     .none = "no model was given", .most = 1},
    {0},
};

/* clang-format off */
static const ToolOption amprun_options[] = {
    {.name = "data", .value = "SPEC", .kind = VALUE_FILE, TEXT(data), .commands = TRAIN | EVAL | SUGGEST,
     .help = "The samples: idx:DIR (the four files of MNIST's form, gzip or plain); safetensors:FILE (arrays named as "
             "the model's inputs, whose first dimension is the sample, and an array `lengths` if theirs differ); "
             "tokens:FILE[,type=u8|u16|u32][,held=P][,split=ID] (a text of bytes or ids, in windows as long as "
             "the model's input, of which the last part P, 0.1, is evaluated; with split=ID the samples are the texts "
             "between tokens ID); or csv:FILE[,target=COLUMN][,schema=FILE][,held=P] (a table of numbers and words; "
             "amprun schema prints what it is taken for)."},
    {.name = "eval-data", .value = "SPEC", .kind = VALUE_FILE,
     .preset = "the test part of idx:DIR, what is held out of tokens:FILE and csv:FILE, else nothing", TEXT(eval_data),
     .commands = TRAIN,
     .help = "What is evaluated after each epoch."},
    {.name = "eval-split", .value = "P", TAKEN_BY(take_split), .commands = TRAIN,
     .help = "Holds samples of --data out of training and evaluates on them. A part such as 0.1, or a number of them; "
             "the same ones in every run."},
    {.name = "epochs", .value = "E", .preset = "5", WHOLE(epochs), .commands = TRAIN,
     .help = "How far to train, counted from the start of training, also after --resume. A step of a model that "
             "accumulates takes as many batches in a row as the model says, from one epoch into the next if need be."},
    {.name = "steps", .value = "K", WHOLE(steps), .commands = TRAIN | STEP | SUGGEST,
     .help = "The same in steps; with step: how many (1). There the batches of a step that accumulates are the same "
             "one."},
    {.name = "batch", .value = "B", .preset = "128; info, doctor: 1", TAKEN_BY(take_batch),
     .commands = INFO | TRAIN | EVAL | INFER | DOCTOR | SUGGEST | TUNE,
     .help = "Samples of a batch; of a micro-batch, where the model accumulates. info --batch auto: the largest that "
             "fits in --memory. tune: one number and its halves, or several with commas between."},
    {.name = "length", .value = "L", .preset = "the model's largest", WHOLE(length),
     .commands = INFO | TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "The largest T of a session, of a model that declares one. It is T of all batches: a window of tokens: "
             "has as many, and arrays of safetensors: this size. Of samples with lengths (tokens: with split=, "
             "safetensors: with an array `lengths`) T is the longest of a batch, and none is longer."},
    {.name = "tokens", .value = "K", .preset = "any number", TAKEN_BY(take_tokens),
     .commands = INFO | TRAIN | EVAL | INFER | SUGGEST,
     .help = "Tokens of a batch at most, samples times T; of a micro-batch, where the model accumulates. Samples with "
             "lengths are put together by length, so that short ones make batches of more, up to --batch. info "
             "--tokens auto: the most that fit in --memory, with up to --batch (128) samples."},
    {.name = "seed", .value = "S", .preset = "0", TAKEN_BY(take_seed), .commands = ANY | SUGGEST,
     .help = "Of initial weights, order of samples, and dropout."},
    {.name = "weights", .value = "F", .kind = VALUE_FILE, TEXT(weights),
     .commands = TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "Parameters and buffers by name: a safetensors file, or the index of several "
             "(model.safetensors.index.json). All that the model has must be there, and nothing else; the message "
             "says which options would make a file fit."},
    {.name = "rename", .value = "FROM=TO", LIST(rules.rename), .commands = TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "Takes the tensors of --weights whose name matches FROM as TO, where each * is what the * of FROM "
             "matched: 'transformer.*=*'. May be given several times; each applies to what those before it made."},
    {.name = "ignore", .value = "GLOB", LIST(rules.ignore), .commands = TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "Leaves out the tensors of --weights whose names match, before they are renamed. May be given several "
             "times."},
    {.name = "transpose", .value = "GLOB", LIST(rules.transpose), .commands = TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "Turns the weights of the parameters that match, which --weights has the other way round (GPT-2). May be "
             "given several times."},
    {.name = "fresh", .value = "GLOB", LIST(rules.fresh), .commands = TRAIN | EVAL | INFER | STEP | SUGGEST,
     .help = "Parameters that match are initialised by --seed and not taken from --weights: a new head. May be given "
             "several times."},
    {.name = "save", .value = "F", .kind = VALUE_FILE, TEXT(save), .commands = TRAIN | STEP,
     .help = "Writes parameters and buffers by name; after csv:FILE also F.schema, which evaluation and inference "
             "take."},
    {.name = "save-like", .value = "F", .kind = VALUE_FILE, TEXT(save_like), .commands = TRAIN | STEP,
     .help = "Has --save and --save-best write the names and the layout of the weights F, as --rename, --ignore, "
             "--transpose and --fresh map them: what PyTorch loads with strict=True. F is a file or an index, mostly "
             "that of --weights."},
    {.name = "ema", FLAG(ema), .commands = TRAIN | EVAL | INFER | STEP,
     .help = "The averages that `ema = ...` of a train block keeps, in place of the parameters. train evaluates with "
             "them, and --save and --save-best write them, under the parameters' names; --checkpoint has both. eval "
             "and infer take them from a checkpoint, which --weights names."},
    {.name = "save-best", .value = "METRIC F", PAIR(best_metric, best_file), .commands = TRAIN,
     .help = "Writes parameters and buffers whenever an evaluation is the best so far. METRIC is loss, the name of a "
             "loss, or the name of a metric. The smallest loss, error or perplexity is best, and the largest of "
             "everything else; min:METRIC and max:METRIC say otherwise."},
    {.name = "patience", .value = "E", .preset = "never", WHOLE(patience), .commands = TRAIN,
     .help = "Ends training after E evaluations in a row that were not the best by the measure of --save-best, or by "
             "the loss."},
    {.name = "checkpoint", .value = "F", .kind = VALUE_FILE, TEXT(checkpoint), .commands = TRAIN | STEP,
     .help = "Writes everything that training goes on from."},
    {.name = "checkpoint-every", .value = "K|Ns", .preset = "300s", TAKEN_BY(take_every), .commands = TRAIN,
     .help = "With --checkpoint: writes it after every K steps, or when so much time has passed (30s, 10m, 2h); and "
             "at the end."},
    {.name = "resume", .value = "F", .kind = VALUE_FILE, TEXT(resume), .commands = TRAIN | STEP,
     .help = "Goes on from a checkpoint, bit for bit. Batch and seed are those of the checkpoint; other ones, and "
             "other data, are refused without --allow. F may be the file of --checkpoint, too."},
    {.name = "log", .value = "F", .kind = VALUE_FILE, TEXT(log), .commands = TRAIN,
     .help = "Writes one line of JSON per step and evaluation. Each is written as a whole and at once. With --resume "
             "the log is gone on with: a half line, and the lines of steps after the checkpoint, are cut first."},
    {.name = "tensorboard", .value = "DIR", .kind = VALUE_FOLDER, TEXT(tensorboard), .commands = TRAIN,
     .help = "Writes what --log has of each step and evaluation as scalars of TensorBoard, into an event file of its "
             "own in DIR, which is made where it is missing; and what --stats counts, as histograms. With --resume, "
             "TensorBoard shows the steps after the checkpoint as the new file has them."},
    {.name = "profile", .value = "F", .kind = VALUE_FILE, TEXT(profile), .commands = TRAIN | STEP,
     .help = "Times every kernel of ten steps after the first two, and prints a table by op: time, bytes and "
             "operations a second, how much of the machine's peak that is, and whether memory, arithmetic or the "
             "launch bounds it. F is a trace of the same for ui.perfetto.dev. The kernels of those steps run one by "
             "one; on cuda each is waited for, so that the steps take longer. With fewer steps, those that there are; "
             "step prints the table on standard error."},
    {.name = "trace-nonfinite", TAKEN_BY(take_trace), .commands = TRAIN | STEP,
     .help = "Says where a number that is not finite came from: the first op that made one, its line, its dtype and "
             "why, what it read, whether the step is finite in f32, and which line of the precision block mends it. A "
             "step that was skipped, or whose loss is not finite, is taken again by the model compiled without "
             "fusion, for which a C compiler (on cuda also NVRTC) is needed. Keeps the batches of the last 32 steps, "
             "and writes the state before them to TMPDIR. Skipped steps that a lower loss scale mends are told in "
             "--log, and with --verbose. Without this option, too, steps and evaluations 1, 2, 4 .. 256 and each "
             "500th are looked at: an op that makes infinities in f16, or loses everything to zero, is named though "
             "the loss is finite; --trace-nonfinite all looks at each."},
    {.name = "stats", .value = "EVERY|LOG", .kind = VALUE_FILE, .preset = "never", TAKEN_BY(take_stats),
     .commands = TRAIN | STEP | SUGGEST,
     .help = "Writes after every EVERY steps a line of JSON on each tensor of the step that is in memory: how many of "
             "its numbers have which exponent, are zero, infinite or NaN, and would become zero, subnormal or "
             "infinite in f16, bf16 and the FP8 types; train into --log, step to standard output. On cuda the tensors "
             "are copied to the host. suggest: LOG is what train has written so; its steps are taken again, up to "
             "--steps (1000). The model, the data and all that decides the numbers are those of the log where no "
             "argument says another."},
    {.name = "quiet", FLAG(quiet), .commands = TRAIN,
     .help = "Prints nothing but errors."},
    {.name = "inputs", .value = "F", .kind = VALUE_FILE, TEXT(inputs), .commands = INFER | STEP,
     .help = "Arrays by the names of the model's inputs, a safetensors file; with infer also csv:FILE[,schema=FILE]."},
    {.name = "outputs", .value = "F", .kind = VALUE_FILE, TEXT(outputs), .commands = INFER,
     .help = "Writes the results by their names, a safetensors file."},
    {.name = "grads", .value = "F", .kind = VALUE_FILE, TEXT(grads), .commands = STEP,
     .help = "Writes the first step's gradients by parameter name. They are unscaled, before clipping, in f32."},
    {.name = "values", .value = "GLOB F", PAIR(values_glob, values_file), .commands = STEP,
     .help = "Writes the values of the first step whose names match."},
    {.name = "scale", .value = "S", .preset = "the model's", TAKEN_BY(take_scale), .commands = STEP,
     .help = "Sets the loss scale before the first step."},
    {.name = "precision", .value = "fp32", .words = "fp32", .preset = "the model's", TEXT(precision), .commands = EVAL,
     .help = "Evaluates with the FP32 form, where the model was compiled with one."},
    {.name = "device", .value = "cpu|cuda|cuda:N|null", .words = "cpu cuda null", .preset = "cpu",
     TAKEN_BY(take_device), .commands = ANY | DOCTOR | SUGGEST | TUNE,
     .help = "Where to run: cpu; cuda, an NVIDIA GPU (cuda:N: the one numbered N, from 0); null plans memory and "
             "computes nothing."},
    {.name = "products", .value = "same-bits|own|fastest", .words = "same-bits own fastest", .preset = "same-bits",
     TAKEN_BY(take_products), .commands = ANY | TUNE,
     .help = "With --device cuda: who makes matrix products. own: ampc's kernels. same-bits: NVIDIA's cuBLASLt for "
             "those that it makes faster with the same bits, if it is installed; each is measured once and kept in the "
             "cache of kernels. fastest: cuBLASLt for those that it makes faster in any order of sums, so that bits "
             "depend on the GPU and the library."},
    {.name = "choices", .value = "FILE", .kind = VALUE_FILE, TEXT(cuda.choices), .commands = ANY | TUNE,
     .help = "With --device cuda: who makes which product, a file that amprun tune has written. It comes before what "
             "the cache of kernels has. It is refused for another model, GPU, driver, version of cuBLASLt or "
             "--products."},
    {.name = "seconds", .value = "S", .preset = "no end", TAKEN_BY(take_seconds), .commands = TUNE,
     .help = "No other product is measured after S seconds of measurements. The next amprun tune goes on."},
    {.letter = "o", .value = "FILE", .kind = VALUE_FILE, TEXT(choices_out), .commands = TUNE,
     .help = "Writes what was chosen, for --choices on this machine or an equal one. It is in the cache of kernels all "
             "the same."},
    {.name = "threads", .value = "T", .preset = "one per processor", WHOLE(threads),
     .commands = ANY | DOCTOR | SUGGEST | TUNE,
     .help = "Threads of the CPU. Results do not depend on it."},
    {.name = "dist", .value = "mpi|nccl|files", .words = "mpi nccl files", .preset = "alone", TEXT(dist),
     .commands = TRAIN | EVAL,
     .help = "Trains together with the other processes (ranks) that mpirun or srun has started, over MPI: Open MPI, "
             "MPICH, Intel MPI, or one with the ABI of MPI 5, which is opened at run time. The model is compiled with "
             "ampc --distribute data. A step takes --batch samples of each rank; each reads its own, and rank 0 alone "
             "prints and writes files. eval divides the batches among the ranks. nccl, with --device cuda: the same, "
             "and what ranks add up stays in the memory of their GPUs, one for each rank of a host; NCCL 2.18 or "
             "newer is opened at run time, too. files, for a few ranks on a CPU: the same without any MPI, by files "
             "in --dist-folder; slower, and sums have the bits of --reduce ordered."},
    {.name = "reduce", .value = "fast|ordered", .words = "fast ordered", .preset = "fast", CHOICE(ordered),
     .commands = TRAIN,
     .help = "With --dist: how sums over ranks are added. ordered: from the first rank to the last, so that the bits "
             "do not depend on the library and its version; where a step accumulates, the model is compiled with ampc "
             "--accumulate-order tree, and the bits do not depend on the number of ranks either."},
    {.name = "dist-timeout", .value = "S", .preset = "30", TAKEN_BY(take_timeout), .commands = TRAIN | EVAL,
     .help = "With --dist: seconds after which a rank that does not answer has failed, and all others end."},
    {.name = "dist-library", .value = "FILE", .kind = VALUE_FILE, .preset = "by the launcher, or by name",
     TEXT(dist_library), .commands = TRAIN | EVAL,
     .help = "With --dist: the shared library to open: of MPI, or with nccl of NCCL."},
    {.name = "dist-folder", .value = "DIR", .kind = VALUE_FOLDER, TEXT(dist_folder), .commands = TRAIN | EVAL,
     .help = "With --dist files or nccl: ranks meet in this folder, which all of them see, and need no MPI. It is "
             "empty, and this user alone may write to it, or it is not there yet; on one machine a new one in "
             "/dev/shm is the fastest. Who they are comes from the launcher: torchrun (RANK, WORLD_SIZE), srun "
             "(SLURM_PROCID, SLURM_NTASKS), mpirun; or from --dist-rank."},
    {.name = "dist-rank", .value = "R/N", .preset = "by the launcher", TAKEN_BY(take_dist_rank),
     .commands = TRAIN | EVAL,
     .help = "With --dist-folder: this process is rank R, from 0, of N."},
    {.name = "isa", .value = "portable|v3|v4", .words = "portable v3 v4", .preset = "the best of this machine",
     TEXT(cpu.isa), .commands = ANY | DOCTOR | SUGGEST,
     .help = "Instruction set."},
    {.name = "json", FLAG(as_json), .commands = INFO | DOCTOR | SUGGEST,
     .help = "Prints the report as one object of JSON."},
    {.name = "roofline", .value = "GPU", .words = "H200 H100 A100 RTX4090 T4", TEXT(roofline), .commands = INFO,
     .help = "Prints a modelled time of each CUDA kernel on that GPU at --batch, with what bounds it. Also whether "
             "FP16 or BF16 pays there. GPU is H200, H100, A100, RTX4090 or T4, and none is needed: this is a model, "
             "not a measurement."},
    {.name = "kernels", FLAG(kernels), .commands = INFO,
     .help = "Prints the CUDA kernels of each program. How they are launched at --batch on the GPU of --roofline (an "
             "H100), and which share a function."},
    {.name = "memory", .value = "BYTES", TAKEN_BY(take_memory), .commands = INFO,
     .help = "With --batch auto or --tokens auto: prints the largest batch whose session, params included, takes no "
             "more, what it takes, and what the next one would. BYTES is a number, also with K, M, G, T (powers of "
             "1000) or KiB, MiB, GiB, TiB."},
    {.name = "against", .value = "MODEL.so", .kind = VALUE_FILE, TEXT(against), .commands = INFO,
     .help = "With --batch auto: the same of another model beside it, such as the one of --precision fp32, and the "
             "ratio of the batches."},
    {.name = "timeline", FLAG(timeline), .commands = INFO,
     .help = "Prints how many bytes of activations are alive while each kernel runs, at --batch on --device (no GPU "
             "is needed for cuda), and the buffers that are alive where they are most."},
    {.name = "ranks", .value = "R", TAKEN_BY(take_ranks), .commands = INFO,
     .help = "Prints what each of R ranks sends in a step, of a model compiled with ampc --distribute data: every "
             "message, its bytes, and the kernel of micro_step after which it is complete; and what a rank holds in "
             "memory. With --device cuda the messages alone, for which no GPU is needed."},
    {.name = "program", .value = "NAME", .preset = "train_step, else infer; --kernels: all", TEXT(program),
     .commands = INFO,
     .help = "The program of --roofline, --kernels and --timeline, such as train_step, eval or infer."},
    {.name = "force", FLAG(force), .commands = TRAIN | INFER | STEP | TUNE,
     .help = "Also replaces files that amprun did not write. No option lets an output replace a file that the same "
             "command reads."},
    {.name = "allow", .value = "WORD,...", .words = "nan other-batch other-data other-seed alone", WORDS(allowed),
     .commands = TRAIN | EVAL,
     .help = "Does what is refused otherwise. nan: training goes on with parameters that are not finite, and writes "
             "them. other-batch, other-data, other-seed: --resume takes another batch (also of all ranks together), "
             "other data, or another seed than the checkpoint was trained with, at the nearest sample. alone: each "
             "process of a launcher trains by itself, without --dist."},
    {.name = "verbose", .letter = "v", FLAG(verbose), .commands = ANY | TUNE,
     .help = "Says on standard error what the library chooses and does: threads, instruction set, measured rates of "
             "products, CUDA kernels that are compiled, skipped steps."},
    {OPTION_COLOR, .commands = ALL},
    {OPTION_DESCRIBE, .commands = ALL},
    {OPTION_HELP, .commands = ALL},
    {OPTION_VERSION, .commands = ALL},
    {0},
};
_Static_assert(sizeof amprun_options / sizeof *amprun_options <= OPTIONS_MOST, "OptionsRead has a place for each");

static const OptionRule amprun_rules[] = {
    {.of = "epochs", .excludes = "steps"},
    {.of = "weights", .excludes = "resume", .why = "a checkpoint holds the parameters"},
    {.of = "ignore|rename|transpose|fresh", .needs = "weights|save-like"},
    {.commands = STEP, .of = "ema", .needs = "save"},
    {.of = "save-like", .needs = "save|save-best"},
    {.of = "checkpoint-every", .needs = "checkpoint"},
    {.of = "profile=-", .says = "--profile -: a trace is no text; name a file"},
    {.of = "profile", .excludes = "stats", .why = "counting would take the time"},
    {.commands = TRAIN | STEP, .of = "stats", .excludes = "device=null",
     .says = "--stats: device null computes nothing to count; choose cpu or cuda"},
    {.commands = TRAIN, .of = "stats", .needs = "log|tensorboard",
     .says = "--stats: its lines go into the log; give --log FILE too, or --tensorboard DIR"},
    {.of = "eval-data", .excludes = "eval-split"},
    {.of = "roofline", .needs = "batch", .why = "how many samples the program is given"},
    {.of = "program", .needs = "roofline|kernels|timeline"},
    {.of = "reduce=ordered|dist-timeout|dist-library", .needs = "dist"},
    {.commands = ALL & ~TUNE, .of = "products|choices", .needs = "device=cuda"},
    {.of = "choices", .excludes = "products=own", .why = "nothing is chosen then"},
    {.of = "dist=nccl", .needs = "device=cuda",
     .says = "--dist nccl adds up in the memory of GPUs: give --device cuda, or take --dist mpi"},
    {.of = "dist=nccl", .excludes = "reduce=ordered",
     .says = "takes --reduce ordered only with --dist mpi: NCCL adds in an order of its own"},
    {.of = "dist-folder", .needs = "dist=files|dist=nccl"},
    {.of = "dist=files", .needs = "dist-folder",
     .says = "--dist files: ranks meet in a folder that all of them see; name it with --dist-folder"},
    {.of = "dist=files", .excludes = "dist-library", .says = "--dist files opens no library: leave out --dist-library"},
    {.of = "dist-rank", .needs = "dist-folder", .why = "MPI knows the ranks itself"},
    {.of = "trace-nonfinite", .excludes = "dist",
     .says = "--trace-nonfinite takes steps again, which other ranks would have to take too; trace a training of one "
             "process, with accumulate in place of ranks"},
    {.commands = ALL & ~INFO, .of = "batch=auto",
     .says = "takes a number as --batch; amprun info --batch auto finds the largest that fits"},
    {.commands = ALL & ~INFO, .of = "tokens=auto",
     .says = "takes a number as --tokens; amprun info --tokens auto finds the most that fit"},
    {.of = "batch=auto|tokens=auto", .needs = "memory",
     .says = "takes --batch auto and --memory BYTES together: the largest batch that fits"},
    {.of = "memory", .needs = "batch=auto|tokens=auto",
     .says = "takes --batch auto and --memory BYTES together: the largest batch that fits"},
    {.of = "batch=auto", .excludes = "tokens=auto", .says = "takes --batch auto or --tokens auto, not both"},
    {.of = "tokens", .excludes = "timeline|kernels|roofline|ranks",
     .says = "takes --tokens without --timeline, --kernels, --roofline and --ranks, which are of one size: --batch and "
             "--length"},
    {.of = "against", .needs = "batch=auto|tokens=auto"},
    {.of = "batch=auto", .excludes = "timeline|kernels|roofline",
     .says = "takes a number as --batch with --timeline, --kernels and --roofline"},
    {.of = "ranks", .excludes = "batch=auto|timeline|kernels|roofline",
     .says = "takes --ranks with a number as --batch, and without --timeline, --kernels and --roofline"},
    {.of = "timeline", .excludes = "kernels|roofline",
     .says = "takes --timeline, or --kernels and --roofline, not both"},
    {0},
};
/* clang-format on */

const Tool amprun_tool = {
    "amprun",
    amprun_commands,
    amprun_options,
    amprun_rules,
    "The file of --inputs may be - for standard input, those of --outputs and --log - for standard output.\n"
    "Exit status: 0 success, 1 a file or a step was refused, 2 wrong arguments, 128 + n ended by signal n.\n",
    amp_version};
