/* compile.c: the whole way from the text of a model to model.so:
 *
 *     read -> passes to lower -> for each target { copy; passes to plan; emit } -> C file -> C compiler -> write
 *
 * Attention is lowered as its target wants it (passes/lower/lower_attention.c): a model with attention is copied before
 * lower.
 *
 * compile_model goes as far as the braces; amp_compile emits what it gives, or what an earlier stage gives.
 */
#include "compiler/compile_session.h"

#include <string.h>

#include "amp/version.h"
#include "base/error.h"
#include "base/file.h"

const char *amp_compile_pass(int32_t index) { return index >= 0 && index < STAGE_COUNT ? ir_stage_names[index] : NULL; }

const char *amp_compile_version(void) { return AMP_VERSION; }

static void report_seconds(const Session *s, const char *what, double seconds) {
    if (s->options.timing) s->options.timing(s->options.user, what, seconds);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static amp_status choose_targets(const amp_compile_options *o, TargetChoice *out, amp_error *err) {
    static const char *const names[] = {[CHOICE_CPU] = "cpu", [CHOICE_CUDA] = "cuda", [CHOICE_BOTH] = "both"};
    const bool is_linked = o->emit == AMP_EMIT_C || o->emit == AMP_EMIT_O;
    const char *name = o->target ? o->target : is_linked && !o->gpu_arch ? "cpu" : "both";
    for (*out = CHOICE_CPU; *out <= CHOICE_BOTH; ++*out)
        if (!strcmp(name, names[*out])) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown target '%s'; use cpu, cuda or both", name);
}

static amp_status unknown_pass(Session *s, amp_error *err) {
    Text t;
    text_init(&t, &s->arena);
    for (int i = 0; i < STAGE_COUNT; i++) text_printf(&t, "%s%s", i ? ", " : "", ir_stage_names[i]);
    return amp_fail(err, AMP_INVALID_ARGUMENT, "stop after: there is no pass '%s'; the passes are %s",
                    s->options.stop_after, text_str(&t));
}

static amp_status last_stage(Session *s, Stage *out, amp_error *err) {
    const char *pass = s->options.stop_after;
    int stage = pass ? 0 : STAGE_LAST;
    while (pass && stage < STAGE_COUNT && strcmp(ir_stage_names[stage], pass)) stage++;
    if (stage == STAGE_COUNT) return unknown_pass(s, err);
    if (pass && s->options.emit != AMP_EMIT_IR)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "stop after %s: only IR can be emitted there (--emit ir)", pass);
    *out = (Stage)stage;
    return AMP_OK;
}

/* ---- from text to planned modules -------------------------------------------------------------------------------- */

amp_status compile_to_stage(Session *s, Stage last, const Target *target, Module **out, amp_error *err) {
    AMP_TRY(session_load(s, out, err));
    if ((*out)->stage <= last) return session_run_passes(s, *out, last, target, true, err);
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: is already at stage %s, past the requested pass %s",
                    s->source->name, ir_stage_names[(*out)->stage], ir_stage_names[last]);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

enum { OF_TARGET = STAGE_LAST - STAGE_LOWER }; /* passes that run for each target */

/* Stages of a call, if each has something to do; reading is one. */
static int count_stages(const Session *s, Stage last, TargetChoice choice) {
    const amp_emit emit = s->options.emit;
    if (emit == AMP_EMIT_IR) return 1 + (int)last;
    if (emit == AMP_EMIT_CU || emit == AMP_EMIT_PTX) return 1 + STAGE_LAST + (emit == AMP_EMIT_PTX ? 2 : 1);
    int cuda = choice == CHOICE_CPU ? 0 : OF_TARGET + 1, codegen = emit == AMP_EMIT_C ? 1 : 2;
    return 1 + STAGE_LOWER + cuda + OF_TARGET + codegen;
}

typedef struct ImageStages { /* where NVRTC's begin */
    Session *s;
    int first;
    bool counted;
} ImageStages;

static bool begin_image(void *user, const char *what, int index, int count) {
    ImageStages *stages = user;
    if (!stages->counted && stages->s->stages) stages->s->stages += count;
    stages->counted = true;
    stages->s->stages_done = stages->first + index;
    return session_begin(stages->s, what, NULL) == AMP_OK;
}

/* Machine code for the architectures that were asked for. */
static amp_status compile_images(Session *s, CodegenCuda *cuda, amp_error *err) {
    ImageStages stages = {.s = s, .first = s->stages_done};
    int without = s->stages;
    amp_status status = codegen_cuda_images(cuda->code, s->options.gpu_arch, &(CodegenProgress){begin_image, &stages},
                                            &s->arena.allocator, &s->images, err);
    s->stages_done = stages.first + s->stages - without;
    AMP_TRY(session_name_error(s, status, err));
    cuda->images = s->images.data;
    cuda->image_count = s->images.count;
    for (int i = 0; i < cuda->image_count; i++) {
        const CudaImage *image = &cuda->images[i];
        const char *entry = codegen_cuda_entry(cuda->code, image->function);
        if (image->is_cubin)
            report_seconds(s, arena_printf(&s->arena, "nvrtc %s sm_%d", entry, image->arch), image->seconds);
    }
    return AMP_OK;
}

/* The passes for one of two targets.  Only the target that is |observed| has dumps and rows of single passes. */
static amp_status plan_for(Session *s, Module *m, const Target *target, bool observed, amp_error *err) {
    const double start = amp_seconds();
    AMP_TRY(session_run_passes(s, m, STAGE_LAST, target, observed, err));
    if (!observed) report_seconds(s, arena_printf(&s->arena, "passes %s", target->name), amp_seconds() - start);
    return AMP_OK;
}

static bool is_in(const Module *m, bool (*is_one)(const Op *)) {
    for (int i = 0; i < m->funcs.len; i++)
        for (int j = 0; j < m->funcs.data[i]->body.len; j++)
            if (is_one(ir_op_at(m->funcs.data[i], j))) return true;
    return false;
}

static bool is_graph_attention(const Op *o) {
    return o->code == OP_attention || o->code == OP_attention_grad || o->code == OP_attention_mask_grad;
}

/* CUDA's kernels, of a copy: the CPU's go on with the module itself.  Where an op has no code for CUDA, a model of both
 * targets goes without and says so. */
static amp_status compile_for_cuda(Session *s, const Module *lowered, TargetChoice choice, CodegenCuda *cuda,
                                   amp_error *err) {
    Module *m = NULL;
    amp_error why = {0};
    double start = amp_seconds();
    AMP_TRY(session_copy(s, lowered, &m, err));
    report_seconds(s, "copy", amp_seconds() - start);
    AMP_TRY(plan_for(s, m, &target_cuda, choice == CHOICE_CUDA, err));
    AMP_TRY(session_begin(s, "codegen cuda", err));
    start = amp_seconds();
    amp_status status = codegen_cuda(m, &cuda->code, &why);
    report_seconds(s, "codegen cuda", amp_seconds() - start);
    if (status == AMP_UNSUPPORTED && choice == CHOICE_BOTH && !s->options.gpu_arch) {
        cuda->missing = arena_strdup(&s->arena, why.message);
        return AMP_OK;
    }
    if (status && err) *err = why;
    AMP_TRY(session_name_error(s, status, err));
    return s->options.gpu_arch ? compile_images(s, cuda, err) : AMP_OK;
}

static const char *for_cpu_alone(const Session *s) {
    return s->options.target ? "it was compiled with --target cpu" : "it was emitted without --target both";
}

/* IR at stage target or later is one target's already, and so is attention at stage lower. */
static amp_status compile_planned(Session *s, Module *m, TargetChoice choice, CodegenCuda *cuda, amp_error *err) {
    const char *stage = ir_stage_names[m->stage];
    const char *before = ir_stage_names[is_in(m, ir_is_attention) ? STAGE_SIMPLIFY : STAGE_LOWER];
    if (target_find(m->target) == &target_cuda)
        return amp_fail(
            err, AMP_INVALID_ARGUMENT,
            "%s: is at stage %s for CUDA, and a model needs kernels for the CPU too; start from stage %s or before",
            s->options.name, stage, before);
    cuda->missing = for_cpu_alone(s);
    if (choice != CHOICE_CPU) s->stages_done += OF_TARGET + 1;
    if (choice != CHOICE_CPU)
        cuda->missing = arena_printf(&s->arena, "it was compiled from IR at stage %s, which is the CPU's", stage);
    if (choice == CHOICE_CUDA)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: target cuda: %s; start from stage %s or before",
                        s->options.name, cuda->missing, before);
    if (choice == CHOICE_BOTH && s->options.gpu_arch)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: gpu arch %s: %s; start from stage %s or before",
                        s->options.name, s->options.gpu_arch, cuda->missing, before);
    if (choice == CHOICE_BOTH)
        diag_help(
            &s->diags,
            diag_warning(&s->diags, (Loc){0}, "the model gets no CUDA code: %s IR is one target's",
                         m->stage == STAGE_LOWER ? "with attention, from stage lower on" : "from stage target on"),
            "start from stage %s or before, or use --target cpu", before);
    return session_run_passes(s, m, STAGE_LAST, &target_cpu, true, err);
}

amp_status compile_model(Session *s, TargetChoice choice, Module **cpu, CodegenCuda *cuda, amp_error *err) {
    *cuda = (CodegenCuda){0};
    AMP_TRY(session_load(s, cpu, err));
    if ((*cpu)->stage > STAGE_LOWER) return compile_planned(s, *cpu, choice, cuda, err);
    if ((*cpu)->stage == STAGE_LOWER && choice != CHOICE_CPU && is_in(*cpu, ir_is_attention))
        return compile_planned(s, *cpu, choice, cuda, err);
    if ((*cpu)->stage < STAGE_SIMPLIFY) AMP_TRY(session_run_passes(s, *cpu, STAGE_SIMPLIFY, &target_cpu, true, err));
    const bool apart = choice != CHOICE_CPU && is_in(*cpu, is_graph_attention);
    if (!apart) AMP_TRY(session_run_passes(s, *cpu, STAGE_LOWER, &target_cpu, true, err));
    else if (s->stages) s->stages++;
    if (s->options.gpu_arch && choice == CHOICE_CPU)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "gpu arch %s: target cpu has no CUDA code to compile; use target cuda or both",
                        s->options.gpu_arch);
    if (choice == CHOICE_CPU) cuda->missing = for_cpu_alone(s);
    else AMP_TRY(compile_for_cuda(s, *cpu, choice, cuda, err));
    return plan_for(s, *cpu, &target_cpu, choice != CHOICE_CUDA, err);
}

/* ---- from modules to what is emitted ----------------------------------------------------------------------------- */

/* |bytes| are of the arena's allocator. */
static amp_status give_bytes(Session *s, char *bytes, size_t size, amp_compile_result **out, amp_error *err) {
    amp_status status = session_give(s, bytes, size, out, err);
    amp_free(&s->arena.allocator, bytes, size);
    return session_name_error(s, status, err);
}

static amp_status give_text(Session *s, const Text *t, amp_compile_result **out, amp_error *err) {
    return session_name_error(s, session_give_text(s, t, out, err), err);
}

static amp_status emit_ir(Session *s, TargetChoice choice, amp_compile_result **out, amp_error *err) {
    Stage last;
    Module *m = NULL;
    Text t;
    AMP_TRY(last_stage(s, &last, err));
    AMP_TRY(compile_to_stage(s, last, choice == CHOICE_CUDA ? &target_cuda : &target_cpu, &m, err));
    text_init(&t, &s->arena);
    ir_print(&t, m);
    return give_text(s, &t, out, err);
}

/* CUDA C, or PTX. */
static amp_status emit_cuda(Session *s, TargetChoice choice, amp_compile_result **out, amp_error *err) {
    const struct CudaModule *cuda = NULL;
    const char *archs = s->options.gpu_arch ? s->options.gpu_arch : "sm_80";
    char *bytes = NULL;
    size_t size = 0;
    Module *m = NULL;
    Text t;
    if (choice == CHOICE_CPU)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "target cpu has no CUDA code to emit; use target cuda or both");
    AMP_TRY(compile_to_stage(s, STAGE_LAST, &target_cuda, &m, err));
    AMP_TRY(session_begin(s, "codegen cuda", err));
    double start = amp_seconds();
    AMP_TRY(session_name_error(s, codegen_cuda(m, &cuda, err), err));
    report_seconds(s, "codegen cuda", amp_seconds() - start);
    if (s->options.emit == AMP_EMIT_CU) {
        text_init(&t, &s->arena);
        codegen_cuda_text(cuda, &t);
        return give_text(s, &t, out, err);
    }
    AMP_TRY(session_begin(s, "nvrtc", err));
    AMP_TRY(session_name_error(s, codegen_cuda_ptx(cuda, archs, &s->arena.allocator, &bytes, &size, err), err));
    return give_bytes(s, bytes, size, out, err);
}

/* model.so, or its C file. */
static amp_status emit_model(Session *s, TargetChoice choice, amp_compile_result **out, amp_error *err) {
    CodegenOptions options = {.c_compiler = s->options.c_compiler,
                              .isa = s->options.isa,
                              .allocator = &s->arena.allocator,
                              .object = s->options.emit == AMP_EMIT_O,
                              .cancel = {s->options.cancelled, s->options.user}};
    CodegenCuda cuda = {0};
    char *bytes = NULL;
    size_t size = 0;
    Module *m = NULL;
    Text c;
    AMP_TRY(compile_model(s, choice, &m, &cuda, err));
    text_init(&c, &s->arena);
    AMP_TRY(session_begin(s, "codegen", err));
    double start = amp_seconds();
    const CodegenForm form = {s->options.symbol, s->options.no_ir != 0};
    AMP_TRY(session_name_error(s, codegen_c(m, &cuda, &form, &c, err), err));
    report_seconds(s, "codegen", amp_seconds() - start);
    if (s->options.emit == AMP_EMIT_C) return give_text(s, &c, out, err);
    AMP_TRY(session_begin(s, "cc", err));
    start = amp_seconds();
    AMP_TRY(session_name_error(s, codegen_so(&c, &options, &bytes, &size, err), err));
    report_seconds(s, "cc", amp_seconds() - start);
    return give_bytes(s, bytes, size, out, err);
}

static amp_status emit(Session *s, const void *none, amp_compile_result **out, amp_error *err) {
    (void)none;
    Stage last;
    TargetChoice choice;
    amp_status status;
    AMP_TRY(last_stage(s, &last, err));
    AMP_TRY(choose_targets(&s->options, &choice, err));
    AMP_TRY(session_open(s, err));
    s->stages = count_stages(s, last, choice);
    switch (s->options.emit) {
    case AMP_EMIT_IR: status = emit_ir(s, choice, out, err); break;
    case AMP_EMIT_CU:
    case AMP_EMIT_PTX: status = emit_cuda(s, choice, out, err); break;
    default: status = emit_model(s, choice, out, err); break;
    }
    if (status || !s->options.output) return status;
    return amp_file_replace(s->options.output, (*out)->data, (*out)->size, &s->arena.allocator, err);
}

amp_status amp_compile(const amp_compile_options *options, amp_compile_result **out, amp_error *err) {
    return session_call("amp_compile", options, emit, NULL, out, err);
}
