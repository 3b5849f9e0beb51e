/* tensor_cores.h: which products of a step run on tensor cores, and which of them copy their rows in pieces because
 * their sizes are not multiples of 16 bytes, in the kernels for CUDA.  Used by lint's warnings and explain's lines. */
#ifndef AMP_COMPILER_TENSOR_CORES_H
#define AMP_COMPILER_TENSOR_CORES_H

#include "compiler/compile_session.h"

typedef struct TensorCores {
    const Module *cuda;   /* after plan, for CUDA; NULL: some op has no code for it */
    CodegenCopies copies; /* of its products, where |is_known| */
    bool is_known;
} TensorCores;

/* Of a copy of |graph|, a module after simplify; |pad|: as `pad = true` would have it.  Ops without code for CUDA are
 * no error: nothing is known then. */
amp_status tensor_cores_of(Session *s, const Module *graph, bool pad, TensorCores *out, amp_error *err);
/* Of a module that is planned for CUDA already. */
void tensor_cores_of_planned(const Module *cuda, TensorCores *out);

/* A size of a product that is no multiple of what a copy takes. */
typedef struct NarrowSize {
    Pos pos;
    const char *path; /* of the op of the forward pass */
    int64_t run, padded;
    int element_bytes, bytes;
    int products, last; /* how many are narrow so; the number of the last one */
    bool is_head;       /* of attention, whose heads are multiplied as wider ones */
    bool is_worth;      /* padding takes at most a quarter more: it brings more than it costs */
} NarrowSize;
typedef VEC(NarrowSize) NarrowSizes;

/* Each once for an op, in the order of the copies; of the functions |funcs|, NULL after the last. */
NarrowSizes tensor_cores_narrow(Arena *a, const Func *const *funcs, const CodegenCopies *copies);
bool tensor_cores_copy_is_narrow(const CodegenCopy *c);
bool tensor_cores_is_of(const Func *const *funcs, const CodegenCopy *c);
/* "fc1.linear" of "fc1.linear.grad.weight"; "" of NULL. */
const char *tensor_cores_forward_path(Arena *a, const char *path);

/* What is slow, and what to do about it; |m| has the consts of the model. */
const char *tensor_cores_problem(Arena *a, const NarrowSize *n);
const char *tensor_cores_remedy(Arena *a, const Module *m, const NarrowSize *n);

#endif
