/* indirect_lanes.c: the lanes of a vector that a thread makes (CUDA).  Where neighbours in the result are neighbours in
 * all that an op reads, the op is written before the elements of its vector, and reads vectors:
 *
 *     float x12[4];
 *     {
 *         const int64_t i0 = quotient(r, 784), i1 = ..;
 *         float m3[4];
 *         load_f32(m3, b3 + (..));
 *         for (int l = 0; l < 4; l++) {
 *             float &v12 = x12[l];
 *             v12 = m3[l];
 *         }
 *     }
 *
 * The text between indirect_open_lanes and indirect_close_lanes computes one element in either form.
 */
#include "codegen/indirect.h"

/* ---- which ops --------------------------------------------------------------------------------------------------- */

static int64_t last_size(const Shape *s) {
    return s->rank && !dim_varies(s->d[s->rank - 1]) ? s->d[s->rank - 1].mul : 0;
}

/* The |n|th operand has as many columns as the result, not one for all of them. */
static bool has_columns(const Walk *w, const Op *o, int n) {
    return last_size(ir_shape(w->f, o->in[n])) == last_size(ir_shape(w->f, o->out[0]));
}

/* What an op moves by |offset| along its `dim`: where that is the last dimension, by whole vectors. */
static bool moves_vectors(const Walk *w, const Op *o, int64_t offset, int vector) {
    const Shape *s = ir_shape(w->f, o->out[0]);
    return ir_dim_attr(o, "dim", s->rank) < s->rank - 1 || offset % vector == 0;
}

static bool slices_vectors(const Walk *w, const Op *o, int vector) {
    int64_t from = ir_attr(o, "from")->i, size = last_size(ir_shape(w->f, o->in[0]));
    return moves_vectors(w, o, from < 0 ? from + size : from, vector);
}

static bool joins_vectors(const Walk *w, const Op *o, int vector) {
    int64_t end = 0;
    for (int n = 0; n < o->n_in; n++) {
        end += last_size(ir_shape(w->f, o->in[n]));
        if (!moves_vectors(w, o, end, vector)) return false;
    }
    return true;
}

static bool keeps_last(const Walk *w, const Op *o) {
    const Dims *dims = &ir_attr(o, "dims")->dims;
    int64_t last = dims->count ? dims->at[dims->count - 1] : -1;
    return last == -1 || last == ir_shape(w->f, o->in[0])->rank - 1;
}

static bool is_depthwise(const Walk *w, const Op *o) {
    Windows g = ir_windows(w->f, o);
    return g.groups == g.c && g.groups == g.oc;
}

static bool has_neighbours(const Walk *w, const Op *o, int vector) {
    switch (o->code) {
    case OP_window_max:
    case OP_window_sum:
    case OP_window_max_grad:
    case OP_window_sum_grad:
    case OP_resample:
    case OP_resample_grad:
    case OP_gather:
    case OP_reshape: return true;
    case OP_expand: return has_columns(w, o, 0);
    case OP_permute: return keeps_last(w, o);
    case OP_slice: return slices_vectors(w, o, vector);
    case OP_pad: return moves_vectors(w, o, ir_attr(o, "before")->i, vector);
    case OP_concat: return joins_vectors(w, o, vector);
    case OP_conv:
    case OP_conv_data:
    case OP_conv_weight: return is_depthwise(w, o);
    default: return false;
    }
}

/* gather's ids. */
static bool is_read_one_by_one(const Op *o, int n) { return o->code == OP_gather && n == 1; }

/* Whether rows of what |o| reads as its |n|th input begin at whole vectors. */
static bool has_whole_rows(const Walk *w, const Op *o, int n, int vector) {
    const int operand = walk_memory_operand(w, o, n);
    if (operand < 0) return false; /* a view, which a product of the kernel reads */
    if (o->code == OP_reshape || is_read_one_by_one(o, n)) return true; /* a reshape's rows have other lengths */
    const int64_t pitch = walk_operand(w, operand)->pitch;
    const int64_t length = pitch ? pitch : last_size(ir_shape(w->f, o->in[n]));
    return length && length % vector == 0;
}

/* |v|'s chain reads rows of whole vectors, and in registers what is loaded before the elements. */
static bool inlines_vectors(const Walk *w, Val v, int vector) {
    const Op *o = ir_def(w->f, v);
    for (int n = 0; n < o->n_in; n++) {
        const ValueWalk *x = &w->values[o->in[n].id];
        if (!walk_reads_inlined(w, o, n)) {
            if (walk_reads(w, o, n) && x->made && x->span != SPAN_ONE) return false;
        } else if (!(x->made ? inlines_vectors(w, o->in[n], vector) : has_whole_rows(w, o, n, vector))) return false;
    }
    return true;
}

bool indirect_has_vectors(const Walk *w, const Op *o, int vector) {
    if (!walk_is_indirect(w, o) || !has_neighbours(w, o, vector)) return false;
    for (int n = 0; n < o->n_in; n++) {
        bool inlined = w->values[o->in[n].id].inlined;
        if (!(inlined ? inlines_vectors(w, o->in[n], vector) : has_whole_rows(w, o, n, vector))) return false;
    }
    return true;
}

int indirect_widest(const Walk *w) {
    int widest = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        const bool vectors = indirect_has_vectors(w, o, 1);
        for (int n = 0; n < o->n_in; n++) {
            if (w->values[o->in[n].id].inlined) continue;
            if (!walk_reads_inlined(w, o, n) && (!vectors || is_read_one_by_one(o, n))) continue;
            const int bytes = emit_storage(w, walk_memory_operand(w, o, n))->bytes;
            if (widest < bytes) widest = bytes;
        }
    }
    return widest;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

const char *indirect_read(Emitter *e, const Memory *m, const char *row, const char *column) {
    if (e->lane_count) return e->spelling->load_lanes(e, m, row, column);
    return e->spelling->vector_at(e, m, row, column);
}

void indirect_open_lanes(Emitter *e, const Op *o) {
    if (!e->lane_count) return;
    emit_line(e, "UNROLL");
    emit_open(e, "for (int l = 0; l < %d; l++)", e->lane_count);
    for (int r = 0; r < o->n_out; r++) {
        int id = walk_number(e->w, o->out[r]);
        emit_line(e, "%s &v%d = x%d[l];", emit_type(ir_dtype(e->w->f, o->out[r]), false), id, id);
    }
}

void indirect_close_lanes(Emitter *e) {
    if (e->lane_count) emit_close(e);
}

void indirect_put_zero(Emitter *e, const Op *o) {
    indirect_open_lanes(e, o);
    emit_line(e, "v%d = %s;", walk_number(e->w, o->out[0]), e->spelling->zero);
    indirect_close_lanes(e);
}
