/* k03  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in train_step
 * k01  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in eval
 * k01  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in infer
 *   in     b0 h f16[N, 256]   b1 fc2.weight/f16.rows f16[256, 256]   b2 fc2.bias/f16.rows f16[256]
 *   out    b3 h.1 f16[N, 256]   b4 fc2.y f16[N, 256] as f32
 *   v3 %13 f32[N, 256] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %14 f32[256] = cast(v4)
 *   v6 %15 f32[N, 256] = add(v3, v5)
 *   v7 %fc2.y f16[N, 256] = cast(v6)   {lower, min-cast:7}
 *   v8 %17 f32[N, 256] = cast(v7)
 *   v9 %18 f32 = const()
 *   v10 %19 f32[N, 256] = maximum(v8, v9)
 *   v11 %h.1 f16[N, 256] = cast(v10)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k03(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    const bool looks4 = b4->on;
    const int32_t COLS = (int32_t)cols;
    const uint2 tile = tile_in_stripe(blockIdx.x, blockIdx.y, (rows + 63) / 64, (COLS + 63) / 64);
    const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
    __shared__ __align__(128) char shared[Matrices::SHARED];
    Sums sums;
    sums.clear();
    Matrices matrices = Matrices();
    matrices.start(shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    matrices.run(sums, shared);
    admit_next_launch();
    const float v9 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    enum { PARTS = 1, TOGETHER = Runs::DOWN };
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int first = 0; first < Runs::COUNT; first += TOGETHER) {
            float all4[PARTS][8];
            UNROLL
            for (int u = 0; u < PARTS; u++) {
                MAYBE_UNUSED const int part = u % PARTS * 8;
                const int32_t c0 = (int32_t)col0 + Runs::column(first) + part;
                const bool here = row0 + Runs::row(pass, first) < rows && c0 < COLS;
                float(&x4)[8] = all4[u];
                load_if_f16(x4, b2 + c0, here);
            }
            float sum[8];
            UNROLL_UNLESS_LEAN
            for (int u = 0; u < TOGETHER * PARTS; u++) {
                const int run = first + u / PARTS;
                const int64_t r = row0 + Runs::row(pass, run);
                MAYBE_UNUSED const int part = u % PARTS * 8;
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                const bool here = r < rows && c0 < COLS;
                MAYBE_UNUSED const int64_t at = r * COLS + c0;
                if (part == 0) Runs::take(sum, sums, shared, run);
                if (!here) continue;
                float(&x4)[8] = all4[u % PARTS];
                float y4[8];
                float y3[8];
                UNROLL
                for (int i = 0; i < 8; i++) {
                    const float v4 = x4[i];
                    const float v3 = sum[part + i];
                    const float v5 = v4;
                    const float v6 = v3 + v5;
                    const float v7 = round_f16_f32(v6);
                    const float v8 = v7;
                    const float v10 = max_f32(v8, v9);
                    const float v11 = round_f16_f32(v10);
                    y4[i] = v6;
                    y3[i] = v10;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k03  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in train_step
 * k01  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in eval
 * k01  fc2: linear + bias + relu           product.amp:4
 *   product over [n, 256] in infer
 *   in     b0 h f16[N, 256]   b1 fc2.weight/f16.rows f16[256, 256]   b2 fc2.bias/f16.rows f16[256]
 *   out    b3 h.1 f16[N, 256]   b4 fc2.y f16[N, 256] as f32
 *   v3 %13 f32[N, 256] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %14 f32[256] = cast(v4)
 *   v6 %15 f32[N, 256] = add(v3, v5)
 *   v7 %fc2.y f16[N, 256] = cast(v6)   {lower, min-cast:7}
 *   v8 %17 f32[N, 256] = cast(v7)
 *   v9 %18 f32 = const()
 *   v10 %19 f32[N, 256] = maximum(v8, v9)
 *   v11 %h.1 f16[N, 256] = cast(v10)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 128 x 128 by 32 of k, 3 stages from sm_80 on, 128 threads a block, at most 255 registers: 2 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, HAS_ASYNC_COPIES ? 2 : 1) train_step_k03_1(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 128, 128, 2, 2, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 128, 64, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 128, 64, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    const bool looks4 = b4->on;
    const int32_t COLS = (int32_t)cols;
    const uint2 tile = tile_in_stripe(blockIdx.x, blockIdx.y, (rows + 127) / 128, (COLS + 127) / 128);
    const int64_t row0 = (int64_t)tile.x * 128, col0 = (int64_t)tile.y * 128;
    __shared__ __align__(128) char shared[Matrices::SHARED];
    Sums sums;
    sums.clear();
    Matrices matrices = Matrices();
    matrices.start(shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    matrices.run(sums, shared);
    admit_next_launch();
    const float v9 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    enum { PARTS = 1, TOGETHER = Runs::DOWN };
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int first = 0; first < Runs::COUNT; first += TOGETHER) {
            float all4[PARTS][8];
            UNROLL
            for (int u = 0; u < PARTS; u++) {
                MAYBE_UNUSED const int part = u % PARTS * 8;
                const int32_t c0 = (int32_t)col0 + Runs::column(first) + part;
                const bool here = row0 + Runs::row(pass, first) < rows && c0 < COLS;
                float(&x4)[8] = all4[u];
                load_if_f16(x4, b2 + c0, here);
            }
            float sum[8];
            UNROLL_UNLESS_LEAN
            for (int u = 0; u < TOGETHER * PARTS; u++) {
                const int run = first + u / PARTS;
                const int64_t r = row0 + Runs::row(pass, run);
                MAYBE_UNUSED const int part = u % PARTS * 8;
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                const bool here = r < rows && c0 < COLS;
                MAYBE_UNUSED const int64_t at = r * COLS + c0;
                if (part == 0) Runs::take(sum, sums, shared, run);
                if (!here) continue;
                float(&x4)[8] = all4[u % PARTS];
                float y4[8];
                float y3[8];
                UNROLL
                for (int i = 0; i < 8; i++) {
                    const float v4 = x4[i];
                    const float v3 = sum[part + i];
                    const float v5 = v4;
                    const float v6 = v3 + v5;
                    const float v7 = round_f16_f32(v6);
                    const float v8 = v7;
                    const float v10 = max_f32(v8, v9);
                    const float v11 = round_f16_f32(v10);
                    y4[i] = v6;
                    y3[i] = v10;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k03_then  fc2: linear + bias + relu           product.amp:4
 *   tile over [n, 256] in train_step
 * k01_then  fc2: linear + bias + relu           product.amp:4
 *   tile over [n, 256] in eval
 * k01_then  fc2: linear + bias + relu           product.amp:4
 *   tile over [n, 256] in infer
 *   in     b0 fc2.y f16[N, 256]
 *   out    b1 h.1 f16[N, 256]
 *   v2 %17 f32[N, 256] = cast(v1)
 *   v3 %18 f32 = const()
 *   v4 %19 f32[N, 256] = maximum(v2, v3)
 *   v5 %h.1 f16[N, 256] = cast(v4)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   8 elements a thread, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k03_then(const uint16_t *b0, uint16_t *b1, int64_t n, int64_t elements)
{
    await_earlier_launches();
    admit_next_launch();
    const int64_t at = ((int64_t)blockIdx.x * 256 + threadIdx.x) * 8;
    if (at >= elements) return;
    const float v3 = 0.0f;
    float x1[8];
    load_f16(x1, b0 + at);
    float y1[8];
    UNROLL
    for (int i = 0; i < 8; i++) {
        const float v1 = x1[i];
        const float v2 = v1;
        const float v4 = max_f32(v2, v3);
        const float v5 = round_f16_f32(v4);
        y1[i] = v4;
    }
    store_f16(b1 + at, y1);
}
