/* compile.c: amp_compile: source text to IR, C or model.so. */
#include "compiler/result.h"
#include "compiler/session.h"

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

static amp_status emit_so(Session *s, Module *m, amp_compile_result **out, amp_error *err) {
    CodegenOptions options = {.c_compiler = s->options.c_compiler, .isa = s->options.isa, .allocator = &s->arena.allocator};
    char *bytes = NULL;
    size_t size = 0;
    double start = now();
    AMP_TRY(codegen_so(m, &options, &bytes, &size, err));
    if (s->options.timing) s->options.timing(s->options.user, "cc", now() - start);
    amp_status status = result_new(s->options.allocator, bytes, size, out, err);
    amp_free(&s->arena.allocator, bytes, size, 16);
    return status;
}

static amp_status emit(Session *s, Module *m, amp_compile_result **out, amp_error *err) {
    if (s->options.emit == AMP_EMIT_SO) return emit_so(s, m, out, err);
    Text t;
    text_init(&t, &s->arena);
    if (s->options.emit == AMP_EMIT_IR) ir_print(&t, m);
    else AMP_TRY(codegen_c(m, &t, err));
    return result_new(s->options.allocator, text_str(&t), t.len, out, err);
}

static amp_status compile(Session *s, amp_compile_result **out, amp_error *err) {
    Stage last;
    Module *m = NULL;
    AMP_TRY(last_stage(&s->options, &last, err));
    AMP_TRY(session_open(s, err));
    AMP_TRY(session_run(s, last, &m, err));
    amp_status status = emit(s, m, out, err);
    if (status == AMP_INTERNAL && s->is_ir) status = AMP_BAD_SOURCE; /* a fault of the text, not of the passes */
    if (status) return err ? amp_fail(err, status, "%s: %s", s->options.name, err->message) : status;
    if (!s->options.output) return AMP_OK;
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
