/* autodiff: replaces `forward` by `train_step` (forward in training mode, then the gradients of the losses), `eval` and
 * `infer`, and the uncast copy that autocast kept, where there is one, by `eval_fp32` and `infer_fp32`.
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
 * cast.  train_step gets a result "grad.PARAMETER", f32, for each parameter that is trained; each train block
 * differentiates its own loss with respect to its own parameters.  Results "update.BUFFER" stay for the optimizer pass.
 *
 * The gradients of a step of several micro-batches, or ranks, are added up, each by the count of what its loss is a
 * mean over (accumulate.c).  There the results are "term.0.PARAMETER" beside "count.term.0"; a loss whose terms have
 * different counts gets a backward pass for each count, because their sums are known after the last micro-batch:
 *
 *   loss = cross_entropy(logits, t) + 0.1 * mse_loss(y, x)     =>   term.0.fc.weight of the first, by labels;
 *                                                                   term.1.fc.weight of the second, by samples
 */
#include "passes/training/gradient.h"
#include "passes/training/training.h"

/* ---- train blocks ------------------------------------------------------------------------------------------------ */

/* What one backward pass is for. */
typedef struct Objective {
    const Train *block; /* NULL: the module names none, and trains every parameter */
    const char *loss;   /* the result that is differentiated */
    const char *word;   /* of paths of backward ops */
    const char *again;  /* of paths of forward ops that it computes again */
    const Mean *means;  /* by value id; NULL: the step is not divided, and one pass is for the loss */
    int values;         /* of the forward part: |means| has one for each */
    const TermList *terms;
    Mean of;          /* what the pass is for: the terms with this count */
    int term;         /* its number, of all passes of the step */
    bool first, last; /* of its block */
} Objective;

static bool trains(const Objective *o, const State *s) {
    if (!s || s->role != STATE_PARAM) return false;
    if (!o->block) return true;
    if (o->block->only && !text_glob_match(o->block->only, s->name)) return false;
    return ir_freezing_group(o->block, s->name) == NO_BLOCK;
}

/* ---- gradients by opcode ----------------------------------------------------------------------------------------- */

const Gradient *const gradient_tables[GRADIENT_TABLES] = {gradient_ops, gradient_loss_ops, gradient_pointwise_ops,
                                                          gradient_attention_ops};

const Gradient *gradient_of(Opcode code) {
    for (int i = 0; i < GRADIENT_TABLES; i++)
        if (gradient_tables[i][code].make) return &gradient_tables[i][code];
    return NULL;
}

/* ---- which values need a gradient -------------------------------------------------------------------------------- */

/* An op that has no gradient is an error only where one meets it. */
static bool passes_gradients(const Op *o) { return !(ir_op_info[o->code].flags & NO_GRADIENT); }

/* Of an op with several results only the first is differentiated: the others are statistics and choices. */
static bool *find_wanted(const Func *f, const Objective *objective, int forward_ops) {
    bool *wanted = arena_array(f->module->arena, bool, f->values.len);
    for (int i = 0; i < f->inputs.len; i++)
        wanted[f->inputs.data[i].id] = trains(objective, ir_state_of(f, f->inputs.data[i]));
    for (int i = 0; i < forward_ops; i++) {
        const Op *o = ir_op_at(f, i);
        bool any = false;
        for (int j = 0; j < o->n_in && passes_gradients(o); j++) any = any || wanted[o->in[j].id];
        if (o->n_out) wanted[o->out[0].id] = any && is_float(ir_dtype(f, o->out[0]));
    }
    return wanted;
}

/* ---- backwards --------------------------------------------------------------------------------------------------- */

/* d loss / d loss, f32, and the same in the dtype of the loss. */
static void seed(Backward *b, Val loss) {
    static const char *const names[NAMED_OPERANDS] = {"seed"};
    backward_start(b, ir_def(b->f, loss), NO_VAL, names);
    Val g = backward_emit(b, OP_grad_seed, AMP_DT_F32, 0);
    if (ir_dtype(b->f, loss) != AMP_DT_F32) g = backward_emit(b, OP_cast, ir_dtype(b->f, loss), 1, g);
    b->gradient[loss.id] = g;
}

static bool differentiate(Backward *b, const Op *o) {
    if (!o->n_out || !b->wanted[o->out[0].id]) return true;
    Val dy = backward_gradient(b, o->out[0]);
    if (!dy.id) return true;
    const Gradient *rule = gradient_of(o->code);
    if (!rule) {
        place_error(b->context, o->pos, "%s: %s has no gradient", o->path, ir_op_info[o->code].name);
        return false;
    }
    if (b->checkpoints) checkpoints_reach(b->checkpoints, o, b->gradient);
    backward_start(b, o, dy, rule->operands);
    b->gradient_op = rule->op;
    return rule->make(b);
}

/* An error, with the reason where the model cuts gradients off. */
static void report_unreached(const Backward *b, const State *s) {
    Diag *diag = place_error(b->context, s->pos, "%s does not reach the loss, so it cannot be trained", s->name);
    bool cuts = false;
    for (int i = 0; i < b->f->body.len; i++) cuts = cuts || ir_op_at(b->f, i)->code == OP_detach;
    if (cuts) diag_help(b->context->diags, diag, "no gradient goes through detach(...) and to_i32(...)");
}

/* "grad.fc.weight"; of a step that is divided, "term.0.fc.weight". */
static const char *gradient_name(const Module *m, const Objective *o, const State *s) {
    if (!o->means) return amp_result_text(m->arena, RESULT_GRADIENT, NO_BLOCK, s->name);
    return amp_result_text(m->arena, RESULT_TERM, NO_BLOCK, arena_printf(m->arena, "%d.%s", o->term, s->name));
}

static bool has_term(const Func *f, const char *param) {
    for (int i = 0; i < f->results.len; i++) {
        const Result *r = &f->results.data[i];
        if (r->kind == RESULT_TERM && !strcmp(strchr(r->of, '.') + 1, param)) return true;
    }
    return false;
}

/* A result "grad.NAME" for every parameter that is trained. */
static void add_gradients(Backward *b, const Objective *objective) {
    const Module *m = b->f->module;
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (!trains(objective, s)) continue;
        const char *result = gradient_name(m, objective, s);
        Val v = ir_find(b->f, s->name);
        bool used = v.id && ir_value(b->f, v)->kind == VAL_STATE;
        Val g = used ? backward_gradient(b, v) : NO_VAL;
        if (!g.id && objective->means && (!objective->last || has_term(b->f, s->name))) continue;
        if (!g.id) report_unreached(b, s);
        else if (ir_find_result(b->f, result) || (objective->first && has_term(b->f, s->name)))
            place_error(b->context, s->pos, "%s is trained by two train blocks", s->name);
        else ir_add_result(b->f, result, g);
    }
}

/* Terms of the loss that are none of the objective's; what is the same in all batches is of the first pass. */
static void leave_out(Backward *b, const Objective *o) {
    Arena *a = b->f->module->arena;
    bool *left_out = arena_array(a, bool, b->f->values.len), *splits = arena_array(a, bool, b->f->values.len);
    for (int i = 0; i < o->values; i++) splits[i] = o->means[i].kind == MEAN_MIXED;
    for (int i = 0; i < o->terms->len; i++) {
        const Term *t = &o->terms->data[i];
        left_out[t->value.id] = t->mean.kind == MEAN_FIXED ? !o->first : !mean_same_count(&t->mean, &o->of);
    }
    b->left_out = left_out;
    b->splits = splits;
}

/* Returns whether there is anything to differentiate. */
static bool add_backward(PassContext *c, Func *f, const Objective *objective, int forward_ops) {
    Val loss = result_value(ir_find_result(f, objective->loss));
    Backward b = {
        .context = c,
        .f = f,
        .word = objective->word,
        .wanted = find_wanted(f, objective, forward_ops),
        .gradient = arena_array(f->module->arena, Val, f->values.len),
        .checkpoints = checkpoints_new(f, forward_ops, objective->again),
    };
    if (objective->means) leave_out(&b, objective);
    const bool any = b.wanted[loss.id] && ir_def(f, loss);
    if (any) seed(&b, loss);
    for (int i = forward_ops - 1; i >= 0; i--)
        if (!differentiate(&b, ir_op_at(f, i))) return any;
    add_gradients(&b, objective);
    return any;
}

static bool check_loss(PassContext *c, const Func *f, const char *name) {
    Val loss = result_value(ir_find_result(f, name));
    if (!loss.id) diag_error(c->diags, (Loc){0}, "module %s has a train block but no result \"%s\"", c->m->name, name);
    else if (ir_shape(f, loss)->rank) diag_error(c->diags, (Loc){0}, "module %s: the loss is not a scalar", c->m->name);
    else return true;
    return false;
}

/* The counts of a loss: one for each of its terms that is not the same in all batches. */
static int find_counts(const TermList *terms, Mean *counts) {
    int count = 0;
    for (int i = 0; i < terms->len; i++) {
        const Mean *mean = &terms->data[i].mean;
        bool there = mean->kind == MEAN_FIXED;
        for (int k = 0; k < count; k++) there = there || mean_same_count(&counts[k], mean);
        if (!there) counts[count++] = *mean;
    }
    if (!count) counts[count++] = (Mean){.kind = MEAN_SAMPLES};
    return count;
}

/* What the gradients of a term are added up by. */
static void add_count(Func *f, int term, const Mean *of, Val loss) {
    Arena *a = f->module->arena;
    const char *name = arena_printf(a, "%s.%d", amp_result_word(RESULT_TERM), term);
    const Val count = mean_count(f, of);
    if (count.id) ir_add_result(f, amp_result_text(a, RESULT_COUNT, NO_BLOCK, name), count);
    if (of->kind == MEAN_SUM) ir_add_result(f, amp_result_text(a, RESULT_SUM, NO_BLOCK, name), loss);
}

/* The passes of a block whose step is divided; a loss that is no sum of terms is one of samples. */
static void differentiate_terms(PassContext *c, Func *f, Objective *o, int forward_ops) {
    Arena *a = c->m->arena;
    const char *word = o->word, *again = o->again;
    const Val loss = result_value(ir_find_result(f, o->loss));
    TermList *terms = arena_new(a, TermList);
    if (!mean_terms(f, o->means, loss, terms)) {
        terms->len = 0;
        vec_push(a, terms, ((Term){loss, {.kind = MEAN_SAMPLES}}));
    }
    Mean *counts = arena_array(a, Mean, terms->len + 1);
    const int count = find_counts(terms, counts);
    o->terms = terms;
    for (int i = 0; i < count; i++) {
        o->of = counts[i], o->first = i == 0, o->last = i == count - 1;
        if (i) o->word = arena_printf(a, "%s.term.%d", word, i), o->again = arena_printf(a, "%s.term.%d", again, i);
        if (add_backward(c, f, o, forward_ops)) add_count(f, o->term++, &counts[i], loss);
    }
}

/* One backward pass for each train block, after the whole forward pass. */
static void differentiate_losses(PassContext *c, Func *f) {
    const int values = f->values.len;
    int forward_ops = f->body.len, blocks = c->m->trains.len, term = 0;
    const Mean *means = ir_step_is_divided(c->m) ? means_of(f, true) : NULL;
    for (int i = 0; i < (blocks ? blocks : 1); i++) {
        Objective objective = {.block = blocks ? &c->m->trains.data[i] : NULL, .word = "grad", .again = "again"};
        objective.loss = amp_result_word(RESULT_LOSS);
        if (objective.block && objective.block->loss) objective.loss = objective.block->loss;
        if (blocks > 1) objective.word = arena_printf(c->m->arena, "grad.%d", i);
        if (blocks > 1) objective.again = arena_printf(c->m->arena, "again.%d", i);
        objective.means = means;
        objective.values = values;
        objective.term = term;
        if (!check_loss(c, f, objective.loss)) continue;
        if (means) differentiate_terms(c, f, &objective, forward_ops);
        else add_backward(c, f, &objective, forward_ops);
        term = objective.term;
    }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool of_model(ResultKind result) { return !result_is_of_training(result); }
static bool of_evaluation(ResultKind result) { return result != RESULT_UPDATE; }

static bool of_step(ResultKind result) { return result_is_of_training(result) && !result_is_count(result); }

static const Mode training = {PROGRAM_TRAIN_STEP, true, of_step};
static const Mode divided_training = {PROGRAM_TRAIN_STEP, true, result_is_of_training};
static const Mode evaluation = {PROGRAM_EVAL, false, of_evaluation};
static const Mode inference = {PROGRAM_INFER, false, of_model};
static const Mode evaluation_in_f32 = {PROGRAM_EVAL_FP32, false, of_evaluation};
static const Mode inference_in_f32 = {PROGRAM_INFER_FP32, false, of_model};

/* Training adds states of its own to the model's. */
static void check_state_names(PassContext *c) {
    for (int kind = 1; kind < COUNTER_KINDS; kind++) {
        const State *s = ir_state_find(c->m, amp_counter_word((CounterKind)kind));
        if (s) place_error(c, s->pos, "%s is reserved for training state; name it differently, with `as`", s->name);
    }
}

static void make_evaluation(PassContext *c, const Func *from, const Mode *eval, const Mode *infer) {
    if (c->m->has_train) mode_make(from, eval);
    mode_make(from, infer);
}

bool pass_autodiff(PassContext *c) {
    int errors = c->diags->errors;
    Func *forward = ir_program(c->m, PROGRAM_FORWARD), *in_f32 = ir_program(c->m, PROGRAM_FORWARD_FP32);
    if (!forward) {
        diag_error(c->diags, (Loc){0}, "module %s: there is no function forward", c->m->name);
        return false;
    }
    if (c->m->has_train && lazy_check(c, forward)) {
        Func *step = mode_make(forward, ir_step_is_divided(c->m) ? &divided_training : &training);
        check_state_names(c);
        differentiate_losses(c, step);
        if (c->diags->errors == errors) lazy_gradients(c, step);
    }
    if (c->diags->errors != errors) return false;
    make_evaluation(c, forward, &evaluation, &inference);
    ir_func_remove(c->m, forward);
    if (in_f32) {
        make_evaluation(c, in_f32, &evaluation_in_f32, &inference_in_f32);
        ir_func_remove(c->m, in_f32);
    }
    checkpoints_forget(c->m);
    return true;
}
