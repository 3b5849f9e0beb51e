/* data.h: the samples that a model is trained, evaluated or run on.
 *
 *   idx:DIR            the files of MNIST and Fashion-MNIST, gzip or plain: train-images-idx3-ubyte[.gz],
 *                      train-labels-idx1-ubyte, t10k-...  Images go to the model's only input (float inputs get
 *                      pixel / 255), labels to the only train input.
 *   safetensors:FILE   arrays named as the inputs, whose first dimension is the sample.
 */
#ifndef AMP_TOOLS_DATA_H
#define AMP_TOOLS_DATA_H

#include "tools/amprun/amprun.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DATA_MAX_INPUTS = 16 };

/* What is to be fed: the first |count| inputs of a model, for one sample each (dims[0] is not looked at). */
typedef struct DataInputs {
    const char *model;
    int count, model_inputs, train_inputs; /* the last two of the whole model */
    amp_tensor_info input[DATA_MAX_INPUTS];
} DataInputs;

typedef struct Column { /* all samples of one input, converted to what the model reads */
    const char *name;   /* of |inputs|; read while the data is */
    amp_dtype dtype;
    int64_t elements; /* per sample */
    size_t sample_bytes;
    const char *data; /* any alignment */
    char *owned;      /* the same, or NULL: it is the file's */
} Column;

typedef struct Dataset {
    char *spec; /* for messages */
    int64_t count;
    int64_t *rows; /* where the samples are, of a part that was split off; NULL: all, in order */
    bool borrowed; /* the columns are another data set's */
    int columns;
    Column column[DATA_MAX_INPUTS];
    void *map; /* the file: arrays that need no conversion are read where they are, not copied; NULL: none is mapped */
    size_t map_size;
} Dataset;

typedef enum Part { PART_TRAIN, PART_TEST } Part;

/* Reads the part of |spec| that feeds |inputs|.  A safetensors file is its own only part.
 * Reports and returns 1 on failure; in either case data_close frees everything. */
int data_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs);
/* data_read for the first |inputs| inputs of a model. */
int data_open(Dataset *d, const char *spec, Part part, const amp_model *model, int inputs);
void data_close(Dataset *d);

/* Moves |held| of the samples, drawn the same way in every run, into a data set that lives no longer than |d|.  Reports
 * and returns 1 on failure. */
int data_split(Dataset *d, int64_t held, Dataset *out);

/* The files of |spec| that exist, one after the other from |index| 0; false past the end. */
bool data_file(const char *spec, int index, char *path, size_t size);

/* Copies |n| samples, by their indexes, into one batch array per input; |batch| comes from data_batch_new. */
void *const *data_batch_new(const Dataset *d, int64_t n); /* NULL when memory is out */
void data_batch_free(const Dataset *d, void *const *batch);
/* Reports and returns 1 where the files have shrunk since they were opened. */
int data_gather(const Dataset *d, const int64_t *index, int64_t n, void *const *batch);
/* Names the first sample with a NaN or an infinity, if there is one; else |text| stays as it is.  Reads all data. */
void data_describe_infinite(const Dataset *d, void *const *batch, char *text, size_t size);
/* Reports an error of a call on such a batch, with its "sample K" as the one of the file; returns 1. */
int data_report(const Dataset *d, const int64_t *index, int64_t n, const amp_error *err);

/* The order in which samples are drawn, a function of (seed, epoch) alone: fills order[0 .. count) with a permutation
 * (Fisher and Yates, drawn from Philox). */
void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch);

#ifdef __cplusplus
}
#endif
#endif
