/* targets.c: the table of targets, and what is asked of a module's target (target.h). */
#include "targets/target.h"

#include <string.h>

#include "base/text.h"

const Target *const targets[TARGET_COUNT] = {&target_cpu, &target_cuda};

const Target *target_find(const char *name) {
    for (int i = 0; i < TARGET_COUNT; i++)
        if (!name || !strcmp(targets[i]->name, name)) return targets[i];
    return NULL;
}

const Target *target_of(const Module *m) { return target_find(m->target); }

void target_set(Module *m, const Target *t) { m->target = t == targets[0] ? NULL : t->name; }

const char *target_list(Arena *a) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < TARGET_COUNT; i++) text_printf(&t, "%s%s", i ? ", " : "", targets[i]->name);
    return text_str(&t);
}

Form target_product_form(const Func *f, const Op *product, int i) {
    return target_of(f->module)->product_form(f, product, i);
}

bool target_rounds_on_load(const Func *f, const Op *o) {
    if (o->code != OP_cast || !target_of(f->module)->rounds_on_load) return false;
    Dtype to = ir_dtype(f, o->out[0]);
    return ir_value(f, o->in[0])->kind == VAL_INPUT && ir_dtype(f, o->in[0]) == AMP_DT_F32 &&
           (to == AMP_DT_F16 || to == AMP_DT_BF16 || to == AMP_DT_TF32);
}
