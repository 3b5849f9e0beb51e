/* model_tables.c: see model_tables.h. */
#include "runtime/model/model_tables.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { TABLE_LIMIT = 1 << 24 /* elements; more is damage */ };

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
