/* info_shared.c: see info.h. */
#include "tools/amprun/info/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/model/model.h"

int info_check_batch(const Args *a, const amp_model *m, int64_t batch) {
    if (batch <= AMP_BATCH_LIMIT && batch % m->batch_multiple == 0) return 0;
    return report_text("%s: --batch %" PRId64 ": it takes multiples of %" PRId64 ", %d at most", a->model, batch,
                       m->batch_multiple, AMP_BATCH_LIMIT);
}

const amp_model *info_tables(const Args *a, const amp_model *loaded) {
    amp_model_info info;
    const bool on_cuda = !strcmp(run_target(a), "cuda");
    if (!on_cuda || loaded->cuda) return on_cuda ? loaded->cuda : loaded;
    amp_model_get_info(loaded, &info);
    report_text("%s: it has no CUDA code, which --device cuda looks at: %s", a->model, info.cuda_missing);
    return NULL;
}

const amp_program *info_program(const Args *a, const amp_model *m) {
    const amp_program *usual = m->train_step ? m->train_step : m->infer;
    char names[512] = "";
    size_t at = 0;
    if (!a->program && usual) return usual;
    for (int32_t i = 0; a->program && i < m->program_count; i++)
        if (!strcmp(m->programs[i].name, a->program)) return &m->programs[i];
    for (int32_t i = 0; i < m->program_count && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", m->programs[i].name);
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
    amp_json_end_object(w);
}
