/* values.c: what the values of a running program held, as an observer saw them. */
#include "compiler/trace/trace.h"

#include <math.h>

#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"

TraceValues trace_values_new(const Func *f) {
    Arena *a = f->module->arena;
    TraceValues v = {.f = f, .names = ir_told_names(f), .range = arena_array(a, amp_trace_range, f->values.len + 1)};
    for (int i = 1; i < f->values.len; i++) table_set(a, &v.by_name, v.names[i], (void *)(uintptr_t)&v.names[i]);
    v.is_written = arena_array(a, bool, f->values.len + 1);
    trace_values_clear(&v);
    return v;
}

void trace_values_clear(TraceValues *v) {
    memset(v->range, 0, (size_t)(v->f->values.len + 1) * sizeof *v->range);
    memset(v->is_written, 0, (size_t)(v->f->values.len + 1) * sizeof *v->is_written);
}

bool trace_is_known(const TraceValues *v, Val value) { return v->range[value.id].name != NULL; }

bool trace_is_finite(const TraceValues *v, Val value) {
    const amp_trace_range *r = &v->range[value.id];
    return r->infinities == 0 && r->nans == 0;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* It rounds to zero, its even neighbour. */
static const double HALF_OF_THE_SMALLEST_F16 = 0x1p-25;

static void count(amp_trace_range *r, const float *data) {
    double least = INFINITY, largest = -INFINITY;
    for (int64_t i = 0; i < r->count; i++) {
        const double x = (double)data[i];
        r->nans += isnan(x) != 0;
        r->infinities += isinf(x) != 0;
        r->zeros += x == 0;
        r->flushed += x != 0 && fabs(x) <= HALF_OF_THE_SMALLEST_F16;
        if (!isfinite(x)) continue;
        if (x < least) least = x;
        if (x > largest) largest = x;
    }
    r->least = least <= largest ? least : NAN;
    r->largest = least <= largest ? largest : NAN;
}

/* What is read as f32. */
static bool is_float(amp_dtype t) { return amp_class_of(t) == AMP_CLASS_FLOAT; }

static amp_status note_operand(TraceValues *v, Val value, const amp_observed_kernel *kernel, int32_t index,
                               const amp_operand *operand, const amp_allocator *allocator, amp_error *err) {
    amp_trace_range *r = &v->range[value.id];
    const size_t bytes = (size_t)operand->count * sizeof(float);
    float *data = amp_alloc(allocator, bytes ? bytes : 1);
    if (!data) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to look at %s", operand->name);
    const amp_status status = kernel->read(kernel, index, data, bytes, err);
    *r = (amp_trace_range){.name = v->names[value.id], .dtype = operand->dtype, .count = status ? 0 : operand->count};
    count(r, data);
    amp_free(allocator, data, bytes ? bytes : 1);
    return status;
}

/* A model.so of an earlier compiler has the names of its IR. */
static Val value_named(const TraceValues *v, const char *name) {
    const char *const *at = table_get(&v->by_name, name);
    return at ? (Val){(uint32_t)(at - v->names)} : ir_find(v->f, name);
}

amp_status trace_values_note(TraceValues *v, const amp_observed_kernel *kernel, const amp_allocator *allocator,
                             amp_error *err) {
    amp_operand operand;
    for (int32_t i = 0; kernel->operand(kernel, i, &operand); i++) {
        const Val value = value_named(v, operand.name);
        if (!value.id || !operand.count || !is_float(operand.dtype)) continue;
        if (operand.written) v->is_written[value.id] = true;
        if (operand.written || !trace_is_known(v, value))
            AMP_TRY(note_operand(v, value, kernel, i, &operand, allocator, err));
    }
    return AMP_OK;
}
