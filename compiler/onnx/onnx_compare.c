/* onnx_compare.c: see amp/onnx.h: what differs between two models, such as before and after autocast.  Nodes are the
 * same if their names are, or, without one, the names of their first outputs; casts between float types are compared by
 * what they cast. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "compiler/compile_session.h"
#include "compiler/explain/explain.h"
#include "compiler/onnx/onnx_autocast.h"

typedef struct Side {
    Autocast a;
    Table nodes, casts, weights; /* by name: numbers of nodes, of nodes, of values, each and 1 */
    int64_t cast_count, weight_bytes;
} Side;

typedef struct Change {
    int32_t before, after; /* nodes, or values; ONNX_NONE: it is on one side alone */
} Change;
typedef VEC(Change) Changes;

typedef struct Comparison {
    Side before, after;
    Changes nodes, weights;          /* in another type */
    Changes only_before, only_after; /* nodes */
    Changes casts_gone, casts_came;
    Arena *arena;
} Comparison;

typedef struct Given {
    const char *before, *after;
    amp_onnx_options options;
} Given;

/* ---- one side ---------------------------------------------------------------------------------------------------- */

static int32_t number_in(const Table *t, const char *key) { return (int32_t)(intptr_t)table_get(t, key) - 1; }

static void keep(Arena *arena, Table *t, const char *key, int32_t number) {
    if (!table_get(t, key)) table_set(arena, t, key, (void *)(intptr_t)(number + 1));
}

static const OnnxNode *node_of(const Side *s, int32_t node) { return s->a.index.nodes[node].node; }

static const char *result_of(const OnnxNode *n) { return n->outputs.len ? n->outputs.data[0] : ""; }

static const char *name_of(const OnnxNode *n) { return *n->name ? n->name : result_of(n); }

static int dtype_of(const Side *s, int32_t value) {
    const OnnxValueType *t = value == ONNX_NONE ? NULL : &s->a.solution.types[value];
    return t && t->kind == ONNX_KIND_TENSOR && (onnx_is_float(t->dtype) || t->dtype == ONNX_DOUBLE) ? t->dtype : 0;
}

/* The float type that a node makes, or reads if it makes none; 0: neither. */
static int type_of(const Side *s, int32_t node) {
    const OnnxNodeEntry *e = &s->a.index.nodes[node];
    int dtype = 0;
    for (int i = 0; i < e->node->outputs.len && !dtype; i++)
        dtype = dtype_of(s, s->a.index.operands[e->first_output + i]);
    for (int i = 0; i < e->node->inputs.len && !dtype; i++)
        dtype = dtype_of(s, s->a.index.operands[e->first_input + i]);
    return dtype;
}

static const char *type_name(const Side *s, int32_t node) {
    const int dtype = node == ONNX_NONE ? 0 : type_of(s, node);
    return dtype ? onnx_dtype_name(dtype) : NULL;
}

/* What autocast has written there; NULL: nothing. */
static const char *because_of(const Side *s, int32_t node) {
    const OnnxProps *props = &node_of(s, node)->metadata;
    for (int i = 0; i < props->len; i++)
        if (!strcmp(props->data[i].key, "ampc.because")) return props->data[i].value;
    return NULL;
}

static const char *cast_key(const Side *s, Arena *arena, int32_t node) {
    return arena_printf(arena, "%s:%s", type_name(s, node), node_of(s, node)->inputs.data[0]);
}

static void list_names(Side *s, Arena *arena) {
    for (int32_t i = 0; i < s->a.index.node_count; i++) {
        if (autocast_is_cast(&s->a, i)) {
            keep(arena, &s->casts, cast_key(s, arena, i), i);
            s->cast_count++;
        } else keep(arena, &s->nodes, name_of(node_of(s, i)), i);
    }
    for (int32_t i = 0; i < s->a.index.value_count; i++) {
        const OnnxValue *v = &s->a.index.values[i];
        if (v->initializer || v->sparse) keep(arena, &s->weights, v->name, i);
    }
    s->weight_bytes = autocast_weight_bytes(&s->a);
}

static amp_status read_side(Side *s, Arena *arena, amp_error *err) {
    AMP_TRY(onnx_read(s->a.name, arena, &s->a.model, err));
    AMP_TRY(autocast_solve(&s->a, arena, err));
    list_names(s, arena);
    return AMP_OK;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void compare_nodes(Comparison *c) {
    const Side *b = &c->before, *a = &c->after;
    for (int i = 0; i < a->nodes.entries.len; i++) {
        const int32_t after = number_in(&a->nodes, a->nodes.entries.data[i].key);
        const Change change = {number_in(&b->nodes, a->nodes.entries.data[i].key), after};
        if (change.before == ONNX_NONE) vec_push(c->arena, &c->only_after, change);
        else if (type_of(b, change.before) != type_of(a, after) ||
                 strcmp(node_of(b, change.before)->op_type, node_of(a, after)->op_type))
            vec_push(c->arena, &c->nodes, change);
    }
    for (int i = 0; i < b->nodes.entries.len; i++) {
        const char *key = b->nodes.entries.data[i].key;
        const Change change = {number_in(&b->nodes, key), ONNX_NONE};
        if (!table_get(&a->nodes, key)) vec_push(c->arena, &c->only_before, change);
    }
}

/* Casts of |from| that |to| has not. */
static void compare_casts(Comparison *c, const Side *from, const Side *to, Changes *out) {
    for (int i = 0; i < from->casts.entries.len; i++) {
        const char *key = from->casts.entries.data[i].key;
        const Change change = {number_in(&from->casts, key), ONNX_NONE};
        if (!table_get(&to->casts, key)) vec_push(c->arena, out, change);
    }
}

static void compare_weights(Comparison *c) {
    for (int i = 0; i < c->after.weights.entries.len; i++) {
        const char *name = c->after.weights.entries.data[i].key;
        const Change change = {number_in(&c->before.weights, name), number_in(&c->after.weights, name)};
        const OnnxValueType *types = c->after.a.solution.types;
        if (change.before == ONNX_NONE || c->before.a.solution.types[change.before].dtype != types[change.after].dtype)
            vec_push(c->arena, &c->weights, change);
    }
}

static bool is_same(const Comparison *c) {
    return !c->nodes.len && !c->weights.len && !c->only_before.len && !c->only_after.len && !c->casts_gone.len &&
           !c->casts_came.len;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

enum { MOST = 12 };

static void tell_side(Text *t, const char *which, const Side *s) {
    text_printf(t, "%s %s: opset %lld, %lld nodes, %lld casts, ", which, s->a.name,
                (long long)onnx_opset(&s->a.model.opsets, ""), (long long)s->a.index.node_count,
                (long long)s->cast_count);
    autocast_tell_bytes(t, (double)s->weight_bytes);
    text_puts(t, " of weights\n");
}

typedef struct Kind { /* changes that are told as one */
    const char *text;
    int count, first;
} Kind;

static int by_count(const void *a, const void *b) {
    const Kind *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : x->first - y->first;
}

static const char *plain_type(const char *type) { return type ? type : "none"; }

static const char *kind_text(const Comparison *c, const Change *change) {
    Text t;
    text_init(&t, c->arena);
    text_puts(&t, plain_type(type_name(&c->before, change->before)));
    text_pad_to(&t, 10);
    text_puts(&t, plain_type(type_name(&c->after, change->after)));
    text_pad_to(&t, 20);
    text_puts(&t, node_of(&c->after, change->after)->op_type);
    const char *because = because_of(&c->after, change->after);
    if (because) {
        const char *detail = strstr(because, ", \""); /* numbers, which are another node's */
        text_pad_to(&t, 40);
        text_printf(&t, "%.*s%s", detail ? (int)(detail - because) : (int)strlen(because), because, detail ? "}" : "");
    }
    return text_str(&t);
}

static void tell_nodes(const Comparison *c, bool all, Text *t) {
    Table known = {0};
    VEC(Kind) kinds = {0};
    for (int i = 0; i < c->nodes.len; i++) {
        const char *text = kind_text(c, &c->nodes.data[i]);
        int32_t at = number_in(&known, text);
        if (at < 0) {
            keep(c->arena, &known, text, at = kinds.len);
            vec_push(c->arena, &kinds, ((Kind){text, 0, i}));
        }
        kinds.data[at].count++;
    }
    if (!kinds.len) return;
    qsort(kinds.data, (size_t)kinds.len, sizeof *kinds.data, by_count);
    text_puts(t, "\n nodes  before    after     op                  because, after\n");
    int left = 0;
    for (int i = 0; i < kinds.len; i++) {
        if (i < MOST || all) text_printf(t, "%6d  %s\n", kinds.data[i].count, kinds.data[i].text);
        else left += kinds.data[i].count;
    }
    if (left) text_printf(t, "%6d  others (--json has all)\n", left);
}

static void tell_names(Text *t, const char *what, const Side *s, const Changes *list, bool are_after) {
    if (!list->len) return;
    text_printf(t, "%s", what);
    for (int i = 0; i < list->len && i < MOST; i++) {
        const int32_t node = are_after ? list->data[i].after : list->data[i].before;
        text_printf(t, "%s%s", i ? ", " : " ", name_of(node_of(s, node)));
    }
    if (list->len > MOST) text_printf(t, " and %d others", list->len - MOST);
    text_putc(t, '\n');
}

static void tell(const Comparison *c, bool all, Text *t) {
    tell_side(t, "before:", &c->before);
    tell_side(t, "after: ", &c->after);
    if (is_same(c)) {
        text_puts(t, "no node, cast or weight differs in its type\n");
        return;
    }
    text_printf(t, "nodes     %d in another type, of %d\n", c->nodes.len,
                c->after.nodes.entries.len - c->only_after.len);
    text_printf(t, "casts     %d came, %d went\n", c->casts_came.len, c->casts_gone.len);
    text_printf(t, "weights   %d in another type or new\n", c->weights.len);
    tell_names(t, "only before:", &c->before, &c->only_before, false);
    tell_names(t, "only after: ", &c->after, &c->only_after, true);
    tell_nodes(c, all, t);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_side(amp_json_writer *w, const char *name, const Side *s) {
    amp_json_begin_object(w, name);
    amp_json_put_string(w, "model", s->a.name);
    amp_json_put_int(w, "opset", onnx_opset(&s->a.model.opsets, ""));
    amp_json_put_int(w, "nodes", s->a.index.node_count);
    amp_json_put_int(w, "casts", s->cast_count);
    amp_json_put_int(w, "weight_bytes", s->weight_bytes);
    amp_json_end_object(w);
}

static void put_nodes(amp_json_writer *w, const char *name, const Comparison *c, const Changes *list) {
    amp_json_begin_array(w, name);
    for (int i = 0; i < list->len; i++) {
        const Change *change = &list->data[i];
        const Side *s = change->after == ONNX_NONE ? &c->before : &c->after;
        const int32_t node = change->after == ONNX_NONE ? change->before : change->after;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "node", node_of(s, node)->name);
        amp_json_put_string(w, "result", result_of(node_of(s, node)));
        amp_json_put_string(w, "op_type", node_of(s, node)->op_type);
        amp_json_put_string(w, "before", type_name(&c->before, change->before));
        amp_json_put_string(w, "after", type_name(&c->after, change->after));
        amp_json_put_string(w, "because", because_of(s, node));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_casts(amp_json_writer *w, const char *name, const Side *s, const Changes *list) {
    amp_json_begin_array(w, name);
    for (int i = 0; i < list->len; i++) {
        const OnnxNode *n = node_of(s, list->data[i].before);
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "node", n->name);
        amp_json_put_string(w, "value", n->inputs.data[0]);
        amp_json_put_string(w, "to", type_name(s, list->data[i].before));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_weights(amp_json_writer *w, const Comparison *c) {
    amp_json_begin_array(w, "weights");
    for (int i = 0; i < c->weights.len; i++) {
        const Change *change = &c->weights.data[i];
        const OnnxValueType *before = c->before.a.solution.types, *after = c->after.a.solution.types;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", c->after.a.index.values[change->after].name);
        amp_json_put_string(w, "before",
                            change->before == ONNX_NONE ? NULL : onnx_dtype_name(before[change->before].dtype));
        amp_json_put_string(w, "after", onnx_dtype_name(after[change->after].dtype));
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_all(amp_json_writer *w, const void *of) {
    const Comparison *c = *(const Comparison *const *)of;
    put_side(w, "before", &c->before);
    put_side(w, "after", &c->after);
    amp_json_put_bool(w, "same", is_same(c));
    put_nodes(w, "changed", c, &c->nodes);
    put_nodes(w, "only_before", c, &c->only_before);
    put_nodes(w, "only_after", c, &c->only_after);
    put_casts(w, "casts_gone", &c->before, &c->casts_gone);
    put_casts(w, "casts_came", &c->after, &c->casts_came);
    put_weights(w, c);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static amp_status work(Session *s, Comparison *c, const amp_onnx_options *o, amp_compile_result **out, amp_error *err) {
    AMP_TRY(read_side(&c->before, c->arena, err));
    AMP_TRY(read_side(&c->after, c->arena, err));
    compare_nodes(c);
    compare_casts(c, &c->before, &c->after, &c->casts_gone);
    compare_casts(c, &c->after, &c->before, &c->casts_came);
    compare_weights(c);
    Text t;
    text_init(&t, c->arena);
    if (o->json) AMP_TRY(explain_json_text(&t, c->arena, put_all, &c, err));
    else tell(c, o->all != 0, &t);
    return session_give_text(s, &t, out, err);
}

static amp_status run(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const Given *g = arguments;
    Comparison *c = arena_new(&s->arena, Comparison); /* is whole after the jump */
    c->arena = &c->before.a.arena;
    c->before.a.name = g->before;
    c->after.a.name = g->after;
    c->before.a.options = c->after.a.options = &g->options;
    amp_status status;
    arena_init(c->arena, &s->arena.allocator);
    if (setjmp(c->arena->out_of_memory)) status = session_out_of_memory(s, err);
    else status = work(s, c, &g->options, out, err);
    onnx_close(&c->before.a.model);
    onnx_close(&c->after.a.model);
    arena_free(c->arena);
    return status;
}

amp_status amp_onnx_compare(const char *before, const char *after, const amp_onnx_options *options,
                            amp_compile_result **out, amp_error *err) {
    Given g = {.before = before, .after = after};
    if (out) *out = NULL;
    if (!before || !after)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_onnx_compare: a model is NULL; give two files");
    return autocast_call("amp_onnx_compare", after, options, &g.options, run, &g, out, err);
}
