/* distribute: what one step does over several micro-batches, and over several ranks.
 * needs: paint.  breaks: nothing.
 *
 * A rank is a process that trains the same model on other samples.  Where the model is divided over ranks, a step is
 * three functions: micro_step adds gradients up, reduce_step makes the sums of all ranks of them, apply_step goes on
 * as if there were one rank.  So the check for finite gradients, the loss scale, the skipping of steps and the norm for
 * clipping are the same on all ranks, because they are computed from the same numbers.
 *
 *   func reduce_step {
 *     all_reduce(%"fc3.weight/sum", %"fc3.bias/sum"; bucket = 0)   because {distribute, "2 of 6 gradients, 20 KB"}
 *     all_reduce(%"samples/sum", %"loss/sum"; bucket = 2)          because {distribute, "losses, metrics and counts"}
 *   }
 *
 * With zero1 a rank updates its share of the weights, and has the moments of that share alone: reduce_step brings it
 * the sums of the share, and gather_step, after apply_step, the weights of the other shares.  The rest of a gradient is
 * zeros there, so what apply_step adds up over a gradient is the rank's part of it (shares.c).
 *
 *   func reduce_step {
 *     reduce_scatter(%"fc3.weight/sum", %"fc3.bias/sum"; bucket = 0)
 *     ...
 *   }
 *   func gather_step {
 *     all_gather(%fc3.weight, %fc3.bias; bucket = 0)               because {distribute, "2 of 6 weights, 20 KB"}
 *   }
 *
 * Gradients that are ready together travel together: buckets are filled in the order in which the backward pass makes
 * gradients, and a bucket may be on its way while micro_step still computes the next.
 */
#include "ir/words.h"
#include "passes/training/training.h"

/* Bytes.  The first bucket is small, so that ranks begin to exchange early, as in PyTorch's DistributedDataParallel. */
enum { FIRST_BUCKET = 1 << 20, LARGEST_BUCKET = 8 << 20 };

typedef struct Exchange {
    Split *s;
    Func *f;
    int buckets;
    Func *gather; /* gather_step; NULL: every rank updates all weights */
    bool tiles;   /* of shares_fit */
} Exchange;

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

static int *positions(const Func *f) {
    int *at = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int r = 0; r < o->n_out; r++) at[o->out[r].id] = i;
    }
    return at;
}

/* The gradient itself, before it is added up and rounded. */
static Val gradient_in(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); o; o = ir_def(f, v)) {
        if (o->code == OP_where) v = o->in[1];
        else if (o->code == OP_mul && !strcmp(o->reason->rule, "update")) v = o->in[0]; /* weighed */
        else if (o->code == OP_add && ir_state_of(f, o->in[0])) v = o->in[1];           /* of a tree */
        else if (o->code == OP_cast) v = o->in[0];
        else break;
    }
    return v;
}

/* "sum", and "sum.1" of a second term of the loss. */
static bool is_sum(const State *s) { return !strcmp(s->slot, "sum") || !strncmp(s->slot, "sum.", strlen("sum.")); }

/* The sums of gradients, in the order in which the backward pass makes what they add. */
static ReadyState *gradients_in_time(const Exchange *x, int *count) {
    const Split *s = x->s;
    const Func *f = s->micro_step;
    const int *at = positions(f);
    ReadyState *list = arena_array(s->m->arena, ReadyState, f->body.len + 1);
    *count = 0;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const State *sum = o->code == OP_assign ? ir_state_of(f, o->in[0]) : NULL;
        if (!sum || sum->role != STATE_ACCUMULATOR || !sum->of || !is_sum(sum)) continue;
        const Val gradient = gradient_in(f, o->in[1]);
        list[(*count)++] = (ReadyState){
            .sum = sum, .at = at[gradient.id], .fits = shares_fit(f, ir_state_find(s->m, sum->of), gradient, x->tiles)};
    }
    buckets_sort(list, *count);
    return list;
}

static void add_collective(Exchange *x, Opcode code, const StateList *states, const char *because) {
    Arena *a = x->f->module->arena;
    Val *in = arena_array(a, Val, states->len + 1);
    for (int i = 0; i < states->len; i++) in[i] = ir_use_state(x->f, states->data[i]);
    Op *o = ir_op_new(x->f, code, in, states->len);
    ir_attr(o, "bucket")->i = x->buckets;
    AttrValue *order = ir_attr(o, "order");
    if (order) order->s = ir_order_names[x->f->module->accumulate_order];
    o->path = arena_printf(a, code == OP_all_gather ? "bucket.%d.gather" : "bucket.%d", x->buckets++);
    o->reason = ir_reason(x->f->module, "distribute");
    o->reason->because = because;
}

/* What the ranks make of a bucket's gradients. */
static void gather_weights(Exchange *x, const StateList *gradients, int of) {
    Module *m = x->f->module;
    StateList weights = {0};
    for (int i = 0; i < gradients->len; i++) vec_push(m->arena, &weights, ir_state_find(m, gradients->data[i]->of));
    Exchange gather = {.s = x->s, .f = x->gather, .buckets = x->gather->body.len};
    add_collective(&gather, OP_all_gather, &weights, bucket_text(m->arena, &weights, of, "weights"));
}

static void reduce_bucket(Exchange *x, const StateList *bucket, int of, bool divided) {
    add_collective(x, divided ? OP_reduce_scatter : OP_all_reduce, bucket,
                   bucket_text(x->f->module->arena, bucket, of, "gradients"));
    if (divided) gather_weights(x, bucket, of);
}

/* Those that go together; of them those that cannot be divided go by themselves, where there are shares. */
static void reduce_gradients(Exchange *x) {
    Arena *a = x->f->module->arena;
    int count;
    const ReadyState *list = gradients_in_time(x, &count);
    const int64_t most = buckets_size(list, count, LARGEST_BUCKET);
    for (int from = 0, taken; from < count; from += taken) {
        StateList divided = {0}, whole = {0};
        int64_t bytes;
        taken = buckets_take(list + from, count - from, x->buckets ? most : FIRST_BUCKET, &bytes);
        for (int i = from; i < from + taken; i++)
            vec_push(a, x->gather && list[i].fits ? &divided : &whole, list[i].sum);
        if (divided.len) reduce_bucket(x, &divided, count, true);
        if (whole.len) reduce_bucket(x, &whole, count, false);
    }
}

static bool is_averaged(const Split *s, const Result *r) {
    if (r->kind != RESULT_UPDATE || ir_dtype(s->apply_step, r->value) != AMP_DT_F32) return false;
    const Func *f = ir_program(s->m, PROGRAM_STATISTICS_STEP);
    const State *staged = ir_state_of(s->apply_step, r->value);
    for (int i = 0; i < s->synced.len; i++)
        if (!strcmp(staged->of, s->synced.data[i]->name)) return false;
    for (int i = 0; f && i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code == OP_assign && ir_state_of(f, o->in[0]) == staged) return false;
    }
    return true;
}

/* What statistics_step cannot make: such a buffer becomes the mean of what the ranks have made of it. */
static void average_buffers(Exchange *x) {
    Func *last = x->s->apply_step;
    StateList buffers = {0};
    for (int i = 0; i < last->results.len; i++) {
        Result *r = &last->results.data[i];
        if (!is_averaged(x->s, r)) continue;
        vec_push(last->module->arena, &buffers, ir_state_of(last, r->value));
        r->value = step_mean_of_ranks(x->s, r->value, r->of);
    }
    if (buffers.len)
        add_collective(x, OP_all_reduce, &buffers, "buffers that the forward pass reads: their mean over ranks");
}

static void exchange(Split *s, bool tiles) {
    Exchange x = {.s = s, .f = ir_program_new(s->m, PROGRAM_REDUCE_STEP), .tiles = tiles};
    if (s->m->distribution == DISTRIBUTE_ZERO1) x.gather = ir_program_new(s->m, PROGRAM_GATHER_STEP);
    reduce_gradients(&x);
    average_buffers(&x);
    if (s->batch.len) add_collective(&x, OP_gather_batches, &s->batch, "statistics of each micro-batch");
    const StateList measures = step_mean_finish(s);
    add_collective(&x, OP_all_reduce, &measures, "losses, metrics and counts");
}

/* Small gradients vanish in f16 unless the loss is scaled. */
static bool check_reduce(PassContext *c) {
    const Module *m = c->m;
    if (!m->distribution || m->reduce != AMP_DT_F16) return true;
    if (m->low == AMP_DT_F16 && (!m->loss_scale.name || strcmp(m->loss_scale.name, "none"))) return true;
    diag_help(c->diags,
              place_error(c, m->reduce_pos,
                          "reduce = f16: the model does not scale its loss, so "
                          "small gradients would become 0 when ranks exchange them"),
              "reduce = bf16 has the range of f32; fp16 models scale their loss");
    return false;
}

/* What apply_step adds up over a gradient is the rank's part of it: of one sum, then. */
static bool check_shares(PassContext *c, const Split *s) {
    const Module *m = c->m;
    for (int i = 0; m->distribution == DISTRIBUTE_ZERO1 && i < s->added.len; i++) {
        const Added *added = &s->added.data[i];
        if (added->first) continue;
        const int block = train_block_of(m, added->param->name);
        diag_help(
            c->diags,
            place_error(c, block < 0 ? added->param->pos : train_block(m, block)->pos,
                        "zero1: the terms of this block's loss are means over different counts, so %s has a "
                        "gradient for each",
                        added->param->name),
            "--distribute data trains it; so does zero1 where all losses are means over the same labels, or samples");
        return false;
    }
    return true;
}

/* Before anything is divided: |m| says which optimizer each parameter has. */
static bool check_whole(PassContext *c) {
    const Module *m = c->m;
    for (int i = 0; m->distribution == DISTRIBUTE_ZERO1 && i < m->states.len; i++) {
        const State *s = m->states.data[i];
        const Call *optimizer = s->role == STATE_PARAM ? optimizer_of_whole(m, s->name) : NULL;
        if (!optimizer) continue;
        diag_help(c->diags,
                  place_error(c, optimizer->pos,
                              "zero1: %s needs all of %s to update an element, and a rank has a share", optimizer->name,
                              s->name),
                  "--distribute data trains it");
        return false;
    }
    return true;
}

bool pass_distribute(PassContext *c) {
    if (!check_reduce(c) || !check_whole(c)) return false;
    sync_expand(c->m);
    least_batch_find(c->m);
    keep_finite(c->m);
    Split s = accumulate_split(c->m);
    if (s.micro_step && !check_shares(c, &s)) return false;
    if (s.micro_step && c->m->distribution) exchange(&s, !c->options->without[STAGE_MASTERS]);
    else if (s.micro_step) step_mean_finish(&s);
    keep_count(c->m);
    return true;
}
