/* explain_params.c: how each parameter is trained: its train block, the groups that it falls into, what they set. */
#include <string.h>

#include "base/text.h"
#include "compiler/explain/explain.h"

/* The block that trains it and what the block's groups say; the last group that gives a setting decides it. */
typedef struct ParamFacts {
    const Train *block; /* NULL: none trains it */
    bool frozen;
    const TrainGroup *lr_scale, *weight_decay, *optimizer, *lazy; /* the groups that decide; NULL: none */
} ParamFacts;

static const TrainGroup *group_of(const Train *block, int group) {
    return group == NO_BLOCK ? NULL : &block->groups.data[group];
}

static ParamFacts facts_of(const Module *m, const char *name) {
    const ParamTraining t = ir_param_training(m, name);
    const Train *block = t.block == NO_BLOCK ? NULL : &m->trains.data[t.block];
    return (ParamFacts){block,
                        t.frozen != NO_BLOCK,
                        group_of(block, t.lr_scale),
                        group_of(block, t.weight_decay),
                        group_of(block, t.optimizer),
                        ir_lazy_group(m, name)};
}

static bool is_told(const State *s, const ExplainSelection *which) {
    return s->role == STATE_PARAM && explain_selects_param(which, s->name);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void tell_group(Text *t, const TrainGroup *g) {
    text_printf(t, ", by group \"%s\"", g->pattern);
    if (g->pos.line) text_printf(t, " (%s:%d)", g->pos.file, g->pos.line);
}

static void tell_param(Text *t, const Module *m, const State *s) {
    ParamFacts x = facts_of(m, s->name);
    text_printf(t, "  %s", s->name);
    text_pad_to(t, 28);
    text_puts(t, !x.block ? "not trained: no train block is for it" : x.frozen ? "not trained: frozen" : "trained");
    if (x.block && x.block->only) text_printf(t, " for \"%s\"", x.block->only);
    if (x.lr_scale && !x.frozen) {
        text_puts(t, "; lr_scale ");
        text_put_double(t, x.lr_scale->lr_scale);
        tell_group(t, x.lr_scale);
    }
    if (x.weight_decay && !x.frozen) {
        text_puts(t, "; weight_decay ");
        text_put_double(t, x.weight_decay->weight_decay);
        tell_group(t, x.weight_decay);
    }
    if (x.optimizer && !x.frozen) {
        text_printf(t, "; %s", x.optimizer->optimizer.name);
        tell_group(t, x.optimizer);
    }
    if (x.lazy) {
        text_puts(t, "; lazy: the rows of a step alone");
        tell_group(t, x.lazy);
    }
    text_putc(t, '\n');
}

void explain_params_as_text(Text *t, const Module *m, const ExplainSelection *which) {
    bool differ = m->trains.len > 1, told = false;
    for (int i = 0; i < m->trains.len; i++) differ |= m->trains.data[i].only || m->trains.data[i].groups.len;
    for (int i = 0; differ && i < m->states.len; i++) {
        if (!is_told(m->states.data[i], which)) continue;
        if (!told) text_puts(t, "parameters\n");
        told = true;
        tell_param(t, m, m->states.data[i]);
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* The groups that match, in the order of the block. */
static void put_groups(amp_json_writer *w, const Train *block, const char *name) {
    amp_json_begin_array(w, "groups");
    for (int i = 0; block && i < block->groups.len; i++) {
        const TrainGroup *g = &block->groups.data[i];
        if (text_glob_match(g->pattern, name)) amp_json_put_string(w, NULL, g->pattern);
    }
    amp_json_end_array(w);
}

static void put_param(amp_json_writer *w, const Module *m, const State *s) {
    ParamFacts x = facts_of(m, s->name);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "name", s->name);
    amp_json_put_bool(w, "trained", x.block && !x.frozen);
    amp_json_put_string(w, "for", x.block ? x.block->only : NULL);
    put_groups(w, x.block, s->name);
    amp_json_put_double(w, "lr_scale", x.lr_scale ? x.lr_scale->lr_scale : 1.0);
    if (x.weight_decay) amp_json_put_double(w, "weight_decay", x.weight_decay->weight_decay);
    else amp_json_put_null(w, "weight_decay"); /* the optimizer's */
    amp_json_put_string(w, "optimizer",
                        x.block ? (x.optimizer ? &x.optimizer->optimizer : &x.block->optimizer)->name : NULL);
    amp_json_put_bool(w, "lazy", x.lazy);
    amp_json_end_object(w);
}

void explain_params_as_json(amp_json_writer *w, const Module *m, const ExplainSelection *which) {
    amp_json_begin_array(w, "parameters");
    for (int i = 0; i < m->states.len; i++)
        if (is_told(m->states.data[i], which)) put_param(w, m, m->states.data[i]);
    amp_json_end_array(w);
}
