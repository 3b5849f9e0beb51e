/* size.c: `size T = 1024, unit = 8`: a second size that is known when the model runs, and what is said of sizes. */
#include "frontend/elaborate.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

void elab_help_one_length(Elab *e, Diag *diag) {
    if (e->m->length.most)
        diag_help(e->d, diag, "compile the model for one length: ampc -D T=%lld", (long long)e->m->length.most);
}

Item elab_error_varies(Elab *e, Loc loc, Dim d, const char *what) {
    const Item item = {.kind = ITEM_INT, .i = d};
    if (d.n)
        return elab_error_item(e, loc, "%s cannot depend on the batch N; this is %s", what, item_describe(e, &item));
    Diag *diag = elab_error(e, loc, "%s cannot depend on the size T; this is %s", what, item_describe(e, &item));
    elab_help_one_length(e, diag);
    return ERROR_ITEM;
}

/* ---- quotients --------------------------------------------------------------------------------------------------- */

/* The part of |div| that no T divides; N has to be a multiple of it. */
static int64_t undivided(const Elab *e, int lengths, int64_t div) {
    for (int i = 0; i < lengths && div > 0; i++) div /= greatest_common_divisor(div, e->m->length.unit);
    return div;
}

bool elab_quotient_is_whole(Elab *e, const Expr *x, Dim quotient) {
    const int64_t rest = undivided(e, quotient.t, quotient.div);
    int64_t unit;
    if (!quotient.t || quotient.n || rest == 1) return true;
    Diag *diag = elab_error(e, x->loc, "%s is not whole for each T, which is a multiple of %lld",
                            loc_text(e->a, x->loc), (long long)e->m->length.unit);
    if (!__builtin_mul_overflow(e->m->length.unit, rest, &unit) && unit <= e->m->length.most)
        diag_help(e->d, diag, "let T be a multiple of it: size T = %lld, unit = %lld",
                  (long long)(e->m->length.most - e->m->length.most % unit), (long long)unit);
    return false;
}

/* ---- the declaration --------------------------------------------------------------------------------------------- */

/* Of a `size`: an int from 1 to LARGEST_T. */
static bool count_of(Elab *e, const Expr *x, const char *what, int64_t *out) {
    const Item item = elab_eval_static(e, x, what, STATIC_INT);
    if (item.kind == ITEM_ERROR) return false;
    *out = item.i.mul;
    if (*out >= 1 && *out <= LARGEST_T) return true;
    elab_error(e, x->loc, "%s is from 1 to %d; this is %lld", what, LARGEST_T, (long long)*out);
    return false;
}

static bool read_length(Elab *e, const Decl *d) {
    struct Length length = {.unit = 1, .pos = elab_pos(e, d->loc)};
    if (!count_of(e, d->value, "the largest T", &length.most)) return false;
    if (d->unit && !count_of(e, d->unit, "the unit of T", &length.unit)) return false;
    if (length.most % length.unit == 0) {
        e->m->length = length;
        return true;
    }
    Diag *diag = elab_error(e, d->unit->loc, "the largest T, %lld, is not a multiple of the unit %lld",
                            (long long)length.most, (long long)length.unit);
    const int64_t above = (length.most / length.unit + 1) * length.unit;
    diag_help(e->d, diag, "size T = %lld, unit = %lld", (long long)above, (long long)length.unit);
    return false;
}

/* -D NAME=..; NULL: it is not given. */
static const FrontendDefine *define_of(const Elab *e, const char *name) {
    const FrontendDefine *found = NULL;
    for (int i = 0; i < e->options->define_count; i++)
        if (!strcmp(e->options->defines[i].name, name)) found = &e->options->defines[i];
    return found;
}

static int64_t number_of(Elab *e, const Decl *d) {
    const FrontendDefine *define = define_of(e, d->name->text);
    const struct Length *length = &e->m->length;
    int64_t t, number = 0;
    if (!define) return 0;
    if (!elab_parse_int(define->value, &t))
        elab_error(e, d->loc, "-D T=%s: the value is not an integer", define->value);
    else if (t < 1 || t > length->most || t % length->unit)
        elab_error(e, d->loc, "-D T=%s: T is a multiple of %lld from %lld to %lld", define->value,
                   (long long)length->unit, (long long)length->unit, (long long)length->most);
    else number = t;
    return number;
}

/* What T is; after an error ITEM_ERROR, so that nothing more is reported. */
static Item size_of(Elab *e, const Decl *d) {
    if (strcmp(d->name->text, "T")) {
        Diag *diag = elab_error(e, d->name->loc, "a size cannot be called '%s'", d->name->text);
        diag_help(e->d, diag,
                  !strcmp(d->name->text, "N") ? "N is the batch of each call; the other size is T"
                                              : "beside the batch N there is one size, T: size T = 1024");
        return ERROR_ITEM;
    }
    if (!read_length(e, d)) return ERROR_ITEM;
    e->least_length = e->m->length.unit;
    const int64_t number = number_of(e, d);
    if (!number) return (Item){.kind = ITEM_INT, .i = dim_t(1, 1)};
    const struct NamedInt named = {"T", number};
    vec_push(e->a, &e->m->consts, named);
    e->m->length = (struct Length){0};
    return (Item){.kind = ITEM_INT, .i = dim_sized(number)};
}

void elab_size(Elab *e, Unit *unit, const Decl *d) {
    if (e->m->length.most) {
        Diag *diag = elab_error(e, d->loc, "there is already a size T");
        diag_help(e->d, diag, "a model has two sizes that are known when it runs: N and T");
        return;
    }
    if (elab_find(e, d->name->text)) {
        elab_error_twice(e, d->name);
        return;
    }
    Binding *b = arena_new(e->a, Binding);
    *b = (Binding){.name = d->name, .item = size_of(e, d), .live = true};
    table_set(e->a, &unit->consts, d->name->text, b);
    elab_tell_binding(e, d->name, &b->item);
}
