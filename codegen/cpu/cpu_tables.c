/* cpu_tables.c: the CPU's kernels and programs as tables of the descriptor (codegen/descriptor.h). */
#include "amp/model_abi.h"
#include "codegen/cpu/cpu.h"
#include "targets/target.h"

typedef struct Tables {
    TableWriter *rows;
    const KernelNames *names;
    int next_name;        /* of names: kernels come in the same order */
    const int *buffer_of; /* by value of the function that is being written: its first buffer */
} Tables;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The first buffer of each value. */
static int *index_buffers(const Func *f) {
    int *first = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i <= f->values.len; i++) first[i] = AMP_MODEL_NONE;
    for (int i = f->buffers.len - 1; i >= 0; i--) first[f->buffers.data[i]->value.id] = i;
    return first;
}

/* Weights and moments: read and written in place, tile by tile. */
static int find_updates(const Walk *w, uint32_t *updates) {
    int count = 0;
    for (int i = 0; i < w->k->reads.len; i++)
        for (int j = 0; j < w->k->writes.len; j++)
            if (w->k->reads.data[i] == w->k->writes.data[j] && walk_operand(w, i)->layout == LAYOUT_PANELS)
                updates[count++] = (uint32_t)i;
    return count;
}

static const char *arrays_name(const Tables *x, const Walk *w, int kernel) {
    return arena_printf(x->rows->m->arena, "%s_k%02d", table_func_name(x->rows, w->f), kernel);
}

typedef struct KernelArrays {
    int operands, updates;
} KernelArrays;

static KernelArrays put_kernel_arrays(const Tables *x, const Walk *w, int kernel) {
    Arena *a = x->rows->m->arena;
    uint32_t *numbers = arena_array(a, uint32_t, w->operands.len + w->k->reads.len * w->k->writes.len + 1);
    const char *name = arrays_name(x, w, kernel);
    for (int i = 0; i < w->operands.len; i++) numbers[i] = w->operands.data[i] - 1;
    table_put_numbers(x->rows->t, arena_printf(a, "%s_operands", name), numbers, w->operands.len);
    KernelArrays counts = {w->operands.len, find_updates(w, numbers)};
    table_put_numbers(x->rows->t, arena_printf(a, "%s_updates", name), numbers, counts.updates);
    return counts;
}

/* The position of a product's operand among the kernel's, in the one form that its product reads. */
static int product_operand(const Walk *w, const Op *product, int i) {
    Form form = target_product_form(w->f, product, i);
    return walk_find_operand(w, product->in[i], form.layout, form.storage);
}

static const Op *find_product(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (ir_is_product(walk_op(w, i))) return walk_op(w, i);
    return NULL;
}

static void put_window(Tables *x, const Walk *w, const Op *o) {
    static const char *const kinds[] = {
        [OP_conv] = "AMP_WINDOW_CONV",
        [OP_conv_data] = "AMP_WINDOW_CONV_DATA",
        [OP_conv_weight] = "AMP_WINDOW_CONV_WEIGHT",
    };
    Windows g = ir_windows(w->f, o);
    text_printf(x->rows->t,
                ", .window = {.kind = %s, .h = %lld, .w = %lld, .c = %lld, .oh = %lld, .ow = %lld, .oc = %lld",
                kinds[o->code], (long long)g.h, (long long)g.w, (long long)g.c, (long long)g.oh, (long long)g.ow,
                (long long)g.oc);
    text_printf(x->rows->t,
                ", .kh = %lld, .kw = %lld, .stride = {%lld, %lld}, .padding = {%lld, %lld}, .dilation = {%lld, %lld}}",
                (long long)g.kh, (long long)g.kw, (long long)g.stride[0], (long long)g.stride[1],
                (long long)g.padding[0], (long long)g.padding[1], (long long)g.dilation[0], (long long)g.dilation[1]);
}

static amp_status put_product(Tables *x, const Walk *w) {
    const Op *o = find_product(w);
    Dim rows, cols;
    if (!o) return amp_fail(x->rows->err, AMP_INTERNAL, "%s: a product kernel without a product", walk_name(w));
    int a = product_operand(w, o, 0), b = product_operand(w, o, 1);
    if (a < 0 || b < 0)
        return amp_fail(x->rows->err, AMP_INTERNAL, "%s: operand %c is in no buffer that products read", walk_name(w),
                        a < 0 ? 'A' : 'B');
    bool matrix = o->code == OP_contract, ta = matrix && ir_attr(o, "ta")->b, tb = matrix && ir_attr(o, "tb")->b;
    shape_matrix(ir_shape(w->f, o->in[0]), &rows, &cols);
    text_printf(x->rows->t,
                ", .product = {.operand = %d, .a_transposed = %d, .b_transposed = %d, .a = %d, .b = %d, .k = ",
                walk_operand(w, a)->storage, ta, tb, a, b);
    table_put_dim(x->rows->t, !matrix ? dim_const(0) : ta ? rows : cols);
    text_putc(x->rows->t, '}');
    if (!matrix) put_window(x, w, o);
    return AMP_OK;
}

static amp_status put_kernel(Tables *x, const Walk *w, int index, KernelArrays counts) {
    const Kernel *k = w->k;
    const char *name = arrays_name(x, w, index);
    int predicate = k->pred.id ? x->buffer_of[k->pred.id] : AMP_MODEL_NONE;
    if (k->pred.id && predicate < 0)
        return amp_fail(x->rows->err, AMP_INTERNAL, "%s: its predicate is in no buffer", walk_name(w));
    text_puts(x->rows->t, "    {");
    table_put_field(x->rows->t, "name", k->name);
    table_put_field(x->rows->t, "title", k->title ? k->title : "");
    text_printf(x->rows->t, ".kind = %d, .predicate = %d, .operand_count = %d, .operands = ", k->kind, predicate,
                counts.operands);
    text_printf(x->rows->t, counts.operands ? "%s_operands, .rows = " : "0, .rows = ", name);
    table_put_dim(x->rows->t, w->rows);
    text_puts(x->rows->t, ", .cols = ");
    table_put_dim(x->rows->t, dim_const(w->cols));
    text_printf(x->rows->t, ", .run = RUN(%s)", x->names->data[x->next_name++].function);
    if (counts.updates) text_printf(x->rows->t, ", .updates = %s_updates, .update_count = %d", name, counts.updates);
    if (k->pos.line) text_printf(x->rows->t, ", .line = %d", k->pos.line);
    if (k->segment) text_printf(x->rows->t, ", .segment = %lld", (long long)k->segment);
    if (k->kind == KERNEL_PRODUCT) AMP_TRY(put_product(x, w));
    text_puts(x->rows->t, "},\n");
    return AMP_OK;
}

static amp_status put_kernels(Tables *x, const Func *f) {
    Walk w;
    KernelArrays *counts = arena_array(x->rows->m->arena, KernelArrays, f->kernels.len + 1);
    x->buffer_of = index_buffers(f);
    walk_init(&w, f, x->rows->m->arena);
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->rows->err));
        counts[i] = put_kernel_arrays(x, &w, i);
    }
    if (f->kernels.len)
        text_printf(x->rows->t, "static const amp_model_kernel %s_kernels[] = {\n", table_func_name(x->rows, f));
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->rows->err));
        AMP_TRY(put_kernel(x, &w, i, counts[i]));
    }
    if (f->kernels.len) text_puts(x->rows->t, "};\n\n");
    return AMP_OK;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static amp_status put_program_arrays(Tables *x) {
    for (int i = 0; i < x->rows->m->funcs.len; i++) {
        table_put_buffers(x->rows, x->rows->m->funcs.data[i], NULL);
        AMP_TRY(put_kernels(x, x->rows->m->funcs.data[i]));
        AMP_TRY(table_put_results(x->rows, x->rows->m->funcs.data[i]));
    }
    return AMP_OK;
}

static int put_programs(Tables *x) {
    int count = 0;
    text_puts(x->rows->t, "static const amp_model_program programs[] = {\n");
    for (int kind = 1; kind < MODEL_PROGRAM_KINDS; kind++) {
        const Func *f = ir_program(x->rows->m, (ProgramKind)kind);
        if (!f) continue;
        const char *name = table_func_name(x->rows, f);
        text_puts(x->rows->t, "    {");
        table_put_field(x->rows->t, "name", f->name);
        table_put(x->rows->t, "buffers", "amp_model_buffer", arena_printf(x->rows->m->arena, "%s_buffers", name),
                  f->buffers.len);
        text_puts(x->rows->t, ", ");
        table_put(x->rows->t, "kernels", "amp_model_kernel", arena_printf(x->rows->m->arena, "%s_kernels", name),
                  f->kernels.len);
        text_puts(x->rows->t, ", ");
        table_put(x->rows->t, "results", "amp_model_result", arena_printf(x->rows->m->arena, "%s_results", name),
                  f->results.len);
        text_printf(x->rows->t, ", .kind = %d},\n", f->kind);
        count++;
    }
    text_puts(x->rows->t, "};\n\n");
    return count;
}

/* Each function once: kernels with equal bodies share it. */
void cpu_put_declarations(Text *t, const KernelNames *names) {
    for (int i = 0; i < names->len; i++)
        if (names->data[i].first) text_printf(t, "DECLARE(%s)\n", names->data[i].function);
    text_putc(t, '\n');
}

amp_status cpu_put_programs(TableWriter *rows, const KernelNames *names, int *count) {
    Tables x = {.rows = rows, .names = names};
    AMP_TRY(put_program_arrays(&x));
    *count = put_programs(&x);
    return AMP_OK;
}
