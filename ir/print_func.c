/* print_func.c: functions in the text form. */
#include "ir/print.h"

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static bool equal_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool equal_dims(const Dims *a, const Dims *b) {
    return a->count == b->count && !memcmp(a->at, b->at, sizeof a->at[0] * (size_t)a->count);
}

static bool is_initial(AttrType type, const AttrValue *v, const AttrValue *initial) {
    switch (type) {
    case ATTR_INT: return v->i == initial->i;
    case ATTR_FLOAT: return !memcmp(&v->f, &initial->f, sizeof v->f); /* bits: -0.0 is not 0.0 */
    case ATTR_BOOL: return v->b == initial->b;
    case ATTR_SYMBOL:
    case ATTR_STRING: return equal_text(v->s ? v->s : "", initial->s);
    case ATTR_DIMS: return equal_dims(&v->dims, &initial->dims);
    case ATTR_END: return true;
    }
    return true;
}

static void put_operation(Text *t, const Func *f, const Op *o) {
    const OpInfo *info = &ir_op_info[o->code];
    text_printf(t, "%s(", info->name);
    for (int i = 0; i < o->n_in; i++) {
        if (i) text_puts(t, ", ");
        print_value(t, f, o->in[i]);
    }
    const char *separator = "; ";
    for (int i = 0; i < MAX_ATTRS && info->attrs[i].type != ATTR_END; i++) {
        if (is_initial(info->attrs[i].type, &o->attr[i], &info->attrs[i].initial)) continue;
        text_printf(t, "%s%s = ", separator, info->attrs[i].name);
        print_attr(t, info->attrs[i].type, &o->attr[i]);
        separator = ", ";
    }
    text_putc(t, ')');
    if (o->pred.id) {
        text_puts(t, " if ");
        print_value(t, f, o->pred);
    }
}

static const char *results_cell(const Columns *c, const Func *f, const Op *o) {
    Text t = print_cell(c);
    for (int i = 0; i < o->n_out; i++) {
        if (i) text_puts(&t, ", ");
        print_value(&t, f, o->out[i]);
    }
    return text_str(&t);
}

static const char *types_cell(const Columns *c, const Func *f, const Op *o) {
    Text t = print_cell(c);
    for (int i = 0; i < o->n_out; i++) {
        const Value *v = ir_value(f, o->out[i]);
        text_puts(&t, i ? ", " : ": ");
        if (v) type_print(&t, v->dtype, &v->shape);
    }
    return text_str(&t);
}

/* The path and layer where they are not those of the op's region, then the region. */
static const char *origin_cell(const Columns *c, Func *f, const Op *o) {
    Text t = print_cell(c);
    const Region *r = ir_region(f, o->region);
    bool inherited = r && equal_text(o->path, r->path) && equal_text(o->layer, r->layer);
    if (!inherited) print_origin(&t, o->path, o->layer);
    if (!inherited && r && t.len == 0) text_puts(&t, "@-");
    if (r) text_printf(&t, "%s#%u", t.len ? " " : "", (unsigned)o->region);
    return text_str(&t);
}

static void add_op(Columns *c, int indent, Func *f, const Op *o) {
    Text t = print_cell(c);
    if (o->n_out) text_puts(&t, "= ");
    put_operation(&t, f, o);
    const char *origin = origin_cell(c, f, o), *why = print_reason_cell(c, o->reason), *at = print_at_cell(c, o->pos);
    if (o->n_out)
        columns_add(c, indent, results_cell(c, f, o), text_str(&t), types_cell(c, f, o), origin, why, at, NULL);
    else columns_add(c, indent, text_str(&t), "", "", origin, why, at, NULL);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void add_inputs(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        Text name = print_cell(c), type = print_cell(c);
        text_puts(&name, v->kind == VAL_STATE ? "state " : "input ");
        print_value_name(&name, v->name);
        text_puts(&type, ": ");
        type_print(&type, v->dtype, &v->shape);
        columns_add(c, 2, text_str(&name), text_str(&type), NULL);
    }
}

static void add_regions(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->regions.len; i++) {
        const Region *r = &f->regions.data[i];
        Text number = print_cell(c), op = print_cell(c), origin = print_cell(c);
        text_printf(&number, "region #%d", i + 1);
        print_word(&op, r->op);
        print_origin(&origin, r->path, r->layer);
        columns_add(c, 2, text_str(&number), text_str(&op), text_str(&origin), NULL);
    }
}

static void put_buffers(Text *t, const Func *f, const char *keyword, const uint32_t *ids, int count) {
    if (count) text_printf(t, " %s ", keyword);
    for (int i = 0; i < count; i++) {
        if (i) text_puts(t, ", ");
        print_word(t, ids[i] && ids[i] <= (uint32_t)f->buffers.len ? f->buffers.data[ids[i] - 1]->name : NULL);
    }
}

static void add_kernel_start(Columns *c, Func *f, const Kernel *k) {
    Text t = print_cell(c);
    text_puts(&t, "kernel ");
    print_word(&t, k->name);
    text_printf(&t, " %s ", ir_kernel_kind_names[k->kind]);
    text_put_quoted(&t, k->title ? k->title : "");
    if (k->segment) text_printf(&t, " segment %lld", (long long)k->segment);
    if (k->pred.id) {
        text_puts(&t, " if ");
        print_value(&t, f, k->pred);
    }
    put_buffers(&t, f, "reads", k->reads.data, k->reads.len);
    put_buffers(&t, f, "writes", k->writes.data, k->writes.len);
    print_at(&t, k->pos);
    text_puts(&t, " {");
    columns_add_line(c, 2, text_str(&t));
}

static void add_body(Columns *c, const void *of) {
    Func *f = (Func *)of;
    int next = 0; /* kernel */
    int end = 0;  /* of the open kernel */
    for (int i = 0; i <= f->body.len; i++) {
        if (next && i == end) {
            columns_add_line(c, 2, "}");
            end = -1;
        }
        while (next < f->kernels.len && f->kernels.data[next]->first == i && i < f->body.len) {
            add_kernel_start(c, f, f->kernels.data[next]);
            end = i + f->kernels.data[next++]->count;
        }
        if (i < f->body.len) add_op(c, next && i < end ? 4 : 2, f, ir_op_at(f, i));
    }
}

/* Memory that nothing touches has no "live". */
static void add_buffers(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        const Module *m = f->module;
        Text name = print_cell(c), kind = print_cell(c), value = print_cell(c), live = print_cell(c);
        text_puts(&name, "buffer ");
        print_word(&name, b->name);
        text_puts(&kind, ir_buffer_kind_names[b->kind]);
        if (b->state && b->state <= (uint32_t)m->states.len) {
            text_puts(&kind, " of ");
            print_word(&kind, m->states.data[b->state - 1]->name);
        }
        print_value(&value, f, b->value);
        if (b->first >= 0) text_printf(&live, "live %d to %d", b->first, b->last);
        if (b->place && b->place <= (uint32_t)f->buffers.len) {
            text_puts(&live, " in ");
            print_word(&live, f->buffers.data[b->place - 1]->name);
        }
        columns_add(c, 2, text_str(&name), text_str(&kind), text_str(&value), amp_dtype_name(b->storage),
                    ir_layout_names[b->layout], text_str(&live), NULL);
    }
}

static void add_results(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->results.len; i++) {
        Text name = print_cell(c), value = print_cell(c);
        text_puts(&name, "result ");
        print_word(&name, f->results.data[i].name);
        text_puts(&value, "= ");
        print_value(&value, f, f->results.data[i].value);
        columns_add(c, 2, text_str(&name), text_str(&value), NULL);
    }
}

void ir_print_func(Text *t, const Func *f) {
    static void (*const parts[])(Columns *, const void *) = {add_inputs, add_regions, add_body, add_buffers,
                                                             add_results};
    Arena *scratch = arena_child(f->module->arena);
    text_puts(t, "func ");
    print_word(t, f->name);
    text_puts(t, " {\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) columns_print(t, scratch, parts[i], f);
    text_puts(t, "}\n");
    arena_free(scratch);
}
