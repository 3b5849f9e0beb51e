/* train_blocks.c: what a model's train blocks say about each parameter, and the functions of a step. */
#include "passes/training/training.h"

int train_block_count(const Module *m) { return m->trains.len; }

const Train *train_block(const Module *m, int block) { return &m->trains.data[block]; }

int train_block_of(const Module *m, const char *state) {
    for (int i = 0; i < m->trains.len; i++) {
        const char *only = m->trains.data[i].only;
        if (!only || text_glob_match(only, state)) return i;
    }
    return -1;
}

ParamSettings train_settings(const Train *block, const char *param) {
    ParamSettings s = {.lr_scale = 1.0};
    for (int i = 0; i < block->groups.len; i++) {
        const TrainGroup *g = &block->groups.data[i];
        if (!text_glob_match(g->pattern, param)) continue;
        if (g->has_lr_scale) s.lr_scale = g->lr_scale;
        if (!g->has_weight_decay) continue;
        s.has_weight_decay = true;
        s.weight_decay = g->weight_decay;
    }
    return s;
}

ParamGradients train_gradients(const Func *f, int block) {
    const Module *m = f->module;
    ParamGradients list = {0};
    for (int i = 0; i < f->results.len; i++) {
        if (f->results.data[i].kind != RESULT_GRADIENT) continue;
        const State *s = ir_result_state(f, &f->results.data[i]);
        if (s && (block < 0 || train_block_of(m, s->name) == block)) vec_push(m->arena, &list, ((ParamGradient){s, i}));
    }
    return list;
}

Func *train_last_function(const Module *m) {
    Func *f = ir_program(m, PROGRAM_APPLY_STEP);
    return f ? f : ir_program(m, PROGRAM_TRAIN_STEP);
}

Func *train_first_function(const Module *m) {
    Func *f = ir_program(m, PROGRAM_MICRO_STEP);
    return f ? f : ir_program(m, PROGRAM_TRAIN_STEP);
}
