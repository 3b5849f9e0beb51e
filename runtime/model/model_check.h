/* model_check.h: what the files of the model's check share. */
#ifndef AMP_RUNTIME_MODEL_MODEL_CHECK_H
#define AMP_RUNTIME_MODEL_MODEL_CHECK_H

#include <stdbool.h>

#include "base/error.h"
#include "runtime/model/model.h"

typedef struct amp_check {
    amp_model *m;
    const char *where;
    amp_error *err;
    const amp_program *program; /* being checked */
} amp_check;

#define AMP_CHECK_DIM_LIMIT ((int64_t)1 << 38)

/* "mlp.so: train_step: kernel k03: ...; compile the model again" */
amp_status amp_check_fail(const amp_check *check, const char *format, ...) AMP_PRINTF(2, 3);
/* Monomials in n and t that are equal at all of these are equal. */
enum { AMP_CHECK_POINTS = 3 };
static inline amp_sizes amp_check_point(const amp_check *c, int i) {
    const amp_sizes least = amp_model_least_sizes(c->m);
    return (amp_sizes){i == 1 ? 2 * least.n : least.n, i == 2 ? 2 * least.t : least.t};
}
/* And where sums of such are largest, or smallest. */
enum { AMP_CHECK_CORNERS = 6 };
static inline amp_sizes amp_check_corner(const amp_check *c, int i) {
    const amp_sizes least = amp_model_least_sizes(c->m);
    if (i < AMP_CHECK_POINTS) return amp_check_point(c, i);
    return (amp_sizes){i == 4 ? least.n : 1024 * least.n, i == 3 ? least.t : c->m->desc.length_most};
}

/* A dimension N / k makes every call's n a multiple of k. */
bool amp_check_dim(amp_check *check, const amp_model_dim *dim);

static inline bool amp_program_infers(const amp_program *p) {
    return p->kind == AMP_PROGRAM_INFER || p->kind == AMP_PROGRAM_INFER_FP32;
}

/* Kernels write it where its pointer is not NULL, and nothing reads it. */
static inline bool amp_buffer_is_optional(const amp_model_buffer *b) {
    return b->kind == AMP_BUFFER_WATCH || b->kind == AMP_BUFFER_LOOK;
}

static inline bool amp_check_index(int64_t i, int64_t count) { return i >= 0 && i < count; }

/* model_cuda.c: what a model for CUDA must fulfil besides. */
amp_status amp_check_cuda_buffer(const amp_check *check, const amp_model_buffer *buffer);
amp_status amp_check_cuda_kernel(amp_check *check, int32_t index);
amp_status amp_check_cuda(amp_check *check);
/* model_check_collectives.c */
bool amp_is_exchanged_type(uint32_t dtype);
amp_status amp_check_collectives(const amp_check *check);
/* model_check_shares.c: of those, whose states and indices are sound, the ones that give ranks shares. */
amp_status amp_check_shares(const amp_check *check);

/* model_check_use.c: of check->program, whose kernels and results are sound by themselves. */
amp_status amp_check_use(amp_check *check);

/* model_check_attention.c */
amp_status amp_check_attention(amp_check *check, const amp_model_kernel *kernel);

/* model_check_kernels.c */
amp_status amp_check_kernel(amp_check *check, int32_t index);
/* Whether ranks can add up operand 0 into operand 1 where the program is. */
bool amp_check_rank_sum(const amp_check *check, const uint32_t *operands, uint32_t count);

#endif
