/* step_cost.c: see step_cost.h. */
#include "tools/ampc/step_cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "tools/roofline/program_time.h"

/* ---- the model --------------------------------------------------------------------------------------------------- */

bool step_is_compiled(const amp_compile_options *o) {
    char head[4] = "";
    int fd;
    if (o->text || amp_file_open(o->name, AMP_FILE_REGULAR, &fd, NULL)) return false;
    const bool whole = read(fd, head, sizeof head) == sizeof head;
    close(fd);
    return whole && !memcmp(head, "\177ELF", sizeof head);
}

/* What is told of the model has been told by the comparison; the smallest instruction set compiles fastest, and has the
 * same tables as all others. */
static amp_status open_model(const amp_compile_options *options, amp_model **out, amp_error *err) {
    amp_compile_options o = *options;
    amp_compile_result *result = NULL;
    size_t size;
    if (step_is_compiled(&o)) return amp_model_load(o.name, NULL, out, err);
    o.emit = AMP_EMIT_SO;
    o.isa = "portable";
    o.diagnostic = NULL;
    AMP_TRY(amp_compile(&o, &result, err));
    const void *data = amp_compile_result_data(result, &size);
    const amp_model_options from = {.struct_size = sizeof from, .bytes = data, .size = size};
    amp_status status = amp_model_load(o.name, &from, out, err);
    amp_compile_result_release(result);
    return status;
}

static amp_status check_batch(const amp_tables *t, const char *name, int64_t batch, amp_error *err) {
    if (batch <= t->batch_most && batch % t->batch_multiple == 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "--batch %lld: %s takes multiples of %lld, %lld at most",
                    (long long)batch, name, (long long)t->batch_multiple, (long long)t->batch_most);
}

/* ---- its step ---------------------------------------------------------------------------------------------------- */

typedef struct StepPart {
    const amp_program *program;
    int64_t times; /* that a step runs it */
} StepPart;

enum { STEP_PARTS = 2 };

static int parts_of(const amp_tables *t, int64_t accumulate, StepPart out[STEP_PARTS]) {
    if (!t->train_step) {
        out[0] = (StepPart){t->infer, 1};
        return 1;
    }
    out[0] = (StepPart){t->train_step, t->apply_step ? accumulate : 1};
    out[1] = (StepPart){t->apply_step, 1};
    return t->apply_step ? 2 : 1;
}

/* Programs run one after the other and share the memory of their temporaries. */
static amp_status add_temporaries(const amp_program *p, amp_sizes sizes, double *most, amp_error *err) {
    uint64_t bytes;
    AMP_TRY(amp_program_plan(p, sizes, &bytes, NULL, err));
    if ((double)bytes > *most) *most = (double)bytes;
    return AMP_OK;
}

static amp_status count_cpu(const amp_tables *t, int64_t accumulate, int64_t batch, StepCost *out, amp_error *err) {
    StepPart parts[STEP_PARTS];
    const int count = parts_of(t, accumulate, parts);
    for (int i = 0; i < count; i++) {
        out->cpu_kernels += (double)(parts[i].program->kernel_count * parts[i].times);
        AMP_TRY(add_temporaries(parts[i].program, (amp_sizes){batch, t->length_most}, &out->cpu_temporaries, err));
    }
    snprintf(out->program, sizeof out->program, "%s", parts[0].program->name);
    out->micro_batches = parts[0].times;
    return AMP_OK;
}

static amp_status count_gpu(const amp_tables *t, int64_t accumulate, const Gpu *gpu, int64_t batch, StepCost *out,
                            amp_error *err) {
    StepPart parts[STEP_PARTS];
    const int count = parts_of(t, accumulate, parts);
    for (int i = 0; i < count; i++) {
        ProgramTime time, full;
        const double times = (double)parts[i].times;
        const ProgramRefusal refusal =
            program_time(gpu, t, parts[i].program, (amp_sizes){batch, t->length_most}, FORM_OWN, NULL, &time);
        if (refusal.why) program_refusal_text(&refusal, gpu, out->no_time, sizeof out->no_time);
        if (!refusal.why &&
            !program_time(gpu, t, parts[i].program, (amp_sizes){batch, t->length_most}, FORM_FP32, NULL, &full).why)
            out->microseconds_f32 += times * full.microseconds;
        out->launches += times * time.launches;
        out->bytes += times * time.bytes;
        out->microseconds += times * time.microseconds;
        AMP_TRY(add_temporaries(parts[i].program, (amp_sizes){batch, t->length_most}, &out->temporaries, err));
    }
    return AMP_OK;
}

static amp_status count(const amp_model *m, const char *name, const Gpu *gpu, int64_t batch, StepCost *out,
                        amp_error *err) {
    amp_model_info info;
    amp_tables cpu, cuda;
    amp_model_get_info(m, &info);
    AMP_TRY(amp_model_get_tables(m, "cpu", &cpu, err));
    AMP_TRY(check_batch(&cpu, name, batch, err));
    AMP_TRY(count_cpu(&cpu, info.accumulate, batch, out, err));
    if (!info.has_cuda) {
        snprintf(out->no_cuda, sizeof out->no_cuda, "%s", info.cuda_missing);
        return AMP_OK;
    }
    AMP_TRY(amp_model_get_tables(m, "cuda", &cuda, err));
    return count_gpu(&cuda, info.accumulate, gpu, batch, out, err);
}

amp_status step_cost(const amp_compile_options *options, const Gpu *gpu, int64_t batch, StepCost *out, amp_error *err) {
    amp_model *model = NULL;
    *out = (StepCost){0};
    AMP_TRY(open_model(options, &model, err));
    amp_status status = count(model, options->name, gpu, batch, out, err);
    amp_model_release(model);
    return status;
}

/* ---- of each kernel ---------------------------------------------------------------------------------------------- */

static void put_time(amp_json_writer *w, const amp_program *p, const amp_model_cuda_kernel *k, const KernelTime *t) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "function", p->name);
    amp_json_put_string(w, "kernel", k->name);
    amp_json_put_double(w, "microseconds", t->microseconds);
    amp_json_put_double(w, "bytes", t->bytes);
    amp_json_put_double(w, "flops", t->flops);
    amp_json_put_int(w, "blocks", t->blocks);
    amp_json_put_string(w, "bound", bound_names[t->bound]);
    amp_json_put_string(w, "instruction", instruction_name(t->instruction));
    amp_json_end_object(w);
}

/* |why| becomes the reason where no time is known. */
static amp_status put_program(amp_json_writer *w, const amp_tables *cuda, const Gpu *gpu, const amp_program *p,
                              int64_t batch, char why[STEP_REASON], amp_error *err) {
    ProgramTime sum;
    KernelTime *each = calloc((size_t)p->kernel_count + 1, sizeof *each);
    if (!each) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d kernels", p->kernel_count);
    const ProgramRefusal refusal =
        program_time(gpu, cuda, p, (amp_sizes){batch, cuda->length_most}, FORM_OWN, each, &sum);
    if (refusal.why) program_refusal_text(&refusal, gpu, why, STEP_REASON);
    for (int32_t i = 0; i < p->kernel_count && !refusal.why; i++) put_time(w, p, &p->cuda_kernels[i], &each[i]);
    free(each);
    return AMP_OK;
}

static amp_status put_times(amp_json_writer *w, const amp_model *m, const char *name, const Gpu *gpu, int64_t batch,
                            amp_error *err) {
    char why[STEP_REASON] = "";
    amp_model_info info;
    amp_tables tables;
    StepPart parts[STEP_PARTS];
    amp_model_get_info(m, &info);
    AMP_TRY(amp_model_get_tables(m, info.has_cuda ? "cuda" : "cpu", &tables, err));
    AMP_TRY(check_batch(&tables, name, batch, err));
    const int count = info.has_cuda ? parts_of(&tables, info.accumulate, parts) : 0;
    if (!info.has_cuda) snprintf(why, sizeof why, "%s", info.cuda_missing);
    amp_json_put_string(w, "gpu", gpu->name);
    amp_json_put_int(w, "batch", batch);
    amp_json_put_bool(w, "measured", false);
    amp_json_begin_array(w, "kernels");
    for (int i = 0; i < count; i++) AMP_TRY(put_program(w, &tables, gpu, parts[i].program, batch, why, err));
    amp_json_end_array(w);
    amp_json_put_string(w, "missing", *why ? why : NULL);
    return AMP_OK;
}

amp_status step_put_times(amp_json_writer *w, const amp_compile_options *options, const Gpu *gpu, int64_t batch,
                          amp_error *err) {
    amp_model *model = NULL;
    AMP_TRY(open_model(options, &model, err));
    amp_json_begin_object(w, NULL);
    amp_status status = put_times(w, model, options->name, gpu, batch, err);
    amp_json_end_object(w);
    amp_model_release(model);
    return status ? status : amp_json_writer_status(w, err);
}
