/* k00  loss.scale: scale_loss + inverse_scale + increment + adamw           mlp.amp:14
 *   scalar over [1, 1] in train_step
 *   in     b0 scale f32   b1 step i64   b2 learning_rate f64   b3 iteration i64
 *   out    b3 iteration i64   b4 d.loss.scaled f32   b5 inverse_scale f32   b6 step.next i64   b7 178 f32   b8 184 f32   b9 191 f32
 *   v1 %d.loss f32 = const()   {gradient, of cross_entropy.nll_loss}
 *   v3 %d.loss.scaled f32 = mul(v1, v2)   {loss_scale}
 *   v4 %137 f64 = cast(v2)
 *   v5 %138 f64 = const()
 *   v6 %139 f64 = div(v5, v4)
 *   v7 %inverse_scale f32 = cast(v6)   {loss_scale}
 *   v9 %step.next i64 = increment(v8)   {update, of step}
 *   v10 %weight_decay f64 = const()   {update, of optimizer}
 *   v12 %176 f64 = mul(v11, v10)
 *   v13 %175 f64 = const()
 *   v14 %177 f64 = sub(v13, v12)
 *   v15 %178 f32 = cast(v14)
 *   v16 %180 f64 = power(v9)
 *   v17 %181 f64 = const()
 *   v18 %182 f64 = sub(v17, v16)
 *   v19 %183 f64 = div(v11, v18)
 *   v20 %184 f32 = cast(v19)
 *   v21 %185 f64 = power(v9)
 *   v22 %186 f64 = const()
 *   v23 %187 f64 = sub(v22, v21)
 *   v24 %188 f64 = sqrt(v23)
 *   v25 %189 f64 = const()
 *   v26 %190 f64 = div(v25, v24)
 *   v27 %191 f32 = cast(v26)
 *   v29 %iteration.next i64 = increment(v28)   {update, of iteration}
 *   assign(v28, v29)   {update, of iteration}
 *   1 thread a block
 */
extern "C" __global__ void __launch_bounds__(1, LEAN) train_step_k00(const float *b0, const int64_t *b1, const double *b2, int64_t *b3, float *b4, float *b5, int64_t *b6, float *b7, float *b8, float *b9, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    const float v2 = get_f32(b0);
    const int64_t v8 = get_i64(b1);
    const double v11 = get_f64(b2);
    const int64_t v28 = get_i64(b3);
    const float v1 = 1.0f;
    const float v3 = v1 * v2;
    const double v4 = (double)v2;
    const double v5 = 1.0;
    const double v6 = v5 / v4;
    const float v7 = (float)v6;
    const int64_t v9 = v8 + 1;
    const double v10 = 0.01;
    const double v12 = v11 * v10;
    const double v13 = 1.0;
    const double v14 = v13 - v12;
    const float v15 = (float)v14;
    const double v16 = power_f64(0.9, v9);
    const double v17 = 1.0;
    const double v18 = v17 - v16;
    const double v19 = v11 / v18;
    const float v20 = (float)v19;
    const double v21 = power_f64(0.999, v9);
    const double v22 = 1.0;
    const double v23 = v22 - v21;
    const double v24 = sqrt_f64(v23);
    const double v25 = 1.0;
    const double v26 = v25 / v24;
    const float v27 = (float)v26;
    const int64_t v29 = v28 + 1;
    put_f32(b4, v3);
    put_f32(b5, v7);
    put_i64(b6, v9);
    put_f32(b7, v15);
    put_f32(b8, v20);
    put_f32(b9, v27);
    put_i64(b3, v29);
}

/* k01  cross_entropy: nll_loss + nll_loss_grad           mlp.amp:14
 *   column over [n, 1] in train_step
 *   in     b0 targets i32[N]   b1 d.loss.scaled f32
 *   out    b2 52 f32   b3 74 f32
 *   v1 %44 i32 = const()
 *   v3 %45 bool[N] = eq(v2, v1)
 *   v4 %46 bool[N] = not(v3)
 *   v5 %47 f32 = const()
 *   v6 %48 f32 = const()
 *   v7 %49 f32[N] = select(v4, v5, v6)
 *   v8 %50 f32 = reduce_sum(v7)
 *   v9 %51 f32 = const()
 *   v10 %52 f32 = maximum(v8, v9)
 *   v12 %73 f32 = div(v11, v10)
 *   v13 %74 f32 = neg(v12)
 *   1 columns, 1 a thread, 256 rows at once, 2048 rows a block, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k01(const int32_t *b0, const float *b1, float *b2, float *b3, int64_t n, int64_t rows, int64_t cols, uint32_t *tickets, double *partials)
{
    await_earlier_launches();
    const int32_t COLS = (int32_t)cols;
    MAYBE_UNUSED const int32_t y = threadIdx.x / 1;
    MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 2047) / 2048);
    const GridOfParts grid = {0, gridDim.x, gridDim.y, blockIdx.y};
    const uint32_t block0 = grid.first_block(blockIdx.z);
    MAYBE_UNUSED const int64_t first = (int64_t)blockIdx.x * 2048;
    MAYBE_UNUSED const int64_t last = first + 2048 < rows ? first + 2048 : rows;
    const int32_t column0 = (int32_t)blockIdx.z * 1, column = column0 + threadIdx.x % 1;
    const bool in = column < COLS;
    MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
    MAYBE_UNUSED const bool own = in;
    const float v11 = get_f32(b1);
    const int32_t v1 = -100;
    const float v5 = 1.0f;
    const float v6 = 0.0f;
    const float v9 = 1.0f;
    KeptSum s8[1] = {KeptSum{0.0f, 0.0f}};
    {
        NO_UNROLL
        for (int64_t row = first + y; own && row < last; row += 2048) {
            int32_t all2[8];
            UNROLL
            for (int u = 0; u < 8; u++) {
                const int64_t r = row + u * 256;
                MAYBE_UNUSED const bool here = r < last;
                all2[u] = here ? get_i32(b0 + r * COLS + c) : 0;
            }
            UNROLL
            for (int u = 0; u < 8; u++) {
                const int64_t r = row + u * 256;
                if (r >= last) break;
                const int32_t v2 = all2[u];
                const int32_t v3 = v2 == v1;
                const int32_t v4 = !v3;
                const float v7 = v4 ? v5 : v6;
                plus_kept(s8[0], v7);
            }
        }
    }
    KeptSum a8 = column_reduce<Plus, 1, 256>(s8);
    if (parts > 1) {
        keep_partial<1>(partials, block0 + blockIdx.x, 0, a8);
        if (!takes_last_ticket(tickets + block0, parts)) return;
        a8 = add_partials<Plus, 1, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
    }
    const float v8 = sum_kept(a8);
    const float v10 = max_f32(v8, v9);
    const float v12 = v11 / v10;
    const float v13 = -v12;
    if (in && threadIdx.x < 1) put_f32(b2 + c, v10);
    if (in && threadIdx.x < 1) put_f32(b3 + c, v13);
}

/* k02  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in train_step
 * k00  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in eval
 * k00  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in infer
 *   in     b0 x f32[N, 784]   b1 fc1.weight/f16.rows f16[512, 784]   b2 fc1.bias/f16.rows f16[512]
 *   out    b3 h f16[N, 512]   b4 fc1.y f16[N, 512] as f32
 *   v2 %x.f16 f16[N, 784] = cast(v1)   {lower, min-cast:7, for fc1.linear}
 *   v4 %5 f32[N, 512] = contract(v2, v3)   {lower, min-cast:7}
 *   v6 %6 f32[512] = cast(v5)
 *   v7 %7 f32[N, 512] = add(v4, v6)
 *   v8 %fc1.y f16[N, 512] = cast(v7)   {lower, min-cast:7}
 *   v9 %9 f32[N, 512] = cast(v8)
 *   v10 %10 f32 = const()
 *   v11 %11 f32[N, 512] = maximum(v9, v10)
 *   v12 %h f16[N, 512] = cast(v11)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k02(const float *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<RoundedF16, true, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> B;
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
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    const float v10 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[8];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 8; part += 8) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x5[8];
                load_f16(x5, b2 + c0);
                float y4[8];
                float y3[8];
                UNROLL
                for (int i = 0; i < 8; i++) {
                    const float v5 = x5[i];
                    const float v4 = sum[part + i];
                    const float v6 = v5;
                    const float v7 = v4 + v6;
                    const float v8 = round_f16_f32(v7);
                    const float v9 = v8;
                    const float v11 = max_f32(v9, v10);
                    const float v12 = round_f16_f32(v11);
                    y4[i] = v7;
                    y3[i] = v12;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k02  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in train_step
 * k00  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in eval
 * k00  fc1: linear + bias + relu           mlp.amp:7
 *   product over [n, 512] in infer
 *   in     b0 x f32[N, 784]   b1 fc1.weight/f16.rows f16[512, 784]   b2 fc1.bias/f16.rows f16[512]
 *   out    b3 h f16[N, 512]   b4 fc1.y f16[N, 512] as f32
 *   v2 %x.f16 f16[N, 784] = cast(v1)   {lower, min-cast:7, for fc1.linear}
 *   v4 %5 f32[N, 512] = contract(v2, v3)   {lower, min-cast:7}
 *   v6 %6 f32[512] = cast(v5)
 *   v7 %7 f32[N, 512] = add(v4, v6)
 *   v8 %fc1.y f16[N, 512] = cast(v7)   {lower, min-cast:7}
 *   v9 %9 f32[N, 512] = cast(v8)
 *   v10 %10 f32 = const()
 *   v11 %11 f32[N, 512] = maximum(v9, v10)
 *   v12 %h f16[N, 512] = cast(v11)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 128 x 128 by 32 of k, 3 stages from sm_80 on, 128 threads a block, at most 255 registers: 2 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, HAS_ASYNC_COPIES ? 2 : 1) train_step_k02_1(const float *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 128, 128, 2, 2, 64> Sums;
    typedef TensorOperand<RoundedF16, true, 128, 64, 16, 128> A;
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
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    const float v10 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[8];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 8; part += 8) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x5[8];
                load_f16(x5, b2 + c0);
                float y4[8];
                float y3[8];
                UNROLL
                for (int i = 0; i < 8; i++) {
                    const float v5 = x5[i];
                    const float v4 = sum[part + i];
                    const float v6 = v5;
                    const float v7 = v4 + v6;
                    const float v8 = round_f16_f32(v7);
                    const float v9 = v8;
                    const float v11 = max_f32(v9, v10);
                    const float v12 = round_f16_f32(v11);
                    y4[i] = v7;
                    y3[i] = v12;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k03  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in train_step
 * k01  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in eval
 * k01  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in infer
 *   in     b0 h f16[N, 512]   b1 fc2.weight/f16.rows f16[512, 512]   b2 fc2.bias/f16.rows f16[512]
 *   out    b3 h.1 f16[N, 512]   b4 fc2.y f16[N, 512] as f32
 *   v3 %13 f32[N, 512] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %14 f32[512] = cast(v4)
 *   v6 %15 f32[N, 512] = add(v3, v5)
 *   v7 %fc2.y f16[N, 512] = cast(v6)   {lower, min-cast:7}
 *   v8 %17 f32[N, 512] = cast(v7)
 *   v9 %18 f32 = const()
 *   v10 %19 f32[N, 512] = maximum(v8, v9)
 *   v11 %h.1 f16[N, 512] = cast(v10)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k03(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> B;
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
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    const float v9 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[8];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 8; part += 8) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x4[8];
                load_f16(x4, b2 + c0);
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
                    y3[i] = v11;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k03  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in train_step
 * k01  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in eval
 * k01  fc2: linear + bias + relu           mlp.amp:8
 *   product over [n, 512] in infer
 *   in     b0 h f16[N, 512]   b1 fc2.weight/f16.rows f16[512, 512]   b2 fc2.bias/f16.rows f16[512]
 *   out    b3 h.1 f16[N, 512]   b4 fc2.y f16[N, 512] as f32
 *   v3 %13 f32[N, 512] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %14 f32[512] = cast(v4)
 *   v6 %15 f32[N, 512] = add(v3, v5)
 *   v7 %fc2.y f16[N, 512] = cast(v6)   {lower, min-cast:7}
 *   v8 %17 f32[N, 512] = cast(v7)
 *   v9 %18 f32 = const()
 *   v10 %19 f32[N, 512] = maximum(v8, v9)
 *   v11 %h.1 f16[N, 512] = cast(v10)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
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
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    const float v9 = 0.0f;
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[8];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 8; part += 8) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x4[8];
                load_f16(x4, b2 + c0);
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
                    y3[i] = v11;
                }
                if (looks4) look(b4, y4);
                store_f16(b3 + at, y3);
            }
        }
    }
}

/* k04  fc3: linear + bias           mlp.amp:9
 *   product over [n, 10] in train_step
 *   in     b0 h.1 f16[N, 512]   b1 fc3.weight/f16.rows f16[10, 512]   b2 fc3.bias/f16.rows f16[10]
 *   out    b3 logits f16[N, 10]   b4 logits f16[N, 10] as f32
 *   v3 %21 f32[N, 10] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %22 f32[10] = cast(v4)
 *   v6 %23 f32[N, 10] = add(v3, v5)
 *   v7 %logits f16[N, 10] = cast(v6)   {lower, min-cast:7}
 *   mma f16, tiles of 64 x 16 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k04(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 16, 4, 1, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 16, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    const bool looks4 = b4->on;
    const int32_t COLS = (int32_t)cols;
    const uint2 tile = tile_in_stripe(blockIdx.x, blockIdx.y, (rows + 63) / 64, (COLS + 15) / 16);
    const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 16;
    __shared__ __align__(128) char shared[Matrices::SHARED];
    Sums sums;
    sums.clear();
    Matrices matrices = Matrices();
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    typedef Sums::Runs<8, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[8];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 8; part += 2) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x4[2];
                load_f16(x4, b2 + c0);
                float y3[2];
                float y4[2];
                UNROLL
                for (int i = 0; i < 2; i++) {
                    const float v4 = x4[i];
                    const float v3 = sum[part + i];
                    const float v5 = v4;
                    const float v6 = v3 + v5;
                    const float v7 = round_f16_f32(v6);
                    y3[i] = v7;
                    y4[i] = v6;
                }
                store_f16(b3 + at, y3);
                if (looks4) look(b4, y4);
            }
        }
    }
}

/* k05  cross_entropy: log_softmax + nll_loss + accuracy + nll_loss_grad + log_softmax_grad           mlp.amp:14
 *   row over [n, 10] in train_step
 *   in     b0 logits f16[N, 10]   b1 targets i32[N]   b2 74 f32
 *   out    b3 42 f32[N]   b4 66 f32[N]   b5 d.logits f16[N, 10]
 *   v2 %25 f32[N, 10] = cast(v1)
 *   v3 %26 f32[N, 1] = reduce_max(v2)
 *   v4 %27 f32[N, 10] = sub(v2, v3)
 *   v5 %28 f32[N, 10] = exp(v4)
 *   v6 %29 f32[N, 1] = reduce_sum(v5)
 *   v7 %30 f32[N, 1] = log(v6)
 *   v8 %cross_entropy.l f32[N, 10] = sub(v4, v7)   {f32_out, min-cast:18}
 *   v10 %33 i32[N, 10] = broadcast(v9, v8)
 *   v11 %34 i32[N, 10] = iota(v10)
 *   v12 %35 bool[N, 10] = eq(v11, v10)
 *   v13 %32 f32 = const()
 *   v14 %36 f32[N, 10] = select(v12, v8, v13)
 *   v15 %37 f32[N] = reduce_sum(v14)
 *   v16 %38 f32[N] = neg(v15)
 *   v17 %39 i32 = const()
 *   v18 %40 bool[N] = eq(v9, v17)
 *   v19 %41 bool[N] = not(v18)
 *   v20 %42 f32[N] = select(v19, v16, v13)
 *   v21 %54 f32[N, 10] = cast(v1)
 *   v22 %55 f32[N, 1] = reduce_max(v21)
 *   v23 %56 bool[N, 10] = eq(v21, v22)
 *   v24 %57 i32[N, 10] = iota(v1)
 *   v25 %58 f32[N, 10] = cast(v24)
 *   v26 %59 f32 = const()
 *   v27 %60 f32[N, 10] = select(v23, v25, v26)
 *   v28 %61 f32[N] = reduce_min(v27)
 *   v29 %62 f32[N] = cast(v9)
 *   v30 %63 bool[N] = eq(v28, v29)
 *   v31 %64 f32 = const()
 *   v32 %65 f32 = const()
 *   v33 %66 f32[N] = select(v30, v31, v32)
 *   v34 %75 i32[N, 10] = broadcast(v9, v8)
 *   v35 %76 i32[N, 10] = iota(v34)
 *   v36 %77 bool[N, 10] = eq(v35, v34)
 *   v37 %72 f32 = const()
 *   v39 %78 f32[N, 10] = select(v36, v38, v37)
 *   v40 %79 i32 = const()
 *   v41 %80 bool[N, 10] = eq(v34, v40)
 *   v42 %81 bool[N, 10] = not(v41)
 *   v43 %d.cross_entropy.l f32[N, 10] = select(v42, v39, v37)   {gradient, of cross_entropy.nll_loss}
 *   v44 %83 f32[N, 10] = exp(v8)
 *   v45 %84 f32[N, 1] = reduce_sum(v43)
 *   v46 %85 f32[N, 10] = mul(v44, v45)
 *   v47 %86 f32[N, 10] = sub(v43, v46)
 *   v48 %d.logits f16[N, 10] = cast(v47)   {gradient, of cross_entropy.log_softmax}
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k05(const uint16_t *b0, const int32_t *b1, const float *b2, float *b3, float *b4, uint16_t *b5, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 10 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const float v38 = get_f32(b2);
    const float v13 = 0.0f;
    const int32_t v17 = -100;
    const float v26 = INF;
    const float v31 = 1.0f;
    const float v32 = 0.0f;
    const float v37 = 0.0f;
    const int32_t v40 = -100;
    float kept2[1][1];
    float kept4[1][1];
    float kept21[1][1];
    float kept43[1][1];
    const int32_t v9 = get_i32(b1 + r);
    const int32_t v18 = v9 == v17;
    const int32_t v19 = !v18;
    const float v29 = (float)v9;
    float v3 = -INF;
    float v22 = -INF;
    KeptSum s45 = KeptSum{0.0f, 0.0f};
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v1 = get_f16(b0 + r * COLS + c);
            const float v2 = v1;
            kept2[0][0] = v2;
            const float v21 = v1;
            kept21[0][0] = v21;
            const int32_t v34 = v9;
            const int32_t v35 = (int32_t)c;
            const int32_t v36 = v35 == v34;
            const float v39 = v36 ? v38 : v37;
            const int32_t v41 = v34 == v40;
            const int32_t v42 = !v41;
            const float v43 = v42 ? v39 : v37;
            kept43[0][0] = v43;
            v3 = max_f32(v3, v2);
            v22 = max_f32(v22, v21);
            plus_kept(s45, v43);
        }
    }
    v3 = warp_reduce<Max>(v3);
    v22 = warp_reduce<Max>(v22);
    const float v45 = sum_kept(warp_reduce<Plus>(s45));
    KeptSum s6 = KeptSum{0.0f, 0.0f};
    float v28 = INF;
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v2 = kept2[0][0];
            const float v4 = v2 - v3;
            kept4[0][0] = v4;
            const float v5 = near_exp_f32(v4);
            const float v21 = kept21[0][0];
            const int32_t v23 = v21 == v22;
            const int32_t v24 = (int32_t)c;
            const float v25 = (float)v24;
            const float v27 = v23 ? v25 : v26;
            plus_kept(s6, v5);
            v28 = min_f32(v28, v27);
        }
    }
    const float v6 = sum_kept(warp_reduce<Plus>(s6));
    v28 = warp_reduce<Min>(v28);
    const float v7 = log_f32(v6);
    const int32_t v30 = v28 == v29;
    const float v33 = v30 ? v31 : v32;
    KeptSum s15 = KeptSum{0.0f, 0.0f};
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v4 = kept4[0][0];
            const float v8 = v4 - v7;
            const int32_t v10 = v9;
            const int32_t v11 = (int32_t)c;
            const int32_t v12 = v11 == v10;
            const float v14 = v12 ? v8 : v13;
            const float v43 = kept43[0][0];
            const float v44 = near_exp_f32(v8);
            const float v46 = v44 * v45;
            const float v47 = v43 - v46;
            const float v48 = round_f16_f32(v47);
            plus_kept(s15, v14);
            put_f16(b5 + r * COLS + c, v48);
        }
    }
    const float v15 = sum_kept(warp_reduce<Plus>(s15));
    const float v16 = -v15;
    const float v20 = v19 ? v16 : v13;
    if (lane == 0) put_f32(b3 + r, v20);
    if (lane == 0) put_f32(b4 + r, v33);
}

/* k07  fc3.linear.grad.weight: matmul + all_finite + unscale           mlp.amp:9
 *   product over [10, 512] in train_step
 * + k06  fc3.linear.grad.input: matmul + relu_grad           mlp.amp:9
 *   product over [n, 512] in train_step
 * part 0
 *   in     b0 d.logits f16[N, 10]   b1 h.1 f16[N, 512]   b2 inverse_scale f32
 *   out    b3 130 bool   b4 grad.fc3.weight f32[10, 512]
 *   v3 %d.fc3.weight f32[10, 512] = contract(v1, v2)   {weight_gradient, of fc3.linear}
 *   v4 %128 bool[10, 512] = is_finite(v3)
 *   v5 %129 bool[10, 512] = not(v4)
 *   v6 %130 bool = reduce_or(v5)
 *   v8 %grad.fc3.weight f32[10, 512] = mul(v3, v7)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 * part 1
 *   in     b0 d.logits f16[N, 10]   b1 fc3.weight/f16.rows f16[10, 512]   b2 h.1 f16[N, 512]
 *   out    b3 d.fc2.y f16[N, 512]
 *   v3 %88 f32[N, 512] = contract(v1, v2)   {gradient, of fc3.linear}
 *   v4 %d.h.1 f16[N, 512] = cast(v3)   {gradient, of fc3.linear}
 *   v6 %95 f32[N, 512] = cast(v5)
 *   v7 %94 f32 = const()
 *   v8 %96 bool[N, 512] = le(v6, v7)
 *   v9 %93 f32[N, 512] = cast(v4)
 *   v10 %97 f32[N, 512] = select(v8, v7, v9)
 *   v11 %d.fc2.y f16[N, 512] = cast(v10)   {gradient, of relu_1}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
struct train_step_k07_part0 {
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 4, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, rows, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
        admit_next_launch();
        int32_t any3 = 0;
        const float v7 = get_f32(b2);
        typedef Sums::Runs<4, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[4];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 4; part += 4) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float y4[4];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v3 = sum[part + i];
                        const int32_t v4 = finite_f32(v3);
                        const int32_t v5 = !v4;
                        const float v8 = v3 * v7;
                        any3 |= v5;
                        y4[i] = v8;
                    }
                    store_f32(b4 + at, y4);
                }
            }
        }
        if (any3) *b3 = 1;
    }
};

struct train_step_k07_part1 {
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 4, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            prefetch_tile<64, 128>(b2 + row0 * COLS + col0, COLS * 2, rows - row0, (COLS - col0) * 2);
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
        admit_next_launch();
        const float v7 = 0.0f;
        typedef Sums::Runs<8, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[8];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 8; part += 8) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float x5[8];
                    load_f16(x5, b2 + at);
                    float y3[8];
                    UNROLL
                    for (int i = 0; i < 8; i++) {
                        const float v5 = x5[i];
                        const float v3 = sum[part + i];
                        const float v4 = round_f16_f32(v3);
                        const float v6 = v5;
                        const int32_t v8 = v6 <= v7;
                        const float v9 = v4;
                        const float v10 = v8 ? v7 : v9;
                        const float v11 = round_f16_f32(v10);
                        y3[i] = v11;
                    }
                    store_f16(b3 + at, y3);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(128, 3) train_step_k07(const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, const uint16_t *b5, const uint16_t *b6, const uint16_t *b7, uint16_t *b8, int64_t n, int64_t size0, int64_t size1, int64_t size2, int64_t size3, int64_t size4, int64_t size5, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1)
{
    __shared__ __align__(128) union {
        char part0[train_step_k07_part0::SHARED], part1[train_step_k07_part1::SHARED];
    } shared;
    if (blockIdx.x < (uint32_t)first1) {
        train_step_k07_part0::run({first0, x0, y0}, shared.part0, b0, b1, b2, b3, b4, n, size0, size1, size2);
        return;
    }
    train_step_k07_part1::run({first1, x1, y1}, shared.part1, b5, b6, b7, b8, n, size3, size4, size5);
}

/* k09  fc2.linear.grad.weight: matmul + all_finite + unscale           mlp.amp:8
 *   product over [512, 512] in train_step
 * + k08  fc2.linear.grad.input: matmul + relu_grad           mlp.amp:8
 *   product over [n, 512] in train_step
 * part 0
 *   in     b0 d.fc2.y f16[N, 512]   b1 h f16[N, 512]   b2 inverse_scale f32
 *   out    b3 122 bool   b4 grad.fc2.weight f32[512, 512]
 *   v3 %d.fc2.weight f32[512, 512] = contract(v1, v2)   {weight_gradient, of fc2.linear}
 *   v4 %120 bool[512, 512] = is_finite(v3)
 *   v5 %121 bool[512, 512] = not(v4)
 *   v6 %122 bool = reduce_or(v5)
 *   v8 %grad.fc2.weight f32[512, 512] = mul(v3, v7)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 * part 1
 *   in     b0 d.fc2.y f16[N, 512]   b1 fc2.weight/f16.rows f16[512, 512]   b2 h f16[N, 512]
 *   out    b3 d.fc1.y f16[N, 512]
 *   v3 %99 f32[N, 512] = contract(v1, v2)   {gradient, of fc2.linear}
 *   v4 %d.h f16[N, 512] = cast(v3)   {gradient, of fc2.linear}
 *   v6 %106 f32[N, 512] = cast(v5)
 *   v7 %105 f32 = const()
 *   v8 %107 bool[N, 512] = le(v6, v7)
 *   v9 %104 f32[N, 512] = cast(v4)
 *   v10 %108 f32[N, 512] = select(v8, v7, v9)
 *   v11 %d.fc1.y f16[N, 512] = cast(v10)   {gradient, of relu}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
struct train_step_k09_part0 {
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, rows, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
        admit_next_launch();
        int32_t any3 = 0;
        const float v7 = get_f32(b2);
        typedef Sums::Runs<4, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[4];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 4; part += 4) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float y4[4];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v3 = sum[part + i];
                        const int32_t v4 = finite_f32(v3);
                        const int32_t v5 = !v4;
                        const float v8 = v3 * v7;
                        any3 |= v5;
                        y4[i] = v8;
                    }
                    store_f32(b4 + at, y4);
                }
            }
        }
        if (any3) *b3 = 1;
    }
};

struct train_step_k09_part1 {
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            prefetch_tile<64, 128>(b2 + row0 * COLS + col0, COLS * 2, rows - row0, (COLS - col0) * 2);
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
        admit_next_launch();
        const float v7 = 0.0f;
        typedef Sums::Runs<8, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[8];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 8; part += 8) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float x5[8];
                    load_f16(x5, b2 + at);
                    float y3[8];
                    UNROLL
                    for (int i = 0; i < 8; i++) {
                        const float v5 = x5[i];
                        const float v3 = sum[part + i];
                        const float v4 = round_f16_f32(v3);
                        const float v6 = v5;
                        const int32_t v8 = v6 <= v7;
                        const float v9 = v4;
                        const float v10 = v8 ? v7 : v9;
                        const float v11 = round_f16_f32(v10);
                        y3[i] = v11;
                    }
                    store_f16(b3 + at, y3);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(128, 3) train_step_k09(const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, const uint16_t *b5, const uint16_t *b6, const uint16_t *b7, uint16_t *b8, int64_t n, int64_t size0, int64_t size1, int64_t size2, int64_t size3, int64_t size4, int64_t size5, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1)
{
    __shared__ __align__(128) union {
        char part0[train_step_k09_part0::SHARED], part1[train_step_k09_part1::SHARED];
    } shared;
    if (blockIdx.x < (uint32_t)first1) {
        train_step_k09_part0::run({first0, x0, y0}, shared.part0, b0, b1, b2, b3, b4, n, size0, size1, size2);
        return;
    }
    train_step_k09_part1::run({first1, x1, y1}, shared.part1, b5, b6, b7, b8, n, size3, size4, size5);
}

/* k09  fc2.linear.grad.weight: matmul + all_finite + unscale           mlp.amp:8
 *   product over [512, 512] in train_step
 * + k08  fc2.linear.grad.input: matmul + relu_grad           mlp.amp:8
 *   product over [n, 512] in train_step
 * part 0
 *   in     b0 d.fc2.y f16[N, 512]   b1 h f16[N, 512]   b2 inverse_scale f32
 *   out    b3 122 bool   b4 grad.fc2.weight f32[512, 512]
 *   v3 %d.fc2.weight f32[512, 512] = contract(v1, v2)   {weight_gradient, of fc2.linear}
 *   v4 %120 bool[512, 512] = is_finite(v3)
 *   v5 %121 bool[512, 512] = not(v4)
 *   v6 %122 bool = reduce_or(v5)
 *   v8 %grad.fc2.weight f32[512, 512] = mul(v3, v7)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 * part 1
 *   in     b0 d.fc2.y f16[N, 512]   b1 fc2.weight/f16.rows f16[512, 512]   b2 h f16[N, 512]
 *   out    b3 d.fc1.y f16[N, 512]
 *   v3 %99 f32[N, 512] = contract(v1, v2)   {gradient, of fc2.linear}
 *   v4 %d.h f16[N, 512] = cast(v3)   {gradient, of fc2.linear}
 *   v6 %106 f32[N, 512] = cast(v5)
 *   v7 %105 f32 = const()
 *   v8 %107 bool[N, 512] = le(v6, v7)
 *   v9 %104 f32[N, 512] = cast(v4)
 *   v10 %108 f32[N, 512] = select(v8, v7, v9)
 *   v11 %d.fc1.y f16[N, 512] = cast(v10)   {gradient, of relu}
 *   mma f16, tiles of 128 x 128 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 */
struct train_step_k09_1_part0 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, rows, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
        admit_next_launch();
        int32_t any3 = 0;
        const float v7 = get_f32(b2);
        typedef Sums::Runs<4, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[4];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 4; part += 4) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float y4[4];
                    UNROLL
                    for (int i = 0; i < 4; i++) {
                        const float v3 = sum[part + i];
                        const int32_t v4 = finite_f32(v3);
                        const int32_t v5 = !v4;
                        const float v8 = v3 * v7;
                        any3 |= v5;
                        y4[i] = v8;
                    }
                    store_f32(b4 + at, y4);
                }
            }
        }
        if (any3) *b3 = 1;
    }
};

struct train_step_k09_1_part1 {
    typedef TensorSums<MmaF16, 128, 128, 2, 4, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 128, 64, 16, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 128, 64, 16, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 127) / 128, (COLS + 127) / 128);
            const int64_t row0 = (int64_t)tile.x * 128, col0 = (int64_t)tile.y * 128;
            prefetch_tile<128, 256>(b2 + row0 * COLS + col0, COLS * 2, rows - row0, (COLS - col0) * 2);
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 127) / 128, (COLS + 127) / 128);
        const int64_t row0 = (int64_t)tile.x * 128, col0 = (int64_t)tile.y * 128;
        admit_next_launch();
        const float v7 = 0.0f;
        typedef Sums::Runs<8, Matrices::SHARED> Runs;
        NO_UNROLL
        for (int pass = 0; pass < Runs::PASSES; pass++) {
            Runs::put(sums, shared, pass);
            UNROLL_UNLESS_LEAN
            for (int run = 0; run < Runs::COUNT; run++) {
                float sum[8];
                Runs::take(sum, sums, shared, run);
                const int64_t r = row0 + Runs::row(pass, run);
                UNROLL
                for (int part = 0; part < 8; part += 8) {
                    const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                    if (r >= rows || c0 >= COLS) continue;
                    const int64_t at = r * COLS + c0;
                    float x5[8];
                    load_f16(x5, b2 + at);
                    float y3[8];
                    UNROLL
                    for (int i = 0; i < 8; i++) {
                        const float v5 = x5[i];
                        const float v3 = sum[part + i];
                        const float v4 = round_f16_f32(v3);
                        const float v6 = v5;
                        const int32_t v8 = v6 <= v7;
                        const float v9 = v4;
                        const float v10 = v8 ? v7 : v9;
                        const float v11 = round_f16_f32(v10);
                        y3[i] = v11;
                    }
                    store_f16(b3 + at, y3);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(256, HAS_ASYNC_COPIES ? 2 : 1) train_step_k09_1(const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, const uint16_t *b5, const uint16_t *b6, const uint16_t *b7, uint16_t *b8, int64_t n, int64_t size0, int64_t size1, int64_t size2, int64_t size3, int64_t size4, int64_t size5, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1)
{
    __shared__ __align__(128) union {
        char part0[train_step_k09_1_part0::SHARED], part1[train_step_k09_1_part1::SHARED];
    } shared;
    if (blockIdx.x < (uint32_t)first1) {
        train_step_k09_1_part0::run({first0, x0, y0}, shared.part0, b0, b1, b2, b3, b4, n, size0, size1, size2);
        return;
    }
    train_step_k09_1_part1::run({first1, x1, y1}, shared.part1, b5, b6, b7, b8, n, size3, size4, size5);
}

/* k10  cross_entropy: nll_loss + accuracy           mlp.amp:14
 *   column over [n, 1] in train_step
 * + k11  fc3.linear.grad.bias: sum + all_finite + unscale           mlp.amp:9
 *   column over [n, 10] in train_step
 * + k12  fc2.linear.grad.bias: sum + all_finite + unscale           mlp.amp:8
 *   column over [n, 512] in train_step
 * + k13  fc1.linear.grad.bias: sum + all_finite + unscale           mlp.amp:7
 *   column over [n, 512] in train_step
 * part 0
 *   in     b0 42 f32[N]   b1 52 f32   b2 66 f32[N]
 *   out    b3 loss f32   b4 acc f32
 *   v2 %43 f32 = reduce_sum(v1)
 *   v4 %loss f32 = div(v2, v3)   {f32, min-cast:13}
 *   v6 %67 f32 = reduce_sum(v5)
 *   v8 %68 f32 = extent(v7)
 *   v9 %acc f32 = div(v6, v8)   {f32_out, min-cast:21}
 *   1 columns, 1 a thread, 256 rows at once, 2048 rows a block, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 1
 *   in     b0 d.logits f16[N, 10]   b1 inverse_scale f32
 *   out    b2 134 bool   b3 grad.fc3.bias f32[10]
 *   v2 %91 f32[N, 10] = cast(v1)
 *   v3 %d.fc3.bias f32[10] = reduce_sum(v2)   {weight_gradient, of fc3.linear}
 *   v4 %132 bool[10] = is_finite(v3)
 *   v5 %133 bool[10] = not(v4)
 *   v6 %134 bool = reduce_or(v5)
 *   v8 %grad.fc3.bias f32[10] = mul(v3, v7)   {loss_scale}
 *   16 columns, 2 a thread, 32 rows at once, 256 rows a block, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 2
 *   in     b0 d.fc2.y f16[N, 512]   b1 inverse_scale f32
 *   out    b2 126 bool   b3 grad.fc2.bias f32[512]
 *   v2 %102 f32[N, 512] = cast(v1)
 *   v3 %d.fc2.bias f32[512] = reduce_sum(v2)   {weight_gradient, of fc2.linear}
 *   v4 %124 bool[512] = is_finite(v3)
 *   v5 %125 bool[512] = not(v4)
 *   v6 %126 bool = reduce_or(v5)
 *   v8 %grad.fc2.bias f32[512] = mul(v3, v7)   {loss_scale}
 *   32 columns, 4 a thread, 32 rows at once, 256 rows a block, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 */
struct train_step_k10_part0 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInGrid &place, char *shared, const float *b0, const float *b1, const float *b2, float *b3, float *b4, int64_t n, int64_t rows, int64_t cols, uint32_t *tickets, double *partials)
    {
        const uint3 block = place.now();
        await_earlier_launches();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 1;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 2047) / 2048);
        const GridOfParts grid = {(uint32_t)place.first, (uint32_t)place.x, (uint32_t)place.y, block.y};
        const uint32_t block0 = grid.first_block(block.z);
        MAYBE_UNUSED const int64_t first = (int64_t)block.x * 2048;
        MAYBE_UNUSED const int64_t last = first + 2048 < rows ? first + 2048 : rows;
        const int32_t column0 = (int32_t)block.z * 1, column = column0 + threadIdx.x % 1;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        MAYBE_UNUSED const bool own = in;
        const float v3 = get_f32(b1);
        const float v8 = (float)(n);
        KeptSum s2[1] = {KeptSum{0.0f, 0.0f}};
        KeptSum s6[1] = {KeptSum{0.0f, 0.0f}};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 2048) {
                float all1[8];
                float all5[8];
                UNROLL
                for (int u = 0; u < 8; u++) {
                    const int64_t r = row + u * 256;
                    MAYBE_UNUSED const bool here = r < last;
                    all1[u] = here ? get_f32(b0 + r * COLS + c) : 0;
                    all5[u] = here ? get_f32(b2 + r * COLS + c) : 0;
                }
                UNROLL
                for (int u = 0; u < 8; u++) {
                    const int64_t r = row + u * 256;
                    if (r >= last) break;
                    const float v1 = all1[u];
                    const float v5 = all5[u];
                    plus_kept(s2[0], v1);
                    plus_kept(s6[0], v5);
                }
            }
        }
        KeptSum a2 = column_reduce<Plus, 1, 256>(s2);
        KeptSum a6 = column_reduce<Plus, 1, 256>(s6);
        if (parts > 1) {
            keep_partial<1>(partials, block0 + block.x, 0, a2);
            keep_partial<1>(partials, block0 + block.x, 1, a6);
            if (!takes_last_ticket(tickets + block0, parts)) return;
            a2 = add_partials<Plus, 1, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
            a6 = add_partials<Plus, 1, 256>(partials, block0, parts, 1, KeptSum{0.0f, 0.0f});
        }
        const float v2 = sum_kept(a2);
        const float v6 = sum_kept(a6);
        const float v4 = v2 / v3;
        const float v9 = v6 / v8;
        if (in && threadIdx.x < 1) put_f32(b3 + c, v4);
        if (in && threadIdx.x < 1) put_f32(b4 + c, v9);
    }
};

struct train_step_k10_part1 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInGrid &place, char *shared, const uint16_t *b0, const float *b1, int32_t *b2, float *b3, int64_t n, int64_t rows, int64_t cols, uint32_t *tickets, double *partials)
    {
        const uint3 block = place.now();
        await_earlier_launches();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 8;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 255) / 256);
        const GridOfParts grid = {(uint32_t)place.first, (uint32_t)place.x, (uint32_t)place.y, block.y};
        const uint32_t block0 = grid.first_block(block.z);
        MAYBE_UNUSED const int64_t first = (int64_t)block.x * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        const int32_t column0 = (int32_t)block.z * 16, column = column0 + threadIdx.x % 16;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        const int32_t c0 = column0 + threadIdx.x % 8 * 2;
        MAYBE_UNUSED const bool own = c0 < COLS;
        int32_t any2 = 0;
        const float v7 = get_f32(b1);
        KeptSum s3[2] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
        {
            NO_UNROLL
            for (int64_t row = first + y; own && row < last; row += 256) {
                float all1[8][2];
                UNROLL
                for (int u = 0; u < 8; u++) {
                    const int64_t r = row + u * 32;
                    MAYBE_UNUSED const bool here = r < last;
                    float(&x1)[2] = all1[u];
                    load_if_f16(x1, b0 + r * COLS + c0, here);
                }
                UNROLL
                for (int u = 0; u < 8; u++) {
                    const int64_t r = row + u * 32;
                    if (r >= last) break;
                    float(&x1)[2] = all1[u];
                    UNROLL
                    for (int i = 0; i < 2; i++) {
                        const float v1 = x1[i];
                        const float v2 = v1;
                        plus_kept(s3[i], v2);
                    }
                }
            }
        }
        KeptSum a3 = column_reduce<Plus, 16, 32>(s3);
        if (parts > 1) {
            keep_partial<16>(partials, block0 + block.x, 0, a3);
            if (any2) *b2 = 1;
            if (!takes_last_ticket(tickets + block0, parts)) return;
            a3 = add_partials<Plus, 16, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
        }
        const float v3 = sum_kept(a3);
        const int32_t v4 = finite_f32(v3);
        const int32_t v5 = !v4;
        const float v8 = v3 * v7;
        any2 |= v5;
        if (in && threadIdx.x < 16) put_f32(b3 + c, v8);
        if (any2) *b2 = 1;
    }
};

struct train_step_k10_part2 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInGrid &place, char *shared, void *const *operands, int64_t n, int64_t rows, int64_t cols, const int64_t *member_elements, uint32_t *tickets, double *partials)
    {
        const uint3 block = place.now();
        const int member = block.y;
        void *const *const operand = operands + member * 4;
        MAYBE_UNUSED const uint16_t *const b0 = (const uint16_t *)operand[0];
        MAYBE_UNUSED const float *const b1 = (const float *)operand[1];
        MAYBE_UNUSED int32_t *const b2 = (int32_t *)operand[2];
        MAYBE_UNUSED float *const b3 = (float *)operand[3];
        await_earlier_launches();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 8;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 255) / 256);
        const GridOfParts grid = {(uint32_t)place.first, (uint32_t)place.x, (uint32_t)place.y, block.y};
        const uint32_t block0 = grid.first_block(block.z);
        MAYBE_UNUSED const int64_t first = (int64_t)block.x * 256;
        MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
        const int32_t column0 = (int32_t)block.z * 32, column = column0 + threadIdx.x % 32;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        const int32_t c0 = column0 + threadIdx.x % 8 * 4;
        MAYBE_UNUSED const bool own = c0 < COLS;
        int32_t any2 = 0;
        const float v7 = get_f32(b1);
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
        if (parts > 1) {
            keep_partial<32>(partials, block0 + block.x, 0, a3);
            if (any2) *b2 = 1;
            if (!takes_last_ticket(tickets + block0, parts)) return;
            a3 = add_partials<Plus, 32, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
        }
        const float v3 = sum_kept(a3);
        const int32_t v4 = finite_f32(v3);
        const int32_t v5 = !v4;
        const float v8 = v3 * v7;
        any2 |= v5;
        if (in && threadIdx.x < 32) put_f32(b3 + c, v8);
        if (any2) *b2 = 1;
    }
};

extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) train_step_k10(void *const *operands, int64_t n, int64_t size0, int64_t size1, int64_t size2, int64_t size3, int64_t size4, int64_t size5, const int64_t *member_elements, uint32_t *tickets, double *partials, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1, int64_t first2, int64_t x2, int64_t y2)
{
    __shared__ __align__(128) union {
        char part0[train_step_k10_part0::SHARED], part1[train_step_k10_part1::SHARED], part2[train_step_k10_part2::SHARED];
    } shared;
    if (blockIdx.x < (uint32_t)first1) {
        train_step_k10_part0::run({first0, x0, y0}, shared.part0, (const float *)operands[0], (const float *)operands[1], (const float *)operands[2], (float *)operands[3], (float *)operands[4], n, size0, size1, tickets, partials);
        return;
    }
    if (blockIdx.x < (uint32_t)first2) {
        train_step_k10_part1::run({first1, x1, y1}, shared.part1, (const uint16_t *)operands[5], (const float *)operands[6], (int32_t *)operands[7], (float *)operands[8], n, size2, size3, tickets, partials);
        return;
    }
    train_step_k10_part2::run({first2, x2, y2}, shared.part2, operands + 9, n, size4, size5, member_elements + 2, tickets, partials);
}

/* k14  fc1.linear.grad.weight: matmul + all_finite + unscale           mlp.amp:7
 *   product over [512, 784] in train_step
 *   in     b0 x f32[N, 784]   b1 d.fc1.y f16[N, 512]   b2 inverse_scale f32
 *   out    b3 115 bool   b4 grad.fc1.weight f32[512, 784]
 *   v2 %304 f16[N, 784] = cast(v1)   {lower, min-cast:7, for fc1.linear}
 *   v4 %d.fc1.weight f32[512, 784] = contract(v3, v2)   {weight_gradient, of fc1.linear}
 *   v5 %113 bool[512, 784] = is_finite(v4)
 *   v6 %114 bool[512, 784] = not(v5)
 *   v7 %115 bool = reduce_or(v6)
 *   v9 %grad.fc1.weight f32[512, 784] = mul(v4, v8)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) train_step_k14(const float *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 64, 2, 2, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 128, 16, 128> A;
    typedef TensorOperand<RoundedF16, false, 64, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    const int32_t COLS = (int32_t)cols;
    const uint2 tile = tile_in_stripe(blockIdx.x, blockIdx.y, (rows + 63) / 64, (COLS + 63) / 64);
    const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
    __shared__ __align__(128) char shared[Matrices::SHARED];
    Sums sums;
    sums.clear();
    Matrices matrices = Matrices();
    matrices.run(sums, shared, b1, rows, b0, COLS, row0, rows, col0, COLS, k);
    admit_next_launch();
    int32_t any3 = 0;
    const float v8 = get_f32(b2);
    typedef Sums::Runs<4, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[4];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 4; part += 4) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float y4[4];
                UNROLL
                for (int i = 0; i < 4; i++) {
                    const float v4 = sum[part + i];
                    const int32_t v5 = finite_f32(v4);
                    const int32_t v6 = !v5;
                    const float v9 = v4 * v8;
                    any3 |= v6;
                    y4[i] = v9;
                }
                store_f32(b4 + at, y4);
            }
        }
    }
    if (any3) *b3 = 1;
}

/* k15  scaler: all_finite + update_scale + add           mlp.amp:20
 *   scalar over [1, 1] in train_step
 *   in     b0 115 bool   b1 118 bool   b2 122 bool   b3 126 bool   b4 130 bool   b5 134 bool   b6 growth_tracker i32   b7 scale f32   b8 floor_hits i32
 *   out    b6 growth_tracker i32   b7 scale f32   b8 floor_hits i32   b9 ok bool
 *   v3 %119 bool = or(v1, v2)
 *   v5 %123 bool = or(v3, v4)
 *   v7 %127 bool = or(v5, v6)
 *   v9 %131 bool = or(v7, v8)
 *   v11 %135 bool = or(v9, v10)
 *   v12 %ok bool = not(v11)   {loss_scale}
 *   v13 %149 i32 = const()
 *   v15 %161 i32 = add(v14, v13)
 *   v16 %162 i32 = const()
 *   v17 %163 bool = eq(v15, v16)
 *   v19 %147 f64 = cast(v18)
 *   v20 %155 f64 = const()
 *   v21 %156 f64 = mul(v19, v20)
 *   v22 %157 f32 = cast(v21)
 *   v23 %158 bool = is_finite(v22)
 *   v24 %164 bool = and(v17, v23)
 *   v25 %159 f32 = const()
 *   v26 %160 f32 = minimum(v22, v25)
 *   v27 %165 f32 = select(v24, v26, v18)
 *   v28 %150 f64 = const()
 *   v29 %151 f64 = mul(v19, v28)
 *   v30 %152 f32 = cast(v29)
 *   v31 %153 f32 = const()
 *   v32 %154 f32 = maximum(v30, v31)
 *   v33 %166 f32 = select(v12, v27, v32)   {loss_scale}
 *   v34 %148 i32 = const()
 *   v35 %167 i32 = select(v17, v34, v15)
 *   v36 %168 i32 = select(v12, v35, v34)   {loss_scale}
 *   v37 %171 bool = not(v12)
 *   v38 %169 f32 = const()
 *   v39 %170 bool = le(v18, v38)
 *   v40 %172 bool = and(v37, v39)
 *   v41 %173 i32 = select(v40, v13, v34)   {loss_scale}
 *   v43 %174 i32 = add(v42, v41)   {loss_scale}
 *   assign(v18, v33)   {loss_scale}
 *   assign(v14, v36)   {loss_scale}
 *   assign(v42, v43)   {loss_scale}
 *   1 thread a block
 */
extern "C" __global__ void __launch_bounds__(1, LEAN) train_step_k15(const int32_t *b0, const int32_t *b1, const int32_t *b2, const int32_t *b3, const int32_t *b4, const int32_t *b5, int32_t *b6, float *b7, int32_t *b8, int32_t *b9, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    const int32_t v1 = get_bool(b0);
    const int32_t v2 = get_bool(b1);
    const int32_t v4 = get_bool(b2);
    const int32_t v6 = get_bool(b3);
    const int32_t v8 = get_bool(b4);
    const int32_t v10 = get_bool(b5);
    const int32_t v14 = get_i32(b6);
    const float v18 = get_f32(b7);
    const int32_t v42 = get_i32(b8);
    const int32_t v3 = v1 | v2;
    const int32_t v5 = v3 | v4;
    const int32_t v7 = v5 | v6;
    const int32_t v9 = v7 | v8;
    const int32_t v11 = v9 | v10;
    const int32_t v12 = !v11;
    const int32_t v13 = 1;
    const int32_t v15 = v14 + v13;
    const int32_t v16 = 2000;
    const int32_t v17 = v15 == v16;
    const double v19 = (double)v18;
    const double v20 = 2.0;
    const double v21 = v19 * v20;
    const float v22 = (float)v21;
    const int32_t v23 = finite_f32(v22);
    const int32_t v24 = v17 & v23;
    const float v25 = 16777216.0f;
    const float v26 = min_f32(v22, v25);
    const float v27 = v24 ? v26 : v18;
    const double v28 = 0.5;
    const double v29 = v19 * v28;
    const float v30 = (float)v29;
    const float v31 = 1.0f;
    const float v32 = max_f32(v30, v31);
    const float v33 = v12 ? v27 : v32;
    const int32_t v34 = 0;
    const int32_t v35 = v17 ? v34 : v15;
    const int32_t v36 = v12 ? v35 : v34;
    const int32_t v37 = !v12;
    const float v38 = 1.0f;
    const int32_t v39 = v18 <= v38;
    const int32_t v40 = v37 & v39;
    const int32_t v41 = v40 ? v13 : v34;
    const int32_t v43 = v42 + v41;
    put_bool(b9, v12);
    put_f32(b7, v33);
    put_i32(b6, v36);
    put_i32(b8, v43);
}

/* k16  fc1.weight: adamw           mlp.amp:16
 *   tile over [512, 784] in train_step
 * k17  fc1.bias: adamw           mlp.amp:16
 *   tile over [1, 512] in train_step
 * k18  fc2.weight: adamw           mlp.amp:16
 *   tile over [512, 512] in train_step
 * k19  fc2.bias: adamw           mlp.amp:16
 *   tile over [1, 512] in train_step
 * k20  fc3.weight: adamw           mlp.amp:16
 *   tile over [10, 512] in train_step
 * k21  fc3.bias: adamw           mlp.amp:16
 *   tile over [1, 10] in train_step
 * + k22  step: assign           mlp.amp:16
 *   scalar over [1, 1] in train_step
 * part 0
 *   in     b0 grad.fc1.weight f32[512, 784]   b1 fc1.weight/m f32[512, 784]   b2 fc1.weight/v f32[512, 784]   b3 191 f32   b4 184 f32   b5 fc1.weight f32[512, 784]   b6 178 f32
 *   out    b1 fc1.weight/m f32[512, 784]   b2 fc1.weight/v f32[512, 784]   b5 fc1.weight f32[512, 784]   b7 fc1.weight/f16.rows f16[512, 784]
 *   v1 %196 f32 = const()
 *   v3 %197 f32[512, 784] = mul(v2, v1)
 *   v4 %192 f32 = const()
 *   v6 %193 f32[512, 784] = mul(v5, v4)
 *   v7 %fc1.weight/m.next f32[512, 784] = add(v6, v3)   {update, of fc1.weight}
 *   v8 %199 f32 = const()
 *   v9 %200 f32[512, 784] = mul(v2, v8)
 *   v10 %201 f32[512, 784] = mul(v9, v2)
 *   v11 %194 f32 = const()
 *   v13 %195 f32[512, 784] = mul(v12, v11)
 *   v14 %fc1.weight/v.next f32[512, 784] = add(v13, v10)   {update, of fc1.weight}
 *   v15 %203 f32[512, 784] = sqrt(v14)
 *   v17 %204 f32[512, 784] = mul(v15, v16)
 *   v18 %205 f32 = const()
 *   v19 %206 f32[512, 784] = add(v17, v18)
 *   v21 %207 f32[512, 784] = mul(v20, v7)
 *   v22 %208 f32[512, 784] = div(v21, v19)
 *   v25 %179 f32[512, 784] = mul(v23, v24)
 *   v26 %fc1.weight.next f32[512, 784] = sub(v25, v22)   {update, of fc1.weight}
 *   assign(v23, v26)   {update, of fc1.weight}
 *   v27 %305 f16[512, 784] = cast(v26)   {update}
 *   assign(v28, v27)
 *   assign(v5, v7)   {update, of fc1.weight/m}
 *   assign(v12, v14)   {update, of fc1.weight/v}
 *   4 elements a thread, 256 threads a block
 * part 1
 *   in     b0 step.next i64
 *   out    b1 step i64
 *   assign(v1, v2)   {update, of step}
 *   256 threads a block
 */
struct train_step_k16_part0 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInGrid &place, char *shared, void *const *operands, int64_t n, const int64_t *member_elements)
    {
        const uint3 block = place.now();
        int64_t own_block = block.x;
        const int member = find_member(member_elements, 6, 1024, &own_block);
        void *const *const operand = operands + member * 9;
        const int32_t *const predicate = (const int32_t *)operand[8];
        MAYBE_UNUSED const float *const b0 = (const float *)operand[0];
        MAYBE_UNUSED float *const b1 = (float *)operand[1];
        MAYBE_UNUSED float *const b2 = (float *)operand[2];
        MAYBE_UNUSED const float *const b3 = (const float *)operand[3];
        MAYBE_UNUSED const float *const b4 = (const float *)operand[4];
        MAYBE_UNUSED float *const b5 = (float *)operand[5];
        MAYBE_UNUSED const float *const b6 = (const float *)operand[6];
        MAYBE_UNUSED uint16_t *const b7 = (uint16_t *)operand[7];
        await_earlier_launches();
        admit_next_launch();
        if (!*predicate) return;
        const int64_t elements = member_elements[member];
        const int64_t at = (own_block * 256 + threadIdx.x) * 4;
        if (at >= elements) return;
        MAYBE_UNUSED const int64_t left = elements - at;
        const float v16 = get_f32(b3);
        const float v20 = get_f32(b4);
        const float v24 = get_f32(b6);
        const float v1 = 0.10000000149011612f;
        const float v4 = 0.8999999761581421f;
        const float v8 = 0.0010000000474974513f;
        const float v11 = 0.9990000128746033f;
        const float v18 = 9.99999993922529e-09f;
        float x2[4];
        load_f32(x2, b0 + at, left);
        float x5[4];
        load_f32(x5, b1 + at, left);
        float x12[4];
        load_f32(x12, b2 + at, left);
        float x23[4];
        load_f32(x23, b5 + at, left);
        float y5[4];
        float y7[4];
        float y1[4];
        float y2[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float v2 = x2[i];
            const float v5 = x5[i];
            const float v12 = x12[i];
            const float v23 = x23[i];
            const float v3 = v2 * v1;
            const float v6 = v5 * v4;
            const float v7 = v6 + v3;
            const float v9 = v2 * v8;
            const float v10 = v9 * v2;
            const float v13 = v12 * v11;
            const float v14 = v13 + v10;
            const float v15 = sqrt_f32(v14);
            const float v17 = v15 * v16;
            const float v19 = v17 + v18;
            const float v21 = v20 * v7;
            const float v22 = v21 / v19;
            const float v25 = v23 * v24;
            const float v26 = v25 - v22;
            const float v27 = round_f16_f32(v26);
            y5[i] = v26;
            y7[i] = v27;
            y1[i] = v7;
            y2[i] = v14;
        }
        store_f32(b5 + at, y5, left);
        store_f16(b7 + at, y7, left);
        store_f32(b1 + at, y1, left);
        store_f32(b2 + at, y2, left);
    }
};

struct train_step_k16_part1 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInGrid &place, char *shared, const int64_t *b0, int64_t *b1, const int32_t *predicate, int64_t n)
    {
        const uint3 block = place.now();
        await_earlier_launches();
        admit_next_launch();
        if (!*predicate) return;
        if (threadIdx.x) return;
        const int64_t v2 = get_i64(b0);
        put_i64(b1, v2);
    }
};

extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k16(void *const *operands, int64_t n, const int64_t *member_elements, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1)
{
    __shared__ __align__(128) union {
        char part0[train_step_k16_part0::SHARED], part1[train_step_k16_part1::SHARED];
    } shared;
    if (blockIdx.x < (uint32_t)first1) {
        train_step_k16_part0::run({first0, x0, y0}, shared.part0, operands + 0, n, member_elements + 0);
        return;
    }
    train_step_k16_part1::run({first1, x1, y1}, shared.part1, (const int64_t *)operands[54], (int64_t *)operands[55], (const int32_t *)operands[56], n);
}

/* k02  fc3: linear + bias           mlp.amp:9
 *   product over [n, 10] in eval
 * k02  fc3: linear + bias           mlp.amp:9
 *   product over [n, 10] in infer
 *   in     b0 h.1 f16[N, 512]   b1 fc3.weight/f16.rows f16[10, 512]   b2 fc3.bias/f16.rows f16[10]
 *   out    b3 logits f16[N, 10] as f32   b4 logits f16[N, 10] as f32
 *   v3 %17 f32[N, 10] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %18 f32[10] = cast(v4)
 *   v6 %19 f32[N, 10] = add(v3, v5)
 *   v7 %logits f16[N, 10] = cast(v6)   {lower, min-cast:7}
 *   mma f16, tiles of 64 x 16 by 64 of k, 3 stages from sm_80 on, 128 threads a block, at most 168 registers: 3 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(128, 3) eval_k02(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, float *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
{
    typedef TensorSums<MmaF16, 64, 16, 4, 1, 128> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 128, 16, 128> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 16, 128, 16, 128> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    const bool looks4 = b4->on;
    const int32_t COLS = (int32_t)cols;
    const uint2 tile = tile_in_stripe(blockIdx.x, blockIdx.y, (rows + 63) / 64, (COLS + 15) / 16);
    const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 16;
    __shared__ __align__(128) char shared[Matrices::SHARED];
    Sums sums;
    sums.clear();
    Matrices matrices = Matrices();
    matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
    admit_next_launch();
    typedef Sums::Runs<4, Matrices::SHARED> Runs;
    NO_UNROLL
    for (int pass = 0; pass < Runs::PASSES; pass++) {
        Runs::put(sums, shared, pass);
        UNROLL_UNLESS_LEAN
        for (int run = 0; run < Runs::COUNT; run++) {
            float sum[4];
            Runs::take(sum, sums, shared, run);
            const int64_t r = row0 + Runs::row(pass, run);
            UNROLL
            for (int part = 0; part < 4; part += 2) {
                const int32_t c0 = (int32_t)col0 + Runs::column(run) + part;
                if (r >= rows || c0 >= COLS) continue;
                const int64_t at = r * COLS + c0;
                float x4[2];
                load_f16(x4, b2 + c0);
                float y3[2];
                float y4[2];
                UNROLL
                for (int i = 0; i < 2; i++) {
                    const float v4 = x4[i];
                    const float v3 = sum[part + i];
                    const float v5 = v4;
                    const float v6 = v3 + v5;
                    const float v7 = round_f16_f32(v6);
                    y3[i] = v7;
                    y4[i] = v6;
                }
                store_f32(b3 + at, y3);
                if (looks4) look(b4, y4);
            }
        }
    }
}

/* k03  cross_entropy: log_softmax + nll_loss + accuracy           mlp.amp:14
 *   row over [n, 10] in eval
 *   in     b0 logits f16[N, 10] as f32   b1 targets i32[N]
 *   out    b2 38 f32[N]   b3 62 f32[N]
 *   v2 %21 f32[N, 10] = cast(v1)
 *   v3 %22 f32[N, 1] = reduce_max(v2)
 *   v4 %23 f32[N, 10] = sub(v2, v3)
 *   v5 %24 f32[N, 10] = exp(v4)
 *   v6 %25 f32[N, 1] = reduce_sum(v5)
 *   v7 %26 f32[N, 1] = log(v6)
 *   v8 %cross_entropy.l f32[N, 10] = sub(v4, v7)   {f32_out, min-cast:18}
 *   v10 %29 i32[N, 10] = broadcast(v9, v8)
 *   v11 %30 i32[N, 10] = iota(v10)
 *   v12 %31 bool[N, 10] = eq(v11, v10)
 *   v13 %28 f32 = const()
 *   v14 %32 f32[N, 10] = select(v12, v8, v13)
 *   v15 %33 f32[N] = reduce_sum(v14)
 *   v16 %34 f32[N] = neg(v15)
 *   v17 %35 i32 = const()
 *   v18 %36 bool[N] = eq(v9, v17)
 *   v19 %37 bool[N] = not(v18)
 *   v20 %38 f32[N] = select(v19, v16, v13)
 *   v21 %50 f32[N, 10] = cast(v1)
 *   v22 %51 f32[N, 1] = reduce_max(v21)
 *   v23 %52 bool[N, 10] = eq(v21, v22)
 *   v24 %53 i32[N, 10] = iota(v1)
 *   v25 %54 f32[N, 10] = cast(v24)
 *   v26 %55 f32 = const()
 *   v27 %56 f32[N, 10] = select(v23, v25, v26)
 *   v28 %57 f32[N] = reduce_min(v27)
 *   v29 %58 f32[N] = cast(v9)
 *   v30 %59 bool[N] = eq(v28, v29)
 *   v31 %60 f32 = const()
 *   v32 %61 f32 = const()
 *   v33 %62 f32[N] = select(v30, v31, v32)
 *   a warp a row, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) eval_k03(const float *b0, const int32_t *b1, float *b2, float *b3, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    enum { COLS = 10 };
    const int64_t rows = n;
    const int32_t lane = threadIdx.x % 32;
    const int64_t r = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    if (r >= rows) return;
    const float v13 = 0.0f;
    const int32_t v17 = -100;
    const float v26 = INF;
    const float v31 = 1.0f;
    const float v32 = 0.0f;
    float kept2[1][1];
    float kept4[1][1];
    float kept21[1][1];
    const int32_t v9 = get_i32(b1 + r);
    const int32_t v18 = v9 == v17;
    const int32_t v19 = !v18;
    const float v29 = (float)v9;
    float v3 = -INF;
    float v22 = -INF;
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v1 = get_f32(b0 + r * COLS + c);
            const float v2 = v1;
            kept2[0][0] = v2;
            const float v21 = v1;
            kept21[0][0] = v21;
            v3 = max_f32(v3, v2);
            v22 = max_f32(v22, v21);
        }
    }
    v3 = warp_reduce<Max>(v3);
    v22 = warp_reduce<Max>(v22);
    KeptSum s6 = KeptSum{0.0f, 0.0f};
    float v28 = INF;
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v2 = kept2[0][0];
            const float v4 = v2 - v3;
            kept4[0][0] = v4;
            const float v5 = near_exp_f32(v4);
            const float v21 = kept21[0][0];
            const int32_t v23 = v21 == v22;
            const int32_t v24 = (int32_t)c;
            const float v25 = (float)v24;
            const float v27 = v23 ? v25 : v26;
            plus_kept(s6, v5);
            v28 = min_f32(v28, v27);
        }
    }
    const float v6 = sum_kept(warp_reduce<Plus>(s6));
    v28 = warp_reduce<Min>(v28);
    const float v7 = log_f32(v6);
    const int32_t v30 = v28 == v29;
    const float v33 = v30 ? v31 : v32;
    KeptSum s15 = KeptSum{0.0f, 0.0f};
    {
        const int32_t c = lane;
        if (c < COLS) {
            const float v4 = kept4[0][0];
            const float v8 = v4 - v7;
            const int32_t v10 = v9;
            const int32_t v11 = (int32_t)c;
            const int32_t v12 = v11 == v10;
            const float v14 = v12 ? v8 : v13;
            plus_kept(s15, v14);
        }
    }
    const float v15 = sum_kept(warp_reduce<Plus>(s15));
    const float v16 = -v15;
    const float v20 = v19 ? v16 : v13;
    if (lane == 0) put_f32(b2 + r, v20);
    if (lane == 0) put_f32(b3 + r, v33);
}

/* k04  cross_entropy: nll_loss + accuracy           mlp.amp:14
 *   column over [n, 1] in eval
 *   in     b0 38 f32[N]   b1 targets i32[N]   b2 62 f32[N]
 *   out    b3 46 f32   b4 loss f32   b5 acc f32
 *   v2 %39 f32 = reduce_sum(v1)
 *   v3 %40 i32 = const()
 *   v5 %41 bool[N] = eq(v4, v3)
 *   v6 %42 bool[N] = not(v5)
 *   v7 %43 f32 = const()
 *   v8 %44 f32 = const()
 *   v9 %45 f32[N] = select(v6, v7, v8)
 *   v10 %46 f32 = reduce_sum(v9)
 *   v11 %47 f32 = const()
 *   v12 %48 f32 = maximum(v10, v11)
 *   v13 %loss f32 = div(v2, v12)   {f32, min-cast:13}
 *   v15 %63 f32 = reduce_sum(v14)
 *   v17 %64 f32 = extent(v16)
 *   v18 %acc f32 = div(v15, v17)   {f32_out, min-cast:21}
 *   1 columns, 1 a thread, 256 rows at once, 2048 rows a block, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 4) eval_k04(const float *b0, const int32_t *b1, const float *b2, float *b3, float *b4, float *b5, int64_t n, int64_t rows, int64_t cols, uint32_t *tickets, double *partials)
{
    await_earlier_launches();
    const int32_t COLS = (int32_t)cols;
    MAYBE_UNUSED const int32_t y = threadIdx.x / 1;
    MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 2047) / 2048);
    const GridOfParts grid = {0, gridDim.x, gridDim.y, blockIdx.y};
    const uint32_t block0 = grid.first_block(blockIdx.z);
    MAYBE_UNUSED const int64_t first = (int64_t)blockIdx.x * 2048;
    MAYBE_UNUSED const int64_t last = first + 2048 < rows ? first + 2048 : rows;
    const int32_t column0 = (int32_t)blockIdx.z * 1, column = column0 + threadIdx.x % 1;
    const bool in = column < COLS;
    MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
    MAYBE_UNUSED const bool own = in;
    const int32_t v3 = -100;
    const float v7 = 1.0f;
    const float v8 = 0.0f;
    const float v11 = 1.0f;
    const float v17 = (float)(n);
    KeptSum s2[1] = {KeptSum{0.0f, 0.0f}};
    KeptSum s10[1] = {KeptSum{0.0f, 0.0f}};
    KeptSum s15[1] = {KeptSum{0.0f, 0.0f}};
    {
        NO_UNROLL
        for (int64_t row = first + y; own && row < last; row += 1024) {
            float all1[4];
            int32_t all4[4];
            float all14[4];
            UNROLL
            for (int u = 0; u < 4; u++) {
                const int64_t r = row + u * 256;
                MAYBE_UNUSED const bool here = r < last;
                all1[u] = here ? get_f32(b0 + r * COLS + c) : 0;
                all4[u] = here ? get_i32(b1 + r * COLS + c) : 0;
                all14[u] = here ? get_f32(b2 + r * COLS + c) : 0;
            }
            UNROLL
            for (int u = 0; u < 4; u++) {
                const int64_t r = row + u * 256;
                if (r >= last) break;
                const float v1 = all1[u];
                const int32_t v4 = all4[u];
                const float v14 = all14[u];
                const int32_t v5 = v4 == v3;
                const int32_t v6 = !v5;
                const float v9 = v6 ? v7 : v8;
                plus_kept(s2[0], v1);
                plus_kept(s10[0], v9);
                plus_kept(s15[0], v14);
            }
        }
    }
    KeptSum a2 = column_reduce<Plus, 1, 256>(s2);
    KeptSum a10 = column_reduce<Plus, 1, 256>(s10);
    KeptSum a15 = column_reduce<Plus, 1, 256>(s15);
    if (parts > 1) {
        keep_partial<1>(partials, block0 + blockIdx.x, 0, a2);
        keep_partial<1>(partials, block0 + blockIdx.x, 1, a10);
        keep_partial<1>(partials, block0 + blockIdx.x, 2, a15);
        if (!takes_last_ticket(tickets + block0, parts)) return;
        a2 = add_partials<Plus, 1, 256>(partials, block0, parts, 0, KeptSum{0.0f, 0.0f});
        a10 = add_partials<Plus, 1, 256>(partials, block0, parts, 1, KeptSum{0.0f, 0.0f});
        a15 = add_partials<Plus, 1, 256>(partials, block0, parts, 2, KeptSum{0.0f, 0.0f});
    }
    const float v2 = sum_kept(a2);
    const float v10 = sum_kept(a10);
    const float v15 = sum_kept(a15);
    const float v12 = max_f32(v10, v11);
    const float v13 = v2 / v12;
    const float v18 = v15 / v17;
    if (in && threadIdx.x < 1) put_f32(b3 + c, v10);
    if (in && threadIdx.x < 1) put_f32(b4 + c, v13);
    if (in && threadIdx.x < 1) put_f32(b5 + c, v18);
}

/* k05  labels: count_labels
 *   scalar over [1, 1] in eval
 *   in     b0 46 f32
 *   out    b1 labels f64
 *   v2 %labels f64 = cast(v1)   {mean, "means over labels that are not ignored"}
 *   1 thread a block
 */
extern "C" __global__ void __launch_bounds__(1, LEAN) eval_k05(const float *b0, double *b1, int64_t n)
{
    await_earlier_launches();
    admit_next_launch();
    const float v1 = get_f32(b0);
    const double v2 = (double)v1;
    put_f64(b1, v2);
}

/* k00  fc1.weight: copies           mlp.amp:7
 *   tile over [512, 784] in refresh
 * k01  fc1.bias: copies           mlp.amp:7
 *   tile over [1, 512] in refresh
 * k02  fc2.weight: copies           mlp.amp:8
 *   tile over [512, 512] in refresh
 * k03  fc2.bias: copies           mlp.amp:8
 *   tile over [1, 512] in refresh
 * k04  fc3.weight: copies           mlp.amp:9
 *   tile over [10, 512] in refresh
 * k05  fc3.bias: copies           mlp.amp:9
 *   tile over [1, 10] in refresh
 *   in     b0 fc1.weight f32[512, 784]
 *   out    b1 fc1.weight/f16.rows f16[512, 784]
 *   v2 %1 f16[512, 784] = cast(v1)   {update}
 *   assign(v3, v2)
 *   4 elements a thread, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) refresh_k00(void *const *operands, int64_t n, const int64_t *member_elements)
{
    int64_t own_block = blockIdx.x;
    const int member = find_member(member_elements, 6, 1024, &own_block);
    void *const *const operand = operands + member * 2;
    MAYBE_UNUSED const float *const b0 = (const float *)operand[0];
    MAYBE_UNUSED uint16_t *const b1 = (uint16_t *)operand[1];
    await_earlier_launches();
    admit_next_launch();
    const int64_t elements = member_elements[member];
    const int64_t at = (own_block * 256 + threadIdx.x) * 4;
    if (at >= elements) return;
    MAYBE_UNUSED const int64_t left = elements - at;
    float x1[4];
    load_f32(x1, b0 + at, left);
    float y1[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        const float v1 = x1[i];
        const float v2 = round_f16_f32(v1);
        y1[i] = v2;
    }
    store_f16(b1 + at, y1, left);
}
