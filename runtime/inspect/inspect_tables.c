/* inspect_tables.c: the tables of a model, and the memory of its programs. */
#include "runtime/inspect/inspect_tables.h"

#include "base/error.h"
#include "runtime/memory/memory_plan.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/session/session.h"

amp_status amp_inspect_target(const char *call, const amp_model *model, const char *device, const amp_model **out,
                              amp_error *err) {
    const amp_device_type *type;
    amp_model *target;
    if (!model) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: model is NULL", call);
    AMP_TRY(amp_device_type_find(device, &type, err));
    AMP_TRY(amp_model_for((amp_model *)model, type->name, &target, err)); /* which changes nothing */
    *out = target;
    return AMP_OK;
}

amp_status amp_model_get_tables(const amp_model *model, const char *device, amp_tables *out, amp_error *err) {
    const amp_model *m;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_get_tables: out is NULL");
    *out = (amp_tables){0};
    AMP_TRY(amp_inspect_target("amp_model_get_tables", model, device, &m, err));
    *out = (amp_tables){.programs = m->programs,
                        .states = m->states,
                        .functions = m->functions,
                        .program_count = m->program_count,
                        .state_count = m->state_count,
                        .function_count = m->function_count,
                        .train_step = m->train_step,
                        .apply_step = m->apply_step,
                        .infer = m->infer,
                        .batch_multiple = m->batch_multiple,
                        .batch_most = AMP_BATCH_LIMIT,
                        .length_unit = m->desc.length_unit,
                        .length_most = m->desc.length_most};
    return AMP_OK;
}

amp_status amp_program_plan(const amp_program *program, amp_sizes sizes, uint64_t *temporaries, uint64_t *bytes,
                            amp_error *err) {
    if (temporaries) *temporaries = 0;
    if (!program) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_program_plan: program is NULL");
    if (sizes.n < 1 || sizes.n > AMP_BATCH_LIMIT)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_program_plan: n is %lld: must be from 1 to %d",
                        (long long)sizes.n, AMP_BATCH_LIMIT);
    const amp_memory_plan_options options = {.capacity.most = sizes,
                                             .sizes_only = !temporaries,
                                             .align =
                                                 program->cuda_kernels ? AMP_DEVICE_MEMORY_ALIGN : AMP_MEMORY_ALIGN};
    amp_memory_plan plan;
    AMP_TRY(amp_memory_plan_make(&plan, program, &options, NULL, err));
    if (temporaries) *temporaries = plan.arena;
    for (int32_t i = 0; bytes && i < plan.count; i++) bytes[i] = plan.bytes[i];
    amp_memory_plan_free(&plan, NULL);
    return AMP_OK;
}
