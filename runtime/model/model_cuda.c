/* model_cuda.c: the model for CUDA: an amp_model with the inputs and decisions of the one that has it, and states,
 * programs and functions of its own. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/model_check.h"
#include "runtime/model/model_tables.h"

static amp_status copy_programs(const amp_model_copying *c, amp_model *m) {
    amp_model_cuda_program *programs;
    int32_t count;
    AMP_TRY(AMP_COPY_TABLE(c, &m->cuda_code.programs, "CUDA programs", programs, count));
    amp_status status = AMP_OK;
    m->programs = amp_alloc_zeroed(c->allocator, (size_t)count * sizeof *m->programs);
    if (m->programs) m->program_count = count;
    else status = amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory for the table of CUDA programs", c->where);
    for (int32_t i = 0; !status && i < count; i++) {
        amp_program *to = &m->programs[i];
        to->name = programs[i].name;
        to->kind = programs[i].kind;
        status = AMP_COPY_TABLE(c, &programs[i].buffers, "buffers", to->buffers, to->buffer_count);
        if (!status) status = AMP_COPY_TABLE(c, &programs[i].kernels, "kernels", to->cuda_kernels, to->kernel_count);
        if (!status) status = AMP_COPY_TABLE(c, &programs[i].results, "results", to->results, to->result_count);
    }
    amp_model_free_table(c->allocator, programs, count, sizeof *programs);
    return status;
}

static amp_status copy_functions(const amp_model_copying *c, amp_model *m) {
    AMP_TRY(AMP_COPY_TABLE(c, &m->cuda_code.functions, "CUDA functions", m->functions, m->function_count));
    m->cuda_code.functions = (amp_model_table){(uint32_t)m->function_count, sizeof *m->functions, m->functions};
    return AMP_OK;
}

static amp_status copy_tables(const amp_model_copying *c, amp_model *m) {
    AMP_TRY(AMP_COPY_TABLE(c, &m->cuda_code.states, "CUDA states", m->states, m->state_count));
    AMP_TRY(copy_functions(c, m));
    return copy_programs(c, m);
}

static amp_model *make_like(amp_model *owner) {
    amp_model *m = amp_alloc_zeroed(&owner->allocator, sizeof *m);
    if (!m) return NULL;
    m->allocator = owner->allocator;
    m->owner = owner;
    m->desc = owner->desc;
    m->inputs = owner->inputs;
    m->decisions = owner->decisions;
    m->decision_count = owner->decision_count;
    m->model_input_count = owner->model_input_count;
    m->input_count = owner->input_count;
    m->all_input_count = owner->all_input_count;
    return m;
}

amp_status amp_model_add_cuda(amp_model *model, const char *where, amp_error *err) {
    const amp_model_cuda *code = model->desc.cuda;
    if (code->struct_size < offsetof(amp_model_cuda, ir_text))
        return amp_fail(err, AMP_BAD_FILE, "%s: its CUDA code has a table of only %u bytes", where, code->struct_size);
    amp_model *m = model->cuda = make_like(model);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its CUDA code", where);
    memcpy(&m->cuda_code, code, code->struct_size < sizeof *code ? code->struct_size : sizeof *code);
    m->cuda_code.struct_size = sizeof m->cuda_code;
    AMP_TRY(copy_tables(&(amp_model_copying){&m->allocator, where, err}, m));
    amp_model_kinds_from_names(m);
    char cuda[256];
    snprintf(cuda, sizeof cuda, "%s: CUDA", where);
    AMP_TRY(amp_model_check(m, cuda, err));
    amp_model_find_programs(m);
    return AMP_OK;
}

void amp_model_free_cuda(amp_model *model) {
    amp_model *m = model->cuda;
    if (!m) return;
    amp_model_free_programs(m);
    amp_model_free_table(&m->allocator, m->states, m->state_count, sizeof *m->states);
    amp_model_free_table(&m->allocator, m->functions, m->function_count, sizeof *m->functions);
    amp_free(&model->allocator, m, sizeof *m);
    model->cuda = NULL;
}

amp_status amp_model_for(amp_model *model, const char *device, amp_model **out, amp_error *err) {
    *out = strcmp(device, "cuda") ? model : model->cuda;
    if (*out) return AMP_OK;
    amp_model_info info;
    amp_model_get_info(model, &info);
    return amp_fail(
        err, AMP_UNSUPPORTED,
        "%s: the model has no CUDA code (%s); run it on the device \"cpu\" (--device cpu), or compile it with "
        "ampc --target both",
        model->desc.name, info.cuda_missing);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* A field that the compiler did not know yet reads as zero. */
static amp_model_cuda_image image_at(const amp_model_cuda_function *f, uint32_t at) {
    amp_model_cuda_image image = {0};
    size_t given = f->images.elem_size;
    memcpy(&image, (const char *)f->images.data + at * given, given < sizeof image ? given : sizeof image);
    return image;
}

static bool has_image(const amp_model_cuda_function *f, const amp_model_cuda_image *wanted) {
    for (uint32_t i = 0; i < f->images.count; i++) {
        amp_model_cuda_image image = image_at(f, i);
        if (image.arch == wanted->arch && image.suffix == wanted->suffix && !image.is_cubin == !wanted->is_cubin)
            return true;
    }
    return false;
}

static bool all_have_image(const amp_model *m, const amp_model_cuda_image *wanted) {
    for (int32_t i = 0; i < m->function_count; i++)
        if (!has_image(&m->functions[i], wanted)) return false;
    return true;
}

amp_status amp_model_cuda_image_at(const amp_model *model, int32_t index, amp_cuda_image_info *out, amp_error *err) {
    int32_t count = 0;
    if (!model || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "model or out is NULL");
    const amp_model *m = model->cuda;
    for (uint32_t i = 0; m && m->function_count && i < m->functions[0].images.count; i++) {
        amp_model_cuda_image image = image_at(&m->functions[0], i);
        if (!all_have_image(m, &image) || count++ != index) continue;
        *out = (amp_cuda_image_info){.arch = (int32_t)image.arch, .is_cubin = image.is_cubin != 0};
        out->suffix[0] = (char)image.suffix;
        return AMP_OK;
    }
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s has no CUDA image %d; there are %d", model->desc.name, index, count);
}
