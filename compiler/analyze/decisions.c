/* decisions.c: the shape and dtype of what names mean, and why, of the module after autocast. */
#include "compiler/analyze/analysis.h"

#include "compiler/explain/explain.h"

enum { MOST_CASTS = 4 }; /* of a value that are told; the others are counted */

typedef struct Teller {
    Analysis *x;
    const Module *m;
    const Func *f;
    Arena *scratch;  /* the module's: of the session */
    Table decisions; /* path -> number, 1 more */
    Table casts;     /* value -> CastLines */
} Teller;

typedef struct CastLines {
    Text text;
    int count;
} CastLines;

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* "f16 x f16 x f16 -> f16" */
static const char *types_of(Teller *t, const Decision *d) {
    Text text;
    text_init(&text, &t->x->arena);
    for (int i = 0; i < d->operands.len; i++)
        text_printf(&text, "%s%s", i ? " x " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(&text, "%s-> %s", d->operands.len ? " " : "", amp_dtype_name(d->out));
    return text_str(&text);
}

/* Runs of spaces, which line columns up on a terminal, are one. */
static const char *reason_of(Teller *t, const Decision *d) {
    Text aligned, text;
    text_init(&aligned, t->scratch);
    text_init(&text, &t->x->arena);
    explain_tell_reason(&aligned, t->m, d);
    for (const char *at = text_str(&aligned); *at; at++)
        if (*at != ' ' || at[1] != ' ') text_putc(&text, *at);
    return text_str(&text);
}

static void tell_cast(Teller *t, const CastNote *note, const char *path) {
    CastLines *lines = table_get(&t->casts, note->value);
    if (!lines) {
        lines = arena_new(t->scratch, CastLines);
        text_init(&lines->text, &t->x->arena);
        table_set(t->scratch, &t->casts, note->value, lines);
    }
    if (++lines->count <= MOST_CASTS)
        text_printf(&lines->text, "%s%s for %s", lines->count > 1 ? "\n" : "", amp_dtype_name(note->to), path);
}

static void tell_decision(Teller *t, const Decision *d) {
    Analysis *x = t->x;
    amp_op_decision told = {.span = analysis_word(x, d->pos),
                            .path = analysis_copy(x, d->path),
                            .op = analysis_copy(x, d->op),
                            .layer = analysis_copy(x, d->layer),
                            .types = types_of(t, d),
                            .rule = analysis_copy(x, d->reason->rule),
                            .reason = reason_of(t, d),
                            .override = analysis_word(x, d->reason->is_override ? d->reason->where : (Pos){0})};
    vec_push(&x->arena, &x->decisions, told);
    table_set(t->scratch, &t->decisions, d->path, (void *)(intptr_t)x->decisions.len);
    for (int i = 0; i < d->casts.len; i++) tell_cast(t, &d->casts.data[i], d->path);
}

static int decision_of(const Teller *t, const Op *o) {
    return o && o->path ? (int)(intptr_t)table_get(&t->decisions, o->path) - 1 : -1;
}

/* The shapes of results. */
static void tell_shapes(Teller *t) {
    for (int i = 0; t->f && i < t->f->body.len; i++) {
        const Op *o = ir_op_at(t->f, i);
        const int decision = decision_of(t, o);
        if (decision < 0 || !o->n_out) continue;
        t->x->decisions.data[decision].shape = shape_text(&t->x->arena, ir_shape(t->f, o->out[0]));
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *casts_of_value(Teller *t, const char *value) {
    CastLines *lines = table_get(&t->casts, value);
    if (!lines) return NULL;
    if (lines->count > MOST_CASTS) {
        text_printf(&lines->text, "\nand %d more", lines->count - MOST_CASTS);
        lines->count = MOST_CASTS;
    }
    return text_str(&lines->text);
}

static amp_symbol_value value_of(Teller *t, const FrontendBinding *b) {
    amp_symbol_value told = {.decision = -1};
    const Val v = b->value ? ir_find(t->f, b->value) : NO_VAL;
    const State *state = b->is_state ? ir_state_find(t->m, b->text) : NULL;
    if (v.id) {
        told.type = type_text(&t->x->arena, ir_dtype(t->f, v), ir_shape(t->f, v));
        told.decision = decision_of(t, ir_def(t->f, v));
        told.casts = casts_of_value(t, b->value);
    } else if (state) {
        told.type = type_text(&t->x->arena, state->dtype, &state->shape);
        told.casts = casts_of_value(t, b->text);
    } else {
        told.type = analysis_copy(t->x, b->value || b->is_state ? NULL : b->text);
    }
    told.is_tensor = v.id || state;
    return told;
}

static const char *place_key(Arena *a, amp_span span) { return arena_printf(a, "%d:%u", span.file, span.begin); }

/* Values of one symbol stand together, in the order of elaboration. */
static void tell_values(Teller *t, const FrontendBindings *bindings) {
    Analysis *x = t->x;
    Table symbols = {0};
    int *symbol_of = arena_array(t->scratch, int, bindings->len + 1);
    int *next = arena_array(t->scratch, int, x->symbols.len + 1), total = 0;
    for (int i = 0; i < x->symbols.len; i++)
        if (x->symbols.data[i].span.file >= 0 && x->symbols.data[i].kind != AMP_SYMBOL_FILE)
            table_set(t->scratch, &symbols, place_key(t->scratch, x->symbols.data[i].span), (void *)(intptr_t)(i + 1));
    for (int i = 0; i < bindings->len; i++) {
        const amp_span span = analysis_span(x, bindings->data[i].loc);
        symbol_of[i] = (int)(intptr_t)table_get(&symbols, place_key(t->scratch, span)) - 1;
        if (symbol_of[i] >= 0) x->symbols.data[symbol_of[i]].value_count++;
    }
    for (int i = 0; i < x->symbols.len; i++) {
        x->symbols.data[i].first_value = (size_t)(next[i] = total);
        total += (int)x->symbols.data[i].value_count;
    }
    amp_symbol_value *values = arena_array(&x->arena, amp_symbol_value, total + 1);
    for (int i = 0; i < bindings->len; i++)
        if (symbol_of[i] >= 0) values[next[symbol_of[i]]++] = value_of(t, &bindings->data[i]);
    x->told.values = values;
    x->told.value_count = (size_t)total;
}

void analysis_tell_decisions(Analysis *x, const Module *m, const FrontendBindings *bindings) {
    Teller t = {.x = x, .m = m, .f = ir_program(m, PROGRAM_FORWARD), .scratch = m->arena};
    if (!t.f) return;
    for (int i = 0; i < m->decisions.len; i++) tell_decision(&t, &m->decisions.data[i]);
    tell_shapes(&t);
    tell_values(&t, bindings);
    x->told.is_complete = true;
}
