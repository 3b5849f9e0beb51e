/* codegen_cuda.c: the CUDA target as codegen.h offers it. */
#include "base/error.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"
#include "targets/target.h"

amp_status codegen_cuda(const Module *m, const CudaModule **out, amp_error *err) {
    CudaModule *cuda = arena_new(m->arena, CudaModule);
    if (m->stage != STAGE_PLAN || target_of(m) != &target_cuda)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "module %s is at stage %s for %s: CUDA code can be emitted after the pass plan for cuda",
                        m->name, ir_stage_names[m->stage], target_of(m)->name);
    cuda->module = m;
    AMP_TRY(cuda_emit_kernels(m, cuda, err));
    *out = cuda;
    return AMP_OK;
}

void codegen_cuda_text(const CudaModule *cuda, Text *out) { cuda_print(cuda, out); }

const Module *codegen_cuda_module(const CudaModule *cuda) { return cuda->module; }

const char *codegen_cuda_entry(const CudaModule *cuda, int function) { return cuda->functions.data[function].entry; }
