/* autocast: gives every op of `forward` a dtype by the policy's algorithm `eager` (PyTorch's), inserts the casts, and
 * records the reason of each.
 * needs: elaborate.  breaks: nothing.
 *
 *   %h = linear(%x, %w) : f32[N, 32]   =>   %w.f16 = cast(%w)           : f16[32, 16] because {lower, p:8, for fc}
 *   %y = relu(%h)       : f32[N, 32]        %x.f16 = cast(%x)           : f16[N, 16]  because {lower, p:8, for fc}
 *                                           %h = linear(%x.f16, %w.f16) : f16[N, 32]  because {lower, p:8}
 *                                           %y = relu(%h)               : f16[N, 32]  because {follow, p:24, input fc}
 *
 * Ops are decided in order, each from the dtypes that its inputs have at that point.  One cast per parameter and
 * dtype, at its first use, shared by all readers; other values are cast for each reader.  An op's casts come last
 * operand first, as in PyTorch, so that gradients meet in the same order (aten/src/ATen/autocast_mode.h, cached_cast).
 */
#include "base/names.h"
#include "passes/common/common.h"
#include "passes/passes.h"
#include "passes/precision/least_bytes.h"
#include "passes/precision/operands.h"
#include "passes/precision/policy.h"

enum { DTYPES = AMP_DT_BOOL + 1 };

typedef struct Autocast {
    Module *m;
    Func *f;
    const Policy *policy;
    Val (*casts)[DTYPES];    /* by value id and dtype: the cast of the value */
    const LeastBytes *least; /* by op id: what `min_cut` chose; NULL: the algorithm is another */
    bool is_forward;         /* overrides hold, and decisions are recorded */
} Autocast;

/* ---- overrides: the lines of a model's precision block, which overrule the policy for some ops ------------------- */

/* A class of the policy file that gives dtypes; `low` and the name of the policy's low type mean `lower`. */
static bool class_of(const Policy *p, const char *word, PolicyClass *out) {
    if (policy_class_of(word, out)) return *out != POLICY_BANNED;
    *out = POLICY_LOWER;
    return !strcmp(word, "low") || !strcmp(word, amp_dtype_name(p->low));
}

/* A pattern that matches a path matches everything below it: "h.0" names "h.0.mlp.gelu" too. */
static bool matches_path(Arena *a, const char *glob, const char *path) {
    for (const char *end = strchr(path, '.'); end; end = strchr(end + 1, '.'))
        if (text_glob_match(glob, arena_strndup(a, path, (size_t)(end - path)))) return true;
    return text_glob_match(glob, path);
}

static bool applies(const Module *m, const Override *v, const Op *o) {
    if (v->is_path) return o->path && matches_path(m->arena, v->pattern, o->path);
    return policy_names_op(v->pattern, ir_op_info[o->code].name, o->layer);
}

/* The override that applies to |o|, with its class, or NULL.  A path beats an op name; among equals the last wins. */
static const Override *override_for(const Module *m, const Policy *p, const Op *o, PolicyClass *op_class) {
    const Override *best = NULL;
    for (int i = 0; i < m->overrides.len; i++) {
        const Override *v = &m->overrides.data[i];
        if (best && best->is_path && !v->is_path) continue;
        if (applies(m, v, o)) best = v;
    }
    if (best) class_of(p, best->word, op_class);
    return best;
}

static void check_word(PassContext *c, const Policy *p, const Override *v) {
    PolicyClass ignored;
    if (class_of(p, v->word, &ignored)) return;
    if (amp_low_type_of(v->word, NULL)) {
        Diag *diag = place_error(c, v->pos, "%s is not the low type of policy %s, which is %s", v->word, p->name,
                                 amp_dtype_name(p->low));
        diag_help(c->diags, diag, "write low, or choose another precision");
        return;
    }
    Diag *diag = place_error(c, v->pos, "unknown precision %s for %s", v->word, v->pattern);
    diag_help(c->diags, diag, "one of low, lower, f32_out, f32, widest, first, follow");
}

static void check_op(PassContext *c, const Override *v) {
    const char *nearest = NULL;
    if (policy_knows(c->m->arena, v->pattern, &nearest)) return;
    if (policy_is_foreign(v->pattern)) {
        Diag *diag = place_error(c, v->pos, "the language has no op %s", v->pattern);
        diag_help(c->diags, diag, "only policies may list ops of other systems: remove the line");
        return;
    }
    Diag *diag = place_error(c, v->pos, "unknown op %s", v->pattern);
    if (nearest) diag_help(c->diags, diag, "did you mean %s?", nearest);
    diag_help(c->diags, diag, "a path is written in quotes: \"%s\"", v->pattern);
}

static void check_path(PassContext *c, const Override *v, const Func *f) {
    VEC(const char *) paths = {0};
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (applies(c->m, v, o)) return;
        if (o->path) vec_push(c->m->arena, &paths, o->path);
    }
    Diag *diag = place_error(c, v->pos, "no op's path matches \"%s\"", v->pattern);
    const char *nearest = text_nearest(v->pattern, paths.data, paths.len);
    if (nearest) diag_help(c->diags, diag, "did you mean \"%s\"?", nearest);
}

/* Checks every override against the policy and the function: known words, known ops, globs that match an op.
 * false: errors are in the diagnostics. */
static bool check_overrides(PassContext *c, const Policy *p, const Func *f) {
    int errors = c->diags->errors;
    for (int i = 0; i < c->m->overrides.len; i++) {
        const Override *v = &c->m->overrides.data[i];
        check_word(c, p, v);
        if (v->is_path) check_path(c, v, f);
        else check_op(c, v);
    }
    return c->diags->errors == errors;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

/* The dtypes in which an op of a class runs.  NONE: operands are read as they are. */
typedef struct OpTypes {
    Dtype read;    /* float operands */
    Dtype factors; /* of a product */
    Dtype out;
    int forced_by; /* the operand that decided; -1: none did */
} OpTypes;

/* torch.promote_types: f16 and bf16 promote to f32. */
static Dtype wider(Dtype a, Dtype b) { return a == AMP_DT_NONE || a == b ? b : AMP_DT_F32; }

/* The widest dtype of the float operands.  |by_rank|: a tensor of rank 0 does not raise one that has dimensions. */
static OpTypes widest_of(const Func *f, const Op *o, bool by_rank) {
    Dtype t = AMP_DT_NONE;
    int forced_by = -1;
    bool has_dims = false;
    for (int i = 0; i < o->n_in; i++)
        has_dims = has_dims || (operand_is_castable(f, o, i) && ir_shape(f, o->in[i])->rank > 0);
    for (int i = 0; i < o->n_in; i++) {
        if (!operand_is_castable(f, o, i) || (by_rank && has_dims && !ir_shape(f, o->in[i])->rank)) continue;
        Dtype before = t;
        t = wider(t, ir_dtype(f, o->in[i]));
        if (t != before) forced_by = i;
    }
    if (t == AMP_DT_NONE) t = AMP_DT_F32;
    return (OpTypes){t, t, t, forced_by};
}

static OpTypes types_lower(const Autocast *x, const Op *o) {
    (void)o;
    Dtype low = x->policy->low;
    if (low == AMP_DT_TF32) return (OpTypes){AMP_DT_F32, AMP_DT_TF32, AMP_DT_F32, -1};
    return (OpTypes){low, low, low, -1};
}

/* How many of its leading operands are factors: 0 where |o| is no product. */
static int factor_count(const Op *o) {
    const OpInfo *info = &ir_op_info[o->code];
    return info->flags & PRODUCT ? (int)strspn(info->graph, "P") : 0;
}

/* A product needs equal factors: mixed ones are read in the widest type. */
static OpTypes types_f32_out(const Autocast *x, const Op *o) {
    bool mixed = false;
    for (int i = 1; i < factor_count(o); i++) mixed = mixed || ir_dtype(x->f, o->in[i]) != ir_dtype(x->f, o->in[0]);
    return (OpTypes){AMP_DT_NONE, mixed ? AMP_DT_F32 : AMP_DT_NONE, AMP_DT_F32, -1};
}

static OpTypes types_f32(const Autocast *x, const Op *o) {
    (void)x, (void)o;
    return (OpTypes){AMP_DT_F32, AMP_DT_F32, AMP_DT_F32, -1};
}

static OpTypes types_widest(const Autocast *x, const Op *o) { return widest_of(x->f, o, false); }

/* The dtype of the first float operand.  A product needs equal factors: mixed ones are read in the widest type. */
static OpTypes types_first(const Autocast *x, const Op *o) {
    OpTypes types = types_f32_out(x, o);
    for (int i = 0; i < o->n_in && types.forced_by < 0; i++) {
        if (!operand_is_castable(x->f, o, i)) continue;
        types.out = ir_dtype(x->f, o->in[i]);
        types.forced_by = i;
    }
    return types;
}

static OpTypes types_follow(const Autocast *x, const Op *o) { return widest_of(x->f, o, true); }

static OpTypes (*const type_rules[POLICY_CLASS_COUNT])(const Autocast *, const Op *) = {
    [POLICY_LOWER] = types_lower,   [POLICY_F32_OUT] = types_f32_out, [POLICY_F32] = types_f32,
    [POLICY_WIDEST] = types_widest, [POLICY_FIRST] = types_first,     [POLICY_FOLLOW] = types_follow,
};

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

typedef struct Choice {
    PolicyClass op_class;
    Reason why; /* the rule, and its place in the policy or model */
    const char *policy_text;
} Choice;

static Choice choose(const Autocast *x, const Op *o) {
    Choice choice = {0};
    const Override *v = x->is_forward ? override_for(x->m, x->policy, o, &choice.op_class) : NULL;
    if (v) {
        choice.why = (Reason){.is_override = true, .where = v->pos, .because = v->because};
    } else {
        const PolicyLine *line = policy_line(x->policy, ir_op_info[o->code].name, o->layer);
        choice.op_class = line->op_class;
        choice.policy_text = line->text;
        choice.why = (Reason){.origin = x->policy->name, .line = line->line};
    }
    choice.why.rule = policy_class_words[choice.op_class];
    return choice;
}

/* What the other type would cost, in the words of a reason. */
static const char *price_of_other(const Autocast *x, const LeastBytes *b) {
    const char *other = b->is_f32 ? amp_dtype_name(x->policy->low) : amp_dtype_name(AMP_DT_F32);
    Arena *a = x->m->arena;
    if (b->other_bytes > 0.0)
        return arena_printf(a, "%s would move %.0f bytes more at N = %lld", other, b->other_bytes,
                            (long long)x->m->batch_hint);
    if (b->other_casts > 0)
        return arena_printf(a, "%s would move as many bytes, and need %lld more casts", other,
                            (long long)b->other_casts);
    return arena_printf(a, "%s would move as many bytes", other);
}

/* `min_cut` chooses for the ops of some classes; the class alone for the others. */
static OpTypes types_for(const Autocast *x, const Op *o, Choice *choice) {
    const LeastBytes *b = x->least ? &x->least[o->id.id] : NULL;
    if (!b || !b->is_decided) return type_rules[choice->op_class](x, o);
    const Dtype t = b->is_f32 ? AMP_DT_F32 : x->policy->low;
    if (b->is_forced) return (OpTypes){t, t, t, widest_of(x->f, o, false).forced_by};
    if (!choice->why.because && ir_shape(x->f, o->out[0])->rank) choice->why.because = price_of_other(x, b);
    return (OpTypes){t, t, t, -1};
}

static Reason *new_reason(const Autocast *x, Reason like, const char *relation, const char *neighbour) {
    Reason *r = arena_new(x->m->arena, Reason);
    *r = like;
    r->relation = neighbour ? relation : NULL;
    r->neighbour = neighbour;
    return r;
}

/* The op that makes |v|, or the name of an input or state. */
static const char *maker_of(const Func *f, Val v) {
    const Op *def = ir_def(f, v);
    return def && def->path ? def->path : ir_value(f, v)->name;
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* PyTorch keeps the casts of parameters alone.  What else several ops read is cast for each of them, so that their
 * gradients add up in the type of the value; in the forward pass `simplify` makes one of these casts.  `min_cut` makes
 * one cast of any value. */
static bool shares_casts(const Autocast *x, Val v) {
    if (x->least) return true;
    const State *s = ir_state_of(x->f, v);
    return s && s->role == STATE_PARAM;
}

/* The cast of |v| to |t| that |o| reads; |nth| is the number of casts made for |o| so far. */
static Val cast_for(Autocast *x, const Op *o, const Choice *choice, Val v, Dtype t, int *nth) {
    Val *slot = &x->casts[v.id][t];
    if (slot->id && shares_casts(x, v)) return *slot;
    Arena *arena = x->m->arena;
    const char *name = ir_value(x->f, v)->name;
    const char *hint = is_numbered(x->f, v) ? NULL : arena_printf(arena, "%s.%s", name, amp_dtype_name(t));
    *slot = ir_emit(x->f, OP_cast, t, hint, 1, v);
    Op *cast = ir_def(x->f, *slot);
    cast->pos = o->pos;
    cast->checkpoint = o->checkpoint;
    cast->path = arena_printf(arena, *nth ? "%s.cast_%d" : "%s.cast", maker_of(x->f, o->out[0]), *nth);
    cast->reason = new_reason(x, choice->why, "for", maker_of(x->f, o->out[0]));
    ++*nth;
    return *slot;
}

static Dtype wanted_dtype(const OpTypes *types, const Op *o, int operand) {
    return operand < factor_count(o) ? types->factors : types->read;
}

static void cast_operands(Autocast *x, Op *o, const OpTypes *types, const Choice *choice) {
    int made = 0;
    for (int i = o->n_in - 1; i >= 0; i--) {
        Dtype t = wanted_dtype(types, o, i), now = ir_dtype(x->f, o->in[i]);
        if (t == AMP_DT_NONE || t == now || !operand_is_castable(x->f, o, i)) continue;
        o->in[i] = cast_for(x, o, choice, o->in[i], t, &made);
    }
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static void set_results(Autocast *x, Op *o, Dtype t) {
    InferredTypes inferred;
    if (ir_infer(x->f, o, t, &inferred)) return; /* the verifier saw the same shapes */
    for (int i = 0; i < o->n_out && i < inferred.count; i++) ir_value(x->f, o->out[i])->dtype = inferred.dtype[i];
}

static void record(Autocast *x, const Op *o, const Val *before, const Choice *choice) {
    Arena *arena = x->m->arena;
    Decision d = {
        .path = maker_of(x->f, o->out[0]),
        .op = ir_op_info[o->code].name,
        .layer = o->layer,
        .out = ir_dtype(x->f, o->out[0]),
        .reason = o->reason,
        .policy_text = choice->policy_text,
        .pos = o->pos,
    };
    for (int i = 0; i < o->n_in; i++) {
        Dtype t = ir_dtype(x->f, o->in[i]);
        vec_push(arena, &d.operands, t);
        const char *value = is_numbered(x->f, before[i]) ? maker_of(x->f, before[i]) : ir_value(x->f, before[i])->name;
        CastNote note = {value, ir_dtype(x->f, before[i]), t};
        if (note.from != note.to) vec_push(arena, &d.casts, note);
    }
    vec_push(arena, &x->m->decisions, d);
}

static void decide(Autocast *x, Op *o) {
    Choice choice = choose(x, o);
    OpTypes types = types_for(x, o, &choice);
    const Val *before = o->in;
    o->in = arena_array(x->m->arena, Val, o->n_in + 1);
    if (o->n_in) memcpy(o->in, before, sizeof(Val) * (size_t)o->n_in);
    const char *neighbour = types.forced_by >= 0 ? maker_of(x->f, o->in[types.forced_by]) : NULL;
    cast_operands(x, o, &types, &choice);
    o->reason = new_reason(x, choice.why, "input", neighbour);
    set_results(x, o, types.out);
    if (x->is_forward) record(x, o, before, &choice);
}

/* Constants stay f32, and a conversion that the model itself writes stays as written. */
static const char *undecided(const Op *o) {
    return o->code == OP_const ? "weak" : o->code == OP_cast ? "written" : NULL;
}

/* false: the policy bans an op that no override gives a class; the errors are in the diagnostics. */
static bool check_bans(PassContext *c, const Policy *p, const Func *f) {
    int errors = c->diags->errors;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const char *name = ir_op_info[o->code].name;
        PolicyClass ignored;
        const PolicyLine *line = policy_line(p, name, o->layer);
        if (line->op_class != POLICY_BANNED || undecided(o) || override_for(c->m, p, o, &ignored)) continue;
        Diag *diag = place_error(c, o->pos, "policy %s bans %s, in line %d: %s", p->name, name, line->line, line->text);
        diag_help(c->diags, diag, "use another op, or give it a class in the precision block, such as '%s: f32'", name);
    }
    return c->diags->errors == errors;
}

static void walk(Autocast *x) {
    Func *f = x->f;
    OpId *body = f->body.data;
    int count = f->body.len;
    f->body.data = NULL;
    f->body.len = f->body.cap = 0;
    for (int i = 0; i < count; i++) {
        Op *o = ir_op(f, body[i]);
        const char *rule = undecided(o);
        if (rule) o->reason = ir_reason(x->m, rule);
        else decide(x, o);
        vec_push(x->m->arena, &f->body, body[i]);
    }
}

/* A buffer keeps its own dtype, whatever its next value was computed in. */
static void cast_updates(const Autocast *x) {
    for (int i = 0; i < x->f->results.len; i++) {
        Result *r = &x->f->results.data[i];
        const State *s = r->kind == RESULT_UPDATE ? ir_result_state(x->f, r) : NULL;
        if (!s || ir_dtype(x->f, r->value) == s->dtype) continue;
        r->value = ir_emit(x->f, OP_cast, s->dtype, NULL, 1, r->value);
        Op *cast = ir_def(x->f, r->value);
        cast->path = arena_printf(x->m->arena, "%s.cast", s->name);
        cast->pos = s->pos;
        cast->reason = new_reason(x, (Reason){.rule = "update"}, "of", s->name);
    }
}

static const LeastBytes *choose_by_bytes(const Autocast *x) {
    PolicyClass *classes = arena_array(x->m->arena, PolicyClass, x->f->ops.len);
    for (int i = 0; i < x->f->body.len; i++) {
        const Op *o = ir_op_at(x->f, i);
        classes[o->id.id] = choose(x, o).op_class;
    }
    return least_bytes(x->f, classes, x->m->batch_hint);
}

static void run(Module *m, Func *f, const Policy *policy, bool is_forward) {
    Autocast x = {.m = m, .f = f, .policy = policy, .is_forward = is_forward};
    x.casts = arena_alloc(m->arena, sizeof *x.casts * (size_t)f->values.len); /* only values that exist now are cast */
    if (policy->algorithm == ALGORITHM_MIN_CUT && amp_dtype_size(policy->low) < amp_dtype_size(AMP_DT_F32))
        x.least = choose_by_bytes(&x);
    walk(&x);
    cast_updates(&x);
}

/* Averages are f32, and metrics computed from them stay f32. */
static void explain_metrics(Module *m) {
    Func *f = ir_program(m, PROGRAM_METRICS);
    for (int i = 0; f && i < f->body.len; i++) ir_op_at(f, i)->reason = ir_reason(m, "metric");
}

/* ---- evaluation in f32 ------------------------------------------------------------------------------------------- */

static bool of_evaluation(ResultKind result) { return result != RESULT_UPDATE; }

/* A copy of `forward` by the policy fp32, for `eval_fp32` and `infer_fp32`.  The model's own policy and overrides do
 * not apply to it. */
static bool keep_f32_copy(PassContext *c, const Func *forward) {
    static const Mode as_it_is = {PROGRAM_FORWARD_FP32, true, of_evaluation};
    const Source *text = policy_builtin(c->m->arena, AMP_FULL_PRECISION);
    const Policy *fp32 = text ? policy_read(c->m->arena, c->diags, text) : NULL;
    if (fp32) run(c->m, mode_make(forward, &as_it_is), fp32, false);
    return fp32;
}

static int64_t batch_hint_of(const PassContext *c) {
    return c->options->batch_hint ? c->options->batch_hint : PASSES_BATCH_HINT;
}

bool pass_autocast(PassContext *c) {
    Module *m = c->m;
    Func *f = ir_program(m, PROGRAM_FORWARD);
    const Policy *policy = policy_select(c);
    if (!f) diag_error(c->diags, (Loc){0}, "module %s: there is no function forward", m->name);
    if (!policy || !f || !check_overrides(c, policy, f) || !check_bans(c, policy, f)) return false;
    if (m->eval_precision && !keep_f32_copy(c, f)) return false;
    m->decisions.len = 0;
    m->batch_hint = policy->algorithm == ALGORITHM_MIN_CUT ? batch_hint_of(c) : 0;
    run(m, f, policy, true);
    explain_metrics(m);
    m->policy_name = policy->name;
    const char *slash = strrchr(policy->source->name, '/');
    m->policy_origin = slash ? slash + 1 : policy->source->name; /* the folder of the file is not part of the result */
    memcpy(m->policy_sha256, policy->sha256, sizeof m->policy_sha256);
    m->low = policy->low;
    return true;
}
