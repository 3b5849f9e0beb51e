// Tensor cores, asynchronous copies, matrices from shared memory: inline assembly as libraries write it.
#include <cuda_fp16.h>
extern __shared__ __align__(128) __half smem[];
__device__ __forceinline__ void mma_k8(float (&d)[4], const unsigned (&a)[2], unsigned b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
}
extern "C" __global__ void __launch_bounds__(128) product(float *c, const __half *a, const __half *b, int k) {
    float d[4] = {};
    unsigned base = (unsigned)__cvta_generic_to_shared(smem), lane = threadIdx.x % 32;
    for (int at = 0; at < k; at += 16) {
        unsigned to = base + threadIdx.x * 16;
#if __CUDA_ARCH__ >= 800
        int bytes = at + 8 < k ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(a + at + lane * 8), "r"(bytes));
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;");
#else
        ((uint4 *)smem)[threadIdx.x] = *(const uint4 *)(a + at + lane * 8);
#endif
        __syncthreads();
        unsigned x[4], y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(base + (lane & 15) * 16));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(base + (lane & 15) * 16));
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
#else
        unsigned low[2] = { x[0], x[1] }, high[2] = { x[2], x[3] };
        mma_k8(d, low, y[0]);
        mma_k8(d, high, y[1]);
#endif
        __syncthreads();
    }
    *(float2 *)(c + lane * 4) = make_float2(d[0], d[1]);
    *(float2 *)(c + lane * 4 + 2) = make_float2(d[2], d[3]);
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred P1;\nLAB_WAIT:\n mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n @P1 bra DONE;\n bra LAB_WAIT;\nDONE:\n }" ::"r"(base), "r"(0));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(base), "r"(lane), "r"(lane));
    asm volatile("fence.proxy.async.shared::cta;");
#endif
}
