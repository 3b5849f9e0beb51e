/* profile.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* The first steps allocate, and wake what sleeps. */
enum { WARM_UP = 2, STEPS = 10 };

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int profile_open(Profile *p, const Args *a, const Run *run, int64_t steps, bool watched) {
    amp_error err = {0};
    *p = (Profile){.run = run, .path = a->profile, .first = steps > WARM_UP ? WARM_UP + 1 : steps};
    if (!p->path) return 0;
    if (a->device && !strcmp(a->device, "null"))
        return report_text("--profile: device null computes nothing that takes time; choose cpu or cuda") + 1;
    p->last = p->first + STEPS - 1;
    p->recording = (Recording){.model = run->info, .watched = watched};
    if (amp_model_get_tables(run->model, a->device, &p->recording.tables, &err)) return report(&err);
    return peaks_find(a, &p->peaks, &err) ? report_text("--profile: %s", err.message) : 0;
}

void profile_close(Profile *p) { recording_free(&p->recording); }

/* ---- steps ------------------------------------------------------------------------------------------------------- */

amp_status profile_before(Profile *p, int64_t samples, amp_error *err) {
    if (!p->path || p->is_done) return AMP_OK;
    if (!p->micro) p->step++, p->elapsed = 0;
    p->is_on = p->step >= p->first && p->step <= p->last;
    if (p->is_on) {
        const amp_observer observer = {
            .struct_size = sizeof observer, .user = &p->recording, .kernel = recording_see_kernel};
        AMP_TRY(amp_session_observe(p->run->session, &observer, err));
    }
    p->began = amp_seconds();
    if (p->is_on) recording_begin_call(&p->recording, p->micro, samples);
    return AMP_OK;
}

amp_status profile_after(Profile *p, const amp_step_report *report, amp_error *err) {
    if (!p->path || p->is_done) return AMP_OK;
    p->elapsed += amp_seconds() - p->began;
    if (p->is_on) {
        recording_end_call(&p->recording, report);
        AMP_TRY(amp_session_observe(p->run->session, NULL, err)); /* no evaluation */
    }
    p->micro = report->complete ? 0 : p->micro + 1;
    const bool is_plain = report->complete && !p->is_on;
    if (is_plain && !(p->plain_seconds > 0 && p->plain_seconds < p->elapsed)) p->plain_seconds = p->elapsed;
    return AMP_OK;
}

/* ---- what is made of them ---------------------------------------------------------------------------------------- */

static char *fail(Profile *p, const char *why) {
    report_text("--profile %s", why);
    p->failed = true;
    return NULL;
}

static char *make_table(Profile *p) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    bool is_made = to && profile_table_print(&p->recording, &p->peaks, p->plain_seconds, to);
    if (to && fclose(to)) is_made = false;
    if (is_made) return text;
    free(text);
    return fail(p, "no memory for the table");
}

char *profile_finish(Profile *p, bool ends) {
    amp_error err = {0};
    Recording *r = &p->recording;
    if (!p->path || p->is_done || !(ends || r->steps > p->last - p->first)) return NULL;
    p->is_done = true;
    recording_keep_steps(r);
    if (r->failed) return fail(p, "no memory for the times of all kernels");
    if (!r->steps) return fail(p, "nothing was profiled: training ended before");
    if (profile_trace_write(r, p->path, &err)) fail(p, err.message);
    return make_table(p);
}
