/* collectives.c: the table of what ranks exchange: the functions reduce_step and gather_step, which are no programs. */
#include "codegen/descriptor.h"
#include "ir/words.h"

static const char *op_name(const Op *o) {
    const AttrValue *order = ir_attr(o, "order");
    const bool tree = order && !strcmp(order->s, ir_order_names[ORDER_TREE]);
    switch (o->code) {
    case OP_all_reduce: return tree ? "ALL_REDUCE_TREE" : "ALL_REDUCE";
    case OP_reduce_scatter: return tree ? "REDUCE_SCATTER_TREE" : "REDUCE_SCATTER";
    case OP_all_gather: return "ALL_GATHER";
    default: return "GATHER_BATCHES";
    }
}

static void put_collective(TableWriter *x, const Func *f, const Op *o, int number) {
    const State *first = ir_state_of(f, o->in[0]);
    text_printf(x->t,
                "    {.op = AMP_EXCHANGE_%s, .bucket = %d, .dtype = %d, .state_count = %d, "
                ".states = %sexchanged_%d, ",
                op_name(o), (int)ir_attr(o, "bucket")->i, first->storage, o->n_in, x->prefix, number);
    table_put_field(x->t, "what", o->reason ? o->reason->because : NULL);
    text_puts(x->t, "},\n");
}

static void put_states(TableWriter *x, const Func *f, const Op *o, int number) {
    text_printf(x->t, "static const int32_t %sexchanged_%d[] = {", x->prefix, number);
    for (int i = 0; i < o->n_in; i++)
        text_printf(x->t, "%s%d", i ? ", " : "", table_state_index(x, ir_state_of(f, o->in[i])->name));
    text_puts(x->t, "};\n");
}

int table_put_collectives(TableWriter *x) {
    const Func *funcs[] = {ir_program(x->m, PROGRAM_REDUCE_STEP), ir_program(x->m, PROGRAM_GATHER_STEP)};
    int states = 0, number = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; funcs[i] && j < funcs[i]->body.len; j++)
            put_states(x, funcs[i], ir_op_at(funcs[i], j), states++);
    if (states) text_printf(x->t, "static const amp_model_collective %scollectives[] = {\n", x->prefix);
    for (int i = 0; i < 2; i++)
        for (int j = 0; funcs[i] && j < funcs[i]->body.len; j++)
            put_collective(x, funcs[i], ir_op_at(funcs[i], j), number++);
    if (states) text_puts(x->t, "};\n\n");
    return states;
}
