/* parts.c: values that are parts of the rows of others have their memory, so that no kernel copies one into the other.
 *
 *   k3 { %a = .. : f16[N, 8] }               buffer b3 temp %a f16 rows pitch 24 part 0 live 3 to 9
 *   k5 { %b = .. : f16[N, 16] }              buffer b5 temp %b f16 rows pitch 24 part 8 live 5 to 9 in b3
 *   k6 { %c = concat(%a, %b; dim = 1) }  =>  buffer b6 temp %c f16 rows live 6 to 9 in b3
 *
 * So do slices, also of one row of several: what makes and reads such a value goes from row to row by the longer
 * distance, and the kernel of the concat or the slices has nothing to do (ir_is_still).  Only of whole vectors, so that
 * what moves a part's elements touches no other's.  A value has one place: what is in one concat already is copied into
 * the next, and a kernel moves either all of its operands or none.
 */
#include "passes/launch/launch.h"

#include "ir/places.h"

enum { VECTOR_BYTES = 16, MOST_PITCH = 1 << 30 };

typedef struct Part {
    uint32_t whole;        /* the outermost buffer that it is a part of, from 1; 0: none */
    int64_t pitch, column; /* of its rows there */
} Part;

typedef struct Sharing {
    Func *f;
    bool *named, *any_pitch; /* by buffer; by value id */
    Part *parts, *tried;     /* by buffer; of a kernel whose operands are not all seen yet */
    const uint32_t *holder;  /* by value id: its only buffer; 0: it has none, or several */
} Sharing;

static const uint32_t *find_holders(const Func *f) {
    uint32_t *holder = arena_array(f->module->arena, uint32_t, f->values.len + 1);
    int *count = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i < f->buffers.len; i++) {
        const uint32_t v = f->buffers.data[i]->value.id;
        if (f->buffers.data[i]->kind == BUFFER_LOOK) continue;
        holder[v] = ++count[v] == 1 ? (uint32_t)i + 1 : 0;
    }
    return holder;
}

static const Buffer *buffer(const Sharing *s, uint32_t id) { return s->f->buffers.data[id - 1]; }

static bool is_dense(const Sharing *s, uint32_t id) {
    const Buffer *b = id ? buffer(s, id) : NULL;
    const bool is_own = b && !b->place && (!s->named[id] || s->parts[id].whole); /* no reshape's */
    return is_own && b->kind == BUFFER_TEMP && b->layout == LAYOUT_ROWS && !b->pitch;
}

/* Elements of a last dimension, a constant; 0: it is none. */
static int64_t columns_of(const Sharing *s, uint32_t id) {
    const Shape *shape = ir_shape(s->f, buffer(s, id)->value);
    return shape->rank && !dim_varies(shape->d[shape->rank - 1]) ? shape->d[shape->rank - 1].mul : 0;
}

/* |id|, whose rows may be parts of others. */
static Part rows_of(const Sharing *s, uint32_t id) {
    const Part part = s->parts[id];
    return part.whole ? part : (Part){.whole = id, .pitch = columns_of(s, id)};
}

static bool can_be_part(const Sharing *s, uint32_t id, uint32_t of, Part part) {
    if (!is_dense(s, id) || s->parts[id].whole || s->tried[id].whole || s->named[id]) return false;
    const Buffer *b = buffer(s, id);
    const int64_t size = (int64_t)amp_dtype_size(b->storage), columns = columns_of(s, id);
    return s->any_pitch[b->value.id] && b->storage == buffer(s, of)->storage && columns && part.pitch < MOST_PITCH &&
           columns * size % VECTOR_BYTES == 0 && part.column * size % VECTOR_BYTES == 0 &&
           part.pitch * size % VECTOR_BYTES == 0;
}

/* ---- concats: from the last to the first, whose results may be parts of later ones ------------------------------- */

static bool is_along_columns(const Sharing *s, const Op *o) {
    const int rank = ir_shape(s->f, o->out[0])->rank;
    return ir_dim_attr(o, "dim", rank) == rank - 1;
}

static bool join(Sharing *s, const Op *o) {
    const uint32_t to = s->holder[o->out[0].id];
    if (!is_along_columns(s, o) || !is_dense(s, to)) return false;
    Part part = rows_of(s, to);
    for (int n = 0; n < o->n_in; n++) {
        const uint32_t from = s->holder[o->in[n].id];
        if (!can_be_part(s, from, to, part)) return false;
        s->tried[from] = part;
        part.column += columns_of(s, from);
    }
    return true;
}

/* ---- slices: from the first to the last, which may be of results of earlier ones --------------------------------- */

/* A part of each row, or one row of several: then the next is as far as those are. */
static bool take_part(Sharing *s, const Op *o) {
    const uint32_t from = s->holder[o->in[0].id], to = s->holder[o->out[0].id];
    const Shape *x = ir_shape(s->f, o->in[0]), *y = ir_shape(s->f, o->out[0]);
    const int dim = ir_dim_attr(o, "dim", x->rank);
    const int64_t first = ir_attr(o, "from")->i;
    if (!is_dense(s, from) || dim_varies(x->d[dim]) || dim < x->rank - 2) return false;
    Part part = rows_of(s, from);
    if (!part.pitch) return false; /* columns that depend on N */
    if (dim == x->rank - 1) part.column += first;
    else {
        if (!dim_is_one(y->d[dim]) || x->d[dim].mul > MOST_PITCH / part.pitch) return false;
        part.column += first * part.pitch;
        part.pitch *= x->d[dim].mul;
    }
    if (!can_be_part(s, to, from, part)) return false;
    s->tried[to] = part;
    return true;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* What has been tried is so, or is not. */
static void settle(Sharing *s, const uint32_t *ids, int count, bool holds) {
    for (int i = 0; i < count; i++) {
        const uint32_t id = ids[i], whole = s->tried[id].whole;
        if (whole && holds) {
            s->parts[id] = s->tried[id];
            s->parts[whole] = rows_of(s, whole);
            s->named[id] = s->named[whole] = true;
        }
        s->tried[id] = (Part){0};
    }
}

static void share_kernel(Sharing *s, const Kernel *k, Opcode code) {
    if (ir_op_at(s->f, k->first)->code != code || !ir_is_cut_alone(s->f, k) || k->pred.id) return;
    bool holds = true;
    for (int i = 0; i < k->count && holds; i++) {
        const Op *o = ir_op_at(s->f, k->first + i);
        holds = code == OP_concat ? join(s, o) : take_part(s, o);
    }
    settle(s, k->reads.data, k->reads.len, holds);
    settle(s, k->writes.data, k->writes.len, holds);
}

/* One memory for each whole, by the name of its first buffer. */
static void set_places(Sharing *s) {
    uint32_t *first = arena_array(s->f->module->arena, uint32_t, s->f->buffers.len + 1);
    for (int i = 0; i < s->f->buffers.len; i++) {
        const uint32_t id = (uint32_t)i + 1, whole = s->parts[id].whole;
        Buffer *b = s->f->buffers.data[i];
        if (!whole) continue;
        if (!first[whole]) first[whole] = id;
        else b->place = first[whole];
        if (whole == id) continue;
        b->is_part = true;
        b->pitch = s->parts[id].pitch;
        b->column = s->parts[id].column;
    }
}

void share_rows(Func *f, bool *named) {
    Arena *a = f->module->arena;
    Sharing s = {.f = f,
                 .named = named,
                 .any_pitch = values_at_any_pitch(f),
                 .parts = arena_array(a, Part, f->buffers.len + 1),
                 .tried = arena_array(a, Part, f->buffers.len + 1),
                 .holder = find_holders(f)};
    for (int i = f->kernels.len - 1; i >= 0; i--) share_kernel(&s, f->kernels.data[i], OP_concat);
    for (int i = 0; i < f->kernels.len; i++) share_kernel(&s, f->kernels.data[i], OP_slice);
    set_places(&s);
}
