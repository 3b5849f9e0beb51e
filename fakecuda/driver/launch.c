/* launch.c: kernel launches: what is refused at once, and the copy of the parameters. */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

enum { PARAM_END = 0, PARAM_BUFFER = 1, PARAM_SIZE = 2, MAX_THREADS = 1024 };

static bool within(const uint32_t v[3], const uint32_t most[3]) {
    for (int i = 0; i < 3; i++)
        if (v[i] == 0 || v[i] > most[i]) return false;
    return true;
}

static CuResult check_cluster(const Function *f, const uint32_t grid[3]) {
    const int *cluster = f->ptx->cluster;
    if (cluster[0] == 0) return CU_SUCCESS;
    for (int i = 0; i < 3; i++)
        if (cluster[i] && grid[i] % (uint32_t)cluster[i]) return CU_INVALID_CLUSTER_SIZE;
    return CU_SUCCESS;
}

static CuResult check_shape(const Function *f, const uint32_t grid[3], const uint32_t block[3],
                            uint32_t dynamic_shared) {
    static const uint32_t grid_most[3] = {2147483647, 65535, 65535}, block_most[3] = {1024, 1024, 64};
    if (!within(grid, grid_most) || !within(block, block_most)) return CU_INVALID_VALUE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > MAX_THREADS) return CU_INVALID_VALUE;
    for (int i = 0; i < 3; i++) {
        const int *required = f->ptx->required_threads;
        if (required[0] && block[i] != (uint32_t)(required[i] ? required[i] : 1)) return CU_INVALID_VALUE;
    }
    if (f->info.max_threads && threads > (uint64_t)f->info.max_threads) return CU_LAUNCH_OUT_OF_RESOURCES;
    if (dynamic_shared > (uint32_t)f->max_dynamic_shared) {
        report_misuse("%s is launched with %u bytes of dynamic shared memory; "
                      "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is %d",
                      f->ptx->name, dynamic_shared, f->max_dynamic_shared);
        return CU_INVALID_VALUE;
    }
    return check_cluster(f, grid);
}

/* |extra|: CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END, in any
 * order. */
static CuResult params_of_buffer(const Function *f, void **extra, void *out) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)*extra != PARAM_END; extra += 2) {
        if ((uintptr_t)*extra == PARAM_BUFFER) buffer = extra[1];
        else if ((uintptr_t)*extra == PARAM_SIZE) size = *(const size_t *)extra[1];
        else return CU_INVALID_VALUE;
    }
    if (!buffer || size != (size_t)f->info.param_bytes) return CU_INVALID_VALUE;
    memcpy(out, buffer, size);
    return CU_SUCCESS;
}

static CuResult copy_params(const Function *f, void **params, void **extra, void *out) {
    if (params && extra) return CU_INVALID_VALUE;
    if (f->ptx->param_count == 0) return CU_SUCCESS;
    if (extra) return params_of_buffer(f, extra, out);
    if (!params) return CU_INVALID_VALUE;
    for (int i = 0; i < f->ptx->param_count; i++) {
        if (!params[i]) {
            report_misuse("parameter %d of %s is a null pointer", i, f->ptx->name);
            return CU_INVALID_VALUE;
        }
        memcpy((char *)out + f->ptx->param_offsets[i], params[i], f->ptx->params[i].bytes);
    }
    return CU_SUCCESS;
}

CuResult launch_kernel(Context *c, CuFunction function, const uint32_t grid[3], const uint32_t block[3],
                       uint32_t shared_bytes, CuStream stream, void **params, void **extra) {
    const Function *f = handle_object(HANDLE_FUNCTION, function);
    Stream *s;
    if (!f || f->module->context != c) return CU_INVALID_HANDLE;
    CuResult result = stream_find(c, stream, &s);
    if (result == CU_SUCCESS) result = check_shape(f, grid, block, shared_bytes);
    if (result != CU_SUCCESS) return result;
    Work work = {.kind = WORK_KERNEL,
                 .function = function,
                 .dynamic_shared = shared_bytes,
                 .bytes = (uint64_t)f->info.param_bytes};
    memcpy(work.grid, grid, sizeof work.grid);
    memcpy(work.block, block, sizeof work.block);
    work.params = must_alloc(work.bytes);
    work.seed = driver.settings.seed * 0x9e3779b97f4a7c15ull + ++driver.launches;
    result = copy_params(f, params, extra, work.params);
    if (result == CU_SUCCESS) return stream_submit(s, &work);
    work_free(&work);
    return result;
}
