/* info.c: amprun info: what a model is, and what a session of it takes; as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "amp/train.h"
#include "base/json.h"
#include "tools/amprun/info/info.h"
#include "tools/standard_streams.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_tensor(const char *kind, const amp_tensor_info *t, const char *note) {
    char dims[AMP_MAX_RANK * 24] = "";
    for (int i = 0, at = 0; i < t->rank; i++)
        at += snprintf(dims + at, sizeof dims - (size_t)at, "%s%" PRId64, i ? ", " : "", t->dims[i]);
    print_plain_line("%-8s %-24s %s[%s]%s", kind, t->name, amp_dtype_name(t->dtype), dims, note);
}

/* ---- how parameters are trained ---- */

/* The groups that decide for a parameter; |frozen| has a NULL pattern where none freezes it. */
typedef struct Deciding {
    amp_group_info lr_scale, weight_decay, frozen, optimizer;
    bool has_lr_scale, has_weight_decay;
} Deciding;

static bool take_group(const Run *r, int32_t index, amp_group_info *out) {
    return index >= 0 && !amp_model_group_at(r->model, index, out, NULL);
}

static Deciding groups_of(const Run *r, const amp_param_training *t) {
    Deciding d = {0};
    d.has_lr_scale = take_group(r, t->lr_scale_group, &d.lr_scale);
    d.has_weight_decay = take_group(r, t->weight_decay_group, &d.weight_decay);
    (void)take_group(r, t->frozen_group, &d.frozen);
    (void)take_group(r, t->optimizer_group, &d.optimizer);
    return d;
}

/* Whether parameters are trained in different ways at all. */
static bool differ(const Run *r) {
    amp_param_training first, other;
    if (!r->info.can_train || amp_model_param_training_at(r->model, 0, &first, NULL)) return false;
    for (int32_t i = 0; !amp_model_param_training_at(r->model, i, &other, NULL); i++)
        if (memcmp(&first, &other, sizeof first)) return true;
    return first.only || first.lr_scale_group >= 0 || first.weight_decay_group >= 0 || first.frozen_group >= 0 ||
           first.optimizer_group >= 0;
}

/* Calls |tell| for each tensor, with its kind; |index| is of a parameter, else -1. */
static int each_tensor(const Run *r, int64_t batch, void *to,
                       void (*tell)(const Run *r, void *to, const char *kind, int32_t index,
                                    const amp_tensor_info *t)) {
    amp_error err = {0};
    amp_tensor_info t;
    for (int i = 0; i < r->info.param_count; i++) {
        if (amp_model_param_at(r->model, i, &t, &err)) return report(&err);
        tell(r, to, "param", i, &t);
    }
    for (int i = 0; i < r->info.input_count; i++) {
        if (amp_model_input_at(r->model, i, run_sizes(r, batch), &t, &err)) return report(&err);
        tell(r, to, i < r->info.model_input_count ? "input" : "target", -1, &t);
    }
    for (int i = 0; i < r->info.result_count; i++) {
        if (amp_model_result_at(r->model, i, run_sizes(r, batch), &t, &err)) return report(&err);
        tell(r, to, "result", -1, &t);
    }
    return 0;
}

/* "  trained by block 0 for "gen.*", lr_scale 0.1 by "*.bias" (line 12)" */
static void describe_training(const Run *r, int32_t index, char *out, size_t size) {
    amp_param_training t;
    size_t at = 0;
    if (amp_model_param_training_at(r->model, index, &t, NULL)) return;
    Deciding d = groups_of(r, &t);
    if (t.block < 0) at += (size_t)snprintf(out, size, "  not trained");
    else if (t.frozen_group >= 0) at += (size_t)snprintf(out, size, "  frozen by \"%.200s\"", d.frozen.pattern);
    else at += (size_t)snprintf(out, size, "  trained by block %d", t.block);
    if (t.only) at += (size_t)snprintf(out + at, size - at, " for \"%.200s\"", t.only);
    if (t.trained && d.has_lr_scale)
        at += (size_t)snprintf(out + at, size - at, ", lr_scale %.10g by \"%.200s\" (group %d)", d.lr_scale.lr_scale,
                               d.lr_scale.pattern, t.lr_scale_group);
    if (t.trained && d.has_weight_decay)
        at += (size_t)snprintf(out + at, size - at, ", weight_decay %.10g by \"%.200s\" (group %d)",
                               d.weight_decay.weight_decay, d.weight_decay.pattern, t.weight_decay_group);
    if (t.trained && t.optimizer_group >= 0)
        snprintf(out + at, size - at, ", %.*s by \"%.200s\" (group %d)", (int)strcspn(t.optimizer, "("), t.optimizer,
                 d.optimizer.pattern, t.optimizer_group);
}

/* |to|: a bool, whether parameters are told apart. */
static void tell_text(const Run *r, void *to, const char *kind, int32_t index, const amp_tensor_info *t) {
    char note[2048] = "";
    if (index >= 0 && *(const bool *)to) describe_training(r, index, note, sizeof note);
    print_tensor(kind, t, note);
}

static void print_isa(const Run *r) {
    char text[64] = "";
    for (int i = 0, at = 0; amp_model_isa_name(r->model, i); i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i ? ", " : "", amp_model_isa_name(r->model, i));
    print_plain_line("cpu      %s", text);
}

/* What the device "cuda" would find. */
static void print_cuda(const Run *r) {
    amp_cuda_image_info image;
    if (!r->info.has_cuda) {
        print_plain_line("cuda     no: %s", r->info.cuda_missing);
        return;
    }
    printf("cuda     %d kernels; ", r->info.cuda_kernels);
    int count = 0;
    for (; !amp_model_cuda_image_at(r->model, count, &image, NULL); count++)
        printf("%ssm_%d%s (%s)", count ? ", " : "compiled for ", image.arch, image.suffix,
               image.is_cubin ? "cubin" : "PTX");
    printf(count ? "\n" : "compiled by NVRTC when a session needs them\n");
}

static int print_text(const Run *r, int64_t batch) {
    const amp_model_info *m = &r->info;
    MemoryKind kinds[MEMORY_KINDS];
    print_plain_line("model    %s, compiled by ampc %s from %s", m->name, m->compiler_version, m->source_name);
    print_plain_line("policy   %s (%s)", m->policy, m->precision);
    print_plain_line("sums     %s", m->sums);
    print_plain_line("train    %s", m->optimizer ? m->optimizer : "no: inference only");
    print_plain_line("scale    %s", m->scaler ? m->scaler : "none: unscaled");
    print_isa(r);
    print_cuda(r);
    printf("numbers  %" PRId64 " trained\n", m->param_elements);
    bool apart = differ(r);
    int failed = each_tensor(r, batch, &apart, tell_text);
    for (int i = 0; amp_model_loss_name(r->model, i); i++)
        print_plain_line("loss     %s", amp_model_loss_name(r->model, i));
    for (int i = 0; amp_model_metric_name(r->model, i); i++)
        print_plain_line("metric   %s", amp_model_metric_name(r->model, i));
    printf("memory   at batch %" PRId64 ", in bytes\n", batch);
    memory_kinds(&r->memory, kinds);
    for (int i = 0; i < MEMORY_KINDS; i++) printf("         %-12s %14" PRIu64 "\n", kinds[i].name, kinds[i].bytes);
    printf("         %-12s %14" PRIu64 "  code and tables, once for all sessions\n", "model", r->memory.model);
    return failed;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put_training(amp_json_writer *w, const Run *r, int32_t index) {
    amp_param_training t;
    if (index < 0 || amp_model_param_training_at(r->model, index, &t, NULL)) return;
    Deciding d = groups_of(r, &t);
    amp_json_put_bool(w, "trained", t.trained);
    if (t.block >= 0) amp_json_put_int(w, "train_block", t.block);
    else amp_json_put_null(w, "train_block");
    amp_json_put_double(w, "lr_scale", d.has_lr_scale ? d.lr_scale.lr_scale : 1.0);
    amp_json_put_string(w, "lr_scale_group", d.has_lr_scale ? d.lr_scale.pattern : NULL);
    if (d.has_weight_decay) amp_json_put_double(w, "weight_decay", d.weight_decay.weight_decay);
    else amp_json_put_null(w, "weight_decay"); /* the optimizer's */
    amp_json_put_string(w, "weight_decay_group", d.has_weight_decay ? d.weight_decay.pattern : NULL);
    amp_json_put_string(w, "frozen_group", d.frozen.pattern);
    amp_json_put_string(w, "optimizer", t.optimizer);
    amp_json_put_string(w, "optimizer_group", d.optimizer.pattern);
}

static void put_train_blocks(amp_json_writer *w, const Run *r) {
    amp_param_training t;
    amp_group_info g;
    amp_json_begin_array(w, "train_blocks");
    for (int32_t block = 0, found = 1; found; block++) {
        found = 0;
        for (int32_t i = 0; !found && !amp_model_param_training_at(r->model, i, &t, NULL); i++)
            found = t.block == block && t.optimizer_group < 0;
        if (!found) break;
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "for", t.only);
        amp_json_put_string(w, "optimizer", t.optimizer);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
    amp_json_begin_array(w, "groups");
    for (int32_t i = 0; !amp_model_group_at(r->model, i, &g, NULL); i++) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "pattern", g.pattern);
        amp_json_put_int(w, "train_block", g.block);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void tell_json(const Run *r, void *to, const char *kind, int32_t index, const amp_tensor_info *t) {
    amp_json_writer *w = to;
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "kind", kind);
    amp_json_put_string(w, "name", t->name);
    amp_json_put_string(w, "dtype", amp_dtype_name(t->dtype));
    amp_json_begin_array(w, "shape");
    for (int i = 0; i < t->rank; i++) amp_json_put_int(w, NULL, t->dims[i]);
    amp_json_end_array(w);
    put_training(w, r, index);
    amp_json_end_object(w);
}

static void put_names(amp_json_writer *w, const char *key, const Run *r,
                      const char *(*name_at)(const amp_model *, int32_t)) {
    amp_json_begin_array(w, key);
    for (int i = 0; name_at(r->model, i); i++) amp_json_put_string(w, NULL, name_at(r->model, i));
    amp_json_end_array(w);
}

static void put_cuda(amp_json_writer *w, const Run *r) {
    amp_cuda_image_info image;
    char name[64];
    amp_json_begin_object(w, "cuda");
    amp_json_put_bool(w, "available", r->info.has_cuda);
    amp_json_put_string(w, "missing", r->info.has_cuda ? NULL : r->info.cuda_missing);
    amp_json_put_int(w, "kernels", r->info.cuda_kernels);
    amp_json_begin_array(w, "images");
    for (int i = 0; !amp_model_cuda_image_at(r->model, i, &image, NULL); i++) {
        snprintf(name, sizeof name, "%s_%d%s", image.is_cubin ? "sm" : "compute", image.arch, image.suffix);
        amp_json_put_string(w, NULL, name);
    }
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static int put_model(amp_json_writer *w, const Run *r, int64_t batch) {
    const amp_model_info *m = &r->info;
    amp_json_put_string(w, "model", m->name);
    amp_json_put_string(w, "source", m->source_name);
    amp_json_put_string(w, "compiler", m->compiler_version);
    amp_json_put_string(w, "policy", m->policy);
    amp_json_put_string(w, "precision", m->precision);
    amp_json_put_string(w, "sums", m->sums);
    amp_json_put_string(w, "optimizer", m->optimizer);
    amp_json_put_string(w, "loss_scale", m->scaler);
    amp_json_put_bool(w, "trains", m->can_train);
    amp_json_put_bool(w, "fp32_evaluation", m->has_fp32);
    amp_json_put_int(w, "accumulate", m->accumulate);
    amp_json_put_int(w, "trained_numbers", m->param_elements);
    put_names(w, "losses", r, amp_model_loss_name);
    put_names(w, "metrics", r, amp_model_metric_name);
    put_names(w, "instruction_sets", r, amp_model_isa_name);
    put_cuda(w, r);
    put_train_blocks(w, r);
    amp_json_put_int(w, "batch", batch);
    amp_json_begin_array(w, "tensors");
    int failed = each_tensor(r, batch, w, tell_json);
    amp_json_end_array(w);
    memory_put(w, &r->memory);
    return failed;
}

static int print_json(const Run *r, int64_t batch) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    int failed = put_model(&w, r, batch);
    if (!failed) return json_print(&w);
    amp_json_writer_free(&w);
    return failed;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

int command_info(const Args *a) {
    Run r = {0};
    int64_t batch = a->batch ? a->batch : 1;
    if (a->kernels || a->roofline) return command_info_cuda(a);
    if (a->batch_auto || a->tokens_auto) return command_info_batch(a);
    if (a->timeline) return command_info_timeline(a);
    if (a->ranks) return command_info_ranks(a);
    int failed = run_plan(&r, a, batch);
    if (!failed) failed = a->as_json ? print_json(&r, batch) : print_text(&r, batch);
    run_close(&r);
    return failed;
}
