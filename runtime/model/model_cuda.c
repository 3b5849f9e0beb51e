/* model_cuda.c: the model for CUDA: an amp_model with the inputs and decisions of the one that has it, and states,
 * programs and functions of its own; and what it must fulfil besides what every model does (model_check.c). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/model_check.h"
#include "runtime/model/model_tables.h"
#include "runtime/model/state.h"

typedef amp_check Check;

enum {
    MAX_OPERANDS = 1 << 16,      /* of a launch: they become one table */
    MAX_SIZES = 32,              /* of a kernel */
    MAX_CHOICES = 16,            /* of a kernel */
    MAX_TICKETS = 1 << 20,       /* of a launch */
    MAX_PARTIAL_BYTES = 1 << 16, /* of a block */
    MAX_PARTS = 32,              /* of a launch */
    MAX_PARAMETERS = 256,        /* pointers that a function takes: half of what CUDA's parameter block holds */
    MAX_SHARED = 227 * 1024,     /* dynamic shared memory of a block on any architecture */
    MAX_THREADS = 1024
};

/* ---- checks of buffers ------------------------------------------------------------------------------------------- */

/* Results may be f32 whatever they were computed in, as on the CPU. */
static bool storage_fits(const amp_model_buffer *b) {
    bool result =
        b->kind == AMP_BUFFER_OUTPUT && b->storage == AMP_DT_F32 && amp_readable_dtype(b->dtype) == AMP_DT_F32;
    return result || b->storage == (b->dtype == AMP_DT_TF32 ? (uint32_t)AMP_DT_F32 : b->dtype);
}

amp_status amp_check_cuda_buffer(const Check *c, const amp_model_buffer *b) {
    if (b->layout != AMP_LAYOUT_ROWS || (b->kind != AMP_BUFFER_STATE && !storage_fits(b)))
        return amp_check_fail(c, "buffer %s is not stored as rows of its own type", b->name);
    return AMP_OK;
}

/* ---- checks of kernels ------------------------------------------------------------------------------------------- */

static bool dims_fit(Check *c, const amp_model_dim *dims, uint32_t count, uint32_t most) {
    if (count > most || (count && !dims)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!amp_check_dim(c, &dims[i])) return false;
    return true;
}

/* Also 0. */
static bool distance_fits(Check *c, const amp_model_dim *d) { return (!d->mul && !d->of_n) || amp_check_dim(c, d); }

static bool batch_of_product_fits(Check *c, const amp_model_cuda_product *x) {
    for (int i = 0; i < 3; i++)
        if (!distance_fits(c, &x->stride[i]) || !distance_fits(c, &x->first[i])) return false;
    return amp_check_dim(c, &x->batch) && (x->parts == 1 || (x->batch.mul == 1 && !x->batch.of_n));
}

static bool product_fits(Check *c, const amp_model_cuda_kernel *k, const amp_model_cuda_product *x) {
    enum { MAX_PRODUCT_PARTS = 1024 };
    return x->a < k->operands.count && x->b < k->operands.count && x->result < k->operands.count &&
           x->bias <= k->operands.count && x->a_turned <= 1 && x->b_turned <= 1 && x->filled <= (x->parts == 1) &&
           x->instruction >= AMP_INSTRUCTION_FMA && x->instruction <= AMP_INSTRUCTION_MMA_TF32 && x->parts >= 1 &&
           x->parts <= MAX_PRODUCT_PARTS && x->cols > 0 && amp_check_dim(c, &x->rows) && amp_check_dim(c, &x->k) &&
           dims_fit(c, x->pitch, 3, 3) && batch_of_product_fits(c, x);
}

/* A library checks them against the buffers at each n. */
static bool products_fit(Check *c, const amp_model_cuda_kernel *k) {
    if (k->products.count > MAX_OPERANDS || (k->products.count && !k->products.at)) return false;
    for (uint32_t i = 0; i < k->products.count; i++)
        if (!product_fits(c, k, &k->products.at[i])) return false;
    return !k->then || (k->products.count && !k->then->products.count && !k->then->then && !k->then->waits.tickets &&
                        !k->then->waits.partial_bytes);
}

static bool operands_fit(const Check *c, const amp_model_cuda_kernel *k) {
    if (k->operands.count > MAX_OPERANDS || (k->operands.count && !k->operands.at)) return false;
    for (uint32_t i = 0; i < k->operands.count; i++)
        if (k->operands.at[i] >= (uint32_t)c->program->buffer_count) return false;
    return k->operand_table || k->operands.count <= MAX_PARAMETERS;
}

static bool waits_fit(const amp_model_cuda_waits *w) {
    return w->tickets <= MAX_TICKETS && w->partial_bytes <= MAX_PARTIAL_BYTES && w->partial_bytes % 8 == 0;
}

static bool choice_fits(const Check *c, const amp_model_cuda_choice *choice) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (choice->block[i] < 1 || choice->block[i] > MAX_THREADS) return false;
        threads *= choice->block[i];
    }
    return choice->function < (uint32_t)c->m->function_count && threads <= MAX_THREADS && choice->block[2] <= 64 &&
           choice->shared_bytes <= MAX_SHARED;
}

static bool choices_fit(const Check *c, const amp_model_cuda_kernel *k) {
    if (!k->choices.count || k->choices.count > MAX_CHOICES || !k->choices.at) return false;
    for (uint32_t i = 0; i < k->choices.count; i++)
        if (!choice_fits(c, &k->choices.at[i])) return false;
    return true;
}

static bool grid_fits(Check *c, const amp_model_cuda_grid *g) {
    for (int i = 0; i < 3; i++)
        if (g->per[i] < 0 || (g->per[i] > 0 && !amp_check_dim(c, &g->extent[i]))) return false;
    return true;
}

static bool part_fits(Check *c, const amp_model_cuda_kernel *k, const amp_model_cuda_part *p) {
    const uint32_t last_kind = k->parts.count > 1 ? AMP_KERNEL_ATTENTION : AMP_KERNEL_COLLECTIVE;
    if (p->kind > last_kind || !p->grids || !p->members || p->operand_count % p->members) return false;
    if (p->superstep ? !k->waits.tickets : p > k->parts.at && p[-1].superstep) return false;
    for (uint32_t i = 0; i < k->choices.count; i++)
        if (!grid_fits(c, &p->grids[i])) return false;
    return true;
}

static bool parts_fit(Check *c, const amp_model_cuda_kernel *k) {
    uint64_t operands = 0, work = 0, members = 0;
    if (!k->parts.count || k->parts.count > MAX_PARTS || !k->parts.at) return false;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        if (!part_fits(c, k, &k->parts.at[i])) return false;
        operands += k->parts.at[i].operand_count;
        work += k->parts.at[i].work_count;
        members += k->parts.at[i].members;
    }
    return operands == k->operands.count && work == k->work.count && (!work || k->work.at) &&
           members == (k->elements.count ? k->elements.count : k->parts.count);
}

/* One kernel whose blocks wait for one another is no batch. */
static bool batch_fits(Check *c, const amp_model_cuda_kernel *k) {
    if (!dims_fit(c, k->elements.at, k->elements.count, MAX_OPERANDS)) return false;
    return !k->elements.count ||
           (k->operand_table && (!k->waits.tickets || k->parts.count > 1 || k->parts.at->superstep));
}

static amp_status check_launch(Check *c, const amp_model_cuda_kernel *k, int32_t index) {
    if (!k->name) return amp_check_fail(c, "kernel %d has no name", index);
    if (!operands_fit(c, k))
        return amp_check_fail(c, "kernel %s: its operands are not buffers of the program, or too many", k->name);
    if (!choices_fit(c, k) || !waits_fit(&k->waits) || !parts_fit(c, k))
        return amp_check_fail(c, "kernel %s: its launch is damaged", k->name);
    if (!batch_fits(c, k) || !dims_fit(c, k->sizes.at, k->sizes.count, MAX_SIZES))
        return amp_check_fail(c, "kernel %s: its batch or its sizes are damaged", k->name);
    if (!products_fit(c, k)) return amp_check_fail(c, "kernel %s: its products are damaged", k->name);
    if (k->parts.at->kind == AMP_KERNEL_COLLECTIVE && !amp_check_rank_sum(c, k->operands.at, k->operands.count))
        return amp_check_fail(c, "kernel %s: ranks cannot add up its operands", k->name);
    return AMP_OK;
}

amp_status amp_check_cuda_kernel(Check *c, int32_t index) {
    const amp_model_cuda_kernel *k = &c->program->cuda_kernels[index];
    AMP_TRY(check_launch(c, k, index));
    return k->then ? check_launch(c, k->then, index) : AMP_OK;
}

/* ---- checks of functions ----------------------------------------------------------------------------------------- */

static bool image_fits(const amp_model_cuda_image *image) {
    if (!image->data || !image->size || !image->arch) return false;
    return image->is_cubin || ((const char *)image->data)[image->size - 1] == 0;
}

static bool prelude_fits(const amp_model_cuda_function *f, size_t size) {
    if (f->prelude.count && !f->prelude.at) return false;
    for (uint32_t i = 0; i < f->prelude.count; i++)
        if (f->prelude.at[i].at > size || f->prelude.at[i].size > size - f->prelude.at[i].at) return false;
    return true;
}

static amp_status check_function(const Check *c, int32_t index, size_t prelude) {
    enum { MAX_IMAGES = 256 };
    const amp_model_cuda_function *f = &c->m->functions[index];
    const amp_model_cuda_image *images = f->images.data;
    if (!f->entry || !f->source) return amp_check_fail(c, "function %d has no name or no source", index);
    if (!prelude_fits(f, prelude)) return amp_check_fail(c, "function %s: what it needs is in no prelude", f->entry);
    if (f->images.count && (f->images.count > MAX_IMAGES || !images || f->images.elem_size != sizeof *images))
        return amp_check_fail(c, "function %s: its table of images is damaged", f->entry);
    for (uint32_t i = 0; i < f->images.count; i++)
        if (!image_fits(&images[i])) return amp_check_fail(c, "function %s: image %u is damaged", f->entry, i);
    return AMP_OK;
}

/* ---- checks that it is the same model ---------------------------------------------------------------------------- */

static bool is_of_model(const amp_model_state *s) {
    return amp_state_is_param(s) || s->role == AMP_STATE_MOMENT || s->role == AMP_STATE_COUNTER ||
           s->role == AMP_STATE_SCALER;
}

/* Integers are copied as they are. */
static bool same_state(const amp_model_state *a, const amp_model_state *b) {
    bool rows = a->layout == AMP_LAYOUT_ROWS && b->layout == AMP_LAYOUT_ROWS;
    return a->role == b->role && a->counter == b->counter && a->dtype == b->dtype && a->storage == b->storage &&
           a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) &&
           (amp_readable_dtype(a->storage) == AMP_DT_F32 || rows);
}

/* Every state of |from| that files hold is one of |in|. */
static amp_status check_states_of(const Check *c, const amp_model *from, const amp_model *in) {
    for (int32_t i = 0; i < from->state_count; i++) {
        const amp_model_state *s = &from->states[i];
        int32_t other = amp_model_state_index(in, s->name);
        if (is_of_model(s) && (other < 0 || !same_state(s, &in->states[other])))
            return amp_check_fail(c, "state %s is not the same as on the CPU", s->name);
    }
    return AMP_OK;
}

static bool same_results(const amp_program *a, const amp_program *b) {
    if (a->result_count != b->result_count) return false;
    for (int32_t i = 0; i < a->result_count; i++) {
        const amp_model_result *x = &a->results[i], *y = &b->results[i];
        if (strcmp(x->name, y->name) || x->kind != y->kind || x->dtype != y->dtype || x->rank != y->rank) return false;
        if (memcmp(x->dims, y->dims, x->rank * sizeof *x->dims)) return false;
    }
    return true;
}

static bool has_derived(const amp_model *m) {
    for (int32_t i = 0; i < m->state_count; i++)
        if (m->states[i].role == AMP_STATE_DERIVED) return true;
    return false;
}

static amp_status check_same_programs(const Check *c) {
    const amp_model *cpu = c->m->owner;
    for (int32_t i = 0; i < cpu->program_count; i++) {
        if (cpu->programs[i].kind == AMP_PROGRAM_OTHER) continue; /* it is never run */
        const amp_program *p = amp_model_program_of(c->m, cpu->programs[i].kind);
        if (!p && cpu->programs[i].kind == AMP_PROGRAM_REFRESH) continue; /* other copies than the CPU's */
        if (!p) return amp_check_fail(c, "it has no program %s", cpu->programs[i].name);
        if (!same_results(p, &cpu->programs[i]))
            return amp_check_fail(c, "the results of %s are not those on the CPU", p->name);
    }
    return AMP_OK;
}

/* ---- checks of scalars: what the host reads after a run must be among what is copied to it ----------------------- */

static bool is_readable_scalar(const Check *c, const amp_program *p, const amp_model_result *r) {
    const amp_model_buffer *b = &p->buffers[r->buffer];
    if (r->rank || r->kind == AMP_RESULT_GRADIENT) return true;
    if (b->kind != AMP_BUFFER_STATE)
        return b->kind == AMP_BUFFER_OUTPUT || b->kind == AMP_BUFFER_FLAG || b->kind == AMP_BUFFER_INPUT;
    uint32_t role = c->m->states[b->index].role;
    return role == AMP_STATE_COUNTER || role == AMP_STATE_SCALER;
}

static amp_status check_scalars(const Check *c) {
    for (int32_t i = 0; i < c->m->program_count; i++) {
        const amp_program *p = &c->m->programs[i];
        for (int32_t r = 0; r < p->result_count; r++)
            if (!amp_program_infers(p) && !is_readable_scalar(c, p, &p->results[r]))
                return amp_check_fail(c, "%s: the scalar result %s is stored where the host does not read it", p->name,
                                      p->results[r].name);
    }
    return AMP_OK;
}

amp_status amp_check_cuda(Check *c) {
    if (!c->m->desc.cuda->prelude) return amp_check_fail(c, "it has no prelude");
    const size_t prelude = strlen(c->m->desc.cuda->prelude);
    for (int32_t i = 0; i < c->m->function_count; i++) AMP_TRY(check_function(c, i, prelude));
    for (int32_t i = 0; i < c->m->state_count; i++)
        if (c->m->states[i].layout != AMP_LAYOUT_ROWS)
            return amp_check_fail(c, "state %s is not stored as rows", c->m->states[i].name);
    AMP_TRY(check_states_of(c, c->m, c->m->owner));
    AMP_TRY(check_states_of(c, c->m->owner, c->m));
    AMP_TRY(check_same_programs(c));
    if (has_derived(c->m) && !amp_model_program_of(c->m, AMP_PROGRAM_REFRESH))
        return amp_check_fail(c, "it has no program refresh, which its derived states need");
    return check_scalars(c);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static amp_status take_programs(amp_model *m, const char *where, amp_error *err) {
    const amp_model_cuda_program *from;
    int32_t count;
    AMP_TRY(AMP_TAKE_TABLE(&m->desc.cuda->programs, "CUDA programs", from, count, where, err));
    AMP_TRY(amp_model_make_programs(m, m->desc.cuda->programs.count, where, err));
    for (int32_t i = 0; i < count; i++, from++) {
        amp_program *to = &m->programs[i];
        to->name = from->name;
        to->kind = from->kind;
        AMP_TRY(AMP_TAKE_TABLE(&from->buffers, "buffers", to->buffers, to->buffer_count, where, err));
        AMP_TRY(AMP_TAKE_TABLE(&from->kernels, "kernels", to->cuda_kernels, to->kernel_count, where, err));
        AMP_TRY(AMP_TAKE_TABLE(&from->results, "results", to->results, to->result_count, where, err));
    }
    return AMP_OK;
}

static amp_status take_tables(amp_model *m, const char *where, amp_error *err) {
    const amp_model_cuda *c = m->desc.cuda;
    AMP_TRY(AMP_TAKE_TABLE(&c->states, "CUDA states", m->states, m->state_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&c->collectives, "CUDA collectives", m->collectives, m->collective_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&c->functions, "CUDA functions", m->functions, m->function_count, where, err));
    return take_programs(m, where, err);
}

static amp_model *make_like(amp_model *owner) {
    amp_model *m = amp_alloc_zeroed(&owner->allocator, sizeof *m);
    if (!m) return NULL;
    m->allocator = owner->allocator;
    m->owner = owner;
    m->desc = owner->desc;
    m->inputs = owner->inputs;
    m->decisions = owner->decisions;
    m->decision_count = owner->decision_count;
    m->model_input_count = owner->model_input_count;
    m->input_count = owner->input_count;
    m->all_input_count = owner->all_input_count;
    return m;
}

amp_status amp_model_add_cuda(amp_model *model, const char *where, amp_error *err) {
    AMP_TRY(amp_model_check_size(model->desc.cuda->struct_size, sizeof *model->desc.cuda, "its CUDA code", where, err));
    amp_model *m = model->cuda = make_like(model);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its CUDA code", where);
    AMP_TRY(take_tables(m, where, err));
    char cuda[256];
    snprintf(cuda, sizeof cuda, "%s: CUDA", where);
    AMP_TRY(amp_model_check(m, cuda, err));
    amp_model_find_programs(m);
    return amp_states_join(m, err);
}

void amp_model_free_cuda(amp_model *model) {
    amp_model *m = model->cuda;
    if (!m) return;
    amp_free(&m->allocator, m->programs, (size_t)m->program_count * sizeof *m->programs);
    amp_free(&m->allocator, m->blocks, m->blocks ? (size_t)m->state_count * sizeof *m->blocks : 0);
    amp_free(&model->allocator, m, sizeof *m);
    model->cuda = NULL;
}

amp_status amp_model_for(amp_model *model, const char *device, amp_model **out, amp_error *err) {
    *out = strcmp(device, "cuda") ? model : model->cuda;
    if (*out) return AMP_OK;
    amp_model_info info;
    amp_model_get_info(model, &info);
    return amp_fail(
        err, AMP_UNSUPPORTED,
        "%s: the model has no CUDA code (%s); run it on the device \"cpu\" (--device cpu), or compile it with "
        "ampc --target both",
        model->desc.name, info.cuda_missing);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static bool has_image(const amp_model_cuda_function *f, const amp_model_cuda_image *wanted) {
    const amp_model_cuda_image *images = f->images.data;
    for (uint32_t i = 0; i < f->images.count; i++)
        if (images[i].arch == wanted->arch && images[i].suffix == wanted->suffix &&
            !images[i].is_cubin == !wanted->is_cubin)
            return true;
    return false;
}

static bool all_have_image(const amp_model *m, const amp_model_cuda_image *wanted) {
    for (int32_t i = 0; i < m->function_count; i++)
        if (!has_image(&m->functions[i], wanted)) return false;
    return true;
}

amp_status amp_model_cuda_image_at(const amp_model *model, int32_t index, amp_cuda_image_info *out, amp_error *err) {
    int32_t count = 0;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "model or out is NULL");
    const amp_model *m = model->cuda;
    for (uint32_t i = 0; m && m->function_count && i < m->functions[0].images.count; i++) {
        const amp_model_cuda_image *image = (const amp_model_cuda_image *)m->functions[0].images.data + i;
        if (!all_have_image(m, image) || count++ != index) continue;
        *out = (amp_cuda_image_info){.arch = (int32_t)image->arch, .is_cubin = image->is_cubin != 0};
        out->suffix[0] = (char)image->suffix;
        return AMP_OK;
    }
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s has no CUDA image %d; there are %d", model->desc.name, index, count);
}
