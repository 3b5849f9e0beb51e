/* common.c: see common.h. */
#include "passes/common/common.h"

#include "base/dtypes.h"
#include "base/text.h"

/* ---- passes over functions --------------------------------------------------------------------------------------- */

bool each_func(PassContext *c, void (*rewrite)(Func *f)) {
    for (int i = 0; i < c->m->funcs.len; i++)
        if (!ir_is_exchange(c->m->funcs.data[i])) rewrite(c->m->funcs.data[i]);
    return true;
}

/* ---- replacing values, copying ops ------------------------------------------------------------------------------- */

Renames renames_new(const Func *f) {
    return (Renames){.to = arena_array(f->module->arena, Val, f->values.len + 1), .count = f->values.len};
}

Val renames_get(const Renames *r, Val v) {
    while ((int)v.id < r->count && r->to[v.id].id) v = r->to[v.id];
    return v;
}

void renames_apply(const Renames *r, Op *o) {
    for (int i = 0; i < o->n_in; i++) o->in[i] = renames_get(r, o->in[i]);
    o->pred = renames_get(r, o->pred);
}

void renames_apply_results(const Renames *r, Func *f) {
    for (int i = 0; i < f->results.len; i++) f->results.data[i].value = renames_get(r, f->results.data[i].value);
    for (int i = 0; i < f->kernels.len; i++) f->kernels.data[i]->pred = renames_get(r, f->kernels.data[i]->pred);
}

bool is_numbered(const Func *f, Val v) {
    const char *name = ir_value(f, v)->name;
    return name[0] >= '0' && name[0] <= '9';
}

Op *op_like(Func *f, const Op *o, const Val *in) {
    Op *copy = ir_op_new(f, o->code, in, o->n_in);
    for (int i = 0; i < ir_attr_count(o->code); i++) copy->attr[i] = o->attr[i];
    copy->path = o->path;
    copy->layer = o->layer;
    copy->pos = o->pos;
    copy->reason = o->reason;
    copy->region = o->region;
    copy->checkpoint = o->checkpoint;
    return copy;
}

void take_name(Func *f, Val to, Val from) {
    const char *name = ir_value(f, from)->name;
    if (to.id == from.id || is_numbered(f, from)) return;
    ir_rename(f, from, arena_printf(f->module->arena, "%s.old", name));
    ir_rename(f, to, name);
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

#define IN(t) (1u << AMP_DT_##t)

static const unsigned holders[AMP_DTYPES] = {
    /* by |from|: the types that hold all its numbers */
    [AMP_DT_F16] = IN(F16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_BF16] = IN(BF16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_TF32] = IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_F32] = IN(F32) | IN(F64),
    [AMP_DT_F64] = IN(F64),
    [AMP_DT_U8] = IN(U8) | IN(I32) | IN(I64) | IN(F16) | IN(BF16) | IN(TF32) | IN(F32) | IN(F64),
    [AMP_DT_I32] = IN(I32) | IN(I64) | IN(F64),
    [AMP_DT_I64] = IN(I64),
    [AMP_DT_BOOL] = IN(BOOL),
};

/* A type of 8 bits has fewer bits in each of its fields than bf16. */
bool holds_exactly(Dtype to, Dtype from) {
    if (amp_is_f8(from)) return to == from || to == AMP_DT_BF16 || holders[AMP_DT_BF16] >> to & 1u;
    return (int)from < AMP_DTYPES && (holders[from] >> to & 1u);
}

bool is_float(Dtype t) { return amp_class_of(t) == AMP_CLASS_FLOAT || amp_is_f8(t); }

bool is_widening(const Func *f, const Op *o) {
    return o->code == OP_cast && holds_exactly(ir_dtype(f, o->out[0]), ir_dtype(f, o->in[0]));
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

typedef struct Making {
    const Func *from;
    Func *to;
    const Mode *mode;
    bool *live; /* by value id of |from| */
    Val *now;   /* by value id of |from|: the value of |to| */
} Making;

bool result_is_of_training(ResultKind kind) {
    return kind == RESULT_LOSS || kind == RESULT_NAMED_LOSS || kind == RESULT_METRIC || kind == RESULT_UPDATE ||
           result_is_count(kind);
}

bool result_is_count(ResultKind kind) { return kind == RESULT_COUNT || kind == RESULT_SUM || kind == RESULT_MEAN; }

Val result_value(const Result *r) { return r ? r->value : NO_VAL; }

static void find_live(Making *mk) {
    const Func *f = mk->from;
    for (int i = 0; i < f->results.len; i++)
        if (mk->mode->wants(f->results.data[i].kind)) mk->live[f->results.data[i].value.id] = true;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        bool live = false;
        for (int r = 0; r < o->n_out; r++) live = live || mk->live[o->out[r].id];
        for (int j = 0; live && j < o->n_in; j++) mk->live[o->in[j].id] = true;
    }
}

static void copy_inputs(Making *mk) {
    for (int i = 0; i < mk->from->inputs.len; i++) {
        Val v = mk->from->inputs.data[i];
        const Value *value = ir_value(mk->from, v);
        if (!mk->live[v.id]) continue;
        mk->now[v.id] = value->kind == VAL_STATE ? ir_use_state(mk->to, ir_state_of(mk->from, v))
                                                 : ir_add_input(mk->to, value->name, value->dtype, value->shape);
    }
}

static Op *copy_op(Making *mk, const Op *o) {
    Op *copy = op_like(mk->to, o, o->in);
    for (int i = 0; i < o->n_in; i++) copy->in[i] = mk->now[o->in[i].id];
    for (int r = 0; r < o->n_out; r++) {
        const Value *value = ir_value(mk->from, o->out[r]);
        mk->now[o->out[r].id] = ir_result(mk->to, copy, value->name, value->dtype, value->shape);
    }
    return copy;
}

/* A random op of one operand is the identity in evaluation; if its class gave it another dtype, a cast remains. */
static void copy_as_identity(Making *mk, const Op *o) {
    Val x = mk->now[o->in[0].id];
    Dtype t = ir_dtype(mk->from, o->out[0]);
    if (ir_dtype(mk->to, x) != t) {
        x = ir_emit(mk->to, OP_cast, t, ir_value(mk->from, o->out[0])->name, 1, x);
        Op *cast = ir_def(mk->to, x);
        cast->path = o->path;
        cast->pos = o->pos;
        cast->reason = o->reason;
    }
    mk->now[o->out[0].id] = x;
}

/* Outside training, and of a frozen norm, y comes from the running statistics; the statistics of the batch, which only
 * updates need, are kept if something reads them. */
static void copy_by_running_statistics(Making *mk, const Op *o) {
    bool batch = false;
    for (int r = 1; r < o->n_out; r++) batch = batch || mk->live[o->out[r].id];
    if (batch) copy_op(mk, o);
    if (!mk->live[o->out[0].id]) return;
    Op y = *o;
    y.code = OP_batch_norm_eval;
    y.n_out = 1;
    copy_op(mk, &y);
}

/* Attention draws for one of its steps only. */
static void copy_without_dropout(Making *mk, const Op *o) {
    copy_op(mk, o);
    ir_attr(ir_def(mk->to, mk->now[o->out[0].id]), "p")->f = 0.0;
}

static void copy_in_mode(Making *mk, const Op *o) {
    bool draws = ir_op_info[o->code].flags & RANDOM;
    const bool is_norm = o->code == OP_batch_norm;
    if (is_norm && (!mk->mode->training || ir_attr(o, "frozen")->b)) copy_by_running_statistics(mk, o);
    else if (!mk->mode->training && o->code == OP_attention) copy_without_dropout(mk, o);
    else if (!mk->mode->training && (draws || o->code == OP_sum_ranks)) copy_as_identity(mk, o);
    else copy_op(mk, o);
}

Func *mode_make(const Func *f, const Mode *mode) {
    Arena *a = f->module->arena;
    Making mk = {
        .from = f,
        .to = ir_program_new(f->module, mode->kind),
        .mode = mode,
        .live = arena_array(a, bool, f->values.len),
        .now = arena_array(a, Val, f->values.len),
    };
    find_live(&mk);
    copy_inputs(&mk);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        bool live = false;
        for (int r = 0; r < o->n_out; r++) live = live || mk.live[o->out[r].id];
        if (live) copy_in_mode(&mk, o);
    }
    for (int i = 0; i < f->results.len; i++) {
        const Result *r = &f->results.data[i];
        if (mode->wants(r->kind)) ir_add_result(mk.to, r->name, mk.now[r->value.id]);
    }
    return mk.to;
}

/* ---- errors at places of the model text -------------------------------------------------------------------------- */

static Loc loc_of(const Module *m, Pos pos) {
    if (!pos.line || !pos.file || !m->source_text || !m->source_name || strcmp(pos.file, m->source_name))
        return (Loc){0};
    Source *source = arena_new(m->arena, Source);
    *source = (Source){m->source_path ? m->source_path : m->source_name, m->source_text, strlen(m->source_text)};
    return loc_at(source, pos.line, pos.column);
}

Diag *place_error(PassContext *c, Pos pos, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(c->m->arena, fmt, args);
    va_end(args);
    Loc loc = loc_of(c->m, pos);
    if (loc.source || !pos.line || !pos.file) return diag_error(c->diags, loc, "%s", what);
    return diag_error(c->diags, loc, "%s:%d:%d: %s", pos.file, pos.line, pos.column, what);
}

/* ---- sums over rows ---------------------------------------------------------------------------------------------- */

/* Columns of a block; of a sample, blocks that are wanted, and rows that are worth one. */
enum { BLOCK_COLUMNS = 32, MOST_CHUNKS = 16, LEAST_ROWS = 256 };

int64_t chunks_of_sample(int64_t rows, int64_t cols, int64_t least) {
    int64_t chunks = MOST_CHUNKS / ((cols + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS);
    if (chunks < least) chunks = least;
    while (chunks > 1 && (rows % chunks || rows / chunks < LEAST_ROWS)) chunks--;
    return chunks > 1 ? chunks : 1;
}
