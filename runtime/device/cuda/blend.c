/* blend.c: see blend.h. */
#include "runtime/device/cuda/blend.h"

/* In PTX, so that a machine without NVRTC has it too; rounded as runtime/params/blend.c rounds. */
static const char kernel_text[] = ".version 7.0\n"
                                  ".target sm_75\n"
                                  ".address_size 64\n"
                                  ".visible .entry amp_blend(.param .u64 own, .param .u64 other, .param .u64 count,\n"
                                  "    .param .f32 share)\n"
                                  ".maxntid 256, 1, 1\n"
                                  "{\n"
                                  ".reg .pred p;\n"
                                  ".reg .b32 thread, block;\n"
                                  ".reg .f32 x, y, t;\n"
                                  ".reg .b64 to, from, end, i, step, a, b;\n"
                                  "ld.param.u64 to, [own];\n"
                                  "cvta.to.global.u64 to, to;\n"
                                  "ld.param.u64 from, [other];\n"
                                  "cvta.to.global.u64 from, from;\n"
                                  "ld.param.u64 end, [count];\n"
                                  "ld.param.f32 t, [share];\n"
                                  "mov.u32 thread, %tid.x;\n"
                                  "mov.u32 block, %ctaid.x;\n"
                                  "mad.lo.u32 block, block, 256, thread;\n"
                                  "cvt.u64.u32 i, block;\n"
                                  "mov.u32 block, %nctaid.x;\n"
                                  "mul.wide.u32 step, block, 256;\n"
                                  "next:\n"
                                  "setp.ge.u64 p, i, end;\n"
                                  "@p bra done;\n"
                                  "shl.b64 a, i, 2;\n"
                                  "add.u64 b, a, from;\n"
                                  "add.u64 a, a, to;\n"
                                  "ld.global.f32 y, [b];\n"
                                  "ld.global.f32 x, [a];\n"
                                  "sub.rn.f32 y, y, x;\n"
                                  "mul.rn.f32 y, y, t;\n"
                                  "add.rn.f32 x, x, y;\n"
                                  "st.global.f32 [a], x;\n"
                                  "add.u64 i, i, step;\n"
                                  "bra next;\n"
                                  "done:\n"
                                  "ret;\n"
                                  "}\n";

enum { THREADS = 256 };

void amp_cuda_blending_free(amp_cuda_blending *b, amp_cuda_context *context) {
    if (b->module) AMP_CUDA_FREE(context, module_unload, (b->module));
    *b = (amp_cuda_blending){0};
}

amp_status amp_cuda_blend(amp_cuda_blending *b, amp_cuda_context *context, const amp_memory_blend *blend, float t,
                          CuStream stream, amp_error *err) {
    CuPointer to = amp_cuda_pointer(blend->to), from = amp_cuda_pointer(blend->from);
    if (blend->copies) return AMP_CUDA(context, err, copy, (to, from, blend->bytes, stream));
    if (!b->function) AMP_TRY(amp_cuda_load_text(context, kernel_text, "amp_blend", &b->module, &b->function, err));
    uint64_t count = blend->bytes / sizeof(float);
    const unsigned blocks = amp_cuda_blocks(context, (count + THREADS - 1) / THREADS);
    void *parameters[] = {&to, &from, &count, &t};
    return AMP_CUDA(context, err, launch, (b->function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}
