/* target.c: see target.h. */
#include "compiler/target.h"

#include <string.h>

#include "base/error.h"
#include "codegen/cuda/cuda.h"

amp_status target_choose(const amp_compile_options *o, TargetChoice *out, amp_error *err) {
    static const char *const names[] = {[CHOICE_CPU] = "cpu", [CHOICE_CUDA] = "cuda", [CHOICE_BOTH] = "both"};
    const char *name = o->target ? o->target : "both";
    for (*out = CHOICE_CPU; *out <= CHOICE_BOTH; ++*out)
        if (!strcmp(name, names[*out])) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "target '%s': cpu, cuda or both", name);
}

static const char for_cpu_alone[] = "it was compiled with --target cpu";

/* IR at stage fuse or later is one target's already. */
static amp_status finish_started(Session *s, Module *m, TargetChoice choice, CodegenCuda *cuda, amp_error *err) {
    if (target_of(m) == &target_cuda)
        return amp_fail(
            err, AMP_INVALID_ARGUMENT,
            "%s: is at stage %s for CUDA, and a model needs kernels for the CPU too; start from stage lower or before",
            s->options.name, ir_stage_names[m->stage]);
    cuda->missing = for_cpu_alone;
    if (choice != CHOICE_CPU)
        cuda->missing = arena_printf(&s->arena, "it was compiled from IR at stage %s, which is the CPU's",
                                     ir_stage_names[m->stage]);
    if (choice == CHOICE_CUDA)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: target cuda: %s; start from stage lower or before",
                        s->options.name, cuda->missing);
    return session_finish(s, m, &target_cpu, true, err);
}

/* Of every kernel that was compiled. */
static void tell_seconds(const Session *s, const struct CudaModule *code) {
    for (int i = 0; i < s->images.count && s->options.timing; i++) {
        const CudaImage *image = &s->images.data[i];
        if (!image->is_cubin) continue;
        s->options.timing(s->options.user,
                          arena_printf(code->module->arena, "nvrtc %s sm_%d",
                                       code->functions.data[image->function].entry, image->arch),
                          image->seconds);
    }
}

/* Where an op has no code for CUDA, the model goes without and says so. */
static amp_status add_cuda(Session *s, const Module *lowered, TargetChoice choice, CodegenCuda *cuda, amp_error *err) {
    Module *m = NULL;
    amp_error why = {0};
    AMP_TRY(session_copy(s, lowered, &m, err));
    AMP_TRY(session_finish(s, m, &target_cuda, choice == CHOICE_CUDA, err));
    amp_status status = codegen_cuda(m, &cuda->code, &why);
    if (status == AMP_UNSUPPORTED && choice == CHOICE_BOTH && !s->options.gpu_arch) {
        cuda->missing = arena_strdup(&s->arena, why.message);
        return AMP_OK;
    }
    if (status && err) *err = why;
    AMP_TRY(session_name_error(s, status, err));
    if (!s->options.gpu_arch) return AMP_OK;
    AMP_TRY(session_name_error(
        s, codegen_cuda_images(cuda->code, s->options.gpu_arch, &s->arena.allocator, &s->images, err), err));
    tell_seconds(s, cuda->code);
    cuda->images = s->images.data;
    cuda->image_count = s->images.count;
    return AMP_OK;
}

amp_status target_make_code(Session *s, TargetChoice choice, Module **cpu, CodegenCuda *cuda, amp_error *err) {
    *cuda = (CodegenCuda){0};
    AMP_TRY(session_lower(s, cpu, err));
    if ((*cpu)->stage > STAGE_LOWER) return finish_started(s, *cpu, choice, cuda, err);
    if (s->options.gpu_arch && choice == CHOICE_CPU)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "gpu arch %s: target cpu has no CUDA code to compile",
                        s->options.gpu_arch);
    if (choice == CHOICE_CPU) cuda->missing = for_cpu_alone;
    else AMP_TRY(add_cuda(s, *cpu, choice, cuda, err));
    return session_finish(s, *cpu, &target_cpu, choice != CHOICE_CUDA, err);
}

amp_status target_make_cuda(Session *s, const struct CudaModule **out, amp_error *err) {
    Module *m = NULL;
    AMP_TRY(session_run(s, STAGE_PLAN, &target_cuda, &m, err));
    return session_name_error(s, codegen_cuda(m, out, err), err);
}
