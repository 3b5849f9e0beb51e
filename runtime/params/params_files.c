/* params_files.c: params from safetensors files: those that fit. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/state_file.h"
#include "runtime/params/params.h"

/* ---- those that fit ---------------------------------------------------------------------------------------------- */

typedef struct Partial {
    amp_params *params;
    const amp_state_list *list;
    const amp_safetensors *file;
    const amp_partial_options *options;
    bool *taken; /* by tensor of the file: some parameter takes it, whether it fits or not */
    amp_partial_report report;
} Partial;

static const char *name_in_file(const Partial *l, const char *name) {
    return l->options->name_in_file ? l->options->name_in_file(l->options->user, name) : name;
}

static void tell(const Partial *l, const char *name, amp_partial_outcome outcome, const char *why) {
    if (l->options->tensor) l->options->tensor(l->options->user, name, outcome, why);
}

static void take_entry(Partial *l, int32_t entry) {
    const char *name = l->list->entries[entry].name, *there = name_in_file(l, name);
    const amp_tensor_view *v = there ? amp_safetensors_find(l->file, there) : NULL;
    amp_error why = {0};
    if (v) l->taken[v - amp_safetensors_at(l->file, 0)] = true;
    if (!v) {
        l->report.missing++;
        tell(l, name, AMP_PARTIAL_MISSING, there ? "is not in the file" : "was not asked for");
    } else if (amp_state_list_take(l->list, entry, v, l->params->states, &why)) {
        l->report.misfits++;
        tell(l, name, AMP_PARTIAL_MISFIT, why.message);
    } else {
        l->report.loaded++;
        tell(l, name, AMP_PARTIAL_LOADED, there);
    }
}

static void take_all(Partial *l) {
    for (int32_t i = 0; i < l->list->count; i++) take_entry(l, i);
    for (int32_t i = 0; i < amp_safetensors_count(l->file); i++) {
        const char *name = amp_safetensors_at(l->file, i)->name;
        if (l->taken[i]) continue;
        l->report.unknown++;
        tell(l, name, AMP_PARTIAL_UNKNOWN, "is the file's, but no parameter takes it");
    }
}

static amp_status load_partial(Partial *l, amp_error *err) {
    amp_state_list list;
    AMP_TRY(amp_params_check_masters(l->params, "amp_params_load_partial", err));
    AMP_TRY(amp_params_reach_host(l->params, err));
    AMP_TRY(amp_state_list_make(&list, l->params->model, AMP_FILE_OF_PARAMS, &l->params->model->allocator, err));
    size_t bytes = (size_t)amp_safetensors_count(l->file) * sizeof *l->taken;
    l->list = &list;
    l->taken = amp_alloc_zeroed(&list.allocator, bytes);
    amp_status status =
        l->taken || !bytes ? AMP_OK : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to list the tensors of a file");
    if (!status) status = amp_state_list_reserve(&list, err);
    if (!status) take_all(l);
    if (l->report.loaded) amp_params_changed_on_host(l->params);
    amp_free(&list.allocator, l->taken, bytes);
    amp_state_list_free(&list);
    return status;
}

amp_status amp_params_load_partial(amp_params *params, const char *path, const amp_partial_options *options,
                                   amp_partial_report *report, amp_error *err) {
    amp_partial_options o;
    amp_safetensors *file;
    if (!params || !path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_load_partial: params or path is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_partial_options", err));
    AMP_TRY(amp_safetensors_open(path, &params->model->allocator, &file, err));
    Partial l = {.params = params, .file = file, .options = &o};
    amp_status status = load_partial(&l, err);
    if (report && !status) *report = l.report;
    amp_safetensors_close(file);
    return status;
}
