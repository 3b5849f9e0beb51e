/* model.c: from a descriptor to an amp_model: tables copied, stepping by the size that the elements had when the model
 * was compiled, and checked.  How the descriptor came into memory is model_file.c's business. */
#include "runtime/model.h"

#include <dlfcn.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model_tables.h"

enum { TABLE_LIMIT = 1 << 24 /* elements; more is damage */ };

/* ---- copying ----------------------------------------------------------------------------------------------------- */

/* Fields that the model's compiler did not know yet read as zero; fields that we do not know are left out. */
amp_status amp_model_copy_table(const amp_model_copying *c, const amp_model_table *table, const char *what,
                                size_t elem_size, void **out, int32_t *count) {
    size_t given = table->elem_size, common = given < elem_size ? given : elem_size;
    *out = NULL;
    *count = 0;
    if (table->count == 0) return AMP_OK;
    if (table->count > TABLE_LIMIT || !table->data || given == 0)
        return amp_fail(c->err, AMP_BAD_FILE, "%s: the table of %s is damaged (%u elements of %zu bytes)", c->where,
                        what, table->count, given);
    char *copy = amp_alloc_zeroed(c->allocator, table->count * elem_size, AMP_TABLE_ALIGN);
    if (!copy) return amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory for the table of %s", c->where, what);
    for (uint32_t i = 0; i < table->count; i++)
        memcpy(copy + i * elem_size, (const char *)table->data + i * given, common);
    *out = copy;
    *count = (int32_t)table->count;
    return AMP_OK;
}

void amp_model_free_table(const amp_allocator *a, void *data, int32_t count, size_t elem_size) {
    amp_free(a, data, (size_t)count * elem_size, AMP_TABLE_ALIGN);
}

static amp_status copy_program(const amp_model_copying *c, const amp_model_program *from, amp_program *to) {
    to->name = from->name;
    AMP_TRY(AMP_COPY_TABLE(c, &from->buffers, "buffers", to->buffers, to->buffer_count));
    AMP_TRY(AMP_COPY_TABLE(c, &from->kernels, "kernels", to->kernels, to->kernel_count));
    return AMP_COPY_TABLE(c, &from->results, "results", to->results, to->result_count);
}

static amp_status copy_programs(const amp_model_copying *c, amp_model *m) {
    amp_model_program *programs;
    int32_t count;
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.programs, "programs", programs, count));
    m->programs = amp_alloc_zeroed(c->allocator, (size_t)count * sizeof *m->programs, AMP_TABLE_ALIGN);
    amp_status status = AMP_OK;
    if (m->programs) m->program_count = count;
    else status = amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory for the table of programs", c->where);
    for (int32_t i = 0; !status && i < count; i++) status = copy_program(c, &programs[i], &m->programs[i]);
    amp_model_free_table(c->allocator, programs, count, sizeof *programs);
    return status;
}

static amp_status copy_tables(const amp_model_copying *c, amp_model *m) {
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.states, "states", m->states, m->state_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.inputs, "inputs", m->inputs, m->all_input_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.decisions, "decisions", m->decisions, m->decision_count));
    return copy_programs(c, m);
}

/* A kernel that was not emitted for an instruction set runs as the next lower one. */
static void fill_instruction_sets(amp_program *p) {
    for (int32_t i = 0; i < p->kernel_count; i++)
        for (int isa = 1; isa < AMP_ISA_COUNT; isa++)
            if (!p->kernels[i].run[isa]) p->kernels[i].run[isa] = p->kernels[i].run[isa - 1];
}

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

static amp_status check_header(const amp_model_desc *desc, const char *where, amp_error *err) {
    if (!desc || desc->magic != AMP_MODEL_MAGIC) return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc", where);
    if (desc->abi_major != AMP_MODEL_ABI_MAJOR)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: has model ABI %u.%u, this library reads %u.x; compile the model again", where,
                        desc->abi_major, desc->abi_minor, AMP_MODEL_ABI_MAJOR);
    if (desc->struct_size < offsetof(amp_model_desc, ir_text))
        return amp_fail(err, AMP_BAD_FILE, "%s: the descriptor has only %u bytes", where, desc->struct_size);
    if (desc->required_features)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: needs features 0x%llx that this library does not have; use a newer one", where,
                        (unsigned long long)desc->required_features);
    return AMP_OK;
}

static int32_t inputs_up_to(const amp_model *m, uint32_t kind) {
    int32_t count = 0;
    while (count < m->all_input_count && m->inputs[count].train_only <= kind) count++;
    return count;
}

static void count_inputs(amp_model *m) {
    m->model_input_count = inputs_up_to(m, AMP_INPUT_OF_MODEL);
    m->input_count = inputs_up_to(m, AMP_INPUT_OF_TRAINING);
}

void amp_model_find_programs(amp_model *m) {
    m->accumulate = m->desc.accumulate > 1 ? m->desc.accumulate : 1;
    m->train_step = amp_model_program_named(m, m->accumulate > 1 ? "micro_step" : "train_step");
    if (m->accumulate > 1) m->apply_step = amp_model_program_named(m, "apply_step");
    m->eval = amp_model_program_named(m, "eval");
    m->infer = amp_model_program_named(m, "infer");
    m->eval_fp32 = amp_model_program_named(m, "eval_fp32");
    m->infer_fp32 = amp_model_program_named(m, "infer_fp32");
    m->metrics = amp_model_program_named(m, "metrics");
    m->refresh = amp_model_program_named(m, "refresh");
}

static amp_status fill(amp_model *m, const amp_model_desc *desc, const char *where, amp_error *err) {
    size_t common = desc->struct_size < sizeof m->desc ? desc->struct_size : sizeof m->desc;
    memcpy(&m->desc, desc, common);
    AMP_TRY(copy_tables(&(amp_model_copying){&m->allocator, where, err}, m));
    for (int32_t i = 0; i < m->program_count; i++) fill_instruction_sets(&m->programs[i]);
    AMP_TRY(amp_model_check(m, where, err));
    count_inputs(m);
    amp_model_find_programs(m);
    return m->desc.cuda ? amp_model_add_cuda(m, where, err) : AMP_OK;
}

amp_status amp_model_from_desc(const amp_model_desc *desc, const char *where, const amp_allocator *allocator,
                               amp_model **out, amp_error *err) {
    *out = NULL;
    AMP_TRY(check_header(desc, where, err));
    amp_allocator a = amp_allocator_or_default(allocator);
    amp_model *m = amp_alloc_zeroed(&a, sizeof *m, AMP_TABLE_ALIGN);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the model", where);
    m->allocator = a;
    atomic_init(&m->references, 1);
    amp_status status = fill(m, desc, where, err);
    if (status) amp_model_release(m);
    else *out = m;
    return status;
}

/* A model for CUDA lives and goes with the one that has it. */
void amp_model_retain(amp_model *model) {
    if (model && model->owner) model = model->owner;
    if (model) atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
}

void amp_model_free_programs(amp_model *m) {
    for (int32_t i = 0; i < m->program_count; i++) {
        amp_program *p = &m->programs[i];
        amp_model_free_table(&m->allocator, p->buffers, p->buffer_count, sizeof *p->buffers);
        amp_model_free_table(&m->allocator, p->kernels, p->kernels ? p->kernel_count : 0, sizeof *p->kernels);
        amp_model_free_table(&m->allocator, p->cuda_kernels, p->kernel_count, sizeof *p->cuda_kernels);
        amp_model_free_table(&m->allocator, p->results, p->result_count, sizeof *p->results);
    }
    amp_model_free_table(&m->allocator, m->programs, m->program_count, sizeof *m->programs);
}

void amp_model_release(amp_model *m) {
    if (m && m->owner) m = m->owner;
    if (!m || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
    amp_allocator a = m->allocator;
    amp_model_free_cuda(m);
    amp_model_free_programs(m);
    amp_model_free_table(&a, m->states, m->state_count, sizeof *m->states);
    amp_model_free_table(&a, m->inputs, m->all_input_count, sizeof *m->inputs);
    amp_model_free_table(&a, m->decisions, m->decision_count, sizeof *m->decisions);
    if (m->library) dlclose(m->library);
    amp_free(&a, m, sizeof *m, AMP_TABLE_ALIGN);
}

/* ---- looking things up ------------------------------------------------------------------------------------------- */

bool amp_model_trains(const amp_model *m) { return m->train_step && (m->accumulate == 1 || m->apply_step); }

bool amp_model_has_fp32(const amp_model *m) { return m->infer_fp32 || (m->desc.low && !strcmp(m->desc.low, "f32")); }

const amp_program *amp_model_program_named(const amp_model *model, const char *name) {
    for (int32_t i = 0; i < model->program_count; i++)
        if (!strcmp(model->programs[i].name, name)) return &model->programs[i];
    return NULL;
}

int32_t amp_model_state_index(const amp_model *model, const char *name) {
    for (int32_t i = 0; i < model->state_count; i++)
        if (!strcmp(model->states[i].name, name)) return i;
    return -1;
}

int32_t amp_program_result_index(const amp_program *program, const char *name) {
    for (int32_t i = 0; i < program->result_count; i++)
        if (!strcmp(program->results[i].name, name)) return i;
    return -1;
}

int64_t amp_model_dim_at(const amp_model_dim *dim, int64_t n) { return dim->of_n ? dim->mul * n / dim->div : dim->mul; }

int64_t amp_model_state_elements(const amp_model_state *state) {
    int64_t count = 1;
    for (uint32_t i = 0; i < state->rank; i++) count *= state->dims[i];
    return count;
}
