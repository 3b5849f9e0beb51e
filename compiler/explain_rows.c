/* explain_rows.c: one row per op of the graph that is run, casts, backward pass and update included: what `ampc explain
 * --json` lists under "rows". */
#include "compiler/explain.h"

static bool is_rule(const Op *o, const char *rule) { return !strcmp(o->reason->rule, rule); }

/* The part of a step that the op belongs to. */
static const char *phase_of(const Op *o) {
    if (is_rule(o, "gradient") || is_rule(o, "weight_gradient") || o->code == OP_scale_loss) return "backward";
    if (is_rule(o, "update") || is_rule(o, "loss_scale")) return "update";
    return "forward";
}

/* Sums are f32 whatever the operands are; NULL: the op adds nothing up. */
static const char *accumulate_of(const Op *o) { return ir_op_info[o->code].flags & (PRODUCT | REDUCE) ? "f32" : NULL; }

static void put_string(amp_json_writer *w, const char *key, const char *value) {
    if (value) amp_json_put_string(w, key, value);
    else amp_json_put_null(w, key);
}

static void put_line(amp_json_writer *w, const char *key, int line) {
    if (line) amp_json_put_int(w, key, line);
    else amp_json_put_null(w, key);
}

/* "input fc1.linear": what decided besides the rule; the user's own words go first. */
static const char *because_of(Arena *a, const Reason *r) {
    if (r->because) return r->because;
    return r->relation ? arena_printf(a, "%s %s", r->relation, r->neighbour) : NULL;
}

static void put_row(amp_json_writer *w, const Func *f, const Op *o, int id) {
    const Reason *r = o->reason;
    Dtype output = o->n_out ? ir_dtype(f, o->out[0]) : ir_dtype(f, o->in[0]); /* an assign writes its state's */
    amp_json_begin_object(w, NULL);
    amp_json_put_int(w, "id", id);
    amp_json_put_string(w, "function", f->name);
    amp_json_put_string(w, "op", ir_op_info[o->code].name);
    amp_json_put_string(w, "path", o->path ? o->path : "");
    amp_json_put_string(w, "phase", phase_of(o));
    amp_json_begin_array(w, "inputs");
    for (int i = 0; i < o->n_in; i++) amp_json_put_string(w, NULL, amp_dtype_name(ir_dtype(f, o->in[i])));
    amp_json_end_array(w);
    put_string(w, "accumulate", accumulate_of(o));
    amp_json_put_string(w, "output", amp_dtype_name(output));
    amp_json_put_string(w, "rule", r->rule);
    put_string(w, "policy", r->is_override ? r->where.file : r->origin);
    put_line(w, "policy_line", r->is_override ? r->where.line : r->line);
    put_string(w, "because", because_of(f->module->arena, r));
    put_line(w, "source_line", o->pos.line);
    amp_json_end_object(w);
}

static void put_func(amp_json_writer *w, const Func *f, const char *glob, int *id) {
    for (int i = 0; f && i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        ++*id;
        if (!o->reason || o->code == OP_const) continue; /* a constant has the dtype of what reads it */
        if (!glob || text_glob_match(glob, o->path ? o->path : "")) put_row(w, f, o, *id);
    }
}

void explain_put_rows(amp_json_writer *w, const Module *graph, const char *glob) {
    static const ProgramKind trained[] = {PROGRAM_TRAIN_STEP, PROGRAM_MICRO_STEP, PROGRAM_APPLY_STEP};
    int id = 0;
    amp_json_begin_array(w, "rows");
    for (int i = 0; i < 3; i++) put_func(w, ir_program(graph, trained[i]), glob, &id);
    if (!id) put_func(w, ir_program(graph, PROGRAM_INFER), glob, &id);
    amp_json_end_array(w);
}
