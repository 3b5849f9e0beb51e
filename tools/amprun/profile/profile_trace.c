/* profile_trace.c: see profile_trace.h.
 *
 * One process, and one thread in it whose slices are the calls of amp_step, and in each of them the kernels that it ran
 * one after the other.  Names are written in full: readers that intern them again make them no larger in memory.
 */
#include "tools/amprun/profile/profile_trace.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/model/cuda_launch.h"
#include "tools/amprun/kernel_kinds.h"
#include "tools/amprun/protobuf.h"

/* messages Trace and TracePacket */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10, /* trusted_packet_sequence_id */
    PACKET_TRACK_EVENT = 11,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_TRACK_DESCRIPTOR = 60
};
enum { SEQUENCE_ID = 1, SEQUENCE_STARTS = 1 /* SEQ_INCREMENTAL_STATE_CLEARED */ };
/* messages ClockSnapshot and Clock; enum BuiltinClock */
enum { SNAPSHOT_CLOCKS = 1, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { CLOCK_OF_DAY = 1, CLOCK_STEADY = 3, CLOCK_BOOT = 6 };
/* messages TrackDescriptor, ProcessDescriptor and ThreadDescriptor */
enum { TRACK_UUID = 1, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { UUID_PROCESS = 1, UUID_THREAD = 2 };
/* messages TrackEvent, DebugAnnotation and SourceLocation */
enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_SOURCE = 33
};
enum { SLICE_BEGIN = 1, SLICE_END = 2 };
enum { ANNOTATION_UINT = 3, ANNOTATION_DOUBLE = 5, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum { SOURCE_FILE = 2, SOURCE_LINE = 4 };

typedef struct Writer {
    const Recording *recording;
    Message trace;
    int64_t to_boot; /* from the recording's clock to the trace's */
} Writer;

/* ---- packets ----------------------------------------------------------------------------------------------------- */

static size_t begin_packet(Writer *w) {
    const size_t packet = message_begin(&w->trace, TRACE_PACKET);
    message_uint(&w->trace, PACKET_SEQUENCE, SEQUENCE_ID);
    return packet;
}

static int64_t nanoseconds_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void put_clock(Message *m, uint64_t id, int64_t time) {
    const size_t clock = message_begin(m, SNAPSHOT_CLOCKS);
    message_uint(m, CLOCK_ID, id);
    message_uint(m, CLOCK_TIME, (uint64_t)time);
    message_end(m, clock);
}

/* The same moment by all clocks: times of a trace are those since the machine was started. */
static void put_clocks(Writer *w) {
    const int64_t boot = nanoseconds_of(CLOCK_BOOTTIME), steady = amp_nanoseconds();
    const size_t packet = begin_packet(w);
    message_uint(&w->trace, PACKET_SEQUENCE_FLAGS, SEQUENCE_STARTS);
    const size_t snapshot = message_begin(&w->trace, PACKET_CLOCK_SNAPSHOT);
    put_clock(&w->trace, CLOCK_BOOT, boot);
    put_clock(&w->trace, CLOCK_STEADY, steady);
    put_clock(&w->trace, CLOCK_OF_DAY, nanoseconds_of(CLOCK_REALTIME));
    message_end(&w->trace, snapshot);
    message_end(&w->trace, packet);
    w->to_boot = boot - steady;
}

static void put_process(Writer *w) {
    Message *m = &w->trace;
    char name[256];
    snprintf(name, sizeof name, PROFILE_TRACE_PROCESS "%s", w->recording->model->desc.name);
    const size_t packet = begin_packet(w), track = message_begin(m, PACKET_TRACK_DESCRIPTOR);
    message_uint(m, TRACK_UUID, UUID_PROCESS);
    const size_t process = message_begin(m, TRACK_PROCESS);
    message_int(m, PROCESS_PID, getpid());
    message_text(m, PROCESS_NAME, name);
    message_end(m, process);
    message_end(m, track);
    message_end(m, packet);
}

static void put_thread(Writer *w) {
    Message *m = &w->trace;
    const size_t packet = begin_packet(w), track = message_begin(m, PACKET_TRACK_DESCRIPTOR);
    message_uint(m, TRACK_UUID, UUID_THREAD);
    message_uint(m, TRACK_PARENT, UUID_PROCESS);
    const size_t thread = message_begin(m, TRACK_THREAD);
    message_int(m, THREAD_PID, getpid());
    message_int(m, THREAD_TID, getpid());
    message_text(m, THREAD_NAME, "steps");
    message_end(m, thread);
    message_end(m, track);
    message_end(m, packet);
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

typedef struct Slice {
    size_t packet, event;
} Slice;

static Slice begin_event(Writer *w, int64_t time, int type) {
    Message *m = &w->trace;
    Slice s = {.packet = begin_packet(w)};
    message_uint(m, PACKET_TIMESTAMP, (uint64_t)(time + w->to_boot));
    s.event = message_begin(m, PACKET_TRACK_EVENT);
    message_uint(m, EVENT_TRACK, UUID_THREAD);
    message_int(m, EVENT_TYPE, type);
    return s;
}

static void end_event(Writer *w, Slice s) {
    message_end(&w->trace, s.event);
    message_end(&w->trace, s.packet);
}

static void put_slice_end(Writer *w, int64_t time) { end_event(w, begin_event(w, time, SLICE_END)); }

static size_t begin_annotation(Message *m, const char *name) {
    const size_t annotation = message_begin(m, EVENT_ANNOTATION);
    message_text(m, ANNOTATION_NAME, name);
    return annotation;
}

static void annotate_text(Message *m, const char *name, const char *text) {
    const size_t annotation = begin_annotation(m, name);
    message_text(m, ANNOTATION_TEXT, text);
    message_end(m, annotation);
}

static void annotate_uint(Message *m, const char *name, uint64_t value) {
    const size_t annotation = begin_annotation(m, name);
    message_uint(m, ANNOTATION_UINT, value);
    message_end(m, annotation);
}

static void annotate_double(Message *m, const char *name, double value) {
    const size_t annotation = begin_annotation(m, name);
    message_double(m, ANNOTATION_DOUBLE, value);
    message_end(m, annotation);
}

static void put_call(Writer *w, const RecordedCall *c) {
    char name[64];
    if (w->recording->model->accumulate > 1)
        snprintf(name, sizeof name, "step %" PRId64 ", micro-batch %d", c->iteration, c->micro + 1);
    else snprintf(name, sizeof name, "step %" PRId64, c->iteration);
    const Slice s = begin_event(w, c->begin, SLICE_BEGIN);
    message_text(&w->trace, EVENT_CATEGORY, "step");
    message_text(&w->trace, EVENT_NAME, name);
    annotate_uint(&w->trace, "samples", (uint64_t)c->samples);
    annotate_uint(&w->trace, "skipped", c->skipped);
    end_event(w, s);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* What both kinds of tables say of a kernel. */
typedef struct KernelFacts {
    const char *name, *title;
    uint32_t kind, line, operand_count;
    const uint32_t *operands;
} KernelFacts;

static KernelFacts facts_of(const RecordedKernel *k) {
    if (k->program->cuda_kernels) {
        const amp_model_cuda_kernel *c = &k->program->cuda_kernels[k->index];
        return (KernelFacts){c->name, c->title, amp_cuda_kind(c), c->line, c->operands.count, c->operands.at};
    }
    const amp_model_kernel *c = &k->program->kernels[k->index];
    return (KernelFacts){c->name, c->title, c->kind, c->line, c->operand_count, c->operands};
}

/* "x.f16 f16, fc1.weight f32": operands that the kernel writes, or those that it does not. */
static void annotate_operands(Message *m, const char *what, const RecordedKernel *k, const KernelFacts *f,
                              bool written) {
    char text[1024] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < f->operand_count && at < sizeof text; i++) {
        const amp_model_buffer *b = &k->program->buffers[f->operands[i]];
        if (b->kind == AMP_BUFFER_FLAG || kernel_writes(k->program, k->index, f->operands[i]) != written) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s", at ? ", " : "", b->name ? b->name : "?",
                               amp_dtype_name((amp_dtype)b->dtype));
    }
    if (at) annotate_text(m, what, text);
}

static void put_source(Message *m, const char *file, uint32_t line) {
    if (!line) return;
    const size_t source = message_begin(m, EVENT_SOURCE);
    message_text(m, SOURCE_FILE, file);
    message_uint(m, SOURCE_LINE, line);
    message_end(m, source);
}

static void put_kernel(Writer *w, const RecordedKernel *k) {
    Message *m = &w->trace;
    const KernelFacts f = facts_of(k);
    const Slice s = begin_event(w, k->begin, SLICE_BEGIN);
    message_text(m, EVENT_CATEGORY, kernel_kind_name(f.kind));
    message_text(m, EVENT_NAME, f.title ? f.title : f.name);
    annotate_text(m, "program", k->program->name);
    annotate_text(m, "kernel", f.name);
    annotate_double(m, "bytes", k->work.bytes);
    annotate_double(m, "flops", k->work.flops);
    annotate_operands(m, "reads", k, &f, false);
    annotate_operands(m, "writes", k, &f, true);
    put_source(m, w->recording->model->desc.source_name, f.line);
    end_event(w, s);
    put_slice_end(w, k->end);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* In the order of their times. */
static void put_all(Writer *w) {
    const Recording *r = w->recording;
    put_clocks(w);
    put_process(w);
    put_thread(w);
    for (int32_t c = 0, k = 0; c < r->calls; c++) {
        put_call(w, &r->call[c]);
        for (; k < r->kernels && r->kernel[k].call == c; k++) put_kernel(w, &r->kernel[k]);
        put_slice_end(w, r->call[c].end);
    }
}

amp_status profile_trace_write(const Recording *r, const char *path, amp_error *err) {
    Writer w = {.recording = r};
    put_all(&w);
    amp_status status = w.trace.failed ? amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the trace", path)
                                       : amp_file_replace(path, w.trace.data, w.trace.size, NULL, err);
    message_free(&w.trace);
    return status;
}
