/* k00  loss.scale: scale_loss + inverse_scale + increment           small.amp:8
 *   scalar over [1, 1] in train_step
 * k01  cross_entropy: nll_loss + nll_loss_grad           small.amp:8
 *   column over [n, 1] in train_step
 * + k02  fc1: linear + bias + relu           small.amp:3
 *   product over [n, 72] in train_step
 * + k03  fc2: linear + bias           small.amp:4
 *   product over [n, 6] in train_step
 * + k04  cross_entropy: log_softmax + nll_loss + nll_loss_grad + log_softmax_grad           small.amp:8
 *   row over [n, 6] in train_step
 * + k05  fc2.linear.grad.input: matmul + relu_grad           small.amp:4
 *   product over [n, 72] in train_step
 * + k06  fc2.linear.grad.weight: matmul + all_finite + unscale           small.amp:4
 *   product over [6, 72] in train_step
 * + k07  fc1.linear.grad.weight: matmul + all_finite + unscale           small.amp:3
 *   product over [72, 20] in train_step
 * + k08  cross_entropy: nll_loss           small.amp:8
 *   column over [n, 1] in train_step
 * + k09  fc2.linear.grad.bias: sum + all_finite + unscale           small.amp:4
 *   column over [n, 6] in train_step
 * + k10  fc1.linear.grad.bias: sum + all_finite + unscale           small.amp:3
 *   column over [n, 72] in train_step
 * + k11  scaler: all_finite + update_scale + add
 *   scalar over [1, 1] in train_step
 * + k16  step: increment           small.amp:9
 *   scalar over [1, 1] in train_step
 * + k12  fc1.weight: sgd           small.amp:9
 *   tile over [1, 1440] in train_step
 * + k13  fc1.bias: sgd           small.amp:9
 *   tile over [1, 72] in train_step
 * + k14  fc2.weight: sgd           small.amp:9
 *   tile over [1, 432] in train_step
 * + k15  fc2.bias: sgd           small.amp:9
 *   tile over [1, 6] in train_step
 * part 0, superstep 1: a block makes all that follows
 *   in     b0 scale f32   b1 learning_rate f64   b2 iteration i64
 *   out    b2 iteration i64   b3 d.loss.scaled f32   b4 inverse_scale f32   b5 135 f32
 *   v1 %d.loss f32 = const()   {gradient, of cross_entropy.nll_loss}
 *   v3 %d.loss.scaled f32 = mul(v1, v2)   {loss_scale}
 *   v4 %99 f64 = cast(v2)
 *   v5 %100 f64 = const()
 *   v6 %101 f64 = div(v5, v4)
 *   v7 %inverse_scale f32 = cast(v6)   {loss_scale}
 *   v9 %135 f32 = cast(v8)
 *   v11 %iteration.next i64 = increment(v10)   {update, of iteration}
 *   assign(v10, v11)   {update, of iteration}
 *   256 threads a block
 *   in     b0 targets i32[N]   b1 d.loss.scaled f32
 *   out    b2 52 f32   b3 58 f32
 *   v1 %44 i32 = const()
 *   v3 %45 bool[N] = eq(v2, v1)
 *   v4 %46 bool[N] = not(v3)
 *   v5 %47 f32 = const()
 *   v6 %48 f32 = const()
 *   v7 %49 f32[N] = select(v4, v5, v6)
 *   v8 %50 f32 = reduce_sum(v7)
 *   v9 %51 f32 = const()
 *   v10 %52 f32 = maximum(v8, v9)
 *   v12 %57 f32 = div(v11, v10)
 *   v13 %58 f32 = neg(v12)
 *   1 columns, 1 a thread, 256 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 1, superstep 1: a block makes 64 rows of all that follows
 *   in     b0 x f32[N, 20]   b1 fc1.weight/f16.rows f16[72, 20]   b2 fc1.bias/f16.rows f16[72]
 *   out    b3 h f16[N, 72]   b4 fc1.y f16[N, 72] as f32
 *   v2 %x.f16 f16[N, 20] = cast(v1)   {lower, min-cast:7, for fc1.linear}
 *   v4 %13 f32[N, 72] = contract(v2, v3)   {lower, min-cast:7}
 *   v6 %14 f32[72] = cast(v5)
 *   v7 %15 f32[N, 72] = add(v4, v6)
 *   v8 %fc1.y f16[N, 72] = cast(v7)   {lower, min-cast:7}
 *   v9 %17 f32[N, 72] = cast(v8)
 *   v10 %18 f32 = const()
 *   v11 %19 f32[N, 72] = maximum(v9, v10)
 *   v12 %h f16[N, 72] = cast(v11)   {follow, min-cast:23, "f32 would move as many bytes, and need 2 more casts"}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 *   in     b0 h f16[N, 72]   b1 fc2.weight/f16.rows f16[6, 72]   b2 fc2.bias/f16.rows f16[6]
 *   out    b3 logits f16[N, 6]   b4 logits f16[N, 6] as f32
 *   v3 %21 f32[N, 6] = contract(v1, v2)   {lower, min-cast:7}
 *   v5 %22 f32[6] = cast(v4)
 *   v6 %23 f32[N, 6] = add(v3, v5)
 *   v7 %logits f16[N, 6] = cast(v6)   {lower, min-cast:7}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 * part 2, superstep 2: a block makes 64 rows of all that follows
 *   in     b0 logits f16[N, 6]   b1 targets i32[N]   b2 58 f32
 *   out    b3 42 f32[N]   b4 d.logits f16[N, 6]
 *   v2 %25 f32[N, 6] = cast(v1)
 *   v3 %26 f32[N, 1] = reduce_max(v2)
 *   v4 %27 f32[N, 6] = sub(v2, v3)
 *   v5 %28 f32[N, 6] = exp(v4)
 *   v6 %29 f32[N, 1] = reduce_sum(v5)
 *   v7 %30 f32[N, 1] = log(v6)
 *   v8 %cross_entropy.l f32[N, 6] = sub(v4, v7)   {f32_out, min-cast:18}
 *   v10 %33 i32[N, 6] = broadcast(v9, v8)
 *   v11 %34 i32[N, 6] = iota(v10)
 *   v12 %35 bool[N, 6] = eq(v11, v10)
 *   v13 %32 f32 = const()
 *   v14 %36 f32[N, 6] = select(v12, v8, v13)
 *   v15 %37 f32[N] = reduce_sum(v14)
 *   v16 %38 f32[N] = neg(v15)
 *   v17 %39 i32 = const()
 *   v18 %40 bool[N] = eq(v9, v17)
 *   v19 %41 bool[N] = not(v18)
 *   v20 %42 f32[N] = select(v19, v16, v13)
 *   v21 %59 i32[N, 6] = broadcast(v9, v8)
 *   v22 %60 i32[N, 6] = iota(v21)
 *   v23 %61 bool[N, 6] = eq(v22, v21)
 *   v24 %56 f32 = const()
 *   v26 %62 f32[N, 6] = select(v23, v25, v24)
 *   v27 %63 i32 = const()
 *   v28 %64 bool[N, 6] = eq(v21, v27)
 *   v29 %65 bool[N, 6] = not(v28)
 *   v30 %d.cross_entropy.l f32[N, 6] = select(v29, v26, v24)   {gradient, of cross_entropy.nll_loss}
 *   v31 %67 f32[N, 6] = exp(v8)
 *   v32 %68 f32[N, 1] = reduce_sum(v30)
 *   v33 %69 f32[N, 6] = mul(v31, v32)
 *   v34 %70 f32[N, 6] = sub(v30, v33)
 *   v35 %d.logits f16[N, 6] = cast(v34)   {gradient, of cross_entropy.log_softmax}
 *   a warp a row, 256 threads a block
 *   in     b0 d.logits f16[N, 6]   b1 fc2.weight/f16.rows f16[6, 72]   b2 h f16[N, 72]
 *   out    b3 d.fc1.y f16[N, 72]
 *   v3 %72 f32[N, 72] = contract(v1, v2)   {gradient, of fc2.linear}
 *   v4 %d.h f16[N, 72] = cast(v3)   {gradient, of fc2.linear}
 *   v6 %79 f32[N, 72] = cast(v5)
 *   v7 %78 f32 = const()
 *   v8 %80 bool[N, 72] = le(v6, v7)
 *   v9 %77 f32[N, 72] = cast(v4)
 *   v10 %81 f32[N, 72] = select(v8, v7, v9)
 *   v11 %d.fc1.y f16[N, 72] = cast(v10)   {gradient, of relu}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 * part 3, superstep 3
 *   in     b0 d.logits f16[N, 6]   b1 h f16[N, 72]   b2 inverse_scale f32
 *   out    b3 92 bool   b4 grad.fc2.weight f32[6, 72]
 *   v3 %d.fc2.weight f32[6, 72] = contract(v1, v2)   {weight_gradient, of fc2.linear}
 *   v4 %90 bool[6, 72] = is_finite(v3)
 *   v5 %91 bool[6, 72] = not(v4)
 *   v6 %92 bool = reduce_or(v5)
 *   v8 %grad.fc2.weight f32[6, 72] = mul(v3, v7)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 * part 4, superstep 3
 *   in     b0 x f32[N, 20]   b1 d.fc1.y f16[N, 72]   b2 inverse_scale f32
 *   out    b3 85 bool   b4 grad.fc1.weight f32[72, 20]
 *   v2 %143 f16[N, 20] = cast(v1)   {lower, min-cast:7, for fc1.linear}
 *   v4 %d.fc1.weight f32[72, 20] = contract(v3, v2)   {weight_gradient, of fc1.linear}
 *   v5 %83 bool[72, 20] = is_finite(v4)
 *   v6 %84 bool[72, 20] = not(v5)
 *   v7 %85 bool = reduce_or(v6)
 *   v9 %grad.fc1.weight f32[72, 20] = mul(v4, v8)   {loss_scale}
 *   mma f16, tiles of 64 x 64 by 32 of k, 3 stages from sm_80 on, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 * part 5, superstep 3
 *   in     b0 42 f32[N]   b1 52 f32
 *   out    b2 loss f32
 *   v2 %43 f32 = reduce_sum(v1)
 *   v4 %loss f32 = div(v2, v3)   {f32, min-cast:13}
 *   1 columns, 1 a thread, 256 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 6, superstep 3
 *   in     b0 d.logits f16[N, 6]   b1 inverse_scale f32
 *   out    b2 96 bool   b3 grad.fc2.bias f32[6]
 *   v2 %75 f32[N, 6] = cast(v1)
 *   v3 %d.fc2.bias f32[6] = reduce_sum(v2)   {weight_gradient, of fc2.linear}
 *   v4 %94 bool[6] = is_finite(v3)
 *   v5 %95 bool[6] = not(v4)
 *   v6 %96 bool = reduce_or(v5)
 *   v8 %grad.fc2.bias f32[6] = mul(v3, v7)   {loss_scale}
 *   8 columns, 2 a thread, 64 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 7, superstep 3
 *   in     b0 d.fc1.y f16[N, 72]   b1 inverse_scale f32
 *   out    b2 88 bool   b3 grad.fc1.bias f32[72]
 *   v2 %82 f32[N, 72] = cast(v1)
 *   v3 %d.fc1.bias f32[72] = reduce_sum(v2)   {weight_gradient, of fc1.linear}
 *   v4 %86 bool[72] = is_finite(v3)
 *   v5 %87 bool[72] = not(v4)
 *   v6 %88 bool = reduce_or(v5)
 *   v8 %grad.fc1.bias f32[72] = mul(v3, v7)   {loss_scale}
 *   32 columns, 4 a thread, 32 rows at once, 256 threads a block, at most 64 registers: 4 blocks a multiprocessor
 * part 8, superstep 4: a block makes all that follows
 *   in     b0 85 bool   b1 88 bool   b2 92 bool   b3 96 bool   b4 growth_tracker i32   b5 scale f32   b6 floor_hits i32
 *   out    b4 growth_tracker i32   b5 scale f32   b6 floor_hits i32   b7 ok bool
 *   v3 %89 bool = or(v1, v2)
 *   v5 %93 bool = or(v3, v4)
 *   v7 %97 bool = or(v5, v6)
 *   v8 %ok bool = not(v7)   {loss_scale}
 *   v9 %109 i32 = const()
 *   v11 %121 i32 = add(v10, v9)
 *   v12 %122 i32 = const()
 *   v13 %123 bool = eq(v11, v12)
 *   v15 %107 f64 = cast(v14)
 *   v16 %115 f64 = const()
 *   v17 %116 f64 = mul(v15, v16)
 *   v18 %117 f32 = cast(v17)
 *   v19 %118 bool = is_finite(v18)
 *   v20 %124 bool = and(v13, v19)
 *   v21 %119 f32 = const()
 *   v22 %120 f32 = minimum(v18, v21)
 *   v23 %125 f32 = select(v20, v22, v14)
 *   v24 %110 f64 = const()
 *   v25 %111 f64 = mul(v15, v24)
 *   v26 %112 f32 = cast(v25)
 *   v27 %113 f32 = const()
 *   v28 %114 f32 = maximum(v26, v27)
 *   v29 %126 f32 = select(v8, v23, v28)   {loss_scale}
 *   v30 %108 i32 = const()
 *   v31 %127 i32 = select(v13, v30, v11)
 *   v32 %128 i32 = select(v8, v31, v30)   {loss_scale}
 *   v33 %131 bool = not(v8)
 *   v34 %129 f32 = const()
 *   v35 %130 bool = le(v14, v34)
 *   v36 %132 bool = and(v33, v35)
 *   v37 %133 i32 = select(v36, v9, v30)   {loss_scale}
 *   v39 %134 i32 = add(v38, v37)   {loss_scale}
 *   assign(v14, v29)   {loss_scale}
 *   assign(v10, v32)   {loss_scale}
 *   assign(v38, v39)   {loss_scale}
 *   256 threads a block
 *   in     b0 step i64
 *   out    b0 step i64
 *   v2 %step.next i64 = increment(v1)   {update, of step}
 *   assign(v1, v2)   {update, of step}
 *   256 threads a block
 * part 9, superstep 5
 *   in     b0 grad.fc1.weight f32[72, 20]   b1 135 f32   b2 fc1.weight f32[72, 20]
 *   out    b2 fc1.weight f32[72, 20]   b3 fc1.weight/f16.rows f16[72, 20]
 *   v3 %136 f32[72, 20] = mul(v1, v2)
 *   v5 %fc1.weight.next f32[72, 20] = sub(v4, v3)   {update, of fc1.weight}
 *   assign(v4, v5)   {update, of fc1.weight}
 *   v6 %144 f16[72, 20] = cast(v5)   {update}
 *   assign(v7, v6)
 *   4 elements a thread, 256 threads a block
 */
struct train_step_k00_part0 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const float *b0, const double *b1, int64_t *b2, float *b3, float *b4, float *b5, int64_t n)
    {
        const uint3 block = place.now();
        if (threadIdx.x) return;
        const float v2 = get_f32(b0);
        const double v8 = get_f64(b1);
        const int64_t v10 = get_i64(b2);
        const float v1 = 1.0f;
        const float v3 = v1 * v2;
        const double v4 = (double)v2;
        const double v5 = 1.0;
        const double v6 = v5 / v4;
        const float v7 = (float)v6;
        const float v9 = (float)v8;
        const int64_t v11 = v10 + 1;
        put_f32(b3, v3);
        put_f32(b4, v7);
        put_f32(b5, v9);
        put_i64(b2, v11);
    }
};

struct train_step_k00_part1 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const int32_t *b0, const float *b1, float *b2, float *b3, int64_t n, int64_t rows, int64_t cols)
    {
        const uint3 block = place.now();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 1;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 2047) / 2048);
        MAYBE_UNUSED const int64_t first = 0, last = rows;
        const int32_t column0 = (int32_t)block.x * 1, column = column0 + threadIdx.x % 1;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        MAYBE_UNUSED const bool own = in;
        const float v11 = get_f32(b1);
        const int32_t v1 = -100;
        const float v5 = 1.0f;
        const float v6 = 0.0f;
        const float v9 = 1.0f;
        KeptSum total8 = KeptSum{0.0f, 0.0f};
        NO_UNROLL
        for (uint32_t part = 0; part < parts; part++) {
            MAYBE_UNUSED const int64_t first = (int64_t)part * 2048;
            MAYBE_UNUSED const int64_t last = first + 2048 < rows ? first + 2048 : rows;
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
            take_part<Plus, 1, 256>(total8, a8, part, parts);
        }
        KeptSum a8 = add_parts<Plus, 1, 256>(total8, parts);
        const float v8 = sum_kept(a8);
        const float v10 = max_f32(v8, v9);
        const float v12 = v11 / v10;
        const float v13 = -v12;
        if (in && threadIdx.x < 1) put_f32(b2 + c, v10);
        if (in && threadIdx.x < 1) put_f32(b3 + c, v13);
    }
};

struct train_step_k00_part2 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 64> Sums;
    typedef TensorOperand<RoundedF16, true, 64, 64, 8, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 8, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInTurn &place, char *shared, const float *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const bool looks4 = b4->on;
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
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
};

struct train_step_k00_part3 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 16, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 16, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, Look *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const bool looks4 = b4->on;
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, k, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
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
};

struct train_step_k00_part4 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const int32_t *b1, const float *b2, float *b3, uint16_t *b4, int64_t n)
    {
        const uint3 block = place.now();
        enum { COLS = 6 };
        const int64_t rows = n;
        const int32_t lane = threadIdx.x % 32;
        const int64_t r = (int64_t)block.x * 8 + threadIdx.x / 32;
        if (r >= rows) return;
        const float v25 = get_f32(b2);
        const float v13 = 0.0f;
        const int32_t v17 = -100;
        const float v24 = 0.0f;
        const int32_t v27 = -100;
        float kept2[1][1];
        float kept4[1][1];
        float kept30[1][1];
        const int32_t v9 = get_i32(b1 + r);
        const int32_t v18 = v9 == v17;
        const int32_t v19 = !v18;
        float v3 = -INF;
        KeptSum s32 = KeptSum{0.0f, 0.0f};
        {
            const int32_t c = lane;
            if (c < COLS) {
                const float v1 = get_f16(b0 + r * COLS + c);
                const float v2 = v1;
                kept2[0][0] = v2;
                const int32_t v21 = v9;
                const int32_t v22 = (int32_t)c;
                const int32_t v23 = v22 == v21;
                const float v26 = v23 ? v25 : v24;
                const int32_t v28 = v21 == v27;
                const int32_t v29 = !v28;
                const float v30 = v29 ? v26 : v24;
                kept30[0][0] = v30;
                v3 = max_f32(v3, v2);
                plus_kept(s32, v30);
            }
        }
        v3 = warp_reduce<Max>(v3);
        const float v32 = sum_kept(warp_reduce<Plus>(s32));
        KeptSum s6 = KeptSum{0.0f, 0.0f};
        {
            const int32_t c = lane;
            if (c < COLS) {
                const float v2 = kept2[0][0];
                const float v4 = v2 - v3;
                kept4[0][0] = v4;
                const float v5 = near_exp_f32(v4);
                plus_kept(s6, v5);
            }
        }
        const float v6 = sum_kept(warp_reduce<Plus>(s6));
        const float v7 = log_f32(v6);
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
                const float v30 = kept30[0][0];
                const float v31 = near_exp_f32(v8);
                const float v33 = v31 * v32;
                const float v34 = v30 - v33;
                const float v35 = round_f16_f32(v34);
                plus_kept(s15, v14);
                put_f16(b4 + r * COLS + c, v35);
            }
        }
        const float v15 = sum_kept(warp_reduce<Plus>(s15));
        const float v16 = -v15;
        const float v20 = v19 ? v16 : v13;
        if (lane == 0) put_f32(b3 + r, v20);
    }
};

struct train_step_k00_part5 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, true, 64, 64, 4, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 16, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, uint16_t *b3, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
            prefetch_tile<64, 128>(b2 + row0 * COLS + col0, COLS * 2, rows - row0, (COLS - col0) * 2);
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const int64_t row0 = (int64_t)(block.x) * 64, col0 = (int64_t)block.y * 64;
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

struct train_step_k00_part6 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 4, 256> A;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 16, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
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

struct train_step_k00_part7 {
    typedef TensorSums<MmaF16, 64, 64, 2, 4, 64> Sums;
    typedef TensorOperand<AsStored<uint16_t>, false, 64, 64, 16, 256> A;
    typedef TensorOperand<RoundedF16, false, 64, 64, 8, 256> B;
    typedef Product<Sums, A, B> Matrices;
    static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), "");
    static constexpr int SHARED = Matrices::SHARED;

    static INLINE void run(const PlaceInTurn &place, char *shared, const float *b0, const uint16_t *b1, const float *b2, int32_t *b3, float *b4, int64_t n, int64_t rows, int64_t k, int64_t cols)
    {
        const int32_t COLS = (int32_t)cols;
        Sums sums;
        sums.clear();
        {
            const uint3 block = place.now();
            const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
            const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
            Matrices matrices = Matrices();
            matrices.run(sums, shared, b1, rows, b0, COLS, row0, rows, col0, COLS, k);
        }
        const uint3 block = place.now();
        const uint2 tile = tile_in_stripe(block.x, block.y, (rows + 63) / 64, (COLS + 63) / 64);
        const int64_t row0 = (int64_t)tile.x * 64, col0 = (int64_t)tile.y * 64;
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
};

struct train_step_k00_part8 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const float *b0, const float *b1, float *b2, int64_t n, int64_t rows, int64_t cols)
    {
        const uint3 block = place.now();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 1;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 2047) / 2048);
        MAYBE_UNUSED const int64_t first = 0, last = rows;
        const int32_t column0 = (int32_t)block.x * 1, column = column0 + threadIdx.x % 1;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        MAYBE_UNUSED const bool own = in;
        const float v3 = get_f32(b1);
        KeptSum total2 = KeptSum{0.0f, 0.0f};
        NO_UNROLL
        for (uint32_t part = 0; part < parts; part++) {
            MAYBE_UNUSED const int64_t first = (int64_t)part * 2048;
            MAYBE_UNUSED const int64_t last = first + 2048 < rows ? first + 2048 : rows;
            KeptSum s2[1] = {KeptSum{0.0f, 0.0f}};
            {
                NO_UNROLL
                for (int64_t row = first + y; own && row < last; row += 2048) {
                    float all1[8];
                    UNROLL
                    for (int u = 0; u < 8; u++) {
                        const int64_t r = row + u * 256;
                        MAYBE_UNUSED const bool here = r < last;
                        all1[u] = here ? get_f32(b0 + r * COLS + c) : 0;
                    }
                    UNROLL
                    for (int u = 0; u < 8; u++) {
                        const int64_t r = row + u * 256;
                        if (r >= last) break;
                        const float v1 = all1[u];
                        plus_kept(s2[0], v1);
                    }
                }
            }
            KeptSum a2 = column_reduce<Plus, 1, 256>(s2);
            take_part<Plus, 1, 256>(total2, a2, part, parts);
        }
        KeptSum a2 = add_parts<Plus, 1, 256>(total2, parts);
        const float v2 = sum_kept(a2);
        const float v4 = v2 / v3;
        if (in && threadIdx.x < 1) put_f32(b2 + c, v4);
    }
};

struct train_step_k00_part9 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const float *b1, int32_t *b2, float *b3, int64_t n, int64_t rows, int64_t cols)
    {
        const uint3 block = place.now();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 4;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 511) / 512);
        MAYBE_UNUSED const int64_t first = 0, last = rows;
        const int32_t column0 = (int32_t)block.x * 8, column = column0 + threadIdx.x % 8;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        const int32_t c0 = column0 + threadIdx.x % 4 * 2;
        MAYBE_UNUSED const bool own = c0 < COLS;
        int32_t any2 = 0;
        const float v7 = get_f32(b1);
        KeptSum total3 = KeptSum{0.0f, 0.0f};
        NO_UNROLL
        for (uint32_t part = 0; part < parts; part++) {
            MAYBE_UNUSED const int64_t first = (int64_t)part * 512;
            MAYBE_UNUSED const int64_t last = first + 512 < rows ? first + 512 : rows;
            KeptSum s3[2] = {KeptSum{0.0f, 0.0f}, KeptSum{0.0f, 0.0f}};
            {
                NO_UNROLL
                for (int64_t row = first + y; own && row < last; row += 512) {
                    float all1[8][2];
                    UNROLL
                    for (int u = 0; u < 8; u++) {
                        const int64_t r = row + u * 64;
                        MAYBE_UNUSED const bool here = r < last;
                        float(&x1)[2] = all1[u];
                        load_if_f16(x1, b0 + r * COLS + c0, here);
                    }
                    UNROLL
                    for (int u = 0; u < 8; u++) {
                        const int64_t r = row + u * 64;
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
            KeptSum a3 = column_reduce<Plus, 8, 64>(s3);
            take_part<Plus, 8, 256>(total3, a3, part, parts);
        }
        KeptSum a3 = add_parts<Plus, 8, 256>(total3, parts);
        const float v3 = sum_kept(a3);
        const int32_t v4 = finite_f32(v3);
        const int32_t v5 = !v4;
        const float v8 = v3 * v7;
        any2 |= v5;
        if (in && threadIdx.x < 8) put_f32(b3 + c, v8);
        if (any2) *b2 = 1;
    }
};

struct train_step_k00_part10 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const uint16_t *b0, const float *b1, int32_t *b2, float *b3, int64_t n, int64_t rows, int64_t cols)
    {
        const uint3 block = place.now();
        const int32_t COLS = (int32_t)cols;
        MAYBE_UNUSED const int32_t y = threadIdx.x / 8;
        MAYBE_UNUSED const uint32_t parts = (uint32_t)((rows + 255) / 256);
        MAYBE_UNUSED const int64_t first = 0, last = rows;
        const int32_t column0 = (int32_t)block.x * 32, column = column0 + threadIdx.x % 32;
        const bool in = column < COLS;
        MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;
        const int32_t c0 = column0 + threadIdx.x % 8 * 4;
        MAYBE_UNUSED const bool own = c0 < COLS;
        int32_t any2 = 0;
        const float v7 = get_f32(b1);
        KeptSum total3 = KeptSum{0.0f, 0.0f};
        NO_UNROLL
        for (uint32_t part = 0; part < parts; part++) {
            MAYBE_UNUSED const int64_t first = (int64_t)part * 256;
            MAYBE_UNUSED const int64_t last = first + 256 < rows ? first + 256 : rows;
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
            take_part<Plus, 32, 256>(total3, a3, part, parts);
        }
        KeptSum a3 = add_parts<Plus, 32, 256>(total3, parts);
        const float v3 = sum_kept(a3);
        const int32_t v4 = finite_f32(v3);
        const int32_t v5 = !v4;
        const float v8 = v3 * v7;
        any2 |= v5;
        if (in && threadIdx.x < 32) put_f32(b3 + c, v8);
        if (any2) *b2 = 1;
    }
};

struct train_step_k00_part11 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, const int32_t *b0, const int32_t *b1, const int32_t *b2, const int32_t *b3, int32_t *b4, float *b5, int32_t *b6, int32_t *b7, int64_t n)
    {
        const uint3 block = place.now();
        if (threadIdx.x) return;
        const int32_t v1 = get_bool(b0);
        const int32_t v2 = get_bool(b1);
        const int32_t v4 = get_bool(b2);
        const int32_t v6 = get_bool(b3);
        const int32_t v10 = get_i32(b4);
        const float v14 = get_f32(b5);
        const int32_t v38 = get_i32(b6);
        const int32_t v3 = v1 | v2;
        const int32_t v5 = v3 | v4;
        const int32_t v7 = v5 | v6;
        const int32_t v8 = !v7;
        const int32_t v9 = 1;
        const int32_t v11 = v10 + v9;
        const int32_t v12 = 2000;
        const int32_t v13 = v11 == v12;
        const double v15 = (double)v14;
        const double v16 = 2.0;
        const double v17 = v15 * v16;
        const float v18 = (float)v17;
        const int32_t v19 = finite_f32(v18);
        const int32_t v20 = v13 & v19;
        const float v21 = 16777216.0f;
        const float v22 = min_f32(v18, v21);
        const float v23 = v20 ? v22 : v14;
        const double v24 = 0.5;
        const double v25 = v15 * v24;
        const float v26 = (float)v25;
        const float v27 = 1.0f;
        const float v28 = max_f32(v26, v27);
        const float v29 = v8 ? v23 : v28;
        const int32_t v30 = 0;
        const int32_t v31 = v13 ? v30 : v11;
        const int32_t v32 = v8 ? v31 : v30;
        const int32_t v33 = !v8;
        const float v34 = 1.0f;
        const int32_t v35 = v14 <= v34;
        const int32_t v36 = v33 & v35;
        const int32_t v37 = v36 ? v9 : v30;
        const int32_t v39 = v38 + v37;
        put_bool(b7, v8);
        put_f32(b5, v29);
        put_i32(b4, v32);
        put_i32(b6, v39);
    }
};

struct train_step_k00_part12 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, int64_t *b0, const int32_t *predicate, int64_t n)
    {
        const uint3 block = place.now();
        if (!*predicate) return;
        if (threadIdx.x) return;
        const int64_t v1 = get_i64(b0);
        const int64_t v2 = v1 + 1;
        put_i64(b0, v2);
    }
};

struct train_step_k00_part13 {
    static constexpr int SHARED = 1;

    static INLINE void run(const PlaceInTurn &place, char *shared, void *const *operands, int64_t n, const int64_t *member_elements)
    {
        const uint3 block = place.now();
        int64_t own_block = block.x;
        const int member = find_member(member_elements, 4, 1024, &own_block);
        void *const *const operand = operands + member * 5;
        const int32_t *const predicate = (const int32_t *)operand[4];
        MAYBE_UNUSED const float *const b0 = (const float *)operand[0];
        MAYBE_UNUSED const float *const b1 = (const float *)operand[1];
        MAYBE_UNUSED float *const b2 = (float *)operand[2];
        MAYBE_UNUSED uint16_t *const b3 = (uint16_t *)operand[3];
        if (!*predicate) return;
        const int64_t elements = member_elements[member];
        const int64_t at = (own_block * 256 + threadIdx.x) * 4;
        if (at >= elements) return;
        MAYBE_UNUSED const int64_t left = elements - at;
        const float v2 = get_f32(b1);
        float x1[4];
        load_f32(x1, b0 + at, left);
        float x4[4];
        load_f32(x4, b2 + at, left);
        float y2[4];
        float y3[4];
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float v1 = x1[i];
            const float v4 = x4[i];
            const float v3 = v1 * v2;
            const float v5 = v4 - v3;
            const float v6 = round_f16_f32(v5);
            y2[i] = v5;
            y3[i] = v6;
        }
        store_f32(b2 + at, y2, left);
        store_f16(b3 + at, y3, left);
    }
};

extern "C" __global__ void __launch_bounds__(256, 2) train_step_k00(void *const *operands, int64_t n, const int64_t *member_elements, uint32_t *tickets, int64_t first0, int64_t x0, int64_t y0, int64_t first1, int64_t x1, int64_t y1, int64_t first2, int64_t x2, int64_t y2, int64_t first3, int64_t x3, int64_t y3, int64_t first4, int64_t x4, int64_t y4, int64_t first5, int64_t x5, int64_t y5, int64_t first6, int64_t x6, int64_t y6, int64_t first7, int64_t x7, int64_t y7, int64_t first8, int64_t x8, int64_t y8, int64_t first9, int64_t x9, int64_t y9)
{
    __shared__ __align__(128) union {
        char part0[train_step_k00_part0::SHARED], part1[train_step_k00_part1::SHARED], part2[train_step_k00_part2::SHARED], part3[train_step_k00_part3::SHARED], part4[train_step_k00_part4::SHARED], part5[train_step_k00_part5::SHARED], part6[train_step_k00_part6::SHARED], part7[train_step_k00_part7::SHARED], part8[train_step_k00_part8::SHARED], part9[train_step_k00_part9::SHARED], part10[train_step_k00_part10::SHARED], part11[train_step_k00_part11::SHARED], part12[train_step_k00_part12::SHARED], part13[train_step_k00_part13::SHARED];
    } shared;
    await_earlier_launches();
    const uint32_t turn = takes_turn(tickets, gridDim.x);
    if (turn < (uint32_t)first1) {
        /* superstep 1 */
        train_step_k00_part0::run(PlaceInTurn{0, 0, 0}, shared.part0, (const float *)operands[0], (const double *)operands[1], (int64_t *)operands[2], (float *)operands[3], (float *)operands[4], (float *)operands[5], n);
        __syncthreads();
        train_step_k00_part1::run(PlaceInTurn{0, 0, 0}, shared.part1, (const int32_t *)operands[6], (const float *)operands[7], (float *)operands[8], (float *)operands[9], n, n, 1);
        __syncthreads();
    } else if (turn < (uint32_t)first2) {
        /* superstep 1 */
        const uint32_t band = turn - (uint32_t)first1;
        NO_UNROLL
        for (uint32_t y = 0; y < 2; y++) {
            train_step_k00_part2::run(PlaceInTurn{band, y, 0}, shared.part2, (const float *)operands[10], (const uint16_t *)operands[11], (const uint16_t *)operands[12], (uint16_t *)operands[13], (Look *)operands[14], n, n, 20, 72);
            __syncthreads();
        }
        train_step_k00_part3::run(PlaceInTurn{band, 0, 0}, shared.part3, (const uint16_t *)operands[15], (const uint16_t *)operands[16], (const uint16_t *)operands[17], (uint16_t *)operands[18], (Look *)operands[19], n, n, 72, 6);
        __syncthreads();
    } else if (turn < (uint32_t)first3) {
        /* superstep 2 */
        waits_for_turns(tickets, (uint32_t)first2);
        const uint32_t band = turn - (uint32_t)first2;
        NO_UNROLL
        for (uint32_t i = 0; i < 8; i++) {
            train_step_k00_part4::run(PlaceInTurn{band * 8 + i, 0, 0}, shared.part4, (const uint16_t *)operands[20], (const int32_t *)operands[21], (const float *)operands[22], (float *)operands[23], (uint16_t *)operands[24], n);
            __syncthreads();
        }
        NO_UNROLL
        for (uint32_t y = 0; y < 2; y++) {
            train_step_k00_part5::run(PlaceInTurn{band, y, 0}, shared.part5, (const uint16_t *)operands[25], (const uint16_t *)operands[26], (const uint16_t *)operands[27], (uint16_t *)operands[28], n, n, 6, 72);
            __syncthreads();
        }
    } else if (turn < (uint32_t)first4) {
        /* superstep 3 */
        waits_for_turns(tickets, (uint32_t)first3);
        train_step_k00_part6::run(place_in_turn(turn - (uint32_t)first3, x3, y3), shared.part6, (const uint16_t *)operands[29], (const uint16_t *)operands[30], (const float *)operands[31], (int32_t *)operands[32], (float *)operands[33], n, 6, n, 72);
    } else if (turn < (uint32_t)first5) {
        /* superstep 3 */
        waits_for_turns(tickets, (uint32_t)first3);
        train_step_k00_part7::run(place_in_turn(turn - (uint32_t)first4, x4, y4), shared.part7, (const float *)operands[34], (const uint16_t *)operands[35], (const float *)operands[36], (int32_t *)operands[37], (float *)operands[38], n, 72, n, 20);
    } else if (turn < (uint32_t)first6) {
        /* superstep 3 */
        waits_for_turns(tickets, (uint32_t)first3);
        train_step_k00_part8::run(place_in_turn(turn - (uint32_t)first5, x5, y5), shared.part8, (const float *)operands[39], (const float *)operands[40], (float *)operands[41], n, n, 1);
    } else if (turn < (uint32_t)first7) {
        /* superstep 3 */
        waits_for_turns(tickets, (uint32_t)first3);
        train_step_k00_part9::run(place_in_turn(turn - (uint32_t)first6, x6, y6), shared.part9, (const uint16_t *)operands[42], (const float *)operands[43], (int32_t *)operands[44], (float *)operands[45], n, n, 6);
    } else if (turn < (uint32_t)first8) {
        /* superstep 3 */
        waits_for_turns(tickets, (uint32_t)first3);
        train_step_k00_part10::run(place_in_turn(turn - (uint32_t)first7, x7, y7), shared.part10, (const uint16_t *)operands[46], (const float *)operands[47], (int32_t *)operands[48], (float *)operands[49], n, n, 72);
    } else if (turn < (uint32_t)first9) {
        /* superstep 4 */
        waits_for_turns(tickets, (uint32_t)first8);
        train_step_k00_part11::run(PlaceInTurn{0, 0, 0}, shared.part11, (const int32_t *)operands[50], (const int32_t *)operands[51], (const int32_t *)operands[52], (const int32_t *)operands[53], (int32_t *)operands[54], (float *)operands[55], (int32_t *)operands[56], (int32_t *)operands[57], n);
        __syncthreads();
        train_step_k00_part12::run(PlaceInTurn{0, 0, 0}, shared.part12, (int64_t *)operands[58], (const int32_t *)operands[59], n);
        __syncthreads();
    } else {
        /* superstep 5 */
        waits_for_turns(tickets, (uint32_t)first9);
        train_step_k00_part13::run(place_in_turn(turn - (uint32_t)first9, x9, y9), shared.part13, operands + 60, n, member_elements + 9);
    }
    ends_turn(tickets, gridDim.x);
}
