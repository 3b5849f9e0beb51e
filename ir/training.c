/* training.c: what the train blocks of a module say of a parameter. */
#include "base/text.h"
#include "ir/ir.h"

bool ir_step_is_divided(const Module *m) { return m->accumulate > 1 || m->distribution; }

bool ir_is_exchange(const Func *f) { return f->kind == PROGRAM_REDUCE_STEP || f->kind == PROGRAM_GATHER_STEP; }

int ir_freezing_group(const Train *block, const char *param) {
    int last = NO_BLOCK;
    for (int i = 0; i < block->groups.len; i++) {
        const TrainGroup *g = &block->groups.data[i];
        if (g->has_frozen && text_glob_match(g->pattern, param)) last = g->frozen ? i : NO_BLOCK;
    }
    return last;
}

ParamTraining ir_param_training(const Module *m, const char *param) {
    ParamTraining t = {NO_BLOCK, NO_BLOCK, NO_BLOCK, NO_BLOCK, NO_BLOCK, NO_BLOCK};
    for (int i = 0; t.block == NO_BLOCK && i < m->trains.len; i++) {
        const char *only = m->trains.data[i].only;
        if (!only || text_glob_match(only, param)) t.block = i;
    }
    if (t.block == NO_BLOCK) return t;
    const Train *block = &m->trains.data[t.block];
    for (int i = 0; i < block->groups.len; i++) {
        const TrainGroup *g = &block->groups.data[i];
        if (!text_glob_match(g->pattern, param)) continue;
        if (g->has_lr_scale) t.lr_scale = i;
        if (g->has_weight_decay) t.weight_decay = i;
        if (g->optimizer.name) t.optimizer = i;
        if (g->has_lazy) t.lazy = g->lazy ? i : NO_BLOCK;
    }
    t.frozen = ir_freezing_group(block, param);
    return t;
}

const Call *ir_param_optimizer(const Module *m, const ParamTraining *t) {
    const Train *block = &m->trains.data[t->block];
    return t->optimizer == NO_BLOCK ? &block->optimizer : &block->groups.data[t->optimizer].optimizer;
}

const Call *ir_optimizer_at(const Module *m, int index) {
    for (int i = 0; i < m->trains.len; i++) {
        const Train *block = &m->trains.data[i];
        if (!index--) return &block->optimizer;
        for (int g = 0; g < block->groups.len; g++)
            if (block->groups.data[g].optimizer.name && !index--) return &block->groups.data[g].optimizer;
    }
    return NULL;
}

const TrainGroup *ir_lazy_group(const Module *m, const char *param) {
    const ParamTraining t = ir_param_training(m, param);
    return t.lazy == NO_BLOCK || t.frozen != NO_BLOCK ? NULL : &m->trains.data[t.block].groups.data[t.lazy];
}

int ir_group_number(const Module *m, int block, int group) {
    for (int i = 0; i < block; i++) group += m->trains.data[i].groups.len;
    return group;
}
