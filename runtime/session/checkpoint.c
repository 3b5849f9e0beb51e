/* checkpoint.c: everything that training goes on from, in one safetensors file (state_file.h). */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/scale_range.h"
#include "runtime/files/state_file.h"
#include "runtime/session/session.h"

#define EXTRA_KEY "amp.extra"
#define PRODUCTS_KEY "amp.products"

/* ---- saving ------------------------------------------------------------------------------------------------------ */

typedef struct Saving {
    const amp_session *session;
    const char *path, *extra;
} Saving;

/* amp_ranks_write */
static amp_status save(void *saving, const amp_state_source *moments, amp_error *err) {
    const Saving *x = saving;
    const amp_session *s = x->session;
    const amp_model *m = s->model;
    amp_state_list list;
    char source[65];
    amp_sha256_hex(m->desc.source_sha256, source);
    amp_metadata metadata[7] = {
        {AMP_FORMAT_KEY, AMP_FORMAT_CHECKPOINT},
        {"amp.model", m->desc.name},
        {"amp.source_sha256", source},
        {"amp.policy", m->desc.policy},
        {"amp.sums", m->desc.sums ? m->desc.sums : "ieee"},
    };
    int32_t count = 5;
    if (*s->choices) metadata[count++] = (amp_metadata){PRODUCTS_KEY, s->choices};
    if (x->extra) metadata[count++] = (amp_metadata){EXTRA_KEY, x->extra};
    void **states = NULL;
    amp_status status = amp_state_list_make(&list, m, AMP_FILE_OF_CHECKPOINT, &m->allocator, err);
    if (!status) status = amp_session_host_states(s, true, &states, err);
    if (!status) status = amp_state_list_write(&list, states, moments, x->path, metadata, count, err);
    amp_session_drop_host_states(s, states);
    amp_state_list_free(&list);
    return status;
}

amp_status amp_checkpoint_save(const amp_session *session, const char *path, const char *extra, amp_error *err) {
    Saving saving = {session, path, extra};
    AMP_TRY(amp_session_check_training(session, "amp_checkpoint_save", err));
    if (!path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_checkpoint_save: path is NULL");
    if (session->step.micro)
        return amp_fail(
            err, AMP_WRONG_STATE,
            "amp_checkpoint_save: %lld of the %lld micro-batches of a step have been run; save when the step "
            "is complete",
            (long long)session->step.micro, (long long)session->model->accumulate);
    AMP_TRY(amp_params_check_masters(session->params, "amp_checkpoint_save", err));
    amp_session_does(session, AMP_RANK_SAVES);
    return session->ranks ? amp_ranks_save(session->ranks, save, &saving, err) : save(&saving, NULL, err);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static amp_status check_format(const amp_safetensors *file, const char *path, amp_error *err) {
    const char *format = amp_safetensors_metadata(file, AMP_FORMAT_KEY);
    if (!format || !strcmp(format, AMP_FORMAT_PARAMS))
        return amp_fail(err, AMP_MISMATCH,
                        "%s: not a checkpoint but a file of params (its metadata has no %s = %s); "
                        "amp_params_load reads it",
                        path, AMP_FORMAT_KEY, AMP_FORMAT_CHECKPOINT);
    if (strcmp(format, AMP_FORMAT_CHECKPOINT))
        return amp_fail(err, AMP_UNSUPPORTED, "%s: its %s is %s, this library reads %s", path, AMP_FORMAT_KEY, format,
                        AMP_FORMAT_CHECKPOINT);
    return AMP_OK;
}

static amp_status check_counter(const amp_safetensors *file, const amp_tensor_view *v, const char *path,
                                amp_error *err) {
    int64_t value;
    AMP_TRY(amp_safetensors_read(file, v, 0, &value, sizeof value, err));
    if (amp_count_is_usable(value)) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE, "%s: %s is %lld; counters count from 0 to at most 2^53", path, v->name,
                    (long long)value);
}

static amp_status check_rate(const amp_safetensors *file, const amp_tensor_view *v, const char *path, amp_error *err) {
    double value;
    AMP_TRY(amp_safetensors_read(file, v, 0, &value, sizeof value, err));
    if (amp_rate_is_usable(value)) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE, "%s: %s is %g: " AMP_RATE_RANGE, path, v->name, value);
}

/* Loaded counters drive the schedule and the random numbers: they are as strict as amp_session_set_scaler.  The seed is
 * any number. */
static amp_status check_counters(const amp_safetensors *file, const char *path, amp_error *err) {
    static const char prefix[] = "counter/";
    for (int32_t i = 0; i < amp_safetensors_count(file); i++) {
        const amp_tensor_view *v = amp_safetensors_at(file, i);
        if (strncmp(v->name, prefix, sizeof prefix - 1) || !strcmp(v->name, "counter/seed")) continue;
        AMP_TRY(v->dtype == AMP_DT_F64 ? check_rate(file, v, path, err) : check_counter(file, v, path, err));
    }
    return AMP_OK;
}

static amp_status check_scaler(const amp_safetensors *file, const char *path, amp_error *err) {
    static const char *const names[] = {"scaler/growth_tracker", "scaler/floor_hits"};
    const amp_tensor_view *v = amp_safetensors_find(file, "scaler/scale");
    float scale = 1;
    if (v) AMP_TRY(amp_safetensors_read(file, v, 0, &scale, sizeof scale, err));
    if (!amp_scale_is_usable(scale))
        return amp_fail(err, AMP_BAD_FILE, "%s: scaler/scale is %g; a loss scale is a number " AMP_SCALE_RANGE, path,
                        (double)scale);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t value = 0;
        if ((v = amp_safetensors_find(file, names[i])))
            AMP_TRY(amp_safetensors_read(file, v, 0, &value, sizeof value, err));
        if (!amp_short_count_is_usable(value))
            return amp_fail(err, AMP_BAD_FILE, "%s: %s is %ld; it counts from 0 to at most 2^30", path, names[i],
                            (long)value);
    }
    return AMP_OK;
}

static amp_status check_extra(const amp_safetensors *file, const char *path, size_t room, amp_error *err) {
    const char *extra = amp_safetensors_metadata(file, EXTRA_KEY);
    size_t needed = extra ? strlen(extra) + 1 : 1;
    if (needed <= room) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: its extra text takes %zu bytes, extra_size is %zu", path, needed,
                    room);
}

/* It goes on all the same, with other bits. */
static void say_other_products(const amp_session *s, const amp_safetensors *file, const char *path) {
    const char *text = amp_safetensors_metadata(file, PRODUCTS_KEY), *of_file = text ? text : "";
    if (strcmp(of_file, s->choices))
        amp_log_say(&s->log, AMP_LOG_WARNING,
                    "%s: was trained with other products: %s, and goes on with %s, which other bits may follow from",
                    path, *of_file ? of_file : "ampc's own", *s->choices ? s->choices : "ampc's own");
}

typedef struct Extra { /* the caller's */
    char *text;
    size_t size;
} Extra;

static amp_status load_states(amp_session *s, const amp_state_list *list, const amp_safetensors *file, amp_error *err) {
    void **states;
    amp_status status = amp_session_host_states(s, false, &states, err);
    for (int32_t i = 0; !status && i < list->count; i++) {
        const int32_t state = list->entries[i].state;
        status = amp_ranks_share_moment(s->ranks, state) ? amp_ranks_load(s->ranks, list, i, file, err)
                                                         : amp_state_list_read(list, i, file, states[state], err);
    }
    if (!status) status = amp_safetensors_check_unchanged(file, err);
    if (!status) amp_session_forget_kept(s);
    if (!status) status = amp_session_take_states(s, states, err);
    amp_session_drop_host_states(s, states);
    return status;
}

static amp_status load_file(amp_session *s, const amp_state_list *list, const amp_safetensors *file, const char *path,
                            Extra extra, amp_error *err) {
    AMP_TRY(check_format(file, path, err));
    AMP_TRY(amp_state_list_check(list, file, path, err));
    AMP_TRY(check_counters(file, path, err));
    AMP_TRY(check_scaler(file, path, err));
    if (extra.text) AMP_TRY(check_extra(file, path, extra.size, err));
    /* From here on nothing can fail but memory for copies, before anything changed, and the device itself; of ranks
     * with shares also the file, which is not in memory. */
    AMP_TRY(load_states(s, list, file, err));
    amp_params_make_stale(s->params);
    s->step.micro = 0;
    amp_session_is_whole(s);
    const char *text = amp_safetensors_metadata(file, EXTRA_KEY);
    if (extra.text) strcpy(extra.text, text ? text : "");
    say_other_products(s, file, path);
    return AMP_OK;
}

static amp_status load(amp_session *s, const amp_state_list *list, const char *path, Extra extra, amp_error *err) {
    amp_safetensors *file;
    const amp_allocator *a = &s->model->allocator;
    amp_status status = amp_session_has_shares(s) ? amp_safetensors_open_header(path, AMP_FILE_ANY, a, &file, err)
                                                  : amp_safetensors_open(path, a, &file, err);
    if (!status) status = load_file(s, list, file, path, extra, err);
    amp_safetensors_close(file);
    return status;
}

amp_status amp_checkpoint_load(amp_session *session, const char *path, char *extra, size_t extra_size, amp_error *err) {
    amp_state_list list;
    AMP_TRY(amp_session_check_training(session, "amp_checkpoint_load", err));
    if (!path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_checkpoint_load: path is NULL");
    amp_session_does(session, AMP_RANK_LOADS);
    AMP_TRY(amp_state_list_make(&list, session->model, AMP_FILE_OF_CHECKPOINT, &session->model->allocator, err));
    amp_status status = amp_state_list_reserve(&list, err);
    if (!status) status = load(session, &list, path, (Extra){extra, extra_size}, err);
    amp_state_list_free(&list);
    if (status || !session->ranks) return status;
    return amp_ranks_meet(session->ranks, err);
}
