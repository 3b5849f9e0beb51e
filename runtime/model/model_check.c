/* model_check.c: what a model must fulfil before any of its numbers is used as an index, a size or a pointer.
 *
 * The functions of a model are native code and are trusted (amp/amp.h); its tables are not: a table written by a
 * compiler with a fault must give an error here, not a crash later.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/scale_range.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/model_check.h"
#include "runtime/model/state.h"

typedef amp_check Check;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool is_dtype(uint32_t t) { return amp_class_of(t) != AMP_CLASS_NONE; }
static bool is_float(uint32_t t) { return amp_class_of(t) == AMP_CLASS_FLOAT || amp_class_of(t) == AMP_CLASS_DOUBLE; }

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* At the largest sizes; what a dimension is divided by is not taken into account. */
static bool overflows(const Check *c, const amp_model_dim *d) {
    int64_t product = d->mul;
    bool is_too_large = false;
    for (int i = 0; i < d->of_n; i++)
        is_too_large |= __builtin_mul_overflow(product, (int64_t)AMP_BATCH_LIMIT, &product);
    for (int i = 0; i < d->of_t; i++) is_too_large |= __builtin_mul_overflow(product, c->m->desc.length_most, &product);
    return is_too_large;
}

bool amp_check_dim(Check *c, const amp_model_dim *d) {
    const int64_t unit = c->m->desc.length_unit;
    if (d->mul < 1 || d->mul > AMP_CHECK_DIM_LIMIT) return false;
    if (d->of_n > 2 || d->of_t > (unit ? 2 : 0) || overflows(c, d)) return false;
    if (!d->of_n && !d->of_t) return true;
    if (d->div < 1 || d->div > AMP_BATCH_LIMIT) return false;
    int64_t k = d->div / gcd(d->mul, d->div), now = c->m->batch_multiple;
    for (int i = 0; i < d->of_t; i++) k /= gcd(unit, k);
    if (!d->of_n) return k == 1;
    c->m->batch_multiple = now / gcd(now, k) * k;
    return c->m->batch_multiple <= AMP_BATCH_LIMIT;
}

static bool check_dims(Check *c, const amp_model_dim *dims, uint32_t rank) {
    if (rank > AMP_MODEL_MAX_RANK) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!amp_check_dim(c, &dims[i])) return false;
    return true;
}

/* false on overflow */
static bool elements_at(const amp_model_dim *dims, uint32_t rank, amp_sizes sizes, size_t *out) {
    *out = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (!amp_size_mul(*out, (size_t)amp_model_dim_at(&dims[i], sizes), out)) return false;
    return true;
}

static bool same_elements(const Check *c, const amp_model_dim *dims, uint32_t rank, const amp_model_buffer *b) {
    amp_model_dim matrix[2] = {b->rows, b->cols};
    for (int i = 0; i < AMP_CHECK_POINTS; i++) {
        const amp_sizes at = amp_check_point(c, i);
        size_t x, y;
        if (!elements_at(dims, rank, at, &x) || !elements_at(matrix, 2, at, &y) || x != y) return false;
    }
    return true;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* |first| is the name of the first of |count| structs that are |stride| bytes apart. */
static amp_status check_names(const Check *c, const char *what, const char *const *first, int32_t count,
                              size_t stride) {
    size_t bytes = (size_t)count * sizeof(char *);
    const char **names = amp_alloc(&c->m->allocator, bytes);
    if (!names) return amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory to check it", c->where);
    amp_status status = AMP_OK;
    for (int32_t i = 0; !status && i < count; i++) {
        memcpy(&names[i], (const char *)first + (size_t)i * stride, sizeof names[i]);
        if (!names[i]) status = amp_check_fail(c, "%s %d has no name", what, i);
    }
    if (!status) qsort(names, (size_t)count, sizeof *names, by_name);
    for (int32_t i = 1; !status && i < count; i++)
        if (!strcmp(names[i - 1], names[i])) status = amp_check_fail(c, "two %ss are called %s", what, names[i]);
    amp_free(&c->m->allocator, names, bytes);
    return status;
}

static amp_status check_length(const Check *c) {
    const int64_t most = c->m->desc.length_most, unit = c->m->desc.length_unit;
    if (!most && !unit) return AMP_OK;
    if (unit >= 1 && most >= unit && most <= AMP_BATCH_LIMIT && most % unit == 0) return AMP_OK;
    return amp_check_fail(c, "its size T is at most %lld, in steps of %lld", (long long)most, (long long)unit);
}

static amp_status check_strings(const Check *c) {
    const amp_model_desc *d = &c->m->desc;
    const struct {
        const char *what, *text;
    } needed[] = {
        {"name", d->name}, {"policy", d->policy}, {"precision", d->precision}, {"source name", d->source_name}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].text) return amp_check_fail(c, "the descriptor has no %s", needed[i].what);
    return AMP_OK;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static const struct {
    uint32_t role, dtype;
} counters[] = {
#define COUNTER(kind, word, forms, role, type) [AMP_COUNTER_##kind] = {AMP_STATE_##role, AMP_DT_##type},
#include "base/names.def"
};

/* The first value of the loss scale. */
static double initial_scale(const amp_model_state *s) {
    return !s->init ? 0 : !strcmp(s->init, "ones") ? 1 : s->init_arg_count ? s->init_args[0] : 0;
}

static bool is_known_scalar(const amp_model_state *s) {
    if (s->counter == AMP_COUNTER_SCALE && !amp_scale_is_usable(initial_scale(s))) return false;
    if (s->counter == AMP_COUNTER_NONE || s->counter >= sizeof counters / sizeof *counters) return false;
    return s->role == counters[s->counter].role && s->storage == counters[s->counter].dtype && s->rank == 0 &&
           s->counter_block >= AMP_MODEL_NONE;
}

static bool is_stored_float(const amp_model_state *s) {
    return s->dtype == s->storage && s->dtype != AMP_DT_TF32 && amp_readable_dtype(s->dtype) == AMP_DT_F32;
}

/* What a step of several micro-batches or ranks adds up besides gradients: losses and counts, and statistics. */
static bool is_number_of_step(const amp_model *m, const amp_model_state *s) {
    const amp_model *whole = m->owner ? m->owner : m;
    const bool divided = whole->collective_count > 0 || whole->desc.accumulate > 1;
    return divided && (s->storage == AMP_DT_F64 ? s->rank == 0 : s->storage == AMP_DT_F32 && s->dtype == AMP_DT_F32);
}

/* A moment is like its parameter, or has a number for each row or column of that matrix. */
static bool moment_fits(const amp_model_state *s, const amp_model_state *of) {
    const bool of_lines = s->rank == 1 && of->rank == 2 && (s->dims[0] == of->dims[0] || s->dims[0] == of->dims[1]);
    return of_lines || amp_model_state_elements(of) == amp_model_state_elements(s);
}

/* What the roles promise about types; see amp/model_abi.h. */
static bool role_fits(const Check *c, const amp_model_state *s) {
    if (s->counter && s->role != AMP_STATE_COUNTER && s->role != AMP_STATE_SCALER) return false;
    const amp_model_state *of = amp_check_index(s->of, c->m->state_count) ? &c->m->states[s->of] : NULL;
    switch (s->role) {
    case AMP_STATE_PARAM: return is_stored_float(s) && !amp_is_f8(s->dtype);
    case AMP_STATE_BUFFER: return s->storage == AMP_DT_F32 || s->storage == AMP_DT_I64;
    case AMP_STATE_MOMENT:
        return of && of->role == AMP_STATE_PARAM && s->slot && is_stored_float(s) && moment_fits(s, of);
    case AMP_STATE_COUNTER:
    case AMP_STATE_SCALER: return is_known_scalar(s);
    case AMP_STATE_DERIVED: return of && (of->role == AMP_STATE_PARAM || of->role == AMP_STATE_BUFFER);
    case AMP_STATE_ACCUMULATOR:
        if (s->of == AMP_MODEL_NONE) return is_number_of_step(c->m, s);
        return of && of->role == AMP_STATE_PARAM && amp_is_exchanged_type(s->storage) && s->storage != AMP_DT_F64 &&
               amp_model_state_elements(of) == amp_model_state_elements(s);
    case AMP_STATE_STAGED:
        return of && of->role == AMP_STATE_BUFFER && s->dtype == of->dtype &&
               amp_model_state_elements(of) == amp_model_state_elements(s);
    default: return false;
    }
}

/* The weight of a convolution, or of flattened images with |hwio| pixels. */
static bool hwio_fits(uint32_t hwio, uint32_t rank, int64_t columns) {
    return rank == 4 ? hwio == 1 : rank == 2 && columns % hwio == 0;
}

static bool state_shape_fits(const amp_model_state *s) {
    size_t elements = 1, bytes;
    int64_t rows, cols;
    if (s->rank > AMP_MODEL_MAX_RANK) return false;
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->dims[i] < 1 || s->dims[i] > AMP_CHECK_DIM_LIMIT ||
            !amp_size_mul(elements, (size_t)s->dims[i], &elements))
            return false;
    if (elements > (size_t)AMP_CHECK_DIM_LIMIT) return false;
    if (s->hwio && !hwio_fits(s->hwio, s->rank, s->dims[1])) return false;
    amp_state_matrix(s, &rows, &cols);
    return amp_layout_bytes(s->layout, s->storage, rows, cols, &bytes);
}

static amp_status check_state(const Check *c, const amp_model_state *s) {
    if (!is_dtype(s->dtype) || !is_dtype(s->storage) || s->layout > AMP_LAYOUT_PAIRS_T)
        return amp_check_fail(c, "state %s: unknown type or layout", s->name);
    if (!state_shape_fits(s))
        return amp_check_fail(c, "state %s: its shape is damaged or larger than memory can be", s->name);
    amp_error why = {0};
    if (amp_initialiser_check(s, &why)) return amp_check_fail(c, "state %s: %s", s->name, why.message);
    return AMP_OK;
}

static amp_status check_states(const Check *c) {
    const amp_model *m = c->m;
    AMP_TRY(check_names(c, "state", &m->states->name, m->state_count, sizeof *m->states));
    for (int32_t i = 0; i < m->state_count; i++) AMP_TRY(check_state(c, &m->states[i]));
    for (int32_t i = 0; i < m->state_count; i++)
        if (!role_fits(c, &m->states[i]))
            return amp_check_fail(c, "state %s does not fit its role %u", m->states[i].name, m->states[i].role);
    return AMP_OK;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static amp_status check_inputs(Check *c) {
    const amp_model *m = c->m;
    AMP_TRY(check_names(c, "input", &m->inputs->name, m->all_input_count, sizeof *m->inputs));
    for (int32_t i = 0; i < m->all_input_count; i++) {
        const amp_model_input *in = &m->inputs[i];
        if (!is_dtype(in->dtype) || amp_is_f8(in->dtype))
            return amp_check_fail(c, "input %s: unknown type %u", in->name, in->dtype);
        if (!check_dims(c, in->dims, in->rank)) return amp_check_fail(c, "input %s: its shape is damaged", in->name);
        if (i > 0 && in->train_only < in[-1].train_only)
            return amp_check_fail(c, "input %s of the model comes after the inputs of training", in->name);
        if (in->train_only > AMP_INPUT_AVERAGE ||
            (in->train_only == AMP_INPUT_AVERAGE && (in->rank || in->dtype != AMP_DT_F32)))
            return amp_check_fail(c, "input %s: unknown kind %u, or no average", in->name, in->train_only);
        if (in->index_bound < 0 || (in->index_bound && in->dtype != AMP_DT_I32))
            return amp_check_fail(c, "input %s: class indices must be i32", in->name);
    }
    return AMP_OK;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* Averages are inputs of FIGURES and METRICS and of nothing else; INFER is given the model's own inputs alone. */
static bool may_read(const amp_program *p, uint32_t kind) {
    if (p->kind == AMP_PROGRAM_METRICS || p->kind == AMP_PROGRAM_FIGURES) return kind == AMP_INPUT_AVERAGE;
    return kind <= (amp_program_infers(p) ? AMP_INPUT_OF_MODEL : AMP_INPUT_OF_TRAINING);
}

static amp_status check_input_buffer(const Check *c, const amp_model_buffer *b) {
    const amp_model *m = c->m;
    if (!amp_check_index(b->index, m->all_input_count)) return amp_check_fail(c, "buffer %s is no input", b->name);
    const amp_model_input *in = &m->inputs[b->index];
    if (!may_read(c->program, in->train_only))
        return amp_check_fail(c, "buffer %s: input %s is none of this program's", b->name, in->name);
    if (b->layout != AMP_LAYOUT_ROWS || b->storage != in->dtype || !same_elements(c, in->dims, in->rank, b))
        return amp_check_fail(c, "buffer %s does not fit input %s", b->name, in->name);
    return AMP_OK;
}

static amp_status check_state_buffer(const Check *c, const amp_model_buffer *b) {
    int64_t rows, cols;
    if (!amp_check_index(b->index, c->m->state_count)) return amp_check_fail(c, "buffer %s is no state", b->name);
    const amp_model_state *s = &c->m->states[b->index];
    amp_state_matrix(s, &rows, &cols);
    if (b->layout != s->layout || b->storage != s->storage || amp_dim_varies(&b->rows) || amp_dim_varies(&b->cols) ||
        b->rows.mul != rows || b->cols.mul != cols)
        return amp_check_fail(c, "buffer %s does not fit state %s", b->name, s->name);
    return AMP_OK;
}

static bool same_dim(const amp_model_dim *a, const amp_model_dim *b) {
    return a->mul == b->mul && a->div == b->div && a->of_n == b->of_n && a->of_t == b->of_t;
}

/* Elements, at any n: of a buffer for CUDA, in rows. */
static bool has_as_many(const Check *c, const amp_model_buffer *in, const amp_model_buffer *b) {
    const amp_model_dim matrix[] = {in->rows, in->cols};
    return c->m->owner && b->layout == AMP_LAYOUT_ROWS && b->renamed == 1 && same_elements(c, matrix, 2, b);
}

static bool place_fits(const Check *c, const amp_model_buffer *b) {
    if (!b->place) return !b->renamed;
    if (b->place > (uint32_t)c->program->buffer_count) return false;
    const amp_model_buffer *in = &c->program->buffers[b->place - 1];
    const bool same_form = in->kind == AMP_BUFFER_TEMP && !in->place && in->first_kernel <= b->first_kernel &&
                           in->storage == b->storage && in->layout == b->layout;
    if (b->renamed) return same_form && has_as_many(c, in, b);
    const bool is_later = in->first_kernel < b->first_kernel && in->last_kernel <= b->first_kernel;
    return same_form && is_later && !in->part && same_dim(&in->rows, &b->rows) && same_dim(&in->cols, &b->cols);
}

static amp_status check_temp_buffer(const Check *c, const amp_model_buffer *b) {
    if (b->first_kernel < -1 || b->last_kernel < b->first_kernel || b->last_kernel >= c->program->kernel_count)
        return amp_check_fail(c, "buffer %s lives from kernel %d to %d of %d", b->name, b->first_kernel, b->last_kernel,
                              c->program->kernel_count);
    if (!place_fits(c, b)) return amp_check_fail(c, "buffer %s cannot have the place that it names", b->name);
    return AMP_OK;
}

static amp_status check_flag_buffer(const Check *c, const amp_model_buffer *b) {
    if (amp_storage_size(b->storage) != sizeof(int32_t)) return amp_check_fail(c, "flag %s is no int32", b->name);
    return AMP_OK;
}

/* What is read after a call is rows, floats as f32; a count is one f64. */
static amp_status check_output_buffer(const Check *c, const amp_model_buffer *b) {
    if (c->m->owner || (b->storage == AMP_DT_F64 && b->rank == 0 && !amp_program_infers(c->program))) return AMP_OK;
    if (b->layout != AMP_LAYOUT_ROWS || (is_float(b->dtype) && b->storage != AMP_DT_F32))
        return amp_check_fail(c, "output %s is not stored as rows of f32", b->name);
    return AMP_OK;
}

/* Only a step keeps values; elsewhere its pointer is always NULL. */
static amp_status check_watch_buffer(const Check *c, const amp_model_buffer *b) {
    uint32_t kind = c->program->kind;
    bool steps = kind == AMP_PROGRAM_TRAIN_STEP || kind == AMP_PROGRAM_MICRO_STEP || kind == AMP_PROGRAM_APPLY_STEP;
    if (!steps) return amp_check_fail(c, "buffer %s is kept, but this program is no step", b->name);
    return AMP_OK;
}

/* Of what was rounded in f16: rows of f32, of an op whose dtype was decided. */
static amp_status check_look_buffer(const Check *c, const amp_model_buffer *b) {
    if (b->layout == AMP_LAYOUT_ROWS && b->storage == AMP_DT_F32 && b->dtype == AMP_DT_F32 && b->place <= 1 &&
        amp_check_index(b->index, c->m->decision_count))
        return AMP_OK;
    return amp_check_fail(c, "buffer %s is looked at, but has no rows of f32 of a decided op", b->name);
}

static amp_status (*const buffer_checks[])(const Check *, const amp_model_buffer *) = {
    [AMP_BUFFER_TEMP] = check_temp_buffer,   [AMP_BUFFER_FLAG] = check_flag_buffer,
    [AMP_BUFFER_INPUT] = check_input_buffer, [AMP_BUFFER_OUTPUT] = check_output_buffer,
    [AMP_BUFFER_STATE] = check_state_buffer, [AMP_BUFFER_WATCH] = check_watch_buffer,
    [AMP_BUFFER_LOOK] = check_look_buffer,
};

/* Some of a last dimension of constant size. */
static bool padding_fits(const Check *c, const amp_model_buffer *b) {
    const amp_model_dim *last = b->rank ? &b->dims[b->rank - 1] : NULL;
    const bool can_have = b->kind == AMP_BUFFER_TEMP || b->kind == AMP_BUFFER_STATE;
    return c->m->owner && can_have && last && !last->of_n && b->padding < last->mul / last->div;
}

static amp_status check_buffer(Check *c, int32_t index) {
    const amp_model_buffer *b = &c->program->buffers[index];
    if (!b->name) return amp_check_fail(c, "buffer %d has no name", index);
    if (b->kind > AMP_BUFFER_LOOK || b->layout > AMP_LAYOUT_PAIRS_T || !is_dtype(b->dtype) || !is_dtype(b->storage))
        return amp_check_fail(c, "buffer %s: unknown kind, type or layout", b->name);
    if (!amp_check_dim(c, &b->rows) || !amp_check_dim(c, &b->cols))
        return amp_check_fail(c, "buffer %s: its shape is damaged", b->name);
    if ((b->rank && !b->dims) || !check_dims(c, b->dims, b->rank) || !same_elements(c, b->dims, b->rank, b))
        return amp_check_fail(c, "buffer %s: its dimensions are not its rows and columns", b->name);
    const bool has_index = b->kind == AMP_BUFFER_INPUT || b->kind == AMP_BUFFER_STATE || b->kind == AMP_BUFFER_LOOK;
    if (!has_index && b->index != AMP_MODEL_NONE)
        return amp_check_fail(c, "buffer %s is no input and no state, but has the index of one", b->name);
    if (b->kind != AMP_BUFFER_TEMP && b->renamed)
        return amp_check_fail(c, "buffer %s is no temporary, but renamed", b->name);
    if (b->part && (b->kind != AMP_BUFFER_TEMP || !b->padding || b->part - 1 > b->padding))
        return amp_check_fail(c, "buffer %s is no part of its rows", b->name);
    if (b->padding && !padding_fits(c, b)) return amp_check_fail(c, "buffer %s: its padding is damaged", b->name);
    if (c->m->owner) AMP_TRY(amp_check_cuda_buffer(c, b));
    return buffer_checks[b->kind](c, b);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static amp_status check_result(Check *c, int32_t index) {
    const amp_model_result *r = &c->program->results[index];
    if (!amp_check_index(r->buffer, c->program->buffer_count))
        return amp_check_fail(c, "result %s is no buffer", r->name);
    if (!is_dtype(r->dtype) || !check_dims(c, r->dims, r->rank) ||
        !same_elements(c, r->dims, r->rank, &c->program->buffers[r->buffer]) ||
        (r->hwio &&
         (!hwio_fits(r->hwio, r->rank, r->dims[1].mul) || r->kind != AMP_RESULT_GRADIENT || r->dtype != AMP_DT_F32)))
        return amp_check_fail(c, "result %s does not fit its buffer", r->name);
    if (r->index < AMP_MODEL_NONE || (r->kind == AMP_RESULT_GRADIENT && r->index >= c->m->state_count))
        return amp_check_fail(c, "result %s is of no state or train block", r->name);
    return AMP_OK;
}

static amp_status check_program(Check *c, const amp_program *p) {
    c->program = p;
    for (int32_t i = 0; i < p->buffer_count; i++) AMP_TRY(check_buffer(c, i));
    for (int32_t i = 0; i < p->kernel_count; i++)
        AMP_TRY(c->m->owner ? amp_check_cuda_kernel(c, i) : amp_check_kernel(c, i));
    if (p->result_count) AMP_TRY(check_names(c, "result", &p->results->name, p->result_count, sizeof *p->results));
    for (int32_t i = 0; i < p->result_count; i++) AMP_TRY(check_result(c, i));
    AMP_TRY(amp_check_use(c));
    c->program = NULL;
    return AMP_OK;
}

static bool has_scalar_loss(const amp_program *p) {
    int32_t i = amp_program_result(p, AMP_RESULT_LOSS);
    return i >= 0 && p->results[i].rank == 0;
}

/* What the runtime reads from a training step and from an evaluation. */
static amp_status check_training(Check *c) {
    static const uint32_t with_loss[] = {AMP_PROGRAM_TRAIN_STEP, AMP_PROGRAM_MICRO_STEP, AMP_PROGRAM_EVAL,
                                         AMP_PROGRAM_EVAL_FP32};
    const amp_model *m = c->m;
    for (size_t i = 0; i < sizeof with_loss / sizeof *with_loss; i++) {
        const amp_program *p = amp_model_program_of(m, with_loss[i]);
        if (p && !has_scalar_loss(p)) return amp_check_fail(c, "%s has no result loss", p->name);
    }
    if (m->desc.accumulate < 0)
        return amp_check_fail(c, "a step has %lld micro-batches", (long long)m->desc.accumulate);
    const bool divided = m->desc.accumulate > 1 || m->desc.collectives.count;
    if (!divided || !amp_model_program_of(m, AMP_PROGRAM_MICRO_STEP)) return AMP_OK;
    if (!amp_model_program_of(m, AMP_PROGRAM_APPLY_STEP)) return amp_check_fail(c, "micro_step has no apply_step");
    if (amp_model_counter(m, AMP_COUNTER_MICRO) < 0) return amp_check_fail(c, "micro_step has no counter micro");
    return AMP_OK;
}

static amp_status check_decisions(const Check *c) {
    for (int32_t i = 0; i < c->m->decision_count; i++) {
        const amp_model_decision *d = &c->m->decisions[i];
        if (!d->path || !d->op || !d->reason || !d->reason->rule || !d->reason->text)
            return amp_check_fail(c, "decision %d has no path, op, rule or reason", i);
    }
    return AMP_OK;
}

/* ---- train blocks and groups ------------------------------------------------------------------------------------- */

static bool is_number_of(uint32_t number, int32_t count) { return number <= (uint32_t)count; }

static bool group_fits(const Check *c, const amp_model_state *s, uint32_t number, uint32_t sets) {
    const amp_model *m = c->m;
    if (!number) return true;
    if (!is_number_of(number, m->group_count)) return false;
    const amp_model_group *g = &m->groups[number - 1];
    return g->sets & sets && g->train_block + 1 == s->train_block;
}

static amp_status check_train_blocks(const Check *c) {
    const amp_model *m = c->m;
    for (int32_t i = 0; i < m->train_count; i++)
        if (!m->trains[i].optimizer) return amp_check_fail(c, "train block %d has no optimizer", i);
    for (int32_t i = 0; i < m->group_count; i++)
        if (!m->groups[i].pattern || m->groups[i].train_block >= (uint32_t)m->train_count ||
            !m->groups[i].optimizer != !(m->groups[i].sets & AMP_GROUP_OPTIMIZER))
            return amp_check_fail(c, "group %d has no pattern, no train block or no optimizer", i);
    for (int32_t i = 0; i < m->state_count && !m->owner; i++) {
        const amp_model_state *s = &m->states[i];
        if (!is_number_of(s->train_block, m->train_count) || !group_fits(c, s, s->lr_scale_group, AMP_GROUP_LR_SCALE) ||
            !group_fits(c, s, s->weight_decay_group, AMP_GROUP_WEIGHT_DECAY) ||
            !group_fits(c, s, s->frozen_group, AMP_GROUP_FROZEN) ||
            !group_fits(c, s, s->optimizer_group, AMP_GROUP_OPTIMIZER))
            return amp_check_fail(c, "state %s: its train block or one of its groups is none of the model's", s->name);
    }
    return AMP_OK;
}

static void find_counters(amp_model *m) {
    for (size_t i = 0; i < sizeof m->counters / sizeof *m->counters; i++) m->counters[i] = -1;
    for (int32_t i = m->state_count; i-- > 0;)
        if (m->states[i].counter <= AMP_COUNTER_STATES_KEPT && m->states[i].counter_block == AMP_MODEL_NONE)
            m->counters[m->states[i].counter] = i;
}

static void find_inputs(amp_program *p) {
    for (int32_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].kind == AMP_BUFFER_INPUT) p->input_end = i + 1;
}

amp_status amp_model_check(amp_model *model, const char *where, amp_error *err) {
    Check c = {.m = model, .where = where, .err = err};
    model->batch_multiple = 1;
    find_counters(model);
    AMP_TRY(check_strings(&c));
    AMP_TRY(check_length(&c));
    AMP_TRY(check_decisions(&c));
    if (model->state_count) AMP_TRY(check_states(&c));
    if (model->all_input_count) AMP_TRY(check_inputs(&c));
    if (model->program_count)
        AMP_TRY(check_names(&c, "program", &model->programs->name, model->program_count, sizeof *model->programs));
    for (int32_t i = 0; i < model->program_count; i++) AMP_TRY(check_program(&c, &model->programs[i]));
    for (int32_t i = 0; i < model->program_count; i++) find_inputs(&model->programs[i]);
    AMP_TRY(check_training(&c));
    AMP_TRY(check_train_blocks(&c));
    AMP_TRY(amp_check_collectives(&c));
    return model->owner ? amp_check_cuda(&c) : AMP_OK;
}
