/* recording.c: see profile.h. */
#include "tools/amprun/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static const amp_program *program_named(const amp_tables *t, const char *name) {
    for (int32_t i = 0; i < t->program_count; i++)
        if (!strcmp(t->programs[i].name, name)) return &t->programs[i];
    return NULL;
}

static const amp_program *program_of(const Recording *r, const char *name) {
    const RecordedKernel *before = r->kernels ? &r->kernel[r->kernels - 1] : NULL;
    return before && !strcmp(before->program->name, name) ? before->program : program_named(&r->tables, name);
}

/* A kernel begins where the observer of the one before it returned. */
static void add_kernel(Recording *r, const amp_observed_kernel *kernel, int64_t end) {
    const amp_program *program = program_of(r, kernel->program);
    RecordedKernel *kernels = with_room(r->kernel, r->kernels, &r->kernel_room, sizeof *kernels);
    if (kernels) r->kernel = kernels;
    r->failed |= !kernels;
    if (r->failed || !program) return;
    const int64_t samples = r->call[r->calls - 1].samples;
    r->kernel[r->kernels++] = (RecordedKernel){
        .program = program,
        .index = kernel->index,
        .call = r->calls - 1,
        .begin = r->last_end,
        .end = end,
        .work =
            kernel_work_of(&r->tables, program, kernel->index, (amp_sizes){samples, r->tables.length_most}, r->watched),
    };
}

amp_status recording_see_kernel(void *recording, const amp_observed_kernel *kernel, amp_error *err) {
    Recording *r = recording;
    const int64_t end = amp_nanoseconds();
    (void)err;
    if (!r->failed) add_kernel(r, kernel, end);
    r->last_end = amp_nanoseconds();
    return AMP_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

void recording_begin_call(Recording *r, int32_t micro, int64_t samples) {
    RecordedCall *calls = with_room(r->call, r->calls, &r->call_room, sizeof *calls);
    if (calls) r->call = calls;
    r->failed |= !calls;
    if (r->failed) return;
    r->last_end = amp_nanoseconds();
    r->call[r->calls++] = (RecordedCall){.micro = micro, .samples = samples, .begin = r->last_end};
}

void recording_end_call(Recording *r, const amp_step_report *report) {
    if (r->failed) return;
    RecordedCall *call = &r->call[r->calls - 1];
    call->end = amp_nanoseconds();
    call->iteration = report->iteration + !report->complete;
    call->skipped = report->skipped != 0;
    if (!report->complete) return;
    r->steps++;
    r->step_kernels = r->kernels;
    r->step_calls = r->calls;
}

void recording_keep_steps(Recording *r) {
    r->kernels = r->step_kernels;
    r->calls = r->step_calls;
}

void recording_free(Recording *r) {
    free(r->kernel);
    free(r->call);
    *r = (Recording){0};
}
