/* exp_overflow.c: e^x is beyond f16 where x > ln 65520 = 11.0901.  Softmax, log_softmax, sigmoid and logsumexp subtract
 * the largest before; x - max(x), and what an op bounds below that, are safe too. */
#include <math.h>

#include "compiler/lint/check.h"

static void check(Lint *x, const LintFunc *g, const Op *o) {
    const char *reader;
    if (o->code != OP_exp && o->code != OP_expm1) return;
    if (!lint_ends_in_f16(g, o, &reader) || lint_range(g, o->in[0]).high <= log(F16_INFINITE)) return;
    const char *name = ir_op_info[o->code].name;
    if (reader)
        lint_add(x, o, NULL, "bound it: clamp(x; low = -20.0, high = 11.0), or x - max(x) where a quotient follows",
                 "%s of what nothing bounds: it is rounded to f16 for %s, and is infinite above x = 11.1", name,
                 reader);
    else
        lint_add(x, o, "f32", lint_f32_for_readers(x, g, o, "or bound it: clamp(x; low = -20.0, high = 11.0)"),
                 "%s of what nothing bounds: its result is f16, which is infinite above x = 11.1", name);
}

void lint_exp_overflow(Lint *x) { lint_each_op(x, check); }
