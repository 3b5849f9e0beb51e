/* fuse_title.c: what a kernel does, in the words of the graph.
 *     "fc1: linear + bias + relu"      a scope and its graph ops
 *     "fc1.weight: gradient + adamw"   a kernel that updates a parameter
 */
#include "passes/kernels/fuse.h"

enum { MAX_WORDS = 32, SHOWN_WORDS = 6 };

typedef struct Title {
    const char *subject;
    const char *words[MAX_WORDS];
    int count;
} Title;

static const State *updated_parameter(const Func *f, const Group *g) {
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = ir_op(f, g->ops.data[i]);
        const State *s = o->code == OP_assign ? ir_state_of(f, o->in[0]) : NULL;
        if (s && s->role == STATE_PARAM) return s;
    }
    return NULL;
}

/* "fc1.linear", "linear" -> "fc1"; "fc1.cast_2", "cast" -> "fc1"; other paths are a scope themselves. */
static const char *scope_of(Arena *a, const char *path, const char *op) {
    const char *dot = strrchr(path, '.');
    if (!dot || strncmp(dot + 1, op, strlen(op))) return path;
    const char *number = dot + 1 + strlen(op);
    bool numbered = number[0] == '_' && number[1] && !number[1 + strspn(number + 1, "0123456789")];
    return !*number || numbered ? arena_strndup(a, path, (size_t)(dot - path)) : path;
}

static void add_word(Title *t, const char *word) {
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->words[i], word)) return;
    if (t->count < MAX_WORDS) t->words[t->count++] = word;
}

/* The graph op that |o| came from; the bias of a linear layer counts as an op of its own. */
static const char *word_of(Func *f, const Op *o, bool of_parameter) {
    const Region *r = ir_region(f, o->region);
    const char *name = r ? r->op : ir_op_info[o->code].name;
    if (!strcmp(name, "linear") && o->code == OP_add) return "bias";
    bool gradient =
        of_parameter && o->path && strstr(o->path, ".grad") && ir_op_info[o->code].flags & (PRODUCT | REDUCE);
    return gradient && o->code != OP_reduce_or ? "gradient" : name;
}

/* What a person did not write. */
static bool is_silent(const Op *o) { return o->code == OP_assign || o->code == OP_const || o->code == OP_cast; }

const char *fuse_title(const Func *cf, const Group *g) {
    Func *f = (Func *)cf;
    Arena *a = f->module->arena;
    const State *parameter = updated_parameter(f, g);
    Title t = {.subject = parameter ? parameter->name : NULL};
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = ir_op(f, g->ops.data[i]);
        if (is_silent(o)) continue;
        if (!t.subject && o->path) t.subject = scope_of(a, o->path, word_of(f, o, false));
        add_word(&t, word_of(f, o, parameter != NULL));
    }
    const Op *first = ir_op(f, g->ops.data[0]);
    if (!t.count) add_word(&t, word_of(f, first, false));
    if (!t.subject && first->path) t.subject = scope_of(a, first->path, t.words[0]);
    Text text;
    text_init(&text, a);
    if (t.subject) text_printf(&text, "%s: ", t.subject);
    for (int i = 0; i < t.count && i < SHOWN_WORDS; i++) text_printf(&text, "%s%s", i ? " + " : "", t.words[i]);
    if (t.count > SHOWN_WORDS) text_printf(&text, " + %d more", t.count - SHOWN_WORDS);
    return text_str(&text);
}
