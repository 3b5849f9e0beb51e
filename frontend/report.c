/* report.c: errors at locations that a user can act on, with notes and suggestions. */
#include "frontend/elaborate.h"

#include <math.h>

/* After MAX_ERRORS errors elaboration stops: few readers want more, and each is compared with all before it. */
enum { MAX_CALL_NOTES = 3, MAX_ERRORS = 100 };

/* ---- locations -------------------------------------------------------------------------------------------- */

static const Unit *unit_of(const Elab *e, Loc loc) {
    for (int i = 0; i < e->units.len; i++)
        if (e->units.data[i]->file->source == loc.source) return e->units.data[i];
    return NULL;
}

static bool in_prelude(const Elab *e, Loc loc) {
    const Unit *unit = unit_of(e, loc);
    return unit && unit->is_prelude;
}

Loc elab_user_loc(const Elab *e, Loc loc) {
    for (const Frame *frame = e->frame; frame && in_prelude(e, loc); frame = frame->caller) loc = frame->call;
    return loc;
}

/* By bisection, since every op has a position. */
static int line_of(const Unit *unit, uint32_t offset) {
    int low = 0, high = unit->lines.len;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (unit->lines.data[middle] <= offset) low = middle;
        else high = middle;
    }
    return low;
}

const char *elab_recorded_name(const Elab *e, const Source *source) {
    const char *main = e->units.data[0]->file->source->name, *slash = strrchr(main, '/');
    size_t folder = slash ? (size_t)(slash - main) + 1 : 0;
    return strncmp(source->name, main, folder) ? source->name : source->name + folder;
}

Pos elab_pos(const Elab *e, Loc loc) {
    loc = elab_user_loc(e, loc);
    const Unit *unit = unit_of(e, loc);
    if (!unit) return (Pos){0};
    int line = line_of(unit, loc.begin), column = 1;
    for (uint32_t i = unit->lines.data[line]; i < loc.begin; i++)
        column += (loc.source->text[i] & 0xC0) != 0x80; /* count characters: skip UTF-8 continuation bytes */
    return (Pos){elab_recorded_name(e, loc.source), line + 1, column};
}

/* ---- names of values in messages -------------------------------------------------------------------------- */

void elab_set_origin(Elab *e, Val v, const char *name, Loc loc) {
    while (e->origins.len <= (int)v.id) vec_push(e->a, &e->origins, (Origin){0});
    e->origins.data[v.id] = (Origin){name, elab_user_loc(e, loc)};
}

static Origin origin_of(const Elab *e, Val v) {
    return (int)v.id < e->origins.len ? e->origins.data[v.id] : (Origin){0};
}

void elab_note_operand(Elab *e, Diag *diag, Val v, Loc used) {
    const State *param = ir_state_of(e->f, v);
    Origin origin = origin_of(e, v);
    const char *name = origin.name ? origin.name : param ? param->name : loc_text(e->a, used);
    diag_note(e->d, diag, origin.loc.source ? origin.loc : elab_user_loc(e, used), "%s is %s", name,
              type_text(e->a, ir_dtype(e->f, v), ir_shape(e->f, v)));
}

/* ---- errors ----------------------------------------------------------------------------------------------- */

static bool reported_at(Elab *e, Loc loc) {
    for (int i = 0; i < e->reported.len; i++)
        if (e->reported.data[i].source == loc.source && e->reported.data[i].begin == loc.begin) return true;
    return false;
}

/* Where a block of the user was called from, innermost first. */
void elab_note_calls(Elab *e, Diag *diag) {
    int notes = 0;
    for (const Frame *frame = e->frame; frame && notes < MAX_CALL_NOTES; frame = frame->caller) {
        if (!frame->call.source || frame->unit->is_prelude) continue;
        diag_note(e->d, diag, frame->call, "in this call of %s", frame->decl->name->text);
        notes++;
    }
}

Diag *elab_error_text(Elab *e, Loc loc, const char *text) {
    loc = elab_user_loc(e, loc);
    if (e->stopped || (loc.source && reported_at(e, loc)))
        return arena_new(e->a, Diag); /* takes notes, is never shown */
    vec_push(e->a, &e->reported, loc);
    if (e->reported.len == MAX_ERRORS) e->stopped = e->d->stopped = true;
    return diag_error(e->d, loc, "%s", text);
}

Diag *elab_error(Elab *e, Loc loc, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(e->a, fmt, args);
    va_end(args);
    Diag *diag = elab_error_text(e, loc, text);
    elab_note_calls(e, diag);
    return diag;
}

Item elab_error_item(Elab *e, Loc loc, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = arena_vprintf(e->a, fmt, args);
    va_end(args);
    elab_note_calls(e, elab_error_text(e, loc, text));
    return ERROR_ITEM;
}

void elab_help_nearest(Elab *e, Diag *diag, const char *word, const char *const *candidates, int count) {
    const char *nearest = text_nearest(word, candidates, count);
    if (nearest) diag_help(e->d, diag, "did you mean '%s'?", nearest);
}

void elab_help_choice(Elab *e, Diag *diag, const char *word, const char *const *candidates, int count) {
    enum { MOST = 12 };
    const char *nearest = text_nearest(word, candidates, count);
    if (nearest || !count || count > MOST) {
        elab_help_nearest(e, diag, word, candidates, count);
        return;
    }
    Text t;
    text_init(&t, e->a);
    for (int i = 0; i < count; i++) text_printf(&t, "%s%s", i ? ", " : "", candidates[i]);
    diag_help(e->d, diag, count == 1 ? "the only choice is %s" : "the choices are %s", text_str(&t));
}

bool elab_is_finite_f32(double v) { return isfinite((float)v); }

void elab_help_infinite_f32(Elab *e, Diag *diag, double v) {
    if (isfinite(v) && !elab_is_finite_f32(v)) diag_help(e->d, diag, "it is infinite as an f32: the largest is 3.4e38");
}

static const char **keys_of(Elab *e, const Table *t) {
    const char **keys = arena_array(e->a, const char *, t->entries.len + 1);
    for (int i = 0; i < t->entries.len; i++) keys[i] = t->entries.data[i].key;
    return keys;
}

void elab_help_choice_of_key(Elab *e, Diag *diag, const char *word, const Table *candidates) {
    elab_help_choice(e, diag, word, keys_of(e, candidates), candidates->entries.len);
}

void elab_help_nearest_key(Elab *e, Diag *diag, const char *word, const Table *candidates) {
    elab_help_nearest(e, diag, word, keys_of(e, candidates), candidates->entries.len);
}
