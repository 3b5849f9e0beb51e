/* pack_windows.c: how convolutions read their weights.
 *
 *     %t  = permute(%w; dims = (0, 1, 3, 2))        =>   %dx = conv_data(%dy, %w; tb = true)
 *     %dx = conv_data(%dy, %t)
 *
 * %w is what conv reads, [KH, KW, C, O].  On a target whose products read tiles, where C is a multiple of 32, a tap of
 * the transposed weights is some panels of them, so that the optimizer's kernel can write them as a copy of the weight
 * (weight_copies.c).  With groups, the runtime packs the weights itself, and reads conv's weights in any case.  If
 * everything is row-major, k runs along the lines of %w as well as down the lines of %t.
 */
#include "passes/common/common.h"
#include "targets/target.h"

enum { PANEL = 32, LEAST_GROUP = 4 /* channels: narrower ones are loops, but for depthwise ones */ };

static int64_t groups_of(const Op *o) { return ir_attr(o, "groups")->i; }

static bool permutes(const Op *o, const int *order, int count) {
    if (!o || o->code != OP_permute || ir_attr(o, "dims")->dims.count != count) return false;
    for (int i = 0; i < count; i++)
        if (ir_attr(o, "dims")->dims.at[i] != order[i]) return false;
    return true;
}

static Val before_reshape(const Func *f, Val v) {
    const Op *o = ir_def(f, v);
    return o && o->code == OP_reshape ? o->in[0] : v;
}

/* The weights of conv that a conv_data's weights were made from; NO_VAL if there are none. */
static Val dense_source(const Func *f, const Op *o) {
    const Op *exchange = ir_def(f, o->in[1]);
    if (!permutes(exchange, (const int[]){0, 1, 3, 2}, 4)) return NO_VAL;
    const bool in_tiles = target_of(f->module)->has_tiles && !target_follows_device(f, o);
    const bool whole_panels = ir_shape(f, o->in[1])->d[3].mul % PANEL == 0;
    return whole_panels || !in_tiles ? exchange->in[0] : NO_VAL;
}

/* [KH, KW, I, G * O] -> [KH, KW, I, G, O] -> [KH, KW, O, G, I] -> [KH, KW, O, G * I]; the permute is left out where I
 * and O are 1. */
static Val grouped_source(const Func *f, const Op *o) {
    const Shape *x = ir_shape(f, o->out[0]), *dy = ir_shape(f, o->in[0]), *kernel = ir_shape(f, o->in[1]);
    const int64_t groups = groups_of(o), inputs = x->d[3].mul / groups, outputs = dy->d[3].mul / groups;
    Val v = before_reshape(f, o->in[1]);
    const Op *exchange = ir_def(f, v);
    if (permutes(exchange, (const int[]){0, 1, 4, 3, 2}, 5)) {
        const Shape *split = ir_shape(f, exchange->in[0]);
        if (split->d[3].mul != groups || split->d[4].mul != outputs) return NO_VAL;
        v = before_reshape(f, exchange->in[0]);
    } else if (inputs != 1 || outputs != 1) {
        return NO_VAL;
    } else {
        v = before_reshape(f, v);
    }
    const Shape wanted = shape_of(4, (Dim[]){kernel->d[0], kernel->d[1], dim_const(inputs), dy->d[3]});
    return shape_equal(ir_shape(f, v), &wanted) ? v : NO_VAL;
}

static bool read_transposed(const Func *f, Op *o) {
    if (ir_attr(o, "tb")->b) return true;
    Val source = groups_of(o) == 1 ? dense_source(f, o) : grouped_source(f, o);
    if (!source.id) return false;
    o->in[1] = source;
    ir_attr(o, "tb")->b = true;
    return true;
}

/* Whether the target has a product for such groups. */
static bool has_kernel(const Func *f, const Op *o) {
    if (groups_of(o) == 1) return true;
    if (!target_of(f->module)->has_tiles) return false;
    const Windows g = ir_windows(f, o);
    const int64_t inputs = g.c / g.groups, outputs = g.oc / g.groups;
    return (inputs == 1 && outputs == 1 && g.c >= PANEL) || (inputs >= LEAST_GROUP && outputs >= LEAST_GROUP);
}

static void pack_windows(Func *f) {
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        if (!ir_is_convolution(o) || !has_kernel(f, o)) continue;
        bool reads = o->code != OP_conv_data || read_transposed(f, o);
        ir_attr(o, "packed")->b = groups_of(o) != 1 && reads;
    }
}

bool pass_pack_windows(PassContext *c) { return each_func(c, pack_windows); }
