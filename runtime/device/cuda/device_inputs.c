/* device_inputs.c: see device_inputs.h. */
#include "runtime/device/cuda/device_inputs.h"

#include "base/error.h"

/* ---- whose memory ------------------------------------------------------------------------------------------------ */

/* CU_INVALID_VALUE is the driver's answer for an address that it did not give out. */
static amp_status ask(amp_cuda_context *c, int attribute, CuPointer pointer, int *value, bool *known, amp_error *err) {
    AMP_TRY(amp_cuda_latch_check(&c->latch, err));
    CuResult result = c->driver.pointer_attribute(value, attribute, pointer);
    *known = result == CU_SUCCESS;
    if (*known || result == CU_INVALID_VALUE) return AMP_OK;
    return amp_cuda_result(&c->driver, &c->latch, CUDA_CALL_pointer_attribute, result, err);
}

static amp_status check_address(amp_cuda_context *c, amp_input_memory memory, const char *name, const void *array,
                                size_t offset, amp_error *err) {
    const CuPointer pointer = amp_cuda_pointer(array) + offset;
    const bool pinned = memory == AMP_INPUTS_PINNED;
    int type = 0, device = -1;
    bool known;
    AMP_TRY(ask(c, CU_POINTER_MEMORY_TYPE, pointer, &type, &known, err));
    if (!known || type != (pinned ? CU_MEMORY_HOST : CU_MEMORY_DEVICE))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "input %s: byte %zu of the array at %p is in %s, and the session was created with "
                        "%s_inputs = 1; copy the array to %s, or create the session without it",
                        name, offset, array,
                        type == CU_MEMORY_HOST     ? "page-locked memory of the host"
                        : type == CU_MEMORY_DEVICE ? "memory of a CUDA device"
                        : pinned                   ? "no page-locked memory"
                                                   : "no memory of a CUDA device",
                        pinned ? "pinned" : "device", pinned ? "page-locked memory" : "the device");
    if (pinned || c->info.devices == 1) return AMP_OK;
    AMP_TRY(ask(c, CU_POINTER_DEVICE_ORDINAL, pointer, &device, &known, err));
    if (known && device == c->info.ordinal) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "input %s: the array at %p is in the memory of cuda:%d, and the session runs on cuda:%d; copy it",
                    name, array, device, c->info.ordinal);
}

/* Both ends, because an allocation may be mapped in pieces, so that the driver does not report its whole size. */
amp_status amp_cuda_check_array(amp_cuda_context *c, amp_input_memory memory, const char *name, const void *array,
                                size_t bytes, amp_error *err) {
    if (!bytes) return AMP_OK;
    AMP_TRY(check_address(c, memory, name, array, 0, err));
    return check_address(c, memory, name, array, bytes - 1, err);
}

/* ---- the copy of indices ----------------------------------------------------------------------------------------- */

/* In PTX, so that a machine without NVRTC has it too.  The first index that is wrong is the largest complement, which
 * does not depend on the order of threads. */
static const char kernel_text[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry amp_copy_indices(.param .u64 array, .param .u64 copy, .param .u64 count, .param .u64 limit,\n"
    "    .param .u64 ignored, .param .u32 otherwise, .param .u64 place)\n"
    ".maxntid 256, 1, 1\n"
    "{\n"
    ".reg .pred p;\n"
    ".reg .b32 index, other, t;\n"
    ".reg .b64 from, to, end, bound, ignore, fault, i, step, a, wide, key;\n"
    "ld.param.u64 from, [array];\n"
    "cvta.to.global.u64 from, from;\n"
    "ld.param.u64 to, [copy];\n"
    "cvta.to.global.u64 to, to;\n"
    "ld.param.u64 fault, [place];\n"
    "cvta.to.global.u64 fault, fault;\n"
    "ld.param.u64 end, [count];\n"
    "ld.param.u64 bound, [limit];\n"
    "ld.param.u64 ignore, [ignored];\n"
    "ld.param.u32 other, [otherwise];\n"
    "mov.u32 index, %tid.x;\n"
    "mov.u32 t, %ctaid.x;\n"
    "mad.lo.u32 t, t, 256, index;\n"
    "cvt.u64.u32 i, t;\n"
    "mov.u32 t, %nctaid.x;\n"
    "mul.wide.u32 step, t, 256;\n"
    "next:\n"
    "setp.ge.u64 p, i, end;\n"
    "@p bra done;\n"
    "shl.b64 a, i, 2;\n"
    "add.u64 wide, a, from;\n"
    "ld.global.u32 index, [wide];\n"
    "add.u64 a, a, to;\n"
    "cvt.s64.s32 wide, index;\n"
    "setp.lt.u64 p, wide, bound;\n" /* without signs: a negative one is large */
    "@p bra store;\n"
    "setp.eq.u64 p, wide, ignore;\n"
    "@p bra store;\n"
    "shl.b64 key, i, 32;\n"
    "cvt.u64.u32 wide, index;\n"
    "or.b64 key, key, wide;\n"
    "not.b64 key, key;\n"
    "red.global.max.u64 [fault], key;\n"
    "mov.u32 index, other;\n"
    "store:\n"
    "st.global.u32 [a], index;\n"
    "add.u64 i, i, step;\n"
    "bra next;\n"
    "done:\n"
    "ret;\n"
    "}\n";

enum { THREADS = 256 };

amp_status amp_cuda_indices_load(amp_cuda_indices *x, amp_cuda_context *context, amp_error *err) {
    return amp_cuda_load_text(context, kernel_text, "amp_copy_indices", &x->module, &x->function, err);
}

void amp_cuda_indices_free(amp_cuda_indices *x, amp_cuda_context *context) {
    if (x->module) AMP_CUDA_FREE(context, module_unload, (x->module));
    *x = (amp_cuda_indices){0};
}

amp_status amp_cuda_copy_indices(const amp_cuda_indices *x, amp_cuda_context *context, const amp_cuda_index_copy *copy,
                                 CuStream stream, amp_error *err) {
    amp_cuda_index_copy c = *copy;
    int64_t bound = c.input->index_bound, ignore = c.input->index_ignore;
    int32_t other = amp_index_instead(c.input);
    const unsigned blocks = amp_cuda_blocks(context, (c.count + THREADS - 1) / THREADS);
    void *parameters[] = {&c.from, &c.to, &c.count, &bound, &ignore, &other, &c.fault};
    if (!c.count) return AMP_OK;
    return AMP_CUDA(context, err, launch, (x->function, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}
