/* target.h: the targets that models are compiled for, as data: what the passes from fuse on and code generation ask
 * about one.
 *
 * A new target is a Target and a row of the table in targets.c; how it writes kernels is codegen/'s.
 * ir/ knows no target: a module holds the name of the one that it is fused, laid out and planned for.
 */
#ifndef AMP_TARGETS_TARGET_H
#define AMP_TARGETS_TARGET_H

#include "ir/operands.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Target {
    const char *name;    /* "cpu": of --target and of Module.target */
    bool has_tiles;      /* products read operands in tiles, which their makers write; false: everything is row-major */
    bool rounds_on_load; /* products round an f32 input to a narrower type as they load it */
    bool reuses_operands;  /* a result may take the memory of an operand of its kernel */
    bool reads_strides;    /* batched products are products too, which read their operands at strides (ir/strided.h) */
    bool rounds_attention; /* attention stores its results rounded where casts read them */
    bool keeps_dropout;    /* attention stores which scores stay, and its gradient reads it */
    int pitch_unit;        /* rows begin at multiples of this number of elements (target_pitch); 0: dense */
    bool keeps_images;  /* an image that convolutions read is made of the input once a step; else wherever it is read */
    bool carries_moves; /* ops between a permute and its inverse work in the order before */
    int sum_blocks;     /* sums with few results are split until they have this number of blocks; 0: none is */
    bool repeats_columns; /* a sum down one row a sample may go over the rows again, with what it has reduced */
    bool batches_updates; /* one kernel updates all parameters: faster than an update at the end of many others */
    bool joins_kernels;   /* all kernels of a function of small matrices are one launch */
    /* Bytes that ranks send at once, in the order of kernels; 0: as the pass distribute has it. */
    int64_t largest_bucket;
    /* Whether attention of q, k and v in |factors| is a kernel that never stores the scores; false: products and a
     * softmax. */
    bool (*attends)(Dtype factors);
    /* The form in which a product reads operand |i| (0: A, 1: B): the tables of docs/design/kernels.md. */
    Form (*product_form)(const Func *f, const Op *product, int i);
} Target;

extern const Target target_cpu, target_cuda;

enum { TARGET_COUNT = 2 };
/* The first is the one of a module that names none. */
extern const Target *const targets[TARGET_COUNT];

/* The form of target_cpu that adds up products as tensor cores do (target_follows_device). */
extern const Target target_cpu_as_device;

/* By name; NULL: the first.  NULL where there is none of that name. */
const Target *target_find(const char *name);
/* |t| (NULL: the first) for the sums of |m|. */
const Target *target_with_sums(const Target *t, const Module *m);
/* Of a module whose target exists: passes_run has checked it. */
const Target *target_of(const Module *m);
/* From now on |m| is for |t|. */
void target_set(Module *m, const Target *t);
/* "cpu, cuda", for messages. */
const char *target_list(Arena *a);

/* The form in which the module's target reads operand |i| of a product. */
Form target_product_form(const Func *f, const Op *product, int i);
/* Whether |o| is a product that tensor cores add up, and the module's sums follow a device: then a function of the
 * model computes it (docs/design/sums.md). */
bool target_follows_device(const Func *f, const Op *o);
/* In how many parts |t| makes the product, side by side, where its sums are long and its results few; else 1. */
int64_t target_parts(const Target *t, const Func *f, const Op *o);
/* Whether |o| rounds an input, which products of the module's target do as they load it: where nothing else reads it
 * (passes/fuse/fuse.c), each product's kernel has its own. */
bool target_rounds_on_load(const Func *f, const Op *o);

typedef enum RowReader { READ_BY_ANY, READ_BY_TENSOR_CORES, READ_AS_PIXELS } RowReader;
/* Elements from row to row in memory of a matrix of |cols| columns, in kernels of |t|; 0: as many as columns.  Of one
 * module it is the same for all matrices of as many columns that have one, so that a kernel sees a single pitch. */
int64_t target_pitch(const Target *t, const Module *m, int64_t cols, RowReader by);

/* Whether a column kernel without segments, over |rows|, may read them again once it has reduced them: if there are
 * few rows for its blocks. */
bool target_repeats_columns(const Func *f, Dim rows);

/* The form in which attention reads operand |i| of attend or attend_grad. */
Form target_attention_form(const Func *f, const Op *o, int i);
/* Whether it reads that operand at strides. */
bool target_attention_strides(const Func *f, const Op *o, int i);

/* Whether |o|, in the kernel of a product or of attention, only says how its operand is read: a reshape, permute, slice
 * or expand before it, on a target that reads at strides. */
bool target_moves_on_load(const Func *f, const Op *o);

#ifdef __cplusplus
}
#endif

#endif
