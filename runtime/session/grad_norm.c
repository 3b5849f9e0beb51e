/* grad_norm.c: the norm of the gradients that a session keeps, or what the model has computed. */
#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/session/session.h"

/* ---- of the gradients that are kept ------------------------------------------------------------------------------ */

typedef struct Gradients {
    float *rows; /* room for the largest */
    size_t bytes;
    double squares;
} Gradients;

static double squares(const float *from, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)from[i] * from[i];
    return sum;
}

/* Of a matrix where it is; |rows| x |cols| in ROWS, or in PANELS of PANEL columns. */
static double squares_in_place(const float *from, uint32_t layout, int64_t rows, int64_t cols) {
    enum { PANEL = 32 };
    if (layout == AMP_LAYOUT_ROWS) return squares(from, rows * cols);
    double sum = 0;
    int64_t height = (rows + PANEL - 1) / PANEL * PANEL;
    for (int64_t col = 0; col < cols; col += PANEL)
        for (int64_t row = 0; row < rows; row++)
            sum += squares(from + col * height + row * PANEL, cols - col < PANEL ? cols - col : PANEL);
    return sum;
}

static amp_status add_squares(const amp_session *s, Gradients *g, const amp_model_result *r, amp_error *err) {
    const amp_bound_program *last = amp_session_last_program(s);
    const amp_model_buffer *b = &last->program->buffers[r->buffer];
    int64_t rows = amp_model_dim_at(&b->rows, s->step.last), cols = amp_model_dim_at(&b->cols, s->step.last);
    bool plain = b->storage == AMP_DT_F32 && (b->layout == AMP_LAYOUT_ROWS || b->layout == AMP_LAYOUT_PANELS);
    if (plain && !amp_session_has_device_memory(s)) {
        g->squares += squares_in_place(last->buffers[r->buffer], b->layout, rows, cols);
        return AMP_OK;
    }
    AMP_TRY(amp_session_read_buffer(s, last, r->buffer, s->step.last, g->rows, err));
    g->squares += squares(g->rows, rows * cols);
    return AMP_OK;
}

/* Elements; a lazy table's gradient has a row for each place that reads it, which may be more than the table has. */
static size_t largest_gradient(const amp_session *s, const amp_program *p) {
    size_t most = 1;
    for (int32_t i = 0; i < p->result_count; i++) {
        const amp_model_buffer *b = &p->buffers[p->results[i].buffer];
        const size_t count =
            (size_t)amp_model_dim_at(&b->rows, s->step.last) * (size_t)amp_model_dim_at(&b->cols, s->step.last);
        if (p->results[i].kind == AMP_RESULT_GRADIENT && count > most) most = count;
    }
    return most;
}

static amp_status norm_of_kept(const amp_session *s, double *norm, amp_error *err) {
    const amp_program *p = amp_session_last_program(s)->program;
    Gradients g = {.bytes = largest_gradient(s, p) * sizeof(float)};
    g.rows = amp_alloc(&s->memory.allocator, g.bytes);
    if (!g.rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read gradients", s->model->desc.name);
    amp_status status = AMP_OK;
    for (int32_t i = 0; !status && i < p->result_count; i++)
        if (p->results[i].kind == AMP_RESULT_GRADIENT) status = add_squares(s, &g, &p->results[i], err);
    amp_free(&s->memory.allocator, g.rows, g.bytes);
    *norm = sqrt(g.squares);
    return status;
}

amp_status amp_session_get_grad_norm(const amp_session *session, double *norm, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(amp_session_check_training(session, "amp_session_get_grad_norm", err));
    if (!norm) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_grad_norm: norm is NULL");
    if (!session->step.last.n || session->step.micro)
        return amp_fail(err, AMP_WRONG_STATE, "amp_session_get_grad_norm: no step is complete");
    AMP_TRY(amp_session_settle(session, true, err));
    if (session->keeps_gradients) return norm_of_kept(session, norm, err);
    const amp_bound_program *last = amp_session_last_program(session);
    *norm = amp_computed_norm(session->model, last);
    if (amp_computes_norm(session->model, last->program)) return AMP_OK;
    return amp_fail(
        err, AMP_WRONG_STATE,
        "amp_session_get_grad_norm: %s does not compute the norm; create the session with grad_norm = 1, or "
        "write `clip_norm = inf` in every train block",
        session->model->desc.name);
}
