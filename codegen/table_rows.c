/* table_rows.c: rows that the tables of every target have: states, buffers, results, and the fields of any row. */
#include "codegen/descriptor.h"

#include "amp/model_abi.h"
#include "base/error.h"
#include "codegen/emit.h"
#include "ir/places.h"

void table_put_dim(Text *t, Dim d) {
    text_printf(t, "{%lld, %lld, %d, %d}", (long long)d.mul, (long long)(d.div ? d.div : 1), d.n, d.t);
}

static void put_shape(Text *t, const Shape *s) {
    text_putc(t, '{');
    for (int i = 0; i < s->rank; i++) {
        if (i) text_puts(t, ", ");
        table_put_dim(t, s->d[i]);
    }
    text_puts(t, s->rank ? "}" : "{0}}");
}

void table_put_dims(Text *t, const Shape *s) {
    text_puts(t, ".dims = ");
    put_shape(t, s);
}

/* The array of a shape, which all buffers of that shape share: of steps of a loop there are thousands. */
static const char *dims_array(TableWriter *x, const Shape *s) {
    Text t;
    if (!s->rank) return "0";
    text_init(&t, x->m->arena);
    put_shape(&t, s);
    const char *name = table_get(&x->dims, text_str(&t));
    if (name) return name;
    name = arena_printf(x->m->arena, "%sdims_%d", x->prefix, x->dims_count++);
    table_set(x->m->arena, &x->dims, text_str(&t), (void *)name);
    text_printf(x->t, "static const amp_model_dim %s[] = %s;\n", name, text_str(&t));
    return name;
}

void table_put_field(Text *t, const char *field, const char *value) {
    text_printf(t, ".%s = ", field);
    c_string(t, value);
    text_puts(t, ", ");
}

/* A table's row in its owner; an empty table has no array. */
void table_put(Text *t, const char *field, const char *type, const char *array, int count) {
    text_printf(t, ".%s = {%d, sizeof(%s), %s}", field, count, type, count ? array : "0");
}

void table_put_numbers(Text *t, const char *name, const uint32_t *numbers, int count) {
    if (!count) return;
    text_printf(t, "static const uint32_t %s[] = {", name);
    for (int i = 0; i < count; i++) text_printf(t, "%s%u", i ? ", " : "", numbers[i]);
    text_puts(t, "};\n");
}

const char *table_func_name(const TableWriter *x, const Func *f) {
    Text t;
    text_init(&t, x->m->arena);
    text_puts(&t, x->prefix);
    c_identifier(&t, f->name);
    return text_str(&t);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void index_states(TableWriter *x) {
    for (int i = 0; i < x->m->states.len; i++)
        table_set(x->m->arena, &x->states, x->m->states.data[i]->name, (void *)(uintptr_t)(i + 1));
}

int table_state_index(const TableWriter *x, const char *name) {
    uintptr_t number = name ? (uintptr_t)table_get(&x->states, name) : 0;
    return number ? (int)number - 1 : AMP_MODEL_NONE;
}

static amp_status put_init(TableWriter *x, const State *s) {
    ModelInit init;
    if (!model_init(&s->init, &init))
        return amp_fail(x->err, AMP_UNSUPPORTED, "%s: the initialiser %s is not supported", s->name, s->init.name);
    table_put_field(x->t, "init", init.name);
    text_puts(x->t, ".init_args = {");
    for (int i = 0; i < init.count; i++)
        text_printf(x->t, "%s%s", i ? ", " : "", emit_literal(x->m->arena, AMP_DT_F64, init.args[i]));
    text_printf(x->t, "%s}, .init_arg_count = %d", init.count ? "" : "0", init.count);
    return AMP_OK;
}

/* 1 + the group's number in the model; 0: none. */
static int group_number(const Module *m, const ParamTraining *t, int group) {
    return group == NO_BLOCK ? 0 : 1 + ir_group_number(m, t->block, group);
}

static void put_param_training(TableWriter *x, const State *s) {
    const ParamTraining t = ir_param_training(x->m, s->name);
    if (t.block == NO_BLOCK) return;
    text_printf(x->t, ", .train_block = %d, .lr_scale_group = %d, .weight_decay_group = %d, .frozen_group = %d",
                1 + t.block, group_number(x->m, &t, t.lr_scale), group_number(x->m, &t, t.weight_decay),
                group_number(x->m, &t, t.frozen));
    if (t.optimizer != NO_BLOCK) text_printf(x->t, ", .optimizer_group = %d", group_number(x->m, &t, t.optimizer));
}

/* Writes the dims of a state; if a copy's rows are longer in memory, the dims in memory. */
static void put_state_dims(Text *t, const State *s) {
    const int columns = s->hwio ? 0 : s->shape.rank - 1;
    for (int d = 0; d < s->shape.rank; d++) {
        const int64_t size = s->pitch && d == columns ? s->pitch : s->shape.d[d].mul;
        text_printf(t, "%s%lld", d ? ", " : "", (long long)size);
    }
    text_printf(t, "%s}, ", s->shape.rank ? "" : "0");
}

amp_status table_put_states(TableWriter *x) {
    const Module *m = x->m;
    index_states(x);
    if (m->states.len) text_printf(x->t, "static const amp_model_state %sstates[] = {\n", x->prefix);
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        text_puts(x->t, "    {");
        table_put_field(x->t, "name", s->name);
        text_printf(x->t, ".role = %d, .of = %d, ", s->role, table_state_index(x, s->of));
        table_put_field(x->t, "slot", s->slot);
        text_printf(x->t, ".dtype = %d, .storage = %d, .layout = %d, .rank = %d, .dims = {", s->dtype, s->storage,
                    s->layout, s->shape.rank);
        put_state_dims(x->t, s);
        AMP_TRY(put_init(x, s));
        if (s->hwio) text_puts(x->t, ", .hwio = 1");
        if (s->pixels) text_printf(x->t, ", .hwio = %lld", (long long)s->pixels);
        if (s->counter.kind)
            text_printf(x->t, ", .counter = %d, .counter_block = %d", s->counter.kind, s->counter.block);
        if (s->role == STATE_PARAM) put_param_training(x, s);
        text_puts(x->t, "},\n");
    }
    if (m->states.len) text_puts(x->t, "};\n\n");
    return AMP_OK;
}

/* ---- buffers and results ----------------------------------------------------------------------------------------- */

static int buffer_source(const TableWriter *x, const Func *f, const Buffer *b) {
    if (b->kind == BUFFER_STATE) return (int)b->state - 1;
    if (b->kind == BUFFER_LOOK) return model_decision_of(x->m, f, b->value);
    return b->kind == BUFFER_INPUT ? model_input_index(&x->inputs, ir_value(f, b->value)->name) : AMP_MODEL_NONE;
}

static int position_of(const int *position, int kernel) { return position && kernel >= 0 ? position[kernel] : kernel; }

static void put_buffer(TableWriter *x, const Func *f, const Buffer *b, const int *position, const char *name,
                       bool divides, const char *dims) {
    const Shape shape = ir_buffer_shape(f, b);
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(&shape, &rows, &cols);
    text_puts(x->t, "    {");
    table_put_field(x->t, "name", name);
    text_printf(x->t,
                ".kind = %d, .index = %d, .dtype = %d, .storage = %d, .layout = %d, .first_kernel = %d, "
                ".last_kernel = %d, .rows = ",
                b->kind, buffer_source(x, f, b), b->kind == BUFFER_LOOK ? b->storage : ir_dtype(f, b->value),
                b->storage, b->layout, position_of(position, b->first), position_of(position, b->last));
    table_put_dim(x->t, rows);
    text_puts(x->t, ", .cols = ");
    table_put_dim(x->t, cols);
    text_printf(x->t, ", .rank = %d, .place = %u, ", shape.rank, b->kind == BUFFER_LOOK ? (uint32_t)divides : b->place);
    if (ir_is_renamed(f, b)) text_puts(x->t, ".renamed = 1, ");
    if (b->pitch)
        text_printf(x->t, ".padding = %lld, ", (long long)(b->pitch - ir_shape(f, b->value)->d[shape.rank - 1].mul));
    if (b->is_part) text_printf(x->t, ".part = %lld, ", (long long)b->column + 1);
    text_printf(x->t, ".dims = %s},\n", dims);
}

void table_put_buffers(TableWriter *x, const Func *f, const int *position) {
    const char *const *names = ir_told_names(f);
    const bool *divides = model_divisors(f);
    const char **dims = arena_array(x->m->arena, const char *, f->buffers.len + 1);
    if (!f->buffers.len) return;
    for (int i = 0; i < f->buffers.len; i++) {
        const Shape shape = ir_buffer_shape(f, f->buffers.data[i]);
        dims[i] = dims_array(x, &shape);
    }
    text_printf(x->t, "static const amp_model_buffer %s_buffers[] = {\n", table_func_name(x, f));
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        put_buffer(x, f, b, position, names[b->value.id], divides[b->value.id], dims[i]);
    }
    text_puts(x->t, "};\n\n");
}

/* The buffer in which a user finds each value, if it becomes a result: in rows where there is one. */
static int *index_result_buffers(const Func *f) {
    int *best = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i <= f->values.len; i++) best[i] = AMP_MODEL_NONE;
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        int *at = &best[b->value.id];
        if (b->kind == BUFFER_LOOK || (b->layout != LAYOUT_ROWS && b->layout != LAYOUT_PANELS)) continue;
        if (*at < 0 || (b->kind == BUFFER_OUTPUT && f->buffers.data[*at]->kind != BUFFER_OUTPUT)) *at = i;
    }
    return best;
}

amp_status table_put_results(TableWriter *x, const Func *f) {
    const int *buffers = index_result_buffers(f);
    if (f->results.len) text_printf(x->t, "static const amp_model_result %s_results[] = {\n", table_func_name(x, f));
    for (int i = 0; i < f->results.len; i++) {
        const Result *r = &f->results.data[i];
        int buffer = buffers[r->value.id];
        if (buffer < 0)
            return amp_fail(x->err, AMP_INTERNAL, "%s: the result %s has no buffer in rows or panels", f->name,
                            r->name);
        text_puts(x->t, "    {");
        table_put_field(x->t, "name", r->name);
        text_printf(x->t, ".buffer = %d, .dtype = %d, .rank = %d, ", buffer, ir_dtype(f, r->value),
                    ir_shape(f, r->value)->rank);
        Shape shape = *ir_shape(f, r->value);
        if (r->hwio) shape = shape_of(4, (Dim[]){shape.d[3], shape.d[2], shape.d[0], shape.d[1]});
        table_put_dims(x->t, &shape);
        if (r->hwio) text_puts(x->t, ", .hwio = 1");
        if (r->pixels) text_printf(x->t, ", .hwio = %lld", (long long)r->pixels);
        text_printf(x->t, ", .kind = %d, .index = %d},\n", r->kind,
                    r->kind == RESULT_GRADIENT ? table_state_index(x, r->of) : r->block);
    }
    if (f->results.len) text_puts(x->t, "};\n\n");
    return AMP_OK;
}

void table_put_program(TableWriter *x, const Func *f, const char *kernel_type, int kernels) {
    const char *name = table_func_name(x, f);
    text_puts(x->t, "    {");
    table_put_field(x->t, "name", f->name);
    table_put(x->t, "buffers", "amp_model_buffer", arena_printf(x->m->arena, "%s_buffers", name), f->buffers.len);
    text_puts(x->t, ", ");
    table_put(x->t, "kernels", kernel_type, arena_printf(x->m->arena, "%s_kernels", name), kernels);
    text_puts(x->t, ", ");
    table_put(x->t, "results", "amp_model_result", arena_printf(x->m->arena, "%s_results", name), f->results.len);
    text_printf(x->t, ", .kind = %d},\n", f->kind);
}
