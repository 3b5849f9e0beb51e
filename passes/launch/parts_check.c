/* parts_check.c: see plan_check.h.
 *
 * What holds where values share rows, whoever decided it: kernels write parts that are apart, each once; a concat or
 * slices that have nothing to do are of values which lie where that op would have put them; and the memory is there as
 * long as any of them.
 */
#include "passes/launch/plan_check.h"

#include "ir/places.h"

typedef struct Range { /* columns of rows that are so long */
    int64_t pitch, first, end;
} Range;

static const Buffer *buffer_at(const Func *f, uint32_t id) { return f->buffers.data[id - 1]; }

static Range range_of(const Func *f, const Buffer *b) {
    const Shape *s = ir_shape(f, b->value);
    const int64_t columns = s->rank ? s->d[s->rank - 1].mul : 1;
    return (Range){b->pitch ? b->pitch : columns, b->column, b->column + columns};
}

static const Buffer *find(const Func *f, const uint32_t *ids, int count, Val v) {
    for (int i = 0; i < count; i++)
        if (buffer_at(f, ids[i])->value.id == v.id) return buffer_at(f, ids[i]);
    return NULL;
}

/* ---- kernels that have nothing to do ----------------------------------------------------------------------------- */

static bool lies_at(const Func *f, const Buffer *b, int64_t pitch, int64_t first) {
    const Range r = range_of(f, b);
    return r.pitch == pitch && r.first == first;
}

static bool joins(const Func *f, const Kernel *k, const Op *o) {
    const Buffer *to = find(f, k->writes.data, k->writes.len, o->out[0]);
    Range at = range_of(f, to);
    for (int n = 0; n < o->n_in; n++) {
        const Buffer *from = find(f, k->reads.data, k->reads.len, o->in[n]);
        if (!from || !lies_at(f, from, at.pitch, at.first)) return false;
        const Range part = range_of(f, from);
        at.first += part.end - part.first;
    }
    return at.first == at.end;
}

static bool cuts(const Func *f, const Kernel *k, const Op *o) {
    const Buffer *from = find(f, k->reads.data, k->reads.len, o->in[0]);
    const Buffer *to = find(f, k->writes.data, k->writes.len, o->out[0]);
    const Shape *s = ir_shape(f, o->in[0]);
    const int dim = ir_dim_attr(o, "dim", s->rank);
    const int64_t size = s->d[dim].mul, first = ir_attr(o, "from")->i;
    const Range at = range_of(f, from);
    if (dim == s->rank - 1) return lies_at(f, to, at.pitch, at.first + first);
    return dim == s->rank - 2 && dim_is_one(ir_shape(f, o->out[0])->d[dim]) &&
           lies_at(f, to, at.pitch * size, at.first + first * at.pitch);
}

static bool is_in_place(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (o->code == OP_concat ? !joins(f, k, o) : o->code == OP_slice && !cuts(f, k, o)) return false;
    }
    return true;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static bool are_apart(Range a, Range b) { return a.pitch == b.pitch && (a.end <= b.first || b.end <= a.first); }

/* What kernels with something to do have written, by its place: the last of it, and by buffer the one before. */
typedef struct Written {
    uint32_t *last, *before;
} Written;

static bool write_apart(const Func *f, Written *w, uint32_t id) {
    const uint32_t place = ir_place_of(f, id);
    for (uint32_t i = w->last[place]; i; i = w->before[i])
        if (!are_apart(range_of(f, buffer_at(f, i)), range_of(f, buffer_at(f, id)))) return false;
    w->before[id] = w->last[place];
    w->last[place] = id;
    return true;
}

const char *parts_check(const Func *f) {
    Arena *a = f->module->arena;
    const int size = f->buffers.len + 1;
    bool *shared = arena_array(a, bool, size);
    Written written = {arena_array(a, uint32_t, size), arena_array(a, uint32_t, size)};
    for (int i = 0; i < f->buffers.len; i++)
        if (f->buffers.data[i]->is_part) shared[ir_place_of(f, (uint32_t)i + 1)] = true;
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i], *in = buffer_at(f, ir_place_of(f, (uint32_t)i + 1));
        if (shared[ir_place_of(f, (uint32_t)i + 1)] && (b->first < in->first || b->last > in->last))
            return arena_printf(a, "buffer %s lives longer than its memory", b->name);
    }
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        const bool still = ir_is_still(f, k);
        if (still && !is_in_place(f, k))
            return arena_printf(a, "kernel %s moves nothing, but its result is not in place", k->name);
        for (int j = 0; j < k->writes.len && !still; j++) {
            const uint32_t id = k->writes.data[j];
            if (shared[ir_place_of(f, id)] && !write_apart(f, &written, id))
                return arena_printf(a, "kernel %s writes buffer %s over others", k->name, buffer_at(f, id)->name);
        }
    }
    return NULL;
}
