/* transfer.c: see transfer.h. */
#include "runtime/device/cuda/transfer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"

/* ---- upload ------------------------------------------------------------------------------------------------------ */

static size_t aligned(size_t bytes) {
    return (bytes + AMP_DEVICE_MEMORY_ALIGN - 1) / AMP_DEVICE_MEMORY_ALIGN * AMP_DEVICE_MEMORY_ALIGN;
}

static bool has_inputs(const amp_program *p) { return p->input_end; }
static bool is_input(const amp_program *p, int32_t i) { return p->buffers[i].kind == AMP_BUFFER_INPUT; }

static size_t input_bytes(const amp_model_buffer *b, amp_sizes sizes) {
    return (size_t)(amp_model_dim_at(&b->rows, sizes) * amp_model_dim_at(&b->cols, sizes)) *
           amp_storage_size(b->storage);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static amp_status make_slot(amp_cuda_upload *g, amp_cuda_upload_slot *s, amp_error *err) {
    amp_cuda_context *c = g->context;
    void *pinned = NULL;
    if (g->staged_bytes) AMP_TRY(AMP_CUDA(c, err, host_alloc, (&pinned, g->staged_bytes, CU_HOST_PORTABLE)));
    s->pinned = pinned;
    AMP_TRY(AMP_CUDA(c, err, mem_alloc, (&s->device, g->slot_bytes)));
    AMP_TRY(AMP_CUDA(c, err, event_create, (&s->arrived, CU_EVENT_DISABLE_TIMING)));
    return AMP_CUDA(c, err, event_create, (&s->consumed, CU_EVENT_DISABLE_TIMING));
}

/* A program may read the header before any inputs were sent. */
static amp_status send_header(amp_cuda_upload *g, amp_error *err) {
    if (!g->header_bytes) return AMP_OK;
    if (g->sent) memcpy(g->sent, g->header, g->header_bytes);
    AMP_TRY(AMP_CUDA(g->context, err, copy_in, (g->block, g->header, g->header_bytes, g->stream)));
    return AMP_CUDA(g->context, err, stream_sync, (g->stream));
}

static amp_status make_sent(amp_cuda_upload *g, const amp_allocator *allocator, amp_error *err) {
    if (!g->inputs || !g->header_bytes) return AMP_OK;
    g->sent = amp_alloc(allocator, g->header_bytes);
    return g->sent ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to keep %zu bytes", g->header_bytes);
}

/* So that reading past the end of one input is seen. */
static amp_status make_separate(amp_cuda_upload *g, const amp_input_room *room, const amp_allocator *allocator,
                                amp_error *err) {
    if (!room->separate) return AMP_OK;
    g->separate = amp_alloc_zeroed(allocator, (size_t)room->count * sizeof *g->separate);
    if (!g->separate) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to list %d inputs", room->count);
    for (int32_t i = 0; i < room->count; i++) {
        if (room->separate[i]) AMP_TRY(AMP_CUDA(g->context, err, mem_alloc, (&g->separate[i], room->separate[i])));
        g->separate_bytes += room->separate[i];
    }
    return AMP_OK;
}

static bool has_indices(const amp_cuda_upload *g) {
    for (int32_t i = 0; g->inputs && i < g->input_count; i++)
        if (g->inputs[i].index_bound) return true;
    return false;
}

amp_status amp_cuda_upload_make(amp_cuda_upload *g, amp_cuda_context *context, const amp_input_room *room,
                                const amp_allocator *allocator, amp_error *err) {
    *g = (amp_cuda_upload){.context = context,
                           .header = room->header,
                           .header_bytes = room->header_bytes,
                           .bytes = aligned(room->header_bytes) + aligned(room->input_bytes),
                           .slot_bytes = aligned(room->header_bytes) + aligned(room->host_bytes),
                           .staged_bytes = aligned(room->header_bytes) + aligned(room->staged_bytes),
                           .input_count = room->count,
                           .inputs = room->inputs,
                           .faults = amp_cuda_pointer(room->faults)};
    if (!g->bytes) return AMP_OK;
    if (g->inputs && !room->host_bytes) g->slot_bytes = g->staged_bytes = 0;
    AMP_TRY(make_sent(g, allocator, err));
    AMP_TRY(AMP_CUDA(context, err, stream_create, (&g->stream, CU_STREAM_NON_BLOCKING)));
    AMP_TRY(AMP_CUDA(context, err, mem_alloc, (&g->block, g->bytes)));
    for (int i = 0; g->slot_bytes && i < AMP_CUDA_UPLOAD_SLOTS; i++) AMP_TRY(make_slot(g, &g->slots[i], err));
    if (has_indices(g)) AMP_TRY(amp_cuda_indices_load(&g->indices, context, err));
    AMP_TRY(make_separate(g, room, allocator, err));
    return send_header(g, err);
}

void amp_cuda_upload_free(amp_cuda_upload *g, const amp_allocator *allocator) {
    amp_cuda_context *c = g->context;
    for (int i = 0; i < AMP_CUDA_UPLOAD_SLOTS; i++) {
        amp_cuda_upload_slot *s = &g->slots[i];
        if (s->pinned) AMP_CUDA_FREE(c, host_free, (s->pinned));
        if (s->device) AMP_CUDA_FREE(c, mem_free, (s->device));
        if (s->arrived) AMP_CUDA_FREE(c, event_destroy, (s->arrived));
        if (s->consumed) AMP_CUDA_FREE(c, event_destroy, (s->consumed));
    }
    for (int32_t i = 0; g->separate && i < g->input_count; i++)
        if (g->separate[i]) AMP_CUDA_FREE(c, mem_free, (g->separate[i]));
    amp_free(allocator, g->separate, (size_t)g->input_count * sizeof *g->separate);
    amp_free(allocator, g->sent, g->header_bytes);
    if (g->block) AMP_CUDA_FREE(c, mem_free, (g->block));
    amp_cuda_indices_free(&g->indices, c);
    if (g->stream) AMP_CUDA_FREE(c, stream_destroy, (g->stream));
    *g = (amp_cuda_upload){0};
}

size_t amp_cuda_upload_bytes(const amp_cuda_upload *g) {
    return AMP_CUDA_UPLOAD_SLOTS * g->slot_bytes + g->bytes + g->separate_bytes;
}

size_t amp_cuda_upload_pinned(const amp_cuda_upload *g) { return AMP_CUDA_UPLOAD_SLOTS * g->staged_bytes; }

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static size_t offset_of(const amp_cuda_upload *g, const amp_program *p, int32_t buffer, amp_sizes sizes) {
    size_t at = aligned(g->header_bytes);
    for (int32_t i = 0; i < buffer; i++)
        if (is_input(p, i)) at += aligned(input_bytes(&p->buffers[i], sizes));
    return at;
}

CuPointer amp_cuda_upload_address(const amp_cuda_upload *g, const amp_program *p, int32_t buffer, amp_sizes sizes) {
    return g->separate ? g->separate[p->buffers[buffer].index] : g->block + offset_of(g, p, buffer, sizes);
}

/* Asks before it waits: two calls later the copy is done, unless the device is far from done. */
static amp_status await(amp_cuda_context *c, CuEvent event, amp_error *err) {
    AMP_TRY(amp_cuda_latch_check(&c->latch, err));
    CuResult result = c->driver.event_query(event);
    if (result == CU_NOT_READY) return AMP_CUDA(c, err, event_sync, (event));
    return amp_cuda_result(&c->driver, &c->latch, CUDA_CALL_event_query, result, err);
}

/* From the block to inputs that are apart. */
static amp_status spread(const amp_cuda_upload *g, const amp_run *run, CuStream compute, amp_error *err) {
    const amp_program *p = run->program;
    for (int32_t i = 0; i < p->input_end; i++) {
        if (!is_input(p, i)) continue;
        CuPointer from = g->block + offset_of(g, p, i, run->sizes), to = amp_cuda_upload_address(g, p, i, run->sizes);
        AMP_TRY(AMP_CUDA(g->context, err, copy, (to, from, input_bytes(&p->buffers[i], run->sizes), compute)));
    }
    return AMP_OK;
}

/* What is on its way to a slot. */
typedef struct Sending {
    amp_cuda_upload *upload;
    amp_cuda_upload_slot *slot;
    size_t started; /* bytes whose copy was */
    size_t end;     /* of those and of what is in pinned memory after them */
} Sending;

static amp_status copy_in(const Sending *x, size_t at, const void *from, size_t bytes, amp_error *err) {
    return AMP_CUDA(x->upload->context, err, copy_in, (x->slot->device + at, from, bytes, x->upload->stream));
}

static amp_status start(Sending *x, amp_error *err) {
    const size_t at = x->started;
    x->started = x->end;
    return at < x->end ? copy_in(x, at, x->slot->pinned + at, x->end - at, err) : AMP_OK;
}

/* The bus is at work on one piece while the next is copied. */
enum { PIECE = 1 << 20 };

static amp_status stage(Sending *x, const void *array, size_t bytes, amp_error *err) {
    for (const char *from = array; bytes;) {
        const size_t room = PIECE - (x->end - x->started), piece = bytes < room ? bytes : room;
        memcpy(x->slot->pinned + x->end, from, piece);
        x->end += piece, from += piece, bytes -= piece;
        if (x->end - x->started == PIECE) AMP_TRY(start(x, err));
    }
    return AMP_OK;
}

/* From where the application has it. */
static amp_status pass(Sending *x, const void *array, size_t bytes, amp_error *err) {
    const size_t at = x->end;
    x->started = x->end += bytes;
    return copy_in(x, at, array, bytes, err);
}

static amp_status send_inputs(Sending *x, const amp_run *run, amp_error *err) {
    const amp_program *p = run->program;
    const bool pinned = run->inputs_in == AMP_INPUTS_PINNED;
    AMP_TRY(stage(x, x->upload->header, x->upload->header_bytes, err));
    if (run->inputs_in) AMP_TRY(start(x, err));
    for (int32_t i = 0; i < p->input_end; i++) {
        if (!is_input(p, i)) continue;
        x->end = aligned(x->end);
        AMP_TRY((pinned ? pass : stage)(x, run->buffers[i], input_bytes(&p->buffers[i], run->sizes), err));
    }
    return pinned ? AMP_OK : start(x, err);
}

static amp_status send_from_host(amp_cuda_upload *g, const amp_run *run, CuStream compute, amp_error *err) {
    amp_cuda_context *c = g->context;
    amp_cuda_upload_slot *s = &g->slots[g->next];
    Sending x = {.upload = g, .slot = s};
    for (size_t i = 0; g->sent && i < g->header_bytes / sizeof *g->sent; i++)
        g->sent[i] = ~((const uint32_t *)g->header)[i]; /* until it is known */
    AMP_TRY(await(c, s->arrived, err));
    AMP_TRY(AMP_CUDA(c, err, stream_wait, (g->stream, s->consumed, 0)));
    const amp_status sent = send_inputs(&x, run, err);
    if (sent) (void)AMP_CUDA(c, NULL, stream_sync, (g->stream)); /* no event is for what is on its way */
    AMP_TRY(sent);
    AMP_TRY(AMP_CUDA(c, err, event_record, (s->arrived, g->stream)));
    g->next = (g->next + 1) % AMP_CUDA_UPLOAD_SLOTS;
    AMP_TRY(AMP_CUDA(c, err, stream_wait, (compute, s->arrived, 0)));
    AMP_TRY(AMP_CUDA(c, err, copy, (g->block, s->device, x.end, compute)));
    if (g->sent) memcpy(g->sent, g->header, g->header_bytes);
    if (g->separate) AMP_TRY(spread(g, run, compute, err));
    return AMP_CUDA(c, err, event_record, (s->consumed, compute));
}

/* ---- inputs in device memory ------------------------------------------------------------------------------------- */

static amp_status take_input(const amp_cuda_upload *g, const amp_run *run, int32_t buffer, CuStream compute,
                             amp_error *err) {
    const amp_model_buffer *b = &run->program->buffers[buffer];
    const CuPointer from = amp_cuda_pointer(run->buffers[buffer]);
    const CuPointer to = amp_cuda_upload_address(g, run->program, buffer, run->sizes);
    const size_t bytes = input_bytes(b, run->sizes);
    if (!g->inputs[b->index].index_bound) return AMP_CUDA(g->context, err, copy, (to, from, bytes, compute));
    const amp_cuda_index_copy indices = {from, to, bytes / sizeof(int32_t), &g->inputs[b->index],
                                         g->faults + (CuPointer)b->index * sizeof(amp_index_fault)};
    return amp_cuda_copy_indices(&g->indices, g->context, &indices, compute, err);
}

/* Sets the words that have changed: none in most steps, or the number of the micro-batch. */
static amp_status set_header(const amp_cuda_upload *g, CuStream compute, amp_error *err) {
    const uint32_t *header = g->header;
    if (!g->header_bytes || !memcmp(g->sent, header, g->header_bytes)) return AMP_OK;
    for (size_t i = 0; i < g->header_bytes / sizeof *header; i++) {
        if (g->sent[i] == header[i]) continue;
        AMP_TRY(AMP_CUDA(g->context, err, fill32, (g->block + i * sizeof *header, header[i], 1, compute)));
        g->sent[i] = header[i];
    }
    return AMP_OK;
}

static amp_status take_inputs(amp_cuda_upload *g, const amp_run *run, CuStream compute, amp_error *err) {
    AMP_TRY(set_header(g, compute, err));
    const size_t words = (size_t)g->input_count * sizeof(amp_index_fault) / sizeof(uint32_t);
    if (g->indices.function) AMP_TRY(AMP_CUDA(g->context, err, fill32, (g->faults, 0, words, compute)));
    for (int32_t i = 0; i < run->program->input_end; i++)
        if (is_input(run->program, i)) AMP_TRY(take_input(g, run, i, compute, err));
    return AMP_OK;
}

/* A run for micro-batches sets their number in the block (amp_cuda_set_batch).  If that changes it, the next inputs set
 * it again. */
static void forget_number(amp_cuda_upload *g, const amp_run *run) {
    const amp_micro_batches *b = &run->batches;
    const CuPointer at = amp_cuda_pointer(b->number) - g->block;
    if (!g->sent || !b->number || at >= g->header_bytes) return;
    const size_t word = at / sizeof *g->sent;
    if (b->count > 1 || g->sent[word] != (uint32_t)b->first) g->sent[word] = ~((const uint32_t *)g->header)[word];
}

amp_status amp_cuda_upload_send(amp_cuda_upload *g, const amp_run *run, CuStream compute, amp_error *err) {
    forget_number(g, run);
    if (!has_inputs(run->program)) return AMP_OK;
    return (run->inputs_in == AMP_INPUTS_DEVICE ? take_inputs : send_from_host)(g, run, compute, err);
}

/* ---- readback ---------------------------------------------------------------------------------------------------- */

amp_status amp_cuda_readback_make(amp_cuda_readback *g, amp_cuda_context *context, CuPointer block, size_t bytes,
                                  amp_error *err) {
    void *pinned = NULL;
    *g = (amp_cuda_readback){.context = context, .block = block, .bytes = bytes};
    if (!bytes) return AMP_OK;
    AMP_TRY(AMP_CUDA(context, err, host_alloc, (&pinned, amp_cuda_readback_bytes(g), CU_HOST_PORTABLE)));
    g->pinned = pinned;
    for (int i = 0; i < AMP_CUDA_READBACK_SLOTS; i++)
        AMP_TRY(AMP_CUDA(context, err, event_create, (&g->copied[i], CU_EVENT_DISABLE_TIMING)));
    return AMP_OK;
}

void amp_cuda_readback_free(amp_cuda_readback *g) {
    for (int i = 0; i < AMP_CUDA_READBACK_SLOTS; i++)
        if (g->copied[i]) AMP_CUDA_FREE(g->context, event_destroy, (g->copied[i]));
    if (g->pinned) AMP_CUDA_FREE(g->context, host_free, (g->pinned));
    *g = (amp_cuda_readback){0};
}

size_t amp_cuda_readback_bytes(const amp_cuda_readback *g) { return AMP_CUDA_READBACK_SLOTS * g->bytes; }

static int slot_of(const amp_cuda_readback *g, int at) { return (g->oldest + at) % AMP_CUDA_READBACK_SLOTS; }

amp_status amp_cuda_readback_start(amp_cuda_readback *g, CuStream compute, amp_error *err) {
    int slot = slot_of(g, g->count);
    if (g->bytes) {
        char *to = g->pinned + (size_t)slot * g->bytes;
        AMP_TRY(AMP_CUDA(g->context, err, copy_out, (to, g->block, g->bytes, compute)));
        AMP_TRY(AMP_CUDA(g->context, err, event_record, (g->copied[slot], compute)));
    }
    g->count++;
    return AMP_OK;
}

/* Whether the oldest copy is done, asked without waiting. */
static amp_status ask_oldest(const amp_cuda_readback *g, bool *done, amp_error *err) {
    AMP_TRY(amp_cuda_latch_check(&g->context->latch, err));
    CuResult result = g->context->driver.event_query(g->copied[g->oldest]);
    *done = result == CU_SUCCESS;
    if (result == CU_NOT_READY) return AMP_OK;
    return amp_cuda_result(&g->context->driver, &g->context->latch, CUDA_CALL_event_query, result, err);
}

amp_status amp_cuda_readback_finish(amp_cuda_readback *g, bool wait, const void **out, amp_error *err) {
    bool done = true;
    *out = NULL;
    if (g->bytes && wait) AMP_TRY(AMP_CUDA(g->context, err, event_sync, (g->copied[g->oldest])));
    if (g->bytes && !wait) AMP_TRY(ask_oldest(g, &done, err));
    if (!done) return AMP_OK;
    *out = g->bytes ? g->pinned + (size_t)g->oldest * g->bytes : (const char *)g;
    g->oldest = slot_of(g, 1);
    g->count--;
    return AMP_OK;
}
