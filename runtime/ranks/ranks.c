/* ranks.c: see ranks.h. */
#include "runtime/ranks/ranks.h"

#include "base/error.h"
#include "runtime/ranks/rank_exchange.h"

/* ---- life -------------------------------------------------------------------------------------------------------- */

static amp_status refuse(const amp_model *owner, int32_t ranks, amp_error *err) {
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s was compiled to train alone, and there are %d ranks; compile it with --distribute data, or "
                    "say data_parallel = true in its train block",
                    owner->desc.name, ranks);
}

amp_status amp_ranks_join(const amp_ranked_session *session, amp_comm *comm, amp_ranks **out, amp_error *err) {
    const amp_model *owner = session->model->owner ? session->model->owner : session->model;
    if (!owner->collective_count) return session->sizes_only ? AMP_OK : refuse(owner, comm->size, err);
    amp_ranks *r = *out = amp_alloc_zeroed(&session->memory->allocator, sizeof *r);
    if (!r) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to join ranks", session->model->desc.name);
    r->comm = comm;
    r->session = *session;
    return amp_ranks_plan_shares(r, err);
}

static amp_status meet_first(amp_ranks *r, amp_error *err) {
    AMP_TRY(amp_ranks_make_exchange(r, err));
    r->run_each = amp_exchange_is_apart(r->exchange) && amp_exchange_gathering(r->exchange) >= 0;
    AMP_TRY(amp_ranks_agree(r, err));
    AMP_TRY(amp_ranks_share(r, err));
    AMP_TRY(amp_exchange_attach(r->exchange, err));
    return amp_ranks_share_masters(r, err);
}

amp_status amp_ranks_meet(amp_ranks *r, amp_error *err) {
    if (r->session.sizes_only) return amp_ranks_share_masters(r, err);
    if (!r->exchange) return meet_first(r, err);
    amp_ranks_masters_come(r);
    return amp_ranks_share(r, err);
}

void amp_ranks_leave(amp_ranks *r) {
    amp_ranks_return_masters(r);
    amp_ranks_free_exchange(r);
    amp_ranks_free_shares(r);
    amp_free(&r->session.memory->allocator, r, sizeof *r);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

amp_status amp_ranks_before_run(amp_ranks *r, amp_run *run, int64_t micro, amp_error *err) {
    const amp_model *m = r->session.model;
    run->hooks = amp_exchange_hooks(r->exchange, run->program, micro);
    if (run->program == m->train_step) amp_ranks_masters_leave(r);
    if (run->program == m->apply_step) run->shares = r->shares;
    if (run->program == m->statistics_step || run->program == m->apply_step)
        AMP_TRY(amp_exchange_use(r->exchange, err));
    return run->program == m->statistics_step ? amp_exchange_give_batches(r->exchange, &run->batches, err) : AMP_OK;
}

amp_status amp_ranks_after_run(amp_ranks *r, const amp_program *program, int64_t micro, amp_error *err) {
    amp_exchange *x = r->exchange;
    if (program != x->model->train_step) return amp_ranks_gather_weights(r, err);
    if (micro + 1 == x->model->accumulate) return amp_exchange_finish(x, err);
    return amp_exchange_keep(x, micro, err);
}
