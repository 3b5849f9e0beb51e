/* loop_nest.c: see loop_nest.h. */
#include "codegen/loop_nest.h"

#include "codegen/indirect.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

bool loop_has_lines(const Emitter *e) {
    return !e->per_thread || e->w->k->kind == KERNEL_ROW || e->w->k->kind == KERNEL_COLUMN;
}

bool loop_is_one(const Emitter *e, Val v) { return e->w->values[v.id].span == SPAN_ONE; }

bool loop_is_line(const Emitter *e, Val v) {
    return loop_has_lines(e) && e->w->values[v.id].span == walk_line_span(e->w);
}

bool loop_is_step(const Emitter *e, Val v) {
    const ValueWalk *x = &e->w->values[v.id];
    return loop_has_lines(e) ? x->touched && walk_is_inner(e->w, x->span) : x->needed && x->span != SPAN_ONE;
}

amp_status loop_inputs(Emitter *e, PlaceFn here, amp_status (*load)(Emitter *e, Val v)) {
    e->place++;
    for (int i = 0; i < e->w->k->count; i++) {
        const Op *o = walk_op(e->w, i);
        for (int n = 0; n < o->n_in; n++) {
            ValueWalk *x = &e->w->values[o->in[n].id];
            if (!walk_reads(e->w, o, n) || x->made || !x->needed || !here(e, o->in[n]) || x->loaded == e->place)
                continue;
            x->loaded = e->place;
            AMP_TRY(load(e, o->in[n]));
        }
    }
    return AMP_OK;
}

static bool is_expression(const Op *o) { return o->n_out && !emit_rules[o->code].by_walk; }

static amp_status emit_op(Emitter *e, const Op *o) {
    if (e->w->values[o->out[0].id].in_lanes) {
        for (int r = 0; r < o->n_out; r++) e->spelling->take_lane(e, o->out[r]);
        return AMP_OK;
    }
    return walk_is_indirect(e->w, o) ? indirect_emit(e, o) : emit_core_op(e, o);
}

amp_status loop_ops(Emitter *e, PlaceFn here, int level) {
    for (int i = 0; i < e->w->k->count; i++) {
        const Op *o = walk_op(e->w, i);
        if (!is_expression(o)) continue;
        const ValueWalk *x = &e->w->values[o->out[0].id];
        if (x->needed && here(e, o->out[0]) && (level < 0 || x->level == level)) AMP_TRY(emit_op(e, o));
    }
    return AMP_OK;
}

amp_status loop_step_ops(Emitter *e, int p) {
    for (int i = 0; i < e->w->k->count; i++) {
        const Op *o = walk_op(e->w, i);
        if (!is_expression(o) || !loop_is_step(e, o->out[0])) continue;
        const ValueWalk *x = &e->w->values[o->out[0].id];
        if (x->kept && x->level < p) {
            e->spelling->load_kept(e, o->out[0]);
            continue;
        }
        AMP_TRY(emit_op(e, o));
        if (x->kept) e->spelling->keep(e, o->out[0]);
    }
    return AMP_OK;
}

amp_status loop_sinks(Emitter *e, PlaceFn here, int level) {
    for (int i = 0; i < e->w->sinks.len; i++) {
        const Sink *s = &e->w->sinks.data[i];
        if (s->kind == SINK_REDUCE || !here(e, s->value) || (level >= 0 && s->level != level)) continue;
        if (s->kind == SINK_FLAG) e->spelling->or_flag(e, s);
        else AMP_TRY(e->spelling->store(e, s));
    }
    return AMP_OK;
}

bool loop_has_phase(const Walk *w, int p) {
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (loop_reduces_in(w, s, p)) return true;
        if (s->kind != SINK_REDUCE && s->level == p && walk_is_inner(w, w->values[s->value.id].span)) return true;
    }
    return false;
}

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

static const Reduction reductions[] = {
    {OP_reduce_sum, "0.0f", "0", "plus", "Plus"},      {OP_reduce_mean, "0.0f", "0", "plus", "Plus"},
    {OP_reduce_prod, "1.0f", "1", "times", "Times"},   {OP_reduce_max, "-INF", "INT32_MIN", "max", "Max"},
    {OP_reduce_min, "INF", "INT32_MAX", "min", "Min"},
};

const Reduction *loop_reduction(const Sink *s) {
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (reductions[i].code == s->op->code) return &reductions[i];
    return NULL;
}

bool loop_keeps_lost(const Walk *w, const Sink *s) {
    const bool is_sum = s->op->code == OP_reduce_sum || s->op->code == OP_reduce_mean;
    return is_sum && emit_kind(ir_dtype(w->f, s->value)) == KIND_F32;
}

const char *loop_start(const Emitter *e, const Sink *s) {
    bool is_float = emit_kind(ir_dtype(e->w->f, s->value)) == KIND_F32;
    return is_float ? loop_reduction(s)->f32_start : loop_reduction(s)->i32_start;
}

bool loop_reduces_in(const Walk *w, const Sink *s, int p) {
    return s->kind == SINK_REDUCE && s->level == p && w->values[s->op->out[0].id].needed;
}

amp_status loop_check_reduction(const Emitter *e, const Sink *s) {
    Dtype t = ir_dtype(e->w->f, s->value);
    if (emit_kind(t) <= KIND_I32) return AMP_OK;
    return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s of %s is not supported", walk_name(e->w),
                    ir_op_info[s->op->code].name, amp_dtype_name(t));
}
