/* k03  attn: slice + reshape + transpose + attention           attention.amp:4
 *   attention over [320 * n, 48] in train_step
 *   in     b0 attn.y f16[N, 320, 144]   b1 seed i64   b2 iteration i64
 *   out    b3 86 f32[N, 3, 320, 1]   b4 87 i32[N, 3, 10, 320]   b5 88 f16[N, 320, 48]
 *   v2 %76 f16[N, 320, 48] = slice(v1)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v3 %77 f16[N, 320, 3, 16] = reshape(v2)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v4 %attn.q f16[N, 3, 320, 16] = permute(v3)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v5 %79 f16[N, 320, 48] = slice(v1)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v6 %80 f16[N, 320, 3, 16] = reshape(v5)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v7 %attn.k f16[N, 3, 320, 16] = permute(v6)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v8 %82 f16[N, 320, 48] = slice(v1)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v9 %83 f16[N, 320, 3, 16] = reshape(v8)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v10 %attn.v f16[N, 3, 320, 16] = permute(v9)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v13 %85 f32[N, 320, 48], v14 %86 f32[N, 3, 320, 1], v15 %87 i32[N, 3, 10, 320] = attend_drop(v4, v7, v10, v11, v12)   {lower, min-cast:7}
 *   v16 %88 f16[N, 320, 48] = cast(v13)
 *   mma f16, 128 queries a block, steps of 64 keys, 256 threads a block, at most 128 registers: 2 blocks a multiprocessor
 */
extern "C" __global__ void __launch_bounds__(256, LEAN ? 1 : 2) train_step_k03(const uint16_t *b0, const int64_t *b1, const int64_t *b2, float *b3, int32_t *b4, uint16_t *b5, int64_t n, int64_t key)
{
    await_earlier_launches();
    typedef AttentionShape<FactorsF16, 320, 320, 16, 16, 16, true> Shape;
    typedef ScoreRule<Shape, MASK_NONE, true> Rule;
    typedef AttentionForward<Shape, Rule, 8, 64, false> Attention;
    static_assert(Attention::SHARED <= 12288, "");
    extern __shared__ __align__(128) char shared[];
    const int64_t lead = blockIdx.x / 9;
    const int part = (int)(blockIdx.x % 9), head = part / 3, key_head = head / 1;
    const int block = 2 - part % 3;
    MAYBE_UNUSED const int64_t batch0 = lead;
    const HeadRows<const Shape::Element> q = {b0 + batch0 * 46080 + head * 16, 144};
    const HeadRows<const Shape::Element> k = {b0 + 48 + batch0 * 46080 + key_head * 16, 144};
    const HeadRows<const Shape::Element> v = {b0 + 96 + batch0 * 46080 + key_head * 16, 144};
    const HeadResult<Shape::Stored, 8> y = {nullptr, b5 + lead * 15360 + head * 16, 48};
    Rule rule = {};
    rule.scale = 0.25f;
    rule.kept = 1.1111111640930176f;
    rule.bits = (uint32_t *)b4 + (lead * 3 + head) * rule.bits_of_head();
    rule.p = 0.10000000149011612f;
    rule.seed = *b1;
    rule.iteration = *b2;
    rule.row = (lead * 3 + head) * 320;
    rule.key_hash = (uint32_t)key;
    Attention attention;
    attention.rule = rule;
    attention.run(shared, block, q, k, v, y, b3 + (lead * 3 + head) * 320);
}

/* k14  attn.reshape_3.grad: reshape + transpose + slice + attention_grad + concat + add           attention.amp:4
 *   attention over [320 * n, 48] in train_step
 *   in     b0 169 f16[320 * N, 48]   b1 attn.y f16[N, 320, 144]   b2 88 f16[N, 320, 48]   b3 86 f32[N, 3, 320, 1]   b4 87 i32[N, 3, 10, 320]
 *   out    b5 d.attn.y f16[N, 320, 144]
 *   v2 %173 f16[N, 320, 3, 16] = reshape(v1)   {gradient, of attn.reshape_3}
 *   v3 %d.attn.seen f16[N, 3, 320, 16] = permute(v2)   {gradient, of attn.transpose_3}
 *   v5 %466 f16[N, 320, 48] = slice(v4)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v6 %465 f16[N, 320, 3, 16] = reshape(v5)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v7 %464 f16[N, 3, 320, 16] = permute(v6)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v8 %469 f16[N, 320, 48] = slice(v4)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v9 %468 f16[N, 320, 3, 16] = reshape(v8)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v10 %467 f16[N, 3, 320, 16] = permute(v9)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v11 %472 f16[N, 320, 48] = slice(v4)   {follow, min-cast:23, "f32 would move 21626880 bytes more at N = 32"}
 *   v12 %471 f16[N, 320, 3, 16] = reshape(v11)   {follow, min-cast:23, "f32 would move 9830400 bytes more at N = 32"}
 *   v13 %470 f16[N, 3, 320, 16] = permute(v12)   {follow, min-cast:23, "f32 would move 7864320 bytes more at N = 32"}
 *   v17 %177 f32[N, 320, 48], v18 %178 f32[N, 320, 48], v19 %179 f32[N, 320, 48] = attend_grad(v3, v7, v10, v13, v14, v15, v16)   {gradient, of attn.attention}
 *   v20 %180 f16[N, 320, 48] = cast(v17)
 *   v21 %183 f16[N, 320, 48] = cast(v18)
 *   v22 %186 f16[N, 320, 48] = cast(v19)
 *   v23 %195 f16[N, 320, 144] = concat(v20, v21, v22)   {gradient, of attn.slice}
 *   v24 %196 f32[N, 320, 144] = cast(v23)
 *   v25 %67 f32 = const()   {gradient, of attn.slice}
 *   v26 %197 f32[N, 320, 144] = add(v24, v25)
 *   v27 %d.attn.y f16[N, 320, 144] = cast(v26)   {gradient, of attn.slice}
 *   mma f16, 128 keys a block in steps of 64 queries, then 128 queries in steps of 64 keys, 256 threads a block
 */
extern "C" __global__ void __launch_bounds__(256, LEAN) train_step_k14(const uint16_t *b0, const uint16_t *b1, const uint16_t *b2, const float *b3, const int32_t *b4, uint16_t *b5, int64_t n, uint32_t *tickets, double *partials)
{
    await_earlier_launches();
    typedef AttentionShape<FactorsF16, 320, 320, 16, 16, 16, true> Shape;
    typedef ScoreRule<Shape, MASK_NONE, true> Rule;
    typedef StoredF16 Y;
    typedef AttentionWalk<Shape, Rule, Y, true, 8, 64, true, 2, true, true> KeyWalk;
    static_assert(KeyWalk::SHARED <= 15360, "");
    typedef AttentionWalk<Shape, Rule, Y, false, 8, 64, true, 2, true, false> QueryWalk;
    static_assert(QueryWalk::SHARED <= 15360, "");
    extern __shared__ __align__(128) char shared[];
    const uint32_t turn = takes_turn(tickets, gridDim.x);
    const GradientTurn at = gradient_turn<29, 9, 9>(turn, gridDim.x);
    const int64_t lead = at.lead;
    const bool by_keys = at.by_keys;
    const int number = (int)(by_keys ? at.number % 9 : at.number);
    const int key_head = by_keys ? number / 3 : number / 3;
    const int head = by_keys ? key_head * 1 : number / 3;
    const int block = by_keys ? number % 3 : 2 - number % 3;
    MAYBE_UNUSED const int64_t batch0 = lead;
    const HeadRows<const Shape::Element> q = {b1 + batch0 * 46080 + head * 16, 144};
    const HeadRows<const Shape::Element> k = {b1 + 48 + batch0 * 46080 + key_head * 16, 144};
    const HeadRows<const Shape::Element> v = {b1 + 96 + batch0 * 46080 + key_head * 16, 144};
    const HeadRows<const Shape::Element> dy = {b0 + batch0 * 15360 + head * 16, 48};
    const HeadRows<const Y::Element> y = {b2 + lead * 15360 + head * 16, 48};
    const float *const sums = b3 + (lead * 3 + head) * 320;
    static_assert(QueryWalk::ROWS * 8 <= 1024, "");
    float *const numbers = (float *)partials + (lead * 3 + head) * 640;
    uint32_t *const ticket = tickets + lead * 3 + key_head;
    const GradientRows<Shape, Y> rows = {q, k, v, dy, y, sums, numbers, ticket, 3, 6, 16, 16, 0};
    const HeadResult<Shape::Stored, 8> dq = {nullptr, b5 + lead * 46080 + head * 16, 144, ZERO_AFTER_ROUNDING};
    const HeadResult<Shape::Stored, 8> dk = {nullptr, b5 + lead * 46080 + 48 + key_head * 16, 144, ZERO_AFTER_ROUNDING};
    const HeadResult<Shape::Stored, 8> dv = {nullptr, b5 + lead * 46080 + 96 + key_head * 16, 144, ZERO_AFTER_ROUNDING};
    Rule rule = {};
    rule.scale = 0.25f;
    rule.kept = 1.1111111640930176f;
    rule.bits = (uint32_t *)b4 + (lead * 3 + head) * rule.bits_of_head();
    if (by_keys) {
        KeyWalk walk;
        walk.rule = rule;
        walk.rows = rows;
        walk.run(shared, block, 1, dk, dv);
        return;
    }
    QueryWalk walk;
    walk.rule = rule;
    walk.rows = rows;
    walk.run(shared, block, 1, dq, dq);
}
