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
#include "passes/precision/casting.h"

static void decide_by_class(Casting *x, Op *o, void *user) {
    (void)user;
    const Choice choice = casting_choose(x, o);
    const OpTypes types = casting_types(x, o, choice.op_class);
    casting_apply(x, o, &choice, &types);
}

/* The T for which bytes of |s| were counted; 0: |s| has none. */
static int64_t length_hint_of(const Shape *s) {
    for (int i = 0; i < s->rank; i++)
        if (s->d[i].t || s->d[i].sized) return ASSUMED_T;
    return 0;
}

/* `min_cut` chooses for the ops of some classes; the class alone for the others. */
static void decide_by_bytes(Casting *x, Op *o, void *user) {
    const LeastBytes *b = &((const LeastBytes *)user)[o->id.id];
    if (!b->is_decided) {
        decide_by_class(x, o, NULL);
        return;
    }
    Choice choice = casting_choose(x, o);
    const Dtype t = b->is_f32 ? AMP_DT_F32 : x->policy->low;
    const OpTypes types = {t, t, t, b->is_forced ? casting_types(x, o, POLICY_WIDEST).forced_by : -1};
    if (!b->is_forced && !choice.why.because && ir_shape(x->f, o->out[0])->rank)
        choice.why.because = least_bytes_because(x->m->arena, b, x->policy->low, x->m->batch_hint,
                                                 length_hint_of(ir_shape(x->f, o->out[0])));
    casting_apply(x, o, &choice, &types);
}

/* false: the policy bans an op that no override gives a class; the errors are in the diagnostics. */
static bool check_bans(PassContext *c, const Policy *p, const Func *f) {
    int errors = c->diags->errors;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const char *name = ir_op_info[o->code].name;
        PolicyClass ignored;
        const PolicyLine *line = policy_line_of(p, o->code, o->layer);
        if (line->op_class != POLICY_BANNED || casting_undecided(o) || override_for(c->m, p, o, &ignored)) continue;
        Diag *diag = place_error(c, o->pos, "policy %s bans %s, in line %d: %s", p->name, name, line->line, line->text);
        diag_help(c->diags, diag, "use another op, or give it a class in the precision block, such as '%s: f32'", name);
    }
    return c->diags->errors == errors;
}

static LeastBytes *choose_by_bytes(const Casting *x) {
    PolicyClass *classes = arena_array(x->m->arena, PolicyClass, x->f->ops.len);
    for (int i = 0; i < x->f->body.len; i++) {
        const Op *o = ir_op_at(x->f, i);
        classes[o->id.id] = casting_choose(x, o).op_class;
    }
    return least_bytes_of(x->f, classes, x->m->batch_hint);
}

/* `paint` decides when the backward pass is there: all is f32 until then. */
static void leave_to_paint(Casting *x, Op *o, void *user) {
    (void)user;
    const Choice choice = casting_choose(x, o);
    const OpTypes f32 = {AMP_DT_F32, AMP_DT_F32, AMP_DT_F32, -1};
    casting_apply(x, o, &choice, &f32);
}

static void run(Module *m, Func *f, const Policy *policy, bool is_forward) {
    Casting x = casting_new(m, f, policy);
    x.has_overrides = is_forward;
    x.has_decisions = is_forward && policy->algorithm != ALGORITHM_PAINT;
    if (policy->algorithm == ALGORITHM_MIN_CUT && amp_dtype_size(policy->low) < amp_dtype_size(AMP_DT_F32)) {
        x.shares_casts = true;
        casting_walk(&x, decide_by_bytes, choose_by_bytes(&x));
    } else {
        casting_walk(&x, policy->algorithm == ALGORITHM_PAINT ? leave_to_paint : decide_by_class, NULL);
    }
    casting_updates(&x);
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

/* As the policy says where the model does not. */
static void choose_state_types(Module *m, const Policy *policy) {
    if (!m->masters.name) m->masters = policy->masters;
    if (!m->moments.name) m->moments = policy->moments;
    if (!m->reduce) m->reduce = policy->reduce, m->reduce_pos = policy->reduce_pos;
}

static int64_t batch_hint_of(const PassContext *c) {
    if (c->options->batch_hint) return c->options->batch_hint;
    return c->m->batch_hint ? c->m->batch_hint : PASSES_BATCH_HINT;
}

bool pass_autocast(PassContext *c) {
    Module *m = c->m;
    Func *f = ir_program(m, PROGRAM_FORWARD);
    const Policy *policy = policy_select(c);
    if (!f) diag_error(c->diags, (Loc){0}, "module %s: there is no function forward", m->name);
    if (!policy || !f || !overrides_check(c, policy, f) || !check_bans(c, policy, f)) return false;
    if (m->eval_precision && !keep_f32_copy(c, f)) return false;
    m->decisions.len = 0;
    m->is_painted = policy->algorithm == ALGORITHM_PAINT;
    m->batch_hint = policy->algorithm == ALGORITHM_MIN_CUT ? batch_hint_of(c) : 0;
    run(m, f, policy, true);
    explain_metrics(m);
    m->policy_name = policy->name;
    const char *slash = strrchr(policy->source->name, '/');
    m->policy_origin = slash ? slash + 1 : policy->source->name; /* the folder of the file is not part of the result */
    memcpy(m->policy_sha256, policy->sha256, sizeof m->policy_sha256);
    m->policy_text = policy->source->text;
    m->low = policy->low;
    choose_state_types(m, policy);
    return true;
}
