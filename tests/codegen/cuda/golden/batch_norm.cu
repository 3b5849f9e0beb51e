/* k03  bn: batch_norm           image.amp:3
 *   column over [256 * n, 64] in train_step
 * k04  bn: batch_norm + mul + add           image.amp:3
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 conv2d.y.nhwc f16[N, 16, 16, 64]
 *   out    b1 37 f32[N, 1, 64]   b2 41 f32[N, 64]
 *   v2 %32 f32[N, 16, 16, 64] = cast(v1)
 *   v3 %33 f32[N, 256, 64] = reshape(v2)
 *   v4 %34 f32[N, 1, 64] = reduce_sum(v3)
 *   v5 %36 f32 = const()
 *   v6 %37 f32[N, 1, 64] = mul(v4, v5)
 *   v7 %38 f32[N, 256, 64] = expand(v6)
 *   v8 %39 f32[N, 256, 64] = sub(v3, v7)
 *   v9 %40 f32[N, 256, 64] = mul(v8, v8)
 *   v10 %41 f32[N, 64] = reduce_sum(v9)
 *   pass 2
 *   in     b0 37 f32[N, 1, 64]   b1 bn.running_mean f32[64]   b2 41 f32[N, 64]   b3 54 f32   b4 63 f32   b5 bn.weight f32[64]   b6 bn.running_var f32[64]
 *   out    b7 bn.mean f32[64]   b8 72 f32[64]   b9 60 f32[64]   b10 65 f32[64]   b11 75 f32[64]
 *   v2 %42 f32[N, 64] = reshape(v1)
 *   v3 %43 f32[64] = reduce_sum(v2)
 *   v5 %373 f32 = extent(v4)
 *   v6 %bn.mean f32[64] = div(v3, v5)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v7 %8 f32 = const()   {weak}
 *   v8 %71 f32[64] = mul(v7, v6)   {follow, min-cast:23, input bn.batch_norm}
 *   v9 %6 f32 = const()   {weak}
 *   v11 %70 f32[64] = mul(v9, v10)   {follow, min-cast:23, input bn.running_mean}
 *   v12 %72 f32[64] = add(v11, v8)   {follow, min-cast:23, input bn.mul}
 *   v13 %374 f32[N, 64] = reshape(v1)
 *   v14 %46 f32[N, 64] = sub(v13, v6)
 *   v15 %47 f32[N, 64] = mul(v14, v14)
 *   v16 %48 f32[64] = reduce_sum(v15)
 *   v18 %49 f32[64] = reduce_sum(v17)
 *   v19 %50 f32 = const()
 *   v20 %51 f32[64] = mul(v16, v19)
 *   v21 %52 f32[64] = add(v18, v20)
 *   v23 %55 f32[64] = div(v21, v22)
 *   v24 %56 f32 = const()
 *   v25 %57 f32[64] = add(v23, v24)
 *   v26 %58 f32[64] = sqrt(v25)
 *   v27 %59 f32 = const()
 *   v28 %60 f32[64] = div(v27, v26)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v30 %bn.variance f32[64] = div(v21, v29)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v32 %65 f32[64] = mul(v28, v31)
 *   v33 %13 f32 = const()   {weak}
 *   v34 %74 f32[64] = mul(v33, v30)   {follow, min-cast:23, input bn.batch_norm}
 *   v35 %11 f32 = const()   {weak}
 *   v37 %73 f32[64] = mul(v35, v36)   {follow, min-cast:23, input bn.running_var}
 *   v38 %75 f32[64] = add(v37, v34)   {follow, min-cast:23, input bn.mul_2}
 *   32 columns, 4 a thread, 32 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor, the last block of a column makes what follows
 */
INLINE void train_step_k03_pass1(const uint16_t *b0, float *b1, float *b2, int64_t n, int64_t rows, int64_t cols, int64_t segment)
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
    const float v5 = 0.00390625f;
    float s4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
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
                    const float v3 = v2;
                    s4[i] = s4[i] + v3;
                }
            }
        }
    }
    const float v4 = column_reduce<Plus, 32, 32>(s4);
    const float v6 = v4 * v5;
    float s10[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    {
        float x6[4];
        spread_columns<32>(x6, v6);
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
                    const float v6 = x6[i];
                    const float v1 = x1[i];
                    const float v2 = v1;
                    const float v3 = v2;
                    const float v7 = v6;
                    const float v8 = v3 - v7;
                    const float v9 = v8 * v8;
                    s10[i] = s10[i] + v9;
                }
            }
        }
    }
    const float v10 = column_reduce<Plus, 32, 32>(s10);
    if (in && threadIdx.x < 32) put_f32(b1 + s * COLS + c, v6);
    if (in && threadIdx.x < 32) put_f32(b2 + s * COLS + c, v10);
}

INLINE void train_step_k03_pass2(const float *b0, const float *b1, const float *b2, const float *b3, const float *b4, const float *b5, const float *b6, float *b7, float *b8, float *b9, float *b10, float *b11, int64_t n, int64_t rows, int64_t cols, uint32_t block)
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
    const float v22 = get_f32(b3);
    const float v29 = get_f32(b4);
    const float v5 = (float)(n);
    const float v7 = 0.10000000149011612f;
    const float v9 = 0.8999999761581421f;
    const float v19 = 256.0f;
    const float v24 = 9.999999747378752e-06f;
    const float v27 = 1.0f;
    const float v33 = 0.10000000149011612f;
    const float v35 = 0.8999999761581421f;
    const float v10 = get_f32(b1 + c);
    const float v31 = get_f32(b5 + c);
    const float v36 = get_f32(b6 + c);
    const float v11 = v9 * v10;
    const float v37 = v35 * v36;
    float total3 = 0.0f;
    float total18 = 0.0f;
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        float s3[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        float s18[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 64) {
                float all1[2][4];
                float all17[2][4];
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f32(x1, b0 + r * COLS + c0, here);
                    float(&x17)[4] = all17[u];
                    load_if_f32(x17, b2 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    float(&x17)[4] = all17[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v1 = x1[i];
                        const float v17 = x17[i];
                        const float v2 = v1;
                        s3[i] = s3[i] + v2;
                        s18[i] = s18[i] + v17;
                    }
                }
            }
        }
        const float v3 = column_reduce<Plus, 32, 32>(s3);
        const float v18 = column_reduce<Plus, 32, 32>(s18);
        take_part<Plus, 32, 256>(total3, v3, part, parts);
        take_part<Plus, 32, 256>(total18, v18, part, parts);
    }
    const float v3 = add_parts<Plus, 32, 256>(total3, parts);
    const float v18 = add_parts<Plus, 32, 256>(total18, parts);
    const float v6 = v3 / v5;
    const float v8 = v7 * v6;
    const float v12 = v11 + v8;
    float total16 = 0.0f;
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        float s16[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        {
            float x6[4];
            spread_columns<32>(x6, v6);
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 128) {
                float all1[4][4];
                UNROLL
                for (int u = 0; u < 4; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f32(x1, b0 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 4; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v6 = x6[i];
                        const float v1 = x1[i];
                        const float v13 = v1;
                        const float v14 = v13 - v6;
                        const float v15 = v14 * v14;
                        s16[i] = s16[i] + v15;
                    }
                }
            }
        }
        const float v16 = column_reduce<Plus, 32, 32>(s16);
        take_part<Plus, 32, 256>(total16, v16, part, parts);
    }
    const float v16 = add_parts<Plus, 32, 256>(total16, parts);
    const float v20 = v16 * v19;
    const float v21 = v18 + v20;
    const float v23 = v21 / v22;
    const float v25 = v23 + v24;
    const float v26 = sqrt_f32(v25);
    const float v28 = v27 / v26;
    const float v30 = v21 / v29;
    const float v32 = v28 * v31;
    const float v34 = v33 * v30;
    const float v38 = v37 + v34;
    if (in && threadIdx.x < 32) put_f32(b7 + c, v6);
    if (in && threadIdx.x < 32) put_f32(b8 + c, v12);
    if (in && threadIdx.x < 32) put_f32(b9 + c, v28);
    if (in && threadIdx.x < 32) put_f32(b10 + c, v32);
    if (in && threadIdx.x < 32) put_f32(b11 + c, v38);
}

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k03(const uint16_t *b1_0, float *b1_1, float *b1_2, const float *b2_0, const float *b2_1, const float *b2_2, const float *b2_3, const float *b2_4, const float *b2_5, const float *b2_6, float *b2_7, float *b2_8, float *b2_9, float *b2_10, float *b2_11, int64_t n, int64_t rows1, int64_t cols1, int64_t segment1, int64_t rows2, int64_t cols2, uint32_t *tickets)
{
    const uint32_t blocks = ((uint32_t)cols1 + 31) / 32, block = blockIdx.x % blocks;
    await_earlier_launches();
    train_step_k03_pass1(b1_0, b1_1, b1_2, n, rows1, cols1, segment1);
    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
    train_step_k03_pass2(b2_0, b2_1, b2_2, b2_3, b2_4, b2_5, b2_6, b2_7, b2_8, b2_9, b2_10, b2_11, n, rows2, cols2, block);
}

/* k13  mean.grad: broadcast_to + relu_grad + batch_norm_grad           image.amp:4
 *   column over [256 * n, 64] in train_step
 * k14  bn.batch_norm.grad.input: batch_norm_grad + all_finite + unscale           image.amp:3
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 147 f32[N, 1, 1, 64]   b1 h.nhwc f16[N, 16, 16, 64]   b2 conv2d.y.nhwc f16[N, 16, 16, 64]   b3 bn.mean f32[64]
 *   out    b4 d.bn.y.nhwc f16[N, 16, 16, 64]   b5 160 f32[N, 64]   b6 164 f32[N, 64]
 *   v2 %148 f32[N, 16, 16, 64] = expand(v1)
 *   v3 %d.h.nhwc f16[N, 16, 16, 64] = cast(v2)   {gradient, of mean}
 *   v5 %152 f32[N, 16, 16, 64] = cast(v4)
 *   v6 %151 f32 = const()
 *   v7 %153 bool[N, 16, 16, 64] = le(v5, v6)
 *   v8 %150 f32[N, 16, 16, 64] = cast(v3)
 *   v9 %154 f32[N, 16, 16, 64] = select(v7, v6, v8)
 *   v10 %d.bn.y.nhwc f16[N, 16, 16, 64] = cast(v9)   {gradient, of relu}
 *   v11 %156 f32[N, 16, 16, 64] = cast(v10)
 *   v12 %158 f32[N, 256, 64] = reshape(v11)
 *   v13 %160 f32[N, 64] = reduce_sum(v12)
 *   v15 %157 f32[N, 16, 16, 64] = cast(v14)
 *   v16 %159 f32[N, 256, 64] = reshape(v15)
 *   v18 %162 f32[N, 256, 64] = sub(v16, v17)
 *   v19 %163 f32[N, 256, 64] = mul(v12, v18)
 *   v20 %164 f32[N, 64] = reduce_sum(v19)
 *   pass 2
 *   in     b0 160 f32[N, 64]   b1 164 f32[N, 64]   b2 60 f32[64]   b3 54 f32   b4 inverse_scale f32
 *   out    b5 167 f32[64]   b6 169 f32[64]   b7 189 bool   b8 193 bool   b9 grad.bn.weight f32[64]   b10 grad.bn.bias f32[64]
 *   v2 %d.bn.bias f32[64] = reduce_sum(v1)   {gradient, of bn.batch_norm}
 *   v4 %165 f32[64] = reduce_sum(v3)
 *   v6 %d.bn.weight f32[64] = mul(v4, v5)   {gradient, of bn.batch_norm}
 *   v8 %167 f32[64] = div(v2, v7)
 *   v9 %168 f32[64] = mul(v6, v5)
 *   v10 %169 f32[64] = div(v9, v7)
 *   v11 %187 bool[64] = is_finite(v6)
 *   v12 %188 bool[64] = not(v11)
 *   v13 %189 bool = reduce_or(v12)
 *   v14 %191 bool[64] = is_finite(v2)
 *   v15 %192 bool[64] = not(v14)
 *   v16 %193 bool = reduce_or(v15)
 *   v18 %grad.bn.weight f32[64] = mul(v6, v17)   {loss_scale}
 *   v19 %grad.bn.bias f32[64] = mul(v2, v17)   {loss_scale}
 *   32 columns, 4 a thread, 32 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor, the last block of a column makes what follows
 */
INLINE void train_step_k13_pass1(const float *b0, const uint16_t *b1, const uint16_t *b2, const float *b3, uint16_t *b4, float *b5, float *b6, int64_t n, int64_t rows, int64_t cols, int64_t segment)
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
    const float v6 = 0.0f;
    const float v1 = get_f32(b0 + s * COLS + c);
    const float v17 = get_f32(b3 + c);
    float s13[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    float s20[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    {
        float x1[4];
        spread_columns<32>(x1, v1);
        float x17[4];
        spread_columns<32>(x17, v17);
        NO_UNROLL
        for (int64_t row = first + y; own && row < last; row += 128) {
            float all4[4][4];
            float all14[4][4];
            UNROLL
            for (int u = 0; u < 4; u++) {
                const int64_t r = row + u * 32;
                MAYBE_UNUSED const bool here = r < last;
                float(&x4)[4] = all4[u];
                load_if_f16(x4, b1 + r * COLS + c0, here);
                float(&x14)[4] = all14[u];
                load_if_f16(x14, b2 + r * COLS + c0, here);
            }
            UNROLL
            for (int u = 0; u < 4; u++) {
                const int64_t r = row + u * 32;
                if (r >= last) break;
                float(&x4)[4] = all4[u];
                float(&x14)[4] = all14[u];
                float y4[4];
                UNROLL
                for (int i = 0; i < 4; i++) {
                    const float v1 = x1[i];
                    const float v17 = x17[i];
                    const float v4 = x4[i];
                    const float v14 = x14[i];
                    const float v2 = v1;
                    const float v3 = round_f16_f32(v2);
                    const float v5 = v4;
                    const int32_t v7 = v5 <= v6;
                    const float v8 = v3;
                    const float v9 = v7 ? v6 : v8;
                    const float v10 = round_f16_f32(v9);
                    const float v11 = v10;
                    const float v12 = v11;
                    const float v15 = v14;
                    const float v16 = v15;
                    const float v18 = v16 - v17;
                    const float v19 = v12 * v18;
                    y4[i] = v10;
                    s13[i] = s13[i] + v12;
                    s20[i] = s20[i] + v19;
                }
                store_f16(b4 + r * COLS + c0, y4);
            }
        }
    }
    const float v13 = column_reduce<Plus, 32, 32>(s13);
    const float v20 = column_reduce<Plus, 32, 32>(s20);
    if (in && threadIdx.x < 32) put_f32(b5 + s * COLS + c, v13);
    if (in && threadIdx.x < 32) put_f32(b6 + s * COLS + c, v20);
}

INLINE void train_step_k13_pass2(const float *b0, const float *b1, const float *b2, const float *b3, const float *b4, float *b5, float *b6, int32_t *b7, int32_t *b8, float *b9, float *b10, int64_t n, int64_t rows, int64_t cols, uint32_t block)
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
    int32_t any7 = 0;
    int32_t any8 = 0;
    const float v7 = get_f32(b3);
    const float v17 = get_f32(b4);
    const float v5 = get_f32(b2 + c);
    float total2 = 0.0f;
    float total4 = 0.0f;
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        float s2[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        float s4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 64) {
                float all1[2][4];
                float all3[2][4];
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f32(x1, b0 + r * COLS + c0, here);
                    float(&x3)[4] = all3[u];
                    load_if_f32(x3, b1 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    float(&x3)[4] = all3[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v1 = x1[i];
                        const float v3 = x3[i];
                        s2[i] = s2[i] + v1;
                        s4[i] = s4[i] + v3;
                    }
                }
            }
        }
        const float v2 = column_reduce<Plus, 32, 32>(s2);
        const float v4 = column_reduce<Plus, 32, 32>(s4);
        take_part<Plus, 32, 256>(total2, v2, part, parts);
        take_part<Plus, 32, 256>(total4, v4, part, parts);
    }
    const float v2 = add_parts<Plus, 32, 256>(total2, parts);
    const float v4 = add_parts<Plus, 32, 256>(total4, parts);
    const float v6 = v4 * v5;
    const float v8 = v2 / v7;
    const float v9 = v6 * v5;
    const float v10 = v9 / v7;
    const int32_t v11 = finite_f32(v6);
    const int32_t v12 = !v11;
    const int32_t v14 = finite_f32(v2);
    const int32_t v15 = !v14;
    const float v18 = v6 * v17;
    const float v19 = v2 * v17;
    if (in && threadIdx.x < 32) put_f32(b5 + c, v8);
    if (in && threadIdx.x < 32) put_f32(b6 + c, v10);
    any7 |= v12;
    any8 |= v15;
    if (in && threadIdx.x < 32) put_f32(b9 + c, v18);
    if (in && threadIdx.x < 32) put_f32(b10 + c, v19);
    if (any7) *b7 = 1;
    if (any8) *b8 = 1;
}

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k13(const float *b1_0, const uint16_t *b1_1, const uint16_t *b1_2, const float *b1_3, uint16_t *b1_4, float *b1_5, float *b1_6, const float *b2_0, const float *b2_1, const float *b2_2, const float *b2_3, const float *b2_4, float *b2_5, float *b2_6, int32_t *b2_7, int32_t *b2_8, float *b2_9, float *b2_10, int64_t n, int64_t rows1, int64_t cols1, int64_t segment1, int64_t rows2, int64_t cols2, uint32_t *tickets)
{
    const uint32_t blocks = ((uint32_t)cols1 + 31) / 32, block = blockIdx.x % blocks;
    await_earlier_launches();
    train_step_k13_pass1(b1_0, b1_1, b1_2, b1_3, b1_4, b1_5, b1_6, n, rows1, cols1, segment1);
    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
    train_step_k13_pass2(b2_0, b2_1, b2_2, b2_3, b2_4, b2_5, b2_6, b2_7, b2_8, b2_9, b2_10, n, rows2, cols2, block);
}

/* k18  conv2d.conv2d.grad.bias: sum           image.amp:3
 *   column over [256 * n, 64] in train_step
 * k19  conv2d.conv2d.grad.bias: sum + all_finite + unscale           image.amp:3
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 d.conv2d.y.nhwc f16[N, 16, 16, 64]
 *   out    b1 178 f32[N, 64]
 *   v2 %177 f32[N, 16, 16, 64] = cast(v1)
 *   v3 %178 f32[N, 64] = reduce_sum(v2)
 *   pass 2
 *   in     b0 178 f32[N, 64]   b1 inverse_scale f32
 *   out    b2 185 bool   b3 grad.conv2d.bias f32[64]
 *   v2 %d.conv2d.bias f32[64] = reduce_sum(v1)   {weight_gradient, of conv2d.conv2d}
 *   v3 %183 bool[64] = is_finite(v2)
 *   v4 %184 bool[64] = not(v3)
 *   v5 %185 bool = reduce_or(v4)
 *   v7 %grad.conv2d.bias f32[64] = mul(v2, v6)   {loss_scale}
 *   32 columns, 4 a thread, 32 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor, the last block of a column makes what follows
 */
INLINE void train_step_k18_pass1(const uint16_t *b0, float *b1, int64_t n, int64_t rows, int64_t cols, int64_t segment)
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
    float s3[4] = {0.0f, 0.0f, 0.0f, 0.0f};
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
                    s3[i] = s3[i] + v2;
                }
            }
        }
    }
    const float v3 = column_reduce<Plus, 32, 32>(s3);
    if (in && threadIdx.x < 32) put_f32(b1 + s * COLS + c, v3);
}

INLINE void train_step_k18_pass2(const float *b0, const float *b1, int32_t *b2, float *b3, int64_t n, int64_t rows, int64_t cols, uint32_t block)
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
    int32_t any2 = 0;
    const float v6 = get_f32(b1);
    float total2 = 0.0f;
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        float s2[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 128) {
                float all1[4][4];
                UNROLL
                for (int u = 0; u < 4; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f32(x1, b0 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 4; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v1 = x1[i];
                        s2[i] = s2[i] + v1;
                    }
                }
            }
        }
        const float v2 = column_reduce<Plus, 32, 32>(s2);
        take_part<Plus, 32, 256>(total2, v2, part, parts);
    }
    const float v2 = add_parts<Plus, 32, 256>(total2, parts);
    const int32_t v3 = finite_f32(v2);
    const int32_t v4 = !v3;
    const float v7 = v2 * v6;
    any2 |= v4;
    if (in && threadIdx.x < 32) put_f32(b3 + c, v7);
    if (any2) *b2 = 1;
}

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k18(const uint16_t *b1_0, float *b1_1, const float *b2_0, const float *b2_1, int32_t *b2_2, float *b2_3, int64_t n, int64_t rows1, int64_t cols1, int64_t segment1, int64_t rows2, int64_t cols2, uint32_t *tickets)
{
    const uint32_t blocks = ((uint32_t)cols1 + 31) / 32, block = blockIdx.x % blocks;
    await_earlier_launches();
    train_step_k18_pass1(b1_0, b1_1, n, rows1, cols1, segment1);
    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
    train_step_k18_pass2(b2_0, b2_1, b2_2, b2_3, n, rows2, cols2, block);
}
