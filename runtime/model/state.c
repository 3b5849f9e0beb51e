/* state.c: see state.h. */
#include "runtime/model/state.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "base/hash.h"
#include "base/names.h"
#include "base/random.h"
#include "base/rounding.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/messages.h"

typedef struct Matrix {
    int64_t rows, cols;
} Matrix;

static Matrix matrix_of(const amp_model_state *s) {
    Matrix m;
    amp_state_matrix(s, &m.rows, &m.cols);
    return m;
}

bool amp_state_is_param(const amp_model_state *s) { return s->role == AMP_STATE_PARAM || s->role == AMP_STATE_BUFFER; }

bool amp_state_is_in_rows(const amp_model_state *s) { return s->layout == AMP_LAYOUT_ROWS && !s->hwio; }

bool amp_state_lives_in_params(const amp_model *model, int32_t index, const void *ctx) {
    (void)ctx;
    return amp_state_is_param(&model->states[index]) || model->states[index].role == AMP_STATE_DERIVED;
}

/* Cannot overflow: checked when the model was loaded. */
size_t amp_state_bytes(const amp_model_state *s) {
    Matrix m = matrix_of(s);
    size_t bytes = 0;
    return amp_layout_bytes(s->layout, s->storage, m.rows, m.cols, &bytes) ? bytes : 0;
}

size_t amp_state_content_bytes(const amp_model_state *s) {
    if (s->layout != AMP_LAYOUT_ROWS) return amp_state_bytes(s);
    return (size_t)amp_model_state_elements(s) * amp_storage_size(s->storage);
}

bool amp_state_stored_alike(const amp_model_state *a, const amp_model_state *b) {
    return a->storage == b->storage && a->layout == b->layout && a->hwio == b->hwio;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static amp_state_block block_of(const amp_model *model, const amp_state_block *blocks, int32_t state) {
    if (blocks) return blocks[state];
    if (model->blocks) return model->blocks[state];
    return (amp_state_block){state, 0, amp_state_bytes(&model->states[state])};
}

static void join(amp_model *m, const amp_model_collective *c) {
    const int32_t first = c->states[0];
    size_t bytes = 0;
    for (uint32_t i = 0; i < c->state_count; i++) {
        const int32_t state = c->states[i];
        const bool shared = amp_collective_is_shared(c);
        const size_t at = shared ? (size_t)amp_collective_place(m, c, i) * amp_storage_size(c->dtype) : bytes;
        m->blocks[state] = (amp_state_block){.first = first, .at = (int64_t)at};
        bytes += amp_state_bytes(&m->states[state]);
    }
    if (amp_collective_is_shared(c)) bytes = amp_collective_block_bytes(m, c);
    for (int32_t i = 0; i < m->state_count; i++)
        if (m->blocks[i].first == first) m->blocks[i].bytes = bytes;
}

amp_status amp_states_join(amp_model *m, amp_error *err) {
    if (!m->collective_count) return AMP_OK;
    amp_state_block *blocks = amp_alloc_zeroed(&m->allocator, (size_t)m->state_count * sizeof *blocks);
    if (!blocks) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its states", m->desc.name);
    for (int32_t i = 0; i < m->state_count; i++) blocks[i] = block_of(m, NULL, i);
    m->blocks = blocks;
    for (int32_t i = 0; i < m->collective_count; i++)
        if (m->collectives[i].op != AMP_EXCHANGE_ALL_GATHER) join(m, &m->collectives[i]);
    return AMP_OK;
}

static amp_status alloc_state(const amp_model *model, const amp_state_block *blocks, int32_t i,
                              const amp_allocator *allocator, void **states, amp_error *err) {
    const amp_state_block b = block_of(model, blocks, i);
    if (!b.bytes) return AMP_OK;
    if (!states[b.first]) states[b.first] = amp_alloc_zeroed_aligned(allocator, b.bytes, AMP_MEMORY_ALIGN);
    if (!states[b.first])
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the %zu bytes of %s", model->desc.name, b.bytes,
                        model->states[i].name);
    states[i] = (char *)states[b.first] + b.at;
    return AMP_OK;
}

amp_status amp_states_alloc(const amp_model *model, const amp_state_block *blocks, amp_state_filter *wanted,
                            const void *ctx, const amp_allocator *allocator, void ***out, amp_error *err) {
    void **states = amp_alloc_zeroed(allocator, (size_t)model->state_count * sizeof *states);
    amp_status status = AMP_OK;
    *out = NULL;
    if (!states) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its states", model->desc.name);
    for (int32_t i = 0; i < model->state_count && !status; i++)
        if (wanted(model, i, ctx)) status = alloc_state(model, blocks, i, allocator, states, err);
    if (status) amp_states_free(model, blocks, states, allocator);
    else *out = states;
    return status;
}

size_t amp_state_block_bytes(const amp_model *model, const amp_state_block *blocks, int32_t i) {
    const amp_state_block b = block_of(model, blocks, i);
    return b.first == i ? b.bytes : 0;
}

void amp_states_plan(const amp_model *model, const amp_state_block *blocks, amp_state_filter *wanted, const void *ctx,
                     amp_counted_allocator *allocator) {
    amp_counted_allocator_plan(allocator, (size_t)model->state_count * sizeof(void *));
    for (int32_t i = 0; i < model->state_count; i++) {
        const size_t bytes = amp_state_block_bytes(model, blocks, i);
        if (wanted(model, i, ctx) && bytes) amp_counted_allocator_plan(allocator, bytes);
    }
}

void amp_states_free(const amp_model *model, const amp_state_block *blocks, void **states,
                     const amp_allocator *allocator) {
    if (!states) return;
    for (int32_t i = 0; i < model->state_count; i++) {
        const amp_state_block b = block_of(model, blocks, i);
        if (b.first == i && states[i]) amp_free_aligned(allocator, (char *)states[i] - b.at, b.bytes, AMP_MEMORY_ALIGN);
    }
    amp_free(allocator, states, (size_t)model->state_count * sizeof *states);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

void amp_state_set_f32(const amp_model_state *s, void *memory, const float *from) {
    Matrix m = matrix_of(s);
    if (s->hwio) {
        memset(memory, 0, amp_state_bytes(s)); /* padding */
        amp_state_put_f32(s, memory, false, 0, (size_t)(m.rows * m.cols), from);
        return;
    }
    amp_layout_from_f32(memory, s->layout, s->storage, m.rows, m.cols, from);
}

void amp_state_get_f32(const amp_model_state *s, const void *memory, float *to) {
    Matrix m = matrix_of(s);
    if (s->hwio) {
        amp_state_take(s, memory, false, 0, (size_t)(m.rows * m.cols), to, AMP_DT_F32);
        return;
    }
    amp_layout_to_f32(memory, s->layout, s->storage, m.rows, m.cols, to);
}

/* Walks over elements in the order of a file. */
typedef struct Walk {
    const amp_model_state *state;
    Matrix m;
    bool turned;
    int64_t outer, inner, at;
} Walk;

static Walk walk_from(const amp_model_state *s, bool turned, size_t from) {
    Matrix m = matrix_of(s);
    int64_t length = turned ? m.rows : m.cols;
    return (Walk){s, m, turned, (int64_t)from / length, (int64_t)from % length, (int64_t)from};
}

static int64_t next_hwio_index(Walk *w) {
    const int64_t *d = w->state->dims;
    int64_t row, col;
    amp_hwio_place(d[1], d[2] * d[3], w->at++, &row, &col);
    return amp_layout_index(w->state->layout, w->m.rows, w->m.cols, row, col);
}

static int64_t next_index(Walk *w) {
    const int64_t pixels = w->state->hwio;
    if (pixels && w->state->rank == 4) return next_hwio_index(w);
    int64_t row = w->turned ? w->inner : w->outer, col = w->turned ? w->outer : w->inner;
    if (pixels) col = amp_turned_column(w->m.cols / pixels, pixels, col);
    if (++w->inner == (w->turned ? w->m.rows : w->m.cols)) w->inner = 0, w->outer++;
    return amp_layout_index(w->state->layout, w->m.rows, w->m.cols, row, col);
}

void amp_state_put_f32(const amp_model_state *s, void *memory, bool turned, size_t from, size_t count,
                       const float *values) {
    Walk w = walk_from(s, turned, from);
    for (size_t i = 0; i < count; i++) amp_store_element(memory, s->storage, next_index(&w), values[i]);
}

void amp_state_take(const amp_model_state *s, const void *memory, bool turned, size_t from, size_t count, void *values,
                    amp_dtype dtype) {
    Walk w = walk_from(s, turned, from);
    for (size_t i = 0; i < count; i++)
        amp_store_element(values, dtype, (int64_t)i, amp_load_element(memory, s->storage, next_index(&w)));
}

amp_status amp_state_check_range(const amp_model_state *s, const float *values, size_t count, size_t from,
                                 amp_error *err) {
    if (s->storage != AMP_DT_F16) return AMP_OK; /* the others have the range of f32 */
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]) && !isfinite(amp_round_f16(values[i])))
            return amp_fail(err, AMP_MISMATCH,
                            "parameter %s: element %zu is %g, but it is stored in f16, which ends at 65504; compile "
                            "the model with masters = bf16 or f32 in its precision block",
                            s->name, from + i, (double)values[i]);
    return AMP_OK;
}

size_t amp_states_largest(const amp_model *model) {
    size_t largest = 1;
    for (int32_t i = 0; i < model->state_count; i++) {
        size_t count = (size_t)amp_model_state_elements(&model->states[i]);
        if (count > largest) largest = count;
    }
    return largest;
}

amp_status amp_states_initialise(const amp_model *model, void *const *states, uint64_t seed,
                                 const amp_allocator *allocator, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    size_t bytes = amp_states_largest(model) * sizeof(float);
    float *rows = amp_alloc_aligned(allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to initialise its states", model->desc.name);
    amp_status status = AMP_OK;
    for (int32_t i = 0; !status && i < model->state_count; i++) {
        const amp_model_state *s = &model->states[i];
        bool later = s->role == AMP_STATE_DERIVED || s->role == AMP_STATE_MOMENT;
        if (!states[i] || later || (!s->init && !s->counter)) continue;
        if (s->counter) {
            amp_store_element(states[i], s->storage, 0, amp_initial_scalar(s));
            continue;
        }
        amp_initialise(s, seed, rows);
        status = amp_state_check_range(s, rows, (size_t)amp_model_state_elements(s), 0, err);
        amp_state_set_f32(s, states[i], rows);
    }
    amp_free_aligned(allocator, rows, bytes, AMP_MEMORY_ALIGN);
    return status;
}

amp_status amp_state_check_count(const amp_model_state *s, const char *what, size_t count, amp_error *err) {
    size_t elements = (size_t)amp_model_state_elements(s);
    if (count == elements) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s %s: has %zu elements, the call says %zu", what, s->name, elements,
                    count);
}

/* ---- first values ------------------------------------------------------------------------------------------------ */

/* ---- one number -------------------------------------------------------------------------------------------------- */

/* In (0, 1): 32 random bits and a half. */
static double unit_open(uint32_t word) { return ((double)word + 0.5) * 0x1p-32; }

/* ln x, 0 < x < 1, from ln(m 2^e) = e ln 2 + 2 artanh((m - 1) / (m + 1)), m in [sqrt 1/2, sqrt 2): the series ends
 * below 2^-56. */
static double log_of(double x) {
    enum { LAST = 23 };
    int exponent = 0;
    for (; x < 0.70710678118654752; x *= 2) exponent--;
    double s = (x - 1) / (x + 1), square = s * s, sum = 0;
    for (int i = LAST; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
    return exponent * 0.69314718055994531 + 2 * s * sum;
}

static double polynomial(const double *coefficient, double x) {
    double sum = 0;
    for (int i = 7; i >= 0; i--) sum = sum * x + coefficient[i];
    return sum;
}

/* The inverse of the standard normal distribution: M. J. Wichura, "Algorithm AS 241: the percentage points of the
 * normal distribution", Applied Statistics 37 (1988), PPND16; relative error about 1e-16.  Its third range (p < 1e-11)
 * cannot come from 32 bits. */
static double normal_quantile(double p) {
    static const double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                               1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                               3.3430575583588128105e4, 2.5090809287301226727e3};
    static const double b[] = {1.0,
                               4.2313330701600911252e1,
                               6.8718700749205790830e2,
                               5.3941960214247511077e3,
                               2.1213794301586595867e4,
                               3.9307895800092710610e4,
                               2.8729085735721942674e4,
                               5.2264952788528545610e3};
    static const double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                               3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1.0,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    double r = sqrt(-log_of(q < 0 ? p : 1 - p)) - 1.6, x = polynomial(c, r) / polynomial(d, r);
    return q < 0 ? -x : x;
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

typedef struct Distribution {
    enum { CONSTANT, UNIFORM, NORMAL, TRUNCATED } kind;
    double a, b; /* the value; low and high; mean and standard deviation */
} Distribution;

/* Normal numbers further out than this many standard deviations are not drawn by trunc_normal. */
static const double TRUNCATION = 2;
static const double NORMAL_BELOW_TRUNCATION = 0.022750131948179207; /* distribution function at -TRUNCATION */

static double draw(const Distribution *d, uint32_t word) {
    double u = unit_open(word);
    switch (d->kind) {
    case UNIFORM: return d->a + (d->b - d->a) * amp_random_unit(word);
    case NORMAL: return d->a + d->b * normal_quantile(u);
    case TRUNCATED: {
        double p = NORMAL_BELOW_TRUNCATION + u * (1 - 2 * NORMAL_BELOW_TRUNCATION);
        double x = normal_quantile(p);
        return d->a + d->b * (x < -TRUNCATION ? -TRUNCATION : x > TRUNCATION ? TRUNCATION : x);
    }
    default: return d->a;
    }
}

/* ---- the initialisers of the language ---------------------------------------------------------------------------- */

typedef struct Fans {
    double in, out;
} Fans;

/* torch.nn.init._calculate_fan_in_and_fan_out: [out, in, window...] */
static Fans fans_of(const amp_model_state *s) {
    double window = 1;
    for (uint32_t i = 2; i < s->rank; i++) window *= (double)s->dims[i];
    return (Fans){(double)s->dims[1] * window, (double)s->dims[0] * window};
}

static Distribution zeros(const amp_model_state *s) {
    (void)s;
    return (Distribution){CONSTANT, 0, 0};
}

static Distribution ones(const amp_model_state *s) {
    (void)s;
    return (Distribution){CONSTANT, 1, 0};
}

static Distribution constant(const amp_model_state *s) { return (Distribution){CONSTANT, s->init_args[0], 0}; }

/* (low, high) */
static Distribution uniform(const amp_model_state *s) {
    return (Distribution){UNIFORM, s->init_args[0], s->init_args[1]};
}

/* (std, mean = 0) */
static Distribution normal(const amp_model_state *s) {
    return (Distribution){NORMAL, s->init_arg_count > 1 ? s->init_args[1] : 0, s->init_args[0]};
}

static Distribution trunc_normal(const amp_model_state *s) { return (Distribution){TRUNCATED, 0, s->init_args[0]}; }

/* The gain of leaky ReLU with slope |a|: sqrt(2 / (1 + a^2)). */
static double leaky_gain(double a) { return sqrt(2 / (1 + a * a)); }

/* (a = 0): bound = gain sqrt(3 / fan_in).  He et al., "Delving deep into rectifiers", 2015. */
static Distribution kaiming_uniform(const amp_model_state *s) {
    double bound = leaky_gain(s->init_arg_count ? s->init_args[0] : 0) * sqrt(3 / fans_of(s).in);
    return (Distribution){UNIFORM, -bound, bound};
}

static Distribution kaiming_normal(const amp_model_state *s) {
    return (Distribution){NORMAL, 0, leaky_gain(0) / sqrt(fans_of(s).in)};
}

/* Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010. */
static Distribution xavier_uniform(const amp_model_state *s) {
    Fans f = fans_of(s);
    double bound = sqrt(6 / (f.in + f.out));
    return (Distribution){UNIFORM, -bound, bound};
}

static Distribution xavier_normal(const amp_model_state *s) {
    Fans f = fans_of(s);
    return (Distribution){NORMAL, 0, sqrt(2 / (f.in + f.out))};
}

static Distribution (*const distributions[INITIALISER_KINDS])(const amp_model_state *) = {
#define INITIALISER(name, ...) [INIT_##name] = name,
#include "base/names.def"
};

/* NULL when there is none; without a name, zeros. */
static const Initialiser *find(const char *name) {
    return name ? amp_initialiser(name) : &amp_initialisers[INIT_zeros];
}

amp_status amp_initialiser_check(const amp_model_state *s, amp_error *err) {
    const Initialiser *init = find(s->init);
    if (!init) return amp_fail(err, AMP_UNSUPPORTED, "unknown initialiser %s", s->init);
    if (s->init_arg_count < init->args_min || s->init_arg_count > init->args_max)
        return amp_fail(err, AMP_BAD_FILE, "initialiser %s with %u arguments", init->name, s->init_arg_count);
    if (s->rank < init->rank_min)
        return amp_fail(err, AMP_BAD_FILE, "initialiser %s needs a tensor of at least %u dimensions", init->name,
                        init->rank_min);
    return AMP_OK;
}

void amp_initialise(const amp_model_state *s, uint64_t seed, float *out) {
    Distribution d = distributions[find(s->init) - amp_initialisers](s);
    uint32_t path = amp_hash32(s->name);
    int64_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++) count *= s->dims[i];
    bool random = d.kind != CONSTANT;
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)draw(&d, random ? amp_random_u32(seed, path, 0, 0, (uint64_t)i) : 0);
}

double amp_initial_scalar(const amp_model_state *s) { return distributions[find(s->init) - amp_initialisers](s).a; }
