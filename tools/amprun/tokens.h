/* tokens.h: one long text of tokens, cut into windows: the samples of language models.
 *
 *   tokens:FILE[,type=u8|u16|u32][,held=P]
 *
 * The file holds nothing but tokens: bytes, or ids of 16 or 32 bits, little-endian.  Where the model's input takes T
 * of them, a sample is a window of T + 1: its first T go to the input, its last T to the train input.
 *
 * The last part |held| (0.1) is what is evaluated, in windows one after the other.  What is before it is trained: an
 * epoch begins at one of the first tokens, which is drawn, cuts the text into windows from there on, and takes them
 * in the order of shuffle.  So each token but a few at the ends is predicted once an epoch, and after other tokens in
 * each.
 */
#ifndef AMP_TOOLS_TOKENS_H
#define AMP_TOOLS_TOKENS_H

#include "tools/amprun/data.h"

#ifdef __cplusplus
extern "C" {
#endif

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
