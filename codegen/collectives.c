/* collectives.c: the table of what ranks exchange: the function reduce_step, which is no program. */
#include "codegen/descriptor.h"

static void put_collective(TableWriter *x, const Func *f, const Op *o, int number) {
    const State *first = ir_state_of(f, o->in[0]);
    const char *op = o->code != OP_all_reduce                  ? "GATHER_BATCHES"
                     : !strcmp(ir_attr(o, "order")->s, "tree") ? "ALL_REDUCE_TREE"
                                                               : "ALL_REDUCE";
    text_printf(x->t,
                "    {.op = AMP_EXCHANGE_%s, .bucket = %d, .dtype = %d, .state_count = %d, "
                ".states = exchanged_%d, ",
                op, (int)ir_attr(o, "bucket")->i, first->storage, o->n_in, number);
    table_put_field(x->t, "what", o->reason ? o->reason->because : NULL);
    text_puts(x->t, "},\n");
}

int table_put_collectives(TableWriter *x) {
    const Func *f = ir_program(x->m, PROGRAM_REDUCE_STEP);
    for (int i = 0; f && i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        text_printf(x->t, "static const int32_t exchanged_%d[] = {", i);
        for (int j = 0; j < o->n_in; j++)
            text_printf(x->t, "%s%d", j ? ", " : "", table_state_index(x, ir_state_of(f, o->in[j])->name));
        text_puts(x->t, "};\n");
    }
    if (f && f->body.len) text_puts(x->t, "static const amp_model_collective collectives[] = {\n");
    for (int i = 0; f && i < f->body.len; i++) put_collective(x, f, ir_op_at(f, i), i);
    if (f && f->body.len) text_puts(x->t, "};\n\n");
    return f ? f->body.len : 0;
}
