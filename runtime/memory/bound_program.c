/* bound_program.c: see bound_program.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "runtime/memory/bound_program.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/dtypes.h"
#include "base/error.h"
#include "runtime/memory/device_memory.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static const size_t HUGE_PAGE = 2 << 20;

static size_t arena_align(size_t bytes) { return bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : AMP_MEMORY_ALIGN; }

/* Temporaries are written before they are read, so zeroing is not for the kernels: it takes the page faults before the
 * first step. */
char *amp_arena_alloc(const amp_allocator *allocator, size_t bytes) {
    size_t align = arena_align(bytes);
    char *arena = amp_alloc_aligned(allocator, bytes, align);
    if (!arena) return NULL;
    /* An allocator that does not align so far gets no huge pages: advice, so its failure changes nothing. */
    if (align == HUGE_PAGE) (void)madvise(arena, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return memset(arena, 0, bytes);
}

void amp_arena_free(const amp_allocator *allocator, char *arena, size_t bytes) {
    amp_free_aligned(allocator, arena, bytes, arena_align(bytes));
}

/* ---- memory of buffers ------------------------------------------------------------------------------------------- */

static bool is_temp(const amp_bound_program *b, int32_t i) { return b->program->buffers[i].kind == AMP_BUFFER_TEMP; }

static amp_status allocate_each(amp_bound_program *b, const amp_allocator *allocator, amp_error *err) {
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        if (!is_temp(b, i)) continue;
        b->buffers[i] = amp_alloc_zeroed_aligned(allocator, b->plan.bytes[i], AMP_MEMORY_ALIGN);
        if (!b->buffers[i])
            return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the %zu bytes of %s", b->program->name,
                            b->plan.bytes[i], b->program->buffers[i].name);
    }
    return AMP_OK;
}

static amp_status allocate_temporaries(amp_bound_program *b, const amp_allocator *allocator, amp_error *err) {
    if (b->options.sharing == AMP_OWN_ALLOCATIONS) return allocate_each(b, allocator, err);
    if (b->options.sharing == AMP_SHARE_ARENA) return AMP_OK;
    b->arena = amp_arena_alloc(allocator, b->plan.arena);
    if (!b->arena)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of activations", b->program->name,
                        b->plan.arena);
    amp_bound_program_use_arena(b, b->arena);
    return AMP_OK;
}

/* Flags, then outputs, then watched values in one allocation. */
static amp_status allocate_kept(amp_bound_program *b, const amp_allocator *allocator, amp_error *err) {
    b->kept = amp_alloc_zeroed_aligned(allocator, b->kept_bytes, AMP_MEMORY_ALIGN);
    if (!b->kept)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of results", b->program->name,
                        b->kept_bytes);
    return AMP_OK;
}

static void bind_buffers(amp_bound_program *b, void *const *states) {
    char *outputs = b->kept + b->plan.flags, *watched = outputs + b->plan.outputs;
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        switch (buffer->kind) {
        case AMP_BUFFER_FLAG: b->buffers[i] = b->kept + b->plan.offset[i]; break;
        case AMP_BUFFER_OUTPUT: b->buffers[i] = outputs + b->plan.offset[i]; break;
        case AMP_BUFFER_WATCH: b->buffers[i] = b->options.watch ? watched + b->plan.offset[i] : NULL; break;
        case AMP_BUFFER_STATE: b->buffers[i] = states[buffer->index]; break;
        default: break; /* INPUT: with each call; TEMP: allocate_temporaries */
        }
    }
}

static size_t buffers_bytes(const amp_bound_program *b) {
    return (size_t)b->program->buffer_count * sizeof *b->buffers;
}

static size_t scalar_at_bytes(const amp_bound_program *b) {
    return (size_t)b->program->buffer_count * sizeof *b->scalar_at;
}

static amp_status make_tables(amp_bound_program *b, const amp_allocator *allocator, amp_error *err) {
    b->buffers = amp_alloc_zeroed(allocator, buffers_bytes(b));
    if (b->buffers && b->options.device_memory) b->scalar_at = amp_alloc_zeroed(allocator, scalar_at_bytes(b));
    if (b->buffers && (b->scalar_at || !b->options.device_memory)) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the buffers of %s", b->program->name);
}

amp_status amp_bound_program_make(amp_bound_program *b, const amp_program *program, const amp_bound_options *options,
                                  void *const *states, const amp_allocator *allocator, amp_error *err) {
    *b = (amp_bound_program){.options = *options};
    amp_memory_plan_options plan = {.capacity = options->capacity,
                                    .separate = !amp_shares_memory(options->sharing),
                                    .align = options->device_memory ? AMP_DEVICE_MEMORY_ALIGN : AMP_MEMORY_ALIGN};
    AMP_TRY(amp_memory_plan_make(&b->plan, program, &plan, allocator, err));
    b->program = program;
    const bool has_memory = !options->device_memory && !options->sizes_only;
    if (!options->device_memory)
        b->kept_bytes = b->plan.flags + b->plan.outputs + (options->watch ? b->plan.watched : 0);
    amp_status status = make_tables(b, allocator, err);
    if (!status && has_memory) status = allocate_kept(b, allocator, err);
    if (!status && has_memory) status = allocate_temporaries(b, allocator, err);
    if (!status && has_memory) bind_buffers(b, states);
    if (status) amp_bound_program_free(b, allocator);
    return status;
}

void amp_bound_program_free(amp_bound_program *b, const amp_allocator *allocator) {
    if (!b->program) return;
    bool each = b->options.sharing == AMP_OWN_ALLOCATIONS && !b->options.device_memory;
    for (int32_t i = 0; b->buffers && i < b->program->buffer_count; i++)
        if (each && is_temp(b, i)) amp_free_aligned(allocator, b->buffers[i], b->plan.bytes[i], AMP_MEMORY_ALIGN);
    amp_free(allocator, b->scalar_at, scalar_at_bytes(b));
    amp_arena_free(allocator, b->arena, b->plan.arena);
    amp_free_aligned(allocator, b->kept, b->kept_bytes, AMP_MEMORY_ALIGN);
    amp_free(allocator, b->buffers, buffers_bytes(b));
    amp_memory_plan_free(&b->plan, allocator);
    *b = (amp_bound_program){0};
}

size_t amp_bound_program_arena_bytes(const amp_bound_program *b) {
    return b->program && b->options.sharing == AMP_SHARE_ARENA ? b->plan.arena : 0;
}

void amp_bound_program_use_arena(amp_bound_program *b, char *arena) {
    for (int32_t i = 0; i < b->program->buffer_count; i++)
        if (is_temp(b, i)) b->buffers[i] = arena + b->plan.offset[i];
}

size_t amp_bound_program_temporaries(const amp_bound_program *b) {
    size_t bytes = 0;
    if (!b->program || b->options.sharing == AMP_SHARE_ARENA) return 0;
    if (b->options.sharing != AMP_OWN_ALLOCATIONS) return b->plan.arena;
    for (int32_t i = 0; i < b->program->buffer_count; i++)
        if (is_temp(b, i)) bytes += b->plan.bytes[i];
    return bytes;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

enum { RUN = 32 }; /* elements of a row that are together in PANELS */

static void read_element(const amp_model_buffer *b, const void *memory, int64_t at, void *to, int64_t index) {
    switch (b->dtype) {
    case AMP_DT_I64: ((int64_t *)to)[index] = ((const int64_t *)memory)[at]; break;
    case AMP_DT_BOOL: ((uint8_t *)to)[index] = amp_load_element(memory, b->storage, at) != 0; break;
    default:
        amp_store_element(to, amp_readable_dtype(b->dtype), index, amp_load_element(memory, b->storage, at));
        break;
    }
}

/* Where rows are runs in memory: no element is looked for, and what is read is most of what a session has. */
static void read_runs(const amp_model_buffer *b, const void *memory, int64_t rows, int64_t cols, float *to) {
    const int64_t run = b->layout == AMP_LAYOUT_ROWS ? cols : RUN;
    for (int64_t c = 0; c < cols; c += run)
        for (int64_t r = 0; r < rows; r++)
            amp_load_run(memory, b->storage, amp_layout_index(b->layout, rows, cols, r, c),
                         cols - c < run ? cols - c : run, to + r * cols + c);
}

static bool has_runs(const amp_model_buffer *b) {
    const bool is_float = amp_class_of(b->dtype) == AMP_CLASS_FLOAT;
    return is_float && amp_class_of(b->storage) == AMP_CLASS_FLOAT &&
           (b->layout == AMP_LAYOUT_ROWS || b->layout == AMP_LAYOUT_PANELS);
}

/* Of the last dimension, in memory. */
static int64_t pitch_of(const amp_model_buffer *b, amp_sizes sizes) {
    return b->padding ? amp_model_dim_at(&b->dims[b->rank - 1], sizes) : 1;
}

static int64_t stored_elements(const amp_model_buffer *b, amp_sizes sizes) {
    return amp_model_dim_at(&b->rows, sizes) * amp_model_dim_at(&b->cols, sizes);
}

int64_t amp_buffer_begin(const amp_model_buffer *b) { return b->part ? (int64_t)b->part - 1 : 0; }

int64_t amp_buffer_elements(const amp_model_buffer *b, amp_sizes sizes) {
    const int64_t stored = stored_elements(b, sizes);
    return stored - stored / pitch_of(b, sizes) * b->padding;
}

static void read_padded(const amp_model_buffer *b, const void *memory, amp_sizes sizes, void *to) {
    const int64_t stored = stored_elements(b, sizes), pitch = pitch_of(b, sizes), width = pitch - b->padding;
    for (int64_t row = amp_buffer_begin(b), index = 0; row < stored; row += pitch)
        for (int64_t c = 0; c < width; c++) read_element(b, memory, row + c, to, index++);
}

void amp_buffer_read(const amp_model_buffer *b, const void *memory, amp_sizes sizes, void *to) {
    int64_t rows = amp_model_dim_at(&b->rows, sizes), cols = amp_model_dim_at(&b->cols, sizes);
    if (b->padding) {
        read_padded(b, memory, sizes, to);
        return;
    }
    if (has_runs(b)) {
        read_runs(b, memory, rows, cols, to);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            read_element(b, memory, amp_layout_index(b->layout, rows, cols, r, c), to, r * cols + c);
}

void amp_bound_program_read(const amp_bound_program *bound, int32_t buffer, amp_sizes sizes, void *to) {
    amp_buffer_read(&bound->program->buffers[buffer], bound->buffers[buffer], sizes, to);
}

/* The caller's inputs are the host's in any case. */
static const void *scalar_address(const amp_bound_program *b, int32_t buffer) {
    bool copied = b->scalars && b->scalar_at[buffer] != AMP_NO_SCALAR;
    return copied ? b->scalars + b->scalar_at[buffer] : b->buffers[buffer];
}

double amp_bound_program_scalar(const amp_bound_program *bound, int32_t result) {
    int32_t buffer = bound->program->results[result].buffer;
    return amp_load_element(scalar_address(bound, buffer), bound->program->buffers[buffer].storage, 0);
}

void amp_bound_program_measures(const amp_bound_program *bound, const amp_model *m, int32_t count, double *to) {
    for (int32_t i = 0; i < count; i++) {
        int32_t result = amp_measure_result(m, bound->program, i);
        to[i] = result < 0 ? NAN : amp_bound_program_scalar(bound, result);
    }
}
