/* policy_select.c: the policy of a compilation: from the options, else from the model. */
#include <string.h>

#include "base/names.h"
#include "passes/common/common.h"
#include "precision/policy.h"

static const amp_precision *need_precision(PassContext *c, const char *word) {
    const amp_precision *found = amp_precision_find(word);
    if (!found) diag_error(c->diags, (Loc){0}, "unknown precision %s; use fp16, bf16, tf32 or fp32", word);
    return found;
}

static const Policy *read_policy(PassContext *c, const char *name, Pos pos) {
    Arena *a = c->m->arena;
    const PassOptions *o = c->options;
    const Source *text = o->find_policy ? o->find_policy(o->user, name) : policy_builtin(a, name);
    if (text) return policy_read(a, c->diags, text);
    const char *versions = policy_versions_beside(a, name);
    if (*versions) {
        const int base = (int)strcspn(name, "@");
        Diag *diag = place_error(c, pos, "policy %.*s has no version %s", base, name, name + base + 1);
        diag_help(c->diags, diag, "its versions: %s", versions);
        return NULL;
    }
    Diag *diag = place_error(c, pos, "there is no policy %s: neither a built-in one nor a file", name);
    Text list;
    text_init(&list, a);
    const char **names = arena_array(a, const char *, policy_file_count);
    for (int i = 0; i < policy_file_count; i++) {
        names[i] = policy_files[i].name;
        text_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(name, names, policy_file_count);
    if (nearest) diag_help(c->diags, diag, "did you mean %s?", nearest);
    diag_help(c->diags, diag, "built-in policies: %s", text_str(&list));
    const amp_precision *precision = amp_precision_find(name);
    if (precision)
        diag_help(c->diags, diag, "%s is a precision; its policy is %s", name, policy_default(precision->low));
    return NULL;
}

/* --policy P --precision X */
static const Policy *agreeing(PassContext *c, const Policy *p, const amp_precision *precision) {
    if (!p || p->low == precision->low) return p;
    diag_error(c->diags, (Loc){0}, "precision %s and policy %s do not agree: the policy's low type is %s",
               precision->word, p->name, amp_dtype_name(p->low));
    return NULL;
}

const Policy *policy_select(PassContext *c) {
    const PassOptions *o = c->options;
    const Module *m = c->m;
    const amp_precision *precision = NULL;
    Pos nowhere = {0};
    if (o->precision && !(precision = need_precision(c, o->precision))) return NULL;
    if (o->policy) {
        const Policy *p = read_policy(c, o->policy, nowhere);
        return precision ? agreeing(c, p, precision) : p;
    }
    if (!precision && m->precision_word && m->precision_is_file)
        return read_policy(c, m->precision_word, m->precision_pos);
    if (!precision) precision = need_precision(c, m->precision_word ? m->precision_word : AMP_FULL_PRECISION);
    return precision ? read_policy(c, policy_default(precision->low), nowhere) : NULL;
}
