/* buffers.c: the buffers of a function: one for every form in which a value crosses kernels, and what each kernel reads
 * and writes.  Passes that put kernels into another order make them again.
 *
 *   kernel k02 product {                              kernel k02 product reads (b1, b2) writes (b5) {
 *     %3 = contract(%x.h, %w.h; tb = true)       =>     %3 = contract(%x.h, %w.h; tb = true)
 *                                                     buffer b1 temp %x.h f32 panels
 */
#include "passes/layout/layout.h"

#include "passes/passes.h"

bool form_equal(Form a, Form b) { return a.layout == b.layout && a.storage == b.storage; }

Dtype plain_storage(Dtype t) { return t == AMP_DT_TF32 ? AMP_DT_F32 : t; }

bool is_matrix(const Shape *s) {
    Dim rows, cols;
    return s->rank >= 2 && shape_matrix(s, &rows, &cols) && !dim_is_one(rows) && !dim_is_one(cols);
}

typedef VEC(uint32_t) BufferIds;

typedef struct Needs { /* of one value */
    VEC(Form) forms;
    bool elementwise; /* read by elementwise code, which can read rows and panels */
    bool linear;      /* best read in row-major order */
    bool result;
    ResultKind result_kind;
} Needs;

typedef struct Making {
    Func *f;
    bool panels;
    int *maker;      /* by value: kernel, -1 for inputs and states */
    Needs *needs;    /* by value */
    BufferIds *made; /* by value */
    const Table *state_numbers;
} Making;

int *kernel_makers(const Func *f) {
    int *maker = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i < f->values.len; i++) maker[i] = -1;
    for (int i = 0; i < f->kernels.len; i++)
        for (int j = 0; j < f->kernels.data[i]->count; j++) {
            const Op *o = ir_op_at(f, f->kernels.data[i]->first + j);
            for (int r = 0; r < o->n_out; r++) maker[o->out[r].id] = i;
        }
    return maker;
}

static void need_form(Making *mk, Val v, Form form) {
    Needs *n = &mk->needs[v.id];
    for (int i = 0; i < n->forms.len; i++)
        if (form_equal(n->forms.data[i], form)) return;
    vec_push(mk->f->module->arena, &n->forms, form);
}

/* Whether movement reads its operand best in row-major order: neighbours in the result are neighbours there. */
static bool reads_linearly(const Func *f, const Op *o) {
    const Shape *s = o->n_out ? ir_shape(f, o->out[0]) : NULL;
    if (o->code == OP_reshape) return !ir_is_view(f, o);
    if (o->code != OP_slice && o->code != OP_pad && o->code != OP_concat) return false;
    int64_t dim = ir_attr(o, "dim")->i;
    return dim == -1 || dim == s->rank - 1;
}

bool reads_form(const Func *f, const Op *o, int n, Form *form) {
    if (ir_is_product(o)) *form = target_product_form(f, o, n);
    else if (ir_is_attention(o) && target_attention_strides(f, o, n)) *form = target_attention_form(f, o, n);
    else return false;
    return true;
}

Val product_source(const Func *f, Val v, const int *maker, int kernel) {
    for (const Op *o = ir_def(f, v); o && maker[v.id] == kernel && target_moves_on_load(f, o); o = ir_def(f, v))
        v = o->in[0];
    return v;
}

/* Whether op |j| of the kernel only says at which strides its product or attention reads an operand. */
static bool is_read_on_load(const Func *f, const Kernel *k, int j) {
    if (!(ir_kernel_info[k->kind].traits & LOADS) || !target_moves_on_load(f, ir_op_at(f, k->first + j))) return false;
    while (j >= 0 && !ir_is_product(ir_op_at(f, k->first + j)) && !ir_is_attention(ir_op_at(f, k->first + j))) j--;
    return j < 0;
}

static void collect_needs(Making *mk) {
    const Func *f = mk->f;
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->pred.id) mk->needs[k->pred.id].elementwise = true;
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            if (o->code == OP_distinct_rows) mk->needs[o->out[2].id].elementwise = true; /* memory of its own */
            for (int n = 0; n < o->n_in && !is_read_on_load(f, k, j); n++) {
                Form form;
                bool has_form = reads_form(f, o, n, &form);
                Val v = has_form ? product_source(f, o->in[n], mk->maker, i) : o->in[n];
                if (reads_linearly(f, o)) mk->needs[ir_memory_source(f, o->in[n]).id].linear = true;
                if (mk->maker[v.id] == i || !ir_reads_elements(o, n)) continue;
                if (has_form) need_form(mk, v, form);
                else mk->needs[o->in[n].id].elementwise = true;
            }
        }
    }
    for (int i = 0; i < f->results.len; i++) {
        mk->needs[f->results.data[i].value.id].result = true;
        mk->needs[f->results.data[i].value.id].result_kind = f->results.data[i].kind;
    }
}

static uint32_t add_buffer(Making *mk, BufferKind kind, Val v, Form form) {
    Func *f = mk->f;
    Arena *a = f->module->arena;
    Buffer *b = arena_new(a, Buffer);
    *b = (Buffer){.kind = kind, .value = v, .layout = form.layout, .storage = form.storage, .first = -1, .last = -1};
    vec_push(a, &f->buffers, b);
    b->name = arena_printf(a, "b%02d", f->buffers.len);
    vec_push(a, &mk->made[v.id], (uint32_t)f->buffers.len);
    return (uint32_t)f->buffers.len;
}

/* Floats that a user reads are f32; flags and integers keep their type. */
static Form output_form(Dtype t) {
    bool is_float = t == AMP_DT_F16 || t == AMP_DT_BF16 || t == AMP_DT_TF32;
    return (Form){LAYOUT_ROWS, is_float ? AMP_DT_F32 : t};
}

static bool has_readable(const Func *f, const BufferIds *ids) {
    for (int i = 0; i < ids->len; i++) {
        Layout l = f->buffers.data[ids->data[i] - 1]->layout;
        if (l == LAYOUT_ROWS || l == LAYOUT_PANELS) return true;
    }
    return false;
}

/* A panel would be mostly padding. */
static bool is_narrow(const Shape *s) {
    Dim rows, cols;
    return shape_matrix(s, &rows, &cols) &&
           ((!dim_varies(cols) && cols.mul < 32) || (!dim_varies(rows) && rows.mul < 32));
}

/* Every buffer of one value. */
static void make_for_value(Making *mk, Val v) {
    const Func *f = mk->f;
    const Value *value = ir_value(f, v);
    const Needs *n = &mk->needs[v.id];
    if (mk->made[v.id].len || !(n->forms.len || n->elementwise || n->result)) return;
    if (value->kind == VAL_STATE) {
        const State *s = ir_state_of(f, v);
        uint32_t id = add_buffer(mk, BUFFER_STATE, v, (Form){s->layout, s->storage});
        f->buffers.data[id - 1]->state = *(const uint32_t *)table_get(mk->state_numbers, s->name);
        f->buffers.data[id - 1]->pitch = s->pitch;
        return;
    }
    if (value->kind == VAL_INPUT) {
        add_buffer(mk, BUFFER_INPUT, v, (Form){LAYOUT_ROWS, value->dtype});
        return;
    }
    const Op *def = ir_def(f, v);
    if (def->code == OP_reduce_or) {
        add_buffer(mk, BUFFER_FLAG, v, (Form){LAYOUT_ROWS, AMP_DT_BOOL});
        return;
    }
    bool panels =
        mk->panels && is_matrix(&value->shape) && !n->linear && !is_narrow(&value->shape) && !ir_is_attention(def);
    Form plain = {panels ? LAYOUT_PANELS : LAYOUT_ROWS, plain_storage(value->dtype)};
    bool gradient = n->result && n->result_kind == RESULT_GRADIENT;
    if (n->result && !gradient) add_buffer(mk, BUFFER_OUTPUT, v, output_form(value->dtype));
    for (int i = 0; i < n->forms.len; i++) add_buffer(mk, BUFFER_TEMP, v, n->forms.data[i]);
    if (n->elementwise && !has_readable(f, &mk->made[v.id])) add_buffer(mk, BUFFER_TEMP, v, plain);
    if (gradient && !mk->made[v.id].len) add_buffer(mk, BUFFER_WATCH, v, plain);
}

static void list_once(Arena *a, BufferIds *ids, uint32_t id) {
    for (int i = 0; i < ids->len; i++)
        if (ids->data[i] == id) return;
    vec_push(a, ids, id);
}

/* The buffer of |v| from which a product, attention or elementwise code reads the operand. */
static uint32_t pick(const Making *mk, const Op *o, int operand, Val v) {
    const Func *f = mk->f;
    const BufferIds *ids = &mk->made[v.id];
    Form form;
    bool has_form = reads_form(f, o, operand, &form);
    for (int i = 0; i < ids->len; i++) {
        const Buffer *b = f->buffers.data[ids->data[i] - 1];
        Form has = {b->layout, b->storage};
        bool readable = b->layout == LAYOUT_ROWS || b->layout == LAYOUT_PANELS;
        if (has_form ? form_equal(has, form) && b->kind != BUFFER_OUTPUT : readable) return ids->data[i];
    }
    return ids->len ? ids->data[0] : 0;
}

static void fill_kernel(Making *mk, int index) {
    Func *f = mk->f;
    Arena *a = f->module->arena;
    Kernel *k = f->kernels.data[index];
    BufferIds reads = {0}, writes = {0};
    for (int j = 0; j < k->count; j++) {
        const Op *o = ir_op_at(f, k->first + j);
        bool assigns = o->code == OP_assign;
        for (int n = assigns ? 1 : 0; n < o->n_in && !is_read_on_load(f, k, j); n++) {
            Form form;
            Val v = reads_form(f, o, n, &form) ? product_source(f, o->in[n], mk->maker, index) : o->in[n];
            if (mk->maker[v.id] == index || !ir_reads_elements(o, n))
                continue; /* in a register, or only its shape is read */
            make_for_value(mk, v);
            list_once(a, &reads, pick(mk, o, n, v));
        }
        if (assigns) {
            mk->needs[o->in[0].id].elementwise = true;
            make_for_value(mk, o->in[0]);
            list_once(a, &writes, mk->made[o->in[0].id].data[0]);
        }
        const bool in_place = ir_op_info[o->code].flags & COLLECTIVE && ir_op_info[o->code].flags & EFFECT;
        for (int n = 0; n < o->n_in && in_place; n++) list_once(a, &writes, mk->made[o->in[n].id].data[0]);
        for (int r = 0; r < o->n_out; r++) {
            make_for_value(mk, o->out[r]);
            for (int b = 0; b < mk->made[o->out[r].id].len; b++) list_once(a, &writes, mk->made[o->out[r].id].data[b]);
        }
    }
    k->reads.len = k->writes.len = 0;
    for (int i = 0; i < reads.len; i++) vec_push(a, &k->reads, reads.data[i]);
    for (int i = 0; i < writes.len; i++) vec_push(a, &k->writes, writes.data[i]);
}

Table number_states(const Module *m) {
    Table t = {0};
    uint32_t *numbers = arena_array(m->arena, uint32_t, m->states.len + 1);
    for (int i = 0; i < m->states.len; i++) {
        numbers[i] = (uint32_t)i + 1;
        table_set(m->arena, &t, m->states.data[i]->name, &numbers[i]);
    }
    return t;
}

void make_buffers(Func *f, const Table *state_numbers) {
    Arena *a = f->module->arena;
    f->buffers.len = 0; /* they are numbered in the order of the kernels */
    Making mk = {
        .f = f,
        .panels = target_of(f->module)->has_tiles && !f->module->plain[STAGE_PACK],
        .state_numbers = state_numbers,
        .maker = kernel_makers(f),
        .needs = arena_array(a, Needs, f->values.len + 1),
        .made = arena_array(a, BufferIds, f->values.len + 1),
    };
    collect_needs(&mk);
    for (int i = 0; i < f->kernels.len; i++) fill_kernel(&mk, i);
    choose_pitches(f);
    add_look_buffers(f);
}

bool pass_buffers(PassContext *c) {
    const Table state_numbers = number_states(c->m);
    for (int i = 0; i < c->m->funcs.len; i++) make_buffers(c->m->funcs.data[i], &state_numbers);
    return true;
}
