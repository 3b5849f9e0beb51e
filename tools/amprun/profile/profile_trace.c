/* profile_trace.c: see profile.h.
 *
 * One process, and one thread in it whose slices are the calls of amp_step, and in each of them the kernels that it ran
 * one after the other.
 */
#include "tools/amprun/profile/profile.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tools/roofline/roofline.h"

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* What ends with end_event; between is what the viewer shows of it. */
static void begin_event(amp_json_writer *w, const char *phase, const char *name) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "ph", phase);
    amp_json_put_string(w, "name", name);
    amp_json_put_int(w, "pid", getpid());
    amp_json_put_int(w, "tid", getpid());
    if (*phase == 'M') amp_json_begin_object(w, "args");
}

static void end_event(amp_json_writer *w) {
    amp_json_end_object(w);
    amp_json_end_object(w);
}

/* The name of the process or of the thread. */
static void put_name(amp_json_writer *w, const char *what, const char *name) {
    begin_event(w, "M", what);
    amp_json_put_string(w, "name", name);
    end_event(w);
}

/* Times of the format are microseconds. */
static void begin_slice(amp_json_writer *w, const char *name, const char *category, int64_t begin, int64_t end) {
    begin_event(w, "X", name);
    amp_json_put_string(w, "cat", category);
    amp_json_put_double(w, "ts", 1e-3 * (double)begin);
    amp_json_put_double(w, "dur", 1e-3 * (double)(end - begin));
    amp_json_begin_object(w, "args");
}

static void put_call(amp_json_writer *w, const Recording *r, const RecordedCall *c) {
    char name[64];
    if (r->model.accumulate > 1)
        snprintf(name, sizeof name, "step %" PRId64 ", micro-batch %d", c->iteration, c->micro + 1);
    else snprintf(name, sizeof name, "step %" PRId64, c->iteration);
    begin_slice(w, name, "step", c->begin, c->end);
    amp_json_put_int(w, "samples", c->samples);
    amp_json_put_bool(w, "skipped", c->skipped);
    end_event(w);
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
        return (KernelFacts){c->name, c->title, cuda_kernel_kind(c), c->line, c->operands.count, c->operands.at};
    }
    const amp_model_kernel *c = &k->program->kernels[k->index];
    return (KernelFacts){c->name, c->title, c->kind, c->line, c->operand_count, c->operands};
}

/* "x.f16 f16, fc1.weight f32": operands that the kernel writes, or those that it does not. */
static void put_operands(amp_json_writer *w, const char *what, const RecordedKernel *k, const KernelFacts *f,
                         bool written) {
    char text[1024] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < f->operand_count && at < sizeof text; i++) {
        const amp_model_buffer *b = &k->program->buffers[f->operands[i]];
        if (b->kind == AMP_BUFFER_FLAG || kernel_writes(k->program, k->index, f->operands[i]) != written) continue;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s", at ? ", " : "", b->name ? b->name : "?",
                               amp_dtype_name((amp_dtype)b->dtype));
    }
    if (at) amp_json_put_string(w, what, text);
}

static void put_kernel(amp_json_writer *w, const Recording *r, const RecordedKernel *k) {
    const KernelFacts f = facts_of(k);
    char source[AMP_FILE_PATH];
    begin_slice(w, f.title ? f.title : f.name, kernel_kind_name(f.kind), k->begin, k->end);
    amp_json_put_string(w, "program", k->program->name);
    amp_json_put_string(w, "kernel", f.name);
    amp_json_put_double(w, "bytes", k->work.bytes);
    amp_json_put_double(w, "flops", k->work.flops);
    put_operands(w, "reads", k, &f, false);
    put_operands(w, "writes", k, &f, true);
    snprintf(source, sizeof source, "%s:%" PRIu32, r->model.source_name, f.line);
    if (f.line) amp_json_put_string(w, "source", source);
    end_event(w);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* In the order of their times. */
static void put_all(amp_json_writer *w, const Recording *r) {
    char name[256];
    snprintf(name, sizeof name, PROFILE_TRACE_PROCESS "%s", r->model.name);
    amp_json_begin_object(w, NULL);
    amp_json_begin_array(w, "traceEvents");
    put_name(w, "process_name", name);
    put_name(w, "thread_name", "steps");
    for (int32_t c = 0, k = 0; c < r->calls; c++) {
        put_call(w, r, &r->call[c]);
        for (; k < r->kernels && r->kernel[k].call == c; k++) put_kernel(w, r, &r->kernel[k]);
    }
    amp_json_end_array(w);
    amp_json_end_object(w);
}

amp_status profile_trace_write(const Recording *r, const char *path, amp_error *err) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    put_all(&w, r);
    amp_status status = amp_json_writer_status(&w, err)
                            ? amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the trace", path)
                            : amp_file_replace(path, w.data, w.size, NULL, err);
    amp_json_writer_free(&w);
    return status;
}
