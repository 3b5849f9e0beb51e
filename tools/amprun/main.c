/* main.c: the command line of amprun: which options each command takes. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tools/amprun/amprun.h"
#include "tools/amprun/amprun_options.h"
#include "tools/amprun/profile/peaks.h"
#include "tools/amprun/ranks.h"
#include "tools/standard_streams.h"

#define BIT(option) (UINT64_C(1) << ((option)-O_BATCH))
_Static_assert(O_END - O_BATCH <= 64, "a bit for each option");

typedef struct Command {
    const char *name;
    int (*run)(const Args *a);
    uint64_t needs;
} Command;

/* In the order of the table of options. */
static const Command commands[] = {
    {"info", command_info, 0},
    {"train", command_train, BIT(O_DATA)},
    {"eval", command_eval, BIT(O_DATA) | BIT(O_WEIGHTS)},
    {"infer", command_infer, BIT(O_WEIGHTS) | BIT(O_INPUTS) | BIT(O_OUTPUTS)},
    {"step", command_step, BIT(O_INPUTS)},
    {"schema", command_schema, 0},
    {"doctor", command_doctor, 0},
    {"suggest", command_suggest, BIT(O_DATA)},
    {"watch", command_watch, 0},
};

static int wrong(const char *format, const char *a, const char *b) {
    char text[AMP_FILE_PATH];
    snprintf(text, sizeof text, format, a, b);
    report_text("%s; see amprun --help", text);
    return 2;
}

static int whole(const char *option, const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || *end || end == text || v < 1 || v > INT32_MAX)
        return wrong("--%s %s: a whole number from 1 to 2147483647 is wanted", option, text);
    *out = v;
    return 0;
}

static int take_ranks(const char *text, Args *a) {
    int64_t ranks;
    int failed = whole("ranks", text, &ranks);
    if (!failed && ranks > RANKS_MOST) return wrong("--%s %s: more than 1048576 ranks are not counted", "ranks", text);
    if (!failed) a->ranks = (int32_t)ranks;
    return failed;
}

/* "auto", of info: as many as fit. */
static int take_batch(const char *text, Args *a) {
    a->batch_auto = !strcmp(text, "auto");
    return a->batch_auto ? 0 : whole("batch", text, &a->batch);
}

/* "8589934592", "8GiB", "8.5G" */
static int take_memory(const char *text, Args *a) {
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
        a->memory = (uint64_t)bytes;
        return 0;
    }
    return wrong("--%s %s: a number of bytes is wanted, such as 8589934592, 24G (10^9) or 8GiB (2^30)", "memory", text);
}

static int take_scale(const char *text, Args *a) {
    char *end;
    a->scale = strtod(text, &end);
    return *end || end == text || !(a->scale > 0) ? wrong("--%s %s: a positive number is wanted", "scale", text) : 0;
}

static int take_seed(const char *text, Args *a) {
    char *end;
    errno = 0;
    a->seed_given = true;
    a->seed = strtoull(text, &end, 10);
    return errno || *end || end == text || *text == '-' ? wrong("--%s %s: a whole number is wanted", "seed", text) : 0;
}

/* "100" steps; "30s", "10m", "2h" of time. */
static int take_every(const char *text, Args *a) {
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    char *end;
    double v = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    a->every_steps = 0;
    a->every_seconds = 0;
    if (end == text || !(v > 0) || v > INT32_MAX || (unit ? end[1] : *end) || (!unit && v != (double)(int64_t)v))
        return wrong("--%s %s: a number of steps is wanted, or a time such as 30s, 10m or 2h", "checkpoint-every",
                     text);
    if (unit) a->every_seconds = v * seconds[unit - units];
    else a->every_steps = (int64_t)v;
    return 0;
}

static int take_split(const char *text, Args *a) {
    char *end;
    double *out = &a->eval_split;
    *out = strtod(text, &end);
    if (*end || end == text || !(*out > 0) || (*out >= 1 && (*out > INT32_MAX || *out != (double)(int64_t)*out)))
        return wrong("--%s %s: a part such as 0.1, or a number of samples is wanted", "eval-split", text);
    return 0;
}

static int take_reduce(const char *text, Args *a) {
    a->ordered = !strcmp(text, "ordered");
    return a->ordered || !strcmp(text, "fast") ? 0 : wrong("--%s %s: fast or ordered is wanted", "reduce", text);
}

static int take_timeout(const char *text, Args *a) {
    char *end;
    a->dist_timeout = strtod(text, &end);
    return *end || end == text || !(a->dist_timeout > 0 && a->dist_timeout <= 1e6)
               ? wrong("--%s %s: a number of seconds is wanted, at most a million", "dist-timeout", text)
               : 0;
}

/* "1/4": the second of four. */
static int take_dist_rank(const char *text, Args *a) {
    int end = 0;
    if (sscanf(text, "%" SCNd32 "/%" SCNd32 "%n", &a->dist_rank, &a->dist_ranks, &end) == 2 && !text[end] &&
        a->dist_rank >= 0 && a->dist_rank < a->dist_ranks && a->dist_ranks <= RANKS_MOST)
        return 0;
    return wrong("--%s %s: R/N is wanted, as 0/4 for the first and 3/4 for the last of four", "dist-rank", text);
}

/* "cuda:1": the second of them. */
static int take_device(const char *text, Args *a) {
    const char *number = strncmp(text, "cuda:", 5) ? NULL : text + 5;
    char *end = NULL;
    a->device = number ? "cuda" : text;
    a->numbers_device = number != NULL;
    if (!number) return 0;
    errno = 0;
    long v = strtol(number, &end, 10);
    if (errno || *end || end == number || *number < '0' || *number > '9' || v > INT32_MAX)
        return wrong("--%s %s: cuda:N counts devices from 0", "device", text);
    a->cuda_device = (int32_t)v;
    return 0;
}

/* --ignore and the like may be given several times. */
static int take_rule(const char *option, const char *rules[RULES_MOST + 1]) {
    int count = 0;
    while (rules[count]) count++;
    if (count == RULES_MOST) return wrong("--%s %s: is given too often; the most is 64 times", option, optarg);
    rules[count] = optarg;
    return 0;
}

/* "nan,other-data" */
static int take_allowed(const char *text, Args *a) {
    static const struct {
        const char *word;
        unsigned bit;
    } words[] = {{"nan", ALLOW_NAN},
                 {"other-batch", ALLOW_OTHER_BATCH},
                 {"other-data", ALLOW_OTHER_DATA},
                 {"other-seed", ALLOW_OTHER_SEED},
                 {"alone", ALLOW_ALONE}};
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].word) == n && !strncmp(words[i].word, at, n)) bit = words[i].bit;
        if (!bit) return wrong("--%s %s: nan, other-batch, other-data, other-seed or alone is wanted", "allow", text);
        a->allowed |= bit;
        at += n;
        if (!*at) return 0;
    }
}

/* Of options whose values need more than their place (OTHER). */
static int (*const takers[O_END])(const char *text, Args *a) = {
    [O_BATCH] = take_batch,      [O_MEMORY] = take_memory,        [O_RANKS] = take_ranks,
    [O_SEED] = take_seed,        [O_SCALE] = take_scale,          [O_CHECKPOINT_EVERY] = take_every,
    [O_EVAL_SPLIT] = take_split, [O_ALLOW] = take_allowed,        [O_DEVICE] = take_device,
    [O_REDUCE] = take_reduce,    [O_DIST_TIMEOUT] = take_timeout, [O_DIST_RANK] = take_dist_rank,
};

static int take(Args *a, const Command *c, int option, char **argv) {
    const ToolOption *o = options_find(&amprun_tool, option);
    void *const to = (char *)a + o->into.at;
    if (takers[option]) return takers[option](optarg, a);
    if (option == O_COLOR)
        return standard_streams_colour_when(optarg) ? 0 : wrong("--%s %s: auto, always or never", o->name, optarg);
    if (o->into.form == INTO_LIST) return take_rule(o->name, to);
    if (option == O_STATS && c->run == command_suggest) a->stats_log = optarg; /* reads what train and step write */
    else if (o->into.form == INTO_COUNT) return whole(o->name, optarg, to);
    else if (o->into.form == INTO_FLAG) *(bool *)to = true;
    else *(const char **)to = optarg;
    if (o->into.form == INTO_PAIR) {
        if (!argv[optind])
            return wrong(option == O_VALUES ? "--%s %s: a file must follow the glob"
                                            : "--%s %s: a file must follow the metric",
                         o->name, optarg);
        *(const char **)((char *)a + o->into.second) = argv[optind++];
    }
    if (option == O_TRACE && argv[optind] && !strcmp(argv[optind], "all")) optind++, a->looks_at_all = true;
    return 0;
}

static int refuse_option(int option, char **argv) {
    char letter[] = {'-', (char)optopt, 0};
    const char *text = optopt && optopt < O_BATCH ? letter : argv[optind - 1];
    return wrong(option == ':' ? "%s: needs a value%s" : "%s: there is no such option%s", text, "");
}

static const char *option_name(int id) { return options_find(&amprun_tool, id)->name; }

/* What is printed about amprun itself, or one of its commands; 1: it was, 2: there is no such form. */
static int print_about(const char *command, int option, const char *form) {
    if (option == O_VERSION) printf("amprun %s\n", amp_version());
    else if (option != O_DESCRIBE) options_help(&amprun_tool, command, stdout);
    else if (!options_describe(&amprun_tool, form, stdout))
        return wrong("--%s %s: bash, zsh, fish or man", "describe", form);
    return 1;
}

static int check_memory_options(const Args *a, const Command *c) {
    if (a->batch_auto && c->run != command_info)
        return wrong("%s takes a number as --batch; amprun info --batch auto finds the largest that fits%s", c->name,
                     "");
    if (a->batch_auto != (a->memory > 0))
        return wrong("%s takes --batch auto and --memory BYTES together: the largest batch that fits%s", c->name, "");
    if (a->against && !a->batch_auto) return wrong("%s takes --against only with --batch auto%s", c->name, "");
    if (a->batch_auto && (a->timeline || a->kernels || a->roofline))
        return wrong("%s takes a number as --batch with --timeline, --kernels and --roofline%s", c->name, "");
    if (a->ranks && (a->batch_auto || a->timeline || a->kernels || a->roofline))
        return wrong("%s takes --ranks with a number as --batch, and without --timeline, --kernels and --roofline%s",
                     c->name, "");
    if (a->timeline && (a->kernels || a->roofline))
        return wrong("%s takes --timeline, or --kernels and --roofline, not both%s", c->name, "");
    return 0;
}

/* Of ranks: which options go together. */
static int check_dist(const Args *a, const Command *c) {
    const bool nccl = a->dist && !strcmp(a->dist, "nccl"), files = a->dist && !strcmp(a->dist, "files");
    if ((a->ordered || a->dist_timeout > 0 || a->dist_library) && !a->dist)
        return wrong("%s takes --reduce, --dist-timeout and --dist-library only with --dist%s", c->name, "");
    if (nccl && (!a->device || strncmp(a->device, "cuda", 4)))
        return wrong("%s --dist nccl adds up in the memory of GPUs: give --device cuda, or take --dist mpi%s", c->name,
                     "");
    if (nccl && a->ordered)
        return wrong("%s takes --reduce ordered only with --dist mpi: NCCL adds in an order of its own%s", c->name, "");
    if (a->dist_folder && !nccl && !files)
        return wrong("%s takes --dist-folder only with --dist files or nccl%s", c->name, "");
    if (files && !a->dist_folder)
        return wrong("%s --dist files: ranks meet in a folder that all of them see; name it with --dist-folder%s",
                     c->name, "");
    if (files && a->dist_library)
        return wrong("%s --dist files opens no library: leave out --dist-library%s", c->name, "");
    if (a->dist_ranks && !a->dist_folder)
        return wrong("%s takes --dist-rank only with --dist-folder: MPI knows the ranks itself%s", c->name, "");
    return 0;
}

static bool is_taken(const Command *c, int option) {
    return options_find(&amprun_tool, option)->commands >> (c - commands) & 1;
}

/* Who the other ranks are, before all else: they have to hear of what is wrong.  Options are read again after it. */
static int read_ranks(Args *a, const Command *c, int argc, char **argv, const struct option *long_options) {
    const uint64_t of_ranks =
        BIT(O_DIST) | BIT(O_REDUCE) | BIT(O_DIST_TIMEOUT) | BIT(O_DIST_LIBRARY) | BIT(O_DIST_FOLDER) | BIT(O_DIST_RANK);
    int failed = 0;
    for (int option; (option = getopt_long(argc, argv, "-:hv", long_options, NULL)) != -1;) /* "-": words stay */
        if (option >= O_BATCH && option < O_END && (of_ranks & BIT(option)) && is_taken(c, option))
            failed |= take(a, c, option, argv);
    optind = 0; /* getopt begins anew */
    return failed;
}

/* 0: go on; 1: done; 2: wrong */
static int read_options(Args *a, const Command *c, int argc, char **argv) {
    uint64_t seen = 0;
    struct option long_options[OPTIONS_MOST];
    options_long(&amprun_tool, long_options);
    const int unclear = read_ranks(a, c, argc, argv, long_options);
    if (unclear) return unclear;
    for (int option; (option = getopt_long(argc, argv, ":hv", long_options, NULL)) != -1;) {
        if (option == 'v') option = O_VERBOSE;
        if (option == '?' || option == ':') return refuse_option(option, argv);
        if (option == 'h' || option >= O_DESCRIBE) return print_about(c->name, option, optarg);
        if (!is_taken(c, option)) return wrong("%s does not take --%s", c->name, option_name(option));
        seen |= BIT(option);
        int failed = take(a, c, option, argv);
        if (failed) return failed;
    }
    for (int option = O_BATCH; option < O_END; option++)
        if ((c->needs & BIT(option)) && !(seen & BIT(option)) && !a->stats_log)
            return wrong("%s needs --%s", c->name, option_name(option));
    if (a->epochs && a->steps) return wrong("%s takes --epochs or --steps, not both%s", c->name, "");
    if (c->run == command_step && !a->weights && !a->resume)
        return wrong("%s needs --weights or --resume%s", c->name, "");
    if (a->resume && a->weights)
        return wrong("%s takes --weights or --resume, not both: a checkpoint holds the parameters%s", c->name, "");
    uint64_t rules = seen & (BIT(O_IGNORE) | BIT(O_RENAME) | BIT(O_TRANSPOSE) | BIT(O_FRESH));
    if (rules && !a->weights && !a->save_like)
        return wrong("%s takes --ignore, --rename, --transpose and --fresh with --weights or --save-like%s", c->name,
                     "");
    if (a->save_like && !a->save && !a->best_file)
        return wrong("%s takes --save-like only with --save or --save-best%s", c->name, "");
    if ((a->every_steps || a->every_seconds > 0) && !a->checkpoint)
        return wrong("%s takes --checkpoint-every only with --checkpoint%s", c->name, "");
    if (a->profile && !strcmp(a->profile, "-"))
        return wrong("%s --profile %s: a trace is no text; name a file", c->name, "-");
    if (a->profile && a->stats)
        return wrong("%s takes --profile or --stats, not both: counting would take the time%s", c->name, "");
    if (a->stats && a->device && !strcmp(a->device, "null"))
        return wrong("%s --stats: device null computes nothing to count; choose cpu or cuda%s", c->name, "");
    if (a->eval_data && a->eval_split > 0)
        return wrong("%s takes --eval-data or --eval-split, not both%s", c->name, "");
    if (a->roofline && !a->batch)
        return wrong("%s takes --roofline only with --batch: how many samples the program is given%s", c->name, "");
    if (a->program && !a->roofline && !a->kernels && !a->timeline)
        return wrong("%s takes --program only with --roofline, --kernels or --timeline%s", c->name, "");
    const int failed = check_dist(a, c);
    return failed ? failed : check_memory_options(a, c);
}

/* 0: go on; 1: done; 2: wrong */
static int read_arguments(Args *a, const Command *c, int argc, char **argv) {
    int failed = read_options(a, c, argc, argv);
    if (failed) return failed;
    if (optind == argc && (c->run == command_doctor || a->stats_log)) return 0;
    if (optind == argc) return wrong("%s: no %s was given", c->name, c->run == command_schema ? "table" : "model");
    a->model = argv[optind++];
    return optind < argc ? wrong("%s: %s is one argument too many", c->name, argv[optind]) : 0;
}

/* With --verbose, how fast products are here; a session that cannot be made says so itself. */
static void say_rates(const Args *a) {
    Peaks peaks;
    amp_error err = {0};
    if (!strcmp(run_target(a), "cpu") && !peaks_of_products(a, &peaks, &err)) report_text("cpu: %s", peaks.source);
}

/* What was printed may not have arrived. */
static int run_command(const Command *c, const Args *a) {
    if (a->verbose) say_rates(a);
    int failed = c->run(a);
    return standard_streams_flush("amprun") ? 1 : failed;
}

int main(int argc, char **argv) {
    Args a = {.scale = -1};
    standard_streams_open();
    if (argc < 2) return wrong("no command was given%s%s", "", "");
    if (*argv[1] == '-') { /* --help, --version, --describe; no other option comes first */
        struct option about[OPTIONS_MOST];
        options_long(&amprun_tool, about);
        int option = getopt_long(argc, argv, ":h", about, NULL);
        if (option == 'h' || (option >= O_DESCRIBE && option < O_END))
            return print_about(NULL, option, optarg) == 1 ? standard_streams_flush("amprun") : 2;
        return wrong("there is no command %s%s", argv[1], "");
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name)) continue;
        argv[1] = argv[0];
        int failed = read_arguments(&a, &commands[i], argc - 1, argv + 1);
        if (failed) return failed == 1 ? 0 : ranks_refuse(&a, failed);
        return run_command(&commands[i], &a);
    }
    return wrong("there is no command %s%s", argv[1], "");
}
