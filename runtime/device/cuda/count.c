/* count.c: see count.h. */
#include "runtime/device/cuda/count.h"

#include "base/alloc.h"

enum {
    PLACES = 1024,
    THREADS = 256,
    NUMBERS_OF_THREAD = 16 /* at least, where they are many */
};

/* As the kernel adds to it. */
typedef struct Place {
    uint64_t count[AMP_NUMBER_BINS], largest;
} Place;

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* In PTX, so that a machine without NVRTC has it too.  Threads of a warp mostly meet numbers of few sizes: each eighth
 * of them has a table of its own in shared memory, entry by entry beside the others; its last entry is the largest.
 * Counts are sums of integers, so that the order in which blocks add theirs does not matter. */
#define COPIES "8"
#define ENTRIES "2129" /* AMP_NUMBER_BINS * 8 + 1 */
_Static_assert(AMP_NUMBER_BINS * 8 + 1 == 2129, "ENTRIES, LARGEST and LARGEST_BYTE follow from AMP_NUMBER_BINS");
#define LARGEST "2128"
#define LARGEST_BYTE "8512"
#define PAST_BOUND(bound)                                                                                              \
    "setp.ge.u32 p, m, " #bound ";\n"                                                                                  \
    "@p add.u32 bin, bin, 1;\n"

static const char kernel_text[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry amp_count(.param .u64 numbers, .param .u64 count, .param .u32 storage, .param .u64 place,\n"
    " .param .u64 columns, .param .u64 between)\n"
    ".maxntid 256, 1, 1\n"
    "{\n"
    ".reg .pred p;\n"
    ".reg .b16 h;\n"
    ".reg .f32 f;\n"
    ".reg .b32 thread, base, table, kind, zero, one, entry, m, bin, largest, t;\n"
    ".reg .b64 from, to, end, i, step, a, at, width, gap;\n"
    ".shared .align 4 .b32 tables[" ENTRIES "];\n"
    "ld.param.u64 from, [numbers];\n"
    "cvta.to.global.u64 from, from;\n"
    "ld.param.u64 to, [place];\n"
    "cvta.to.global.u64 to, to;\n"
    "ld.param.u64 end, [count];\n"
    "ld.param.u32 kind, [storage];\n"
    "ld.param.u64 width, [columns];\n"
    "ld.param.u64 gap, [between];\n"
    "mov.u32 thread, %tid.x;\n"
    "mov.u32 base, tables;\n"
    "mov.u32 zero, 0;\n"
    "mov.u32 one, 1;\n"
    "mov.u32 largest, 0;\n"
    /* tables: zero */
    "mov.u32 entry, thread;\n"
    "clear:\n"
    "mad.lo.u32 t, entry, 4, base;\n"
    "st.shared.u32 [t], zero;\n"
    "add.u32 entry, entry, 256;\n"
    "setp.lt.u32 p, entry, " ENTRIES ";\n"
    "@p bra clear;\n"
    "bar.sync 0;\n"
    /* numbers i, i + step, ... */
    "rem.u32 t, thread, " COPIES ";\n"
    "mad.lo.u32 table, t, 4, base;\n"
    "mov.u32 t, %ctaid.x;\n"
    "mad.lo.u32 t, t, 256, thread;\n"
    "cvt.u64.u32 i, t;\n"
    "mov.u32 t, %nctaid.x;\n"
    "mul.wide.u32 step, t, 256;\n"
    "next:\n"
    "setp.ge.u64 p, i, end;\n"
    "@p bra counted;\n"
    "mov.b64 at, i;\n"
    "setp.eq.u64 p, gap, 0;\n"
    "@p bra dense;\n"
    "div.u64 at, i, width;\n"
    "mad.lo.u64 at, at, gap, i;\n"
    "dense:\n"
    "setp.eq.u32 p, kind, 0;\n"
    "@p bra f32;\n"
    "shl.b64 a, at, 1;\n"
    "add.u64 a, a, from;\n"
    "ld.global.u16 h, [a];\n"
    "setp.eq.u32 p, kind, 1;\n"
    "@p bra f16;\n"
    "cvt.u32.u16 m, h;\n"
    "shl.b32 m, m, 16;\n"
    "bra magnitude;\n"
    "f16:\n"
    "cvt.f32.f16 f, h;\n"
    "mov.b32 m, f;\n"
    "bra magnitude;\n"
    "f32:\n"
    "shl.b64 a, at, 2;\n"
    "add.u64 a, a, from;\n"
    "ld.global.u32 m, [a];\n"
    "magnitude:\n"
    "and.b32 m, m, 0x7FFFFFFF;\n"
    "shr.u32 bin, m, 23;\n" AMP_BIN_BOUNDS(PAST_BOUND) "mul.lo.u32 bin, bin, 32;\n"
                                                       "add.u32 bin, bin, table;\n"
                                                       "red.shared.add.u32 [bin], one;\n"
                                                       "setp.lt.u32 p, m, 0x7F800000;\n"
                                                       "selp.b32 m, m, zero, p;\n"
                                                       "max.u32 largest, largest, m;\n"
                                                       "add.u64 i, i, step;\n"
                                                       "bra next;\n"
                                                       "counted:\n"
                                                       "red.shared.max.u32 [base + " LARGEST_BYTE "], largest;\n"
                                                       "bar.sync 0;\n"
                                                       /* tables: to the place */
                                                       "mov.u32 entry, thread;\n"
                                                       "add_entry:\n"
                                                       "mad.lo.u32 t, entry, 4, base;\n"
                                                       "ld.shared.u32 m, [t];\n"
                                                       "setp.eq.u32 p, m, 0;\n"
                                                       "@p bra added;\n"
                                                       "div.u32 t, entry, " COPIES ";\n"
                                                       "mul.wide.u32 a, t, 8;\n"
                                                       "add.u64 a, a, to;\n"
                                                       "cvt.u64.u32 i, m;\n"
                                                       "setp.eq.u32 p, entry, " LARGEST ";\n"
                                                       "@p red.global.max.u64 [a], i;\n"
                                                       "@!p red.global.add.u64 [a], i;\n"
                                                       "added:\n"
                                                       "add.u32 entry, entry, 256;\n"
                                                       "setp.lt.u32 p, entry, " ENTRIES ";\n"
                                                       "@p bra add_entry;\n"
                                                       "ret;\n"
                                                       "}\n";

static amp_status load(amp_cuda_counting *c, amp_cuda_context *context, amp_error *err) {
    return amp_cuda_load_text(context, kernel_text, "amp_count", &c->module, &c->function, err);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static amp_status clear(const amp_cuda_counting *c, amp_cuda_context *context, CuStream stream, amp_error *err) {
    return AMP_CUDA(context, err, fill32, (c->memory, 0, PLACES * sizeof(Place) / sizeof(uint32_t), stream));
}

static amp_status make(amp_cuda_counting *c, amp_cuda_context *context, CuStream stream, const amp_allocator *allocator,
                       amp_error *err) {
    c->to = amp_alloc_zeroed(allocator, PLACES * sizeof(amp_number_bins *));
    if (!c->to) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to count numbers");
    AMP_TRY(load(c, context, err));
    AMP_TRY(AMP_CUDA(context, err, mem_alloc, (&c->memory, PLACES * sizeof(Place))));
    return clear(c, context, stream, err);
}

size_t amp_cuda_counting_bytes(const amp_cuda_counting *c) { return c->memory ? PLACES * sizeof(Place) : 0; }

void amp_cuda_counting_free(amp_cuda_counting *c, amp_cuda_context *context, const amp_allocator *allocator) {
    if (c->memory) AMP_CUDA_FREE(context, mem_free, (c->memory));
    if (c->module) AMP_CUDA_FREE(context, module_unload, (c->module));
    amp_free(allocator, c->to, PLACES * sizeof(amp_number_bins *));
    *c = (amp_cuda_counting){0};
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static unsigned blocks_for(const amp_cuda_context *context, uint64_t count) {
    return amp_cuda_blocks(context, count / (THREADS * NUMBERS_OF_THREAD) + 1);
}

static amp_status launch(const amp_cuda_counting *c, amp_cuda_context *context, const amp_counted *what,
                         CuStream stream, amp_error *err) {
    CuPointer from = amp_cuda_pointer(what->memory), to = c->memory + (CuPointer)c->taken * sizeof(Place);
    uint64_t count = (uint64_t)(what->rows * what->cols), columns = (uint64_t)what->cols, gap = (uint64_t)what->gap;
    uint32_t kind = what->storage == AMP_DT_F16 ? 1 : what->storage == AMP_DT_BF16 ? 2 : 0;
    void *parameters[] = {&from, &count, &kind, &to, &columns, &gap};
    return AMP_CUDA(context, err, launch,
                    (c->function, blocks_for(context, count), 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL));
}

amp_status amp_cuda_count(amp_cuda_counting *c, amp_cuda_context *context, const amp_counted *what, amp_number_bins *to,
                          CuStream stream, const amp_allocator *allocator, amp_error *err) {
    if (!c->memory) {
        amp_status status = make(c, context, stream, allocator, err);
        if (status) amp_cuda_counting_free(c, context, allocator);
        if (status) return status;
    }
    if (c->taken == PLACES) AMP_TRY(amp_cuda_finish_counts(c, context, stream, allocator, err));
    AMP_TRY(launch(c, context, what, stream, err));
    c->to[c->taken++] = to;
    return AMP_OK;
}

static void add(amp_number_bins *to, const Place *from) {
    for (int b = 0; b < AMP_NUMBER_BINS; b++) to->count[b] += (int64_t)from->count[b];
    if (from->largest > to->largest) to->largest = (uint32_t)from->largest;
}

static amp_status take(amp_cuda_counting *c, amp_cuda_context *context, Place *places, size_t bytes, CuStream stream,
                       amp_error *err) {
    AMP_TRY(AMP_CUDA(context, err, copy_out, (places, c->memory, bytes, stream)));
    AMP_TRY(clear(c, context, stream, err));
    AMP_TRY(AMP_CUDA(context, err, stream_sync, (stream)));
    for (int i = 0; i < c->taken; i++) add(c->to[i], &places[i]);
    return AMP_OK;
}

amp_status amp_cuda_finish_counts(amp_cuda_counting *c, amp_cuda_context *context, CuStream stream,
                                  const amp_allocator *allocator, amp_error *err) {
    const size_t bytes = (size_t)c->taken * sizeof(Place);
    if (!c->taken) return AMP_OK;
    Place *places = amp_alloc(allocator, bytes);
    amp_status status = places ? take(c, context, places, bytes, stream, err)
                               : amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %d counts", c->taken);
    amp_free(allocator, places, bytes);
    c->taken = 0;
    return status;
}
