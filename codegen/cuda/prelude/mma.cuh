/* mma.cuh: tensor cores and asynchronous copies, one instruction a function.  Which lane holds which element is in
 * NVIDIA's PTX ISA document: "Matrix fragments for mma.m16n8k16" and its neighbours, and "ldmatrix".  A lane of a warp
 * is g = lane / 4, q = lane % 4 there. */

#if __CUDA_ARCH__ >= 800
#define HAS_ASYNC_COPIES 1
#else
#define HAS_ASYNC_COPIES 0
#endif

/* |x|, computed here: else the compiler computes what is cheap again in each turn of a loop, to save registers. */
INLINE unsigned kept(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}

template <class T> INLINE const T *kept(const T *p) {
    asm volatile("" : "+l"(p));
    return p;
}

INLINE unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

/* Four neighbours.  From sm_100 on NVRTC would cut a vector in two where not all of it may be needed, and lanes that
 * read eight bytes of sixteen meet in the banks. */
INLINE void load_shared(float *x, const float *from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(shared_address(from))
                 : "memory");
}

/* Four matrices of 8 x 8 16-bit elements; lanes 8 j .. 8 j + 7 say where the rows of matrix j are.  r[j]: row g,
 * columns 2 q and 2 q + 1 of matrix j; with 32-bit elements row g, column q of 8 x 4. */
INLINE void load_matrices(unsigned (&r)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/* r[j]: rows 2 q and 2 q + 1, column g of matrix j. */
INLINE void load_matrices_transposed(unsigned (&r)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/* d += A B, 16 x 8: over 16 elements of k (f16, bf16), or 8 (tf32).  Sums are f32. */
#define MMA_INSTRUCTION(form, d, a0, a1, a2, a3, b0, b1)                                                               \
    asm("mma.sync.aligned." form " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                    \
        : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                                                       \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define MMA_INSTRUCTION_OF_8(form, d, a0, a1, b0)                                                                      \
    asm("mma.sync.aligned." form " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                \
        : "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3])                                                       \
        : "r"(a0), "r"(a1), "r"(b0))

struct MmaF16 {
    typedef uint16_t Element;
    static INLINE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
        MMA_INSTRUCTION("m16n8k16.row.col.f32.f16.f16.f32", d, a[0], a[1], a[2], a[3], b[0], b[1]);
#else
        MMA_INSTRUCTION_OF_8("m16n8k8.row.col.f32.f16.f16.f32", d, a[0], a[1], b[0]);
        MMA_INSTRUCTION_OF_8("m16n8k8.row.col.f32.f16.f16.f32", d, a[2], a[3], b[1]);
#endif
    }
};
struct MmaBf16 { /* from sm_80 on */
    typedef uint16_t Element;
    static INLINE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        MMA_INSTRUCTION("m16n8k16.row.col.f32.bf16.bf16.f32", d, a[0], a[1], a[2], a[3], b[0], b[1]);
    }
};
struct MmaTf32 { /* from sm_80 on; elements are f32 that have been rounded to tf32 */
    typedef float Element;
    static INLINE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        MMA_INSTRUCTION("m16n8k8.row.col.f32.tf32.tf32.f32", d, a[0], a[1], a[2], a[3], b[0], b[1]);
    }
};

/* |BYTES| bytes from global to shared memory, without a register; |inside| false: zeros, and nothing is read. */
template <int BYTES> INLINE void copy_async(unsigned to, const void *from, bool inside) {
#if HAS_ASYNC_COPIES
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                     "r"(inside ? BYTES : 0)
                     : "memory");
#endif
}

INLINE void close_copies() { /* what was started since the last call is one group */
#if HAS_ASYNC_COPIES
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All groups of this thread but the |LATEST| ones have arrived. */
template <int LATEST> INLINE void await_copies() {
#if HAS_ASYNC_COPIES
    asm volatile("cp.async.wait_group %0;" ::"n"(LATEST) : "memory");
#endif
}
