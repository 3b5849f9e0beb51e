/* overrides.c: the lines of a model's precision block, which overrule the policy for some ops. */
#include "passes/precision/casting.h"

#include "base/names.h"
#include "passes/common/common.h"

/* A class of the policy file that gives dtypes; `low` and the name of the policy's low type mean `lower`.  Of the lists
 * of `paint`, `lower` is allow and `f32` is deny. */
static bool class_of(const Policy *p, const char *word, PolicyClass *out) {
    const bool paints = p->algorithm == ALGORITHM_PAINT;
    if (!strcmp(word, "low") || !strcmp(word, amp_dtype_name(p->low))) word = policy_class_words[POLICY_LOWER];
    if (!policy_class_of(word, out) || *out == POLICY_BANNED) return false;
    if (paints && *out == POLICY_LOWER) *out = POLICY_ALLOW;
    if (paints && *out == POLICY_F32) *out = POLICY_DENY;
    return policy_class_fits(*out, p->algorithm);
}

/* A pattern that matches a path matches everything below it: "h.0" names "h.0.mlp.gelu" too. */
static bool matches_path(Arena *a, const char *glob, const char *path) {
    for (const char *end = strchr(path, '.'); end; end = strchr(end + 1, '.'))
        if (text_glob_match(glob, arena_strndup(a, path, (size_t)(end - path)))) return true;
    return text_glob_match(glob, path);
}

static bool applies(const Module *m, const Override *v, const Op *o) {
    if (v->is_path) return o->path && matches_path(m->arena, v->pattern, o->path);
    return policy_names_op(v->pattern, ir_op_info[o->code].name, o->layer);
}

const Override *override_for(const Module *m, const Policy *p, const Op *o, PolicyClass *op_class) {
    const Override *best = NULL;
    for (int i = 0; i < m->overrides.len; i++) {
        const Override *v = &m->overrides.data[i];
        if (best && best->is_path && !v->is_path) continue;
        if (applies(m, v, o)) best = v;
    }
    if (best) class_of(p, best->word, op_class);
    return best;
}

static void check_word(PassContext *c, const Policy *p, const Override *v) {
    PolicyClass ignored;
    if (class_of(p, v->word, &ignored)) return;
    if (amp_low_type_of(v->word, NULL)) {
        Diag *diag = place_error(c, v->pos, "%s is not the low type of policy %s, which is %s", v->word, p->name,
                                 amp_dtype_name(p->low));
        diag_help(c->diags, diag, "write low, or choose another precision");
        return;
    }
    Diag *diag = place_error(c, v->pos, "unknown precision %s for %s", v->word, v->pattern);
    diag_help(c->diags, diag, "one of low, lower, %s",
              p->algorithm == ALGORITHM_PAINT ? "f32, allow, infer, deny, clear, none"
                                              : "f32_out, f32, widest, first, follow");
}

static void check_op(PassContext *c, const Override *v) {
    const char *nearest = NULL;
    if (policy_knows(c->m->arena, v->pattern, &nearest)) return;
    if (policy_is_foreign(v->pattern)) {
        Diag *diag = place_error(c, v->pos, "the language has no op %s", v->pattern);
        diag_help(c->diags, diag, "only policies may list ops of other systems: remove the line");
        return;
    }
    Diag *diag = place_error(c, v->pos, "unknown op %s", v->pattern);
    if (nearest) diag_help(c->diags, diag, "did you mean %s?", nearest);
    diag_help(c->diags, diag, "a path is written in quotes: \"%s\"", v->pattern);
}

static void check_path(PassContext *c, const Override *v, const Func *f) {
    VEC(const char *) paths = {0};
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (applies(c->m, v, o)) return;
        if (o->path) vec_push(c->m->arena, &paths, o->path);
    }
    Diag *diag = place_error(c, v->pos, "no op's path matches \"%s\"", v->pattern);
    const char *nearest = text_nearest(v->pattern, paths.data, paths.len);
    if (nearest) diag_help(c->diags, diag, "did you mean \"%s\"?", nearest);
}

bool overrides_check(PassContext *c, const Policy *p, const Func *f) {
    int errors = c->diags->errors;
    for (int i = 0; i < c->m->overrides.len; i++) {
        const Override *v = &c->m->overrides.data[i];
        check_word(c, p, v);
        if (v->is_path) check_path(c, v, f);
        else check_op(c, v);
    }
    return c->diags->errors == errors;
}
