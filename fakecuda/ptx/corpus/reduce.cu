// Warps and blocks: shuffles, votes, matches, barriers, atomics, shared memory of both kinds.
extern __shared__ float dynamic[];
__shared__ int global_flag;
extern "C" __global__ void layer_norm(float *y, const float *x, int c) {
    __shared__ float part[32];
    const float *row = x + (size_t)blockIdx.x * c;
    float sum = 0, square = 0;
    for (int i = threadIdx.x; i < c; i += blockDim.x) sum += row[i], square += row[i] * row[i], dynamic[i] = row[i];
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o), square += __shfl_down_sync(~0u, square, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum + square;
    __syncthreads();
    float t = part[threadIdx.x % 32];
    t += __shfl_sync(~0u, t, 3) + __shfl_up_sync(~0u, t, 1) + __shfl_sync(0xff, t, 2, 16);
    for (int i = threadIdx.x; i < c; i += blockDim.x) y[(size_t)blockIdx.x * c + i] = (dynamic[i] - t) * rsqrtf(t + 1e-5f);
}
extern "C" __global__ void votes(int *out, const int *in) {
    int v = in[threadIdx.x];
    out[0] = __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
    out[1] = __any_sync(~0u, v > 1) + __all_sync(~0u, v > 2) + __ballot_sync(~0u, v > 3) + __activemask();
    int same;
    out[2] = __match_any_sync(~0u, v) + __match_all_sync(~0u, v, &same) + same;
    out[3] = __popc(v) + __clz(v) + __ffs(v) + __brev(v) + __byte_perm(v, 5, 0x4321) + __funnelshift_l(v, 3, v) + __sad(v, 3, 2);
    out[4] = __mul24(v, 3) + __mulhi(v, v) + __dp4a(v, v, 1) + __usad(v, 2, 1) + __rhadd(v, 7);
#if __CUDA_ARCH__ >= 800
    out[5] = __reduce_add_sync(~0u, v) + __reduce_max_sync(~0u, v);
#endif
    __syncwarp();
    __threadfence(); __threadfence_block(); __threadfence_system();
    if (v == 99) __trap();
    __nanosleep(100);
    out[6] = clock() + (int)clock64();
}
extern "C" __global__ void atomics(float *f, int *i, unsigned *u, unsigned long long *l, double *d) {
    __shared__ int s;
    if (threadIdx.x == 0) s = global_flag = 0;
    __syncthreads();
    atomicAdd(f, 1.f); atomicAdd(d, 1.); atomicAdd(i, 2); atomicAdd(u, 3); atomicAdd(l, 4ull); atomicAdd(&s, 5);
    i[1] = atomicMax(i, 7) + atomicMin(u, 8u) + atomicExch(i, 9) + atomicCAS(i, 1, 2) + atomicAnd(i, 3) + atomicOr(i, 4) + atomicXor(i, 5) + atomicInc(u, 6u) + atomicDec(u, 7u);
    f[1] = atomicAdd(f, 2.f) + s;
}
