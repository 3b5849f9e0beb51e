/* verify.c: what every module must be, checked between passes: the level's legality table, types, order of definition
 * and use, names, predicates, states, kernels and buffers.  Linear in the size of the module. */
#include "base/dtypes.h"
#include "base/scale_range.h"
#include "ir/operands.h"
#include "ir/places.h"
#include "ir/state_type.h"
#include "ir/words.h"

typedef struct Verifying {
    const Module *m;
    const Func *f;
    Arena *scratch;   /* freed when all is checked */
    Text wrong;       /* the first message */
    bool *defined;    /* by value */
    bool *assigned;   /* by value: states that some op before has written */
    const Op *assign; /* in the open kernel: its first effect */
    int64_t summed;   /* sum_ranks of the function, so far */
} Verifying;

/* ---- messages: the first one stays ------------------------------------------------------------------------------ */

static bool failed(const Verifying *c) { return c->wrong.len > 0; }

static void fail(Verifying *c, const char *fmt, ...) AMP_PRINTF(2, 3);
static void fail_op(Verifying *c, const Op *o, const char *fmt, ...) AMP_PRINTF(3, 4);

static void fail(Verifying *c, const char *fmt, ...) {
    if (failed(c)) return;
    if (c->f) text_printf(&c->wrong, "%s: ", c->f->name);
    va_list args;
    va_start(args, fmt);
    text_vprintf(&c->wrong, fmt, args);
    va_end(args);
}

/* "train_step: %3 = linear (fc1.linear): ..." */
static void fail_op(Verifying *c, const Op *o, const char *fmt, ...) {
    if (failed(c)) return;
    const Value *first = o->n_out ? ir_value(c->f, o->out[0]) : NULL;
    va_list args;
    va_start(args, fmt);
    const char *message = arena_vprintf(c->m->arena, fmt, args);
    va_end(args);
    fail(c, "%s%s%s%s%s%s%s: %s", first ? "%" : "", first ? first->name : "", first ? " = " : "",
         ir_op_info[o->code].name, o->path ? " (" : "", o->path ? o->path : "", o->path ? ")" : "", message);
}

/* |seen| has |name| already; else adds it. */
static bool is_second(Verifying *c, Table *seen, const char *name) {
    bool is_known = table_get(seen, name) != NULL;
    if (!is_known) table_set(c->scratch, seen, name, c);
    return is_known;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_value(const Verifying *c, Val v) { return v.id != 0 && v.id < (uint32_t)c->f->values.len; }

static bool is_defined(const Verifying *c, Val v) { return is_value(c, v) && c->defined[v.id]; }

static bool is_bool_scalar(const Verifying *c, Val v) {
    return ir_dtype(c->f, v) == AMP_DT_BOOL && ir_shape(c->f, v)->rank == 0;
}

static void define(Verifying *c, Val v) {
    const Value *value = ir_value(c->f, v);
    if (c->defined[v.id]) fail(c, "%%%s is defined twice", value->name);
    if (ir_find(c->f, value->name).id != v.id) fail(c, "%%%s: the name belongs to another value", value->name);
    c->defined[v.id] = true;
}

/* ---- arguments of initialisers, optimizers, schedules and loss scales -------------------------------------------- */

/* Checked: they have the types that the passes read them as: IR that a person writes may say anything. */

static bool is_number(const CallArg *a) { return a->type == ATTR_INT || a->type == ATTR_FLOAT; }

/* What the op that the call becomes has by that name; NULL: an operand, or the call becomes no op. */
static const AttrSpec *find_spec(Opcode code, const char *name) {
    if (code == OP_NONE) return NULL;
    const AttrSpec *specs = ir_op_info[code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++)
        if (!strcmp(specs[i].name, name)) return &specs[i];
    return NULL;
}

/* Arguments that become no attribute and are read as numbers. */
static const char *const numbers[] = {
#define INITIALISER(name, rank, least, most, first, second) first, second,
#include "base/names.def"
    /* loss scales */
    "init", "growth", "backoff", "interval", "min", "max", "value",
    /* optimizers */
    "lr", "weight_decay", "initial_accumulator_value"};

/* An argument that nothing reads may be anything. */
static bool argument_fits(Opcode code, const CallArg *a) {
    const AttrSpec *spec = find_spec(code, a->name);
    if (spec) return spec->type == ATTR_FLOAT ? is_number(a) : a->type == spec->type;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] && !strcmp(numbers[i], a->name)) return is_number(a);
    return true;
}

static void check_call(Verifying *c, const char *what, const Call *call, Opcode code) {
    for (int i = 0; i < call->args.len && !failed(c); i++) {
        const CallArg *a = &call->args.data[i];
        if (!argument_fits(code, a)) fail(c, "%s %s: argument %s has the wrong type", what, call->name, a->name);
        else if (a->call) check_call(c, "schedule", a->call, ir_schedule_op(a->call->name));
    }
}

/* What the scale is at first and what it must not sink below. */
static void check_scale(Verifying *c, const char *what, const Call *call) {
    static const char *const scales[] = {"init", "min", "v"};
    for (size_t i = 0; i < sizeof scales / sizeof *scales && !failed(c); i++) {
        const CallArg *a = ir_call_arg(call, scales[i]);
        if (a && !amp_scale_is_usable(a->type == ATTR_INT ? (double)a->value.i : a->value.f))
            fail(c, "%s %s: %s must be " AMP_SCALE_RANGE, what, call->name, scales[i]);
    }
}

static void check_state_type(Verifying *c, const char *what, const Call *call) {
    StateType type;
    if (!ir_state_type(call, &type))
        fail(c, "%s %s: it must be bf16 or f16, with rounding = " ROUNDING_STOCHASTIC " or " ROUNDING_NEAREST ", or f8",
             what, call->name);
}

static void check_calls(Verifying *c) {
    const Module *m = c->m;
    for (int i = 0; i < m->states.len; i++)
        if (m->states.data[i]->init.name) check_call(c, "initialiser", &m->states.data[i]->init, OP_NONE);
    const Call *optimizer;
    for (int i = 0; (optimizer = ir_optimizer_at(m, i)); i++)
        if (optimizer->name) check_call(c, "optimizer", optimizer, ir_opcode(optimizer->name));
    if (m->loss_scale.name) check_call(c, "loss scale", &m->loss_scale, OP_NONE);
    if (m->loss_scale.name) check_scale(c, "loss scale", &m->loss_scale);
    check_state_type(c, "masters", &m->masters);
    check_state_type(c, "moments", &m->moments);
    if (m->reduce && m->reduce != AMP_DT_F32 && m->reduce != AMP_DT_BF16 && m->reduce != AMP_DT_F16)
        fail(c, "ranks exchange gradients in f32, bf16 or f16, not in %s", amp_dtype_name(m->reduce));
    for (int i = 0; i < m->states.len; i++)
        if (m->states.data[i]->counter.kind == COUNTER_SCALE && m->states.data[i]->init.name)
            check_scale(c, "state scale: initialiser", &m->states.data[i]->init);
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

static void check_operands(Verifying *c, const Op *o) {
    for (int i = 0; i < o->n_in && !failed(c); i++) {
        if (!is_value(c, o->in[i])) fail_op(c, o, "operand %d is not a value", i + 1);
        else if (!is_defined(c, o->in[i]))
            fail_op(c, o, "%%%s is used before it is defined", ir_value(c->f, o->in[i])->name);
    }
}

static void check_predicate(Verifying *c, const Op *o) {
    if (!o->pred.id) return;
    if (!(ir_op_info[o->code].flags & EFFECT)) fail_op(c, o, "has a predicate, but no effect");
    else if (!is_defined(c, o->pred)) fail_op(c, o, "its predicate is not defined before it");
    else if (!is_bool_scalar(c, o->pred))
        fail_op(c, o, "its predicate %%%s is not a bool scalar", ir_value(c->f, o->pred)->name);
}

static void check_attrs(Verifying *c, const Op *o) {
    const AttrValue *p = ir_attr(o, "key") ? ir_attr(o, "p") : NULL; /* of dropout */
    const AttrValue *approximate = ir_attr(o, "approximate");
    if (p && !(p->f >= 0.0 && p->f < 1.0)) fail_op(c, o, "p must be at least 0 and less than 1");
    if (approximate && (!approximate->s || (strcmp(approximate->s, "none") && strcmp(approximate->s, "tanh"))))
        fail_op(c, o, "approximate must be none or tanh");
}

/* Numbers, each after a dot but the first. */
static void check_after(Verifying *c, const Op *o) {
    if (!o->after) return;
    if (c->m->stage < STAGE_BARRIERS || c->m->stage >= STAGE_FUSE) /* then the order of the kernels says it */
        fail_op(c, o, "waits for other ops at stage %s", ir_stage_names[c->m->stage]);
    for (int i = 0; i < o->after->count && !failed(c); i++)
        if (!is_defined(c, o->after->at[i])) fail_op(c, o, "waits for a value that is not defined before it");
}

static void check_checkpoint(Verifying *c, const Op *o) {
    const char *at = o->checkpoint;
    if (!at) return;
    if (c->m->stage >= STAGE_AUTODIFF) fail_op(c, o, "is in a checkpoint, for which the pass autodiff has made copies");
    do {
        size_t digits = strspn(at, "0123456789");
        if (!digits) fail_op(c, o, "checkpoint \"%s\": it is a number, or numbers with dots between", o->checkpoint);
        at += digits;
    } while (!failed(c) && *at && *at++ == '.');
    if (!failed(c) && *at)
        fail_op(c, o, "checkpoint \"%s\": it is a number, or numbers with dots between", o->checkpoint);
}

static void check_types(Verifying *c, const Op *o) {
    int level = legal_level(c->m->stage);
    if (legal_types(c->f, o, level)) return;
    Text t;
    text_init(&t, c->m->arena);
    text_putc(&t, '(');
    for (int i = 0; i < o->n_in; i++) text_printf(&t, "%s%s", i ? ", " : "", amp_dtype_name(ir_dtype(c->f, o->in[i])));
    text_puts(&t, ") ->");
    for (int i = 0; i < o->n_out; i++)
        text_printf(&t, "%s %s", i ? "," : "", amp_dtype_name(ir_dtype(c->f, o->out[i])));
    fail_op(c, o, "not legal at stage %s with %s", ir_stage_names[c->m->stage], text_str(&t));
}

/* Types of 8 bits are stored, and moved; nothing is computed in them. */
static void check_f8(Verifying *c, const Op *o) {
    static const Opcode makers[] = {OP_stochastic_cast, OP_dithered_cast, OP_reshape,
                                    OP_permute,         OP_embedding,     OP_gather};
    bool makes = o->code == OP_cast && ir_dtype(c->f, o->in[0]) == ir_dtype(c->f, o->out[0]);
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) makes |= o->code == makers[i];
    for (int i = 0; i < o->n_out && !makes; i++)
        if (amp_is_f8(ir_dtype(c->f, o->out[i])))
            fail_op(c, o, "cannot make %s, which stochastic_cast makes", amp_dtype_name(ir_dtype(c->f, o->out[i])));
}

/* f64 and i64 exist as scalars only, once there are loops to emit. */
static void check_scalars(Verifying *c, const Op *o) {
    if (legal_level(c->m->stage) == GRAPH) return;
    for (int i = 0; i < o->n_out; i++) {
        const Value *v = ir_value(c->f, o->out[i]);
        if ((v->dtype == AMP_DT_F64 || v->dtype == AMP_DT_I64) && v->shape.rank)
            fail_op(c, o, "%%%s is %s: this type is for scalars only", v->name,
                    type_text(c->m->arena, v->dtype, &v->shape));
    }
}

static void check_shapes(Verifying *c, const Op *o) {
    InferredTypes types;
    const char *wrong = ir_infer(c->f, o, o->n_out ? ir_dtype(c->f, o->out[0]) : AMP_DT_F32, &types);
    if (wrong) {
        fail(c, "%s%s%s", o->path ? o->path : "", o->path ? ": " : "", wrong);
        return;
    }
    if (types.count != o->n_out) fail_op(c, o, "has %d results, not %d", o->n_out, types.count);
    for (int i = 0; i < o->n_out && !failed(c); i++) {
        const Value *v = ir_value(c->f, o->out[i]);
        if (!shape_equal(&v->shape, &types.shape[i]))
            fail_op(c, o, "%%%s is %s, its operands make it %s", v->name, type_text(c->m->arena, v->dtype, &v->shape),
                    type_text(c->m->arena, v->dtype, &types.shape[i]));
    }
}

static void check_results(Verifying *c, const Op *o, int at) {
    for (int i = 0; i < o->n_out && !failed(c); i++) {
        if (!is_value(c, o->out[i])) {
            fail_op(c, o, "result %d is not a value", i + 1);
            return;
        }
        const Value *v = ir_value(c->f, o->out[i]);
        if (v->kind != VAL_RESULT || v->def.id != c->f->body.data[at].id || v->out != i)
            fail_op(c, o, "%%%s is not marked as result %d of this op", v->name, i + 1);
    }
}

static void check_assign(Verifying *c, const Op *o) {
    Val state = o->in[0];
    const char *name = ir_value(c->f, state)->name;
    if (ir_value(c->f, state)->kind != VAL_STATE) fail_op(c, o, "%%%s is not a state", name);
    if (c->assigned[state.id]) fail_op(c, o, "%%%s is written twice", name);
}

/* Of a value, in the middle of a function. */
static bool sums_value(const Op *o) { return ir_is_collective(o) && !(ir_op_info[o->code].flags & EFFECT); }

/* All ranks make the same calls in the same order, which the numbers keep, in training alone. */
static void check_sum_of_ranks(Verifying *c, const Op *o) {
    const ProgramKind kind = c->f->kind;
    const bool before = c->m->stage < STAGE_DISTRIBUTE;
    const bool of_shares = kind == PROGRAM_APPLY_STEP && c->m->distribution == DISTRIBUTE_ZERO1;
    if (before ? kind != PROGRAM_FORWARD && kind != PROGRAM_FORWARD_FP32 && kind != PROGRAM_TRAIN_STEP
               : kind != PROGRAM_MICRO_STEP && !of_shares)
        fail_op(c, o, "is in %s: ranks wait for each other in micro_step alone", c->f->name);
    if (!before && !c->m->distribution) fail_op(c, o, "adds over ranks, but the model is not distributed");
    if (!before && ir_attr(o, "number")->i != c->summed)
        fail_op(c, o, "has number %lld, and is number %lld in the function: all ranks must call them in one order",
                (long long)ir_attr(o, "number")->i, (long long)c->summed);
    c->summed++;
}

static bool is_exchanged_by(const Op *o, const State *s) {
    if (!s) return false;
    return o->code == OP_all_gather ? s->role == STATE_PARAM : s->role == STATE_ACCUMULATOR || s->role == STATE_STAGED;
}

/* Nothing else happens between them. */
static void check_collective(Verifying *c, const Op *o) {
    const bool gathers = o->code == OP_all_gather;
    if (c->f->kind != (gathers ? PROGRAM_GATHER_STEP : PROGRAM_REDUCE_STEP))
        fail_op(c, o, "is in %s: %s", c->f->name,
                gathers ? "only gather_step gathers weights" : "only reduce_step exchanges states");
    if ((gathers || o->code == OP_reduce_scatter) && c->m->distribution != DISTRIBUTE_ZERO1)
        fail_op(c, o, "needs distribute = zero1; here every rank has all states");
    if (o->pred.id) fail_op(c, o, "has a predicate: all ranks take part");
    for (int i = 0; i < o->n_in && !failed(c); i++) {
        const Value *v = ir_value(c->f, o->in[i]);
        const State *s = v->kind == VAL_STATE ? ir_state_of(c->f, o->in[i]) : NULL;
        if (!is_exchanged_by(o, s))
            fail_op(c, o, gathers ? "%%%s is not a parameter" : "%%%s is neither a sum of a step nor a staged buffer",
                    v->name);
        else if (c->assigned[o->in[i].id]) fail_op(c, o, "%%%s is exchanged twice", v->name);
        for (int j = 0; j < i; j++)
            if (o->in[j].id == o->in[i].id) fail_op(c, o, "%%%s is exchanged twice", v->name);
    }
}

/* A level that has the op, and an op that is one. */
static bool check_level(Verifying *c, const Op *o) {
    if (o->code == OP_NONE || o->code >= OP_COUNT) fail(c, "an op without a code");
    else if (!(ir_op_levels(o->code) & legal_level(c->m->stage)) ||
             (o->code == OP_barrier && c->m->stage >= STAGE_BARRIERS)) /* Op.after has taken its place */
        fail_op(c, o, "may not appear at stage %s", ir_stage_names[c->m->stage]);
    return !failed(c);
}

void check_op(Verifying *c, const Op *o, int at) {
    if (!check_level(c, o)) return;
    check_operands(c, o);
    check_results(c, o, at);
    if (failed(c)) return;
    check_shapes(c, o);
    if (!failed(c)) check_types(c, o);
    check_scalars(c, o);
    if (!failed(c)) check_f8(c, o);
    check_predicate(c, o);
    check_after(c, o);
    check_attrs(c, o);
    check_checkpoint(c, o);
    if (!failed(c) && o->code == OP_assign) check_assign(c, o);
    if (!failed(c) && sums_value(o)) check_sum_of_ranks(c, o);
    if (!failed(c) && ir_is_collective(o) && !sums_value(o)) check_collective(c, o);
    else if (!failed(c) && ir_is_exchange(c->f)) fail_op(c, o, "is not a collective, but is in %s", c->f->name);
    if (o->region && !ir_region((Func *)c->f, o->region))
        fail_op(c, o, "region #%u does not exist", (unsigned)o->region);
    for (int i = 0; i < o->n_out && !failed(c); i++) define(c, o->out[i]);
}

/* The ops of body[first .. first + count) have run: states that they assign hold no old value any more. */
static void mark_assigned(Verifying *c, int first, int count) {
    for (int i = first; i < first + count; i++) {
        const Op *o = ir_op_at(c->f, i);
        if (o->code == OP_assign) c->assigned[o->in[0].id] = true;
        for (int j = 0; j < o->n_in && ir_is_collective(o) && !sums_value(o); j++) c->assigned[o->in[j].id] = true;
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void check_buffer_ids(Verifying *c, const Kernel *k, const uint32_t *ids, int count) {
    for (int i = 0; i < count; i++)
        if (ids[i] == 0 || ids[i] > (uint32_t)c->f->buffers.len)
            fail(c, "kernel %s uses a buffer that does not exist", k->name);
}

/* Before fuse there are none; then they cover the body, in order. */
static void check_cover(Verifying *c) {
    const Func *f = c->f;
    int covered = 0;
    Table names = {0};
    if (c->m->stage < STAGE_FUSE && f->kernels.len) fail(c, "has kernels at stage %s", ir_stage_names[c->m->stage]);
    if (c->m->stage < STAGE_BUFFERS && f->buffers.len) fail(c, "has buffers at stage %s", ir_stage_names[c->m->stage]);
    if (c->m->stage < STAGE_FUSE) return;
    for (int i = 0; i < f->kernels.len && !failed(c); i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->first != covered || k->count <= 0 || k->count > f->body.len - covered)
            fail(c, "kernel %s does not begin where the one before it ends, or is empty", k->name);
        covered += k->count;
        if (is_second(c, &names, k->name)) fail(c, "two kernels are called %s", k->name);
        check_buffer_ids(c, k, k->reads.data, k->reads.len);
        check_buffer_ids(c, k, k->writes.data, k->writes.len);
    }
    if (!failed(c) && covered != f->body.len) fail(c, "op %d of the body is in no kernel", covered + 1);
}

static void check_kernel_predicate(Verifying *c, const Kernel *k) {
    if (!k->pred.id) return;
    if (!is_defined(c, k->pred) || !is_bool_scalar(c, k->pred))
        fail(c, "kernel %s: its predicate is not a bool scalar defined before it", k->name);
    if (k->kind == KERNEL_COLLECTIVE) fail(c, "kernel %s has a predicate: all ranks take part", k->name);
}

/* In a kernel effects share their predicate; and memory that an earlier kernel has written holds no old value. */
static void check_in_kernel(Verifying *c, const Kernel *k, const Op *o) {
    for (int i = 0; i < o->n_in && !failed(c); i++)
        if (c->assigned[o->in[i].id])
            fail_op(c, o, "reads state %%%s in kernel %s, after a kernel that writes it",
                    ir_value(c->f, o->in[i])->name, k->name);
    if (o->code != OP_assign || failed(c)) return;
    if (c->assign && c->assign->pred.id != o->pred.id)
        fail_op(c, o, "kernel %s has effects with different predicates", k->name);
    c->assign = o;
}

/* ---- what each kind holds: docs/design/kernels.md ---------------------------------------------------------------- */

static int count_ops(const Verifying *c, const Kernel *k, bool (*is_one)(const Op *)) {
    int count = 0;
    for (int i = k->first; i < k->first + k->count; i++) count += is_one(ir_op_at(c->f, i));
    return count;
}

static void check_kind(Verifying *c, const Kernel *k) {
    const char *word = ir_kernel_kind_names[k->kind];
    for (int kind = 0; kind < KERNEL_KINDS; kind++) {
        const KernelInfo *info = &ir_kernel_info[kind];
        const int count = info->is_own ? count_ops(c, k, info->is_own) : 0;
        if (kind == KERNEL_COLLECTIVE && (count != (k->kind == KERNEL_COLLECTIVE) || (count && k->count > 1)))
            fail(c, "kernel %s is of kind %s: a collective is a kernel of its own", k->name, word);
        else if (info->is_own && count != ((int)k->kind == kind))
            fail(c, "kernel %s is of kind %s and has %d %ss", k->name, word, count, ir_kernel_kind_names[kind]);
    }
    if (k->segment.mul < 0 || (k->segment.mul && k->kind != KERNEL_COLUMN))
        fail(c, "kernel %s has a segment, but is not a column kernel", k->name);
}

static void check_kernel_body(Verifying *c, const Kernel *k) {
    check_kernel_predicate(c, k);
    c->assign = NULL;
    for (int i = k->first; i < k->first + k->count && !failed(c); i++) {
        const Op *o = ir_op_at(c->f, i);
        check_op(c, o, i);
        if (!failed(c)) check_in_kernel(c, k, o);
    }
    if (!failed(c)) check_kind(c, k);
    if (!failed(c)) mark_assigned(c, k->first, k->count);
}

static void check_kernels(Verifying *c) {
    for (int i = 0; i < c->f->kernels.len && !failed(c); i++) check_kernel_body(c, c->f->kernels.data[i]);
}

/* In memory. */
static bool has_as_many(const Func *f, const Buffer *in, const Buffer *b) {
    const Shape a = ir_buffer_shape(f, in), s = ir_buffer_shape(f, b);
    Dim count[2];
    return shape_count(&a, &count[0]) && shape_count(&s, &count[1]) && dim_equal(count[0], count[1]);
}

/* Of the same size, and there before it: places do not go round in circles. */
static void check_place(Verifying *c, const Buffer *b) {
    const Func *f = c->f;
    const Buffer *in = b->place && b->place <= (uint32_t)f->buffers.len ? f->buffers.data[b->place - 1] : NULL;
    const bool is_renamed = ir_is_renamed(f, b);
    bool fits = in && in->kind == BUFFER_TEMP && b->kind == BUFFER_TEMP && !in->place &&
                in->first <= b->first - !is_renamed && in->storage == b->storage && in->layout == b->layout;
    if (is_renamed) fits = fits && has_as_many(f, in, b);
    else if (b->place)
        fits = fits && in->pitch == b->pitch && shape_same_matrix(ir_shape(f, b->value), ir_shape(f, in->value));
    if (b->place && !fits)
        fail(c, "buffer %s may only reuse the memory of an earlier temporary of its size, type and layout", b->name);
}

/* Whole vectors of a longer row: so that what reads and writes the part touches no other. */
static void check_part(Verifying *c, const Buffer *b) {
    enum { VECTOR_BYTES = 16 };
    Dim rows, cols;
    if (!b->is_part) return;
    const int64_t size = amp_dtype_size(b->storage);
    const bool fits = b->kind == BUFFER_TEMP && b->pitch && shape_matrix(ir_shape(c->f, b->value), &rows, &cols) &&
                      !dim_varies(cols) && b->column + cols.mul <= b->pitch && cols.mul * size % VECTOR_BYTES == 0 &&
                      b->column * size % VECTOR_BYTES == 0 && b->pitch * size % VECTOR_BYTES == 0;
    if (!fits) fail(c, "buffer %s does not fit into rows of %lld elements", b->name, (long long)b->pitch);
}

static bool fits_pitch(const Shape *s, Layout layout, int64_t pitch) {
    Dim rows, cols;
    return layout == LAYOUT_ROWS && shape_matrix(s, &rows, &cols) && !dim_varies(cols) && cols.mul < pitch;
}

/* Only a matrix inside the program may have longer rows; a buffer of a state has the state's. */
static void check_pitch(Verifying *c, const Buffer *b) {
    const State *s = b->state ? c->m->states.data[b->state - 1] : NULL;
    if (s && b->pitch != s->pitch) fail(c, "buffer %s and state %s have rows of different lengths", b->name, s->name);
    if (!b->pitch) return;
    bool fits = (b->kind == BUFFER_TEMP || s) && fits_pitch(ir_shape(c->f, b->value), b->layout, b->pitch);
    if (!fits) fail(c, "buffer %s may not have rows of %lld elements", b->name, (long long)b->pitch);
}

static void check_buffers(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->f->buffers.len && !failed(c); i++) {
        const Buffer *b = c->f->buffers.data[i];
        if (!is_defined(c, b->value)) fail(c, "buffer %s holds no value of the function", b->name);
        if ((b->kind == BUFFER_STATE) != (b->state != 0) || b->state > (uint32_t)c->m->states.len)
            fail(c, "buffer %s: exactly the buffers of kind state must name a state", b->name);
        if (b->first > b->last || b->last >= c->f->kernels.len)
            fail(c, "buffer %s lives from kernel %d to %d of %d", b->name, b->first, b->last, c->f->kernels.len);
        if (is_second(c, &names, b->name)) fail(c, "two buffers are called %s", b->name);
        if (!failed(c)) check_pitch(c, b);
        if (!failed(c)) check_part(c, b);
        if (!failed(c)) check_place(c, b);
    }
}

/* Its kernels are [first, first + count), each once but what has nothing to do; whether they may share it the passes of
 * the group launch know. */
static void check_launch(Verifying *c, const Launch *l, int first) {
    const int kernels = c->f->kernels.len;
    bool fits = l->count > 1 && l->first >= first && l->first + l->count <= kernels;
    bool *seen = arena_array(c->scratch, bool, kernels + 1);
    for (int p = 0, stage = -1; p < l->parts.len && fits; stage = l->parts.data[p++].stage) {
        const LaunchPart *part = &l->parts.data[p];
        fits = part->stage == stage + (part->stage != stage) && part->kernels.len;
        for (int i = 0; i < part->kernels.len && fits; i++) {
            const int k = part->kernels.data[i];
            fits = k >= l->first && k < l->first + l->count && !seen[k];
            seen[k] = true;
        }
        if (l->by_columns) fits = fits && part->kernels.len == 1 && part->stage == p;
    }
    for (int k = l->first; k < l->first + l->count && fits; k++)
        fits = seen[k] || ir_is_still(c->f, c->f->kernels.data[k]);
    if (!fits) fail(c, "a launch holds several neighbours, each of them once, and no kernel of an earlier launch");
}

static void check_launches(Verifying *c) {
    const Func *f = c->f;
    if (f->launches.len && c->m->stage <= STAGE_PLAN) fail(c, "has launches at stage %s", ir_stage_names[c->m->stage]);
    for (int i = 0, end = 0; i < f->launches.len && !failed(c); i++) {
        check_launch(c, &f->launches.data[i], end);
        end = f->launches.data[i].first + f->launches.data[i].count;
    }
}

static bool has_pixels(const Shape *s, int64_t pixels) {
    return s->rank == 2 && !dim_varies(s->d[1]) && s->d[1].mul % pixels == 0;
}

/* ---- states and inputs ------------------------------------------------------------------------------------------- */

static void check_states(Verifying *c) {
    for (int i = 0; i < c->m->states.len && !failed(c); i++) {
        const State *s = c->m->states.data[i];
        if (ir_state_find(c->m, s->name) != s) fail(c, "two states are called %s", s->name);
        if (shape_varies(&s->shape))
            fail(c, "state %s depends on %s", s->name, shape_batch_dims(&s->shape) ? "N" : "T");
        if (s->pixels && !has_pixels(&s->shape, s->pixels))
            fail(c, "state %s has no columns of %lld pixels", s->name, (long long)s->pixels);
        if (s->hwio && s->shape.rank != 4) fail(c, "state %s is not a weight of a convolution", s->name);
        const Shape shape = ir_state_shape(s);
        if (s->pitch && (s->role != STATE_DERIVED || !fits_pitch(&shape, s->layout, s->pitch)))
            fail(c, "state %s may not have rows of %lld elements", s->name, (long long)s->pitch);
        bool needs_owner = s->role == STATE_MOMENT || s->role == STATE_DERIVED || s->role == STATE_STAGED;
        if (needs_owner && (!s->of || !ir_state_find(c->m, s->of)))
            fail(c, "state %s does not name the state that it belongs to", s->name);
    }
}

static void check_funcs_differ(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->m->funcs.len; i++)
        if (is_second(c, &names, c->m->funcs.data[i]->name))
            fail(c, "two functions are called %s", c->m->funcs.data[i]->name);
}

static void check_state_input(Verifying *c, const Value *v) {
    const State *s = ir_state_find(c->m, v->name);
    if (!s) fail(c, "%%%s: the module has no such state", v->name);
    const Shape shape = s ? ir_state_shape(s) : v->shape;
    if (s && (s->dtype != v->dtype || !shape_equal(&shape, &v->shape)))
        fail(c, "%%%s is %s, the state %s", v->name, type_text(c->m->arena, v->dtype, &v->shape),
             type_text(c->m->arena, s->dtype, &shape));
}

/* What T is the module says. */
static void check_lengths(Verifying *c) {
    for (int i = 1; i < c->f->values.len && !c->m->length.most; i++) {
        const Value *v = c->f->values.data[i];
        for (int d = 0; v && d < v->shape.rank; d++)
            if (v->shape.d[d].t) fail(c, "%%%s depends on T, but the module has no length", v->name);
    }
}

static void check_inputs(Verifying *c) {
    for (int i = 0; i < c->f->inputs.len && !failed(c); i++) {
        Val v = c->f->inputs.data[i];
        if (!is_value(c, v)) {
            fail(c, "input %d is not a value", i + 1);
            return;
        }
        const Value *value = ir_value(c->f, v);
        if (value->kind == VAL_RESULT) fail(c, "%%%s is the result of an op, not an input", value->name);
        if (value->kind == VAL_STATE) check_state_input(c, value);
        define(c, v);
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* |op| is in |block|: the same number, or one that begins with it. */
static bool is_in_checkpoint(const char *op, const char *block) {
    size_t length = strlen(block);
    return op && !strncmp(op, block, length) && (!op[length] || op[length] == '.');
}

/* The ops of a block follow one another. */
static void check_checkpoints(Verifying *c) {
    Table begun = {0};
    const char *open = NULL;
    for (int i = 0; i < c->f->body.len && !failed(c); i++) {
        const Op *o = ir_op_at(c->f, i);
        const char *end = o->checkpoint;
        while (end && *end && !failed(c)) {
            end += strcspn(end + 1, ".") + 1;
            const char *block = arena_strndup(c->scratch, o->checkpoint, (size_t)(end - o->checkpoint));
            if (!is_in_checkpoint(open, block) && is_second(c, &begun, block))
                fail_op(c, o, "is in checkpoint \"%s\", which has ended before it", block);
        }
        open = o->checkpoint;
    }
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static void check_plain_body(Verifying *c) {
    for (int i = 0; i < c->f->body.len && !failed(c); i++) {
        check_op(c, ir_op_at(c->f, i), i);
        if (!failed(c)) mark_assigned(c, i, 1);
    }
}

static void check_func_results(Verifying *c) {
    Table names = {0};
    for (int i = 0; i < c->f->results.len && !failed(c); i++) {
        const Result *r = &c->f->results.data[i];
        if (!is_defined(c, r->value)) fail(c, "result %s is not a value of the function", r->name);
        if (is_second(c, &names, r->name)) fail(c, "two results are called %s", r->name);
        if (r->pixels && !has_pixels(ir_shape(c->f, r->value), r->pixels))
            fail(c, "result %s has no columns of %lld pixels", r->name, (long long)r->pixels);
        if (r->hwio && ir_shape(c->f, r->value)->rank != 4)
            fail(c, "result %s is not a weight of a convolution", r->name);
    }
}

static void check_body_ids(Verifying *c) {
    for (int i = 0; i < c->f->body.len; i++)
        if (!c->f->body.data[i].id || !ir_op(c->f, c->f->body.data[i]))
            fail(c, "op %d of the body does not exist", i + 1);
}

static void check_func(Verifying *c, const Func *f) {
    c->f = f;
    c->defined = arena_array(c->scratch, bool, f->values.len);
    c->assigned = arena_array(c->scratch, bool, f->values.len);
    c->summed = 0;
    check_body_ids(c);
    check_cover(c);
    check_lengths(c);
    check_inputs(c);
    if (failed(c)) return;
    if (f->kernels.len == 0) check_plain_body(c);
    check_checkpoints(c);
    check_kernels(c);
    check_buffers(c);
    check_launches(c);
    check_func_results(c);
}

const char *ir_verify(const Module *m) {
    Verifying c = {.m = m, .scratch = arena_child(m->arena)};
    text_init(&c.wrong, m->arena);
    check_states(&c);
    check_calls(&c);
    check_funcs_differ(&c);
    for (int i = 0; i < m->funcs.len && !failed(&c); i++) check_func(&c, m->funcs.data[i]);
    arena_free(c.scratch);
    return failed(&c) ? text_str(&c.wrong) : NULL;
}
