/* fuse: groups core ops into kernels (docs/design/kernels.md has the rules, docs/design/fuse.md an example).
 * needs: lower.  breaks: the order of the body.
 *
 *   %1 = contract(%x, %w; tb = true) : f32[N, 512]        kernel k01 product "fc1: linear + bias + relu" {
 *   %2 = add(%1, %fc1.bias)          : f32[N, 512]   =>     %1 .. %4
 *   %4 = max(%2, %3)                 : f32[N, 512]        }
 *
 * Walks the body once.  An op joins the kernel that makes its latest operand; if that cannot take it, a later kernel
 * that reads one of its operands; else it starts a new kernel.  Exceptions:
 *   copied   const, iota, extent, views and casts that change no number cost nothing: each kernel that needs one
 *            computes it itself.  So do casts of an input that only products read, on a target that rounds on load,
 *            and what batched products read at strides (fuse_strided.c)
 *   pending  an op that reads only inputs and states waits for its first user and joins that user's kernel; so does one
 *            that only reductions of a product's result need
 *   hoisted  scalars and counts that depend on no tensor, and that tensors need, run before all other kernels
 *   delayed  an op whose users all need something later waits for it (fuse_order.c)
 *   after    an op joins no kernel before those that it waits for
 *   guarded  an op that only assigns under predicate p depend on runs where p is known, in kernels that p skips
 *   summed   what ranks add up is a kernel of its own, never guarded; these kernels keep the order of the body
 * Nothing is computed twice except copied ops and values that cost less to recompute than to keep (fuse_memory.c).
 * Without fusion every op that is not copied is a kernel.
 */
#include "ir/words.h"
#include "passes/fuse/fuse.h"
#include "passes/passes.h"

/* ---- before the walk --------------------------------------------------------------------------------------------- */

/* Whether the op costs nothing in a kernel that reads its result. */
static bool is_free(const Fuse *z, const Op *o) {
    if (o->code == OP_const || o->code == OP_iota || o->code == OP_extent) return true;
    if (!z->fusing) return false;
    if (!is_widening(z->f, o)) return ir_is_view(z->f, o);
    Dtype from = ir_dtype(z->f, o->in[0]);
    return (is_float(from) || from == AMP_DT_U8) && is_float(ir_dtype(z->f, o->out[0]));
}

/* Where only the shape of an operand is read, the value before an exact cast gives the same shape. */
static void look_through_casts(const Fuse *z, Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        if (ir_reads_elements(o, i)) continue;
        for (const Op *def = ir_def(z->f, o->in[i]); def && is_widening(z->f, def); def = ir_def(z->f, o->in[i]))
            o->in[i] = def->in[0];
    }
}

/* Marks what operand |i| of |o| needs in memory: of a product, and of what ranks add up, the operand itself; else the
 * value that it is a view or an exact widening of. */
static void mark_operand(const Fuse *z, const Op *o, int i, bool *in_memory) {
    if (z->strided[o->in[i].id]) return;
    if (o->n_out && z->strided[o->out[0].id]) { /* read at strides by a product or attention, be it a view */
        in_memory[o->in[i].id] = z->product_reads[o->in[i].id] = true;
        return;
    }
    if (!ir_reads_memory(z->f, o, i)) return;
    const bool itself = ir_is_product(o) || ir_is_attention(o) || o->code == OP_sum_ranks;
    in_memory[itself ? o->in[i].id : ir_memory_source(z->f, o->in[i]).id] = true;
}

static bool is_no_product(const Op *o, int n) {
    (void)n;
    return !ir_is_product(o);
}

/* By value id: whether it is a result, or an op reads it as |reads| says. */
static bool *find_read(const Fuse *z, bool (*reads)(const Op *o, int n)) {
    const Func *f = z->f;
    bool *read = ir_results(f, z->a);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int n = 0; n < o->n_in; n++)
            if (reads(o, n)) read[o->in[n].id] = true;
    }
    return read;
}

/* By value id: whether `pad = true` is for it: products read it, which find rows of any length.  Then an input is
 * rounded by a kernel of its own, which writes such rows. */
static bool *find_padded(const Fuse *z) {
    const Func *f = z->f;
    bool *padded = arena_array(z->a, bool, f->values.len + 1);
    for (int i = 0; i < f->body.len && f->module->pad; i++) {
        const Op *o = ir_op_at(f, i);
        const bool reads_pitch = ir_is_product(o) && o->code != OP_batch_contract;
        for (int n = 0; n < o->n_in && reads_pitch; n++) {
            const RowReader by = n == 0 && ir_is_convolution(o) ? READ_AS_PIXELS : READ_BY_TENSOR_CORES;
            Dim rows, cols;
            const bool is_matrix =
                shape_matrix(ir_shape(f, o->in[n]), &rows, &cols) && !dim_varies(cols) && !dim_is_one(rows);
            if (is_matrix && target_pitch(target_of(f->module), f->module, cols.mul, by)) padded[o->in[n].id] = true;
        }
    }
    return padded;
}

/* Results, predicates, and the operands of products and of movement must be in memory, so their ops are not copied. */
static void find_copied(Fuse *z) {
    const Func *f = z->f;
    bool *in_memory = ir_results(f, z->a);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        in_memory[o->pred.id] = true;
        for (int n = 0; n < o->n_in; n++) {
            mark_operand(z, o, n, in_memory);
            if (ir_is_product(o) || ir_is_attention(o)) z->product_reads[o->in[n].id] = true;
        }
    }
    const bool *read_elsewhere = find_read(z, is_no_product), *padded = find_padded(z);
    const bool *elements_read = find_read(z, ir_reads_elements); /* and not its shape alone */
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        look_through_casts(z, o);
        bool on_load =
            z->fusing && target_rounds_on_load(f, o) && !read_elsewhere[o->out[0].id] && !padded[o->out[0].id];
        on_load = on_load || (o->n_out && z->strided[o->out[0].id]);
        bool is_shape = ir_is_view(f, o) && !elements_read[o->out[0].id]; /* a kernel of it would store nothing */
        if (!on_load && ((!is_free(z, o) && !is_shape) || in_memory[o->out[0].id])) continue;
        Node *n = fuse_edit(z, o);
        n->copied = true;
        n->source = o->n_in ? o->in[0] : NO_VAL;
    }
}

static void find_users(Fuse *z) {
    const Func *f = z->f;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        fuse_edit(z, o)->position = i;
        for (int n = 0; n < o->n_in; n++) {
            Op *def = fuse_maker(z, o->in[n], false);
            if (!def) continue;
            fuse_edit(z, def)->last_user = i;
            if (ir_op_info[o->code].flags & REDUCE) fuse_edit(z, def)->folded = true;
        }
    }
    for (int i = 0; i < f->results.len; i++) {
        Op *def = fuse_maker(z, f->results.data[i].value, false);
        if (def) fuse_edit(z, def)->last_user = f->body.len;
    }
}

/* Sets Node.guard.  By value id, |need| is the predicate shared by all assigns that depend on the value; 0: none
 * seen yet; ALWAYS: they have several, or something depends on it unconditionally. */
static void find_guards(Fuse *z) {
    enum { ALWAYS = -1 };
    const Func *f = z->f;
    int64_t *need = arena_array(z->a, int64_t, f->values.len + 1);
    int *position = arena_array(z->a, int, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) need[f->results.data[i].value.id] = ALWAYS;
    for (int i = 0; i < f->body.len; i++)
        for (int r = 0; r < ir_op_at(f, i)->n_out; r++) position[ir_op_at(f, i)->out[r].id] = i;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        const Node *n = fuse_node(z, o);
        int64_t guard = o->n_out ? need[o->out[0].id] : o->pred.id ? (int64_t)o->pred.id : ALWAYS;
        for (int r = 1; r < o->n_out; r++)
            if (need[o->out[r].id] != guard) guard = ALWAYS;
        if (guard > 0 && (position[guard] > i || n->home >= 0)) guard = ALWAYS;
        if (ir_op_info[o->code].flags & COLLECTIVE) guard = ALWAYS; /* all ranks take part */
        if (guard > 0 && !n->copied) fuse_edit(z, o)->guard = (Val){(uint32_t)guard};
        if (o->pred.id) need[o->pred.id] = ALWAYS;
        for (int j = 0; j < o->n_in; j++) {
            int64_t *of_input = &need[o->in[j].id];
            *of_input = *of_input && *of_input != guard ? ALWAYS : guard;
        }
    }
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Joins a kernel after |latest| that already reads one of the op's operands. */
static bool join_reader(Fuse *z, int latest, Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        Val v = o->in[i];
        const Op *def = ir_def(z->f, v);
        if (def && fuse_node(z, def)->copied) v = fuse_node(z, def)->source;
        if (!v.id || (int)v.id >= z->value_count || !ir_shape(z->f, v)->rank || !ir_reads_elements(o, i)) continue;
        for (int r = 0; r < z->readers[v.id].len; r++)
            if (z->readers[v.id].data[r] > latest && fuse_join(z, z->readers[v.id].data[r], o)) return true;
    }
    return false;
}

/* Joins the last kernel if it came from the same graph op: their results will soon be combined. */
static bool join_sibling(Fuse *z, int latest, Op *o) {
    int last = fuse_group_count(z) - 1;
    if (last <= latest || !fuse_group(z, last)->ops.len || !o->region) return false;
    const Group *g = fuse_group(z, last);
    return ir_op(z->f, g->ops.data[g->ops.len - 1])->region == o->region && fuse_join(z, last, o);
}

static bool reads_no_kernel(const Fuse *z, const Op *o) {
    if (fuse_opened_in(z, o) >= 0) return false;
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && fuse_made_in(z, o->in[i], true) >= 0) return false;
    return true;
}

static bool join_some_group(Fuse *z, Op *o) {
    const Node *n = fuse_node(z, o);
    int made = fuse_latest_input(z, o, true), latest = made > n->not_before ? made : n->not_before;
    bool reduces = fuse_reduction(z->f, o) != REDUCTION_NONE;
    if (fuse_join(z, latest, o) || (reduces && fuse_join(z, n->meeting_group, o)) || join_reader(z, latest, o))
        return true;
    if ((reduces || fuse_is_scalar(z->f, o)) && fuse_join(z, fuse_group_count(z) - 1, o)) return true;
    return join_sibling(z, latest, o);
}

/* A reduction cannot be in the kernel of a product, so what is computed for it there would be one more tensor in
 * memory: it is computed in the reduction's kernel, if what that reads instead is in memory anyway, or no larger. */
static bool waits_for_fold(const Fuse *z, const Op *o) {
    const Node *n = fuse_node(z, o);
    int made = fuse_latest_input(z, o, true), latest = made > n->not_before ? made : n->not_before;
    /* not_before may be a group that is yet to be opened */
    if (!n->for_fold || latest < 0 || latest >= fuse_group_count(z)) return false;
    if (fuse_group(z, latest)->kind != KERNEL_PRODUCT) return false;
    bool kept = true;
    for (int i = 0; i < o->n_in && !n->for_fold_alone; i++) {
        const Op *def = fuse_maker(z, o->in[i], true);
        if (def && fuse_node(z, def)->home == latest) kept = kept && fuse_node(z, def)->folded;
    }
    return kept;
}

static void place(Fuse *z, Op *o) {
    bool joins = z->fusing && !ir_is_product(o) && !ir_is_attention(o) && o->code != OP_sum_ranks;
    bool waits = joins && fuse_reduction(z->f, o) == REDUCTION_NONE;
    waits = waits && (reads_no_kernel(z, o) || waits_for_fold(z, o));
    if (waits && fuse_depth(z, o) < FUSE_MAX_DEPTH) fuse_set_pending(z, o);
    else if (!joins || !join_some_group(z, o)) fuse_append(z, fuse_open(z, o), o);
}

/* Delays are found at the start of each region, and again after a reduction, once its kernel is known. */
static bool begins_delay_run(const Func *f, const OpId *body, int i) {
    const Op *before = i ? ir_op(f, body[i - 1]) : NULL;
    if (!before || before->region != ir_op(f, body[i])->region) return true;
    Reduction r = fuse_reduction(f, before);
    return r == REDUCTION_COLUMN || r == REDUCTION_ROW;
}

/* ---- titles: what a kernel does, in the words of the graph --------------------------------------------------------
 *
 *     "fc1: linear + bias + relu"      a scope and its graph ops
 *     "fc1.weight: gradient + adamw"   a kernel that updates a parameter
 */

enum { MAX_WORDS = 32, SHOWN_WORDS = 6 };

typedef struct Title {
    const char *subject;
    const char *words[MAX_WORDS];
    int count;
} Title;

static const State *updated_parameter(const Func *f, const Group *g) {
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = ir_op(f, g->ops.data[i]);
        const State *s = o->code == OP_assign ? ir_state_of(f, o->in[0]) : NULL;
        if (s && s->role == STATE_PARAM) return s;
    }
    return NULL;
}

/* "fc1.linear", "linear" -> "fc1"; "fc1.cast_2", "cast" -> "fc1"; other paths are a scope themselves. */
static const char *scope_of(Arena *a, const char *path, const char *op) {
    const char *dot = strrchr(path, '.');
    if (!dot || strncmp(dot + 1, op, strlen(op))) return path;
    const char *number = dot + 1 + strlen(op);
    bool numbered = number[0] == '_' && number[1] && !number[1 + strspn(number + 1, "0123456789")];
    return !*number || numbered ? arena_strndup(a, path, (size_t)(dot - path)) : path;
}

static void add_word(Title *t, const char *word) {
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->words[i], word)) return;
    if (t->count < MAX_WORDS) t->words[t->count++] = word;
}

/* The graph op that |o| came from; the bias of a linear layer counts as an op of its own. */
static const char *word_of(Func *f, const Op *o, bool of_parameter) {
    const Region *r = ir_region(f, o->region);
    const char *name = r ? r->op : ir_op_info[o->code].name;
    if (!strcmp(name, "linear") && o->code == OP_add) return "bias";
    bool gradient =
        of_parameter && o->path && strstr(o->path, ".grad") && ir_op_info[o->code].flags & (PRODUCT | REDUCE);
    return gradient && o->code != OP_reduce_or ? "gradient" : name;
}

/* Not written by a person, so not worth a word. */
static bool is_silent(const Op *o) { return o->code == OP_assign || o->code == OP_const || o->code == OP_cast; }

static const char *title_of(Func *f, const Group *g) {
    Arena *a = f->module->arena;
    const State *parameter = updated_parameter(f, g);
    Title t = {.subject = parameter ? parameter->name : NULL};
    for (int i = 0; i < g->ops.len; i++) {
        const Op *o = ir_op(f, g->ops.data[i]);
        if (is_silent(o)) continue;
        if (!t.subject && o->path) t.subject = scope_of(a, o->path, word_of(f, o, false));
        add_word(&t, word_of(f, o, parameter != NULL));
    }
    const Op *first = ir_op(f, g->ops.data[0]);
    if (!t.count) add_word(&t, word_of(f, first, false));
    if (!t.subject && first->path) t.subject = scope_of(a, first->path, t.words[0]);
    Text text;
    text_init(&text, a);
    if (t.subject) text_printf(&text, "%s: ", t.subject);
    for (int i = 0; i < t.count && i < SHOWN_WORDS; i++) text_printf(&text, "%s%s", i ? " + " : "", t.words[i]);
    if (t.count > SHOWN_WORDS) text_printf(&text, " + %d more", t.count - SHOWN_WORDS);
    return text_str(&text);
}

/* ---- the kernels ------------------------------------------------------------------------------------------------- */

static Pos first_place(const Func *f, const Group *g) {
    for (int i = 0; i < g->ops.len; i++)
        if (ir_op(f, g->ops.data[i])->pos.line) return ir_op(f, g->ops.data[i])->pos;
    return (Pos){0};
}

static void write_kernels(Fuse *z) {
    Func *f = z->f;
    KernelList list = {.f = f};
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < fuse_group_count(z); i++) {
            const Group *g = fuse_group(z, i);
            if (g->early == late || !g->ops.len) continue;
            KernelOps *k = kernel_list_insert(&list, list.at.len, g->kind, title_of(f, g), first_place(f, g));
            k->kernel->pred = g->guard;
            k->kernel->segment = g->segment;
            for (int j = 0; j < g->ops.len; j++) vec_push(f->module->arena, &k->ops, g->ops.data[j]);
        }
    kernel_list_close(&list);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* A user reads f32, which attention does not make of what is rounded. */
static void find_stored(Fuse *z) {
    z->stored = z->fusing ? attention_stored(z->f, z->a) : arena_array(z->a, bool, z->f->values.len + 1);
    for (int i = 0; i < z->f->results.len; i++) z->stored[z->f->results.data[i].value.id] = false;
}

static void fuse_func(Func *f, const PassOptions *options) {
    Fuse z = fuse_new(f, options);
    fuse_find_strided(&z);
    find_stored(&z);
    find_copied(&z);
    find_users(&z);
    if (z.fusing) fuse_hoist(&z);
    if (z.fusing) find_guards(&z);
    const OpIds body = ir_take_body(f); /* ops that are made here belong to groups */
    for (int i = 0; i < body.len; i++) {
        Op *o = ir_op(f, body.data[i]);
        if (z.fusing && o->region && begins_delay_run(f, body.data, i)) fuse_delay(&z, body.data, body.len, i);
        bool effect = ir_op_info[o->code].flags & EFFECT;
        if (!effect && !fuse_node(&z, o)->copied && fuse_node(&z, o)->home == NOWHERE) place(&z, o);
    }
    fuse_place_assigns(&z, body.data, body.len);
    if (z.fusing) {
        fuse_recompute(&z);
        fuse_inline(&z);
    }
    write_kernels(&z);
    for (int i = 0; i < f->body.len; i++) ir_op_at(f, i)->after = NULL; /* the order of the kernels says it */
    fuse_free(&z);
}

/* A kernel for each collective, in the order in which all ranks make them. */
static void list_collectives(Func *f) {
    KernelList list = kernel_list_open(f);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        KernelOps *k = kernel_list_insert(&list, list.at.len, KERNEL_COLLECTIVE, o->path, o->pos);
        vec_push(f->module->arena, &k->ops, o->id);
    }
    kernel_list_close(&list);
}

bool pass_fuse(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        Func *f = c->m->funcs.data[i];
        if (ir_is_exchange(f)) list_collectives(f);
        else fuse_func(f, c->options);
    }
    return true;
}
