/* print.c: the text form.  docs/ir.md describes it; read.c reads it back. */
#include "ir/columns.h"
#include "ir/words.h"

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_bare(const char *s) {
    if (!word_starts(*s) || word_is_reserved(s)) return false;
    while (word_goes_on(*s)) s++;
    return *s == '\0';
}

/* "-" stands for none. */
static void put_word(Text *t, const char *s) {
    if (!s) text_putc(t, '-');
    else if (is_bare(s)) text_puts(t, s);
    else text_put_quoted(t, s);
}

static void put_value_name(Text *t, const char *name) {
    const char *end = name;
    while (value_name_char(*end)) end++;
    text_putc(t, '%');
    if (*end || end == name) text_put_quoted(t, name);
    else text_puts(t, name);
}

static void put_value(Text *t, const Func *f, Val v) {
    const Value *value = v.id ? ir_value(f, v) : NULL;
    if (value) put_value_name(t, value->name);
    else text_puts(t, "%?"); /* only in a module that the verifier refuses */
}

/* "KEYWORD WORD" where there is a word. */
static void put_optional(Text *t, const char *keyword, const char *word) {
    if (!word) return;
    text_printf(t, " %s ", keyword);
    put_word(t, word);
}

static void put_place(Text *t, Pos pos) {
    put_word(t, pos.file);
    text_printf(t, ":%d:%d", pos.line, pos.column);
}

static bool is_somewhere(Pos pos) { return pos.file && pos.line; }

static void put_at(Text *t, Pos pos) {
    if (!is_somewhere(pos)) return;
    text_puts(t, t->len ? " at " : "at ");
    put_place(t, pos);
}

/* A cell of its own: a text that starts empty. */
static Text cell(const Module *m) {
    Text t;
    text_init(&t, m->arena);
    return t;
}

static const char *at_cell(const Module *m, Pos pos) {
    Text t = cell(m);
    put_at(&t, pos);
    return text_str(&t);
}

/* ---- calls and reasons ----------------------------------------------------------------------- */

static void put_dims(Text *t, const Dims *dims) {
    text_putc(t, '(');
    for (int i = 0; i < dims->count; i++) text_printf(t, "%s%lld", i ? ", " : "", (long long)dims->at[i]);
    text_putc(t, ')');
}

static void put_attr(Text *t, AttrType type, const AttrValue *v) {
    switch (type) {
    case ATTR_INT: text_printf(t, "%lld", (long long)v->i); break;
    case ATTR_FLOAT: text_put_double(t, v->f); break;
    case ATTR_BOOL: text_puts(t, v->b ? "true" : "false"); break;
    case ATTR_SYMBOL: put_word(t, v->s ? v->s : ""); break;
    case ATTR_STRING: text_put_quoted(t, v->s ? v->s : ""); break;
    case ATTR_DIMS: put_dims(t, &v->dims); break;
    case ATTR_END: break;
    }
}

void ir_print_call(Text *t, const Call *c) {
    put_word(t, c->name);
    text_putc(t, '(');
    for (int i = 0; i < c->args.len; i++) {
        const CallArg *arg = &c->args.data[i];
        if (i) text_puts(t, ", ");
        put_word(t, arg->name);
        text_puts(t, " = ");
        put_attr(t, arg->type, &arg->value);
    }
    text_putc(t, ')');
}

void ir_print_reason(Text *t, const Reason *r) {
    text_putc(t, '{');
    put_word(t, r->rule);
    if (r->origin) {
        text_puts(t, ", ");
        put_word(t, r->origin);
        text_printf(t, ":%d", r->line);
    }
    if (r->is_override) {
        text_puts(t, ", override ");
        put_place(t, r->where);
    }
    if (r->relation) {
        text_puts(t, ", ");
        if (!strcmp(r->relation, "of")) text_puts(t, "of"); /* reserved elsewhere */
        else put_word(t, r->relation);
        text_putc(t, ' ');
        put_word(t, r->neighbour);
    }
    if (r->because) {
        text_puts(t, ", ");
        text_put_quoted(t, r->because);
    }
    text_putc(t, '}');
}

static const char *reason_cell(const Module *m, const Reason *r) {
    Text t = cell(m);
    if (r) {
        text_puts(&t, "because ");
        ir_print_reason(&t, r);
    }
    return text_str(&t);
}

/* "@fc1.linear layer linear" */
static void put_origin(Text *t, const char *path, const char *layer) {
    if (!path && !layer) return;
    text_putc(t, '@');
    put_word(t, path);
    put_optional(t, "layer", layer);
}

/* ---- ops ------------------------------------------------------------------------------------- */

static bool equal_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool is_initial(AttrType type, const AttrValue *v, const AttrValue *initial) {
    switch (type) {
    case ATTR_INT: return v->i == initial->i;
    case ATTR_FLOAT: return !memcmp(&v->f, &initial->f, sizeof v->f); /* bits: -0.0 is not 0.0 */
    case ATTR_BOOL: return v->b == initial->b;
    case ATTR_SYMBOL:
    case ATTR_STRING: return equal_text(v->s ? v->s : "", initial->s);
    case ATTR_DIMS: return v->dims.count == 0;
    case ATTR_END: return true;
    }
    return true;
}

static void put_operation(Text *t, const Func *f, const Op *o) {
    const OpInfo *info = &ir_op_info[o->code];
    text_printf(t, "%s(", info->name);
    for (int i = 0; i < o->n_in; i++) {
        if (i) text_puts(t, ", ");
        put_value(t, f, o->in[i]);
    }
    const char *separator = "; ";
    for (int i = 0; i < MAX_ATTRS && info->attrs[i].type != ATTR_END; i++) {
        if (is_initial(info->attrs[i].type, &o->attr[i], &info->attrs[i].initial)) continue;
        text_printf(t, "%s%s = ", separator, info->attrs[i].name);
        put_attr(t, info->attrs[i].type, &o->attr[i]);
        separator = ", ";
    }
    text_putc(t, ')');
    if (o->pred.id) {
        text_puts(t, " if ");
        put_value(t, f, o->pred);
    }
}

static const char *results_cell(const Func *f, const Op *o) {
    Text t = cell(f->module);
    for (int i = 0; i < o->n_out; i++) {
        if (i) text_puts(&t, ", ");
        put_value(&t, f, o->out[i]);
    }
    return text_str(&t);
}

static const char *types_cell(const Func *f, const Op *o) {
    Text t = cell(f->module);
    for (int i = 0; i < o->n_out; i++) {
        const Value *v = ir_value(f, o->out[i]);
        text_puts(&t, i ? ", " : ": ");
        if (v) type_print(&t, v->dtype, &v->shape);
    }
    return text_str(&t);
}

/* The path and layer where they are not those of the op's region, then the region. */
static const char *origin_cell(Func *f, const Op *o) {
    Text t = cell(f->module);
    const Region *r = ir_region(f, o->region);
    bool inherited = r && equal_text(o->path, r->path) && equal_text(o->layer, r->layer);
    if (!inherited) put_origin(&t, o->path, o->layer);
    if (!inherited && r && t.len == 0) text_puts(&t, "@-");
    if (r) text_printf(&t, "%s#%u", t.len ? " " : "", (unsigned)o->region);
    return text_str(&t);
}

static void add_op(Columns *c, int indent, Func *f, const Op *o) {
    Text t = cell(f->module);
    if (o->n_out) text_puts(&t, "= ");
    put_operation(&t, f, o);
    const char *origin = origin_cell(f, o), *why = reason_cell(f->module, o->reason), *at = at_cell(f->module, o->pos);
    if (o->n_out) columns_add(c, indent, results_cell(f, o), text_str(&t), types_cell(f, o), origin, why, at, NULL);
    else columns_add(c, indent, text_str(&t), "", "", origin, why, at, NULL);
}

/* ---- functions ------------------------------------------------------------------------------- */

static void add_inputs(Columns *c, Func *f) {
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        Text name = cell(f->module), type = cell(f->module);
        text_puts(&name, v->kind == VAL_STATE ? "state " : "input ");
        put_value_name(&name, v->name);
        text_puts(&type, ": ");
        type_print(&type, v->dtype, &v->shape);
        columns_add(c, 2, text_str(&name), text_str(&type), NULL);
    }
}

static void add_regions(Columns *c, Func *f) {
    for (int i = 0; i < f->regions.len; i++) {
        const Region *r = &f->regions.data[i];
        Text number = cell(f->module), op = cell(f->module), origin = cell(f->module);
        text_printf(&number, "region #%d", i + 1);
        put_word(&op, r->op);
        put_origin(&origin, r->path, r->layer);
        columns_add(c, 2, text_str(&number), text_str(&op), text_str(&origin), NULL);
    }
}

static void put_buffers(Text *t, const Func *f, const char *keyword, const uint32_t *ids, int count) {
    if (count) text_printf(t, " %s ", keyword);
    for (int i = 0; i < count; i++) {
        if (i) text_puts(t, ", ");
        put_word(t, ids[i] && ids[i] <= (uint32_t)f->buffers.len ? f->buffers.data[ids[i] - 1]->name : NULL);
    }
}

static void add_kernel_start(Columns *c, Func *f, const Kernel *k) {
    Text t = cell(f->module);
    text_puts(&t, "kernel ");
    put_word(&t, k->name);
    text_printf(&t, " %s ", ir_kernel_kind_names[k->kind]);
    text_put_quoted(&t, k->title ? k->title : "");
    if (k->pred.id) {
        text_puts(&t, " if ");
        put_value(&t, f, k->pred);
    }
    put_buffers(&t, f, "reads", k->reads.data, k->reads.len);
    put_buffers(&t, f, "writes", k->writes.data, k->writes.len);
    put_at(&t, k->pos);
    text_puts(&t, " {");
    columns_add_line(c, 2, text_str(&t));
}

static void add_body(Columns *c, Func *f) {
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
static void add_buffers(Columns *c, Func *f) {
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        const Module *m = f->module;
        Text name = cell(m), kind = cell(m), value = cell(m), live = cell(m);
        text_puts(&name, "buffer ");
        put_word(&name, b->name);
        text_puts(&kind, ir_buffer_kind_names[b->kind]);
        if (b->state && b->state <= (uint32_t)m->states.len) {
            text_puts(&kind, " of ");
            put_word(&kind, m->states.data[b->state - 1]->name);
        }
        put_value(&value, f, b->value);
        if (b->first >= 0) text_printf(&live, "live %d to %d", b->first, b->last);
        columns_add(c, 2, text_str(&name), text_str(&kind), text_str(&value), amp_dtype_name(b->storage),
                    ir_layout_names[b->layout], text_str(&live), NULL);
    }
}

static void add_results(Columns *c, Func *f) {
    for (int i = 0; i < f->results.len; i++) {
        Text name = cell(f->module), value = cell(f->module);
        text_puts(&name, "result ");
        put_word(&name, f->results.data[i].name);
        text_puts(&value, "= ");
        put_value(&value, f, f->results.data[i].value);
        columns_add(c, 2, text_str(&name), text_str(&value), NULL);
    }
}

void ir_print_func(Text *t, const Func *f) {
    static void (*const parts[])(Columns *, Func *) = {add_inputs, add_regions, add_body, add_buffers, add_results};
    text_puts(t, "func ");
    put_word(t, f->name);
    text_puts(t, " {\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        Columns c;
        columns_init(&c, f->module->arena);
        parts[i](&c, (Func *)f);
        columns_print(t, &c);
    }
    text_puts(t, "}\n");
}

/* ---- module header --------------------------------------------------------------------------- */

static void put_sha256(Text *t, const char *hex) {
    if (*hex) text_printf(t, " sha256 \"%s\"", hex);
}

static void put_source(Text *t, const Module *m) {
    if (!m->source_name) return;
    text_puts(t, "  source ");
    text_put_quoted(t, m->source_name);
    put_sha256(t, m->source_sha256);
    text_putc(t, '\n');
}

static void put_policy(Text *t, const Module *m) {
    if (!m->policy_name) return;
    text_puts(t, "  policy ");
    text_put_quoted(t, m->policy_name);
    if (m->policy_origin) {
        text_puts(t, " origin ");
        text_put_quoted(t, m->policy_origin);
    }
    put_sha256(t, m->policy_sha256);
    if (m->low != AMP_DT_NONE) text_printf(t, " low %s", amp_dtype_name(m->low));
    text_putc(t, '\n');
}

static void put_consts(Text *t, const Module *m) {
    for (int i = 0; i < m->consts.len; i++) {
        text_puts(t, "  const ");
        put_word(t, m->consts.data[i].name);
        text_printf(t, " = %lld\n", (long long)m->consts.data[i].value);
    }
}

static void put_precision(Text *t, const Module *m) {
    if (m->precision_word) {
        text_puts(t, m->precision_is_file ? "  precision file " : "  precision ");
        put_word(t, m->precision_word);
        text_putc(t, '\n');
    }
    Columns c;
    columns_init(&c, m->arena);
    for (int i = 0; i < m->overrides.len; i++) {
        const Override *o = &m->overrides.data[i];
        Text what = cell(m), why = cell(m);
        text_puts(&what, o->is_path ? "override path " : "override op ");
        put_word(&what, o->pattern);
        if (o->because) {
            text_puts(&why, "because ");
            text_put_quoted(&why, o->because);
        }
        Text word = cell(m);
        text_puts(&word, ": ");
        put_word(&word, o->word);
        columns_add(&c, 2, text_str(&what), text_str(&word), text_str(&why), at_cell(m, o->pos), NULL);
    }
    columns_print(t, &c);
}

static void put_call_line(Text *t, const char *keyword, const Call *c) {
    if (!c->name) return;
    text_printf(t, "  %s ", keyword);
    ir_print_call(t, c);
    put_at(t, c->pos);
    text_putc(t, '\n');
}

static void put_training(Text *t, const Module *m) {
    put_call_line(t, "loss_scale", &m->loss_scale);
    if (m->has_train) text_puts(t, "  train\n");
    put_call_line(t, "optimizer", &m->optimizer);
    for (int i = 0; i < m->metrics.len; i++) {
        text_puts(t, "  metric ");
        put_word(t, m->metrics.data[i]);
        text_putc(t, '\n');
    }
}

/* ---- states, decisions, removed roundings ---------------------------------------------------- */

static const char *init_cell(const Module *m, const Call *init) {
    Text t = cell(m);
    if (init->name) {
        text_puts(&t, "= ");
        ir_print_call(&t, init);
        put_at(&t, init->pos);
    }
    return text_str(&t);
}

static void put_states(Text *t, const Module *m) {
    Columns c;
    columns_init(&c, m->arena);
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        Text name = cell(m), type = cell(m), role = cell(m), stored = cell(m), at = cell(m);
        text_puts(&name, "state ");
        put_value_name(&name, s->name);
        text_puts(&type, ": ");
        type_print(&type, s->dtype, &s->shape);
        text_puts(&role, ir_role_names[s->role]);
        if (s->slot) {
            text_putc(&role, ' ');
            put_word(&role, s->slot);
        }
        put_optional(&role, "of", s->of);
        if (s->storage != s->dtype || s->layout != LAYOUT_ROWS)
            text_printf(&stored, "stored %s %s", amp_dtype_name(s->storage), ir_layout_names[s->layout]);
        if (is_somewhere(s->pos)) { /* not "at": an initialiser has one of its own */
            text_puts(&at, "from ");
            put_place(&at, s->pos);
        }
        columns_add(&c, 0, text_str(&name), text_str(&type), text_str(&role), text_str(&stored), init_cell(m, &s->init),
                    text_str(&at), NULL);
    }
    columns_print(t, &c);
}

static const char *operands_cell(const Module *m, const Decision *d) {
    Text t = cell(m);
    put_word(&t, d->op);
    text_putc(&t, '(');
    for (int i = 0; i < d->operands.len; i++)
        text_printf(&t, "%s%s", i ? ", " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(&t, ") : %s", amp_dtype_name(d->out));
    return text_str(&t);
}

static const char *casts_cell(const Module *m, const Decision *d) {
    Text t = cell(m);
    for (int i = 0; i < d->casts.len; i++) {
        const CastNote *c = &d->casts.data[i];
        text_puts(&t, i ? ", " : "casts(");
        put_value_name(&t, c->value);
        text_printf(&t, ": %s to %s", amp_dtype_name(c->from), amp_dtype_name(c->to));
    }
    if (d->casts.len) text_putc(&t, ')');
    return text_str(&t);
}

static void put_decisions(Text *t, const Module *m) {
    Columns c;
    columns_init(&c, m->arena);
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        Text origin = cell(m), policy = cell(m);
        text_puts(&origin, "decision ");
        put_origin(&origin, d->path, d->layer);
        if (d->policy_text) {
            text_puts(&policy, "policy ");
            text_put_quoted(&policy, d->policy_text);
        }
        columns_add(&c, 0, text_str(&origin), operands_cell(m, d), casts_cell(m, d), reason_cell(m, d->reason),
                    text_str(&policy), at_cell(m, d->pos), NULL);
    }
    columns_print(t, &c);
}

static void put_removed(Text *t, const Module *m) {
    Columns c;
    columns_init(&c, m->arena);
    for (int i = 0; i < m->removed.len; i++) {
        const Removed *r = &m->removed.data[i];
        Text where = cell(m), what = cell(m);
        text_puts(&where, "removed ");
        put_word(&where, r->func);
        text_putc(&where, ' ');
        put_value_name(&where, r->value);
        text_put_quoted(&what, r->what);
        columns_add(&c, 0, text_str(&where), text_str(&what), NULL);
    }
    columns_print(t, &c);
}

void ir_print(Text *t, const Module *m) {
    text_puts(t, "module ");
    text_put_quoted(t, m->name);
    text_printf(t, " stage %s {\n", ir_stage_names[m->stage]);
    static void (*const header[])(Text *, const Module *) = {put_source, put_policy, put_consts, put_precision,
                                                             put_training};
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) header[i](t, m);
    text_puts(t, m->states.len ? "}\n\n" : "}\n");
    put_states(t, m);
    for (int i = 0; i < m->funcs.len; i++) {
        text_putc(t, '\n');
        ir_print_func(t, m->funcs.data[i]);
    }
    if (m->decisions.len || m->removed.len) text_putc(t, '\n');
    put_decisions(t, m);
    put_removed(t, m);
}
