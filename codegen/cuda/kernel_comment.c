/* kernel_comment.c: what a kernel is, for people who read the generated text. */
#include "codegen/cuda/cuda.h"
#include "ir/words.h"

static void put_type(Text *t, const Func *f, Val v) {
    c_comment(t, ir_value(f, v)->name);
    text_putc(t, ' ');
    type_print(t, ir_dtype(f, v), ir_shape(f, v));
}

void cuda_comment_title(Text *t, const Walk *w) {
    const Kernel *k = w->k;
    text_puts(t, "  ");
    c_comment(t, k->title ? k->title : "untitled");
    if (k->pos.line) {
        text_puts(t, "           ");
        c_comment(t, k->pos.file);
        text_printf(t, ":%d", k->pos.line);
    }
    text_printf(t, "\n *   %s over [%s, %lld] in %s\n", ir_kernel_kind_names[k->kind], emit_dim(w->arena, w->rows),
                (long long)w->cols.mul, w->f->name);
}

static void put_operand(Text *t, const Walk *w, int operand) {
    const Buffer *b = walk_operand(w, operand);
    text_printf(t, "   b%d ", operand);
    put_type(t, w->f, b->value);
    if (b->storage != ir_dtype(w->f, b->value)) text_printf(t, " as %s", amp_dtype_name(b->storage));
}

static void put_operands(Text *t, const Walk *w) {
    text_puts(t, " *   in  ");
    for (int i = 0; i < w->operands.len; i++)
        if (walk_is_read(w, i)) put_operand(t, w, i);
    text_puts(t, "\n *   out ");
    for (int i = 0; i < w->operands.len; i++)
        if (walk_is_written(w, i)) put_operand(t, w, i);
    text_putc(t, '\n');
}

static void put_op(Text *t, const Walk *w, const Op *o) {
    text_puts(t, " *   ");
    for (int r = 0; r < o->n_out; r++) {
        text_printf(t, "%sv%d %%", r ? ", " : "", walk_number(w, o->out[r]));
        put_type(t, w->f, o->out[r]);
    }
    text_printf(t, "%s%s(", o->n_out ? " = " : "", ir_op_info[o->code].name);
    for (int n = 0; n < o->n_in; n++) text_printf(t, "%sv%d", n ? ", " : "", walk_number(w, o->in[n]));
    text_putc(t, ')');
    if (o->reason) {
        Text why;
        text_init(&why, w->arena);
        ir_print_reason(&why, o->reason);
        text_puts(t, "   ");
        c_comment(t, text_str(&why));
    }
    text_putc(t, '\n');
}

void cuda_comment_body(Text *t, const Walk *w) {
    put_operands(t, w);
    for (int i = 0; i < w->k->count; i++) put_op(t, w, walk_op(w, i));
}
