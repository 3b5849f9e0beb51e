/* idx_counted.h: the IDX reader of amprun, with its memory counted and its message kept. */
#ifndef AMP_TESTS_ROBUSTNESS_IDX_COUNTED_H
#define AMP_TESTS_ROBUSTNESS_IDX_COUNTED_H

#include <stdarg.h>
#include <stddef.h>

#include "tools/amprun/data/idx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL, or what the reader reports.  |*most| is the size that its array had at most. */
const char *idx_counted(const char *path, struct IdxArray *out, size_t *most);

#ifdef __cplusplus
}
#endif
#endif
