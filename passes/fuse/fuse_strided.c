/* fuse_strided.c: what batched products and attention read at strides, on a target that has such kernels.
 *
 *     %r = reshape(%x) : f32[N, T, 4, 24]                kernel k03 product {
 *     %q = permute(%r; dims = (0, 2, 1, 3))         =>     %r, %q                      read where %x is
 *     %s = batch_contract(%q, %k; tb = true, ..)           %s = batch_contract(%q, %k; tb = true, packed = true)
 *
 * Ops that move a value by strides alone (ir/strided.h), and that only such products and attention read, are in the
 * kernel of each, which reads their source at these strides: they cost nothing.
 */
#include "passes/fuse/fuse.h"

/* ---- what is read at strides ------------------------------------------------------------------------------------- */

/* How an operand may be read. */
enum { AS_MATRIX = 1, IN_ROWS = 2, AS_MASK = 4 };

/* Of operand |n|; 0: not at strides. */
static int strides_of(const Func *f, const Op *o, int n) {
    if (o->code == OP_batch_contract && ir_is_product(o)) return AS_MATRIX;
    if (!ir_is_attention(o) || !target_attention_strides(f, o, n)) return 0;
    return n == ir_attention_operands(f, o).mask ? AS_MASK : IN_ROWS;
}

/* By value id: whether something reads it that reads no strides, nor moves it on for what does. */
static bool *find_read_elsewhere(const Fuse *z) {
    const Func *f = z->f;
    bool *read = ir_results(f, z->a);
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        bool moves = ir_moves_by_stride(o) && !read[o->out[0].id];
        for (int n = 0; n < o->n_in; n++)
            if (!strides_of(f, o, n) && !(moves && n == 0)) read[o->in[n].id] = true;
    }
    return read;
}

/* By value id: how batched products and attention read it. */
static int *find_operands(const Fuse *z) {
    int *operand = arena_array(z->a, int, z->f->values.len + 1);
    for (int i = 0; i < z->f->body.len; i++) {
        const Op *o = ir_op_at(z->f, i);
        for (int n = 0; n < o->n_in; n++) operand[o->in[n].id] |= strides_of(z->f, o, n);
    }
    return operand;
}

/* Whether the memory at |x| can be read in all these ways.  Attention reads rows that are dense, and a mask that may be
 * one number for each. */
static bool fits_readers(const Strided *x, int readers) {
    bool transposed;
    Dim pitch;
    const Dim last = x->shape.rank ? x->stride[x->shape.rank - 1] : dim_const(1);
    const bool dense = dim_is_one(last), one = !last.n && !last.mul;
    if (readers & AS_MATRIX && !ir_strided_matrix(x, &transposed, &pitch)) return false;
    if (readers & IN_ROWS && !dense) return false;
    return !(readers & AS_MASK) || dense || one;
}

/* Weights have copies of their own for products (weight_copies.c). */
static bool is_of_state(const Func *f, Val v) {
    const Op *o = ir_def(f, v);
    while (o && o->code == OP_cast) {
        v = o->in[0];
        o = ir_def(f, v);
    }
    return ir_value(f, v)->kind == VAL_STATE;
}

/* The strides of each value that nothing else reads, as far as there are any; false: an op that cannot move its operand
 * by strides reads such a value, which |elsewhere| knows now. */
static bool find_strides(Fuse *z, Strided *at, bool *elsewhere, const int *operand) {
    const Func *f = z->f;
    bool stable = true;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (!ir_moves_by_stride(o)) continue;
        Strided dense, *x = &at[o->out[0].id];
        Val from = o->in[0];
        bool moved = z->strided[from.id], *is = &z->strided[o->out[0].id];
        *is = !elsewhere[o->out[0].id] && (moved || (!is_of_state(f, from) && ir_strided_dense(f, from, &dense))) &&
              ir_strided_result(f, o, moved ? &at[from.id] : &dense, x) && fits_readers(x, operand[o->out[0].id]);
        if (*is || !moved) continue;
        elsewhere[from.id] = true;
        stable = false;
    }
    return stable;
}

void fuse_find_strided(Fuse *z) {
    const Func *f = z->f;
    z->strided = arena_array(z->a, bool, f->values.len + 1);
    if (!z->fusing || !target_of(f->module)->reads_strides) return;
    Strided *at = arena_array(z->a, Strided, f->values.len + 1);
    bool *elsewhere = find_read_elsewhere(z);
    const int *operand = find_operands(z);
    while (!find_strides(z, at, elsewhere, operand)) {
    }
}
