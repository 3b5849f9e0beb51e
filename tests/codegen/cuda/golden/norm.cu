/* k03  ln: layer_norm           norm.amp:4
 *   row over [n, 512] in train_step
 *   in     b0 h f16[N, 512]   b1 ln.weight f32[512]   b2 ln.bias f32[512]
 *   out    b3 13 f32[N, 1]   b4 21 f32[N, 1]   b5 h.1.f16 f16[N, 512]   b6 h.1.f16 f16[N, 512] as f32
 *   v2 %h.f32 f32[N, 512] = cast(v1)   {f32, min-cast:12, for ln.layer_norm}
 *   v3 %13 f32[N, 1] = reduce_mean(v2)   {f32, min-cast:12}
 *   v4 %14 f32[N, 512] = sub(v2, v3)
 *   v5 %15 f32[N, 512] = mul(v4, v4)
 *   v6 %16 f32[N, 1] = reduce_mean(v5)
 *   v7 %17 f32 = const()
 *   v8 %18 f32[N, 1] = add(v6, v7)
 *   v9 %19 f32[N, 1] = sqrt(v8)
 *   v10 %20 f32 = const()
 *   v11 %21 f32[N, 1] = div(v10, v9)   {f32, min-cast:12}
 *   v12 %22 f32[N, 512] = mul(v4, v11)
 *   v14 %23 f32[N, 512] = mul(v12, v13)
 *   v16 %h.1 f32[N, 512] = add(v14, v15)   {f32, min-cast:12}
 *   v17 %h.1.f16 f16[N, 512] = cast(v16)   {lower, min-cast:7, for head.linear}
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k03(const uint16_t *b0, const float *b1, const float *b2, float *b3, float *b4, uint16_t *b5, Look *b6, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 512 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const bool looks6 = b6->on;
    const float v7 = 9.999999747378752e-06f;
    const float v10 = 1.0f;
    float kept2[4][4];
    float kept4[4][4];
    KeptSum s3 = KeptSum{0.0f, 0.0f};
    UNROLL
    for (int q = 0; q < 4; q++) {
        MAYBE_UNUSED const int32_t c0 = (q * 32 + lane) * 4;
        float x1[4];
        load_f16(x1, b0 + r * COLS + c0);
        float run3 = 0.0f;
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float v1 = x1[i];
            const float v2 = v1;
            kept2[q][i] = v2;
            run3 = run3 + v2;
        }
        plus_kept(s3, run3);
    }
    const float v3 = mean_kept(warp_reduce<Plus>(s3), (float)COLS);
    KeptSum s6 = KeptSum{0.0f, 0.0f};
    UNROLL
    for (int q = 0; q < 4; q++) {
        MAYBE_UNUSED const int32_t c0 = (q * 32 + lane) * 4;
        float run6 = 0.0f;
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float v2 = kept2[q][i];
            const float v4 = v2 - v3;
            kept4[q][i] = v4;
            const float v5 = v4 * v4;
            run6 = run6 + v5;
        }
        plus_kept(s6, run6);
    }
    const float v6 = mean_kept(warp_reduce<Plus>(s6), (float)COLS);
    const float v8 = v6 + v7;
    const float v9 = sqrt_f32(v8);
    const float v11 = v10 / v9;
    UNROLL
    for (int q = 0; q < 4; q++) {
        MAYBE_UNUSED const int32_t c0 = (q * 32 + lane) * 4;
        float x13[4];
        load_f32(x13, b1 + c0);
        float x15[4];
        load_f32(x15, b2 + c0);
        float y5[4];
        float y6[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float v13 = x13[i];
            const float v15 = x15[i];
            const float v4 = kept4[q][i];
            const float v12 = v4 * v11;
            const float v14 = v12 * v13;
            const float v16 = v14 + v15;
            const float v17 = round_f16_f32(v16);
            y5[i] = v17;
            y6[i] = v16;
        }
        store_f16(b5 + r * COLS + c0, y5);
        if (looks6) look(b6, y6);
    }
    if (lane == 0) put_f32(b3 + r, v3);
    if (lane == 0) put_f32(b4 + r, v11);
}
