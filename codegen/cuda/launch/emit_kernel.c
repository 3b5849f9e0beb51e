/* emit_kernel.c: the code of a kernel, by its kind. */
#include "codegen/cuda/cuda_kernel.h"

static amp_status (*const emitters[KERNEL_KINDS])(CudaKernel *ck) = {
#define KERNEL(id, word, ...) [KERNEL_##id] = cuda_emit_##word,
#include "base/kernels.def"
#undef KERNEL
};

amp_status cuda_emit_kernel(Walk *w, CudaForm form, CudaBody *out, amp_error *err) {
    Text *text = arena_alloc(w->arena, sizeof *text);
    *out = (CudaBody){.min_arch = 75, .kind = w->k->kind};
    text_init(text, w->arena);
    CudaKernel ck = {
        .e = {.w = w, .spelling = &cuda_spelling, .out = text, .indent = 1, .err = err, .per_thread = true},
        .w = w,
        .body = out,
        .form = form,
        .pitch = walk_pitch(w),
        .vector = 1,
        .index = "0",
        .slot = "",
        .reduce_shape = "",
        .first_phase = w->first_phase,
        .rows = 1,
        .block = form.role ? "block" : "blockIdx",
    };
    const amp_status status = emitters[w->k->kind](&ck);
    /* one array for all kernels: theirs would grow with the square of the model */
    for (int i = 0; i < w->k->count; i++)
        for (int n = 0; n < walk_op(w, i)->n_in; n++) ck.first_phase[walk_op(w, i)->in[n].id] = 0;
    return status;
}
