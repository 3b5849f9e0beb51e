/* safetensors_sums.h: sums in the metadata of a safetensors file, by which damage is noticed.
 *
 *   amp.xxh64/NAME  of tensor NAME: XXH64 of its type and shape as a line of text, "F32 10 40\n", and of its data
 *   amp.xxh64       of every other entry whose key begins with "amp.", sums of tensors too: XXH64 of "KEY\0VALUE\0",
 *                   added up modulo 2^64
 *
 * as 16 hexadecimal digits; all or none are there.  They say nothing of where a tensor's data is, nor of what others
 * have put into the metadata: so a file that another program writes again with its metadata is still sound.
 */
#ifndef AMP_BASE_SAFETENSORS_SUMS_H
#define AMP_BASE_SAFETENSORS_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/safetensors/safetensors.h"

#define AMP_SUM_KEY "amp.xxh64"
#define AMP_SUM_OF_TENSOR AMP_SUM_KEY "/"

enum { AMP_SUM_TEXT = 17 };
const char *amp_sum_write(char out[AMP_SUM_TEXT], uint64_t sum);
bool amp_sum_read(const char *text, uint64_t *sum);

/* Begins the sum of a tensor, to which its data is added; |dtype_name| as the file has it. */
void amp_tensor_sum_begin(amp_xxh64 *sum, const char *dtype_name, const amp_tensor_view *tensor);

/* What an entry adds to the sum of the metadata; 0: nothing.  Invalid UTF-8 counts as what JSON has in its place. */
uint64_t amp_metadata_sum(const char *key, const char *value);

#endif
