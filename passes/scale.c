/* scale: loss scaling, visible in the IR.
 * needs: autodiff.  breaks: nothing.
 *
 *   %d.loss = grad_seed() : f32   =>   %d.loss = grad_seed() : f32
 *   ...                                %1 = scale_loss(%d.loss, %scale) : f32   stands for %d.loss from here on
 *   result grad.w = %d.w               ...
 *                                      %ok = all_finite(%d.w) : bool            of gradients that are still scaled
 *                                      %2 = inverse_scale(%scale) : f32
 *                                      %3 = unscale(%d.w, %2) : f32[32, 16]
 *                                      %4, %5, %6 = update_scale(%scale, %growth_tracker, %ok) : f32, i32, i32
 *                                      assign(%scale, %4) ...
 *                                      result grad.w = %3    result ok = %ok
 *
 * Only where some gradient is f16: nothing else can overflow early, and everything else runs unscaled, without a finite
 * check.  The order and the arithmetic are torch.amp.GradScaler's; update_scale adds the bounds min and max.  static(v)
 * keeps the check and the skipping, and updates nothing.
 */
#include "passes/modes.h"
#include "passes/passes.h"

typedef struct Scaling {
    Module *m;
    Func *f;
    int seed_at; /* of grad_seed in the body */
    Val seed;
    Val scale;   /* the state */
    Val ok;
} Scaling;

/* ---- whether ----------------------------------------------------------------------------------------------------- */

static bool is_gradient(const char *result) { return !strncmp(result, "grad.", 5); }

static bool find_seed(Scaling *s) {
    for (int i = 0; i < s->f->body.len; i++)
        if (ir_op_at(s->f, i)->code == OP_grad_seed) {
            s->seed_at = i;
            s->seed = ir_op_at(s->f, i)->out[0];
            return true;
        }
    return false;
}

/* Some value behind the seed is f16. */
static bool has_f16_gradient(const Scaling *s) {
    bool *behind = arena_array(s->m->arena, bool, s->f->values.len);
    behind[s->seed.id] = true;
    for (int i = s->seed_at + 1; i < s->f->body.len; i++) {
        const Op *o = ir_op_at(s->f, i);
        bool any = false;
        for (int j = 0; j < o->n_in; j++) any = any || behind[o->in[j].id];
        for (int r = 0; any && r < o->n_out; r++) {
            behind[o->out[r].id] = true;
            if (ir_dtype(s->f, o->out[r]) == AMP_DT_F16) return true;
        }
    }
    return false;
}

/* ---- what -------------------------------------------------------------------------------------------------------- */

/* PyTorch's numbers, and bounds. */
static const struct { const char *name; double number; } dynamic_defaults[] = {
    { "init", 65536.0 }, { "growth", 2.0 }, { "backoff", 0.5 },
    { "interval", 2000 }, { "min", 1.0 }, { "max", 16777216.0 },
};

/* The model's call, with what it leaves out. */
static const Call *loss_scale(Scaling *s) {
    Call *c = &s->m->loss_scale;
    if (!c->name) c->name = "dynamic";
    if (strcmp(c->name, "dynamic")) return c;
    for (size_t i = 0; i < sizeof dynamic_defaults / sizeof *dynamic_defaults; i++) {
        const char *name = dynamic_defaults[i].name;
        if (ir_call_arg(c, name)) continue;
        if (!strcmp(name, "interval")) ir_call_set_int(s->m->arena, c, name, (int64_t)dynamic_defaults[i].number);
        else ir_call_set_float(s->m->arena, c, name, dynamic_defaults[i].number);
    }
    return c;
}

static double number(const Call *c, const char *name) {
    const CallArg *arg = ir_call_arg(c, name);
    return !arg ? 0.0 : arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
}

static void explain(Scaling *s, Op *o, const char *path) {
    o->path = path;
    o->pos = s->m->loss_scale.pos;
    o->reason = ir_reason(s->m, "loss_scale");
}

/* The scaler's numbers: states that start as constant(v). */
static Val new_state(Scaling *s, const char *name, Dtype t, double initial) {
    State *state = ir_state_new(s->m, name, STATE_SCALER, t, shape_scalar());
    if (initial != 0.0) {
        state->init.name = "constant";
        ir_call_set_float(s->m->arena, &state->init, "v", initial);
    }
    return ir_use_state(s->f, state);
}

static void assign(Scaling *s, Val state, Val next) {
    Op *o = ir_op_new(s->f, OP_assign, (Val[]){ state, next }, 2);
    explain(s, o, arena_printf(s->m->arena, "%s.assign", ir_value(s->f, state)->name));
}

static void scale_seed(Scaling *s) {
    Func *f = s->f;
    Val scaled = ir_emit(f, OP_scale_loss, AMP_DT_F32, "d.loss.scaled", 2, s->seed, s->scale);
    OpId id = ir_def(f, scaled)->id;
    explain(s, ir_def(f, scaled), "loss.scale");
    for (int i = s->seed_at + 1; i < f->body.len - 1; i++) {
        Op *o = ir_op_at(f, i);
        for (int j = 0; j < o->n_in; j++)
            if (o->in[j].id == s->seed.id) o->in[j] = scaled;
    }
    for (int i = 0; i < f->results.len; i++)
        if (is_gradient(f->results.data[i].name) && f->results.data[i].value.id == s->seed.id)
            f->results.data[i].value = scaled;
    OpId *body = f->body.data;
    memmove(&body[s->seed_at + 2], &body[s->seed_at + 1], sizeof *body * (size_t)(f->body.len - s->seed_at - 2));
    body[s->seed_at + 1] = id;
}

static void check_finite(Scaling *s) {
    VEC(Val) gradients = { 0 };
    for (int i = 0; i < s->f->results.len; i++)
        if (is_gradient(s->f->results.data[i].name)) vec_push(s->m->arena, &gradients, s->f->results.data[i].value);
    Op *o = ir_op_new(s->f, OP_all_finite, gradients.data, gradients.len);
    explain(s, o, "scaler.all_finite");
    s->ok = ir_make_results(s->f, o, AMP_DT_F32, "ok");
}

static void unscale(Scaling *s) {
    Func *f = s->f;
    Val inverse = ir_emit(f, OP_inverse_scale, AMP_DT_F32, "inverse_scale", 1, s->scale);
    explain(s, ir_def(f, inverse), "scaler.inverse_scale");
    for (int i = 0; i < f->results.len; i++) {
        Result *r = &f->results.data[i];
        if (!is_gradient(r->name)) continue;
        r->value = ir_emit(f, OP_unscale, AMP_DT_F32, r->name, 2, r->value, inverse);
        explain(s, ir_def(f, r->value), arena_printf(s->m->arena, "%s.unscale", r->name + strlen("grad.")));
    }
}

static void update(Scaling *s, const Call *c) {
    static const char *const factors[] = { "growth", "backoff", "min", "max" };
    Func *f = s->f;
    Val tracker = new_state(s, "growth_tracker", AMP_DT_I32, 0), hits = new_state(s, "floor_hits", AMP_DT_I32, 0);
    Op *o = ir_op_new(f, OP_update_scale, (Val[]){ s->scale, tracker, s->ok }, 3);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        ir_attr(o, factors[i])->f = number(c, factors[i]);
    ir_attr(o, "interval")->i = (int64_t)number(c, "interval");
    explain(s, o, "scaler.update_scale");
    ir_make_results(f, o, AMP_DT_F32, NULL);
    Val more_hits = ir_emit(f, OP_add, AMP_DT_I32, NULL, 2, hits, o->out[2]);
    explain(s, ir_def(f, more_hits), "scaler.floor_hits");
    assign(s, s->scale, o->out[0]);
    assign(s, tracker, o->out[1]);
    assign(s, hits, more_hits);
}

static void add_scaling(Scaling *s, const Call *c) {
    bool dynamic = !strcmp(c->name, "dynamic");
    s->scale = new_state(s, "scale", AMP_DT_F32, number(c, dynamic ? "init" : "v"));
    scale_seed(s);
    check_finite(s);
    unscale(s);
    if (dynamic) update(s, c);
    ir_add_result(s->f, "ok", s->ok);
}

bool pass_scale(PassContext *c) {
    Scaling s = { .m = c->m, .f = ir_func_find(c->m, "train_step") };
    c->m->stage = STAGE_SCALE;
    if (!s.f || s.m->low != AMP_DT_F16 || !find_seed(&s) || !has_f16_gradient(&s)) return true;
    const Call *call = loss_scale(&s);
    if (strcmp(call->name, "none")) add_scaling(&s, call);
    return true;
}
