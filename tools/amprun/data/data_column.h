/* data_column.h: what the kinds of data share, for their files: columns, the words of --data, and what reads them. */
#ifndef AMP_TOOLS_DATA_COLUMN_H
#define AMP_TOOLS_DATA_COLUMN_H

#include <stdbool.h>

#include "base/file.h"
#include "tools/amprun/data/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills order[0 .. count) with a permutation, a function of (seed, epoch) alone (Fisher and Yates, drawn from
 * Philox). */
void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch);
/* Permutes what order[from .. to) holds. */
void shuffle_part(int64_t *order, int64_t from, int64_t to, uint64_t seed, int64_t epoch);

bool column_is_float(amp_dtype t);
/* Numbers of one sample; dims[0] counts samples. */
int64_t column_elements(const amp_tensor_info *info);

/* The data set's next column, empty, of |samples| samples.  Reports and returns 1 where its dtype is not fed from
 * files; |from| names the file. */
int column_new(Dataset *d, const amp_tensor_info *info, int64_t samples, const char *from);
/* Memory for all samples, to be filled. */
int column_allocate(const Dataset *d, Column *c, const char *from);
/* Whether a float input holds it as a finite number. */
bool column_reaches(amp_dtype t, double v);
/* Stores a number as the column's dtype; false where it does not fit. */
bool column_store(Column *c, int64_t at, double v);

/* ---- data_arrays.c: samples from files of arrays: idx:DIR and safetensors:FILE ----------------------------------- */

/* data_read of what follows "idx:" and "safetensors:". */
int arrays_read_idx(Dataset *d, const char *folder, Part part, const DataInputs *inputs);
int arrays_read_tensors(Dataset *d, const char *path, const DataInputs *inputs);

/* ---- lengths.c: samples of different lengths, padded in the arrays of a batch ------------------------------------ */

/* A column whose shape has T gets its dimensions in the file, |dims| of |rank|, and its padding: the number that a loss
 * ignores, else 0.  Reports and returns 1 if they do not fit the samples' lengths, or padding would count as labels. */
int lengths_take_column(const Dataset *d, Column *c, const DataInputs *inputs, int input, const int64_t *dims,
                        int32_t rank, const char *from);
/* The padding alone. */
int lengths_take_padding(Column *c, const DataInputs *inputs, int input, const char *from);
/* Whether an input's shape has T. */
bool lengths_concern(const DataInputs *inputs, int input);
/* |count| times the padding of |c|; returns its end. */
char *lengths_pad(const Column *c, int64_t count, char *to);
/* data_order of such samples: the longest first, those that have the same T in a batch shuffled. */
void lengths_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order);

/* ---- data_spec.c: the words of --data: KIND:FILE[,OPTION=VALUE] -------------------------------------------------- */

enum { SPEC_OPTIONS = 8 };

typedef struct DataSpec {
    const char *spec;         /* as it was given */
    char text[AMP_FILE_PATH]; /* what follows the kind; cut into the parts below */
    const char *path;
    const char *value[SPEC_OPTIONS]; /* by |keys|; NULL: not given */
} DataSpec;

/* Of a spec that begins with |kind| ("tokens:"), which takes the options |keys| (ends with NULL).  A comma belongs to
 * the file's name where no option follows it, or where there is a file of such a name.  Reports and returns 1 on
 * failure. */
int spec_parse(DataSpec *s, const char *spec, const char *kind, const char *const *keys);
/* The same without a report; false on failure. */
bool spec_read(DataSpec *s, const char *spec, const char *kind, const char *const *keys);

/* held=P: a part below 1, or a whole number of samples; 0: none.  Reports and returns 1 where it is neither. */
int spec_held(const char *spec, const char *value, double *out);

/* ---- tokens.c ---------------------------------------------------------------------------------------------------- */

/* One long text of tokens, cut into windows: the samples of language models.
 *
 *   tokens:FILE[,type=u8|u16|u32][,held=P][,split=ID]
 *
 * The file holds nothing but tokens: bytes, or ids of 16 or 32 bits, little-endian.  Where the model's input takes T
 * of them, a sample is a window of T + 1: its first T go to the input, its last T to the train input.
 *
 * The last part |held| (0.1) is what is evaluated, in windows one after the other.  What is before it is trained: an
 * epoch begins at one of the first tokens, which is drawn, cuts the text into windows from there on, and takes them
 * in the order of shuffle.  So each token but a few at the ends is predicted once an epoch, and after other tokens in
 * each.
 */

/* The token at |at| of a file. */
uint32_t token_at(const TokenText *text, int64_t at);

/* ---- texts.c: tokens:FILE,split=ID: the texts between separators ------------------------------------------------- */

/* The file is texts, of one token or more each, with the token ID after each or between them.  A sample has the
 * separator and then the text to read, the text and then the separator to predict; a text that is longer than the
 * largest T is several samples, which go on where the one before ended.  The last texts are held out. */
int texts_read(Dataset *d, const char *path, const char *separator, Part part, double held);
void texts_gather(const Dataset *d, const int64_t *index, amp_sizes sizes, void *const *batch);

/* ---- tokens.c ---------------------------------------------------------------------------------------------------- */

/* data_read of such a spec. */
int tokens_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs);
/* The file of |spec|. */
bool tokens_file(const char *spec, char *path, size_t size);

/* Windows by their first tokens, into the arrays of a batch. */
void tokens_gather(const Dataset *d, const int64_t *index, int64_t n, void *const *batch);
/* A permutation of 0 .. count - 1 becomes the first tokens of an epoch's windows. */
void tokens_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order);

#ifdef __cplusplus
}
#endif
#endif
