/* cpu_sums.c: products that are added up as tensor cores of a device do: what prelude/device_sums.h is told of one.
 *
 *     DeviceTile sums;
 *     const DeviceProduct product = {.m = .., .a = {..}, .b = {..}};
 *     ...                                                                  a call that makes the sums
 *
 * The kernel makes each tile of the result itself: to the runtime it is a tile kernel.
 */
#include "codegen/cpu/cpu_kernel.h"
#include "ir/words.h"
#include "targets/target.h"

/* ---- architectures ----------------------------------------------------------------------------------------------- */

typedef struct Device {
    int block; /* elements of 16 bits that are added at once */
    int bits;  /* binary places that are kept below the largest term */
} Device;
static const Device devices[SUMS_SM_90 + 1] = {[SUMS_SM_80] = {8, 24}, [SUMS_SM_90] = {16, 25}};

void cpu_put_sums_prelude(const Module *m, Text *out) {
    const Device *d = &devices[m->sums];
    text_printf(out, "\n/* ---- sums as those of %s ---- */\n\nenum { DEVICE_BLOCK = %d, DEVICE_BITS = %d };\n\n%s",
                ir_sums_names[m->sums], d->block, d->bits, cpu_sums_prelude);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Along k, |count| elements |inner| apart; then |line| from one line to the next.  Written in terms of n. */
static void put_line(Emitter *e, char name, int operand, int64_t offset, const char *line, const char *count,
                     const char *inner) {
    emit_line(e, ".%c = {.operand = %d, .offset = %lld, .line = %s, .per = %s, .run = %s, .outer = 0, .inner = %s,",
              name, operand, (long long)offset, line, count, count, inner);
}

/* |per| places for each pixel or tap, the first |run| of them in memory; taps are |outer| apart. */
static void put_runs(Emitter *e, char name, int operand, int64_t line, int64_t per, int64_t run, int64_t outer,
                     int64_t inner) {
    emit_line(e, ".%c = {.operand = %d, .line = %lld, .per = %lld, .run = %lld, .outer = %lld, .inner = %lld,", name,
              operand, (long long)line, (long long)per, (long long)run, (long long)outer, (long long)inner);
}

/* ---- products of matrices ---------------------------------------------------------------------------------------- */

static void put_sizes(Emitter *e, const char *m, const char *n, Dim k, int64_t parts) {
    Arena *a = e->w->arena;
    const char *count = emit_dim(a, k);
    const char *part = parts == 1 ? count
                                  : arena_printf(a, "((%s + %lld) / %lld + 63) / 64 * 64", count, (long long)parts - 1,
                                                 (long long)parts);
    emit_line(e, ".m = %s, .n = %s, .k = %s, .part = %s,", m, n, count, part);
}

static void put_contract(Emitter *e, const Op *o, int a, int b) {
    Walk *w = e->w;
    const bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    const Dim k = ir_product_terms(w->f, o);
    const char *count = emit_dim(w->arena, k);
    const char *m = emit_dim(w->arena, w->rows), *n = emit_dim(w->arena, w->cols);
    put_sizes(e, m, n, k, target_parts(&target_cuda, w->f, o));
    put_line(e, 'a', a, 0, ta ? "1" : count, count, ta ? m : "1");
    emit_line(e, "},");
    put_line(e, 'b', b, 0, tb ? count : "1", count, tb ? "1" : n);
    emit_line(e, "},");
}

static amp_status put_batch_operand(Emitter *e, const Op *o, int i, int operand, Dim k) {
    Walk *w = e->w;
    Strided at;
    Dim pitch;
    bool turned;
    if (!walk_strided(w, o->in[i], &at) || !ir_strided_matrix(&at, &turned, &pitch))
        return amp_fail(e->err, AMP_INTERNAL, "%s: operand %c has no strides", walk_name(w), "AB"[i]);
    const bool k_inner = i == (int)(ir_attr(o, i ? "tb" : "ta")->b != turned);
    const char *along = emit_dim(w->arena, pitch), *count = emit_dim(w->arena, k);
    put_line(e, "ab"[i], operand, at.offset, k_inner ? along : "1", count, k_inner ? "1" : along);
    Text strides;
    text_init(&strides, w->arena);
    for (int d = 0; d < at.shape.rank - 2; d++)
        text_printf(&strides, "%s%s", d ? ", " : "", emit_dim(w->arena, at.stride[d]));
    emit_line(e, "      .stride = {%s}},", text_str(&strides));
    return AMP_OK;
}

static amp_status put_batch(Emitter *e, const Op *o, int a, int b) {
    Walk *w = e->w;
    const Shape *x = ir_shape(w->f, o->in[0]), *y = ir_shape(w->f, o->in[1]);
    const bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b, merged = ir_attr(o, "merged")->b;
    const Dim k = ir_product_terms(w->f, o);
    Text dims;
    text_init(&dims, w->arena);
    for (int i = 0; i < x->rank - 2; i++) text_printf(&dims, "%s%s", i ? ", " : "", emit_dim(w->arena, x->d[i]));
    put_sizes(e, emit_dim(w->arena, x->d[x->rank - (ta ? 1 : 2)]), emit_dim(w->arena, y->d[y->rank - (tb ? 2 : 1)]), k,
              1);
    emit_line(e, ".rank = %d, .merged = %d, .dims = {%s},", x->rank - 2, merged, text_str(&dims));
    AMP_TRY(put_batch_operand(e, o, 0, a, k));
    return put_batch_operand(e, o, 1, b, k);
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* Places of a pixel in CUDA's memory, where windows are read: zeros fill them (passes/layout/pitch.c). */
static int64_t places_of_pixel(const Module *m, const Windows *g, int64_t channels) {
    const bool is_matrix =
        g->kh == 1 && g->kw == 1 && g->stride[0] == 1 && g->stride[1] == 1 && !g->padding[0] && !g->padding[1];
    const int64_t pitch = is_matrix ? 0 : target_pitch(&target_cuda, m, channels, READ_AS_PIXELS);
    return pitch ? pitch : channels;
}

static void put_windows(Emitter *e, const Op *o, const Windows *g) {
    const bool back = o->code == OP_conv_data;
    emit_line(e,
              ".windows = {.are = 1, .back = %d, .down = %d, .height = %lld, .width = %lld, .out_height = %lld, "
              ".out_width = %lld,",
              back, o->code == OP_conv_weight, (long long)(back ? g->oh : g->h), (long long)(back ? g->ow : g->w),
              (long long)(back ? g->h : g->oh), (long long)(back ? g->w : g->ow));
    emit_line(e,
              "            .kernel = {%lld, %lld}, .stride = {%lld, %lld}, .padding = {%lld, %lld}, "
              ".dilation = {%lld, %lld}, .tap_step = {%lld, %lld}},",
              (long long)g->kh, (long long)g->kw, (long long)g->stride[0], (long long)g->stride[1],
              (long long)g->padding[0], (long long)g->padding[1], (long long)g->dilation[0], (long long)g->dilation[1],
              back ? (long long)ir_tap_step(g, 0) : 1, back ? (long long)ir_tap_step(g, 1) : 1);
}

static void put_convolution(Emitter *e, const Op *o, int a, int b) {
    Walk *w = e->w;
    const Windows g = ir_windows(w->f, o);
    const bool by_taps = o->code == OP_conv_data && ir_attr(o, "tb")->b; /* which have no gaps */
    const int64_t taps = g.kh * g.kw, channels = o->code == OP_conv_data ? g.oc : g.c;
    const int64_t places =
        by_taps || o->code == OP_conv_weight ? channels : places_of_pixel(w->f->module, &g, channels);
    const Dim k = o->code == OP_conv_weight ? ir_product_terms(w->f, o) : dim_const(taps * places);
    put_sizes(e, emit_dim(w->arena, w->rows), emit_dim(w->arena, w->cols), k, target_parts(&target_cuda, w->f, o));
    put_windows(e, o, &g);
    put_runs(e, 'a', a, 0, places, channels, 0, 0);
    emit_line(e, "},");
    if (o->code == OP_conv_weight) put_line(e, 'b', b, 0, "1", emit_dim(w->arena, k), emit_dim(w->arena, w->cols));
    else if (o->code == OP_conv) put_runs(e, 'b', b, 1, places, channels, channels * g.oc, g.oc);
    else if (by_taps) put_runs(e, 'b', b, g.oc, g.oc, g.oc, g.c * g.oc, 1);
    else put_runs(e, 'b', b, 1, places, channels, channels * g.c, g.c);
    emit_line(e, "},");
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

const Op *cpu_product_as_device(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (target_follows_device(w->f, walk_op(w, i))) return walk_op(w, i);
    return NULL;
}

static amp_status put_product(Emitter *e, const Op *o, int a, int b) {
    if (o->code == OP_batch_contract) return put_batch(e, o, a, b);
    if (o->code == OP_contract) put_contract(e, o, a, b);
    else put_convolution(e, o, a, b);
    return AMP_OK;
}

amp_status cpu_declare_sums(CpuKernel *ck) {
    Emitter *e = &ck->e;
    const Op *o = cpu_product_as_device(ck->w);
    if (!o) return AMP_OK;
    const int a = cpu_product_operand(ck->w, o, 0), b = cpu_product_operand(ck->w, o, 1);
    if (a < 0 || b < 0)
        return amp_fail(e->err, AMP_INTERNAL, "%s: operand %c is in no buffer that products read", walk_name(ck->w),
                        a < 0 ? 'A' : 'B');
    emit_line(e, "DeviceTile sums;");
    emit_open(e, "const DeviceProduct product =");
    AMP_TRY(put_product(e, o, a, b));
    e->indent--;
    emit_line(e, "};");
    emit_line(e, "device_sums_%s(sums, a, &product, COLS);", amp_dtype_name(ir_dtype(ck->w->f, o->in[0])));
    e->sum = "load_f32(&sums[r][c])";
    return AMP_OK;
}
