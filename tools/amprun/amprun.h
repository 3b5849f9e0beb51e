/* amprun.h: what the commands of amprun share. */
#ifndef AMP_TOOLS_AMPRUN_H
#define AMP_TOOLS_AMPRUN_H

#include <stdbool.h>
#include <stdio.h>

#include "amp/amp.h"
#include "amp/cpu.h"
#include "amp/cuda.h"
#include "amp/inspect.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --ignore, --rename, --transpose, --fresh: lists that end with NULL. */
enum { RULES_MOST = 64 };
typedef struct WeightRules {
    const char *ignore[RULES_MOST + 1], *rename[RULES_MOST + 1], *transpose[RULES_MOST + 1], *fresh[RULES_MOST + 1];
} WeightRules;

enum { SIZES_MOST = 64 };

/* What is refused unless --allow names it. */
enum { ALLOW_NAN = 1, ALLOW_OTHER_BATCH = 2, ALLOW_OTHER_DATA = 4, ALLOW_OTHER_SEED = 8, ALLOW_ALONE = 16 };

typedef struct Args {
    const char *model; /* of schema: the table; of doctor it may be NULL */
    const char *data, *weights, *inputs, *outputs, *save, *checkpoint, *sends_checkpoint, *resume, *log, *device,
        *precision;
    const char *grads, *values_glob, *values_file;
    const char *choices_out; /* tune -o */
    const char *eval_data, *best_metric, *best_file, *save_like, *tensorboard, *profile;
    WeightRules rules;
    int64_t epochs, steps, batch, threads, patience, stats;
    int64_t sizes[SIZES_MOST]; /* tune: --batch N,..; |batch| is the largest */
    int size_count;
    int32_t ranks;          /* info; 0: not given */
    int64_t every_steps;    /* --checkpoint-every; 0: not in steps */
    int64_t length, tokens; /* 0: not given */
    double every_seconds, eval_split;
    amp_cpu_options cpu;
    amp_cuda_options cuda;
    amp_inspect_options inspect;
    bool numbers_device; /* --device cuda:N: of several ranks all take that one */
    uint64_t seed;
    double scale;                   /* < 0: not given */
    const char *roofline, *program; /* info */
    const char *against;
    const char *stats_log;           /* suggest: --stats names a log */
    uint64_t memory;                 /* bytes; 0: not given */
    const char *dist, *dist_library; /* --dist: the engine; NULL: alone */
    const char *dist_folder;         /* where ranks meet without MPI; NULL: not given */
    int32_t dist_rank, dist_ranks;   /* --dist-rank; 0, 0: not given */
    double dist_timeout;             /* 0: not given */
    bool ordered;                    /* --reduce ordered */
    struct amp_comm *comm;           /* the ranks to train with; not of the command line */
    bool kernels, trace, timeline, batch_auto, tokens_auto, ema;
    unsigned allowed; /* of ALLOW_... */
    bool quiet, force, seed_given, as_json, verbose;
} Args;

extern const struct Tool amprun_tool; /* commands and options: options.h */

enum { DEFAULT_BATCH = 128, RANKS_MOST = 1 << 20 };

/* Every command: 0 is success, 1 a failure that was reported, 2 wrong arguments. */
int command_info(const Args *a);
int command_train(const Args *a);
int command_eval(const Args *a);
int command_infer(const Args *a);
int command_step(const Args *a);
int command_schema(const Args *a);
int command_suggest(const Args *a);
int command_watch(const Args *a);
int command_doctor(const Args *a);
int command_tune(const Args *a);

/* Prints "amprun: MESSAGE" and returns 1. */
int report(const amp_error *err);
/* From here on messages begin with the rank; -1: not. */
void report_as_rank(int32_t rank);
int report_text(const char *format, ...) AMP_PRINTF(1, 2);
/* Whether the library's warnings are told without --verbose. */
void report_warnings(bool always);
/* The text that was reported last; "": none. */
const char *report_last(void);

/* A model with its params and one session, as the arguments say. */
typedef struct Run {
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_memory_info memory; /* of run_plan */
    amp_model_info info;
    int64_t length; /* T of each call; 0: the model has none */
} Run;

static inline amp_sizes run_sizes(const Run *r, int64_t n) { return (amp_sizes){n, r->length}; }

/* Loads the model, makes or loads the params, creates the session; |capacity| samples.  Reports and returns 1 on
 * failure.  In either case run_close frees everything. */
int run_open(Run *r, const Args *a, int64_t capacity, const char *program);
/* The first part of it: the model alone. */
int run_load(Run *r, const Args *a);
/* The second one, with params that are zeros. */
int run_open_empty(Run *r, const Args *a, int64_t capacity);
/* They point into |a|.  |program|: of amp_session_options. */
amp_session_options run_options(const Args *a, int64_t capacity, const char *program);
/* Of a session beside another one, or after it, that takes steps of a training by |seed|: it repeats no warnings. */
amp_session_options run_options_again(const Args *a, int64_t capacity, uint64_t seed);
/* What a model is compiled for to run on the device of --device: "cuda" or "cpu". */
const char *run_target(const Args *a);
/* Loads the model alone, and plans what a session that trains would take. */
int run_plan(Run *r, const Args *a, int64_t capacity);
void run_close(Run *r);

/* |items|, of |size| bytes each, with room for one more than |count|; NULL: memory ran out, and |items| stays. */
void *with_room(void *items, int64_t count, int64_t *room, size_t size);

/* "text", escaped; bytes that are no UTF-8 become U+FFFD. */
void json_text(FILE *to, const char *text);

/* "key": number, with nine digits, enough for any f32.  JSON has no infinities: they and NaN become strings. */
void json_number(FILE *to, const char *key, double value);
void json_more(void *to, const char *key, double value); /* the same after a comma; |to|: a FILE */

/* Puts each loss as "PREFIXloss.NAME", each metric as "PREFIXNAME".  json_more is such a function, to a FILE. */
typedef void MeasurePutter(void *to, const char *name, double value);
void each_loss(const Run *run, const char *prefix, const double *losses, MeasurePutter *put, void *to);
void each_metric(const Run *run, const char *prefix, const double *metrics, MeasurePutter *put, void *to);

/* "own", or "cublasLt 21": who makes the products of a launch. */
void product_by(const amp_product_choice *c, char *text, size_t size);

/* Ends the object that |w| has begun and prints it; frees |w|.  Reports and returns 1 on failure. */
int json_print(amp_json_writer *w);

const char *kernel_kind_name(uint32_t kind); /* "product", of an AMP_KERNEL_* */

/* Named f32 (or integer) arrays, collected and written as one safetensors file. */
typedef struct TensorsOut {
    struct amp_tensor_view *view;
    struct amp_metadata *metadata;
    int32_t count, metadata_count;
} TensorsOut;

/* A zeroed array for the tensor, to be filled; owned by |out|.  The dtype of floats in the file is F32.  |note| (may be
 * NULL) becomes metadata under the tensor's name.  NULL when memory is out (reported). */
void *tensors_out_add(TensorsOut *out, const char *name, const amp_tensor_info *info, const char *note);
size_t tensor_bytes(const amp_tensor_info *info);         /* as written */
int tensors_out_write(TensorsOut *out, const char *path); /* reports and returns 1 on failure */
void tensors_out_free(TensorsOut *out);

#ifdef __cplusplus
}
#endif

#endif
