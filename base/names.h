/* names.h: words that the compiler and the runtime share: results, programs, scalar states and initialisers by kind
 * (the lists of names.def), and the precisions that a user can ask for.  Element types are public: amp/base.h. */
#ifndef AMP_BASE_NAMES_H
#define AMP_BASE_NAMES_H

#include <stdbool.h>

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ResultKind {
    RESULT_MODEL, /* the model's own: every name that is no other's */
#define RESULT(kind, ...) RESULT_##kind,
#define SOURCE_RESULT(kind, ...) RESULT_##kind,
#include "base/names.def"
    RESULT_KINDS
} ResultKind;

typedef enum ProgramKind {
    PROGRAM_OTHER, /* a function that is no program: of a test, of a person's IR */
#define PROGRAM(kind, ...) PROGRAM_##kind,
#define SOURCE_PROGRAM(kind, ...) PROGRAM_##kind,
#include "base/names.def"
    PROGRAM_KINDS
} ProgramKind;

typedef enum CounterKind {
    COUNTER_NONE,
#define COUNTER(kind, ...) COUNTER_##kind,
#include "base/names.def"
    COUNTER_KINDS
} CounterKind;

/* A model's programs are of the kinds 1 to MODEL_PROGRAM_KINDS - 1. */
enum {
    MODEL_PROGRAM_KINDS = 1
#define PROGRAM(kind, ...) +1
#include "base/names.def"
};

enum { NO_BLOCK = -1 };

/* The counter "learning_rate" where a schedule gives the rate: any negative number would do. */
#define AMP_RATE_OF_SCHEDULE (-1.0)

/* The slot of the average of a parameter's values, which `ema = ...` of a train block asks for. */
#define AMP_SLOT_EMA "ema"

typedef struct ResultName {
    ResultKind kind;
    int32_t block;  /* of "loss.0": 0; NO_BLOCK: of all, or the kind has none */
    const char *of; /* of "metric.acc": "acc", of "loss.0": "0"; else NULL */
} ResultName;

typedef struct CounterName {
    CounterKind kind;
    int32_t block; /* as in ResultName */
} CounterName;

typedef enum InitialiserKind {
#define INITIALISER(name, ...) INIT_##name,
#include "base/names.def"
    INITIALISER_KINDS
} InitialiserKind;

typedef struct Initialiser {
    const char *name, *args[2]; /* the language's names, in order; NULL past the last */
    uint32_t rank_min;          /* 2: it depends on the fans */
    uint32_t args_min, args_max;
} Initialiser;
extern const Initialiser amp_initialisers[INITIALISER_KINDS];
const Initialiser *amp_initialiser(const char *name); /* NULL when there is none */

/* |of| points into |name|. */
ResultName amp_result_name(const char *name);
ProgramKind amp_program_kind(const char *name);
CounterName amp_counter_name(const char *name);

/* The kind's word: "loss", "train_step", "step"; NULL for kind 0. */
const char *amp_result_word(ResultKind kind);
const char *amp_program_word(ProgramKind kind);
const char *amp_counter_word(CounterKind kind);

/* The other way round, in the arena: "loss.0" for a block, "metric.acc" where |of| is "acc", "loss" for neither. */
const char *amp_result_text(Arena *a, ResultKind kind, int32_t block, const char *of);
const char *amp_counter_text(Arena *a, CounterKind kind, int32_t block);

/* ---- precisions: what a user can ask for, and the type that each computes in ------------------------------------- */

/* Full precision: the word when nothing is asked for, and the only one that evaluation may use instead of the
 * model's. */
#define AMP_FULL_PRECISION "fp32"

typedef struct amp_precision {
    const char *word; /* "fp16": in a model, on the command line, in reports */
    amp_dtype low;    /* AMP_DT_F16: the `low` of its policies */
} amp_precision;

enum { AMP_PRECISION_COUNT = 4 };
extern const amp_precision amp_precisions[AMP_PRECISION_COUNT];

/* NULL: there is no such word. */
const amp_precision *amp_precision_find(const char *word);
/* "fp16" for AMP_DT_F16; "fp32" for a type that no precision has as its low type. */
const char *amp_precision_word(amp_dtype low);
/* Whether |name| ("f16") is the low type of some precision; |low| (may be NULL) is set if so. */
bool amp_low_type_of(const char *name, amp_dtype *low);

#ifdef __cplusplus
}
#endif

#endif
