/* live_bytes.c: see info.h. */
#include "tools/amprun/info/info.h"

#include <stdlib.h>

#include "base/error.h"

static bool is_temporary(const amp_model_buffer *b) { return b->kind == AMP_BUFFER_TEMP; }

/* ---- sizes and lives --------------------------------------------------------------------------------------------- */

static int by_buffer(const void *a, const void *b) {
    const LiveBuffer *x = a, *y = b;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

static LiveBuffer *owner_of(const LiveBytes *l, int32_t buffer) {
    const LiveBuffer key = {.buffer = buffer};
    return bsearch(&key, l->buffers, (size_t)l->count, sizeof key, by_buffer);
}

/* Memory that a second value takes lives as long as that. */
static void list_buffers(LiveBytes *l, const uint64_t *bytes) {
    const amp_program *p = l->program;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *b = &p->buffers[i];
        if (!is_temporary(b) || b->place) continue;
        l->buffers[l->count++] = (LiveBuffer){i, b->first_kernel, b->last_kernel, bytes[i]};
    }
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *b = &p->buffers[i];
        LiveBuffer *owner = is_temporary(b) && b->place ? owner_of(l, (int32_t)b->place - 1) : NULL;
        if (owner && owner->last < b->last_kernel) owner->last = b->last_kernel;
    }
}

/* ---- by kernel --------------------------------------------------------------------------------------------------- */

static void add_up(LiveBytes *l) {
    const int32_t kernels = l->program->kernel_count;
    uint64_t now = 0;
    for (int32_t i = 0; i < l->count; i++) { /* what begins to live and what ends, as sums that wrap around */
        const LiveBuffer *b = &l->buffers[i];
        if (b->last < 0) continue; /* no kernel uses it */
        l->alive[b->first < 0 ? 0 : b->first] += b->bytes;
        l->alive[b->last + 1] -= b->bytes;
    }
    l->peak = kernels ? 0 : -1;
    for (int32_t k = 0; k < kernels; k++) {
        l->alive[k] = now += l->alive[k];
        if (now > l->peak_bytes) {
            l->peak_bytes = now;
            l->peak = k;
        }
    }
}

amp_status live_bytes_make(LiveBytes *out, const amp_program *program, amp_sizes sizes, amp_error *err) {
    *out = (LiveBytes){.program = program, .peak = -1};
    out->buffers = calloc((size_t)program->buffer_count + 1, sizeof *out->buffers);
    out->alive = calloc((size_t)program->kernel_count + 1, sizeof *out->alive);
    uint64_t *bytes = calloc((size_t)program->buffer_count + 1, sizeof *bytes);
    amp_status status = out->buffers && out->alive && bytes
                            ? amp_program_plan(program, sizes, NULL, bytes, err)
                            : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to look at %s", program->name);
    if (!status) {
        list_buffers(out, bytes);
        add_up(out);
    }
    free(bytes);
    return status;
}

void live_bytes_free(LiveBytes *live) {
    free(live->buffers);
    free(live->alive);
    *live = (LiveBytes){0};
}

int32_t live_buffer_at(const LiveBytes *live, const LiveBuffer *b, int32_t kernel) {
    const amp_program *p = live->program;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *other = &p->buffers[i];
        if (is_temporary(other) && (int32_t)other->place == b->buffer + 1 && other->first_kernel <= kernel &&
            kernel <= other->last_kernel)
            return i;
    }
    return b->buffer;
}
