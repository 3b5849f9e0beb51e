/* k05  ln: layer_norm           image.amp:4
 *   row over [n, 64] in train_step
 *   in     b0 37 f16[N, 64]   b1 ln.weight f32[64]   b2 ln.bias f32[64]
 *   out    b3 38 f32[N, 1]   b4 46 f32[N, 1]   b5 h.1.f16 f16[N, 64]   b6 h.1.f16 f16[N, 64] as f32
 *   v2 %8 f32[N, 64] = cast(v1)   {f32, min-cast:12, for ln.layer_norm}
 *   v3 %38 f32[N, 1] = reduce_mean(v2)   {f32, min-cast:12}
 *   v4 %39 f32[N, 64] = sub(v2, v3)
 *   v5 %40 f32[N, 64] = mul(v4, v4)
 *   v6 %41 f32[N, 1] = reduce_mean(v5)
 *   v7 %42 f32 = const()
 *   v8 %43 f32[N, 1] = add(v6, v7)
 *   v9 %44 f32[N, 1] = sqrt(v8)
 *   v10 %45 f32 = const()
 *   v11 %46 f32[N, 1] = div(v10, v9)   {f32, min-cast:12}
 *   v12 %47 f32[N, 64] = mul(v4, v11)
 *   v14 %48 f32[N, 64] = mul(v12, v13)
 *   v16 %h.1 f32[N, 64] = add(v14, v15)   {f32, min-cast:12}
 *   v17 %h.1.f16 f16[N, 64] = cast(v16)   {lower, min-cast:7, for head.linear}
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k05(const uint16_t *b0, const float *b1, const float *b2, float *b3, float *b4, uint16_t *b5, Look *b6, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 64 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const bool looks6 = b6->on;
    const float v7 = 9.999999747378752e-06f;
    const float v10 = 1.0f;
    float kept2[1][2];
    float kept4[1][2];
    KeptSum s3 = KeptSum{0.0f, 0.0f};
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float x1[2];
        load_f16(x1, b0 + r * COLS + c0);
        float run3 = 0.0f;
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v1 = x1[i];
            const float v2 = v1;
            kept2[0][i] = v2;
            run3 = run3 + v2;
        }
        plus_kept(s3, run3);
    }
    const float v3 = mean_kept(warp_reduce<Plus>(s3), (float)COLS);
    KeptSum s6 = KeptSum{0.0f, 0.0f};
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float run6 = 0.0f;
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v2 = kept2[0][i];
            const float v4 = v2 - v3;
            kept4[0][i] = v4;
            const float v5 = v4 * v4;
            run6 = run6 + v5;
        }
        plus_kept(s6, run6);
    }
    const float v6 = mean_kept(warp_reduce<Plus>(s6), (float)COLS);
    const float v8 = v6 + v7;
    const float v9 = sqrt_f32(v8);
    const float v11 = v10 / v9;
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float x13[2];
        load_f32(x13, b1 + c0);
        float x15[2];
        load_f32(x15, b2 + c0);
        float y5[2];
        float y6[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v13 = x13[i];
            const float v15 = x15[i];
            const float v4 = kept4[0][i];
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

/* k12  ln.layer_norm.grad.input: layer_norm_grad + broadcast_to           image.amp:5
 *   row over [n, 64] in train_step
 *   in     b0 d.h.1.f16 f16[N, 64]   b1 ln.weight f32[64]   b2 37 f16[N, 64]   b3 38 f32[N, 1]   b4 46 f32[N, 1]
 *   out    b5 124 f32[N, 1, 1, 64]
 *   v2 %d.h.1 f32[N, 64] = cast(v1)   {gradient, of head.linear}
 *   v4 %106 f32[N, 64] = mul(v2, v3)
 *   v5 %107 f32[N, 1] = reduce_mean(v4)
 *   v7 %325 f32[N, 64] = cast(v6)   {f32, min-cast:12, for ln.layer_norm}
 *   v9 %104 f32[N, 64] = sub(v7, v8)
 *   v11 %105 f32[N, 64] = mul(v9, v10)
 *   v12 %108 f32[N, 64] = mul(v4, v11)
 *   v13 %109 f32[N, 1] = reduce_mean(v12)
 *   v14 %110 f32[N, 64] = sub(v4, v5)
 *   v15 %111 f32[N, 64] = mul(v11, v13)
 *   v16 %112 f32[N, 64] = sub(v14, v15)
 *   v17 %113 f32[N, 64] = mul(v16, v10)   {gradient, of ln.layer_norm}
 *   v18 %21 f16[N, 64] = cast(v17)   {gradient, of ln.layer_norm}
 *   v19 %119 f32[N, 64] = cast(v18)
 *   v20 %121 f32[N, 1, 1, 64] = reshape(v19)
 *   v21 %123 f32 = const()
 *   v22 %124 f32[N, 1, 1, 64] = mul(v20, v21)
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k12(const uint16_t *b0, const float *b1, const uint16_t *b2, const float *b3, const float *b4, float *b5, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 64 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const float v21 = 0.00390625f;
    float kept4[1][2];
    float kept11[1][2];
    const float v8 = get_f32(b3 + r);
    const float v10 = get_f32(b4 + r);
    KeptSum s5 = KeptSum{0.0f, 0.0f};
    KeptSum s13 = KeptSum{0.0f, 0.0f};
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float x1[2];
        load_f16(x1, b0 + r * COLS + c0);
        float x3[2];
        load_f32(x3, b1 + c0);
        float x6[2];
        load_f16(x6, b2 + r * COLS + c0);
        float run5 = 0.0f;
        float run13 = 0.0f;
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v1 = x1[i];
            const float v3 = x3[i];
            const float v6 = x6[i];
            const float v2 = v1;
            const float v4 = v2 * v3;
            kept4[0][i] = v4;
            const float v7 = v6;
            const float v9 = v7 - v8;
            const float v11 = v9 * v10;
            kept11[0][i] = v11;
            const float v12 = v4 * v11;
            run5 = run5 + v4;
            run13 = run13 + v12;
        }
        plus_kept(s5, run5);
        plus_kept(s13, run13);
    }
    const float v5 = mean_kept(warp_reduce<Plus>(s5), (float)COLS);
    const float v13 = mean_kept(warp_reduce<Plus>(s13), (float)COLS);
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float y5[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v4 = kept4[0][i];
            const float v11 = kept11[0][i];
            const float v14 = v4 - v5;
            const float v15 = v11 * v13;
            const float v16 = v14 - v15;
            const float v17 = v16 * v10;
            const float v18 = round_f16_f32(v17);
            const float v19 = v18;
            const float v20 = v19;
            const float v22 = v20 * v21;
            y5[i] = v22;
        }
        store_f32(b5 + r * COLS + c0, y5);
    }
}

/* k15  conv.conv2d.grad.bias: sum           image.amp:3
 *   column over [256 * n, 64] in train_step
 * k16  ln.layer_norm.grad.input: layer_norm_grad + all_finite + unscale, and more           image.amp:5
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 d.conv.y.nhwc f16[N, 16, 16, 64]
 *   out    b1 137 f32[N, 64]
 *   v2 %136 f32[N, 16, 16, 64] = cast(v1)
 *   v3 %137 f32[N, 64] = reduce_sum(v2)
 *   pass 2
 *   in     b0 d.h.1.f16 f16[N, 64]   b1 37 f16[N, 64]   b2 38 f32[N, 1]   b3 46 f32[N, 1]   b4 inverse_scale f32   b5 137 f32[N, 64]
 *   out    b6 148 bool   b7 152 bool   b8 grad.ln.weight f32[64]   b9 grad.ln.bias f32[64]   b10 144 bool   b11 grad.conv.bias f32[64]
 *   v2 %326 f32[N, 64] = cast(v1)   {gradient, of head.linear}
 *   v4 %327 f32[N, 64] = cast(v3)   {f32, min-cast:12, for ln.layer_norm}
 *   v6 %114 f32[N, 64] = sub(v4, v5)
 *   v8 %115 f32[N, 64] = mul(v6, v7)
 *   v9 %116 f32[N, 64] = mul(v2, v8)
 *   v10 %d.ln.weight f32[64] = reduce_sum(v9)   {gradient, of ln.layer_norm}
 *   v11 %d.ln.bias f32[64] = reduce_sum(v2)   {gradient, of ln.layer_norm}
 *   v12 %146 bool[64] = is_finite(v10)
 *   v13 %147 bool[64] = not(v12)
 *   v14 %148 bool = reduce_or(v13)
 *   v15 %150 bool[64] = is_finite(v11)
 *   v16 %151 bool[64] = not(v15)
 *   v17 %152 bool = reduce_or(v16)
 *   v19 %grad.ln.weight f32[64] = mul(v10, v18)   {loss_scale}
 *   v20 %grad.ln.bias f32[64] = mul(v11, v18)   {loss_scale}
 *   v22 %d.conv.bias f32[64] = reduce_sum(v21)   {weight_gradient, of conv.conv2d}
 *   v23 %142 bool[64] = is_finite(v22)
 *   v24 %143 bool[64] = not(v23)
 *   v25 %144 bool = reduce_or(v24)
 *   v26 %grad.conv.bias f32[64] = mul(v22, v18)   {loss_scale}
 *   32 columns, 4 a thread, 32 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor, the last block of a column makes what follows
 */
INLINE void train_step_k15_pass1(const uint16_t *b0, float *b1, int64_t n, int64_t rows, int64_t cols, int64_t segment)
{
    const int32_t COLS = (int32_t)cols;
    MAYBE_UNUSED const int32_t y = threadIdx.x / 8;
    const uint32_t blocks = (COLS + 31) / 32;
    const int64_t s = blockIdx.x / blocks;
    MAYBE_UNUSED const int64_t first = s * segment;
    MAYBE_UNUSED const int64_t last = first + segment < rows ? first + segment : rows;
    const int32_t column0 = (int32_t)(blockIdx.x % blocks) * 32, column = column0 + threadIdx.x % 32;
    const bool in = column < COLS;
    MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
    const int32_t c0 = column0 + threadIdx.x % 8 * 4;
    MAYBE_UNUSED const bool own = c0 < COLS;
    KeptSum s3[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
    {
        NO_UNROLL
        for (int64_t row = first + y; own && row < last; row += 256) {
            float all1[8][4];
            UNROLL
            for (int u = 0; u < 8; u++) {
                const int64_t r = row + u * 32;
                MAYBE_UNUSED const bool here = r < last;
                float(&x1)[4] = all1[u];
                load_if_f16(x1, b0 + r * COLS + c0, here);
            }
            UNROLL
            for (int u = 0; u < 8; u++) {
                const int64_t r = row + u * 32;
                if (r >= last) break;
                float(&x1)[4] = all1[u];
                UNROLL
                for (int i = 0; i < 4; i++) {
                    const float v1 = x1[i];
                    const float v2 = v1;
                    plus_kept(s3[i], v2);
                }
            }
        }
    }
    KeptSum a3 = column_reduce<Plus, 32, 32>(s3);
    const float v3 = sum_kept(a3);
    if (in && threadIdx.x < 32) put_f32(b1 + s * COLS + c, v3);
}

INLINE void train_step_k15_pass2(const uint16_t *b0, const uint16_t *b1, const float *b2, const float *b3, const float *b4, const float *b5, int32_t *b6, int32_t *b7, float *b8, float *b9, int32_t *b10, float *b11, int64_t n, int64_t rows, int64_t cols, uint32_t block)
{
    const int32_t COLS = (int32_t)cols;
    MAYBE_UNUSED const int32_t y = threadIdx.x / 8;
    MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 255) / 256);
    MAYBE_UNUSED const int64_t first = 0, last = rows;
    const int32_t column0 = (int32_t)block * 32, column = column0 + threadIdx.x % 32;
    const bool in = column < COLS;
    MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
    const int32_t c0 = column0 + threadIdx.x % 8 * 4;
    MAYBE_UNUSED const bool own = c0 < COLS;
    int32_t any6 = 0;
    int32_t any7 = 0;
    int32_t any10 = 0;
    const float v18 = get_f32(b4);
    KeptSum total10 = KeptSum{0.0f, 0.0f};
    KeptSum total11 = KeptSum{0.0f, 0.0f};
    KeptSum total22 = KeptSum{0.0f, 0.0f};
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        KeptSum s10[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        KeptSum s11[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        KeptSum s22[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 64) {
                float all1[2][4];
                float all3[2][4];
                float all5[2];
                float all7[2];
                float all21[2][4];
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f16(x1, b0 + r * COLS + c0, here);
                    float(&x3)[4] = all3[u];
                    load_if_f16(x3, b1 + r * COLS + c0, here);
                    all5[u] = here ? get_f32(b2 + r) : 0;
                    all7[u] = here ? get_f32(b3 + r) : 0;
                    float(&x21)[4] = all21[u];
                    load_if_f32(x21, b5 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    float(&x3)[4] = all3[u];
                    const float v5 = all5[u];
                    const float v7 = all7[u];
                    float(&x21)[4] = all21[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v1 = x1[i];
                        const float v3 = x3[i];
                        const float v21 = x21[i];
                        const float v2 = v1;
                        const float v4 = v3;
                        const float v6 = v4 - v5;
                        const float v8 = v6 * v7;
                        const float v9 = v2 * v8;
                        plus_kept(s10[i], v9);
                        plus_kept(s11[i], v2);
                        plus_kept(s22[i], v21);
                    }
                }
            }
        }
        KeptSum a10 = column_reduce<Plus, 32, 32>(s10);
        KeptSum a11 = column_reduce<Plus, 32, 32>(s11);
        KeptSum a22 = column_reduce<Plus, 32, 32>(s22);
        take_part<Plus, 32, 256>(total10, a10, part, parts);
        take_part<Plus, 32, 256>(total11, a11, part, parts);
        take_part<Plus, 32, 256>(total22, a22, part, parts);
    }
    KeptSum a10 = add_parts<Plus, 32, 256>(total10, parts);
    KeptSum a11 = add_parts<Plus, 32, 256>(total11, parts);
    KeptSum a22 = add_parts<Plus, 32, 256>(total22, parts);
    const float v10 = sum_kept(a10);
    const float v11 = sum_kept(a11);
    const float v22 = sum_kept(a22);
    const int32_t v12 = finite_f32(v10);
    const int32_t v13 = !v12;
    const int32_t v15 = finite_f32(v11);
    const int32_t v16 = !v15;
    const float v19 = v10 * v18;
    const float v20 = v11 * v18;
    const int32_t v23 = finite_f32(v22);
    const int32_t v24 = !v23;
    const float v26 = v22 * v18;
    any6 |= v13;
    any7 |= v16;
    if (in && threadIdx.x < 32) put_f32(b8 + c, v19);
    if (in && threadIdx.x < 32) put_f32(b9 + c, v20);
    any10 |= v24;
    if (in && threadIdx.x < 32) put_f32(b11 + c, v26);
    if (any6) *b6 = 1;
    if (any7) *b7 = 1;
    if (any10) *b10 = 1;
}

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k15(const uint16_t *b1_0, float *b1_1, const uint16_t *b2_0, const uint16_t *b2_1, const float *b2_2, const float *b2_3, const float *b2_4, const float *b2_5, int32_t *b2_6, int32_t *b2_7, float *b2_8, float *b2_9, int32_t *b2_10, float *b2_11, int64_t n, int64_t rows1, int64_t cols1, int64_t segment1, int64_t rows2, int64_t cols2, uint32_t *tickets)
{
    const uint32_t blocks = ((uint32_t)cols1 + 31) / 32, block = blockIdx.x % blocks;
    await_earlier_launches();
    train_step_k15_pass1(b1_0, b1_1, n, rows1, cols1, segment1);
    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
    train_step_k15_pass2(b2_0, b2_1, b2_2, b2_3, b2_4, b2_5, b2_6, b2_7, b2_8, b2_9, b2_10, b2_11, n, rows2, cols2, block);
}

/* k03  ln: layer_norm           image.amp:4
 *   row over [n, 64] in eval
 * k03  ln: layer_norm           image.amp:4
 *   row over [n, 64] in infer
 *   in     b0 19 f16[N, 64]   b1 ln.weight f32[64]   b2 ln.bias f32[64]
 *   out    b3 h.1.f16 f16[N, 64]   b4 h.1.f16 f16[N, 64] as f32
 *   v2 %8 f32[N, 64] = cast(v1)   {f32, min-cast:12, for ln.layer_norm}
 *   v3 %20 f32[N, 1] = reduce_mean(v2)   {f32, min-cast:12}
 *   v4 %21 f32[N, 64] = sub(v2, v3)
 *   v5 %22 f32[N, 64] = mul(v4, v4)
 *   v6 %23 f32[N, 1] = reduce_mean(v5)
 *   v7 %24 f32 = const()
 *   v8 %25 f32[N, 1] = add(v6, v7)
 *   v9 %26 f32[N, 1] = sqrt(v8)
 *   v10 %27 f32 = const()
 *   v11 %28 f32[N, 1] = div(v10, v9)   {f32, min-cast:12}
 *   v12 %29 f32[N, 64] = mul(v4, v11)
 *   v14 %30 f32[N, 64] = mul(v12, v13)
 *   v16 %h.1 f32[N, 64] = add(v14, v15)   {f32, min-cast:12}
 *   v17 %h.1.f16 f16[N, 64] = cast(v16)   {lower, min-cast:7, for head.linear}
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) eval_k03(const uint16_t *b0, const float *b1, const float *b2, uint16_t *b3, Look *b4, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 64 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const bool looks4 = b4->on;
    const float v7 = 9.999999747378752e-06f;
    const float v10 = 1.0f;
    float kept2[1][2];
    float kept4[1][2];
    KeptSum s3 = KeptSum{0.0f, 0.0f};
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float x1[2];
        load_f16(x1, b0 + r * COLS + c0);
        float run3 = 0.0f;
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v1 = x1[i];
            const float v2 = v1;
            kept2[0][i] = v2;
            run3 = run3 + v2;
        }
        plus_kept(s3, run3);
    }
    const float v3 = mean_kept(warp_reduce<Plus>(s3), (float)COLS);
    KeptSum s6 = KeptSum{0.0f, 0.0f};
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float run6 = 0.0f;
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v2 = kept2[0][i];
            const float v4 = v2 - v3;
            kept4[0][i] = v4;
            const float v5 = v4 * v4;
            run6 = run6 + v5;
        }
        plus_kept(s6, run6);
    }
    const float v6 = mean_kept(warp_reduce<Plus>(s6), (float)COLS);
    const float v8 = v6 + v7;
    const float v9 = sqrt_f32(v8);
    const float v11 = v10 / v9;
    {
        MAYBE_UNUSED const int32_t c0 = lane * 2;
        float x13[2];
        load_f32(x13, b1 + c0);
        float x15[2];
        load_f32(x15, b2 + c0);
        float y3[2];
        float y4[2];
        UNROLL
        for (int i = 0; i < 2; i++) {
            const float v13 = x13[i];
            const float v15 = x15[i];
            const float v4 = kept4[0][i];
            const float v12 = v4 * v11;
            const float v14 = v12 * v13;
            const float v16 = v14 + v15;
            const float v17 = round_f16_f32(v16);
            y3[i] = v17;
            y4[i] = v16;
        }
        store_f16(b3 + r * COLS + c0, y3);
        if (looks4) look(b4, y4);
    }
}
