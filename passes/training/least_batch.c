/* least_batch.c: how many samples a batch needs, so that what is a variance over the batch has one.
 *
 *   batch_norm of [N, C]             2 samples: 1 leaves each channel one value
 *   batch_norm of [N, C, 8, 8]       1
 *   var(x; dims = 0) of [N / 3, C]   6
 *
 * With fewer a step is taken, in which that variance is NaN; programs that cut data into batches avoid it.
 */
#include "passes/training/training.h"

/* The fewest samples with which more than |least| elements are reduced; 1: any number does, or none that N allows. */
static int64_t samples_for(const Func *f, const Shape *s, const bool *reduced, int64_t least) {
    Dim count = dim_const(1);
    for (int i = 0; i < s->rank; i++)
        if (reduced[i] && !dim_mul(count, s->d[i], &count)) return 1;
    if (!count.n || count.mul < 1) return 1;
    const int64_t each = dim_eval((Dim){.mul = count.mul, .div = 1, .t = count.t}, (Sizes){1, f->module->length.unit});
    return (least / each + 1) * count.div;
}

static int64_t of_norm(const Func *f, const Op *o) {
    bool reduced[MAX_RANK] = {true, false, true, true, true, true, true, true};
    return samples_for(f, ir_shape(f, o->in[0]), reduced, 1);
}

static int64_t of_variance(const Func *f, const Op *o) {
    const Shape *s = ir_shape(f, o->in[0]);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    bool reduced[MAX_RANK] = {false};
    for (int i = 0; i < s->rank; i++) reduced[i] = !dims->count;
    for (int i = 0; i < dims->count; i++) reduced[dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i]] = true;
    return samples_for(f, s, reduced, ir_attr(o, "correction")->i);
}

void least_batch_find(Module *m) {
    const Func *f = ir_program(m, PROGRAM_TRAIN_STEP);
    for (int i = 0; f && i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const bool is_variance = o->code == OP_var || o->code == OP_std;
        const int64_t n = o->code == OP_batch_norm ? of_norm(f, o) : is_variance ? of_variance(f, o) : 1;
        if (n > m->least_batch) m->least_batch = n;
    }
}
