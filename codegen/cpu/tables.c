/* tables.c: the descriptor of amp/model_abi.h as C text: constant tables, then amp_model_query. */
#include "amp/model_abi.h"
#include "base/table.h"
#include "codegen/c_text.h"
#include "codegen/codegen.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/table_rows.h"
#include "targets/target.h"

typedef struct Tables {
    TableWriter rows;
    const Module *m;
    const KernelNames *names;
    Text *t;
    amp_error *err;
    int next_name;        /* of names: kernels come in the same order */
    const int *buffer_of; /* by value of the function that is being written: its first buffer */
} Tables;

/* ---- states, inputs ---------------------------------------------------------------------------------------------- */

static void put_inputs(Tables *x) {
    if (x->rows.inputs.len) text_puts(x->t, "static const amp_model_input inputs[] = {\n");
    for (int i = 0; i < x->rows.inputs.len; i++) {
        const ModelInput *in = &x->rows.inputs.data[i];
        text_puts(x->t, "    {");
        table_put_field(x->t, "name", in->value->name);
        text_printf(x->t, ".dtype = %d, .rank = %d, ", in->value->dtype, in->value->shape.rank);
        table_put_dims(x->t, &in->value->shape);
        text_printf(x->t, ", .train_only = %d, .index_bound = %lld, .index_ignore = %lld},\n", in->kind,
                    (long long)in->index_bound, (long long)in->index_ignore);
    }
    if (x->rows.inputs.len) text_puts(x->t, "};\n\n");
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* The first buffer of each value. */
static int *index_buffers(const Func *f) {
    int *first = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i <= f->values.len; i++) first[i] = AMP_MODEL_NONE;
    for (int i = f->buffers.len - 1; i >= 0; i--) first[f->buffers.data[i]->value.id] = i;
    return first;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

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
    return arena_printf(x->m->arena, "%s_k%02d", table_func_name(&x->rows, w->f), kernel);
}

typedef struct KernelArrays {
    int operands, updates;
} KernelArrays;

static KernelArrays put_kernel_arrays(const Tables *x, const Walk *w, int kernel) {
    Arena *a = x->m->arena;
    uint32_t *numbers = arena_array(a, uint32_t, w->operands.len + w->k->reads.len * w->k->writes.len + 1);
    const char *name = arrays_name(x, w, kernel);
    for (int i = 0; i < w->operands.len; i++) numbers[i] = w->operands.data[i] - 1;
    table_put_numbers(x->t, arena_printf(a, "%s_operands", name), numbers, w->operands.len);
    KernelArrays counts = {w->operands.len, find_updates(w, numbers)};
    table_put_numbers(x->t, arena_printf(a, "%s_updates", name), numbers, counts.updates);
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
    text_printf(x->t, ", .window = {.kind = %s, .h = %lld, .w = %lld, .c = %lld, .oh = %lld, .ow = %lld, .oc = %lld",
                kinds[o->code], (long long)g.h, (long long)g.w, (long long)g.c, (long long)g.oh, (long long)g.ow,
                (long long)g.oc);
    text_printf(x->t,
                ", .kh = %lld, .kw = %lld, .stride = {%lld, %lld}, .padding = {%lld, %lld}, .dilation = {%lld, %lld}}",
                (long long)g.kh, (long long)g.kw, (long long)g.stride[0], (long long)g.stride[1],
                (long long)g.padding[0], (long long)g.padding[1], (long long)g.dilation[0], (long long)g.dilation[1]);
}

static amp_status put_product(Tables *x, const Walk *w) {
    const Op *o = find_product(w);
    Dim rows, cols;
    if (!o) return amp_fail(x->err, AMP_INTERNAL, "%s: a product kernel without a product", walk_name(w));
    int a = product_operand(w, o, 0), b = product_operand(w, o, 1);
    if (a < 0 || b < 0)
        return amp_fail(x->err, AMP_INTERNAL, "%s: operand %c is in no buffer that products read", walk_name(w),
                        a < 0 ? 'A' : 'B');
    bool matrix = o->code == OP_contract, ta = matrix && ir_attr(o, "ta")->b, tb = matrix && ir_attr(o, "tb")->b;
    shape_matrix(ir_shape(w->f, o->in[0]), &rows, &cols);
    text_printf(x->t, ", .product = {.operand = %d, .a_transposed = %d, .b_transposed = %d, .a = %d, .b = %d, .k = ",
                walk_operand(w, a)->storage, ta, tb, a, b);
    table_put_dim(x->t, !matrix ? dim_const(0) : ta ? rows : cols);
    text_putc(x->t, '}');
    if (!matrix) put_window(x, w, o);
    return AMP_OK;
}

static amp_status put_kernel(Tables *x, const Walk *w, int index, KernelArrays counts) {
    const Kernel *k = w->k;
    const char *name = arrays_name(x, w, index);
    int predicate = k->pred.id ? x->buffer_of[k->pred.id] : AMP_MODEL_NONE;
    if (k->pred.id && predicate < 0)
        return amp_fail(x->err, AMP_INTERNAL, "%s: its predicate is in no buffer", walk_name(w));
    text_puts(x->t, "    {");
    table_put_field(x->t, "name", k->name);
    table_put_field(x->t, "title", k->title ? k->title : "");
    text_printf(x->t, ".kind = %d, .predicate = %d, .operand_count = %d, .operands = ", k->kind, predicate,
                counts.operands);
    text_printf(x->t, counts.operands ? "%s_operands, .rows = " : "0, .rows = ", name);
    table_put_dim(x->t, w->rows);
    text_puts(x->t, ", .cols = ");
    table_put_dim(x->t, dim_const(w->cols));
    text_printf(x->t, ", .run = RUN(%s)", x->names->data[x->next_name++].function);
    if (counts.updates) text_printf(x->t, ", .updates = %s_updates, .update_count = %d", name, counts.updates);
    if (k->pos.line) text_printf(x->t, ", .line = %d", k->pos.line);
    if (k->segment) text_printf(x->t, ", .segment = %lld", (long long)k->segment);
    if (k->kind == KERNEL_PRODUCT) AMP_TRY(put_product(x, w));
    text_puts(x->t, "},\n");
    return AMP_OK;
}

static amp_status put_kernels(Tables *x, const Func *f) {
    Walk w;
    KernelArrays *counts = arena_array(x->m->arena, KernelArrays, f->kernels.len + 1);
    x->buffer_of = index_buffers(f);
    walk_init(&w, f, x->m->arena);
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->err));
        counts[i] = put_kernel_arrays(x, &w, i);
    }
    if (f->kernels.len)
        text_printf(x->t, "static const amp_model_kernel %s_kernels[] = {\n", table_func_name(&x->rows, f));
    for (int i = 0; i < f->kernels.len; i++) {
        AMP_TRY(walk_kernel(&w, f->kernels.data[i], x->err));
        AMP_TRY(put_kernel(x, &w, i, counts[i]));
    }
    if (f->kernels.len) text_puts(x->t, "};\n\n");
    return AMP_OK;
}

static const char *const program_order[] = {"train_step", "micro_step", "apply_step", "eval",   "infer",
                                            "eval_fp32",  "infer_fp32", "metrics",    "refresh"};
enum { PROGRAMS = sizeof program_order / sizeof program_order[0] };

static amp_status put_program_arrays(Tables *x) {
    for (int i = 0; i < x->m->funcs.len; i++) {
        table_put_buffers(&x->rows, x->m->funcs.data[i], NULL);
        AMP_TRY(put_kernels(x, x->m->funcs.data[i]));
        AMP_TRY(table_put_results(&x->rows, x->m->funcs.data[i]));
    }
    return AMP_OK;
}

static int put_programs(Tables *x) {
    int count = 0;
    text_puts(x->t, "static const amp_model_program programs[] = {\n");
    for (int i = 0; i < PROGRAMS; i++) {
        const Func *f = ir_func_find(x->m, program_order[i]);
        if (!f) continue;
        const char *name = table_func_name(&x->rows, f);
        text_puts(x->t, "    {");
        table_put_field(x->t, "name", f->name);
        table_put(x->t, "buffers", "amp_model_buffer", arena_printf(x->m->arena, "%s_buffers", name), f->buffers.len);
        text_puts(x->t, ", ");
        table_put(x->t, "kernels", "amp_model_kernel", arena_printf(x->m->arena, "%s_kernels", name), f->kernels.len);
        text_puts(x->t, ", ");
        table_put(x->t, "results", "amp_model_result", arena_printf(x->m->arena, "%s_results", name), f->results.len);
        text_puts(x->t, "},\n");
        count++;
    }
    text_puts(x->t, "};\n\n");
    return count;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static void put_reason(Tables *x, const Reason *r) {
    Text text;
    text_init(&text, x->m->arena);
    if (!r) return;
    ir_print_reason(&text, r);
    table_put_field(x->t, "rule", r->rule);
    table_put_field(x->t, "reason", text_str(&text));
    table_put_field(x->t, "policy", r->origin);
    table_put_field(x->t, "because", r->because);
    text_printf(x->t, ".policy_line = %d, ", r->line);
}

static void put_decisions(Tables *x) {
    const Module *m = x->m;
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        uint32_t *types = arena_array(m->arena, uint32_t, d->operands.len + 1);
        for (int n = 0; n < d->operands.len; n++) types[n] = d->operands.data[n];
        table_put_numbers(x->t, arena_printf(m->arena, "decision_%d", i), types, d->operands.len);
    }
    if (m->decisions.len) text_puts(x->t, "static const amp_model_decision decisions[] = {\n");
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        text_puts(x->t, "    {");
        table_put_field(x->t, "path", d->path);
        table_put_field(x->t, "op", d->op);
        table_put_field(x->t, "layer", d->layer);
        text_printf(x->t, ".out = %d, .operand_count = %d, ", d->out, d->operands.len);
        if (d->operands.len) text_printf(x->t, ".operands = decision_%d, ", i);
        put_reason(x, d->reason);
        table_put_field(x->t, "policy_text", d->policy_text);
        table_put_field(x->t, "file", d->pos.file);
        text_printf(x->t, ".line = %d, .column = %d},\n", d->pos.line, d->pos.column);
    }
    if (m->decisions.len) text_puts(x->t, "};\n\n");
}

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

static size_t put_ir(Tables *x) {
    Text ir;
    text_init(&ir, x->m->arena);
    ir_print(&ir, x->m);
    text_puts(x->t, "static const char ir_text[] __attribute__((section(AMP_MODEL_IR_SECTION))) =\n");
    c_long_string(x->t, text_str(&ir));
    text_puts(x->t, ";\n\n");
    return ir.len;
}

static void put_digest(Text *t, const char *field, const char *hex) {
    text_printf(t, "    .%s = {", field);
    for (int i = 0; i < 64 && strlen(hex) == 64; i += 2) text_printf(t, "%s0x%.2s", i ? ", " : "", hex + i);
    text_puts(t, strlen(hex) == 64 ? "},\n" : "0},\n");
}

static void put_call(Tables *x, const char *field, const Call *c) {
    Text call;
    text_init(&call, x->m->arena);
    ir_print_call(&call, c);
    table_put_field(x->t, field, text_str(&call));
}

/* Of each train block, in the order of the text. */
static void put_optimizers(Tables *x) {
    Text all;
    text_init(&all, x->m->arena);
    for (int i = 0; i < x->m->trains.len; i++) {
        if (i) text_puts(&all, "; ");
        ir_print_call(&all, &x->m->trains.data[i].optimizer);
    }
    if (all.len) table_put_field(x->t, "optimizer", text_str(&all));
}

/* The word of the low type that the policy had, whatever the model asks for. */
static const char *precision_of(const Module *m) {
    switch (m->low) {
    case AMP_DT_F16: return "fp16";
    case AMP_DT_BF16: return "bf16";
    case AMP_DT_TF32: return "tf32";
    default: return "fp32";
    }
}

static void put_descriptor(Tables *x, int programs, size_t ir_length, const CodegenCuda *cuda) {
    const Module *m = x->m;
    text_puts(x->t, "static const amp_model_desc descriptor = {\n"
                    "    .magic = AMP_MODEL_MAGIC, .abi_major = AMP_MODEL_ABI_MAJOR, .abi_minor = AMP_MODEL_ABI_MINOR, "
                    ".struct_size = sizeof(amp_model_desc),\n    ");
    table_put_field(x->t, "name", m->name);
    table_put_field(x->t, "compiler_version", CODEGEN_COMPILER_VERSION);
    table_put_field(x->t, "target", "cpu");
    table_put_field(x->t, "policy", m->policy_name);
    table_put_field(x->t, "precision", precision_of(m));
    table_put_field(x->t, "low", amp_dtype_name(m->low));
    table_put_field(x->t, "source_name", m->source_name);
    put_optimizers(x);
    if (model_is_scaled(m)) put_call(x, "scaler", &m->loss_scale);
    text_putc(x->t, '\n');
    put_digest(x->t, "source_sha256", m->source_sha256);
    put_digest(x->t, "policy_sha256", m->policy_sha256);
    text_printf(x->t, "    .graph_ops = %d, .ir_text = ir_text, .ir_length = %zu,\n    ", m->decisions.len, ir_length);
    table_put(x->t, "states", "amp_model_state", "states", m->states.len);
    text_puts(x->t, ",\n    ");
    table_put(x->t, "inputs", "amp_model_input", "inputs", x->rows.inputs.len);
    text_puts(x->t, ",\n    ");
    table_put(x->t, "programs", "amp_model_program", "programs", programs);
    text_puts(x->t, ",\n    ");
    table_put(x->t, "decisions", "amp_model_decision", "decisions", m->decisions.len);
    text_printf(x->t, ",\n    .accumulate = %lld,\n", (long long)(m->accumulate > 1 ? m->accumulate : 1));
    if (cuda && cuda->code) text_puts(x->t, "    .cuda = &cuda,\n");
    if (cuda && cuda->missing) {
        text_puts(x->t, "    ");
        table_put_field(x->t, "cuda_missing", cuda->missing);
        text_putc(x->t, '\n');
    }
    text_puts(x->t, "};\n\n");
}

/* Each function once: kernels with equal bodies share it. */
static void put_declarations(const Tables *x) {
    for (int i = 0; i < x->names->len; i++)
        if (x->names->data[i].first) text_printf(x->t, "DECLARE(%s)\n", x->names->data[i].function);
    text_putc(x->t, '\n');
}

amp_status cpu_emit_tables(const Module *m, const KernelNames *names, const CodegenCuda *cuda, Text *out,
                           amp_error *err) {
    Tables x = {.rows = {.m = m, .t = out, .err = err, .prefix = ""}, .m = m, .names = names, .t = out, .err = err};
    AMP_TRY(model_inputs(m, &x.rows.inputs, err));
    put_declarations(&x);
    AMP_TRY(table_put_states(&x.rows));
    put_inputs(&x);
    AMP_TRY(put_program_arrays(&x));
    int programs = put_programs(&x);
    put_decisions(&x);
    if (cuda && cuda->code) AMP_TRY(cuda_emit_tables(cuda->code, cuda->images, cuda->image_count, out, err));
    put_descriptor(&x, programs, put_ir(&x), cuda);
    return AMP_OK;
}
