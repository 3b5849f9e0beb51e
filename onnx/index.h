/* index.h: an index while it is made (index.c, index_uses.c). */
#ifndef AMP_ONNX_INDEX_H
#define AMP_ONNX_INDEX_H

#include "base/text.h"
#include "onnx/onnx.h"

typedef struct Indexer {
    const OnnxModel *model;
    OnnxIndex *index;
    Arena *arena;
    amp_error *err;
    VEC(OnnxGraphEntry) graphs;
} Indexer;

/* AMP_BAD_FILE: "m.onnx: WHERE: ...". */
amp_status onnx_index_fail(const Indexer *x, const char *where, const char *format, ...) AMP_PRINTF(3, 4);
const char *onnx_graph_text(const Indexer *x, int32_t graph);
/* The value |name| of |graph| itself, ONNX_NONE; *slot: where it is in the table, or would be. */
int32_t onnx_find_in(const OnnxIndex *index, int32_t graph, const char *name, uint32_t *slot);

/* Which values are read by whom; they must be there before. */
amp_status onnx_index_uses(Indexer *x);
/* Which functions are called by whom; none calls itself by way of others. */
amp_status onnx_index_calls(Indexer *x);

#endif
