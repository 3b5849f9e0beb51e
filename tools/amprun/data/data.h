/* data.h: the samples that a model is trained, evaluated or run on.
 *
 *   idx:DIR            the files of MNIST and Fashion-MNIST, gzip or plain: train-images-idx3-ubyte[.gz],
 *                      train-labels-idx1-ubyte, t10k-...  Images go to the model's only input (float inputs get
 *                      pixel / 255), labels to the only train input.
 *   safetensors:FILE   arrays named as the inputs, whose first dimension is the sample.
 *   tokens:FILE        windows of a text of tokens (tokens.c), or texts between separators (texts.c).
 *   csv:FILE           rows of a table (csv.h).
 */
#ifndef AMP_TOOLS_DATA_H
#define AMP_TOOLS_DATA_H

#include <stdbool.h>

#include "amp/base.h"
#include "base/file.h"
#include "tools/amprun/amprun.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mapped_file.c: data files that are read where they are, so that they take no memory of their own ------------ */

typedef struct MappedFile {
    const char *data; /* NULL: nothing is open */
    size_t size;
    void *map;  /* NULL: it could not be mapped (a pipe, an empty file), and was read */
    char *read; /* what was read */
} MappedFile;

/* In either case mapped_close frees everything. */
amp_status mapped_open(MappedFile *file, const char *path, amp_error *err);
void mapped_close(MappedFile *file);

/* Calls read(ctx), which may look at mapped files.  One that somebody cuts meanwhile ends in SIGBUS: here, and nowhere
 * else, that is an error of the file, and false.  By any thread. */
bool mapped_read(void (*read)(void *ctx), void *ctx);

/* ---- data.c ------------------------------------------------------------------------------------------------------ */

enum { DATA_MAX_INPUTS = 64 };

/* Of what spec and part leave open; zeros: nothing is said. */
typedef struct DataOptions {
    double held; /* --eval-split, for a spec that says itself what is held out; 0: as the spec says */
    bool whole;  /* where the spec does not say that something is held out, nothing is */
    bool all;    /* nothing is, whatever the spec says */
    bool tells;  /* on standard error, which columns of a table are not used, and why */
    const char *schema, *schema_name; /* of a table: what training derived (csv_schema.h), and where it is from */
} DataOptions;

/* What is to be fed: the first |count| inputs of a model, for one sample each (n = 1). */
typedef struct DataInputs {
    const char *model;
    int count, model_inputs, train_inputs;    /* the last two of the whole model */
    amp_tensor_info input[DATA_MAX_INPUTS];   /* at |length| ... */
    amp_tensor_info at_unit[DATA_MAX_INPUTS]; /* ... and at |unit| */
    int64_t length, unit;                     /* the largest T, and what each is a multiple of; 0: there is none */
    int64_t bound[DATA_MAX_INPUTS];   /* the smallest number that is no index of the input; 0: it takes any ... */
    int64_t ignored[DATA_MAX_INPUTS]; /* ... but for this one */
    DataOptions options;
} DataInputs;

typedef struct Column { /* all samples of one input, converted to what the model reads */
    const char *name;   /* of |inputs|; read while the data is */
    amp_dtype dtype;
    int64_t elements;    /* per sample, as |data| has them */
    size_t sample_bytes; /* in a batch, at the largest T */
    const char *data;    /* any alignment; NULL: windows of |tokens| */
    char *owned;         /* the same, or NULL: it is the file's */
    /* Of samples with lengths, for an input whose shape has T: */
    int32_t rank;
    int64_t dims[AMP_MAX_RANK];    /* of |data|; the first counts samples */
    int64_t of_unit[AMP_MAX_RANK]; /* what one unit of T takes of each; 0: it does not depend on T */
    int64_t padding;               /* what follows a sample's end */
} Column;

typedef struct TokenText { /* tokens.c */
    const char *data;
    int bytes;            /* of a token */
    int64_t first, count; /* tokens of this part */
    int64_t window;       /* that an input reads, the largest; 0: the samples are of another kind */
    int64_t *starts;      /* texts.c: of each sample; NULL: windows follow each other */
    int64_t separator;
} TokenText;

typedef struct Dataset {
    char *spec; /* for messages */
    int64_t count;
    bool has_test;        /* of a spec that says itself what is held out: something is */
    int64_t *rows;        /* where the samples are, of a part that was split off; NULL: all, in order */
    bool borrowed;        /* the columns are another data set's */
    int64_t length, unit; /* of DataInputs */
    int64_t *lengths;     /* of each sample, not rounded; NULL: all have |length| */
    int columns;
    Column column[DATA_MAX_INPUTS];
    TokenText tokens;
    struct CsvSource *csv; /* csv.h; NULL: no table */
    MappedFile file;       /* arrays that need no conversion are read where they are, not copied */
} Dataset;

typedef enum Part { PART_TRAIN, PART_TEST } Part;

/* Reads the part of |spec| that feeds |inputs|.  A safetensors file is its own only part.
 * Reports and returns 1 on failure; in either case data_close frees everything. */
int data_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs);
/* data_read for the first |inputs| inputs of a model; |options| may be NULL. */
int data_open(Dataset *d, const char *spec, Part part, const amp_model *model, amp_sizes sample, int inputs,
              const DataOptions *options);
void data_close(Dataset *d);

/* Whether |spec| says itself what is held out (DataOptions.held), so that data_split is not for it. */
bool data_splits_itself(const char *spec);
/* How many samples --eval-split |asked| holds out: a part, or a number of them. */
int64_t data_held_out(const Dataset *d, double asked);
/* Moves |held| of the samples, drawn the same way in every run, into a data set that lives no longer than |d|.  Reports
 * and returns 1 on failure. */
int data_split(Dataset *d, int64_t held, Dataset *out);

/* What was derived of a table, as text, for DataOptions.schema; NULL: the data are no table. */
const char *data_schema(const Dataset *d);
bool data_is_table(const char *spec);
/* Where |spec| is a table, reads the file that training left beside |weights|: its name, and what is in it, which the
 * caller frees; NULL: there is none.  Reports and returns 1 where it cannot be read. */
int data_find_schema(const char *spec, const char *weights, char name[AMP_FILE_PATH], char **text);

/* The files of |spec| that exist, one after the other from |index| 0; false past the end. */
bool data_file(const char *spec, int index, char *path, size_t size);

/* What the functions below take for samples: all samples of an epoch in the order in which they are drawn, a function
 * of (seed, epoch) alone; DATA_IN_ORDER: as they are in the file.  Of samples with lengths the longest come first. */
enum { DATA_IN_ORDER = -1 };
void data_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order);
/* The T of a batch that holds |sample|, at least: its length, rounded up to the unit. */
int64_t data_length(const Dataset *d, int64_t sample);

/* The first |length| of row |row| of |c|, as an array of length |t| has it; returns its end (lengths.c). */
char *lengths_copy(const Column *c, int64_t row, int64_t length, int64_t t, int64_t unit, char *to);

/* ---- cut.c: how the samples of an epoch become batches ----------------------------------------------------------- */

typedef struct Batch {
    int64_t from;    /* its first sample, in the order of data_order */
    amp_sizes sizes; /* of the call; t is the length of its longest sample */
} Batch;

/* They are the same in each epoch, but for which samples of one length they hold. */
typedef struct BatchList {
    int64_t count;
    Batch *at;
    bool by_length;
} BatchList;

typedef struct BatchLimits {
    int64_t n, tokens; /* at most, of a batch: samples; n * t, 0: any */
    int64_t least;     /* the last two batches share their samples where the last one had fewer */
} BatchLimits;

/* Reports and returns 1 on failure. */
int batch_list_cut(BatchList *b, const Dataset *d, const BatchLimits *limits);
void batch_list_free(BatchList *b);
/* Which batch is taken when: one after the other, but of samples with lengths shuffled. */
void batch_list_order(const BatchList *b, uint64_t seed, int64_t epoch, int64_t *order);

/* Copies |sizes.n| samples into one batch array per input; |batch| comes from data_batch_new. */
void *const *data_batch_new(const Dataset *d, int64_t n); /* at the largest T; NULL when memory is out */
void data_batch_free(const Dataset *d, void *const *batch);
/* AMP_IO where the files have shrunk since they were opened.  By any thread. */
amp_status data_fill(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch, amp_error *err);
/* The same; reports and returns 1. */
int data_gather(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch);
/* Where a sample is in its file, for people: "sample 77", or the line of a table. */
const char *data_place(const Dataset *d, int64_t index, char place[64]);
/* Names the first sample with a NaN or an infinity, if there is one; else |text| stays as it is.  Reads all data. */
void data_describe_infinite(const Dataset *d, void *const *batch, char *text, size_t size);
/* Reports an error of a call on such a batch, with its "sample K" as the one of the file; returns 1. */
int data_report(const Dataset *d, const int64_t *index, int64_t n, const amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
