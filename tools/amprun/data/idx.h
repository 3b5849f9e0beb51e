/* idx.h: IDX files of unsigned bytes, the format of MNIST (http://yann.lecun.com/exdb/mnist/). */
#ifndef AMP_TOOLS_IDX_H
#define AMP_TOOLS_IDX_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { IDX_MAX_RANK = 4 };

typedef struct IdxArray {
    int rank;
    int64_t dims[IDX_MAX_RANK];
    unsigned char *data; /* free() */
} IdxArray;

/* |path| without ".gz"; either is taken, the plain one first.  Reports and returns 1 on failure. */
int idx_read(const char *path, IdxArray *out);

#ifdef __cplusplus
}
#endif
#endif
