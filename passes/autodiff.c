/* autodiff: replaces `forward` by `train_step` (forward in training mode, then the gradients of "loss"), `eval` and
 * `infer`.
 * needs: autocast.  breaks: nothing.
 *
 *   %y = relu(%h) : f16[N, 32]   =>   %y      = relu(%h)            : f16[N, 32]
 *   result loss = %loss               ...
 *                                     %d.loss = grad_seed()         : f32        because {gradient, of mse_loss}
 *                                     ...
 *                                     %d.h    = relu_grad(%d.y, %y) : f16[N, 32] because {gradient, of relu}
 *
 * Reverse mode: the body is walked backwards, casts included, so that backward ops come in PyTorch's order (its engine
 * runs the node that was made last first).  The dtypes need no second decision: the gradient of a cast is the reverse
 * cast.  train_step gets a result "grad.PARAMETER", f32, for each parameter.
 */
#include "passes/gradient.h"
#include "passes/modes.h"
#include "passes/place.h"
#include "passes/rewrite.h"

/* ---- which values need a gradient -------------------------------------------------------------------------------- */

static bool is_param(const Func *f, Val v) {
    const State *s = ir_state_of(f, v);
    return s && s->role == STATE_PARAM;
}

static bool passes_gradients(const Op *o) {
    const Gradient *g = gradient_rule(ir_op_info[o->code].grad);
    return !g || g->make; /* an op without a rule is an error only where a gradient meets it */
}

static bool *find_wanted(const Func *f) {
    bool *wanted = arena_array(f->module->arena, bool, f->values.len);
    for (int i = 0; i < f->inputs.len; i++) wanted[f->inputs.data[i].id] = is_param(f, f->inputs.data[i]);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        bool any = false;
        for (int j = 0; j < o->n_in && passes_gradients(o); j++) any = any || wanted[o->in[j].id];
        for (int r = 0; r < o->n_out; r++) wanted[o->out[r].id] = any && is_float(ir_dtype(f, o->out[r]));
    }
    return wanted;
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

/* d loss / d loss, f32, and the same in the dtype of the loss. */
static void seed(Backward *b, Val loss) {
    static const char *const names[MAX_OPERANDS] = { "seed" };
    backward_start(b, ir_def(b->f, loss), NO_VAL, names);
    Val g = backward_emit(b, OP_grad_seed, AMP_DT_F32, 0);
    if (ir_dtype(b->f, loss) != AMP_DT_F32) g = backward_emit(b, OP_cast, ir_dtype(b->f, loss), 1, g);
    b->gradient[loss.id] = g;
}

static bool differentiate(Backward *b, const Op *o) {
    if (!o->n_out || !b->wanted[o->out[0].id]) return true;
    Val dy = backward_gradient(b, o->out[0]);
    if (!dy.id) return true;
    const Gradient *rule = gradient_rule(ir_op_info[o->code].grad);
    if (!rule) {
        place_error(b->context, o->pos, "%s: %s has no gradient", o->path, ir_op_info[o->code].name);
        return false;
    }
    backward_start(b, o, dy, rule->operands);
    return rule->make(b);
}

/* A result "grad.NAME" for every parameter. */
static void add_gradients(Backward *b) {
    const Module *m = b->f->module;
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (s->role != STATE_PARAM) continue;
        Val v = ir_find(b->f, s->name);
        bool used = v.id && ir_value(b->f, v)->kind == VAL_STATE;
        Val g = used ? backward_gradient(b, v) : NO_VAL;
        if (g.id) ir_add_result(b->f, arena_printf(m->arena, "grad.%s", s->name), g);
        else place_error(b->context, s->pos, "%s does not reach the loss, so it cannot be trained", s->name);
    }
}

static void add_backward(PassContext *c, Func *f, Val loss) {
    int forward_ops = f->body.len;
    Backward b = {
        .context = c,
        .f = f,
        .wanted = find_wanted(f),
        .gradient = arena_array(f->module->arena, Val, f->values.len),
    };
    if (b.wanted[loss.id] && ir_def(f, loss)) seed(&b, loss);
    for (int i = forward_ops - 1; i >= 0; i--)
        if (!differentiate(&b, ir_op_at(f, i))) return;
    add_gradients(&b);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool of_model(const char *result) { return !result_is_of_training(result); }
static bool any_result(const char *result) {
    (void)result;
    return true;
}

static const Mode training = { "train_step", true, result_is_of_training };
static const Mode evaluation = { "eval", false, any_result };
static const Mode inference = { "infer", false, of_model };

/* Training keeps numbers of its own beside the model's. */
static void check_state_names(PassContext *c) {
    static const char *const taken[] = { "scale", "growth_tracker", "floor_hits", "step", "iteration", "seed" };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const State *s = ir_state_find(c->m, taken[i]);
        if (s)
            place_error(c, s->pos,
                        "the name %s belongs to a number that training keeps; name it differently, with `as`", s->name);
    }
}

static void make_training(PassContext *c, const Func *forward) {
    check_state_names(c);
    Func *f = mode_make(forward, &training);
    Val loss = result_find(f, "loss");
    if (!loss.id)
        diag_error(c->diags, (Loc){ 0 }, "module %s is to be trained, but has no result \"loss\"", c->m->name);
    else if (ir_shape(f, loss)->rank)
        diag_error(c->diags, (Loc){ 0 }, "module %s: the loss is not a scalar", c->m->name);
    else add_backward(c, f, loss);
    mode_make(forward, &evaluation);
}

bool pass_autodiff(PassContext *c) {
    int errors = c->diags->errors;
    Func *forward = ir_func_find(c->m, "forward");
    if (!forward) diag_error(c->diags, (Loc){ 0 }, "module %s: there is no function forward", c->m->name);
    else if (c->m->has_train) make_training(c, forward);
    if (c->diags->errors != errors) return false;
    mode_make(forward, &inference);
    ir_func_remove(c->m, forward);
    c->m->stage = STAGE_AUTODIFF;
    return true;
}
