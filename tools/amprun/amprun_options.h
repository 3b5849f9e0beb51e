/* amprun_options.h: the commands and options of amprun, as one table (options.h). */
#ifndef AMP_TOOLS_AMPRUN_OPTIONS_H
#define AMP_TOOLS_AMPRUN_OPTIONS_H

#include "tools/amprun/amprun.h"
#include "tools/options.h"

#define TEXT(field) INTO(TEXT, Args, field, 0)
#define FLAG(field) INTO(FLAG, Args, field, 0)
#define WHOLE(field) INTO(COUNT, Args, field, 0)
#define RULE(field) INTO(LIST, Args, field, 0)
#define PAIR(field, file) INTO(PAIR, Args, field, offsetof(Args, file))
#define OTHER                                                                                                          \
    { 0 }

typedef enum AmprunOption {
    O_BATCH = 256,
    O_DATA,
    O_EPOCHS,
    O_STEPS,
    O_SEED,
    O_THREADS,
    O_DEVICE,
    O_ISA,
    O_WEIGHTS,
    O_IGNORE,
    O_RENAME,
    O_TRANSPOSE,
    O_FRESH,
    O_SAVE_LIKE,
    O_SAVE,
    O_CHECKPOINT,
    O_RESUME,
    O_LOG,
    O_TENSORBOARD,
    O_PROFILE,
    O_QUIET,
    O_PRECISION,
    O_INPUTS,
    O_OUTPUTS,
    O_GRADS,
    O_SCALE,
    O_VALUES,
    O_CHECKPOINT_EVERY,
    O_EVAL_DATA,
    O_EVAL_SPLIT,
    O_SAVE_BEST,
    O_PATIENCE,
    O_FORCE,
    O_ALLOW,
    O_JSON,
    O_ROOFLINE,
    O_KERNELS,
    O_PROGRAM,
    O_TRACE,
    O_STATS,
    O_MEMORY,
    O_AGAINST,
    O_TIMELINE,
    O_RANKS,
    O_DIST,
    O_REDUCE,
    O_DIST_TIMEOUT,
    O_DIST_LIBRARY,
    O_DIST_FOLDER,
    O_DIST_RANK,
    O_VERBOSE,
    O_COLOR,
    O_DESCRIBE,
    O_HELP,
    O_VERSION,
    O_END
} AmprunOption;

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
    ANY = 31,
    ALL = 511
};

static const ToolCommand amprun_commands[] = {
    {"info", " MODEL.so [options]", "report parameters, inputs, results, and the memory of a session, to the byte",
     NULL},
    {"train", " MODEL.so --data SPEC [--epochs E | --steps K] [options]",
     "train, and evaluate after each epoch where there is something to evaluate on", NULL},
    {"eval", " MODEL.so --data SPEC --weights F [options]", "print loss and metrics as one line of JSON", NULL},
    {"infer", " MODEL.so --weights F --inputs F --outputs F [options]", "write the results of all samples of a file",
     NULL},
    {"step", " MODEL.so --weights F | --resume F --inputs F [options]",
     "train on exactly one batch, all samples of a file; a line of JSON per step", NULL},
    {"schema", " csv:FILE[,target=COLUMN][,schema=FILE]",
     "print what the columns of a table are to a model, with what is derived of them", NULL},
    {"doctor", " [MODEL.so] [--device D] [--json]",
     "say what this machine has of what a model needs on a device, and what to do about the rest", NULL},
    {"suggest", " MODEL.so --data SPEC [--steps K] [options] | [MODEL.so] --stats LOG [options]",
     "propose lines for the model's precision block, found and proven by training it, or by the steps of a log", NULL},
    {"watch", " LOG",
     "draw a log that amprun train --log is writing: loss, loss scale, what f16 would lose (--stats), faults", NULL},
    {0},
};

static const ToolOption amprun_options[] = {
    {O_DATA, "data", NULL, "SPEC", VALUE_FILE, false, NULL, NULL,
     "The samples: idx:DIR (the four files of MNIST's form, gzip or plain); safetensors:FILE (arrays named as the "
     "model's inputs, whose first dimension is the sample); tokens:FILE[,type=u8|u16|u32][,held=P] (a text of bytes "
     "or ids, in windows as long as the model's input, of which the last part P, 0.1, is evaluated); or "
     "csv:FILE[,target=COLUMN][,schema=FILE][,held=P] (a table of numbers and words; amprun schema prints what it is "
     "taken for).",
     TRAIN | EVAL | SUGGEST, TEXT(data)},
    {O_EVAL_DATA, "eval-data", NULL, "SPEC", VALUE_FILE, false, NULL,
     "the test part of idx:DIR, what is held out of tokens:FILE and csv:FILE, else nothing",
     "What is evaluated after each epoch.", TRAIN, TEXT(eval_data)},
    {O_EVAL_SPLIT, "eval-split", NULL, "P", VALUE_TEXT, false, NULL, NULL,
     "Holds samples of --data out of training and evaluates on them. A part such as 0.1, or a number of them; the same "
     "ones in every run.",
     TRAIN, OTHER},
    {O_EPOCHS, "epochs", NULL, "E", VALUE_TEXT, false, NULL, "5",
     "How far to train, counted from the start of training, also after --resume. A step of a model that accumulates "
     "takes as many batches in a row as the model says, from one epoch into the next if need be.",
     TRAIN, WHOLE(epochs)},
    {O_STEPS, "steps", NULL, "K", VALUE_TEXT, false, NULL, NULL,
     "The same in steps; with step: how many (1). There the batches of a step that accumulates are the same one.",
     TRAIN | STEP | SUGGEST, WHOLE(steps)},
    {O_BATCH, "batch", NULL, "B", VALUE_TEXT, false, NULL, "128; info, doctor: 1",
     "Samples of a batch; of a micro-batch, where the model accumulates. info --batch auto: the largest that fits in "
     "--memory.",
     INFO | TRAIN | EVAL | INFER | DOCTOR | SUGGEST, OTHER},
    {O_SEED, "seed", NULL, "S", VALUE_TEXT, false, NULL, "0", "Of initial weights, order of samples, and dropout.",
     ANY | SUGGEST, OTHER},
    {O_WEIGHTS, "weights", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Parameters and buffers by name: a safetensors file, or the index of several (model.safetensors.index.json). All "
     "that the model has must be there, and nothing else; the message says which options would make a file fit.",
     TRAIN | EVAL | INFER | STEP | SUGGEST, TEXT(weights)},
    {O_RENAME, "rename", NULL, "FROM=TO", VALUE_TEXT, false, NULL, NULL,
     "Takes the tensors of --weights whose name matches FROM as TO, where each * is what the * of FROM matched: "
     "'transformer.*=*'. May be given several times; each applies to what those before it made.",
     TRAIN | EVAL | INFER | STEP | SUGGEST, RULE(rules.rename)},
    {O_IGNORE, "ignore", NULL, "GLOB", VALUE_TEXT, false, NULL, NULL,
     "Leaves out the tensors of --weights whose names match, before they are renamed. May be given several times.",
     TRAIN | EVAL | INFER | STEP | SUGGEST, RULE(rules.ignore)},
    {O_TRANSPOSE, "transpose", NULL, "GLOB", VALUE_TEXT, false, NULL, NULL,
     "Turns the weights of the parameters that match, which --weights has the other way round (GPT-2). May be given "
     "several times.",
     TRAIN | EVAL | INFER | STEP | SUGGEST, RULE(rules.transpose)},
    {O_FRESH, "fresh", NULL, "GLOB", VALUE_TEXT, false, NULL, NULL,
     "Parameters that match are initialised by --seed and not taken from --weights: a new head. May be given several "
     "times.",
     TRAIN | EVAL | INFER | STEP | SUGGEST, RULE(rules.fresh)},
    {O_SAVE, "save", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Writes parameters and buffers by name; after csv:FILE also F.schema, which evaluation and inference take.",
     TRAIN | STEP, TEXT(save)},
    {O_SAVE_LIKE, "save-like", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Has --save and --save-best write the names and the layout of the weights F, as --rename, --ignore, --transpose "
     "and --fresh map them: what PyTorch loads with strict=True. F is a file or an index, mostly that of --weights.",
     TRAIN | STEP, TEXT(save_like)},
    {O_SAVE_BEST, "save-best", NULL, "METRIC F", VALUE_TEXT, false, NULL, NULL,
     "Writes parameters and buffers whenever an evaluation is the best so far. METRIC is loss, the name of a loss, or "
     "the name of a metric. The smallest loss, error or perplexity is best, and the largest of everything else; "
     "min:METRIC and max:METRIC say otherwise.",
     TRAIN, PAIR(best_metric, best_file)},
    {O_PATIENCE, "patience", NULL, "E", VALUE_TEXT, false, NULL, "never",
     "Ends training after E evaluations in a row that were not the best by the measure of --save-best, or by the loss.",
     TRAIN, WHOLE(patience)},
    {O_CHECKPOINT, "checkpoint", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Writes everything that training goes on from.", TRAIN | STEP, TEXT(checkpoint)},
    {O_CHECKPOINT_EVERY, "checkpoint-every", NULL, "K|Ns", VALUE_TEXT, false, NULL, "300s",
     "With --checkpoint: writes it after every K steps, or when so much time has passed (30s, 10m, 2h); and at the "
     "end.",
     TRAIN, OTHER},
    {O_RESUME, "resume", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Goes on from a checkpoint, bit for bit. Batch and seed are those of the checkpoint; other ones, and other data, "
     "are "
     "refused without --allow. F may be the file of --checkpoint, too.",
     TRAIN | STEP, TEXT(resume)},
    {O_LOG, "log", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Writes one line of JSON per step and evaluation. Each is written as a whole and at once. With --resume the log "
     "is "
     "gone on with: a half line, and the lines of steps after the checkpoint, are cut first.",
     TRAIN, TEXT(log)},
    {O_TENSORBOARD, "tensorboard", NULL, "DIR", VALUE_FOLDER, false, NULL, NULL,
     "Writes what --log has of each step and evaluation as scalars of TensorBoard, into an event file of its own in "
     "DIR, which is made where it is missing; and what --stats counts, as histograms. With --resume, TensorBoard shows "
     "the steps after the checkpoint as the "
     "new file has them.",
     TRAIN, TEXT(tensorboard)},
    {O_PROFILE, "profile", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Times every kernel of ten steps after the first two, and prints a table by op: time, bytes and operations a "
     "second, how much of the machine's peak that is, and whether memory, arithmetic or the launch bounds it. F is a "
     "trace of the same for ui.perfetto.dev. The kernels of those steps run one by one; on cuda each is waited for, "
     "so that the steps take longer. With fewer steps, those that there are; step prints the table on standard error.",
     TRAIN | STEP, TEXT(profile)},
    {O_TRACE, "trace-nonfinite", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Says where a number that is not finite came from: the first op that made one, its line, its dtype and why, what "
     "it read, whether the step is finite in f32, and which line of the precision block mends it. A step that was "
     "skipped, or whose loss is not finite, is taken again by the model compiled without fusion, for which a C "
     "compiler (on cuda also NVRTC) is needed. Keeps the batches of the last 32 steps, and writes the state before "
     "them to TMPDIR. Skipped steps that a lower loss scale mends are told in --log, and with --verbose. Without "
     "this option, too, steps and evaluations 1, 2, 4 .. 256 and each 500th are looked at: an op that makes infinities "
     "in f16, or loses everything to zero, is named though the loss is finite; --trace-nonfinite all looks at each.",
     TRAIN | STEP, FLAG(trace)},
    {O_STATS, "stats", NULL, "EVERY|LOG", VALUE_FILE, false, NULL, "never",
     "Writes after every EVERY steps a line of JSON on each tensor of the step that is in memory: how many of its "
     "numbers have which exponent, are zero, infinite or NaN, and would become zero, subnormal or infinite in f16, "
     "bf16 "
     "and the FP8 types; train into --log, step to standard output. On cuda the tensors are copied to the host. "
     "suggest: LOG is what train has written so; its steps are taken again, up to --steps (1000). The model, the data "
     "and all that decides the numbers are those of the log where no argument says another.",
     TRAIN | STEP | SUGGEST, WHOLE(stats)},
    {O_QUIET, "quiet", NULL, NULL, VALUE_TEXT, false, NULL, NULL, "Prints nothing but errors.", TRAIN, FLAG(quiet)},
    {O_INPUTS, "inputs", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Arrays by the names of the model's inputs, a safetensors file; with infer also csv:FILE[,schema=FILE].",
     INFER | STEP, TEXT(inputs)},
    {O_OUTPUTS, "outputs", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Writes the results by their names, a safetensors file.", INFER, TEXT(outputs)},
    {O_GRADS, "grads", NULL, "F", VALUE_FILE, false, NULL, NULL,
     "Writes the first step's gradients by parameter name. They are unscaled, before clipping, in f32.", STEP,
     TEXT(grads)},
    {O_VALUES, "values", NULL, "GLOB F", VALUE_TEXT, false, NULL, NULL,
     "Writes the values of the first step whose names match.", STEP, PAIR(values_glob, values_file)},
    {O_SCALE, "scale", NULL, "S", VALUE_TEXT, false, NULL, "the model's", "Sets the loss scale before the first step.",
     STEP, OTHER},
    {O_PRECISION, "precision", NULL, "fp32", VALUE_TEXT, false, "fp32", "the model's",
     "Evaluates with the FP32 form, where the model was compiled with one.", EVAL, TEXT(precision)},
    {O_DEVICE, "device", NULL, "cpu|cuda|cuda:N|null", VALUE_TEXT, false, "cpu cuda null", "cpu",
     "Where to run: cpu; cuda, an NVIDIA GPU (cuda:N: the one numbered N, from 0); null plans memory and computes "
     "nothing.",
     ANY | DOCTOR | SUGGEST, OTHER},
    {O_THREADS, "threads", NULL, "T", VALUE_TEXT, false, NULL, "one per processor",
     "Threads of the CPU. Results do not depend on it.", ANY | DOCTOR | SUGGEST, WHOLE(threads)},
    {O_DIST, "dist", NULL, "mpi|nccl|files", VALUE_TEXT, false, "mpi nccl files", "alone",
     "Trains together with the other processes (ranks) that mpirun or srun has started, over MPI: Open MPI, MPICH, "
     "Intel MPI, or one with the ABI of MPI 5, which is opened at run time. The model is compiled with ampc "
     "--distribute "
     "data. "
     "A step takes --batch samples of each rank; each reads its own, and rank 0 alone prints and writes files. eval "
     "divides the batches among the ranks. nccl, with --device cuda: the same, and what ranks add up stays in the "
     "memory of their GPUs, one for each rank of a host; NCCL 2.18 or newer is opened at run time, too. files, for a "
     "few ranks on a CPU: the "
     "same without any MPI, by files in --dist-folder; slower, and sums have the bits of --reduce ordered.",
     TRAIN | EVAL, TEXT(dist)},
    {O_REDUCE, "reduce", NULL, "fast|ordered", VALUE_TEXT, false, "fast ordered", "fast",
     "With --dist: how sums over ranks are added. ordered: from the first rank to the last, so that the bits do not "
     "depend on the library and its version; where a step accumulates, the model is compiled with ampc "
     "--accumulate-order tree, and the bits do not depend on the number of ranks either.",
     TRAIN, OTHER},
    {O_DIST_TIMEOUT, "dist-timeout", NULL, "S", VALUE_TEXT, false, NULL, "30",
     "With --dist: seconds after which a rank that does not answer has failed, and all others end.", TRAIN | EVAL,
     OTHER},
    {O_DIST_LIBRARY, "dist-library", NULL, "FILE", VALUE_FILE, false, NULL, "by the launcher, or by name",
     "With --dist: the shared library to open: of MPI, or with nccl of NCCL.", TRAIN | EVAL, TEXT(dist_library)},
    {O_DIST_FOLDER, "dist-folder", NULL, "DIR", VALUE_FOLDER, false, NULL, NULL,
     "With --dist files or nccl: ranks meet in this folder, which all of them see, and need no MPI. It is empty, and "
     "this user alone may write to it, or it is not there yet; on one machine a new one in /dev/shm is the fastest. "
     "Who they are comes from the launcher: torchrun (RANK, WORLD_SIZE), srun (SLURM_PROCID, SLURM_NTASKS), mpirun; or "
     "from --dist-rank.",
     TRAIN | EVAL, TEXT(dist_folder)},
    {O_DIST_RANK, "dist-rank", NULL, "R/N", VALUE_TEXT, false, NULL, "by the launcher",
     "With --dist-folder: this process is rank R, from 0, of N.", TRAIN | EVAL, OTHER},
    {O_ISA, "isa", NULL, "portable|v3|v4", VALUE_TEXT, false, "portable v3 v4", "the best of this machine",
     "Instruction set.", ANY | DOCTOR | SUGGEST, TEXT(isa)},
    {O_JSON, "json", NULL, NULL, VALUE_TEXT, false, NULL, NULL, "Prints the report as one object of JSON.",
     INFO | DOCTOR | SUGGEST, FLAG(as_json)},
    {O_ROOFLINE, "roofline", NULL, "GPU", VALUE_TEXT, false, "H200 H100 A100 RTX4090 T4", NULL,
     "Prints a modelled time of each CUDA kernel on that GPU at --batch, with what bounds it. Also whether FP16 or "
     "BF16 pays there. GPU is H200, H100, A100, RTX4090 or T4, and none is needed: this is a model, not a measurement.",
     INFO, TEXT(roofline)},
    {O_KERNELS, "kernels", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Prints the CUDA kernels of each program. How they are launched at --batch on the GPU of --roofline (an H100), "
     "and which share a function.",
     INFO, FLAG(kernels)},
    {O_MEMORY, "memory", NULL, "BYTES", VALUE_TEXT, false, NULL, NULL,
     "With --batch auto: prints the largest batch whose session, params included, takes no more, what it takes, and "
     "what the next one would. BYTES is a number, also with K, M, G, T (powers of 1000) or KiB, MiB, GiB, TiB.",
     INFO, OTHER},
    {O_AGAINST, "against", NULL, "MODEL.so", VALUE_FILE, false, NULL, NULL,
     "With --batch auto: the same of another model beside it, such as the one of --precision fp32, and the ratio of "
     "the batches.",
     INFO, TEXT(against)},
    {O_TIMELINE, "timeline", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Prints how many bytes of activations are alive while each kernel runs, at --batch on --device (no GPU is needed "
     "for cuda), and the buffers that are alive where they are most.",
     INFO, FLAG(timeline)},
    {O_RANKS, "ranks", NULL, "R", VALUE_TEXT, false, NULL, NULL,
     "Prints what each of R ranks sends in a step, of a model compiled with ampc --distribute data: every message, its "
     "bytes, and the kernel of micro_step after which it is complete; and what a rank holds in memory. With --device "
     "cuda the messages alone, for which no GPU is needed.",
     INFO, OTHER},
    {O_PROGRAM, "program", NULL, "NAME", VALUE_TEXT, false, NULL, "train_step, else infer; --kernels: all",
     "The program of --roofline, --kernels and --timeline, such as train_step, eval or infer.", INFO, TEXT(program)},
    {O_FORCE, "force", NULL, NULL, VALUE_TEXT, false, NULL, NULL,
     "Also replaces files that amprun did not write. No option lets an output replace a file that the same command "
     "reads.",
     TRAIN | INFER | STEP, FLAG(force)},
    {O_ALLOW, "allow", NULL, "WORD,...", VALUE_TEXT, false, "nan other-batch other-data other-seed alone", NULL,
     "Does what is refused otherwise. nan: training goes on with parameters that are not finite, and writes them. "
     "other-batch, other-data, other-seed: --resume takes another batch (also of all ranks together), other data, or "
     "another seed than the checkpoint was trained with, at the nearest sample. alone: each process of a launcher "
     "trains by itself, without --dist.",
     TRAIN | EVAL, OTHER},
    {O_VERBOSE, "verbose", "v", NULL, VALUE_TEXT, false, NULL, NULL,
     "Says on standard error what the library chooses and does: threads, instruction set, measured rates of "
     "products, CUDA kernels that are compiled, skipped steps.",
     ANY, FLAG(verbose)},
    {O_COLOR, "color", NULL, "auto|always|never", VALUE_TEXT, false, "auto always never", "auto",
     "Whether to colour what is printed. auto: on a terminal, unless NO_COLOR is set.", ALL, OTHER},
    {O_DESCRIBE, "describe", NULL, "FORM", VALUE_TEXT, false, "bash zsh fish man", NULL,
     "Prints these options for other programs. bash, zsh, fish: a completion; man: the list of the manual page.", ALL,
     OTHER},
    {O_HELP, "help", "h", NULL, VALUE_TEXT, false, NULL, NULL, "Prints this.", ALL, OTHER},
    {O_VERSION, "version", NULL, NULL, VALUE_TEXT, false, NULL, NULL, "Prints the version.", ALL, OTHER},
    {0},
};

static const Tool amprun_tool = {
    "amprun", amprun_commands, amprun_options,
    "The file of --inputs may be - for standard input, those of --outputs and --log - for standard output.\n"
    "Exit status: 0 success, 1 a file or a step was refused, 2 wrong arguments, 128 + n ended by signal n.\n"};

#endif
