/* plan_check.c: see plan_check.h.
 *
 * Buffers, lists and intervals follow from the kernels' ops and the layouts of states alone, so they are made again and
 * compared.  A plan that differs would run and give other results: memory that two values share too early, a buffer
 * that nothing writes.  Nothing downstream could see that.
 */
#include "passes/launch/plan_check.h"

#include "ir/words.h"
#include "passes/common/common.h"
#include "passes/launch/launch.h"

typedef struct Check {
    const Module *m;
    const Func *f; /* as it was read */
    Func made;     /* the same with buffers of its own */
    const char *wrong;
} Check;

static void fail(Check *x, const char *fmt, ...) AMP_PRINTF(2, 3);

static void fail(Check *x, const char *fmt, ...) {
    if (x->wrong) return;
    va_list args;
    va_start(args, fmt);
    const char *what = arena_vprintf(x->m->arena, fmt, args);
    va_end(args);
    x->wrong = x->f ? arena_printf(x->m->arena, "%s: %s", x->f->name, what) : what;
}

/* ---- buffers and lists, made again ------------------------------------------------------------------------------- */

static void make_again(Check *x, const Table *state_numbers) {
    Arena *a = x->m->arena;
    x->made = *x->f;
    memset(&x->made.kernels, 0, sizeof x->made.kernels);
    memset(&x->made.buffers, 0, sizeof x->made.buffers);
    for (int i = 0; i < x->f->kernels.len; i++) {
        Kernel *k = arena_new(a, Kernel);
        *k = *x->f->kernels.data[i];
        memset(&k->reads, 0, sizeof k->reads);
        memset(&k->writes, 0, sizeof k->writes);
        vec_push(a, &x->made.kernels, k);
    }
    make_buffers(&x->made, state_numbers);
    if (x->m->stage >= STAGE_PLAN) plan_buffers(&x->made);
}

static const char *list_text(const Func *f, const uint32_t *ids, int count) {
    Text t;
    text_init(&t, f->module->arena);
    if (!count) text_puts(&t, "nothing");
    for (int i = 0; i < count; i++) text_printf(&t, "%s%s", i ? ", " : "", f->buffers.data[ids[i] - 1]->name);
    return text_str(&t);
}

static void compare_list(Check *x, const Kernel *k, const char *verb, const uint32_t *has, int has_count,
                         const uint32_t *made, int made_count) {
    bool same = has_count == made_count;
    for (int i = 0; same && i < has_count; i++) same = has[i] == made[i];
    if (!same)
        fail(x, "kernel %s %s %s, but its ops need: %s", k->name, verb, list_text(x->f, has, has_count),
             list_text(x->f, made, made_count));
}

static const char *form_text(const Check *x, const Buffer *b) {
    Text t;
    text_init(&t, x->m->arena);
    text_puts(&t, ir_buffer_kind_names[b->kind]);
    if (b->state) text_printf(&t, " of %s", x->m->states.data[b->state - 1]->name);
    text_printf(&t, " %%%s %s %s", ir_value(x->f, b->value)->name, amp_dtype_name(b->storage),
                ir_layout_names[b->layout]);
    if (b->pitch) text_printf(&t, " pitch %lld", (long long)b->pitch);
    if (b->is_part) text_printf(&t, " part %lld", (long long)b->column);
    return text_str(&t);
}

static void compare_buffer(Check *x, const Buffer *has, const Buffer *made) {
    bool same = has->kind == made->kind && has->value.id == made->value.id && has->layout == made->layout &&
                has->storage == made->storage && has->pitch == made->pitch && has->state == made->state &&
                has->is_part == made->is_part && has->column == made->column;
    if (!same) fail(x, "buffer %s is `%s`, but the ops need `%s`", has->name, form_text(x, has), form_text(x, made));
    if (has->first != made->first || has->last != made->last)
        fail(x, "buffer %s is live %d to %d, but kernels use it from %d to %d", has->name, has->first, has->last,
             made->first, made->last);
    if (has->place != made->place)
        fail(x, "buffer %s %s the memory of %s", has->name, has->place ? "may not take" : "does not take",
             x->f->buffers.data[(has->place ? has->place : made->place) - 1]->name);
}

static void compare(Check *x) {
    const Func *f = x->f;
    if (f->buffers.len != x->made.buffers.len)
        fail(x, "has %d buffers, but its kernels need %d", f->buffers.len, x->made.buffers.len);
    for (int i = 0; i < f->buffers.len && !x->wrong; i++)
        compare_buffer(x, f->buffers.data[i], x->made.buffers.data[i]);
    for (int i = 0; i < f->kernels.len && !x->wrong; i++) {
        const Kernel *k = f->kernels.data[i], *made = x->made.kernels.data[i];
        compare_list(x, k, "reads", k->reads.data, k->reads.len, made->reads.data, made->reads.len);
        compare_list(x, k, "writes", k->writes.data, k->writes.len, made->writes.data, made->writes.len);
    }
}

/* ---- forms: what code generation and the runtime read ------------------------------------------------------------ */

static bool has_form(const Check *x, const Kernel *k, const Op *o, int operand, Val v) {
    Form form;
    if (!reads_form(x->f, o, operand, &form)) return true;
    for (int i = 0; i < k->reads.len; i++) {
        const Buffer *b = x->f->buffers.data[k->reads.data[i] - 1];
        if (b->value.id == v.id && form_equal((Form){b->layout, b->storage}, form)) return true;
    }
    return false;
}

/* Elementwise code and movement read rows and panels; products their own form. */
static void check_forms(Check *x) {
    const Func *f = x->f;
    const int *maker = kernel_makers(f);
    for (int i = 0; i < f->kernels.len && !x->wrong; i++) {
        const Kernel *k = f->kernels.data[i];
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            for (int n = 0; n < o->n_in && (ir_is_product(o) || ir_is_attention(o)); n++) {
                const Val v = product_source(f, o->in[n], maker, i);
                if (maker[v.id] != i && !has_form(x, k, o, n, v))
                    fail(x, "kernel %s: %s cannot read %%%s as it is stored", k->name,
                         ir_is_product(o) ? "a product" : "attention", ir_value(f, v)->name);
            }
        }
        for (int j = 0; j < k->reads.len && k->kind != KERNEL_PRODUCT; j++) {
            const Buffer *b = f->buffers.data[k->reads.data[j] - 1];
            if (b->layout != LAYOUT_ROWS && b->layout != LAYOUT_PANELS)
                fail(x, "kernel %s cannot read buffer %s, which is stored as %s", k->name, b->name,
                     ir_layout_names[b->layout]);
        }
    }
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void check_storage(Check *x, const State *s) {
    bool is_wide = s->role == STATE_DERIVED && s->storage == AMP_DT_F32 && is_float(s->dtype);
    if (s->storage != plain_storage(s->dtype) && !is_wide)
        fail(x, "state %s is %s and cannot be stored as %s", s->name, amp_dtype_name(s->dtype),
             amp_dtype_name(s->storage));
}

/* By index of a state: the op of |f| that assigns it, or NULL. */
static const Op **find_assigns(const Check *x, const Func *f, const Table *state_numbers) {
    const Op **found = arena_array(x->m->arena, const Op *, x->m->states.len + 1);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_assign) continue;
        const char *name = ir_state_of(f, o->in[0])->name;
        found[*(const uint32_t *)table_get(state_numbers, name) - 1] = o;
    }
    return found;
}

/* Whatever writes a weight writes its copies, and "refresh" writes every copy. */
static void check_copies(Check *x, const Func *f, const Table *state_numbers) {
    const Op **assigned = find_assigns(x, f, state_numbers);
    x->f = f;
    for (int i = 0; i < x->m->states.len && !x->wrong; i++) {
        const State *s = x->m->states.data[i];
        if (s->role != STATE_DERIVED) continue;
        const Op *of = assigned[*(const uint32_t *)table_get(state_numbers, s->of) - 1];
        bool must = f->kind == PROGRAM_REFRESH || of;
        if (must != (assigned[i] != NULL))
            fail(x, "%s state %s, a copy of %s", must ? "does not write" : "writes alone", s->name, s->of);
        else if (of && f->kind != PROGRAM_REFRESH && of->pred.id != assigned[i]->pred.id)
            fail(x, "writes state %s without writing %s, which it copies", s->name, s->of);
    }
    x->f = NULL;
}

static void check_states(Check *x, const Table *state_numbers) {
    bool has_copies = false;
    for (int i = 0; i < x->m->states.len; i++) {
        check_storage(x, x->m->states.data[i]);
        has_copies = has_copies || x->m->states.data[i]->role == STATE_DERIVED;
    }
    if (has_copies && !ir_program(x->m, PROGRAM_REFRESH))
        fail(x, "there are copies of weights, but no function `%s` that writes them",
             amp_program_word(PROGRAM_REFRESH));
    for (int i = 0; i < x->m->funcs.len && has_copies && !x->wrong; i++)
        check_copies(x, x->m->funcs.data[i], state_numbers);
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static void check_func(Check *x, const Table *state_numbers) {
    make_again(x, state_numbers);
    compare(x);
    if (!x->wrong) check_forms(x);
    if (x->f->joined && (x->m->stage < STAGE_JOIN || !may_be_joined(x->f)))
        fail(x, "is joined in one launch, for which its kernels are too many, too few or too large");
    if (x->wrong || x->m->stage < STAGE_PLAN) return;
    const char *wrong = parts_check(x->f);
    if (wrong) fail(x, "%s", wrong);
}

const char *plan_check(const Module *m) {
    Check x = {.m = m};
    const Table state_numbers = number_states(m);
    check_states(&x, &state_numbers);
    for (int i = 0; i < m->funcs.len && !x.wrong; i++) {
        x.f = m->funcs.data[i];
        check_func(&x, &state_numbers);
    }
    return x.wrong;
}
