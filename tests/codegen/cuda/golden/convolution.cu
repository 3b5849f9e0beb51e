/* k02  conv: conv2d + relu           convolution.amp:3
 *   product over [256 * n, 64] in train_step
 * k01  conv: conv2d + relu           convolution.amp:3
 *   product over [256 * n, 64] in eval
 * k01  conv: conv2d + relu           convolution.amp:3
 *   product over [256 * n, 64] in infer
 *   in     b0 x.f16.nhwc f16[N, 16, 16, 8]   b1 conv.weight/f16.rows f16[3, 3, 8, 64]   b2 conv.bias/f16.rows f16[64]
 *   out    b3 h.nhwc f16[N, 16, 16, 64]   b4 conv.y.nhwc f16[N, 16, 16, 64] as f32
 *   v3 %13 f32[N, 16, 16, 64] = conv(v1, v2)   {lower, min-cast:7}
 *   v5 %14 f32[64] = cast(v4)
 *   v6 %15 f32[N, 16, 16, 64] = add(v3, v5)
 *   v7 %conv.y.nhwc f16[N, 16, 16, 64] = cast(v6)   {lower, min-cast:7}
 *   v8 %17 f32[N, 16, 16, 64] = cast(v7)
 *   v9 %18 f32 = const()
 *   v10 %19 f32[N, 16, 16, 64] = maximum(v8, v9)
 *   v11 %h.nhwc f16[N, 16, 16, 64] = cast(v10)   {follow, min-cast:23, "f32 would move 4194304 bytes more at N = 32"}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k02(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols, int64_t height, int64_t width, int64_t out_height, int64_t out_width)
{
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
    typedef TensorOperand<Windows<AsStored<uint16_t>, 8, 3, 3, 1, 1, 1, 1, 1, 1, false, true, false>, true, 64, 64, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 16, 128> B;
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
    matrices.copy_a.memory.set(height, width, k / 9, out_height, out_width);
    matrices.start(shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
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
