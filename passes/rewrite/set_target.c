/* set_target.c: from here on a module is for one target, which must have a kernel for what lower has made. */
#include "ir/words.h"
#include "passes/passes.h"
#include "targets/target.h"

static bool has_long_keys(const Func *f, const Op *o, const AttentionOperands *at) {
    const Shape *k = ir_shape(f, o->in[at->k]);
    return dim_varies(k->d[k->rank - 2]);
}

/* What IR at stage lower holds that the target has no kernel for; NULL: nothing. */
static const char *lacks_kernel(const Target *t, const Func *f, const Op *o) {
    const AttentionOperands at = ir_is_attention(o) ? ir_attention_operands(f, o) : (AttentionOperands){0};
    if (ir_is_attention(o) && !t->attends(ir_dtype(f, o->in[at.q]))) return "attention in one piece";
    if (ir_is_attention(o) && !t->keeps_dropout && (o->code == OP_attend_drop || at.bits >= 0))
        return "attention that keeps the bits of dropout";
    if (o->code == OP_attend_grad && t->keeps_dropout && at.counters >= 0 && !has_long_keys(f, o, &at))
        return "the gradient of attention without the bits of dropout";
    return ir_parts(o) > 1 && !t->sum_blocks ? "products in parts" : NULL;
}

/* It has attention as the target that it was made for wants it. */
static bool check_target(PassContext *c, const Func *f) {
    const Target *t = target_of(c->m);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const char *what = lacks_kernel(t, f, o);
        if (!what) continue;
        diag_help(c->diags,
                  diag_error(c->diags, (Loc){0}, "%s: %s: the target %s has no kernel for %s", f->name,
                             o->path ? o->path : ir_op_info[o->code].name, t->name, what),
                  "start from stage simplify or before, or use the target that it was lowered for");
        return false;
    }
    return true;
}

static bool follows_device(const Func *f) {
    for (int i = 0; i < f->body.len; i++)
        if (target_follows_device(f, ir_op_at(f, i))) return true;
    return false;
}

/* Sums that nothing follows are asked for in vain. */
static void check_sums(PassContext *c) {
    if (c->m->sums == SUMS_IEEE) return;
    for (int i = 0; i < c->m->funcs.len; i++)
        if (follows_device(c->m->funcs.data[i])) return;
    diag_help(c->diags,
              diag_warning(c->diags, (Loc){0},
                           "sums %s change nothing: tensor cores multiply f16, bf16 and tf32, and "
                           "no product of the model has such operands",
                           ir_sums_names[c->m->sums]),
              "compile with --precision fp16, bf16 or tf32");
}

bool pass_target(PassContext *c) {
    target_set(c->m, c->options->target ? c->options->target : targets[0]);
    for (int i = 0; i < c->m->funcs.len; i++)
        if (!check_target(c, c->m->funcs.data[i])) return false;
    check_sums(c);
    return true;
}
