/* fault.c: what an origin is told as: its op, its dtype and why, what it read, and what went wrong there. */
#include "compiler/trace/trace.h"

#include <math.h>

/* ---- what no finite result is for -------------------------------------------------------------------------------- */

static bool has_zero(const amp_trace_range *r) { return r->zeros > 0; }
static bool is_below_zero(const amp_trace_range *r) { return r->least < 0; }
static bool is_not_above_zero(const amp_trace_range *r) { return r->least <= 0; }
static bool is_not_above_minus_one(const amp_trace_range *r) { return r->least <= -1; }

typedef struct Domain {
    Opcode code;
    int operand;
    bool (*is_left_by)(const amp_trace_range *r);
} Domain;

static const Domain domains[] = {
    {OP_div, 1, has_zero},
    {OP_log, 0, is_not_above_zero},
    {OP_sqrt, 0, is_below_zero},
    {OP_log1p, 0, is_not_above_minus_one},
    {OP_rsqrt, 0, is_not_above_zero},
    {OP_pow, 0, is_not_above_zero},
    {OP_reciprocal, 0, has_zero},
};

/* NaN from finite numbers is no overflow: infinity minus infinity, where sums within the op overflow, aside. */
static bool is_undefined(const TraceValues *v, const Op *o, const amp_trace_range *result) {
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        const Domain *d = &domains[i];
        if (d->code != o->code) continue;
        const amp_trace_range *operand = &v->range[o->in[d->operand].id];
        if (operand->name) return d->is_left_by(operand);
    }
    return result->nans && !result->infinities && o->code != OP_cast;
}

/* ---- the op as its author knows it ------------------------------------------------------------------------------- */

/* Of a gradient or a cast the op that it belongs to: the longest beginning of its path that was decided. */
static const Decision *decision_of(const Module *m, const char *path) {
    for (size_t length = path ? strlen(path) : 0; length; length--) {
        if (path[length] && path[length] != '.') continue;
        for (int i = 0; i < m->decisions.len; i++) {
            const char *decided = m->decisions.data[i].path;
            if (decided && strlen(decided) == length && !strncmp(decided, path, length)) return &m->decisions.data[i];
        }
    }
    return NULL;
}

static void tell_decision(const Module *m, const char *const *reasons, amp_trace_finding *out) {
    const Decision *d = decision_of(m, out->path);
    if (!d) return;
    out->decided = d->path;
    out->reason = reasons[d - m->decisions.data];
    out->policy_text = d->policy_text;
    out->because = d->reason ? d->reason->because : NULL;
}

static void tell_place(Pos pos, amp_trace_finding *out) {
    out->file = pos.file;
    out->line = pos.line;
    out->column = pos.column;
}

static void tell_op(const TraceValues *v, const Op *o, amp_trace_finding *out) {
    const Region *r = o->region ? ir_region((Func *)(uintptr_t)v->f, o->region) : NULL;
    out->path = r ? r->path : o->path;
    out->op = r ? r->op : ir_op_info[o->code].name;
    out->layer = r ? r->layer : o->layer;
    tell_place(o->pos, out);
}

/* ---- what it read ------------------------------------------------------------------------------------------------ */

static const char *decided_path(const TraceValues *v, const Op *o) {
    amp_trace_finding told = {0};
    tell_op(v, o, &told);
    const Decision *d = decision_of(v->f->module, told.path);
    return d ? d->path : NULL;
}

/* The path of the op that made |value|; for a cast, of its operand. */
static const char *maker_of(const TraceValues *v, Val value) {
    const Op *def = ir_def(v->f, value);
    while (def && def->code == OP_cast) def = ir_def(v->f, def->in[0]);
    return def ? decided_path(v, def) : NULL;
}

static void add_input(const TraceValues *v, Val value, amp_trace_finding *out) {
    amp_trace_range range = v->range[value.id];
    if (!range.name || out->input_count == AMP_TRACE_INPUTS) return;
    range.decided = maker_of(v, value);
    for (int32_t i = 0; i < out->input_count; i++)
        if (!strcmp(out->inputs[i].name, range.name)) return;
    out->inputs[out->input_count++] = range;
}

static bool is_inside(const TraceValues *v, const Op *o, Val value) {
    const Op *def = ir_def(v->f, value);
    return def && o->region && def->region == o->region;
}

/* Of the core op, then of all ops before it that came from the same op of the graph. */
static void tell_inputs(const TraceValues *v, const TraceSearch *s, const Op *o, amp_trace_finding *out) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && !(out->exact.name && is_inside(v, o, o->in[i]))) add_input(v, o->in[i], out);
    for (int i = 0; o->region && i < s->place[o->id.id]; i++) {
        const Op *before = ir_op_at(v->f, i);
        if (before->region != o->region) continue;
        for (int j = 0; j < before->n_in; j++)
            if (ir_reads_elements(before, j) && !is_inside(v, o, before->in[j])) add_input(v, before->in[j], out);
    }
}

static const Op *first_reader(const TraceValues *v, const TraceSearch *s, const Op *o) {
    for (int i = s->place[o->id.id] + 1; o->n_out && i < v->f->body.len; i++) {
        const Op *reader = ir_op_at(v->f, i);
        for (int j = 0; j < reader->n_in; j++)
            if (reader->in[j].id == o->out[0].id) return reader;
    }
    return NULL;
}

static void tell_readers(const TraceValues *v, const TraceSearch *s, const Op *o, amp_trace_finding *out) {
    const char *last = out->path;
    int count = 0;
    for (o = first_reader(v, s, o); o && count < AMP_TRACE_READERS; o = first_reader(v, s, o)) {
        const char *path = decided_path(v, o);
        if (path && strcmp(path, last) != 0) out->read_by[count++] = last = path;
    }
}

/* ---- origins ----------------------------------------------------------------------------------------------------- */

static void describe_op(const TraceValues *v, const TraceSearch *s, const Op *o, amp_trace_finding *out) {
    tell_op(v, o, out);
    if (o->code == OP_cast && trace_is_known(v, o->in[0])) out->exact = v->range[o->in[0].id];
    tell_inputs(v, s, o, out);
    tell_readers(v, s, o, out);
    out->fault = is_undefined(v, o, &out->result) ? AMP_TRACE_UNDEFINED : AMP_TRACE_OVERFLOW;
}

/* A copy of a parameter in another type overflows where the parameter itself does not. */
static void describe_state(const TraceValues *v, Val origin, amp_trace_finding *out) {
    const State *s = ir_state_of(v->f, origin);
    const Val master = s->of && s->role == STATE_DERIVED ? ir_find(v->f, s->of) : NO_VAL;
    out->fault = AMP_TRACE_STATE;
    out->path = master.id ? s->of : s->name;
    tell_place(s->pos, out);
    if (!master.id || !trace_is_known(v, master) || !trace_is_finite(v, master)) return;
    out->fault = AMP_TRACE_OVERFLOW;
    out->op = ir_op_info[OP_cast].name;
    out->exact = v->range[master.id];
    add_input(v, master, out);
}

void trace_describe(const TraceValues *v, const TraceSearch *s, const char *const *reasons, Val origin,
                    amp_trace_finding *out) {
    const Op *o = ir_def(v->f, origin);
    out->result = v->range[origin.id];
    out->op = "";
    if (o) describe_op(v, s, o, out);
    else if (ir_value(v->f, origin)->kind == VAL_STATE) describe_state(v, origin, out);
    else {
        out->fault = AMP_TRACE_DATA;
        out->path = out->result.name;
    }
    if (!out->path) out->path = out->result.name;
    out->is_gradient = o && !trace_is_forward(v, s, origin);
    tell_decision(v->f->module, reasons, out);
}

const char *const *trace_reasons_new(const Module *m) {
    const char **texts = arena_array(m->arena, const char *, m->decisions.len + 1);
    for (int i = 0; i < m->decisions.len; i++) {
        Text t;
        text_init(&t, m->arena);
        if (m->decisions.data[i].reason) ir_print_reason(&t, m->decisions.data[i].reason);
        texts[i] = text_str(&t);
    }
    return texts;
}

/* ---- every op ---------------------------------------------------------------------------------------------------- */

static bool ends_region(const Func *f, int place) {
    const Op *o = ir_op_at(f, place);
    return o->region && o->n_out && (place + 1 == f->body.len || ir_op_at(f, place + 1)->region != o->region);
}

/* Its own path, not the path of an op that it is a gradient of. */
static bool is_decided(const Module *m, const char *path) {
    const Decision *d = decision_of(m, path);
    return d && !strcmp(d->path, path);
}

bool trace_describe_op(const TraceValues *v, const TraceSearch *s, int place, amp_trace_op *out) {
    const Op *o = ir_op_at(v->f, place);
    amp_trace_finding found = {0};
    if (!ends_region(v->f, place) || !trace_is_known(v, o->out[0])) return false;
    tell_op(v, o, &found);
    if (!found.path || !is_decided(v->f->module, found.path)) return false;
    tell_inputs(v, s, o, &found);
    *out = (amp_trace_op){
        .path = found.path, .op = found.op, .result = v->range[o->out[0].id], .input_count = found.input_count};
    memcpy(out->inputs, found.inputs, sizeof out->inputs);
    return true;
}
