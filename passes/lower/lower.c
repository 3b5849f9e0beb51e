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
#include "passes/lower/lower.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

const LowerRow *const lower_tables[LOWER_TABLES] = {lower_activation_ops, lower_fold_ops,      lower_pair_loss_ops,
                                                    lower_attention_ops,  lower_loss_ops,      lower_move_ops,
                                                    lower_norm_ops,       lower_pointwise_ops, lower_product_ops,
                                                    lower_resample_ops,   lower_reduce_ops,    lower_training_ops};

const LowerRow *lower_row(Opcode code) {
    for (int i = 0; i < LOWER_TABLES; i++)
        if (lower_tables[i][code].lower) return &lower_tables[i][code];
    bool is_same = ir_op_info[code].flags & ELEMENTWISE && ir_op_levels(code) == (GRAPH | CORE);
    return is_same ? &lower_same_op : NULL;
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

static uint32_t new_region(Func *f, const Op *o) {
    vec_push(f->module->arena, &f->regions, ((Region){o->path, ir_op_info[o->code].name, o->layer}));
    return (uint32_t)f->regions.len;
}

/* Marks body[from ..] as made from |o|.  The reason of the graph op goes where its dtype takes effect: to its
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
        bool decides = ir_op_info[core->code].flags & PRODUCT;
        for (int r = 0; r < o->n_out; r++) decides = decides || (core->n_out && core->out[0].id == l->given[r].id);
        if (decides) core->reason = o->reason;
    }
}

/* The names of results: what the graph called %y is %y, or %y.nhwc where its channels are last. */
static void name_result(Lowering *l, Val now, Val graph) {
    if (lower_is_last(l, now)) lower_name_last(l, now, graph);
    else take_name(l->f, now, graph);
}

static void give_results(Lowering *l, const Op *o, int known, Renames *renames) {
    for (int r = 0; r < o->n_out; r++) {
        Val now = l->given[r];
        if (!now.id) continue;
        if ((int)now.id >= known) name_result(l, now, o->out[r]);
        lower_add_readers(l, now, o->out[r]);
        renames->to[o->out[r].id] = now;
    }
}

/* The op that |o| is a copy of, for a checkpoint; NULL: it is none. */
static const Original *original_of(const Lowering *l, const Op *o) {
    const Reason *why = o->reason;
    bool copy = why && why->rule && why->neighbour && !strcmp(why->rule, "checkpoint");
    return copy ? table_get(&l->originals, why->neighbour) : NULL;
}

/* For copies of |o| to come; and what |o| itself is a copy of. */
static void note_original(Lowering *l, const Op *o, const Val *given) {
    Arena *a = l->f->module->arena;
    const Original *of = original_of(l, o);
    for (int r = 0; of && r < o->n_out; r++)
        if (given[r].id && of->given[r].id) lower_mark_copy(l, given[r], of->given[r]);
    if (of || !o->path || table_get(&l->originals, o->path)) return;
    Original *own = arena_new(a, Original);
    *own = (Original){l->form, arena_array(a, Val, o->n_out + 1)};
    if (o->n_out) memcpy(own->given, given, sizeof *given * (size_t)o->n_out);
    table_set(a, &l->originals, o->path, own);
}

static void start_op(Lowering *l, Op *o) {
    const LowerRow *row = lower_row(o->code);
    const Original *of = original_of(l, o);
    l->op = o;
    l->given = arena_array(l->f->module->arena, Val, o->n_out + 1);
    l->wide_count = 0;
    l->rank = lower_largest_rank(l, o);
    l->form =
        of ? of->form : lower_choose_form(l, o, row ? row->form : TAKES_PLAIN, row ? row->weights : WEIGHTS_PLAIN);
    for (int i = 0; i < o->n_in; i++) {
        bool turns = l->form == FORM_HWIO && row->weights == WEIGHTS_ALIKE && ir_shape(l->f, o->in[i])->rank == 4;
        if (turns) o->in[i] = lower_hwio(l, o->in[i]);
        else if (l->form == FORM_PLAIN) o->in[i] = lower_plain(l, o->in[i]);
    }
}

static void lower_op(Lowering *l, Op *o, Renames *renames) {
    int from = l->f->body.len, known = l->f->values.len;
    const LowerRow *row = lower_row(o->code);
    start_op(l, o);
    if (row) row->lower(l);
    else lower_unsupported(l, "no rule lowers this op");
    mark_region(l, o, from);
    give_results(l, o, known, renames);
    note_original(l, o, l->given);
}

/* ---- ops that stay ----------------------------------------------------------------------------------------------- */

/* Ops of both levels stay, but for constants: they are f32 in core IR, and rounded where the graph rounds them. */
static bool stays(const Func *f, const Op *o) {
    const LowerRow *row = lower_row(o->code);
    if (!row || !row->stays) return false;
    return o->code != OP_const || !is_float(ir_dtype(f, o->out[0])) || ir_dtype(f, o->out[0]) == AMP_DT_F32;
}

/* What was made for an op that stays, and has no region, is told to be its. */
static void mark_moves(Lowering *l, const Op *o, int from) {
    for (int i = from; i < l->f->body.len; i++) {
        Op *core = ir_op_at(l->f, i);
        core->path = o->path;
        core->layer = o->layer;
        core->pos = o->pos;
    }
}

/* A cast works in the form of its operand, an assign in its state's form; it keeps its reason.  A barrier works in the
 * form of its first operand: it only waits for the others. */
static void keep_op(Lowering *l, Op *o, OpId id) {
    Func *f = l->f;
    int from = f->body.len;
    bool any_form = o->code == OP_cast || o->code == OP_barrier, last = any_form && lower_is_last(l, o->in[0]);
    bool hwio = o->n_in && lower_is_hwio(l, o->in[0]);
    bool as_it_is =
        any_form || ir_op_info[o->code].flags & COLLECTIVE; /* ranks exchange states as they are in memory */
    for (int i = 0; i < o->n_in && !as_it_is; i++) o->in[i] = hwio ? lower_hwio(l, o->in[i]) : lower_plain(l, o->in[i]);
    mark_moves(l, o, from);
    vec_push(f->module->arena, &f->body, id);
    if (o->n_out && (last || hwio)) ir_value(f, o->out[0])->shape = *ir_shape(f, o->in[0]);
    if (o->n_out && hwio) lower_mark_hwio(l, o->out[0]);
    note_original(l, o, o->out);
    if (o->code == OP_barrier) lower_mark_copy(l, o->out[0], o->in[0]);
    if (!last) return;
    lower_mark_last(l, o->out[0]);
    lower_name_last(l, o->out[0], o->out[0]);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* What a user reads is plain; gradients are turned where they are read. */
static void give_plain_results(Lowering *l) {
    Func *f = l->f;
    for (int i = 0; i < f->results.len; i++) {
        Val v = f->results.data[i].value;
        f->results.data[i].hwio = f->results.data[i].kind == RESULT_GRADIENT && lower_is_hwio(l, v);
        if (f->results.data[i].hwio) continue;
        const Op *maker = ir_def(f, v);
        int from = f->body.len;
        f->results.data[i].value = lower_plain(l, v);
        if (maker) mark_moves(l, maker, from);
        for (int k = from; k < f->body.len; k++) ir_op_at(f, k)->region = maker ? maker->region : 0;
    }
}

static bool lower_func(PassContext *c, Func *f) {
    Renames renames = renames_new(f);
    Lowering l = {.f = f, .c = c, .memos = arena_array(f->module->arena, Memo *, MEMO_SLOTS)};
    l.readers = ir_use_counts(f, f->module->arena);
    l.graph_values = f->values.len;
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_STATE && ir_state_of(f, f->inputs.data[i])->hwio)
            lower_mark_hwio(&l, f->inputs.data[i]);
    const OpIds graph = ir_take_body(f);
    for (int i = 0; i < graph.len; i++) {
        Op *o = ir_op(f, graph.data[i]);
        renames_apply(&renames, o);
        if (stays(f, o)) keep_op(&l, o, graph.data[i]);
        else lower_op(&l, o, &renames);
    }
    renames_apply_results(&renames, f);
    give_plain_results(&l);
    return !l.failed;
}

bool pass_lower(PassContext *c) {
    bool ok = true;
    lower_turn_weights(c->m);
    for (int i = 0; i < c->m->funcs.len; i++) ok = lower_func(c, c->m->funcs.data[i]) && ok;
    return ok;
}
