/* k03  bn: batch_norm           image.amp:3
 *   column over [256 * n, 64] in train_step
 * k04  bn: batch_norm + mul + add + all_finite           image.amp:3
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 conv2d.y.nhwc f16[N, 16, 16, 64]
 *   out    b1 47 f32[N, 1, 64]   b2 51 f32[N, 64]
 *   v2 %45 f32[N, 16, 16, 64] = cast(v1)
 *   v3 %46 f32[N, 256, 64] = reshape(v2)
 *   v4 %47 f32[N, 1, 64] = reduce_mean(v3)
 *   v5 %48 f32[N, 256, 64] = expand(v4)
 *   v6 %49 f32[N, 256, 64] = sub(v3, v5)
 *   v7 %50 f32[N, 256, 64] = mul(v6, v6)
 *   v8 %51 f32[N, 64] = reduce_sum(v7)
 *   pass 2
 *   in     b0 47 f32[N, 1, 64]   b1 bn.running_mean f32[64]   b2 51 f32[N, 64]   b3 64 f32   b4 72 f32   b5 bn.weight f32[64]   b6 bn.running_var f32[64]
 *   out    b7 bn.mean f32[64]   b8 81 f32[64]   b9 188 bool   b10 70 f32[64]   b11 74 f32[64]   b12 84 f32[64]   b13 192 bool
 *   v2 %52 f32[N, 64] = reshape(v1)
 *   v3 %53 f32[64] = reduce_sum(v2)
 *   v5 %393 f32 = extent(v4)
 *   v6 %bn.mean f32[64] = div(v3, v5)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v7 %8 f32 = const()   {weak}
 *   v8 %80 f32[64] = mul(v7, v6)   {follow, min-cast:23, input bn.batch_norm}
 *   v9 %6 f32 = const()   {weak}
 *   v11 %79 f32[64] = mul(v9, v10)   {follow, min-cast:23, input bn.running_mean}
 *   v12 %81 f32[64] = add(v11, v8)   {follow, min-cast:23, input bn.mul}
 *   v13 %186 bool[64] = is_finite(v12)
 *   v14 %187 bool[64] = not(v13)
 *   v15 %188 bool = reduce_or(v14)
 *   v16 %394 f32[N, 64] = reshape(v1)
 *   v17 %56 f32[N, 64] = sub(v16, v6)
 *   v18 %57 f32[N, 64] = mul(v17, v17)
 *   v19 %58 f32[64] = reduce_sum(v18)
 *   v21 %59 f32[64] = reduce_sum(v20)
 *   v22 %60 f32 = const()
 *   v23 %61 f32[64] = mul(v19, v22)
 *   v24 %62 f32[64] = add(v21, v23)
 *   v26 %65 f32[64] = div(v24, v25)
 *   v27 %66 f32 = const()
 *   v28 %67 f32[64] = add(v26, v27)
 *   v29 %68 f32[64] = sqrt(v28)
 *   v30 %69 f32 = const()
 *   v31 %70 f32[64] = div(v30, v29)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v33 %bn.variance f32[64] = div(v24, v32)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   v35 %74 f32[64] = mul(v31, v34)
 *   v36 %13 f32 = const()   {weak}
 *   v37 %83 f32[64] = mul(v36, v33)   {follow, min-cast:23, input bn.batch_norm}
 *   v38 %11 f32 = const()   {weak}
 *   v40 %82 f32[64] = mul(v38, v39)   {follow, min-cast:23, input bn.running_var}
 *   v41 %84 f32[64] = add(v40, v37)   {follow, min-cast:23, input bn.mul_2}
 *   v42 %190 bool[64] = is_finite(v41)
 *   v43 %191 bool[64] = not(v42)
 *   v44 %192 bool = reduce_or(v43)
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
    KeptSum s4[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
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
                    plus_kept(s4[i], v3);
                }
            }
        }
    }
    KeptSum a4 = column_reduce<Plus, 32, 32>(s4);
    const float v4 = mean_kept(a4, (float)256);
    KeptSum s8[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
    {
        float x4[4];
        spread_columns<32>(x4, v4);
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
                    const float v4 = x4[i];
                    const float v1 = x1[i];
                    const float v2 = v1;
                    const float v3 = v2;
                    const float v5 = v4;
                    const float v6 = v3 - v5;
                    const float v7 = v6 * v6;
                    plus_kept(s8[i], v7);
                }
            }
        }
    }
    KeptSum a8 = column_reduce<Plus, 32, 32>(s8);
    const float v8 = sum_kept(a8);
    if (in && threadIdx.x < 32) put_f32(b1 + s * COLS + c, v4);
    if (in && threadIdx.x < 32) put_f32(b2 + s * COLS + c, v8);
}

INLINE void train_step_k03_pass2(const float *b0, const float *b1, const float *b2, const float *b3, const float *b4, const float *b5, const float *b6, float *b7, float *b8, int32_t *b9, float *b10, float *b11, float *b12, int32_t *b13, int64_t n, int64_t rows, int64_t cols, uint32_t block)
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
    int32_t any9 = 0;
    int32_t any13 = 0;
    const float v25 = get_f32(b3);
    const float v32 = get_f32(b4);
    const float v5 = (float)(n);
    const float v7 = 0.10000000149011612f;
    const float v9 = 0.8999999761581421f;
    const float v22 = 256.0f;
    const float v27 = 9.999999747378752e-06f;
    const float v30 = 1.0f;
    const float v36 = 0.10000000149011612f;
    const float v38 = 0.8999999761581421f;
    const float v10 = get_f32(b1 + c);
    const float v34 = get_f32(b5 + c);
    const float v39 = get_f32(b6 + c);
    const float v11 = v9 * v10;
    const float v40 = v38 * v39;
    KeptSum total3 = KeptSum{0.0f, 0.0f};
    KeptSum total21 = KeptSum{0.0f, 0.0f};
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        KeptSum s3[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        KeptSum s21[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 64) {
                float all1[2][4];
                float all20[2][4];
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[4] = all1[u];
                    load_if_f32(x1, b0 + r * COLS + c0, here);
                    float(&x20)[4] = all20[u];
                    load_if_f32(x20, b2 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 2; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[4] = all1[u];
                    float(&x20)[4] = all20[u];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v1 = x1[i];
                        const float v20 = x20[i];
                        const float v2 = v1;
                        plus_kept(s3[i], v2);
                        plus_kept(s21[i], v20);
                    }
                }
            }
        }
        KeptSum a3 = column_reduce<Plus, 32, 32>(s3);
        KeptSum a21 = column_reduce<Plus, 32, 32>(s21);
        take_part<Plus, 32, 256>(total3, a3, part, parts);
        take_part<Plus, 32, 256>(total21, a21, part, parts);
    }
    KeptSum a3 = add_parts<Plus, 32, 256>(total3, parts);
    KeptSum a21 = add_parts<Plus, 32, 256>(total21, parts);
    const float v3 = sum_kept(a3);
    const float v21 = sum_kept(a21);
    const float v6 = v3 / v5;
    const float v8 = v7 * v6;
    const float v12 = v11 + v8;
    const int32_t v13 = finite_f32(v12);
    const int32_t v14 = !v13;
    KeptSum total19 = KeptSum{0.0f, 0.0f};
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        KeptSum s19[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
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
                        const float v16 = v1;
                        const float v17 = v16 - v6;
                        const float v18 = v17 * v17;
                        plus_kept(s19[i], v18);
                    }
                }
            }
        }
        KeptSum a19 = column_reduce<Plus, 32, 32>(s19);
        take_part<Plus, 32, 256>(total19, a19, part, parts);
    }
    KeptSum a19 = add_parts<Plus, 32, 256>(total19, parts);
    const float v19 = sum_kept(a19);
    const float v23 = v19 * v22;
    const float v24 = v21 + v23;
    const float v26 = v24 / v25;
    const float v28 = v26 + v27;
    const float v29 = sqrt_f32(v28);
    const float v31 = v30 / v29;
    const float v33 = v24 / v32;
    const float v35 = v31 * v34;
    const float v37 = v36 * v33;
    const float v41 = v40 + v37;
    const int32_t v42 = finite_f32(v41);
    const int32_t v43 = !v42;
    if (in && threadIdx.x < 32) put_f32(b7 + c, v6);
    if (in && threadIdx.x < 32) put_f32(b8 + c, v12);
    any9 |= v14;
    if (in && threadIdx.x < 32) put_f32(b10 + c, v31);
    if (in && threadIdx.x < 32) put_f32(b11 + c, v35);
    if (in && threadIdx.x < 32) put_f32(b12 + c, v41);
    any13 |= v43;
    if (any9) *b9 = 1;
    if (any13) *b13 = 1;
}

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k03(const uint16_t *b1_0, float *b1_1, float *b1_2, const float *b2_0, const float *b2_1, const float *b2_2, const float *b2_3, const float *b2_4, const float *b2_5, const float *b2_6, float *b2_7, float *b2_8, int32_t *b2_9, float *b2_10, float *b2_11, float *b2_12, int32_t *b2_13, int64_t n, int64_t rows1, int64_t cols1, int64_t segment1, int64_t rows2, int64_t cols2, uint32_t *tickets)
{
    const uint32_t blocks = ((uint32_t)cols1 + 31) / 32, block = blockIdx.x % blocks;
    await_earlier_launches();
    train_step_k03_pass1(b1_0, b1_1, b1_2, n, rows1, cols1, segment1);
    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;
    train_step_k03_pass2(b2_0, b2_1, b2_2, b2_3, b2_4, b2_5, b2_6, b2_7, b2_8, b2_9, b2_10, b2_11, b2_12, b2_13, n, rows2, cols2, block);
}

/* k13  mean.grad: broadcast_to + relu_grad + batch_norm_grad           image.amp:4
 *   column over [256 * n, 64] in train_step
 * k14  bn.batch_norm.grad.input: batch_norm_grad + all_finite + unscale           image.amp:3
 *   column over [n, 64] in train_step
 *   pass 1
 *   in     b0 153 f32[N, 1, 1, 64]   b1 h.nhwc f16[N, 16, 16, 64]   b2 conv2d.y.nhwc f16[N, 16, 16, 64]   b3 bn.mean f32[64]
 *   out    b4 d.bn.y.nhwc f16[N, 16, 16, 64]   b5 165 f32[N, 64]   b6 169 f32[N, 64]
 *   v2 %154 f32[N, 16, 16, 64] = expand(v1)
 *   v3 %d.h.nhwc f16[N, 16, 16, 64] = cast(v2)   {gradient, of mean}
 *   v5 %157 f32[N, 16, 16, 64] = cast(v4)
 *   v6 %156 f32 = const()
 *   v7 %158 bool[N, 16, 16, 64] = le(v5, v6)
 *   v8 %155 f32[N, 16, 16, 64] = cast(v3)
 *   v9 %159 f32[N, 16, 16, 64] = select(v7, v6, v8)
 *   v10 %d.bn.y.nhwc f16[N, 16, 16, 64] = cast(v9)   {gradient, of relu}
 *   v11 %161 f32[N, 16, 16, 64] = cast(v10)
 *   v12 %163 f32[N, 256, 64] = reshape(v11)
 *   v13 %165 f32[N, 64] = reduce_sum(v12)
 *   v15 %162 f32[N, 16, 16, 64] = cast(v14)
 *   v16 %164 f32[N, 256, 64] = reshape(v15)
 *   v18 %167 f32[N, 256, 64] = sub(v16, v17)
 *   v19 %168 f32[N, 256, 64] = mul(v12, v18)
 *   v20 %169 f32[N, 64] = reduce_sum(v19)
 *   pass 2
 *   in     b0 165 f32[N, 64]   b1 169 f32[N, 64]   b2 70 f32[64]   b3 64 f32   b4 inverse_scale f32
 *   out    b5 172 f32[64]   b6 174 f32[64]   b7 207 bool   b8 211 bool   b9 grad.bn.weight f32[64]   b10 grad.bn.bias f32[64]
 *   v2 %d.bn.bias f32[64] = reduce_sum(v1)   {gradient, of bn.batch_norm}
 *   v4 %170 f32[64] = reduce_sum(v3)
 *   v6 %d.bn.weight f32[64] = mul(v4, v5)   {gradient, of bn.batch_norm}
 *   v8 %172 f32[64] = div(v2, v7)
 *   v9 %173 f32[64] = mul(v6, v5)
 *   v10 %174 f32[64] = div(v9, v7)
 *   v11 %205 bool[64] = is_finite(v6)
 *   v12 %206 bool[64] = not(v11)
 *   v13 %207 bool = reduce_or(v12)
 *   v14 %209 bool[64] = is_finite(v2)
 *   v15 %210 bool[64] = not(v14)
 *   v16 %211 bool = reduce_or(v15)
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
    KeptSum s13[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
    KeptSum s20[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
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
                    plus_kept(s13[i], v12);
                    plus_kept(s20[i], v19);
                }
                store_f16(b4 + r * COLS + c0, y4);
            }
        }
    }
    KeptSum a13 = column_reduce<Plus, 32, 32>(s13);
    KeptSum a20 = column_reduce<Plus, 32, 32>(s20);
    const float v13 = sum_kept(a13);
    const float v20 = sum_kept(a20);
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
    KeptSum total2 = KeptSum{0.0f, 0.0f};
    KeptSum total4 = KeptSum{0.0f, 0.0f};
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        KeptSum s2[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        KeptSum s4[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
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
                        plus_kept(s2[i], v1);
                        plus_kept(s4[i], v3);
                    }
                }
            }
        }
        KeptSum a2 = column_reduce<Plus, 32, 32>(s2);
        KeptSum a4 = column_reduce<Plus, 32, 32>(s4);
        take_part<Plus, 32, 256>(total2, a2, part, parts);
        take_part<Plus, 32, 256>(total4, a4, part, parts);
    }
    KeptSum a2 = add_parts<Plus, 32, 256>(total2, parts);
    KeptSum a4 = add_parts<Plus, 32, 256>(total4, parts);
    const float v2 = sum_kept(a2);
    const float v4 = sum_kept(a4);
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
 *   out    b1 184 f32[N, 64]
 *   v2 %183 f32[N, 16, 16, 64] = cast(v1)
 *   v3 %184 f32[N, 64] = reduce_sum(v2)
 *   pass 2
 *   in     b0 184 f32[N, 64]   b1 inverse_scale f32
 *   out    b2 203 bool   b3 grad.conv2d.bias f32[64]
 *   v2 %d.conv2d.bias f32[64] = reduce_sum(v1)   {weight_gradient, of conv2d.conv2d}
 *   v3 %201 bool[64] = is_finite(v2)
 *   v4 %202 bool[64] = not(v3)
 *   v5 %203 bool = reduce_or(v4)
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
    KeptSum total2 = KeptSum{0.0f, 0.0f};
    NO_UNROLL
    for (uint32_t part = 0; part < parts; part++) {
        MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        KeptSum s2[4] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
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
                        plus_kept(s2[i], v1);
                    }
                }
            }
        }
        KeptSum a2 = column_reduce<Plus, 32, 32>(s2);
        take_part<Plus, 32, 256>(total2, a2, part, parts);
    }
    KeptSum a2 = add_parts<Plus, 32, 256>(total2, parts);
    const float v2 = sum_kept(a2);
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
