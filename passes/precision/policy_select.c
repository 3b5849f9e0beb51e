/* policy_select.c: see policy_select.h. */
#include "passes/precision/policy_select.h"

#include "passes/common/diag_at.h"
#include "passes/precision/policy_files.h"

typedef struct PrecisionWord {
    const char *word, *policy; /* its default policy */
    Dtype low;
} PrecisionWord;

static const PrecisionWord precision_words[] = {
    {"fp16", "torch-fp16", AMP_DT_F16},
    {"bf16", "torch-bf16", AMP_DT_BF16},
    {"tf32", "tf32", AMP_DT_TF32},
    {"fp32", "fp32", AMP_DT_F32},
};
enum { PRECISION_WORDS = sizeof precision_words / sizeof *precision_words };

static const PrecisionWord *find_word(const char *word) {
    for (int i = 0; i < PRECISION_WORDS; i++)
        if (!strcmp(precision_words[i].word, word)) return &precision_words[i];
    return NULL;
}

static const PrecisionWord *need_word(PassContext *c, const char *word) {
    const PrecisionWord *found = find_word(word);
    if (!found) diag_error(c->diags, (Loc){0}, "unknown precision %s: it is fp16, bf16, tf32 or fp32", word);
    return found;
}

static const Policy *read_policy(PassContext *c, const char *name, Pos pos) {
    Arena *a = c->m->arena;
    const PassOptions *o = c->options;
    const Source *text = o->find_policy ? o->find_policy(o->user, name) : policy_builtin(a, name);
    if (text) return policy_read(a, c->diags, text);
    Diag *diag = place_error(c, pos, "there is no policy %s: neither a built-in one nor a file", name);
    Text list;
    text_init(&list, a);
    for (int i = 0; i < policy_file_count; i++) text_printf(&list, "%s%s", i ? ", " : "", policy_files[i].name);
    diag_help(c->diags, diag, "built-in policies: %s", text_str(&list));
    const PrecisionWord *word = find_word(name);
    if (word) diag_help(c->diags, diag, "%s is a precision; its policy is %s", name, word->policy);
    return NULL;
}

/* --policy P --precision X */
static const Policy *agreeing(PassContext *c, const Policy *p, const PrecisionWord *word) {
    if (!p || p->low == word->low) return p;
    diag_error(c->diags, (Loc){0}, "precision %s and policy %s do not agree: the policy's low type is %s", word->word,
               p->name, amp_dtype_name(p->low));
    return NULL;
}

const Policy *policy_select(PassContext *c) {
    const PassOptions *o = c->options;
    const PrecisionWord *word = NULL;
    if (o->precision && !(word = need_word(c, o->precision))) return NULL;
    Pos nowhere = {0};
    if (o->policy) {
        const Policy *p = read_policy(c, o->policy, nowhere);
        return word ? agreeing(c, p, word) : p;
    }
    if (!word && c->m->precision_word && c->m->precision_is_file)
        return read_policy(c, c->m->precision_word, c->m->precision_pos);
    if (!word && !(word = need_word(c, c->m->precision_word ? c->m->precision_word : "fp32"))) return NULL;
    return read_policy(c, word->policy, nowhere);
}
