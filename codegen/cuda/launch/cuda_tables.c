/* cuda_tables.c: amp_model_cuda as C text: constant tables, like the CPU's descriptor. */
#include "amp/model_abi.h"
#include "base/error.h"
#include "codegen/cuda/cuda.h"
#include "codegen/descriptor.h"
#include "ir/places.h"

typedef struct Tables {
    TableWriter rows;
    const CudaModule *cuda;
    const CudaImage *images;
    int image_count;
    Text kernels, list;    /* rows that the lists in rows.t precede, and the list that is written */
    const char *list_type; /* of its elements */
    Table lists;           /* by their text: the name of their array */
    int list_count;
} Tables;

/* Elements of an array, which all launches with the same share: steps of a loop differ in little. */
static Text *begin_list(Tables *x, const char *type) {
    text_init(&x->list, x->rows.m->arena);
    x->list_type = type;
    return &x->list;
}

/* The array's name. */
static const char *end_list(Tables *x) {
    const char *key = arena_printf(x->rows.m->arena, "%s%s", x->list_type, text_str(&x->list));
    const char *name = table_get(&x->lists, key);
    if (name) return name;
    name = arena_printf(x->rows.m->arena, "cuda_list_%d", x->list_count++);
    table_set(x->rows.m->arena, &x->lists, key, (void *)name);
    text_printf(x->rows.t, "static const %s %s[] = {%s};\n", x->list_type, name, text_str(&x->list));
    return name;
}

/* |section|: a macro of amp/model_abi.h; NULL: the usual one. */
static void put_text(Text *t, const char *name, const char *section, const char *text) {
    text_printf(t, "static const char %s[]", name);
    if (section) text_printf(t, " __attribute__((section(%s), used))", section);
    text_puts(t, " =\n");
    c_long_string(t, text);
    text_puts(t, ";\n\n");
}

/* ---- functions and their images ---------------------------------------------------------------------------------- */

/* A string literal per line of bytes; octal escapes, because they end after three digits. */
static void put_bytes(Text *t, const unsigned char *data, size_t size) {
    enum { PER_LINE = 64 };
    for (size_t i = 0; i < size; i++) {
        if (i % PER_LINE == 0) text_puts(t, i ? "\"\n    \"" : "    \"");
        bool plain = data[i] >= ' ' && data[i] < 0x7F && data[i] != '"' && data[i] != '\\' && data[i] != '?';
        if (plain) text_putc(t, (char)data[i]);
        else text_printf(t, "\\%03o", data[i]);
    }
    text_puts(t, size ? "\"" : "    \"\"");
}

static int put_images(Tables *x, int function) {
    Text *t = x->rows.t;
    int count = 0;
    for (int i = 0; i < x->image_count; i++) {
        if (x->images[i].function != function) continue;
        text_printf(t, "static const char cuda_image_%d[] __attribute__((aligned(16))) =\n", i);
        put_bytes(t, x->images[i].data, x->images[i].size);
        text_puts(t, ";\n");
        count++;
    }
    if (!count) return 0;
    text_printf(t, "static const amp_model_cuda_image cuda_images_%d[] = {\n", function);
    for (int i = 0; i < x->image_count; i++) {
        const CudaImage *m = &x->images[i];
        if (m->function != function) continue;
        text_printf(t,
                    "    {.arch = %d, .suffix = %d, .is_cubin = %d, .data = cuda_image_%d, .size = %zu, .registers = "
                    "%d, .shared_bytes = %d, .spill_bytes = %d, .stack_bytes = %d},\n",
                    m->arch, m->suffix, m->is_cubin, i, m->size, m->registers, m->shared_bytes, m->spill_bytes,
                    m->stack_bytes);
    }
    text_puts(t, "};\n");
    return count;
}

/* Of the prelude what each function needs: the name of its array. */
static const char **put_preludes(Tables *x) {
    const CudaModule *m = x->cuda;
    const char **prelude = arena_array(x->rows.m->arena, const char *, m->functions.len + 1);
    for (int i = 0; i < m->functions.len; i++) {
        const CudaRanges *ranges = &m->functions.data[i].ranges;
        Text *t = begin_list(x, "amp_model_cuda_range");
        for (int k = 0; k < ranges->len; k++) text_printf(t, "{%u, %u}, ", ranges->data[k].at, ranges->data[k].size);
        prelude[i] = end_list(x);
    }
    return prelude;
}

static void put_functions(Tables *x) {
    const CudaModule *m = x->cuda;
    Text *t = x->rows.t;
    int *images = arena_array(x->rows.m->arena, int, m->functions.len + 1);
    for (int i = 0; i < m->functions.len; i++) images[i] = put_images(x, i);
    const char **prelude = put_preludes(x);
    if (m->functions.len) text_puts(t, "static const amp_model_cuda_function cuda_functions[] = {\n");
    for (int i = 0; i < m->functions.len; i++) {
        const CudaFunction *f = &m->functions.data[i];
        text_puts(t, "    {");
        table_put_field(t, "entry", f->entry);
        text_printf(t, ".min_arch = %d, .waits_from = %d, .prelude = {%s, %d}, ", f->min_arch, CUDA_OVERLAP_ARCH,
                    prelude[i], f->ranges.len);
        table_put(t, "images", "amp_model_cuda_image", arena_printf(x->rows.m->arena, "cuda_images_%d", i), images[i]);
        text_puts(t, ", .source =\n");
        c_long_string(t, f->source);
        text_puts(t, "},\n");
    }
    if (m->functions.len) text_puts(t, "};\n\n");
}

static void put_use(Text *out, const CudaProgram *p, const Kernel *k, const CudaImage *i) {
    char suffix[2] = {i->suffix, 0};
    text_printf(out, "%s %s sm_%d%s registers %d shared %d spills %d stack %d\n", p->func->name, k->name, i->arch,
                suffix, i->registers, i->shared_bytes, i->spill_bytes, i->stack_bytes);
}

static bool is_of(const CudaKernelEntry *e, int function) {
    for (int i = 0; i < e->forms.len; i++)
        if (e->forms.data[i].function == function) return true;
    return false;
}

void codegen_cuda_uses(const CodegenCuda *cuda, Text *out) {
    const CudaModule *m = cuda->code;
    const CudaImage *images = cuda->images;
    for (int p = 0; p < m->programs.len; p++)
        for (int l = 0; l < m->programs.data[p].kernels.len; l++) {
            const CudaKernelEntry *e = &m->programs.data[p].kernels.data[l];
            for (int k = 0; k < e->members.len; k++)
                for (int i = 0; i < cuda->image_count; i++)
                    if (is_of(e, images[i].function) && images[i].is_cubin && images[i].registers >= 0)
                        put_use(out, &m->programs.data[p], e->members.data[k], &images[i]);
        }
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A list of amp/model_abi.h: its field of a row. */
static void put_list(Tables *x, const char *field, int count) {
    text_printf(&x->kernels, ".%s = {%s, %d},\n     ", field, end_list(x), count);
}

static void put_dims(Tables *x, const char *field, const Dim *dims, int count) {
    if (!count) return;
    Text *t = begin_list(x, "amp_model_dim");
    for (int i = 0; i < count; i++) {
        table_put_dim(t, dims[i]);
        text_puts(t, ", ");
    }
    put_list(x, field, count);
}

/* The launch's own function, which is right everywhere, is the last one. */
static void put_choices(Tables *x, const CudaKernelEntry *e) {
    Text *t = begin_list(x, "amp_model_cuda_choice");
    for (int i = 1; i <= e->forms.len; i++) {
        const CudaChoice *c = &e->forms.data[i % e->forms.len];
        text_printf(t, "{.function = %d, .block = {%d, %d, %d}, .shared_bytes = %d}, ", c->function, c->launch.block[0],
                    c->launch.block[1], c->launch.block[2], c->launch.shared_bytes);
    }
    put_list(x, "choices", e->forms.len);
}

static void put_grid(Text *t, const CudaLaunch *l) {
    text_puts(t, "{.extent = {");
    for (int i = 0; i < 3; i++) {
        if (i) text_puts(t, ", ");
        table_put_dim(t, l->extent[i]);
    }
    text_printf(t, "}, .per = {%lld, %lld, %lld}}, ", (long long)l->per[0], (long long)l->per[1], (long long)l->per[2]);
}

static const char *grids_of(Tables *x, const CudaPart *p) {
    Text *t = begin_list(x, "amp_model_cuda_grid");
    for (int i = 1; i <= p->launches.len; i++) put_grid(t, &p->launches.data[i % p->launches.len]);
    return end_list(x);
}

static void put_part(Text *t, const CudaPart *p, const char *grids) {
    text_printf(t, "{.kind = %d, .members = %d, .operand_count = %d, .work_count = %d, .superstep = %d, ", p->kind,
                p->in_turn ? 1 : p->members, p->operands, p->work, p->step);
    text_printf(t, ".grids = %s}, ", grids);
}

static void put_parts(Tables *x, const CudaKernelEntry *e) {
    const char **grids = arena_array(x->rows.m->arena, const char *, e->parts.len);
    for (int i = 0; i < e->parts.len; i++) grids[i] = grids_of(x, &e->parts.data[i]);
    Text *t = begin_list(x, "amp_model_cuda_part");
    for (int i = 0; i < e->parts.len; i++) put_part(t, &e->parts.data[i], grids[i]);
    put_list(x, "parts", e->parts.len);
}

static void put_operands(Tables *x, const CudaKernelEntry *e) {
    if (!e->operands.len) return;
    Text *t = begin_list(x, "uint32_t");
    for (int i = 0; i < e->operands.len; i++) text_printf(t, "%u, ", e->operands.data[i] - 1);
    put_list(x, "operands", e->operands.len);
    t = begin_list(x, "uint8_t");
    for (int i = 0; i < e->access.len; i++) text_printf(t, "%d, ", e->access.data[i]);
    text_printf(&x->kernels, ".access = %s, .operand_table = %d, ", end_list(x), e->body.operand_table);
}

static void put_work(Tables *x, const CudaKernelEntry *e) {
    if (!e->work.len) return;
    Text *t = begin_list(x, "amp_model_cuda_work");
    for (int i = 0; i < e->work.len; i++) {
        const CudaWork *work = &e->work.data[i];
        text_printf(t, "{.instruction = %u, .operations = %d, .elements = ", work->instruction, work->operations);
        table_put_dim(t, work->elements);
        text_puts(t, ", .terms = ");
        table_put_dim(t, work->terms);
        text_puts(t, "}, ");
    }
    put_list(x, "work", e->work.len);
}

/* "k03"; of a bundle "k03+k04"; of all kernels "k00-k12". */
static const char *launch_name(Arena *a, const CudaProgram *p, const CudaKernelEntry *e) {
    const Func *f = p->func;
    if (e->supersteps)
        return arena_printf(a, "%s-%s", f->kernels.data[0]->name, f->kernels.data[f->kernels.len - 1]->name);
    const char *name = e->members.data[0]->name;
    for (int i = 1, first = e->parts.data[0].members; i < e->parts.len; first += e->parts.data[i++].members)
        name = arena_printf(a, "%s+%s", name, e->members.data[first]->name);
    return name;
}

/* "fc1: relu"; of a batch "fc1: relu, and 2 more". */
static const char *title_of(Arena *a, const CudaKernelEntry *e, int first, int members) {
    const char *title = e->members.data[first]->title;
    if (!title) title = "";
    return members > 1 ? arena_printf(a, "%s, and %d more", title, members - 1) : title;
}

/* Of passes "bn1: batch_norm, then bn1: batch_norm + mul"; of a bundle "fc1: matmul; fc1: matmul + relu_grad"; of all
 * kernels how many they are. */
static const char *launch_title(Arena *a, const CudaKernelEntry *e) {
    const char *then = e->members.data[e->members.len - 1]->title, *title;
    if (e->supersteps)
        return arena_printf(a, "all %d kernels in %d superstep%s", e->members.len, e->supersteps,
                            e->supersteps > 1 ? "s" : "");
    if (e->tickets && then) return arena_printf(a, "%s, then %s", title_of(a, e, 0, 1), then);
    title = title_of(a, e, 0, e->parts.data[0].members);
    for (int i = 1, first = e->parts.data[0].members; i < e->parts.len; first += e->parts.data[i++].members)
        title = arena_printf(a, "%s; %s", title, title_of(a, e, first, e->parts.data[i].members));
    return title;
}

/* Unless all are 0. */
static void put_three(Text *t, const char *name, const Dim dims[3]) {
    if (!dims[0].mul && !dims[1].mul && !dims[2].mul) return;
    text_printf(t, ", .%s = {", name);
    for (int i = 0; i < 3; i++) {
        if (i) text_puts(t, ", ");
        table_put_dim(t, dims[i]);
    }
    text_puts(t, "}");
}

static void put_calls(Tables *x, const CudaKernelEntry *e) {
    if (!e->calls.len) return;
    Text *t = begin_list(x, "amp_model_cuda_product");
    for (int i = 0; i < e->calls.len; i++) {
        const CudaProduct *c = &e->calls.data[i];
        text_printf(t, "{.a = %d, .b = %d, .result = %d, .bias = %d, .a_turned = %d, .b_turned = %d, ", c->a, c->b,
                    c->to, c->bias + 1, c->a_turned, c->b_turned);
        text_printf(t, ".instruction = %u, .parts = %d, .filled = %d, .cols = %lld, .rows = ", c->instruction, c->parts,
                    c->filled, (long long)c->cols);
        table_put_dim(t, c->rows);
        text_puts(t, ", .k = ");
        table_put_dim(t, c->k);
        put_three(t, "pitch", c->pitch);
        text_puts(t, ", .batch = ");
        table_put_dim(t, c->batch);
        put_three(t, "stride", c->stride);
        put_three(t, "first", c->first);
        text_puts(t, "}, ");
    }
    put_list(x, "products", e->calls.len);
}

static void put_kernel(Tables *x, const CudaProgram *p, const CudaKernelEntry *e);

/* What follows calls of a library is a launch like all others. */
static void put_then(Tables *x, const CudaProgram *p, const CudaKernelEntry *e) {
    if (!e->then) return;
    text_puts(&x->kernels, ".then = (const amp_model_cuda_kernel[]){");
    put_kernel(x, p, e->then);
    text_puts(&x->kernels, "    },\n     ");
}

static void put_kernel(Tables *x, const CudaProgram *p, const CudaKernelEntry *e) {
    Arena *a = x->rows.m->arena;
    Text *t = &x->kernels;
    text_puts(t, "    {");
    table_put_field(t, "name", launch_name(a, p, e));
    table_put_field(t, "title", launch_title(a, e));
    text_printf(t, ".line = %d, .shares = %d,\n     ", e->members.data[0]->pos.line, e->body.shares);
    put_choices(x, e);
    put_parts(x, e);
    put_operands(x, e);
    put_dims(x, "sizes", e->body.sizes.data, e->body.sizes.len);
    put_dims(x, "elements", e->batch_elements.data, e->batch_elements.len);
    put_work(x, e);
    put_calls(x, e);
    put_then(x, p, e);
    if (e->no_call && *e->no_call) table_put_field(t, "no_call", e->no_call);
    text_printf(t, ".waits = {.tickets = %d, .partial_bytes = %d, .depth = %d}},\n", e->tickets,
                e->body.partials ? CUDA_PARTIAL_BYTES : 0, e->supersteps ? e->depth : 0);
}

/* The launch of each kernel; of one that is in none, the next: until then its operand is there, from then on its
 * result. */
static int *launch_positions(const Tables *x, const CudaProgram *p) {
    const Func *f = p->func;
    int *position = arena_array(x->rows.m->arena, int, f->kernels.len + 1);
    int kernel = 0;
    for (int i = 0; i < p->kernels.len; i++) {
        while (ir_is_still(f, f->kernels.data[kernel])) position[kernel++] = i;
        for (int j = 0; j < p->kernels.data[i].members.len; j++) position[kernel++] = i;
    }
    while (kernel < f->kernels.len) position[kernel++] = p->kernels.len - 1;
    return position;
}

static amp_status put_program_arrays(Tables *x, const CudaProgram *p) {
    Text *t = x->rows.t;
    table_put_buffers(&x->rows, p->func, launch_positions(x, p));
    AMP_TRY(table_put_results(&x->rows, p->func));
    if (!p->kernels.len) return AMP_OK;
    text_init(&x->kernels, x->rows.m->arena);
    for (int i = 0; i < p->kernels.len; i++) put_kernel(x, p, &p->kernels.data[i]);
    text_printf(t, "static const amp_model_cuda_kernel %s_kernels[] = {\n", table_func_name(&x->rows, p->func));
    text_write(t, text_str(&x->kernels), x->kernels.len);
    text_puts(t, "};\n\n");
    return AMP_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

amp_status cuda_emit_tables(const CodegenCuda *cuda, Text *out, amp_error *err) {
    const CudaModule *m = cuda->code;
    Tables x = {
        .rows = {.m = m->module, .t = out, .err = err, .prefix = "cuda_"},
        .cuda = m,
        .images = cuda->images,
        .image_count = cuda->image_count,
    };
    Text uses;
    AMP_TRY(model_inputs(m->module, &x.rows.inputs, err));
    AMP_TRY(table_put_states(&x.rows));
    put_functions(&x);
    for (int i = 0; i < m->programs.len; i++) AMP_TRY(put_program_arrays(&x, &m->programs.data[i]));
    text_puts(out, "static const amp_model_cuda_program cuda_programs[] = {\n");
    for (int i = 0; i < m->programs.len; i++)
        table_put_program(&x.rows, m->programs.data[i].func, "amp_model_cuda_kernel", m->programs.data[i].kernels.len);
    text_puts(out, "};\n\n");
    put_text(out, "cuda_prelude", NULL, cuda_prelude);
    text_init(&uses, m->module->arena);
    codegen_cuda_uses(cuda, &uses);
    if (uses.len) put_text(out, "cuda_uses", "AMP_MODEL_CUDA_USES_SECTION", text_str(&uses));
    const int collectives = table_put_collectives(&x.rows);
    text_puts(out, "static const amp_model_cuda cuda = {\n    .struct_size = sizeof(amp_model_cuda), .prelude = "
                   "cuda_prelude, ");
    table_put(out, "states", "amp_model_state", "cuda_states", m->module->states.len);
    text_puts(out, ",\n    ");
    table_put(out, "functions", "amp_model_cuda_function", "cuda_functions", m->functions.len);
    text_puts(out, ", ");
    table_put(out, "programs", "amp_model_cuda_program", "cuda_programs", m->programs.len);
    text_puts(out, ",\n");
    if (collectives) {
        text_puts(out, "    ");
        table_put(out, "collectives", "amp_model_collective", "cuda_collectives", collectives);
        text_puts(out, ",\n");
    }
    text_puts(out, "};\n\n");
    return AMP_OK;
}
