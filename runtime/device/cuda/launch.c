/* launch.c: see launch.h. */
#include "runtime/device/cuda/launch.h"

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/cuda/context.h"

enum {
    MAX_PARAMETERS = 260,           /* operands that model_check_cuda.c lets pass, n, and the elements of a batch */
    STATIC_SHARED_LIMIT = 48 * 1024 /* more must be asked for */
};

static CuPointer address_of(const amp_cuda_launching *l, const amp_run *run, uint32_t buffer) {
    bool input = run->program->buffers[buffer].kind == AMP_BUFFER_INPUT;
    return input ? amp_cuda_upload_address(l->upload, run->program, (int32_t)buffer, run->n)
                 : amp_cuda_pointer(run->buffers[buffer]);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static size_t aligned(size_t bytes) { return (bytes + AMP_ALIGN - 1) / AMP_ALIGN * AMP_ALIGN; }

static size_t operand_table_bytes(const amp_model_cuda_kernel *k) {
    return k->operand_table ? aligned(k->operand_count * sizeof(CuPointer)) : 0;
}

static size_t table_bytes(const amp_model_cuda_kernel *k) {
    return operand_table_bytes(k) + aligned(k->batch * sizeof(int64_t));
}

static void fill_tables(const amp_cuda_launching *l, const amp_run *run, char *at) {
    for (int32_t i = 0; i < run->program->kernel_count; at += table_bytes(&run->program->cuda_kernels[i++])) {
        const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
        CuPointer *operands = (CuPointer *)(void *)at;
        int64_t *elements = (int64_t *)(void *)(at + operand_table_bytes(k));
        for (uint32_t o = 0; k->operand_table && o < k->operand_count; o++)
            operands[o] = address_of(l, run, k->operands[o]);
        for (uint32_t b = 0; b < k->batch; b++) elements[b] = amp_model_dim_at(&k->batch_elements[b], run->n);
    }
}

static amp_status upload(amp_cuda_tables *t, const amp_cuda_launching *l, const amp_run *run, CuStream stream,
                         const amp_allocator *allocator, amp_error *err) {
    amp_cuda_context *c = l->context;
    char *host = amp_alloc_zeroed(allocator, t->bytes);
    if (!host) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its tables", run->program->name);
    fill_tables(l, run, host);
    amp_status status = AMP_CUDA(c, err, mem_alloc, (&t->memory, t->bytes));
    if (!status) status = AMP_CUDA(c, err, copy_in, (t->memory, host, t->bytes, stream));
    if (!status) status = AMP_CUDA(c, err, stream_sync, (stream));
    amp_free(allocator, host, t->bytes);
    return status;
}

amp_status amp_cuda_tables_make(amp_cuda_tables *t, const amp_cuda_launching *l, const amp_run *run, CuStream stream,
                                const amp_allocator *allocator, amp_error *err) {
    *t = (amp_cuda_tables){0};
    for (int32_t i = 0; i < run->program->kernel_count; i++) t->bytes += table_bytes(&run->program->cuda_kernels[i]);
    if (!t->bytes) return AMP_OK;
    amp_status status = upload(t, l, run, stream, allocator, err);
    if (status) amp_cuda_tables_free(t, l->context);
    return status;
}

void amp_cuda_tables_free(amp_cuda_tables *t, amp_cuda_context *context) {
    if (t->memory) AMP_CUDA_FREE(context, mem_free, (t->memory));
    *t = (amp_cuda_tables){0};
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct Parameters {
    uint64_t values[MAX_PARAMETERS];
    void *pointers[MAX_PARAMETERS];
    uint32_t count;
} Parameters;

static void add(Parameters *p, uint64_t value) {
    p->values[p->count] = value;
    p->pointers[p->count] = &p->values[p->count];
    p->count++;
}

static void fill_parameters(Parameters *p, const amp_cuda_launching *l, const amp_run *run,
                            const amp_model_cuda_kernel *k, CuPointer tables) {
    p->count = 0;
    if (k->operand_table) add(p, tables);
    for (uint32_t i = 0; !k->operand_table && i < k->operand_count; i++) add(p, address_of(l, run, k->operands[i]));
    add(p, (uint64_t)run->n);
    if (k->batch) add(p, tables + operand_table_bytes(k));
}

/* CUDA's limits of a grid. */
static const int64_t grid_limits[3] = {INT32_MAX, 65535, 65535};

static amp_status measure_grid(const amp_run *run, const amp_model_cuda_kernel *k, unsigned grid[3], amp_error *err) {
    const amp_model_cuda_launch *l = &k->launch;
    for (int axis = 0; axis < 3; axis++) {
        int64_t per = l->per[axis], extent = per ? amp_model_dim_at(&l->extent[axis], run->n) : 1;
        int64_t blocks = per ? (extent + per - 1) / per : 1;
        if (blocks < 1) blocks = 1;
        if (blocks > grid_limits[axis])
            return amp_fail(err, AMP_UNSUPPORTED, "%s: kernel %s takes %lld blocks at n = %lld; CUDA has %lld at most",
                            run->program->name, k->name, (long long)blocks, (long long)run->n,
                            (long long)grid_limits[axis]);
        grid[axis] = (unsigned)blocks;
    }
    return AMP_OK;
}

amp_status amp_cuda_launch(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, CuPointer *tables,
                           CuStream stream, amp_error *err) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    Parameters p;
    unsigned grid[3];
    const uint32_t *block = k->launch.block;
    CuFunction function = l->functions[k->function].function;
    AMP_TRY(measure_grid(run, k, grid, err));
    fill_parameters(&p, l, run, k, *tables);
    *tables += table_bytes(k);
    return AMP_CUDA(l->context, err, launch,
                    (function, grid[0], grid[1], grid[2], block[0], block[1], block[2], k->launch.shared_bytes, stream,
                     p.pointers, NULL));
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

static uint32_t most_shared(const amp_model *m, uint32_t function) {
    uint32_t most = 0;
    for (int32_t i = 0; i < m->program_count; i++)
        for (int32_t j = 0; j < m->programs[i].kernel_count; j++) {
            const amp_model_cuda_kernel *k = &m->programs[i].cuda_kernels[j];
            if (k->function == function && k->launch.shared_bytes > most) most = k->launch.shared_bytes;
        }
    return most;
}

amp_status amp_cuda_allow_shared(const amp_cuda_launching *l, const amp_model *m, amp_error *err) {
    for (int32_t i = 0; i < m->function_count; i++) {
        uint32_t bytes = most_shared(m, (uint32_t)i);
        if (bytes <= STATIC_SHARED_LIMIT) continue;
        if (bytes > (uint32_t)l->context->info.max_shared_optin_bytes)
            return amp_fail(err, AMP_UNSUPPORTED, "%s: kernel %s takes %u bytes of shared memory; %s has %d",
                            m->desc.name, m->functions[i].entry, bytes, l->context->info.name,
                            l->context->info.max_shared_optin_bytes);
        AMP_TRY(AMP_CUDA(l->context, err, function_set_attribute,
                         (l->functions[i].function, CU_FUNC_MAX_DYNAMIC_SHARED, (int)bytes)));
    }
    return AMP_OK;
}
