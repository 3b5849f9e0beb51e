/* targets.c: the targets, their table, and what is asked of a module's target (target.h). */
#include "targets/target.h"

#include <string.h>

#include "base/text.h"
#include "ir/strided.h"

/* ---- processors -------------------------------------------------------------------------------------------------- */

/* A panel would be mostly padding. */
static bool is_narrow(const Func *f, Val v) {
    const Shape *s = ir_shape(f, v);
    const Dim *last = s->rank ? &s->d[s->rank - 1] : NULL;
    return last && !dim_varies(*last) && last->mul < 32;
}

/* A state, or casts of one: it is packed once a step, not once a product. */
static bool is_weight(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); o && o->code == OP_cast; o = ir_def(f, v)) v = o->in[0];
    return ir_value(f, v)->kind == VAL_STATE;
}

/* Products read panels, pairs and their transposes: 32 x 32 tiles, in which 16-bit elements that are multiplied and
 * added together are neighbours.  Narrow operands are dense, and packed by the thread that reads them, but for B
 * transposed. */
static Form contract_form(const Func *f, const Op *o, int i) {
    /* by [operand][transposed][16 bits] */
    static const Layout layouts[2][2][2] = {
        {{LAYOUT_PANELS, LAYOUT_PANELS}, {LAYOUT_PANELS, LAYOUT_PAIRS}},
        {{LAYOUT_PANELS, LAYOUT_PAIRS}, {LAYOUT_PANELS_T, LAYOUT_PAIRS_T}},
    };
    bool sixteen = ir_dtype(f, o->in[i]) == AMP_DT_BF16, transposed = ir_attr(o, i ? "tb" : "ta")->b;
    bool dense = is_narrow(f, o->in[i]) && !(i == 1 && transposed) && !is_weight(f, o->in[i]);
    return (Form){dense ? LAYOUT_ROWS : layouts[i][transposed][sixteen], sixteen ? AMP_DT_BF16 : AMP_DT_F32};
}

static int64_t last_dim(const Func *f, Val v) {
    const Shape *s = ir_shape(f, v);
    return s->d[s->rank - 1].mul;
}

/* Images are stored in panels, or dense where a panel would be mostly padding; weights in panels, 16-bit ones in pairs
 * of neighbouring channels that are summed over, for which their number must be even; transposed where the op says. */
static Form convolution_form(const Func *f, const Op *o, int i) {
    bool weights = i == 1 && o->code != OP_conv_weight;
    bool in_pairs = o->code == OP_conv_weight || last_dim(f, o->in[0]) % 2 == 0;
    bool sixteen = ir_dtype(f, o->in[i]) == AMP_DT_BF16 && in_pairs;
    Form form = {LAYOUT_PANELS, sixteen ? AMP_DT_BF16 : AMP_DT_F32};
    if (weights && ir_attr(o, "groups")->i != 1) return form; /* which the runtime packs as it needs them */
    bool tb = o->code == OP_conv_data && ir_attr(o, "tb")->b;
    if (weights && sixteen) form.layout = tb ? LAYOUT_PAIRS_T : LAYOUT_PAIRS;
    else if (weights && tb) form.layout = LAYOUT_PANELS_T;
    if (!weights && is_narrow(f, o->in[i])) form.layout = LAYOUT_ROWS;
    return form;
}

/* In rows: what needs packing is packed by the thread that reads it. */
static Form batch_form(const Func *f, const Op *o, int i) {
    return (Form){LAYOUT_ROWS, ir_dtype(f, o->in[i]) == AMP_DT_BF16 ? AMP_DT_BF16 : AMP_DT_F32};
}

static Form cpu_product_form(const Func *f, const Op *o, int i) {
    if (o->code == OP_batch_contract) return batch_form(f, o, i);
    return o->code == OP_contract ? contract_form(f, o, i) : convolution_form(f, o, i);
}

static bool cpu_attends(Dtype factors) {
    (void)factors;
    return true;
}

const Target target_cpu = {
    .name = "cpu",
    .has_tiles = true,
    .reads_strides = true,
    .attends = cpu_attends,
    .product_form = cpu_product_form,
};

/* ---- processors, with the sums of a device ----------------------------------------------------------------------- */

/* Operands are exact in f32, and found in rows by their place. */
static Form as_device_form(const Func *f, const Op *o, int i) {
    if (target_follows_device(f, o)) return (Form){LAYOUT_ROWS, AMP_DT_F32};
    return cpu_product_form(f, o, i);
}

static bool as_device_attends(Dtype factors) { return factors == AMP_DT_F32; }

const Target target_cpu_as_device = {.name = "cpu",
                                     .has_tiles = true,
                                     .reads_strides = true,
                                     .attends = as_device_attends,
                                     .product_form = as_device_form};

bool target_follows_device(const Func *f, const Op *o) {
    if (target_of(f->module) != &target_cpu_as_device || !ir_is_product(o)) return false;
    if (ir_is_convolution(o) && ir_attr(o, "groups")->i != 1) return false;
    return ir_dtype(f, o->in[0]) != AMP_DT_F32;
}

/* ---- NVIDIA's GPUs (docs/design/cuda.md) ------------------------------------------------------------------------- */

/* Row-major, in the type that it has: tf32 alone has none of its own. */
static Form cuda_product_form(const Func *f, const Op *o, int i) {
    Dtype t = ir_dtype(f, o->in[i]);
    return (Form){LAYOUT_ROWS, t == AMP_DT_TF32 ? AMP_DT_F32 : t};
}

/* What tensor cores multiply. */
static bool cuda_attends(Dtype factors) {
    return factors == AMP_DT_F16 || factors == AMP_DT_BF16 || factors == AMP_DT_TF32;
}

const Target target_cuda = {
    .name = "cuda",
    .rounds_on_load = true,
    .reuses_operands = true,
    .reads_strides = true,
    .rounds_attention = true,
    .keeps_dropout = true,
    .attends = cuda_attends,
    .pitch_unit = 8, /* 16 bytes of f16 */
    .keeps_images = true,
    .carries_moves = true,
    .sum_blocks = 264, /* two for each multiprocessor of an H100 */
    .repeats_columns = true,
    .batches_updates = true,
    .largest_bucket = 64 << 20,
    .joins_kernels = true,
    .product_form = cuda_product_form,
};

/* ---- the table --------------------------------------------------------------------------------------------------- */

const Target *const targets[TARGET_COUNT] = {&target_cpu, &target_cuda};

const Target *target_find(const char *name) {
    for (int i = 0; i < TARGET_COUNT; i++)
        if (!name || !strcmp(targets[i]->name, name)) return targets[i];
    return NULL;
}

const Target *target_with_sums(const Target *t, const Module *m) {
    if (!t) t = targets[0];
    return t == &target_cpu && m->sums != SUMS_IEEE ? &target_cpu_as_device : t;
}

const Target *target_of(const Module *m) { return target_with_sums(target_find(m->target), m); }

void target_set(Module *m, const Target *t) {
    m->target = t == targets[0] ? NULL : t->name;
    if (m->target) m->sums = SUMS_IEEE;
}

const char *target_list(Arena *a) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < TARGET_COUNT; i++) text_printf(&t, "%s%s", i ? ", " : "", targets[i]->name);
    return text_str(&t);
}

Form target_product_form(const Func *f, const Op *product, int i) {
    return target_of(f->module)->product_form(f, product, i);
}

/* In rows: what products of tiles read in f32 or bf16, all else in its own type. */
Form target_attention_form(const Func *f, const Op *o, int i) {
    const AttentionOperands a = ir_attention_operands(f, o);
    const Dtype t = ir_dtype(f, o->in[i]);
    const bool factor = i == a.q || i == a.k || i == a.v || i == a.dy;
    if (factor && target_of(f->module)->has_tiles)
        return (Form){LAYOUT_ROWS, t == AMP_DT_BF16 ? AMP_DT_BF16 : AMP_DT_F32};
    return (Form){LAYOUT_ROWS, t == AMP_DT_TF32 ? AMP_DT_F32 : t};
}

bool target_attention_strides(const Func *f, const Op *o, int i) {
    const AttentionOperands a = ir_attention_operands(f, o);
    return i == a.q || i == a.k || i == a.v || i == a.dy || i == a.mask;
}

bool target_rounds_on_load(const Func *f, const Op *o) {
    if (o->code != OP_cast || !target_of(f->module)->rounds_on_load) return false;
    Dtype to = ir_dtype(f, o->out[0]);
    return ir_value(f, o->in[0])->kind == VAL_INPUT && ir_dtype(f, o->in[0]) == AMP_DT_F32 &&
           (to == AMP_DT_F16 || to == AMP_DT_BF16 || to == AMP_DT_TF32);
}

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/* Of rows that are shorter than LONG_ROW: whether `pad = true` makes them multiples of |unit|.  It does where they grow
 * to less than twice their length. */
static bool pads_short(const Module *m, int64_t cols, int64_t unit) {
    return m->pad && m->low != AMP_DT_F32 && round_up(cols, unit) < 2 * cols;
}

int64_t target_pitch(const Target *t, const Module *m, int64_t cols, RowReader by) {
    int64_t unit = t->pitch_unit;
    if (!unit || cols == 1) return 0;
    if (cols < LONG_ROW) {
        const int64_t whole = m->low == AMP_DT_TF32 ? unit / 2 : unit; /* 16 bytes */
        if (by == READ_BY_ANY) return 0;
        if (pads_short(m, cols, whole)) unit = whole;
        else if (by == READ_AS_PIXELS) unit /= 2; /* 8 bytes of f16, however few they are */
        else return 0;
    }
    return cols % unit ? round_up(cols, unit) : 0;
}

/* As many of a sample as it has chunks whose sums are added (passes/common). */
enum { FEW_ROWS = 16 };

bool target_repeats_columns(const Func *f, Dim rows) {
    return target_of(f->module)->repeats_columns && rows.n && rows.mul <= FEW_ROWS && rows.div == 1;
}

bool target_moves_on_load(const Func *f, const Op *o) {
    return ir_moves_by_stride(o) && target_of(f->module)->reads_strides;
}
