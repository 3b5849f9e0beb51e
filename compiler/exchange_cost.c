/* exchange_cost.c: what ranks that train together send in a step, by the function reduce_step. */
#include "compiler/casts.h"

#include "base/text.h"

static void add_gradients(ExchangeCost *x, const Func *f, const Op *o) {
    const bool sums = o->code == OP_all_reduce || o->code == OP_reduce_scatter;
    for (int i = 0; sums && i < o->n_in; i++) {
        const State *s = ir_state_of(f, o->in[i]);
        Dim count = dim_const(1);
        if (s->role != STATE_ACCUMULATOR || !s->of) continue;
        shape_count(&s->shape, &count);
        x->gradients++;
        x->numbers += count.mul;
        x->dtype = s->dtype;
    }
}

ExchangeCost exchange_cost(const Module *m) {
    ExchangeCost x = {0};
    const Func *f = ir_program(m, PROGRAM_REDUCE_STEP);
    for (int i = 0; f && i < f->body.len; i++) {
        x.messages++;
        add_gradients(&x, f, ir_op_at(f, i));
    }
    return x;
}

int64_t exchange_bytes(const ExchangeCost *x, Dtype dtype) { return x->numbers * (int64_t)amp_dtype_size(dtype); }

void exchange_cost_tell(Text *t, const Module *m, const Module *cuda) {
    const ExchangeCost x = exchange_cost(m);
    if (!x.messages) return;
    const Dtype other = x.dtype == AMP_DT_F32 ? AMP_DT_BF16 : AMP_DT_F32;
    text_printf(t, "between ranks          %d messages a step", x.messages);
    if (cuda) text_printf(t, " (%d on CUDA)", exchange_cost(cuda).messages);
    text_printf(t, ": %d gradients in %s, %lld bytes; with reduce = %s %lld\n", x.gradients, amp_dtype_name(x.dtype),
                (long long)exchange_bytes(&x, x.dtype), amp_dtype_name(other), (long long)exchange_bytes(&x, other));
}

void exchange_cost_put(amp_json_writer *w, const Module *m, const Module *cuda) {
    const ExchangeCost x = exchange_cost(m);
    if (!x.messages) {
        amp_json_put_null(w, "exchange");
        return;
    }
    amp_json_begin_object(w, "exchange");
    amp_json_put_int(w, "messages", x.messages);
    if (cuda) amp_json_put_int(w, "messages_on_cuda", exchange_cost(cuda).messages);
    amp_json_put_int(w, "gradients", x.gradients);
    amp_json_put_int(w, "numbers", x.numbers);
    amp_json_put_string(w, "dtype", amp_dtype_name(x.dtype));
    amp_json_put_int(w, "bytes", exchange_bytes(&x, x.dtype));
    amp_json_put_int(w, "bytes_in_f32", exchange_bytes(&x, AMP_DT_F32));
    amp_json_end_object(w);
}
