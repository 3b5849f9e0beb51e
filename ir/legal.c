/* legal.c: whether an op's operands and results are of types that its signatures in ops.def allow. */
#include "ir/legal.h"

int legal_level(Stage stage) { return stage < STAGE_LOWER ? GRAPH : CORE; }

const char *legal_signatures(Opcode code, int level) {
    return level == GRAPH ? ir_op_info[code].graph : ir_op_info[code].core;
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

typedef struct Matching {
    const Func *f;
    const char *at;      /* in the signature */
    Dtype product, type; /* what P and T stand for; AMP_DT_NONE: not met yet */
} Matching;

static bool is_graph_float(Dtype t) {
    return t == AMP_DT_F32 || t == AMP_DT_F16 || t == AMP_DT_BF16 || t == AMP_DT_TF32;
}

static bool same(Dtype *met, Dtype t) {
    if (*met == AMP_DT_NONE) *met = t;
    return *met == t;
}

/* Before autocast, floats that meet may differ: an f16 input and an f32 weight. */
static bool is_undecided(const Matching *m, Dtype t) {
    return m->f->module->stage == STAGE_ELABORATE && is_graph_float(t);
}

static bool matches_letter(Matching *m, char letter, Dtype t) {
    switch (letter) {
    case 'F': return is_graph_float(t);
    case 'P': return is_graph_float(t) && (is_undecided(m, t) || same(&m->product, t));
    case 'T': return same(&m->type, t) || (is_undecided(m, t) && is_undecided(m, m->type));
    case 'f': return t == AMP_DT_F32;
    case 'd': return t == AMP_DT_F64;
    case 'i': return t == AMP_DT_I32;
    case 'l': return t == AMP_DT_I64;
    case 'b': return t == AMP_DT_BOOL;
    default: return letter == '*';
    }
}

/* Values against letters up to '>', '|' or the end. */
static bool matches_list(Matching *m, const Val *list, int n) {
    for (int i = 0; i < n; i++) {
        if (m->at[0] && m->at[1] == '+' && !matches_letter(m, m->at[0], ir_dtype(m->f, list[i]))) return false;
        if (m->at[0] && m->at[1] == '+') continue;
        if (!matches_letter(m, *m->at, ir_dtype(m->f, list[i]))) return false;
        m->at += m->at[1] == '?' ? 2 : 1;
    }
    if (m->at[0] && (m->at[1] == '+' || m->at[1] == '?')) m->at += 2;
    return *m->at == '>' || *m->at == '|' || *m->at == '\0';
}

static bool matches(Matching *m, const Op *o) {
    if (!matches_list(m, o->in, o->n_in) || *m->at != '>') return false;
    m->at++;
    return matches_list(m, o->out, o->n_out) && *m->at != '>';
}

bool legal_types(const Func *f, const Op *o, int level) {
    for (const char *at = legal_signatures(o->code, level); at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        Matching m = {.f = f, .at = at};
        if (matches(&m, o)) return true;
    }
    return false;
}
