/* computed_norm.c: the norm of the gradients that the model's own code computes in a step. */
#include <math.h>

#include "runtime/session/session.h"

/* Train blocks that train something. */
static int32_t trained_blocks(const amp_model *m) {
    int32_t count = 0;
    for (int32_t i = 0; i < m->state_count; i++)
        count += m->states[i].counter == AMP_COUNTER_LEARNING_RATE && m->states[i].counter_block != AMP_MODEL_NONE;
    return count;
}

/* Of blocks that all have a norm, the norm of all gradients; else NaN. */
static double norm_of_blocks(const amp_model *m, const amp_bound_program *last) {
    double sum = 0;
    int32_t count = 0;
    for (int32_t i = 0; i < last->program->result_count; i++) {
        if (last->program->results[i].kind != AMP_RESULT_NORM) continue;
        double norm = amp_bound_program_scalar(last, i);
        sum += norm * norm;
        count++;
    }
    return count && count == trained_blocks(m) ? sqrt(sum) : NAN;
}

bool amp_computes_norm(const amp_model *m, const amp_program *p) {
    int32_t count = 0;
    for (int32_t i = 0; i < p->result_count; i++) count += p->results[i].kind == AMP_RESULT_NORM;
    return amp_program_result(p, AMP_RESULT_NORM) >= 0 || (count && count == trained_blocks(m));
}

double amp_computed_norm(const amp_model *m, const amp_bound_program *last) {
    int32_t norm = amp_program_result(last->program, AMP_RESULT_NORM);
    return norm >= 0 ? amp_bound_program_scalar(last, norm) : norm_of_blocks(m, last);
}
