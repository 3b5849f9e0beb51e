/* onnx_report.c: see onnx_autocast.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "compiler/explain/explain.h"
#include "compiler/onnx/onnx_autocast.h"
#include "compiler/report/report.h"

static const char *const fates[] = {
    [ONNX_AS_IS] = "as it is", [ONNX_LOWER] = "", [ONNX_IN_F32] = "float32", [ONNX_DROPPED] = "gone"};

const char *autocast_type_of(const Autocast *a, const OnnxDecision *d) {
    return d->fate == ONNX_LOWER ? onnx_dtype_name(a->low) : fates[d->fate];
}

static const char *op_of(const OnnxNodeEntry *e, const OnnxDecision *d) { return d->op ? d->op : e->node->op_type; }

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static int by_nodes(const void *a, const void *b) {
    const ReasonGroup *x = a, *y = b;
    if (x->nodes != y->nodes) return x->nodes < y->nodes ? 1 : -1;
    return x->like < y->like ? -1 : x->like > y->like;
}

/* Nodes of one answer, op and line of the policy, whatever their neighbours are. */
ReasonGroups autocast_groups(Autocast *a) {
    Table known = {0};
    ReasonGroups groups = {0};
    for (int32_t i = 0; i < a->index.node_count; i++) {
        const OnnxDecision *d = &a->decisions.nodes[i];
        if (d->fate != ONNX_LOWER && d->fate != ONNX_IN_F32) continue;
        const char *key = arena_printf(&a->arena, "%d %s %s %d %s", (int)d->fate, d->op ? d->op : "", d->reason.rule,
                                       d->reason.line, d->reason.relation ? d->reason.relation : "");
        ReasonGroup *group = table_get(&known, key);
        if (!group) {
            group = arena_new(&a->arena, ReasonGroup);
            group->like = d;
            table_set(&a->arena, &known, key, group);
        }
        group->nodes++;
    }
    for (int i = 0; i < known.entries.len; i++)
        vec_push(&a->arena, &groups, *(const ReasonGroup *)known.entries.data[i].value);
    if (groups.len) qsort(groups.data, (size_t)groups.len, sizeof *groups.data, by_nodes);
    return groups;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void autocast_tell_bytes(Text *t, double bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    while (bytes >= 1000.0 && unit < 4) bytes /= 1000.0, unit++;
    text_printf(t, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static void tell_change(Text *t, const char *what, double before, double after) {
    text_puts(t, what);
    text_pad_to(t, 10);
    autocast_tell_bytes(t, before);
    text_puts(t, " -> ");
    autocast_tell_bytes(t, after);
}

static void tell_totals(Autocast *a, Text *t) {
    const amp_onnx_counts *c = &a->counts;
    text_printf(t, "%s, policy %s: %lld of %lld nodes in %s, %lld in float32\n", a->name, a->policy->name,
                (long long)c->lowered, (long long)c->nodes, onnx_dtype_name(a->low), (long long)c->kept);
    text_printf(t, "casts     %lld -> %lld\n", (long long)c->casts_before, (long long)c->casts);
    tell_change(t, "weights", (double)c->weight_bytes_before, (double)c->weight_bytes);
    text_printf(t, ", %lld converted", (long long)c->weights);
    if (c->over) text_printf(t, "; %lld elements became infinite", (long long)c->over);
    if (c->under) text_printf(t, "; %lld elements became zero", (long long)c->under);
    text_putc(t, '\n');
    tell_change(t, "moved", c->moved_bytes_before, c->moved_bytes);
    text_printf(t, " that nodes read and write%s\n", a->unknown_sizes ? ", where sizes are known" : "");
    if (a->unknown_ranges)
        text_printf(t, "ranges    %lld names of %s are of no value of the model\n", (long long)a->unknown_ranges,
                    a->options->ranges);
}

static void tell_groups(Autocast *a, Text *t) {
    enum { MOST = 12 };
    const ReasonGroups groups = autocast_groups(a);
    int64_t left = 0;
    text_puts(t, "\n nodes  type      op                  because\n");
    for (int i = 0; i < groups.len; i++) {
        const OnnxDecision *d = groups.data[i].like;
        if (i >= MOST && !a->options->all) {
            left += groups.data[i].nodes;
            continue;
        }
        Reason reason = d->reason;
        if (groups.data[i].nodes > 1) reason.neighbour = reason.relation = NULL;
        text_printf(t, "%6lld  %s", (long long)groups.data[i].nodes, autocast_type_of(a, d));
        text_pad_to(t, 18);
        text_puts(t, d->op ? d->op : "");
        text_pad_to(t, 38);
        ir_print_reason(t, &reason);
        text_putc(t, '\n');
    }
    if (left) text_printf(t, "%6lld  others (--all)\n", (long long)left);
}

static void tell_losses(Autocast *a, Text *t) {
    enum { MOST = 12 };
    int told = 0, left = 0;
    for (int32_t i = 0; i < a->index.value_count; i++) {
        const OnnxLoss *loss = &a->losses[i];
        if ((!loss->over && !loss->under) || !autocast_is_converted(a, i)) continue;
        if (told >= MOST && !a->options->all) {
            left++;
            continue;
        }
        if (!told++) text_puts(t, "\nweights that lose elements\n");
        text_printf(t, "  %s: %llu infinite, %llu zero\n", a->index.values[i].name, (unsigned long long)loss->over,
                    (unsigned long long)loss->under);
    }
    if (left) text_printf(t, "  and %d others (--all)\n", left);
}

static void tell_nodes(Autocast *a, Text *t) {
    text_puts(t, "\n node                                    op                  type      because\n");
    for (int32_t i = 0; i < a->index.node_count; i++) {
        const OnnxDecision *d = &a->decisions.nodes[i];
        const OnnxNodeEntry *e = &a->index.nodes[i];
        text_printf(t, " %s", *e->node->name ? e->node->name : onnx_node_text(&a->index, &a->arena, i));
        text_pad_to(t, 41);
        text_puts(t, op_of(e, d));
        text_pad_to(t, 61);
        text_puts(t, autocast_type_of(a, d));
        text_pad_to(t, 71);
        if (d->reason.rule) ir_print_reason(t, &d->reason);
        text_putc(t, '\n');
    }
}

void autocast_as_text(Autocast *a, Text *t) {
    tell_totals(a, t);
    tell_groups(a, t);
    tell_losses(a, t);
    if (a->options->all) tell_nodes(a, t);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_reason(amp_json_writer *w, Autocast *a, const OnnxDecision *d) {
    const Reason *r = &d->reason;
    amp_json_put_string(w, "type", d->fate == ONNX_AS_IS || d->fate == ONNX_DROPPED ? NULL : autocast_type_of(a, d));
    amp_json_put_string(w, "rule", r->rule);
    amp_json_put_string(w, "policy", r->origin);
    if (r->line) amp_json_put_int(w, "line", r->line);
    else amp_json_put_null(w, "line");
    amp_json_put_string(w, "policy_line", d->policy_text);
}

static void put_counts(amp_json_writer *w, const Autocast *a) {
    const amp_onnx_counts *c = &a->counts;
    amp_json_put_string(w, "model", a->name);
    amp_json_put_string(w, "output", a->options->output);
    amp_json_put_string(w, "policy", a->policy->name);
    amp_json_put_string(w, "low", onnx_dtype_name(a->low));
    amp_json_put_int(w, "opset", onnx_opset(&a->model.opsets, ""));
    amp_json_put_int(w, "nodes", c->nodes);
    amp_json_put_int(w, "lowered", c->lowered);
    amp_json_put_int(w, "kept", c->kept);
    amp_json_put_int(w, "casts_before", c->casts_before);
    amp_json_put_int(w, "casts", c->casts);
    amp_json_put_int(w, "weight_bytes_before", c->weight_bytes_before);
    amp_json_put_int(w, "weight_bytes", c->weight_bytes);
    amp_json_put_double(w, "moved_bytes_before", c->moved_bytes_before);
    amp_json_put_double(w, "moved_bytes", c->moved_bytes);
    amp_json_put_int(w, "unknown_sizes", a->unknown_sizes);
    amp_json_put_int(w, "unknown_ranges", a->unknown_ranges);
}

static void put_groups(amp_json_writer *w, Autocast *a) {
    const ReasonGroups groups = autocast_groups(a);
    amp_json_begin_array(w, "groups");
    for (int i = 0; i < groups.len; i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_int(w, "nodes", groups.data[i].nodes);
        amp_json_put_string(w, "op", groups.data[i].like->op);
        put_reason(w, a, groups.data[i].like);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_weights(amp_json_writer *w, const Autocast *a) {
    amp_json_begin_array(w, "weights");
    for (int32_t i = 0; i < a->index.value_count; i++) {
        if (!autocast_is_converted(a, i)) continue;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", a->index.values[i].name);
        amp_json_put_double(w, "smallest", a->ranges[i].smallest);
        amp_json_put_double(w, "largest", a->ranges[i].largest);
        amp_json_put_int(w, "over", (int64_t)a->losses[i].over);
        amp_json_put_int(w, "under", (int64_t)a->losses[i].under);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

/* Where types meet, before casts that were there serve again. */
static void put_casts(amp_json_writer *w, const Autocast *a) {
    const OnnxDecisions *d = &a->decisions;
    amp_json_begin_array(w, "cast_values");
    for (int i = 0; i < d->casts.len; i++) {
        const OnnxCast *c = &d->casts.data[i];
        const double elements = onnx_typical_elements(&a->solution, c->value);
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "value", a->index.values[c->value].name);
        amp_json_put_string(w, "from", onnx_dtype_name(d->stored[c->value]));
        amp_json_put_string(w, "to", onnx_dtype_name(c->dtype));
        amp_json_put_string(w, "for", c->wanted_by == ONNX_NONE ? NULL : a->index.nodes[c->wanted_by].node->name);
        amp_json_put_bool(w, "weight", c->is_weight);
        if (elements < 0.0) amp_json_put_null(w, "bytes");
        else amp_json_put_double(w, "bytes", elements * onnx_dtype_bits(c->dtype) / 8.0);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

/* Of values that were measured. */
static void put_ranges(amp_json_writer *w, const Autocast *a) {
    amp_json_begin_array(w, "ranges");
    for (int32_t i = 0; i < a->index.value_count; i++) {
        const OnnxValue *v = &a->index.values[i];
        const bool is_constant =
            v->producer != ONNX_NONE && !strcmp(a->index.nodes[v->producer].node->op_type, "Constant");
        if (a->ranges[i].largest == 0.0 || v->initializer || v->sparse || is_constant) continue;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", v->name);
        amp_json_put_double(w, "smallest", a->ranges[i].smallest);
        amp_json_put_double(w, "largest", a->ranges[i].largest);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_decisions(amp_json_writer *w, Autocast *a) {
    amp_json_begin_array(w, "decisions");
    for (int32_t i = 0; i < a->index.node_count; i++) {
        const OnnxDecision *d = &a->decisions.nodes[i];
        const OnnxNodeEntry *e = &a->index.nodes[i];
        Text t;
        text_init(&t, &a->arena);
        if (d->reason.rule) ir_print_reason(&t, &d->reason);
        amp_json_begin_object(w, NULL);
        amp_json_put_int(w, "graph", e->graph);
        amp_json_put_string(w, "node", e->node->name);
        amp_json_put_string(w, "result", e->node->outputs.len ? e->node->outputs.data[0] : "");
        amp_json_put_string(w, "op_type", e->node->op_type);
        amp_json_put_string(w, "op", d->op);
        put_reason(w, a, d);
        amp_json_put_string(w, "because", text_str(&t));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_all(amp_json_writer *w, const void *of) {
    Autocast *a = *(Autocast *const *)of;
    put_counts(w, a);
    put_groups(w, a);
    put_decisions(w, a);
    put_weights(w, a);
    put_casts(w, a);
    put_ranges(w, a);
}

amp_status autocast_as_json(Autocast *a, Text *t, amp_error *err) {
    return explain_json_text(t, &a->arena, put_all, &a, err);
}

amp_status autocast_as_html(Autocast *a, Text *t, amp_error *err) {
    Text json;
    text_init(&json, &a->arena);
    AMP_TRY(autocast_as_json(a, &json, err));
    const amp_report_part all = {"autocast", text_str(&json), json.len};
    report_put(t, a->name, &all, NULL, 0);
    return AMP_OK;
}
