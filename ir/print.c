/* print.c: the text form of a module: header, states, functions, decisions.  docs/ir.md describes it; read.c reads
 * it back. */
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
    case ATTR_NUMBERS: return v->numbers == initial->numbers;
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
    if (!o->after) return;
    text_puts(t, " after (");
    for (int i = 0; i < o->after->count; i++) {
        if (i) text_puts(t, ", ");
        print_value(t, f, o->after->at[i]);
    }
    text_putc(t, ')');
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

/* The path and layer, unless they are the same for the op's region; then the region, or the checkpoint. */
static const char *origin_cell(const Columns *c, Func *f, const Op *o) {
    Text t = print_cell(c);
    const Region *r = ir_region(f, o->region);
    bool inherited = r && equal_text(o->path, r->path) && equal_text(o->layer, r->layer);
    if (!inherited) print_origin(&t, o->path, o->layer);
    if (!inherited && r && t.len == 0) text_puts(&t, "@-");
    if (r) text_printf(&t, "%s#%u", t.len ? " " : "", (unsigned)o->region);
    if (o->checkpoint) {
        text_puts(&t, t.len ? " checkpoint " : "checkpoint ");
        text_put_quoted(&t, o->checkpoint);
    }
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
    if (k->segment.mul) {
        text_puts(&t, " segment ");
        dim_print(&t, k->segment);
    }
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

/* `launch { stage { part k03 part k04, k05 } }` */
static void add_launches(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->launches.len; i++) {
        const Launch *l = &f->launches.data[i];
        Text t = print_cell(c);
        text_puts(&t, l->by_columns ? "launch by_columns {" : "launch {");
        for (int p = 0; p < l->parts.len; p++) {
            const LaunchPart *part = &l->parts.data[p];
            if (!p || part->stage != l->parts.data[p - 1].stage) text_puts(&t, p ? " } stage {" : " stage {");
            text_printf(&t, " %s", ir_part_words[part->form]);
            for (int k = 0; k < part->kernels.len; k++) {
                text_puts(&t, k ? ", " : " ");
                print_word(&t, f->kernels.data[part->kernels.data[k]]->name);
            }
        }
        text_puts(&t, " } }");
        columns_add_line(c, 2, text_str(&t));
    }
}

/* Memory that nothing touches has no "live". */
static void add_buffers(Columns *c, const void *of) {
    Func *f = (Func *)of;
    for (int i = 0; i < f->buffers.len; i++) {
        const Buffer *b = f->buffers.data[i];
        const Module *m = f->module;
        Text name = print_cell(c), kind = print_cell(c), value = print_cell(c), layout = print_cell(c),
             live = print_cell(c);
        text_puts(&name, "buffer ");
        print_word(&name, b->name);
        text_puts(&kind, ir_buffer_kind_names[b->kind]);
        if (b->state && b->state <= (uint32_t)m->states.len) {
            text_puts(&kind, " of ");
            print_word(&kind, m->states.data[b->state - 1]->name);
        }
        print_value(&value, f, b->value);
        text_puts(&layout, ir_layout_names[b->layout]);
        if (b->pitch) text_printf(&layout, " pitch %lld", (long long)b->pitch);
        if (b->is_part) text_printf(&layout, " part %lld", (long long)b->column);
        if (b->first >= 0) text_printf(&live, "live %d to %d", b->first, b->last);
        if (b->place && b->place <= (uint32_t)f->buffers.len) {
            text_puts(&live, " in ");
            print_word(&live, f->buffers.data[b->place - 1]->name);
        }
        columns_add(c, 2, text_str(&name), text_str(&kind), text_str(&value), amp_dtype_name(b->storage),
                    text_str(&layout), text_str(&live), NULL);
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
        if (f->results.data[i].hwio) text_puts(&value, " hwio");
        if (f->results.data[i].pixels) text_printf(&value, " hwio %lld", (long long)f->results.data[i].pixels);
        columns_add(c, 2, text_str(&name), text_str(&value), NULL);
    }
}

void ir_print_func(Text *t, const Func *f) {
    static void (*const parts[])(Columns *, const void *) = {add_inputs,   add_regions, add_body,
                                                             add_launches, add_buffers, add_results};
    Arena *scratch = arena_child(f->module->arena);
    text_puts(t, "func ");
    print_word(t, f->name);
    text_puts(t, f->joined ? " joined {\n" : " {\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) columns_print(t, scratch, parts[i], f);
    text_puts(t, "}\n");
    arena_free(scratch);
}

/* ---- module header ----------------------------------------------------------------------------------------------- */

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

static void put_target(Text *t, const Module *m) {
    if (!m->target) return;
    text_puts(t, "  target ");
    print_word(t, m->target);
    text_putc(t, '\n');
}

static void put_plain(Text *t, const Module *m) {
    for (int i = 0; i < STAGE_COUNT; i++)
        if (m->plain[i]) text_printf(t, "  plain %s\n", ir_stage_names[i]);
}

static void put_sums(Text *t, const Module *m) {
    if (m->sums != SUMS_IEEE) text_printf(t, "  sums %s\n", ir_sums_names[m->sums]);
}

static void put_policy(Text *t, const Module *m) {
    if (!m->policy_name && m->batch_hint) text_printf(t, "  batch_hint %lld\n", (long long)m->batch_hint);
    if (!m->policy_name) return;
    text_puts(t, "  policy ");
    text_put_quoted(t, m->policy_name);
    if (m->policy_origin) {
        text_puts(t, " origin ");
        text_put_quoted(t, m->policy_origin);
    }
    put_sha256(t, m->policy_sha256);
    if (m->low != AMP_DT_NONE) text_printf(t, " low %s", amp_dtype_name(m->low));
    if (m->is_painted) text_puts(t, " painted");
    if (m->batch_hint) text_printf(t, " batch_hint %lld", (long long)m->batch_hint);
    text_putc(t, '\n');
}

static void put_consts(Text *t, const Module *m) {
    for (int i = 0; i < m->consts.len; i++) {
        text_puts(t, "  const ");
        print_word(t, m->consts.data[i].name);
        text_printf(t, " = %lld\n", (long long)m->consts.data[i].value);
    }
}

static void put_rows(Text *t, const Module *m, void (*make_rows)(Columns *c, const void *m)) {
    Arena *scratch = arena_child(m->arena);
    columns_print(t, scratch, make_rows, m);
    arena_free(scratch);
}

static void add_overrides(Columns *c, const void *of) {
    const Module *m = of;
    for (int i = 0; i < m->overrides.len; i++) {
        const Override *o = &m->overrides.data[i];
        Text what = print_cell(c), why = print_cell(c);
        text_puts(&what, o->is_path ? "override path " : "override op ");
        print_word(&what, o->pattern);
        if (o->because) {
            text_puts(&why, "because ");
            text_put_quoted(&why, o->because);
        }
        Text word = print_cell(c);
        text_puts(&word, ": ");
        print_word(&word, o->word);
        columns_add(c, 2, text_str(&what), text_str(&word), text_str(&why), print_at_cell(c, o->pos), NULL);
    }
}

static void put_precision(Text *t, const Module *m) {
    if (m->precision_word) {
        text_puts(t, m->precision_is_file ? "  precision file " : "  precision ");
        print_word(t, m->precision_word);
        text_putc(t, '\n');
    }
    put_rows(t, m, add_overrides);
}

static void put_call_line(Text *t, const char *keyword, const Call *c) {
    if (!c->name) return;
    text_printf(t, "  %s ", keyword);
    print_placed_call(t, c);
    print_at(t, c->pos);
    text_putc(t, '\n');
}

/* " KEYWORD 0.5" */
static void put_number(Text *t, const char *keyword, double v) {
    text_printf(t, " %s ", keyword);
    text_put_double(t, v);
}

static void put_group(Text *t, const TrainGroup *g) {
    text_puts(t, "  group ");
    text_put_quoted(t, g->pattern);
    if (g->has_lr_scale) put_number(t, "lr_scale", g->lr_scale);
    if (g->has_weight_decay) put_number(t, "weight_decay", g->weight_decay);
    if (g->has_frozen) text_puts(t, g->frozen ? " frozen" : " frozen false");
    if (g->has_lazy) text_puts(t, g->lazy ? " lazy" : " lazy false");
    if (g->optimizer.name) {
        text_puts(t, " optimizer ");
        print_placed_call(t, &g->optimizer);
        print_at(t, g->optimizer.pos);
    }
    print_at(t, g->pos);
    text_putc(t, '\n');
}

static void put_train(Text *t, const Train *train) {
    bool is_plain = !train->only && train->loss && !strcmp(train->loss, amp_result_word(RESULT_LOSS)) &&
                    train->clip_norm == 0 && train->clip_value == 0 && train->every < 2 && train->ema == 0 &&
                    !train->pos.line;
    text_puts(t, "  train");
    if (train->only) {
        text_puts(t, " for ");
        text_put_quoted(t, train->only);
    }
    if (!is_plain) {
        text_puts(t, " loss ");
        print_word(t, train->loss);
    }
    if (train->clip_norm != 0) put_number(t, "clip_norm", train->clip_norm);
    if (train->clip_value != 0) put_number(t, "clip_value", train->clip_value);
    if (train->every > 1) text_printf(t, " every %lld", (long long)train->every);
    if (train->ema != 0) put_number(t, "ema", train->ema);
    print_at(t, train->pos);
    text_putc(t, '\n');
    put_call_line(t, "optimizer", &train->optimizer);
    for (int i = 0; i < train->groups.len; i++) put_group(t, &train->groups.data[i]);
}

static void put_length(Text *t, const Module *m) {
    if (!m->length.most) return;
    text_printf(t, "  length %lld", (long long)m->length.most);
    if (m->length.unit > 1) text_printf(t, " unit %lld", (long long)m->length.unit);
    text_putc(t, '\n');
}

static void put_training(Text *t, const Module *m) {
    put_call_line(t, "loss_scale", &m->loss_scale);
    put_call_line(t, "masters", &m->masters);
    put_call_line(t, "moments", &m->moments);
    if (m->reduce) {
        text_printf(t, "  reduce %s", amp_dtype_name(m->reduce));
        print_at(t, m->reduce_pos);
        text_putc(t, '\n');
    }
    if (m->pad) text_puts(t, "  pad\n");
    if (m->eval_precision) {
        text_puts(t, "  eval_precision ");
        print_word(t, m->eval_precision);
        text_putc(t, '\n');
    }
    for (int i = 0; i < m->trains.len; i++) put_train(t, &m->trains.data[i]);
    if (m->accumulate > 1) text_printf(t, "  accumulate %lld\n", (long long)m->accumulate);
    if (m->least_batch > 1) text_printf(t, "  least_batch %lld\n", (long long)m->least_batch);
    if (m->accumulate_order) text_printf(t, "  accumulate_order %s\n", ir_order_names[m->accumulate_order]);
    if (m->distribution) text_printf(t, "  distribute %s\n", ir_distribution_names[m->distribution]);
    for (int i = 0; i < m->metrics.len; i++) {
        text_puts(t, "  metric ");
        print_word(t, m->metrics.data[i]);
        text_putc(t, '\n');
    }
}

/* ---- states, decisions, removed roundings ------------------------------------------------------------------------ */

static const char *init_cell(const Columns *c, const Call *init) {
    Text t = print_cell(c);
    if (init->name) {
        text_puts(&t, "= ");
        ir_print_call(&t, init);
        print_at(&t, init->pos);
    }
    return text_str(&t);
}

static void add_states(Columns *c, const void *of) {
    const Module *m = of;
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        Text name = print_cell(c), type = print_cell(c), role = print_cell(c), stored = print_cell(c),
             at = print_cell(c);
        text_puts(&name, "state ");
        print_value_name(&name, s->name);
        text_puts(&type, ": ");
        type_print(&type, s->dtype, &s->shape);
        text_puts(&role, ir_role_names[s->role]);
        if (s->slot) {
            text_putc(&role, ' ');
            print_word(&role, s->slot);
        }
        print_optional(&role, "of", s->of);
        if (s->hwio) text_puts(&role, " hwio");
        if (s->pixels) text_printf(&role, " hwio %lld", (long long)s->pixels);
        if (s->storage != s->dtype || s->layout != LAYOUT_ROWS || s->pitch)
            text_printf(&stored, "stored %s %s", amp_dtype_name(s->storage), ir_layout_names[s->layout]);
        if (s->pitch) text_printf(&stored, " pitch %lld", (long long)s->pitch);
        if (print_is_somewhere(s->pos)) { /* not "at": an initialiser has one of its own */
            text_puts(&at, "from ");
            print_place(&at, s->pos);
        }
        columns_add(c, 0, text_str(&name), text_str(&type), text_str(&role), text_str(&stored), init_cell(c, &s->init),
                    text_str(&at), NULL);
    }
}

static const char *operands_cell(const Columns *c, const Decision *d) {
    Text t = print_cell(c);
    print_word(&t, d->op);
    text_putc(&t, '(');
    for (int i = 0; i < d->operands.len; i++)
        text_printf(&t, "%s%s", i ? ", " : "", amp_dtype_name(d->operands.data[i]));
    text_printf(&t, ") : %s", amp_dtype_name(d->out));
    return text_str(&t);
}

static const char *casts_cell(const Columns *c, const Decision *d) {
    Text t = print_cell(c);
    for (int i = 0; i < d->casts.len; i++) {
        const CastNote *cast = &d->casts.data[i];
        text_puts(&t, i ? ", " : "casts(");
        print_value_name(&t, cast->value);
        text_printf(&t, ": %s to %s", amp_dtype_name(cast->from), amp_dtype_name(cast->to));
    }
    if (d->casts.len) text_putc(&t, ')');
    return text_str(&t);
}

static void add_decisions(Columns *c, const void *of) {
    const Module *m = of;
    for (int i = 0; i < m->decisions.len; i++) {
        const Decision *d = &m->decisions.data[i];
        Text origin = print_cell(c), policy = print_cell(c);
        text_puts(&origin, "decision ");
        print_origin(&origin, d->path, d->layer);
        if (d->policy_text) {
            text_puts(&policy, "policy ");
            text_put_quoted(&policy, d->policy_text);
        }
        columns_add(c, 0, text_str(&origin), operands_cell(c, d), casts_cell(c, d), print_reason_cell(c, d->reason),
                    text_str(&policy), print_at_cell(c, d->pos), NULL);
    }
}

static void add_removed(Columns *c, const void *of) {
    const Module *m = of;
    for (int i = 0; i < m->removed.len; i++) {
        const Removed *r = &m->removed.data[i];
        Text where = print_cell(c), what = print_cell(c);
        text_puts(&where, "removed ");
        print_word(&where, r->func);
        text_putc(&where, ' ');
        print_value_name(&where, r->value);
        text_put_quoted(&what, r->what);
        columns_add(c, 0, text_str(&where), text_str(&what), NULL);
    }
}

/* A text within the text, after its keyword: line by line, each in quotes. */
static void put_lines(Text *t, const char *text) {
    Arena *lines = arena_child(t->arena);
    text_putc(t, '\n');
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        text_puts(t, "  ");
        text_put_quoted(t, arena_strndup(lines, text, (size_t)(end - text)));
        text_putc(t, '\n');
        arena_reset(lines);
    }
    arena_free(lines);
}

static void put_inner(Text *t, const char *keyword, const char *text) {
    if (!text) return;
    text_printf(t, "\n%s", keyword);
    put_lines(t, text);
}

/* What ir_read_kept reads, in every later version. */
static void put_elaborated(Text *t, const Module *m) {
    const char *policy = m->policy_origin ? m->policy_origin : m->policy_name;
    text_printf(t, "\nelaborated %d", IR_ELABORATED_VERSION);
    if (policy) {
        text_puts(t, " policy ");
        text_put_quoted(t, policy);
    }
    put_lines(t, m->model_text);
}

void ir_print(Text *t, const Module *m) {
    text_puts(t, "module ");
    text_put_quoted(t, m->name);
    text_printf(t, " stage %s {\n", ir_stage_names[m->stage]);
    static void (*const header[])(Text *, const Module *) = {
        put_target, put_plain, put_sums, put_source, put_policy, put_consts, put_length, put_precision, put_training};
    for (size_t i = 0; i < sizeof header / sizeof header[0]; i++) header[i](t, m);
    text_puts(t, m->states.len ? "}\n\n" : "}\n");
    put_rows(t, m, add_states);
    for (int i = 0; i < m->funcs.len; i++) {
        text_putc(t, '\n');
        ir_print_func(t, m->funcs.data[i]);
    }
    if (m->decisions.len || m->removed.len) text_putc(t, '\n');
    put_rows(t, m, add_decisions);
    put_rows(t, m, add_removed);
    put_inner(t, "graph", m->graph_text);
    if (!m->model_text || m->stage < STAGE_AUTOCAST) return;
    put_elaborated(t, m);
    put_inner(t, "policy_file", m->policy_text);
}

const char *ir_text(const Module *m) {
    Module alone = *m;
    Text t;
    alone.model_text = NULL;
    text_init(&t, m->arena);
    ir_print(&t, &alone);
    return text_str(&t);
}
