/* info_shared.c: see info.h. */
#include "tools/amprun/info/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int info_check_batch(const Args *a, const amp_tables *t, int64_t batch) {
    if (batch <= t->batch_most && batch % t->batch_multiple == 0) return 0;
    return report_text("%s: --batch %" PRId64 ": it takes multiples of %" PRId64 ", %" PRId64 " at most", a->model,
                       batch, t->batch_multiple, t->batch_most);
}

int info_tables(const Args *a, const amp_model *loaded, amp_tables *out) {
    amp_error err = {0};
    amp_model_info info;
    const char *device = run_target(a);
    amp_model_get_info(loaded, &info);
    if (!strcmp(device, "cuda") && !info.has_cuda)
        return report_text("%s: it has no CUDA code, which --device cuda looks at: %s", a->model, info.cuda_missing);
    return amp_model_get_tables(loaded, device, out, &err) ? report(&err) : 0;
}

const amp_program *info_program(const Args *a, const amp_tables *t) {
    const amp_program *usual = t->train_step ? t->train_step : t->infer;
    char names[512] = "";
    size_t at = 0;
    if (!a->program && usual) return usual;
    for (int32_t i = 0; a->program && i < t->program_count; i++)
        if (!strcmp(t->programs[i].name, a->program)) return &t->programs[i];
    for (int32_t i = 0; i < t->program_count && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", t->programs[i].name);
    report_text("%s: there is no program %s; there are %s", a->model, a->program ? a->program : "train_step or infer",
                names);
    return NULL;
}

void memory_kinds(const amp_memory_info *m, MemoryKind out[MEMORY_KINDS]) {
    const MemoryKind kinds[MEMORY_KINDS] = {
        {"weights", m->params},  {"copies", m->derived},  {"moments", m->moments}, {"activations", m->activations},
        {"outputs", m->outputs}, {"scratch", m->scratch}, {"total", m->total},
    };
    memcpy(out, kinds, sizeof kinds);
}

void memory_put(amp_json_writer *w, const amp_memory_info *memory) {
    MemoryKind kinds[MEMORY_KINDS];
    memory_kinds(memory, kinds);
    amp_json_begin_object(w, "memory");
    for (int i = 0; i < MEMORY_KINDS; i++) amp_json_put_int(w, kinds[i].name, (int64_t)kinds[i].bytes);
    amp_json_put_int(w, "device", (int64_t)memory->device);
    amp_json_put_int(w, "model", (int64_t)memory->model);
    amp_json_end_object(w);
}
