/* model_names.c: the kinds of programs, results and counters of a model from before minor 4, which has names alone. */
#include "base/names.h"
#include "runtime/model/model_tables.h"

enum { MINOR_OF_KINDS = 4 };

/* A table that is damaged may lack names: the check that follows refuses it. */
static void name_state(amp_model_state *s) {
    bool is_scalar = s->role == AMP_STATE_COUNTER || s->role == AMP_STATE_SCALER;
    CounterName n = amp_counter_name(is_scalar && s->name ? s->name : "");
    s->counter = n.kind;
    s->counter_block = n.block;
}

static void name_result(const amp_model *m, amp_model_result *r) {
    ResultName n = amp_result_name(r->name ? r->name : "");
    r->kind = n.kind;
    r->index = n.kind == RESULT_GRADIENT ? amp_model_state_index(m, n.of) : n.block;
}

static bool has_names(const amp_model *m) {
    for (int32_t i = 0; i < m->state_count; i++)
        if (!m->states[i].name) return false;
    return true;
}

void amp_model_kinds_from_names(amp_model *m) {
    if (m->desc.abi_minor >= MINOR_OF_KINDS || !has_names(m)) return;
    for (int32_t i = 0; i < m->state_count; i++) name_state(&m->states[i]);
    for (int32_t i = 0; i < m->program_count; i++) {
        amp_program *p = &m->programs[i];
        p->kind = amp_program_kind(p->name ? p->name : "");
        for (int32_t r = 0; r < p->result_count; r++) name_result(m, &p->results[r]);
    }
}
