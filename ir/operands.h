/* operands.h: what the operands of ops may be: the types that signatures allow at a level, and how core ops reach them:
 * in registers, at the place of the result's element, or in memory. */
#ifndef AMP_IR_OPERANDS_H
#define AMP_IR_OPERANDS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* GRAPH before lower, CORE from then on. */
int legal_level(Stage stage);
/* The signatures of an op at a level, as ops.def gives them; NULL where it may not appear. */
const char *legal_signatures(Opcode code, int level);
/* One of the op's signatures takes these operands and results. */
bool legal_types(const Func *f, const Op *o, int level);

/* ---- access ------------------------------------------------------------------------------------------------------ */

/* contract, batch_contract where it is packed, and conv, conv_data, conv_weight without groups: the runtime makes the
 * sums, tile by tile. */
bool ir_is_product(const Op *o);
/* An assign of some rows of a state. */
bool ir_is_row_assign(const Op *o);
/* conv, conv_data or conv_weight. */
bool ir_is_convolution(const Op *o);
/* All ranks make it together. */
bool ir_is_collective(const Op *o);

/* What kernels.def says of a kind. */
enum { APART = 1, LOADS = 2, RUNTIME = 4, BY_INPUT = 8 };
typedef struct KernelInfo {
    bool (*is_own)(const Op *o); /* NULL: no op has kernels of this kind alone */
    int traits;
} KernelInfo;
extern const KernelInfo ir_kernel_info[KERNEL_KINDS];
/* The kind that only kernels of |o| have; KERNEL_KINDS: it may be in others. */
KernelKind ir_own_kind(const Op *o);

/* Of an op that has a kernel of its own kind: what has the shape of its space. */
Val ir_own_space(const Op *o);

/* The gradient of batch_norm or batch_norm_eval, which reads and makes f32 but for x. */
bool ir_is_batch_norm_grad(const Op *o);
/* attend and attend_grad, which a kernel of their own computes tile by tile. */
bool ir_is_attention(const Op *o);
/* What they read, by name; -1: not this operand. */
typedef struct AttentionOperands {
    int dy, q, k, v, y, sums, mask, counters, bits; /* counters: the first of those that follow */
} AttentionOperands;
AttentionOperands ir_attention_operands(const Func *f, const Op *o);
/* Of attend_drop: words of a query's bits for |keys| keys. */
int64_t ir_dropout_words(int64_t keys);

/* A reshape that keeps rows x cols, an expand of what fits an elementwise op anyway: nothing moves. */
bool ir_is_view(const Func *f, const Op *o);

/* Reads operand |i| (0, 1: data) from memory, at other places than the result's element. */
bool ir_reads_memory(const Func *f, const Op *o, int i);

/* An expand of one row per |segment| rows of the result, [A.., 1.., C] to [A.., M.., C]: in a kernel that goes segment
 * by segment the operand is one number per column. */
bool ir_is_segment_expand(const Func *f, const Op *o, Dim segment);

/* Pooling over windows that do not overlap reads each element of its operand once at most: elementwise ops that only it
 * reads may stand in its kernel, and are computed where it reads them.  Such a value is inlined. */
bool ir_takes_inlined(const Func *f, const Op *o);

/* The value in memory that an operand is read from: |v| itself, or the value that it is a view or exact widening of. */
Val ir_memory_source(const Func *f, Val v);
/* Whether |o| is such a view or widening. */
bool ir_is_seen_through(const Func *f, const Op *o);

/* How a value is stored. */
typedef struct Form {
    Layout layout;
    Dtype storage;
} Form;

/* Rows of this number of columns or more may be longer in memory (passes/layout/pitch.c), and end within a vector. */
enum { LONG_ROW = 256 };

/* The geometry of conv*, and of window_*, where oc = c. */
typedef struct Windows {
    int64_t h, w, c, oh, ow, oc, kh, kw;
    int64_t stride[2], padding[2], dilation[2], groups;
} Windows;
Windows ir_windows(const Func *f, const Op *o);
/* Along an axis, the distance between taps that meet the same pixel before a convolution. */
int64_t ir_tap_step(const Windows *g, int axis);
/* Along an axis, how many pairs there are of such a pixel and a tap that meets it, edges of images aside. */
int64_t ir_meeting_taps(const Windows *g, int axis);

/* A sum over k elements in |parts| is over chunks of this many, the last of them fewer or none: whole steps of a
 * product's main loop.  So a part depends on k and their number alone. */
enum { PART_STEP = 64, PART_COUNT_MAX = 1024 };
int64_t ir_part_size(int64_t k, int64_t parts);
/* k, which an element of the result of a contract, batch_contract or convolution is a sum over. */
Dim ir_product_terms(const Func *f, const Op *o);
/* 1 where |o| has no parts. */
int64_t ir_parts(const Op *o);

/* The path of the graph op that a cast is of: that is lowered to it, or for which autocast has put it there.  NULL: of
 * none. */
const char *ir_cast_path(const Func *f, const Op *cast);

#ifdef __cplusplus
}
#endif

#endif
