/* whole_numbers.c: f16 has all whole numbers up to 2048 and bf16 up to 256: of larger ones, neighbouring positions are
 * one.  Told where they are rounded to such a type: by a cast, or by the op that makes them in it. */
#include <math.h>

#include "compiler/lint/lint.h"

static bool is_whole(double x) { return x == floor(x); }

/* "whole numbers up to 8190, 2 apart," */
static const char *which(Arena *a, Grid g) {
    const bool whole = is_whole(g.step) && is_whole(g.first);
    const double most = fmax(fabs(g.first), fabs(g.last));
    const char *up = arena_printf(a, whole ? "whole numbers up to %.0f" : "numbers up to %.7g", most);
    return whole && g.step == 1.0 ? up : arena_printf(a, "%s, %.6g apart,", up, g.step);
}

void lint_whole_numbers(Lint *x, const LintFunc *g, const Op *o) {
    const Dtype t = lint_dtype(g, o);
    const Grid n = o->n_in && o->n_out ? lint_range(g, o->out[0]).grid : grid_none();
    if (grid_is_held(n, t)) return;
    const char *cast = o->code == OP_cast && o->reason ? o->reason->neighbour : NULL;
    const char *apart =
        grid_is_apart(n, t)
            ? NULL
            : arena_printf(x->arena, "which %s up to %g: above, several become one",
                           n.step == 1.0 && is_whole(n.first) ? "has them" : "keeps them apart", grid_apart_to(n, t));
    const char *finite = grid_is_finite(n, t) ? NULL : "f16 ends at 65504: it does not hold 65536, which is infinite";
    lint_add_at(x, o->pos, cast ? cast : o->path, "f32", NULL,
                arena_printf(x->arena, "%s are %s %s%s%s%s%s", which(x->arena, n),
                             o->code == OP_cast ? "cast to" : "rounded to", amp_dtype_name(t), apart ? ", " : "",
                             apart ? apart : "", finite ? "; " : "", finite ? finite : ""));
}
