/* onnx_autocast.c: see amp/onnx.h. */
#include "compiler/onnx/onnx_autocast.h"

#include <string.h>

#include "base/error.h"
#include "compiler/compile_session.h"
#include "passes/passes.h"

enum { RANGES_LIMIT = 1 << 30 };

/* ---- what is given ----------------------------------------------------------------------------------------------- */

typedef struct Given {
    const char *model;
    amp_onnx_options options;
    amp_onnx_counts *counts;
} Given;

static const Policy *read_policy(Session *s, const amp_onnx_options *o) {
    const PassOptions options = {.policy = o->policy,
                                 .precision = o->precision || o->policy ? o->precision : "fp16",
                                 .find_policy = session_find_policy,
                                 .user = s};
    return policy_select(&(PassContext){ir_module_new(&s->arena, "policies"), &s->diags, &options, NULL});
}

static amp_status take_policy(Session *s, Autocast *a, amp_error *err) {
    a->policy = read_policy(s, a->options);
    if (!a->policy) return session_report(s, err);
    a->low = a->policy->low == AMP_DT_F16    ? ONNX_FLOAT16
             : a->policy->low == AMP_DT_BF16 ? ONNX_BFLOAT16
                                             : ONNX_UNDEFINED;
    if (a->low) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "policy %s: its low type is %s; ONNX has float16 and bfloat16: take a policy of one of these",
                    a->policy->name, amp_dtype_name(a->policy->low));
}

static amp_status read_assumption(Arena *arena, const char *text, OnnxAssumption *out, amp_error *err) {
    const char *equals = text ? strrchr(text, '=') : NULL;
    const int dtype = equals ? onnx_dtype_named(equals + 1) : -1;
    if (dtype <= 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "assume %s: NAME=TYPE is wanted, with a type such as float16 or int64", text ? text : "NULL");
    *out = (OnnxAssumption){arena_strndup(arena, text, (size_t)(equals - text)), dtype};
    return AMP_OK;
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static amp_status make_index(Autocast *a, Arena *arena, amp_error *err) {
    AMP_TRY(onnx_index(&a->model, arena, &a->index, err));
    if (!a->model.functions.len) return AMP_OK;
    AMP_TRY(onnx_inline_functions(&a->model, arena, err)); /* what calls differ in is decided by call */
    return onnx_index(&a->model, arena, &a->index, err);
}

static amp_status solve(Autocast *a, Arena *arena, amp_error *err) {
    const amp_onnx_options *o = a->options;
    OnnxAssumption *assumed = arena_array(arena, OnnxAssumption, o->assume_count + 1);
    for (size_t i = 0; i < o->assume_count; i++) AMP_TRY(read_assumption(arena, o->assume[i], &assumed[i], err));
    const OnnxTypeOptions options = {assumed, (int)o->assume_count, o->batch_hint ? (double)o->batch_hint : 32.0};
    return onnx_solve_types(&a->model, &a->index, &options, arena, &a->solution, err);
}

amp_status autocast_solve(Autocast *a, Arena *arena, amp_error *err) {
    AMP_TRY(make_index(a, arena, err));
    return solve(a, arena, err);
}

static amp_status find_ranges(Autocast *a, const Source *measured, amp_error *err) {
    a->ranges = arena_array(&a->arena, OnnxMagnitude, a->index.value_count + 1);
    a->losses = arena_array(&a->arena, OnnxLoss, a->index.value_count + 1);
    AMP_TRY(onnx_weight_ranges(&a->model, &a->index, a->low, a->ranges, a->losses, err));
    if (!measured) return AMP_OK;
    return onnx_read_ranges(measured->text, measured->len, measured->name, &a->index, a->ranges, &a->unknown_ranges,
                            err);
}

static amp_status decide(Autocast *a, amp_error *err) {
    const amp_onnx_options *o = a->options;
    const OnnxDecideOptions options = {.policy = a->policy,
                                       .keep_io = o->keep_io != 0,
                                       .keeps = o->keep,
                                       .keep_count = (int)o->keep_count,
                                       .ranges = a->ranges,
                                       .batch_hint = o->batch_hint ? o->batch_hint : 32};
    return onnx_decide(&a->model, &a->index, &a->solution, &options, &a->arena, &a->decisions, err);
}

/* A graph in f32 that is called converted has cost users days. */
static amp_status need_lowered(Autocast *a, amp_error *err) {
    if (a->counts.lowered) return AMP_OK;
    const ReasonGroups groups = autocast_groups(a);
    Text t;
    text_init(&t, &a->arena);
    for (int i = 0; i < groups.len && i < 3; i++) {
        const OnnxDecision *d = groups.data[i].like;
        text_printf(&t, "%s %lld of op %s are %s because ", i ? ";" : ":", (long long)groups.data[i].nodes,
                    d->op ? d->op : "no known kind", autocast_type_of(a, d));
        ir_print_reason(&t, &d->reason);
    }
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: none of %lld nodes was lowered under policy %s, and nothing is written%s", a->name,
                    (long long)a->counts.nodes, a->policy->name, text_str(&t));
}

static amp_status rewrite(Autocast *a, amp_error *err) {
    OnnxRewrite r = {.model = &a->model,
                     .index = &a->index,
                     .solution = &a->solution,
                     .decisions = &a->decisions,
                     .low = a->low,
                     .policy = a->policy->name,
                     .arena = &a->arena};
    a->counts.weight_bytes_before = autocast_weight_bytes(a);
    AMP_TRY(onnx_rewrite(&r, err));
    a->counts.casts = a->counts.casts_before - r.dropped + r.casts;
    a->counts.weight_bytes = autocast_weight_bytes(a);
    autocast_count_weights(a);
    return AMP_OK;
}

static amp_status work(Autocast *a, const Source *measured, amp_error *err) {
    AMP_TRY(onnx_read(a->name, &a->arena, &a->model, err));
    AMP_TRY(make_index(a, &a->arena, err));
    if (a->options->opset) AMP_TRY(onnx_raise_opset(&a->model, &a->index, a->options->opset, &a->arena, err));
    AMP_TRY(solve(a, &a->arena, err));
    AMP_TRY(find_ranges(a, measured, err));
    AMP_TRY(decide(a, err));
    autocast_count(a);
    AMP_TRY(need_lowered(a, err));
    AMP_TRY(rewrite(a, err));
    if (!a->options->output) return AMP_OK;
    const OnnxWriteOptions options = {.force = a->options->force != 0};
    return onnx_write(&a->model, a->options->output, &options, err);
}

static amp_status report(Session *s, Autocast *a, amp_compile_result **out, amp_error *err) {
    Text t;
    text_init(&t, &a->arena);
    if (a->options->html) AMP_TRY(autocast_as_html(a, &t, err));
    else if (a->options->json) AMP_TRY(autocast_as_json(a, &t, err));
    else autocast_as_text(a, &t);
    return session_give_text(s, &t, out, err);
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* Of the caller's struct only what it knows. */
static amp_status give_counts(const amp_onnx_counts *from, amp_onnx_counts *to, amp_error *err) {
    if (!to) return AMP_OK;
    const size_t given = to->struct_size, size = given < sizeof *from ? given : sizeof *from;
    if (given < sizeof given)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_onnx_counts: struct_size is %zu; set it to sizeof(amp_onnx_counts)", given);
    memcpy(to, from, size);
    to->struct_size = given;
    return AMP_OK;
}

static amp_status run(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const Given *g = arguments;
    const Source *measured = NULL;
    Autocast *a = arena_new(&s->arena, Autocast); /* is whole after the jump */
    a->name = g->model;
    a->options = &g->options;
    AMP_TRY(give_counts(&a->counts, g->counts, err));
    AMP_TRY(take_policy(s, a, err));
    if (g->options.ranges) AMP_TRY(session_read(s, g->options.ranges, NULL, RANGES_LIMIT, &measured, err));
    amp_status status;
    arena_init(&a->arena, &s->arena.allocator);
    if (setjmp(a->arena.out_of_memory)) status = session_out_of_memory(s, err);
    else {
        status = work(a, measured, err);
        if (!status) status = report(s, a, out, err);
    }
    onnx_close(&a->model);
    arena_free(&a->arena);
    return status ? status : give_counts(&a->counts, g->counts, err);
}

amp_status autocast_call(const char *name, const char *model, const amp_onnx_options *given, amp_onnx_options *o,
                         SessionRun *work_it, const void *arguments, amp_compile_result **out, amp_error *err) {
    AMP_TRY(amp_options_read(o, sizeof *o, given, "amp_onnx_options", err));
    if ((o->keep_count && !o->keep) || (o->assume_count && !o->assume) || o->batch_hint < 0 || o->opset < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_onnx_options: %s",
                        o->batch_hint < 0 || o->opset < 0 ? "a number is negative" : "a list is NULL and has a count");
    const amp_compile_options compile = {.struct_size = sizeof compile,
                                         .name = model,
                                         .allocator = o->allocator,
                                         .diagnostic = o->diagnostic,
                                         .dependency = o->dependency,
                                         .user = o->user};
    return session_call(name, &compile, work_it, arguments, out, err);
}

amp_status amp_onnx_autocast(const char *model, const amp_onnx_options *options, amp_onnx_counts *counts,
                             amp_compile_result **out, amp_error *err) {
    Given g = {.model = model, .counts = counts};
    if (out) *out = NULL;
    if (!model) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_onnx_autocast: model is NULL; give a file");
    return autocast_call("amp_onnx_autocast", model, options, &g.options, run, &g, out, err);
}
