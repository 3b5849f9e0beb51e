/* scale_watch.c: see training.h. */
#include "amp/train.h"
#include "tools/amprun/train/training.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "tools/amprun/amprun.h"

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static bool is_ordinary(const amp_scale_monitor *m) { return m->health < AMP_SCALE_FALLING; }

const char *scale_watch_note(const amp_scale_monitor *m) {
    return is_ordinary(m) ? "" : amp_scale_health_name(m->health);
}

void scale_watch_warn(const amp_scale_monitor *m, int64_t iteration) {
    char between[64] = "";
    if (m->between_overflows > 0)
        snprintf(between, sizeof between, ", %" PRId64 " steps between the last two", m->between_overflows);
    if (m->health == AMP_SCALE_FALLING)
        report_text("warning: step %" PRId64
                    ": the loss scale is falling: %d overflows since it last grew%s, the scale "
                    "is %g; values or gradients of an op outgrow their type (docs/seeing-precision.md)",
                    iteration, m->falls, between, (double)m->scale);
    if (m->health == AMP_SCALE_STALLED)
        report_text("warning: step %" PRId64 ": the loss scale is stalled at %g, %d steps in a row were skipped: the "
                    "scale is not to blame; look for what is not finite in data, weights or an op "
                    "(docs/seeing-precision.md)",
                    iteration, (double)m->scale, m->skipped_in_a_row);
}

/* ---- what a checkpoint keeps ------------------------------------------------------------------------------------- */

/* What was counted; the rest is the model's. */
typedef enum FieldType { FIELD_I32, FIELD_I64, FIELD_F32 } FieldType;
static const struct {
    const char *name;
    FieldType type;
    size_t at;
} fields[] = {
#define FIELD(type, name)                                                                                              \
    { #name, FIELD_##type, offsetof(amp_scale_monitor, name) }
    FIELD(I32, health),
    FIELD(F32, scale),
    FIELD(F32, lowest),
    FIELD(F32, highest),
    FIELD(I32, falls),
    FIELD(I64, steps),
    FIELD(I32, skipped_in_a_row),
    FIELD(I64, skipped),
    FIELD(I64, growths),
    FIELD(I64, since_overflow),
    FIELD(I64, between_overflows),
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof fields[0] };
static const size_t field_bytes[] = {[FIELD_I32] = 4, [FIELD_I64] = 8, [FIELD_F32] = 4};
_Static_assert(sizeof(amp_scale_health) == 4, "it is kept as an int32");

static double read_field(const amp_scale_monitor *m, int i) {
    const char *at = (const char *)m + fields[i].at;
    int32_t i32;
    int64_t i64;
    float f32;
    switch (fields[i].type) {
    case FIELD_I32: memcpy(&i32, at, sizeof i32); return i32;
    case FIELD_I64: memcpy(&i64, at, sizeof i64); return (double)i64;
    default: memcpy(&f32, at, sizeof f32); return (double)f32;
    }
}

static void write_field(amp_scale_monitor *m, int i, double value) {
    char *at = (char *)m + fields[i].at;
    const int32_t i32 = (int32_t)value;
    const int64_t i64 = (int64_t)value;
    const float f32 = (float)value;
    switch (fields[i].type) {
    case FIELD_I32: memcpy(at, &i32, sizeof i32); break;
    case FIELD_I64: memcpy(at, &i64, sizeof i64); break;
    default: memcpy(at, &f32, sizeof f32); break;
    }
}

void scale_watch_put(amp_json_writer *w, const amp_scale_monitor *m) {
    if (!m->steps) return;
    amp_json_begin_object(w, "scale_monitor");
    for (int i = 0; i < FIELDS; i++) amp_json_put_double(w, fields[i].name, read_field(m, i));
    amp_json_end_object(w);
}

/* A count is from -1 to 2^31 in any training that ends. */
static bool is_usable(double value) { return value >= -1 && value <= INT32_MAX; }

void scale_watch_take(const amp_json *from, amp_scale_monitor *m) {
    const amp_json *kept = amp_json_get(from, "scale_monitor");
    for (int i = 0; i < FIELDS; i++) {
        const amp_json *v = amp_json_get(kept, fields[i].name);
        if (v && v->kind == AMP_JSON_NUMBER && (fields[i].type == FIELD_F32 || is_usable(v->number.value)))
            write_field(m, i, v->number.value);
    }
}

void scale_watch_go_on(amp_scale_monitor *m, const amp_model *model) {
    amp_scale_monitor fresh;
    amp_scale_monitor_start(&fresh, model);
    const bool goes_on = m->steps > 0 && fresh.health && (unsigned)m->health <= AMP_SCALE_STALLED;
    for (int i = 0; goes_on && i < FIELDS; i++)
        memcpy((char *)&fresh + fields[i].at, (const char *)m + fields[i].at, field_bytes[fields[i].type]);
    *m = fresh;
}
