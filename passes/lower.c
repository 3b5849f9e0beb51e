/* lower: turns graph ops into core ops, in regions that remember the graph op.
 * needs: simplify.  breaks: the graph level.
 *
 *   %4 = linear(%x.h, %w.h, %b.h) : f16[N, 512]   =>   region 1 fc1.linear linear
 *                                                      %1 = contract(%x.h, %w.h; tb = true) : f32[N, 512]
 *                                                      %2 = cast(%b.h)                      : f32[512]
 *                                                      %3 = add(%1, %2)                     : f32[N, 512]
 *                                                      %4 = cast(%3)                        : f16[N, 512]
 *
 * Inside a region everything is f32, as in PyTorch's kernels: one rounding per graph op.  Casts of the graph stay as
 * they are, with their reasons.
 */
#include "passes/lower.h"

static uint32_t new_region(Func *f, const Op *o) {
    vec_push(f->module->arena, &f->regions, ((Region){o->path, ir_op_info[o->code].name, o->layer}));
    return (uint32_t)f->regions.len;
}

/* Marks body[from ..] as made from |o|.  The reason of the graph op stands where its dtype takes effect: at its
 * product and its results. */
static void mark_region(Lowering *l, const Op *o, int from) {
    Func *f = l->f;
    uint32_t region = f->body.len > from ? new_region(f, o) : 0;
    for (int i = from; i < f->body.len; i++) {
        Op *core = ir_op_at(f, i);
        core->path = o->path;
        core->layer = o->layer;
        core->pos = o->pos;
        core->region = region;
        bool decides = core->code == OP_contract;
        for (int r = 0; r < o->n_out; r++) decides = decides || (core->n_out && core->out[0].id == l->given[r].id);
        if (decides) core->reason = o->reason;
    }
}

/* Kernels see matrices: an operand is whole, one per row, one per column, or a scalar. */
static bool is_walkable(const Func *f, const Op *core) {
    Dim rows, cols, r, c;
    if (!(ir_op_info[core->code].flags & ELEMENTWISE) || !core->n_out) return true;
    if (!shape_matrix(ir_shape(f, core->out[0]), &rows, &cols)) return false;
    for (int i = 0; i < core->n_in; i++) {
        const Shape *s = ir_shape(f, core->in[i]);
        if (core->code == OP_broadcast || !reads_operand(core, i)) continue;
        if (!shape_matrix(s, &r, &c)) return false;
        if (!(dim_equal(r, rows) || dim_is_one(r)) || !(dim_equal(c, cols) || dim_is_one(c))) return false;
    }
    return true;
}

static void check_walkable(Lowering *l, int from) {
    for (int i = from; i < l->f->body.len && !l->failed; i++)
        if (!is_walkable(l->f, ir_op_at(l->f, i)))
            lower_unsupported(
                l, "broadcasting an operand over a dimension between others; make its leading dimensions whole or 1");
}

static void lower_op(Lowering *l, Op *o, Renames *renames) {
    Func *f = l->f;
    int from = f->body.len, known = f->values.len;
    LowerFn rule = lower_rule(ir_op_info[o->code].lower);
    l->op = o;
    l->given = arena_array(f->module->arena, Val, o->n_out + 1);
    l->wide_count = 0;
    if (rule) rule(l);
    else lower_unsupported(l, "it has no core form");
    mark_region(l, o, from);
    check_walkable(l, from);
    for (int r = 0; r < o->n_out; r++) {
        Val now = l->given[r];
        if (!now.id) continue;
        if ((int)now.id >= known) take_name(f, now, o->out[r]);
        renames->to[o->out[r].id] = now;
    }
}

/* Ops of both levels stay, but for constants: they are f32 in core IR, and rounded where the graph rounds them. */
static bool stays(const Func *f, const Op *o) {
    if (ir_op_info[o->code].lower != LOWER_KEEP) return false;
    return o->code != OP_const || !is_float(ir_dtype(f, o->out[0])) || ir_dtype(f, o->out[0]) == AMP_DT_F32;
}

static bool lower_func(PassContext *c, Func *f) {
    int count = f->body.len;
    OpId *graph = f->body.data;
    Renames renames = renames_new(f);
    Lowering l = {.f = f, .c = c};
    f->body.data = NULL;
    f->body.len = f->body.cap = 0;
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(f, graph[i]);
        renames_apply(&renames, o);
        if (stays(f, o)) vec_push(f->module->arena, &f->body, graph[i]);
        else lower_op(&l, o, &renames);
    }
    renames_apply_results(&renames, f);
    return !l.failed;
}

bool pass_lower(PassContext *c) {
    bool ok = true;
    for (int i = 0; i < c->m->funcs.len; i++) ok = lower_func(c, c->m->funcs.data[i]) && ok;
    c->m->stage = STAGE_LOWER;
    return ok;
}
