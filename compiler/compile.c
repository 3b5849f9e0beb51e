/* compile.c: amp_compile: source text to IR, C or model.so. */
#include "compiler/result.h"
#include "compiler/session.h"
#include "compiler/target.h"

#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "codegen/codegen.h"

const char *amp_compile_pass(int32_t index) { return index >= 0 && index < STAGE_COUNT ? ir_stage_names[index] : NULL; }

const char *amp_compile_version(void) { return CODEGEN_COMPILER_VERSION; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static amp_status last_stage(const amp_compile_options *o, Stage *out, amp_error *err) {
    *out = STAGE_PLAN;
    if (!o->stop_after) return AMP_OK;
    if (!session_stage(o->stop_after, out))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "stop after: there is no pass '%s'; the passes are elaborate, autocast, autodiff, scale, "
                        "optimizer, simplify, lower, fuse, layout, plan",
                        o->stop_after);
    if (o->emit != AMP_EMIT_IR)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "stop after %s: only IR can be emitted there (--emit ir)",
                        o->stop_after);
    return AMP_OK;
}

static amp_status emit_so(Session *s, Module *m, const CodegenCuda *cuda, amp_compile_result **out, amp_error *err) {
    CodegenOptions options = {
        .c_compiler = s->options.c_compiler, .isa = s->options.isa, .allocator = &s->arena.allocator};
    char *bytes = NULL;
    size_t size = 0;
    double start = now();
    AMP_TRY(session_name_error(s, codegen_so(m, cuda, &options, &bytes, &size, err), err));
    if (s->options.timing) s->options.timing(s->options.user, "cc", now() - start);
    amp_status status = session_name_error(s, result_new(s->options.allocator, bytes, size, out, err), err);
    amp_free(&s->arena.allocator, bytes, size);
    return status;
}

static amp_status emit_text(Session *s, const Text *t, amp_compile_result **out, amp_error *err) {
    return session_name_error(s, result_new(s->options.allocator, text_str(t), t->len, out, err), err);
}

static amp_status emit_ir(Session *s, TargetChoice target, amp_compile_result **out, amp_error *err) {
    Stage last;
    Module *m = NULL;
    Text t;
    AMP_TRY(last_stage(&s->options, &last, err));
    AMP_TRY(session_run(s, last, target == CHOICE_CUDA ? &target_cuda : &target_cpu, &m, err));
    text_init(&t, &s->arena);
    ir_print(&t, m);
    return emit_text(s, &t, out, err);
}

/* model.so, or its C file. */
static amp_status emit_model(Session *s, TargetChoice target, amp_compile_result **out, amp_error *err) {
    Module *m = NULL;
    CodegenCuda cuda = {0};
    Text t;
    AMP_TRY(target_make_code(s, target, &m, &cuda, err));
    if (s->options.emit == AMP_EMIT_SO) return emit_so(s, m, &cuda, out, err);
    text_init(&t, &s->arena);
    AMP_TRY(session_name_error(s, codegen_c(m, &cuda, &t, err), err));
    return emit_text(s, &t, out, err);
}

static amp_status emit_ptx(Session *s, const struct CudaModule *cuda, amp_compile_result **out, amp_error *err) {
    const char *archs = s->options.gpu_arch ? s->options.gpu_arch : "sm_80";
    char *bytes = NULL;
    size_t size = 0;
    AMP_TRY(session_name_error(s, codegen_cuda_ptx(cuda, archs, &s->arena.allocator, &bytes, &size, err), err));
    amp_status status = session_name_error(s, result_new(s->options.allocator, bytes, size, out, err), err);
    amp_free(&s->arena.allocator, bytes, size);
    return status;
}

static amp_status emit_cuda(Session *s, TargetChoice target, amp_compile_result **out, amp_error *err) {
    const struct CudaModule *cuda = NULL;
    Text t;
    if (target == CHOICE_CPU) return amp_fail(err, AMP_INVALID_ARGUMENT, "target cpu: has no CUDA code to emit");
    AMP_TRY(target_make_cuda(s, &cuda, err));
    if (s->options.emit == AMP_EMIT_PTX) return emit_ptx(s, cuda, out, err);
    text_init(&t, &s->arena);
    codegen_cuda_text(cuda, &t);
    return emit_text(s, &t, out, err);
}

static amp_status compile(Session *s, amp_compile_result **out, amp_error *err) {
    Stage last;
    TargetChoice target;
    amp_status status;
    AMP_TRY(last_stage(&s->options, &last, err));
    AMP_TRY(target_choose(&s->options, &target, err));
    AMP_TRY(session_open(s, err));
    switch (s->options.emit) {
    case AMP_EMIT_IR: status = emit_ir(s, target, out, err); break;
    case AMP_EMIT_CU:
    case AMP_EMIT_PTX: status = emit_cuda(s, target, out, err); break;
    default: status = emit_model(s, target, out, err); break;
    }
    if (status || !s->options.output) return status;
    return amp_file_replace(s->options.output, (*out)->data, (*out)->size, &s->arena.allocator, err);
}

amp_status amp_compile(const amp_compile_options *options, amp_compile_result **out, amp_error *err) {
    Session s;
    *out = NULL;
    AMP_TRY(session_init(&s, options, err));
    arena_init(&s.arena, s.options.allocator);
    if (setjmp(s.arena.out_of_memory)) {
        session_close(&s);
        amp_compile_result_release(*out);
        *out = NULL;
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: memory ran out while compiling", s.options.name);
    }
    amp_status status = compile(&s, out, err);
    session_close(&s);
    if (status) {
        amp_compile_result_release(*out);
        *out = NULL;
    }
    return status;
}
