/* kernel_work.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include "tools/roofline/roofline.h"

bool kernel_writes(const amp_program *program, int32_t index, uint32_t buffer) {
    const amp_model_buffer *b = &program->buffers[buffer];
    return b->kind != AMP_BUFFER_INPUT && b->kind != AMP_BUFFER_STATE && b->first_kernel == index;
}

/* ---- bytes on the CPU -------------------------------------------------------------------------------------------- */

static bool is_updated(const amp_model_kernel *k, uint32_t operand) {
    for (uint32_t i = 0; i < k->update_count; i++)
        if (k->operands[k->updates[i]] == k->operands[operand]) return true;
    return false;
}

static bool is_named_before(const amp_model_kernel *k, uint32_t operand) {
    for (uint32_t i = 0; i < operand; i++)
        if (k->operands[i] == k->operands[operand]) return true;
    return false;
}

static double count_bytes(const amp_program *p, const amp_model_kernel *k, amp_sizes sizes, bool watched) {
    double bytes = 0;
    for (uint32_t i = 0; i < k->operand_count; i++) {
        const amp_model_buffer *b = &p->buffers[k->operands[i]];
        if (is_named_before(k, i) || (b->kind == AMP_BUFFER_WATCH && !watched) || b->kind == AMP_BUFFER_LOOK) continue;
        const double once =
            dim_at(&b->rows, sizes) * dim_at(&b->cols, sizes) * (double)amp_dtype_size((amp_dtype)b->storage);
        bytes += once * (is_updated(k, i) ? 2 : 1);
    }
    return bytes;
}

/* ---- operations on the CPU --------------------------------------------------------------------------------------- */

/* Of the gradient of a convolution's weights, an element is a sum over pixels; of all others over a window. */
static double multiply_adds_of_window(const amp_program *p, const amp_model_kernel *k, amp_sizes sizes) {
    const amp_model_window *w = &k->window;
    const double pixels = (double)w->oh * w->ow, window = (double)w->kh * w->kw;
    const double channels = (double)w->c * w->oc / (w->groups > 1 ? w->groups : 1);
    const amp_model_dim *rows =
        w->kind == AMP_WINDOW_CONV_WEIGHT ? &p->buffers[k->operands[k->product.a]].rows : &k->rows;
    const double image = w->kind == AMP_WINDOW_CONV ? pixels : (double)w->h * w->w;
    return dim_at(rows, sizes) / image * pixels * window * channels;
}

static double multiply_adds_of_product(const amp_program *p, const amp_model_kernel *k, amp_sizes sizes) {
    if (k->window.kind != AMP_WINDOW_NONE) return multiply_adds_of_window(p, k, sizes);
    return dim_at(&k->rows, sizes) * dim_at(&k->cols, sizes) * dim_at(&k->product.k, sizes);
}

/* Forward q k^T and the weighted sum of v; backward both again as scores and slopes, and d q, d k and d v. */
static double multiply_adds_of_attention(const amp_model_attention *a, amp_sizes sizes) {
    const double queries = dim_at(&a->queries, sizes), keys = dim_at(&a->keys, sizes);
    const double below = queries < keys ? queries : keys; /* queries that do not see all keys, or just */
    double pairs = a->causal ? below * (below + 1) / 2 + (queries - below) * keys : queries * keys;
    for (uint32_t i = 0; i < a->rank; i++) pairs *= dim_at(&a->dims[i], sizes);
    return pairs * (double)(a->backward ? 3 * a->width + 2 * a->v_width : a->width + a->v_width);
}

static uint32_t instruction_of(uint32_t storage) {
    return storage == AMP_DT_BF16 ? AMP_INSTRUCTION_MMA_BF16 : AMP_INSTRUCTION_FMA;
}

static void count_operations(const amp_program *p, const amp_model_kernel *k, amp_sizes sizes, KernelWork *out) {
    if (k->kind == AMP_KERNEL_PRODUCT) {
        out->flops = 2 * multiply_adds_of_product(p, k, sizes);
        out->instruction = instruction_of(k->product.operand);
    } else if (k->kind == AMP_KERNEL_ATTENTION) {
        out->flops = 2 * multiply_adds_of_attention(k->attention, sizes);
        out->instruction = instruction_of(k->attention->storage);
    }
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* The model of time counts them, whatever GPU it is asked of that has all instructions. */
static KernelWork work_on_cuda(const amp_tables *t, const amp_program *p, int32_t index, amp_sizes sizes) {
    const RooflineTables tables = {p->buffers, t->states};
    KernelTime time;
    if (roofline_kernel(gpu_named("H100"), &tables, &p->cuda_kernels[index], sizes, FORM_OWN, &time))
        return (KernelWork){0};
    return (KernelWork){time.bytes, time.flops, time.instruction};
}

KernelWork kernel_work_of(const amp_tables *tables, const amp_program *program, int32_t index, amp_sizes sizes,
                          bool watched) {
    if (program->cuda_kernels) return work_on_cuda(tables, program, index, sizes);
    const amp_model_kernel *k = &program->kernels[index];
    KernelWork work = {.bytes = count_bytes(program, k, sizes, watched)};
    count_operations(program, k, sizes, &work);
    return work;
}
