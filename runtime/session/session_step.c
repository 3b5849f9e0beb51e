/* session_step.c: amp_step: forward, backward, what ranks exchange, running statistics, update. */
#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/session/session.h"

/* What micro-batches make of running statistics, in their order.  Of one rank after each of them; of several after the
 * last one, for all that ranks have: so all have the same statistics. */
static amp_status add_statistics(amp_session *s, const amp_readback_run *made, amp_sizes sizes, amp_error *err) {
    amp_bound_program *statistics = &s->programs[AMP_RUN_STATISTICS];
    if (!statistics->program || (s->ranks && !made->complete)) return AMP_OK;
    const int64_t begin = s->ranks ? 0 : made->micro,
                  end = s->ranks ? s->ranks->comm->size * s->model->accumulate : begin + 1,
                  each = s->ranks && s->ranks->run_each ? 1 : end - begin;
    int64_t *number = s->states.bound[amp_model_counter(s->model, AMP_COUNTER_MICRO)];
    for (int64_t i = begin; i < end; i += each) {
        s->batches = (amp_micro_batches){.first = i, .count = each, .number = number};
        AMP_TRY(amp_session_run(s, statistics, NULL, sizes, err));
    }
    return AMP_OK;
}

/* Forward and backward; where the step ends, its update.  |*complete|: whether it did. */
static amp_status run_step(amp_session *s, const void *const *inputs, amp_sizes sizes, bool reported, bool *complete,
                           amp_error *err) {
    int64_t *micro = amp_session_micro(s), k = s->model->accumulate;
    if (micro) *micro = amp_session_first_micro(s) + s->step.micro;
    AMP_TRY(amp_session_run(s, &s->programs[AMP_RUN_TRAIN_STEP], inputs, sizes, err));
    s->step.too_few = (s->step.micro && s->step.too_few) || sizes.n < s->model->desc.least_batch;
    amp_readback_run made = {.step = true,
                             .too_few = s->step.too_few,
                             .micro = s->step.micro,
                             .complete = s->step.micro + 1 == k,
                             .reported = reported,
                             .sizes = amp_session_sizes_to_check(s, sizes)};
    s->step.last = sizes;
    *complete = made.complete;
    s->step.micro = made.complete ? 0 : s->step.micro + 1;
    if (s->ranks) AMP_TRY(amp_ranks_after_run(s->ranks, s->model->train_step, made.micro, err));
    AMP_TRY(add_statistics(s, &made, sizes, err));
    if (made.complete && s->programs[AMP_RUN_APPLY_STEP].program) {
        AMP_TRY(amp_session_run(s, &s->programs[AMP_RUN_APPLY_STEP], NULL, sizes, err));
        if (s->ranks) AMP_TRY(amp_ranks_after_run(s->ranks, s->model->apply_step, made.micro, err));
    }
    return amp_session_start_readback(s, &made, err);
}

static const char failed_halfway[] = "a step has failed halfway; load a checkpoint, or make new params";

void amp_session_is_whole(amp_session *s) {
    if (s->params->away == failed_halfway) s->params->away = NULL;
    s->readback->half = false;
}

/* After a fatal error of the device nothing is read any more, and params may go on elsewhere. */
static void note_failure(amp_session *s, amp_status status) {
    if (status == AMP_DEVICE_FAILED) s->readback->half = false;
    else if (s->readback->half && !s->params->away) s->params->away = failed_halfway;
}

static amp_status step(amp_session *s, const void *const *inputs, amp_sizes sizes, amp_step_report *report,
                       amp_error *err) {
    bool complete;
    const amp_status status = run_step(s, inputs, sizes, report != NULL, &complete, err);
    if (status) note_failure(s, status);
    AMP_TRY(status);
    if (complete) amp_session_is_whole(s);
    AMP_TRY(amp_session_settle(s, report != NULL, err));
    if (report) amp_session_fill_report(s, complete, report);
    return amp_session_check_floor(s, err);
}

amp_status amp_step(amp_session *session, const void *const *inputs, amp_sizes sizes, amp_step_report *report,
                    amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(amp_session_check_training(session, "amp_step", err));
    amp_session_does(session, AMP_RANK_COMPUTES);
    const float *scale = amp_session_scale(session);
    session->readback->measured.used_scale = scale ? *scale : 1;
    amp_device *device = session->device;
    const amp_device_memory_calls *calls = device->type->device_memory;
    if (calls) AMP_TRY(calls->enter(device, err));
    const amp_status status = step(session, inputs, sizes, report, err);
    if (calls) calls->leave(device);
    return status;
}
