/* explain_json.c: decisions as tools read them, and "rows": one per op of the graph that is run, casts, backward pass
 * and update included. */
#include "compiler/casts.h"
#include "compiler/explain/explain_graph.h"
#include "ir/words.h"

void explain_put_place(amp_json_writer *w, Pos pos) {
    amp_json_put_string(w, "file", pos.file);
    amp_json_put_int(w, "line", pos.line);
    amp_json_put_int(w, "column", pos.column);
}

/* Of docs/explain.md: 1 more where a member went or means something else; members that come leave it. */
enum { SCHEMA_VERSION = 1 };

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Sums are f32 whatever the operands are; NULL: the op adds nothing up. */
static const char *accumulate_of(const Op *o) { return ir_op_info[o->code].flags & (PRODUCT | REDUCE) ? "f32" : NULL; }

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
    amp_json_put_string(w, "phase", casts_phase(o));
    amp_json_begin_array(w, "inputs");
    for (int i = 0; i < o->n_in; i++) amp_json_put_string(w, NULL, amp_dtype_name(ir_dtype(f, o->in[i])));
    amp_json_end_array(w);
    amp_json_put_string(w, "accumulate", accumulate_of(o));
    amp_json_put_string(w, "output", amp_dtype_name(output));
    amp_json_put_string(w, "rule", r->rule);
    amp_json_put_string(w, "policy", r->is_override ? r->where.file : r->origin);
    put_line(w, "policy_line", r->is_override ? r->where.line : r->line);
    amp_json_put_string(w, "because", because_of(f->module->arena, r));
    put_line(w, "source_line", o->pos.line);
    amp_json_end_object(w);
}

static void put_func(amp_json_writer *w, const Func *f, const ExplainSelection *which, int *id) {
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        ++*id;
        if (!o->reason || o->code == OP_const) continue; /* a constant has the dtype of what reads it */
        if (explain_selects_row(which, f, o)) put_row(w, f, o, *id);
    }
}

/* The ops of |graph|, the module after simplify, that are selected. */
static void put_rows(amp_json_writer *w, const Module *graph, const ExplainSelection *which) {
    const Func *funcs[STEP_FUNCS + 1];
    int id = 0;
    casts_step_funcs(graph, funcs);
    amp_json_begin_array(w, "rows");
    for (int i = 0; funcs[i]; i++) put_func(w, funcs[i], which, &id);
    amp_json_end_array(w);
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

void explain_put_cast(amp_json_writer *w, const ExplainFacts *x, const Cast *c) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "name", c->name);
    amp_json_put_string(w, "value", c->value);
    amp_json_put_string(w, "from", amp_dtype_name(c->from));
    amp_json_put_string(w, "to", amp_dtype_name(c->to));
    amp_json_put_string(w, "for", c->asker);
    amp_json_put_string(w, "function", c->func);
    amp_json_put_string(w, "phase", c->phase);
    bytes_put(w, x->m->arena, &c->bytes);
    amp_json_put_string(w, "place", explain_place_text(x, explain_place(x, c)));
    explain_put_place(w, c->pos);
    amp_json_end_object(w);
}

static void put_total(amp_json_writer *w, Arena *a, const CastTotal *t) {
    amp_json_put_int(w, "count", t->count);
    amp_json_put_int(w, "fused", t->fused);
    bytes_put(w, a, &t->bytes);
}

void explain_put_totals(amp_json_writer *w, const char *key, Arena *a, const CastTotals *totals) {
    amp_json_begin_object(w, key);
    put_total(w, a, &totals->all);
    amp_json_begin_array(w, "pairs");
    for (int i = 0; i < totals->pairs.len; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "from", amp_dtype_name(totals->pairs.data[i].from));
        amp_json_put_string(w, "to", amp_dtype_name(totals->pairs.data[i].to));
        put_total(w, a, &totals->pairs.data[i]);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
    amp_json_end_object(w);
}

/* Of the casts that are selected; null where the graph is lost. */
static void put_casts(amp_json_writer *w, const ExplainFacts *x, const ExplainSource *s,
                      const ExplainSelection *which) {
    if (!s->graph) {
        amp_json_put_null(w, "casts");
        amp_json_put_null(w, "cast_totals");
        return;
    }
    CastTotals totals = explain_cast_totals(x, which);
    amp_json_begin_array(w, "casts");
    const ExplainNumbers told = explain_told_casts(x, which);
    for (int i = 0; i < told.len; i++) explain_put_cast(w, x, &x->graph_casts.data[told.data[i]]);
    amp_json_end_array(w);
    explain_put_totals(w, "cast_totals", x->m->arena, &totals);
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

void explain_put_types(amp_json_writer *w, const Decision *d) {
    amp_json_put_string(w, "dtype", amp_dtype_name(d->out));
    amp_json_begin_array(w, "operands");
    for (int i = 0; i < d->operands.len; i++) amp_json_put_string(w, NULL, amp_dtype_name(d->operands.data[i]));
    amp_json_end_array(w);
}

static void put_cast_notes(amp_json_writer *w, const ExplainFacts *x, const Decision *d) {
    amp_json_begin_array(w, "casts");
    for (int i = 0; i < d->casts.len; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "value", d->casts.data[i].value);
        amp_json_put_string(w, "from", amp_dtype_name(d->casts.data[i].from));
        amp_json_put_string(w, "to", amp_dtype_name(d->casts.data[i].to));
        const Cast *c = explain_cast_of(x, &d->casts.data[i]);
        if (c) bytes_put(w, x->m->arena, &c->bytes);
        amp_json_put_string(w, "place", explain_place_text(x, explain_note_place(x, d, &d->casts.data[i])));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

void explain_put_reason(amp_json_writer *w, Arena *a, const Decision *d) {
    const Reason *r = d->reason;
    Text printed;
    text_init(&printed, a);
    ir_print_reason(&printed, r);
    amp_json_put_string(w, "rule", r->rule);
    amp_json_put_bool(w, "override", r->is_override);
    amp_json_put_string(w, "origin", r->is_override ? r->where.file : r->origin);
    amp_json_put_int(w, "origin_line", r->is_override ? r->where.line : r->line);
    amp_json_put_string(w, "neighbour", r->neighbour);
    amp_json_put_string(w, "because", r->because);
    amp_json_put_string(w, "policy_text", d->policy_text);
    amp_json_put_string(w, "reason", text_str(&printed));
}

static void put_cuda_kernels(amp_json_writer *w, const ExplainFacts *x, const char *path) {
    const ExplainNumbers *kernels = explain_cuda_kernels(x, path);
    amp_json_begin_array(w, "cuda_kernels");
    for (int i = 0; i < kernels->len; i++) {
        const Kernel *k = x->cuda->kernels.data[kernels->data[i]];
        const ExplainUses *uses = explain_uses(x, k);
        for (int u = 0; u < uses->len; u++) {
            amp_json_begin_object(w, NULL);
            amp_json_put_string(w, "kernel", k->name);
            amp_json_put_string(w, "arch", uses->data[u].arch);
            amp_json_put_int(w, "registers", uses->data[u].registers);
            amp_json_put_int(w, "shared_bytes", uses->data[u].shared_bytes);
            amp_json_put_int(w, "spill_bytes", uses->data[u].spill_bytes);
            amp_json_put_int(w, "stack_bytes", uses->data[u].stack_bytes);
            amp_json_end_object(w);
        }
    }
    amp_json_end_array(w);
}

static void put_narrow(amp_json_writer *w, const ExplainFacts *x, const NarrowSize *n) {
    Arena *a = x->m->arena;
    amp_json_begin_object(w, NULL);
    amp_json_put_int(w, "size", n->run);
    amp_json_put_int(w, "padded", n->padded);
    amp_json_put_bool(w, "head", n->is_head);
    amp_json_put_int(w, "bytes_a_copy", n->bytes);
    amp_json_put_int(w, "products", n->products);
    amp_json_put_bool(w, "worth_padding", n->is_worth);
    amp_json_put_string(w, "problem", tensor_cores_problem(a, n));
    amp_json_put_string(w, "remedy", tensor_cores_remedy(a, x->m, n));
    amp_json_end_object(w);
}

/* null: it is no product, or there is no code for CUDA. */
static void put_cores(amp_json_writer *w, const ExplainFacts *x, const Decision *d) {
    const CoresKind kind = explain_cores(x, d);
    const ExplainNumbers *narrow = explain_narrow(x, d->path);
    if (kind == CORES_UNKNOWN || kind == CORES_NO_PRODUCT) {
        amp_json_put_null(w, "tensor_cores");
        return;
    }
    amp_json_begin_object(w, "tensor_cores");
    amp_json_put_bool(w, "eligible", kind == CORES_YES);
    amp_json_put_string(w, "why", explain_cores_why(kind));
    amp_json_begin_array(w, "narrow");
    for (int i = 0; i < narrow->len; i++) put_narrow(w, x, &x->narrow_sizes.data[narrow->data[i]]);
    amp_json_end_array(w);
    amp_json_end_object(w);
}

/* |group|: of those that "groups" lists; NO_GROUP: it is told of by itself. */
enum { NO_GROUP = -1 };
static void put_decision(amp_json_writer *w, const ExplainFacts *x, const Decision *d, int group) {
    const ExplainNumbers *kernels = explain_kernels(x, d->path);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "path", d->path);
    amp_json_put_string(w, "op", d->op);
    amp_json_put_string(w, "layer", d->layer);
    explain_put_types(w, d);
    put_cast_notes(w, x, d);
    explain_put_reason(w, x->m->arena, d);
    amp_json_begin_array(w, "kernels");
    for (int i = 0; i < kernels->len; i++) amp_json_put_string(w, NULL, x->f->kernels.data[kernels->data[i]]->name);
    amp_json_end_array(w);
    if (x->cuda) put_cuda_kernels(w, x, d->path);
    put_cores(w, x, d);
    amp_json_put_string(w, "folded_into", explain_layer_of(x, d->path));
    if (group == NO_GROUP) amp_json_put_null(w, "group");
    else amp_json_put_int(w, "group", group);
    explain_put_place(w, d->pos);
    amp_json_end_object(w);
}

/* Each op of |told|, with the group that it is of; then the groups, of more than one each. */
static void put_decisions(amp_json_writer *w, const ExplainFacts *x, const ExplainNumbers *told) {
    const Module *m = x->m;
    const ExplainGroups groups = explain_groups(x, told, false);
    int *group = arena_array(m->arena, int, m->decisions.len + 1), count = 0;
    for (int i = 0; i < groups.len; i++) {
        const ExplainNumbers *ops = &groups.data[i]->ops;
        for (int k = 0; k < ops->len; k++) group[ops->data[k]] = ops->len > 1 ? count : NO_GROUP;
        count += ops->len > 1;
    }
    amp_json_begin_array(w, "decisions");
    for (int i = 0; i < told->len; i++) put_decision(w, x, &m->decisions.data[told->data[i]], group[told->data[i]]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "groups");
    for (int i = 0; i < groups.len; i++)
        if (groups.data[i]->ops.len > 1) amp_json_put_string(w, NULL, groups.data[i]->name);
    amp_json_end_array(w);
}

static void put_removed(amp_json_writer *w, const Module *m) {
    amp_json_begin_array(w, "removed");
    for (int i = 0; i < m->removed.len; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "function", m->removed.data[i].func);
        amp_json_put_string(w, "value", m->removed.data[i].value);
        amp_json_put_string(w, "what", m->removed.data[i].what);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

/* The arena as an allocator: where memory is out it jumps away from here, and what the writer holds goes with it. */
static void *take(void *arena, size_t size, size_t align) {
    (void)align; /* 16 at most */
    return arena_alloc(arena, size);
}

static void give(void *arena, void *ptr, size_t size, size_t align) { (void)arena, (void)ptr, (void)size, (void)align; }

amp_status explain_json_text(Text *t, Arena *a, void (*put)(amp_json_writer *w, const void *of), const void *of,
                             amp_error *err) {
    amp_json_writer w;
    amp_allocator of_arena = {.user = a, .alloc = take, .free = give};
    amp_json_writer_init(&w, &of_arena);
    amp_json_begin_object(&w, NULL);
    put(&w, of);
    amp_json_end_object(&w);
    amp_status status = amp_json_writer_status(&w, err);
    if (!status) text_write(t, w.data, w.size), text_putc(t, '\n');
    amp_json_writer_free(&w);
    return status;
}

void explain_put_members(amp_json_writer *w, const ExplainSource *s, const ExplainSelection *which) {
    const Module *m = s->m;
    ExplainFacts facts = explain_facts(s);
    amp_json_put_string(w, "model", m->name);
    amp_json_put_string(w, "schema", "ampc.explain");
    amp_json_put_int(w, "version", SCHEMA_VERSION);
    amp_json_put_string(w, "policy", m->policy_name);
    amp_json_put_string(w, "low", amp_dtype_name(m->low));
    amp_json_put_string(w, "sums", ir_sums_names[m->sums]);
    const ExplainNumbers told = explain_told(&facts, which, false);
    const ExplainGraph graph = explain_graph(&facts, s->graph, which, BLOCK_MOST);
    put_decisions(w, &facts, &told);
    put_casts(w, &facts, s, which);
    exchange_cost_put(w, s->m, s->cores.cuda);
    put_removed(w, m);
    explain_params_as_json(w, m, which);
    explain_put_graph(w, &graph);
    explain_put_programs(w, s);
}

typedef struct Report {
    const ExplainSource *source;
    const ExplainSelection *which;
} Report;

static void put_report(amp_json_writer *w, const void *of) {
    const Report *r = of;
    explain_put_members(w, r->source, r->which);
    if (r->source->graph) put_rows(w, r->source->graph, r->which);
    else amp_json_put_null(w, "rows"); /* IR of a later stage holds no graph */
}

amp_status explain_as_json(Text *t, const ExplainSource *s, const ExplainSelection *which, amp_error *err) {
    return explain_json_text(t, s->m->arena, put_report, &(Report){s, which}, err);
}
