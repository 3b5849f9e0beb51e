/* scale_monitor.c: what the reports of steps say of the loss scale, together. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "runtime/model/model.h"

/* ---- what the model says ----------------------------------------------------------------------------------------- */

/* Of "dynamic(init = 65536.0, growth = 2.0, ...)", to which the compiler adds the arguments that the model left out. */
static double argument(const char *call, const char *name) {
    double value = 0;
    const char *at = strstr(call, name);
    if (!at) return 0;
    at += strlen(name);
    return decimal_parse(at, strcspn(at, ",)"), &value) ? value : 0;
}

enum { GROWTHS_TO_FALL = 2 };
/* An overflow that the scale causes ends long before the scale is this part of what it was: FP16's largest number is
 * 2^16, and its products and sums rarely come to more than that times a gradient. */
static const double STALLED_AT = 0x1p-16;

/* A whole number of backoffs; a factor like the root of a half has a rounding. */
static int32_t backoffs(double halvings, double halvings_each) {
    return (int32_t)ceil(fmin(halvings / halvings_each, 1 << 20) - 1e-6);
}

void amp_scale_monitor_start(amp_scale_monitor *m, const amp_model *model) {
    if (!m) return;
    *m = (amp_scale_monitor){.since_overflow = -1, .between_overflows = -1};
    const char *scaler = model ? model->desc.scaler : NULL;
    if (!scaler || !strncmp(scaler, "none", 4)) return;
    m->health = AMP_SCALE_STEADY;
    m->growth = argument(scaler, "growth = ");
    m->backoff = argument(scaler, "backoff = ");
    m->interval = (int64_t)argument(scaler, "interval = ");
    m->dynamic = m->growth > 1 && m->backoff > 0 && m->backoff < 1 && m->interval > 0;
    const double halvings = m->dynamic ? -log2(m->backoff) : 1;
    m->stalled_after = backoffs(-log2(STALLED_AT), halvings);
    if (!m->dynamic) return;
    m->health = AMP_SCALE_SETTLING;
    m->falling_after = backoffs(GROWTHS_TO_FALL * log2(m->growth), halvings);
}

/* ---- what steps say ---------------------------------------------------------------------------------------------- */

/* The scale grows, if it is not at its largest, after |interval| steps without an overflow. */
static bool is_settled(const amp_scale_monitor *m) { return m->growths || m->steps > m->interval; }

static amp_scale_health judge(const amp_scale_monitor *m, bool at_floor) {
    if (at_floor || m->skipped_in_a_row >= m->stalled_after) return AMP_SCALE_STALLED;
    if (!m->dynamic) return AMP_SCALE_STEADY;
    if (!is_settled(m)) return AMP_SCALE_SETTLING;
    if (m->falls > m->falling_after) return AMP_SCALE_FALLING;
    return m->falls ? AMP_SCALE_CEILING : AMP_SCALE_STEADY;
}

static void note_scale(amp_scale_monitor *m, float scale) {
    if (m->steps && m->dynamic && scale > m->scale) {
        m->growths++;
        m->falls = 0;
    }
    if (!m->steps || scale < m->lowest) m->lowest = scale;
    if (scale > m->highest) m->highest = scale;
    m->scale = scale;
}

static void note_overflow(amp_scale_monitor *m) {
    m->skipped++;
    m->skipped_in_a_row++;
    if (is_settled(m)) m->falls++;
    if (m->since_overflow >= 0) m->between_overflows = m->since_overflow + 1;
    m->since_overflow = 0;
}

static void note_update(amp_scale_monitor *m) {
    m->skipped_in_a_row = 0;
    if (m->since_overflow < 0) return;
    m->since_overflow++;
    if (m->since_overflow >= m->interval) m->falls = 0; /* at its largest it does not grow */
}

int32_t amp_scale_monitor_step(amp_scale_monitor *m, const amp_step_report *report) {
    if (!m || !report || !report->complete || m->health == AMP_SCALE_UNSCALED) return 0;
    const amp_scale_health before = m->health;
    note_scale(m, report->scale);
    m->steps++;
    if (report->skipped) note_overflow(m);
    else note_update(m);
    m->health = judge(m, report->at_floor != 0);
    return m->health != before;
}

const char *amp_scale_health_name(amp_scale_health health) {
    static const char *const names[] = {"", "settling", "steady", "at its ceiling", "falling", "stalled"};
    return (unsigned)health < sizeof names / sizeof *names ? names[health] : "";
}
