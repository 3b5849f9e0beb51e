/* state.c: see state.h. */
#include "runtime/model/state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/initialise.h"
#include "runtime/model/layout.h"

typedef struct Matrix {
    int64_t rows, cols;
} Matrix;

static Matrix matrix_of(const amp_model_state *s) {
    Matrix m;
    amp_state_matrix(s, &m.rows, &m.cols);
    return m;
}

bool amp_state_is_param(const amp_model_state *s) { return s->role == AMP_STATE_PARAM || s->role == AMP_STATE_BUFFER; }

bool amp_state_lives_in_params(const amp_model *model, int32_t index, const void *ctx) {
    (void)ctx;
    return amp_state_is_param(&model->states[index]) || model->states[index].role == AMP_STATE_DERIVED;
}

amp_dtype amp_readable_dtype(uint32_t dtype) {
    return dtype == AMP_DT_F16 || dtype == AMP_DT_BF16 || dtype == AMP_DT_TF32 ? AMP_DT_F32 : (amp_dtype)dtype;
}

/* Cannot overflow: checked when the model was loaded. */
size_t amp_state_bytes(const amp_model_state *s) {
    Matrix m = matrix_of(s);
    size_t bytes = 0;
    return amp_layout_bytes(s->layout, s->storage, m.rows, m.cols, &bytes) ? bytes : 0;
}

size_t amp_state_content_bytes(const amp_model_state *s) {
    if (s->layout != AMP_LAYOUT_ROWS) return amp_state_bytes(s);
    return (size_t)amp_model_state_elements(s) * amp_storage_size(s->storage);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

amp_status amp_states_alloc(const amp_model *model, amp_state_filter *wanted, const void *ctx,
                            const amp_allocator *allocator, void ***out, amp_error *err) {
    void **states = amp_alloc_zeroed(allocator, (size_t)model->state_count * sizeof *states);
    *out = NULL;
    if (!states) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its states", model->desc.name);
    for (int32_t i = 0; i < model->state_count; i++) {
        size_t bytes = amp_state_bytes(&model->states[i]);
        if (!wanted(model, i, ctx)) continue;
        states[i] = amp_alloc_zeroed_aligned(allocator, bytes, AMP_MEMORY_ALIGN);
        if (states[i]) continue;
        amp_states_free(model, states, allocator);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the %zu bytes of %s", model->desc.name, bytes,
                        model->states[i].name);
    }
    *out = states;
    return AMP_OK;
}

void amp_states_free(const amp_model *model, void **states, const amp_allocator *allocator) {
    if (!states) return;
    for (int32_t i = 0; i < model->state_count; i++)
        amp_free_aligned(allocator, states[i], amp_state_bytes(&model->states[i]), AMP_MEMORY_ALIGN);
    amp_free(allocator, states, (size_t)model->state_count * sizeof *states);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

void amp_state_set_f32(const amp_model_state *s, void *memory, const float *from) {
    Matrix m = matrix_of(s);
    amp_layout_from_f32(memory, s->layout, s->storage, m.rows, m.cols, from);
}

void amp_state_get_f32(const amp_model_state *s, const void *memory, float *to) {
    Matrix m = matrix_of(s);
    amp_layout_to_f32(memory, s->layout, s->storage, m.rows, m.cols, to);
}

size_t amp_states_largest(const amp_model *model) {
    size_t largest = 1;
    for (int32_t i = 0; i < model->state_count; i++) {
        size_t count = (size_t)amp_model_state_elements(&model->states[i]);
        if (count > largest) largest = count;
    }
    return largest;
}

amp_status amp_states_initialise(const amp_model *model, void *const *states, uint64_t seed,
                                 const amp_allocator *allocator, amp_error *err) {
    size_t bytes = amp_states_largest(model) * sizeof(float);
    float *rows = amp_alloc_aligned(allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to initialise its states", model->desc.name);
    for (int32_t i = 0; i < model->state_count; i++) {
        const amp_model_state *s = &model->states[i];
        if (!states[i] || s->role == AMP_STATE_DERIVED) continue;
        amp_initialise(s, seed, rows);
        amp_state_set_f32(s, states[i], rows);
    }
    amp_free_aligned(allocator, rows, bytes, AMP_MEMORY_ALIGN);
    return AMP_OK;
}

amp_status amp_state_check_count(const amp_model_state *s, const char *what, size_t count, amp_error *err) {
    size_t elements = (size_t)amp_model_state_elements(s);
    if (count == elements) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s %s: has %zu elements, the call says %zu", what, s->name, elements,
                    count);
}
