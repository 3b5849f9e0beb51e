/* lint.c: the table of checks, and running them. */
#include "compiler/lint/lint.h"

#include <string.h>

#include "compiler/lint/check.h"

static const struct Check {
    const char *id;
    void (*run)(Lint *x);
    const char *doc;
} checks[] = {
    {"alignment", lint_alignment,
     "A size that keeps products from copies of 16 bytes, or has tensor cores multiply zeros."},
    {"cast", lint_cast, "An op whose type differs from that of all that is around it: casts that could be left out."},
    {"sum-overflow", lint_sum_overflow, "A sum that ends in f16 and is over more elements than it can hold."},
    {"exp-overflow", lint_exp_overflow, "exp of what nothing bounds, which is infinite in f16 above 11.1."},
    {"square-overflow", lint_square_overflow, "A square or power of what nothing bounds, which ends in f16."},
    {"variance-low", lint_variance_low, "A variance that is stored in f16."},
    {"small-constant", lint_small_constant, "A constant so small that it is 0 in f16: an eps that is none."},
    {"large-constant", lint_large_constant, "A constant so large that it is infinite in f16: a mask of -1e9."},
    {"log-zero", lint_log_zero, "log of a probability that f16 rounds to 0."},
    {"bce-logits", lint_bce_logits, "log of a sigmoid in 16 bits: binary cross-entropy without logits."},
    {"whole-numbers", lint_whole_numbers, "Counts and positions in a type that has not all of them."},
    {"loss-low", lint_loss_low, "A loss that is stored in 16 bits."},
    {"loss-scale", lint_loss_scale, "Gradients in f16 without a loss scale."},
    {"wide-reduce", lint_wide_reduce, "Gradients of a model of 16 bits that travel between ranks in f32."},
    {"no-gain", lint_no_gain, "A lower type that makes the step no faster, where its time is known."},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

const char *lint_id(int index) { return index >= 0 && index < CHECKS ? checks[index].id : NULL; }

const char *lint_doc(int index) { return index >= 0 && index < CHECKS ? checks[index].doc : NULL; }

amp_status lint_check_allow(Arena *a, const char *const *allow, size_t count, amp_error *err) {
    for (size_t i = 0; i < count; i++) {
        const char *word = allow[i] ? allow[i] : "";
        const size_t length = strcspn(word, ":");
        int known = 0;
        while (known < CHECKS && (strlen(checks[known].id) != length || strncmp(checks[known].id, word, length)))
            known++;
        if (known < CHECKS) continue;
        Text ids;
        text_init(&ids, a);
        for (int k = 0; k < CHECKS; k++) text_printf(&ids, "%s%s", k ? ", " : "", checks[k].id);
        return amp_fail(err, AMP_INVALID_ARGUMENT, "allow %s: no check has this name; there are %s", word,
                        text_str(&ids));
    }
    return AMP_OK;
}

Findings lint_run(const LintInput *in, const char *const *allow, size_t allow_count) {
    Findings list = {0};
    Lint x = {.in = in, .arena = in->m->arena, .out = &list};
    for (int i = 0; in->funcs[i]; i++) vec_push(x.arena, &x.funcs, lint_func(x.arena, in->funcs[i], in->batch));
    for (int i = 0; i < CHECKS; i++) {
        x.id = checks[i].id;
        checks[i].run(&x);
    }
    findings_finish(x.arena, in, &list, allow, allow_count);
    return list;
}
