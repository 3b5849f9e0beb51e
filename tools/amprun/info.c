/* info.c: amprun info. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/amprun/amprun.h"

static void print_tensor(const char *kind, const amp_tensor_info *t) {
    printf("%-8s %-24s %s[", kind, t->name, amp_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++) printf("%s%" PRId64, i ? ", " : "", t->dims[i]);
    printf("]\n");
}

static int print_tensors(const Run *r, int64_t batch) {
    amp_error err = {0};
    amp_tensor_info t;
    for (int i = 0; i < r->info.param_count; i++) {
        if (amp_model_param_at(r->model, i, &t, &err)) return report(&err);
        print_tensor("param", &t);
    }
    for (int i = 0; i < r->info.input_count; i++) {
        if (amp_model_input_at(r->model, i, batch, &t, &err)) return report(&err);
        print_tensor(i < r->info.model_input_count ? "input" : "target", &t);
    }
    for (int i = 0; i < r->info.result_count; i++) {
        if (amp_model_result_at(r->model, i, batch, &t, &err)) return report(&err);
        print_tensor("result", &t);
    }
    return 0;
}

static void print_memory(const Run *r, int64_t batch) {
    amp_memory_info m;
    amp_session_memory(r->session, &m);
    printf("memory   at batch %" PRId64 ", in bytes\n", batch);
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"weights", m.params},  {"copies", m.derived},  {"moments", m.moments}, {"activations", m.activations},
        {"outputs", m.outputs}, {"scratch", m.scratch}, {"total", m.total},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("         %-12s %14" PRIu64 "\n", rows[i].name, rows[i].bytes);
}

/* What the device "cuda" would find. */
static void print_cuda(const Run *r) {
    amp_cuda_image_info image;
    if (!r->info.has_cuda) {
        printf("cuda     no: %s\n", r->info.cuda_missing);
        return;
    }
    printf("cuda     %d kernels; ", r->info.cuda_kernels);
    int count = 0;
    for (; !amp_model_cuda_image_at(r->model, count, &image, NULL); count++)
        printf("%ssm_%d%s (%s)", count ? ", " : "compiled for ", image.arch, image.suffix,
               image.is_cubin ? "cubin" : "PTX");
    printf(count ? "\n" : "compiled by NVRTC when a session needs them\n");
}

int command_info(const Args *a) {
    Run r = {0};
    int64_t batch = a->batch ? a->batch : 1;
    int failed = run_open(&r, a, batch, false, false);
    if (!failed) {
        printf("model    %s, compiled by ampc %s from %s\n", r.info.name, r.info.compiler_version, r.info.source_name);
        printf("policy   %s (%s)\n", r.info.policy, r.info.precision);
        printf("train    %s\n", r.info.optimizer ? r.info.optimizer : "no: inference only");
        printf("scale    %s\n", r.info.scaler ? r.info.scaler : "none: unscaled");
        print_cuda(&r);
        printf("numbers  %" PRId64 " trained\n", r.info.param_elements);
        failed = print_tensors(&r, batch);
        print_memory(&r, batch);
    }
    run_close(&r);
    return failed;
}
