/* model_check_use.c: how the kernels of a program use its buffers, as far as tables tell; see model_check.c.
 *
 * What is checked: each kernel finds its buffers alive, shares what a session may not keep (watches) with no other
 * kernel, and walks no space that is larger than all that it can store.  What is not, because only the code of a
 * kernel knows it: which operands it reads and which it writes, in which order they come, how many there are and how
 * large each must be, and whether the kernels come in the right order.
 */
#include "base/alloc.h"
#include "runtime/model/model_check.h"

typedef amp_check Check;

/* One pass over the kernels of a program, or of a program for CUDA. */
typedef struct Using {
    Check *c;
    int32_t *user; /* by buffer: 1 + the last kernel that has it as an operand; 0: none yet */
    const char *kernel;
    int32_t position;
    bool may_repeat; /* an operand: members of a batch share some */
} Using;

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static amp_status use(const Using *u, uint32_t index) {
    const amp_model_buffer *b = &u->c->program->buffers[index];
    int32_t *user = &u->user[index], me = u->position + 1;
    if (b->kind == AMP_BUFFER_TEMP && (u->position < b->first_kernel || u->position > b->last_kernel))
        return amp_check_fail(u->c, "kernel %s (%d) uses buffer %s, which lives from kernel %d to %d", u->kernel,
                              u->position, b->name, b->first_kernel, b->last_kernel);
    if (amp_buffer_is_optional(b) && *user && *user != me)
        return amp_check_fail(u->c, "kernel %s uses buffer %s, which is written only where the session keeps values",
                              u->kernel, b->name);
    if (*user == me && !u->may_repeat)
        return amp_check_fail(u->c, "kernel %s has buffer %s as two operands", u->kernel, b->name);
    *user = me;
    return AMP_OK;
}

static amp_status use_all(const Using *u, const uint32_t *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) AMP_TRY(use(u, operands[i]));
    return AMP_OK;
}

static amp_status use_predicate(const Using *u, int32_t index) {
    if (index == AMP_MODEL_NONE) return AMP_OK;
    const amp_model_buffer *b = &u->c->program->buffers[index];
    if (b->kind != AMP_BUFFER_TEMP || (u->position >= b->first_kernel && u->position <= b->last_kernel)) return AMP_OK;
    return amp_check_fail(u->c, "kernel %s (%d) has the predicate %s, which lives from kernel %d to %d", u->kernel,
                          u->position, b->name, b->first_kernel, b->last_kernel);
}

/* ---- the space --------------------------------------------------------------------------------------------------- */

/* INT64_MAX where they are more. */
static int64_t elements(int64_t rows, int64_t cols) {
    int64_t product;
    return __builtin_mul_overflow(rows, cols, &product) ? INT64_MAX : product;
}

/* What a kernel surely stores (or reads, to look for what is not finite): elements of one of its operands, at least. */
static int64_t stored_at(const amp_model_kernel *k, amp_sizes sizes) {
    int64_t rows = amp_model_dim_at(&k->rows, sizes), cols = amp_model_dim_at(&k->cols, sizes);
    switch (k->kind) {
    case AMP_KERNEL_PRODUCT:
    case AMP_KERNEL_TILE: return elements(rows, cols);
    case AMP_KERNEL_ROW: return rows;
    case AMP_KERNEL_COLUMN: return k->segment.mul ? elements(rows / amp_model_dim_at(&k->segment, sizes), cols) : cols;
    case AMP_KERNEL_SCATTER: return cols;
    default: return 1;
    }
}

static int64_t elements_at(const amp_model_buffer *b, amp_sizes sizes) {
    return elements(amp_model_dim_at(&b->rows, sizes), amp_model_dim_at(&b->cols, sizes));
}

static bool holds_space(const Check *c, const amp_model_kernel *k, const amp_model_buffer *b) {
    for (int i = 0; i < AMP_CHECK_POINTS; i++)
        if (elements_at(b, amp_check_point(c, i)) < stored_at(k, amp_check_point(c, i))) return false;
    return true;
}

static bool space_fits(const Check *c, const amp_model_kernel *k) {
    for (uint32_t i = 0; i < k->operand_count; i++)
        if (holds_space(c, k, &c->program->buffers[k->operands[i]])) return true;
    return false;
}

/* The tables of a product are zero in every other kernel, which would not be given what the code of a product needs;
 * so is the table of attention. */
static bool is_kind_of_tables(const amp_model_kernel *k) {
    const bool attends = k->kind == AMP_KERNEL_ATTENTION || !k->attention;
    return attends && (k->kind == AMP_KERNEL_PRODUCT || (!k->product.operand && !k->window.kind));
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static amp_status use_kernel(Using *u, int32_t index) {
    const amp_program *p = u->c->program;
    u->position = index;
    if (p->cuda_kernels) {
        const amp_model_cuda_kernel *k = &p->cuda_kernels[index];
        u->kernel = k->name;
        u->may_repeat = true;
        return use_all(u, k->operands.at, k->operands.count);
    }
    const amp_model_kernel *k = &p->kernels[index];
    u->kernel = k->name;
    AMP_TRY(use_all(u, k->operands, k->operand_count));
    AMP_TRY(use_predicate(u, k->predicate));
    if (!is_kind_of_tables(k))
        return amp_check_fail(u->c, "kernel %s: it is no product, or no attention, but has the table of one", k->name);
    if (space_fits(u->c, k)) return AMP_OK;
    return amp_check_fail(u->c, "kernel %s: its space is larger than all of its buffers", k->name);
}

/* Results are read when the program has run, when others may have the memory of a temporary.  (Gradients are read only
 * where the session keeps values, and then nothing shares memory.) */
static amp_status check_results(const Check *c) {
    const amp_program *p = c->program;
    for (int32_t i = 0; i < p->result_count; i++) {
        const amp_model_buffer *b = &p->buffers[p->results[i].buffer];
        if (p->results[i].kind != AMP_RESULT_GRADIENT && b->kind == AMP_BUFFER_TEMP)
            return amp_check_fail(c, "result %s is a temporary", p->results[i].name);
    }
    return AMP_OK;
}

amp_status amp_check_use(Check *c) {
    size_t bytes = ((size_t)c->program->buffer_count + 1) * sizeof(int32_t);
    Using u = {.c = c, .user = amp_alloc_zeroed(&c->m->allocator, bytes)};
    if (!u.user) return amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory to check it", c->where);
    amp_status status = AMP_OK;
    for (int32_t i = 0; !status && i < c->program->kernel_count; i++) status = use_kernel(&u, i);
    amp_free(&c->m->allocator, u.user, bytes);
    return status ? status : check_results(c);
}
