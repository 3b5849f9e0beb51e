/* compare_json.c: a comparison for tools. */
#include "compiler/compare/compare.h"

static void put_decision(amp_json_writer *w, const char *key, Arena *a, const Decision *d) {
    amp_json_begin_object(w, key);
    explain_put_types(w, d);
    explain_put_reason(w, a, d);
    explain_put_place(w, d->pos);
    amp_json_end_object(w);
}

static void put_name(amp_json_writer *w, const Decision *d) {
    amp_json_put_string(w, "path", d->path);
    amp_json_put_string(w, "op", d->op);
    amp_json_put_string(w, "layer", d->layer);
}

static void put_pairs(amp_json_writer *w, const char *key, const Comparison *c, const OpPairs *pairs) {
    amp_json_begin_array(w, key);
    for (int i = 0; i < pairs->len; i++) {
        amp_json_begin_object(w, NULL);
        put_name(w, pairs->data[i].after);
        put_decision(w, "before", c->before.source->m->arena, pairs->data[i].before);
        put_decision(w, "after", c->after.source->m->arena, pairs->data[i].after);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_only(amp_json_writer *w, const char *key, const ComparedSide *side) {
    amp_json_begin_array(w, key);
    for (int i = 0; i < side->only.len; i++) {
        amp_json_begin_object(w, NULL);
        put_name(w, side->only.data[i]);
        put_decision(w, "decision", side->source->m->arena, side->only.data[i]);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_side(amp_json_writer *w, const char *key, const Comparison *c, const ComparedSide *side) {
    const Module *m = side->source->m;
    amp_json_begin_object(w, key);
    amp_json_put_string(w, "name", side->source->name);
    amp_json_put_string(w, "model", m->name);
    amp_json_put_string(w, "policy", m->policy_name);
    amp_json_put_string(w, "low", amp_dtype_name(m->low));
    if (c->counts_casts) explain_put_totals(w, "cast_totals", m->arena, &side->totals);
    else amp_json_put_null(w, "cast_totals");
    amp_json_end_object(w);
}

static void put_casts(amp_json_writer *w, const char *key, const Comparison *c, const ComparedSide *side) {
    if (!c->counts_casts) {
        amp_json_put_null(w, key);
        return;
    }
    amp_json_begin_array(w, key);
    for (int i = 0; i < side->casts.len; i++) explain_put_cast(w, &side->facts, side->casts.data[i]);
    amp_json_end_array(w);
}

static void put_comparison(amp_json_writer *w, const void *of) {
    const Comparison *c = of;
    put_side(w, "before", c, &c->before);
    put_side(w, "after", c, &c->after);
    amp_json_put_bool(w, "same", compare_is_same(c));
    amp_json_put_int(w, "matched", c->matched);
    put_pairs(w, "changed", c, &c->changed);
    put_pairs(w, "other_reason", c, &c->other_reason);
    put_only(w, "only_before", &c->before);
    put_only(w, "only_after", &c->after);
    put_casts(w, "casts_gone", c, &c->before);
    put_casts(w, "casts_came", c, &c->after);
}

amp_status compare_as_json(Text *t, const Comparison *c, amp_error *err) {
    return explain_json_text(t, c->after.source->m->arena, put_comparison, c, err);
}
