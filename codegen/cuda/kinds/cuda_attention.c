/* cuda_attention.c: kernels of attention: which tiles they work in, where each block's heads begin, and a call of
 * prelude/attention_forward.cuh or attention_gradient.cuh.
 *
 *     typedef AttentionShape<FactorsF16, 1024, 1024, 64, 64, 16, true> Shape;
 *     const int64_t lead = blockIdx.x / 96;            all dims before the heads, as one
 *     const int head = .., block = ..;
 *     Attention().run(shared, block, {b0 + .., 768}, {b1 + .., 768}, {b2 + .., 768}, y, sums);
 *
 * The blocks of a gradient are, for some leads at a time, first blocks of queries and then blocks of keys, which read
 * what those store: one launch makes all three gradients. */
#include "base/hash.h"
#include "codegen/cuda/kinds/attention_plan.h"
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* "b3 + 64 + batch0 * 2359296": where lead's first head of |at| begins. */
static const char *place_of_lead(const Walk *w, const AttentionPlan *p, const Strided *at, int operand) {
    Text t;
    text_init(&t, w->arena);
    text_printf(&t, "b%d", operand);
    if (at->offset) text_printf(&t, " + %lld", (long long)at->offset);
    for (int i = 0; i < p->scores.rank - 3; i++)
        if (at->stride[i].mul && !dim_is_one(p->scores.d[i]))
            text_printf(&t, " + batch%d * %s", i, emit_dim_factor(w->arena, at->stride[i]));
    return text_str(&t);
}

/* `const HeadRows<const Element> q = {b0 + batch0 * 786432 + head * 64, 768};`, and of a gradient how far its next head
 * is. */
static amp_status declare_rows(CudaKernel *ck, const AttentionPlan *p, const char *name, int i, const char *head) {
    Strided at;
    int operand;
    const int rank = p->scores.rank;
    AMP_TRY(attention_rows(ck->w, p, i, &at, &operand, ck->e.err));
    emit_line(&ck->e, "const HeadRows<const Shape::Element> %s = {%s + %s * %s, %s};", name,
              place_of_lead(ck->w, p, &at, operand), head, emit_dim_factor(ck->w->arena, at.stride[rank - 3]),
              emit_dim(ck->w->arena, at.stride[rank - 2]));
    return AMP_OK;
}

static const char *next_head(CudaKernel *ck, const AttentionPlan *p, int i) {
    Strided at;
    int operand;
    if (attention_rows(ck->w, p, i, &at, &operand, ck->e.err)) return "0";
    return emit_dim(ck->w->arena, at.stride[p->scores.rank - 3]);
}

/* ---- the rule of scores ------------------------------------------------------------------------------------------ */

static const char *mask_kind(const Walk *w, const AttentionPlan *p) {
    if (p->at.mask < 0) return "MASK_NONE";
    return ir_dtype(w->f, p->op->in[p->at.mask]) == AMP_DT_BOOL ? "MASK_CHOOSES" : "MASK_ADDED";
}

static bool is_long(const AttentionPlan *p) { return dim_varies(p->queries) || dim_varies(p->keys); }

static long long fixed_length(Dim d) { return dim_varies(d) ? 0 : d.mul; }

static void declare_shape(CudaKernel *ck, const AttentionPlan *p) {
    const char *units = !is_long(p)
                            ? ""
                            : arena_printf(ck->w->arena, ", %lld, %lld", (long long)cuda_multiple(ck->w, p->queries),
                                           (long long)cuda_multiple(ck->w, p->keys));
    emit_line(&ck->e, "typedef AttentionShape<%s, %lld, %lld, %lld, %lld, %d, %s%s> Shape;", p->factors->name,
              fixed_length(p->queries), fixed_length(p->keys), (long long)p->width, (long long)p->v_width,
              p->copy_bytes, p->causal ? "true" : "false", units);
    const char *numbers = "";
    if (p->drops && (dim_is_sized(p->keys) || dim_is_sized(p->queries)))
        numbers = arena_printf(ck->w->arena, ", %lld, %lld", (long long)ir_draw_keys(p->keys),
                               (long long)ir_draw_keys(p->queries));
    emit_line(&ck->e, "typedef ScoreRule<Shape, %s, %s%s> Rule;", mask_kind(ck->w, p), p->drops ? "true" : "false",
              numbers);
}

/* The bits of a head: a result of attention, an operand of its gradient. */
static const char *place_of_bits(const CudaKernel *ck, const AttentionPlan *p) {
    Arena *a = ck->w->arena;
    const Op *o = p->op;
    const int operand = p->at.bits >= 0             ? attention_operand(ck->w, o, p->at.bits)
                        : o->code == OP_attend_drop ? walk_find_operand(ck->w, o->out[2], LAYOUT_ROWS, AMP_DT_I32)
                                                    : -1;
    return operand < 0 ? "nullptr"
                       : arena_printf(a, "(uint32_t *)b%d + (lead * %lld + head) * rule.bits_of_head()", operand,
                                      (long long)p->heads);
}

static amp_status set_counters(CudaKernel *ck, const AttentionPlan *p) {
    static const char *const names[] = {"seed", "iteration", "micro", "first"};
    Arena *a = ck->w->arena;
    emit_line(&ck->e, "rule.p = %s;", emit_literal(a, AMP_DT_F32, ir_attr(p->op, "p")->f));
    for (int i = 0; p->at.counters + i < p->op->n_in; i++) {
        const Val v = p->op->in[p->at.counters + i];
        const Op *constant = walk_constant(ck->w, v);
        const int operand = walk_find_operand(ck->w, v, LAYOUT_ROWS, AMP_DT_I64);
        if (constant)
            emit_line(&ck->e, "rule.%s = %s;", names[i], emit_literal(a, AMP_DT_I64, ir_attr(constant, "value")->f));
        else if (operand >= 0) emit_line(&ck->e, "rule.%s = *b%d;", names[i], operand);
        else return amp_fail(ck->e.err, AMP_INTERNAL, "%s: no counter", walk_name(ck->w));
    }
    const char *first = p->at.counters + 3 < p->op->n_in ? "rule.first + " : "";
    const char *head = arena_printf(a, "(lead * %lld + head)", (long long)p->heads);
    const DrawNumbers d = ir_draw_numbers_of_queries(&p->scores);
    if (d.in_order) emit_line(&ck->e, "rule.row = %s%s * %s;", first, head, emit_dim_factor(a, p->queries));
    else emit_line(&ck->e, "rule.row = %s%s;", first, emit_row_number(a, &d, head, true));
    emit_line(&ck->e, "rule.key_hash = (uint32_t)key;");
    return AMP_OK;
}

static amp_status set_dropout(CudaKernel *ck, const AttentionPlan *p) {
    Arena *a = ck->w->arena;
    const double drop = ir_attr(p->op, "p")->f;
    emit_line(&ck->e, "rule.kept = %s;", emit_literal(a, AMP_DT_F32, 1.0 / (1.0 - drop)));
    emit_line(&ck->e, "rule.bits = %s;", place_of_bits(ck, p));
    return p->at.counters < 0 ? AMP_OK : set_counters(ck, p);
}

/* Of head |head|. */
static amp_status declare_rule(CudaKernel *ck, const AttentionPlan *p) {
    Arena *a = ck->w->arena;
    const int rank = p->scores.rank;
    emit_line(&ck->e, "Rule rule = {};");
    if (dim_varies(p->queries)) emit_line(&ck->e, "rule.query_count = (int)(%s);", emit_dim(a, p->queries));
    if (dim_varies(p->keys)) emit_line(&ck->e, "rule.key_count = (int)(%s);", emit_dim(a, p->keys));
    emit_line(&ck->e, "rule.scale = %s;", emit_literal(a, AMP_DT_F32, ir_attr(p->op, "scale")->f));
    if (p->at.mask >= 0) {
        Strided at;
        int operand;
        AMP_TRY(attention_rows(ck->w, p, p->at.mask, &at, &operand, ck->e.err));
        const bool chooses = ir_dtype(ck->w->f, p->op->in[p->at.mask]) == AMP_DT_BOOL;
        emit_line(&ck->e, "rule.%s = %s + head * %s;", chooses ? "chooses" : "added",
                  place_of_lead(ck->w, p, &at, operand), emit_dim_factor(a, at.stride[rank - 3]));
        emit_line(&ck->e, "rule.mask_row = %s;", emit_dim(a, at.stride[rank - 2]));
        emit_line(&ck->e, "rule.mask_column = %s;", emit_dim(a, at.stride[rank - 1]));
    }
    return p->drops ? set_dropout(ck, p) : AMP_OK;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* "b3 + lead * 786432 + head * 64", or "nullptr" of no operand. */
static const char *place_of_result(const Walk *w, int operand, const char *offset) {
    return operand < 0 ? "nullptr" : arena_printf(w->arena, "b%d + %s", operand, offset);
}

/* Result |r|, [B..., rows, heads * width], of head |head|. */
static amp_status declare_result(CudaKernel *ck, const AttentionPlan *p, const char *name, int r, Dim rows,
                                 int64_t heads, int64_t width, const char *head) {
    AttentionResult x;
    Arena *a = ck->w->arena;
    AMP_TRY(attention_result(ck->w, p, r, heads * width, &x, ck->e.err));
    const char *column = x.column ? arena_printf(a, " + %lld", (long long)x.column) : "";
    dim_mul(rows, dim_const(x.pitch), &rows); /* fits: the result's elements do */
    const char *offset =
        arena_printf(a, "lead * %s%s + %s * %lld", emit_dim_factor(a, rows), column, head, (long long)width);
    const int element = x.rounded < 0 ? (int)sizeof(float) : p->factors->bytes;
    const int64_t run = greatest_common_divisor(width, greatest_common_divisor(x.pitch, x.column));
    emit_line(&ck->e, "const HeadResult<Shape::Stored, %d> %s = {%s, %s, %lld%s};",
              cuda_copy_bytes(run, element) / element, name, place_of_result(ck->w, x.whole, offset),
              place_of_result(ck->w, x.rounded, offset), (long long)x.pitch,
              !x.adds_zero     ? ""
              : x.rounds_first ? ", ZERO_AFTER_ROUNDING"
                               : ", ZERO_ADDED");
    return AMP_OK;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static void declare_shared(CudaKernel *ck, const char *needs) {
    emit_line(&ck->e, "static_assert(%s <= %d, \"\");", needs, ck->body->launch.shared_bytes);
    emit_line(&ck->e, "extern __shared__ __align__(128) char shared[];");
}

static const char *bool_text(bool x) { return x ? "true" : "false"; }

/* The head and the rows that the block computes: the heads of all leads are along x, the rows, if their number is an
 * argument, along y.  Of causal attention the last queries take the longest: they begin first. */
static void place_forward(CudaKernel *ck, const AttentionPlan *p) {
    Emitter *e = &ck->e;
    const bool down = dim_varies(p->queries);
    const long long blocks = down ? 1 : attention_blocks(p->queries.mul, p->tiling.warps), share = p->share;
    emit_line(e, "const int64_t lead = blockIdx.x / %lld;", (long long)p->heads * blocks);
    if (down) {
        emit_line(e, "const int head = (int)(blockIdx.x %% %lld), key_head = head / %lld;", (long long)p->heads, share);
        emit_line(e, "const int block = (int)(%sblockIdx.y);", p->causal ? "gridDim.y - 1 - " : "");
        return;
    }
    emit_line(e, "const int part = (int)(blockIdx.x %% %lld), head = part / %lld, key_head = head / %lld;",
              (long long)p->heads * blocks, blocks, share);
    emit_line(e, "const int block = %s;",
              p->causal ? arena_printf(ck->w->arena, "%lld - part %% %lld", blocks - 1, blocks)
                        : arena_printf(ck->w->arena, "part %% %lld", blocks));
}

static amp_status emit_forward(CudaKernel *ck, const AttentionPlan *p) {
    const AttentionWalkTile *t = &p->tiling.forward;
    const int sums = walk_find_operand(ck->w, p->op->out[1], LAYOUT_ROWS, AMP_DT_F32);
    Emitter *e = &ck->e;
    emit_line(e, "typedef AttentionForward<Shape, Rule, %d, %d, %s> Attention;", p->tiling.warps, t->step,
              bool_text(t->held));
    declare_shared(ck, "Attention::SHARED");
    place_forward(ck, p);
    cuda_declare_places(ck, p->scores.d, p->scores.rank - 3, "lead"); /* along each dim of B */
    AMP_TRY(declare_rows(ck, p, "q", p->at.q, "head"));
    AMP_TRY(declare_rows(ck, p, "k", p->at.k, "key_head"));
    AMP_TRY(declare_rows(ck, p, "v", p->at.v, "key_head"));
    AMP_TRY(declare_result(ck, p, "y", 0, p->queries, p->heads, p->v_width, "head"));
    AMP_TRY(declare_rule(ck, p));
    emit_line(e, "Attention attention;");
    emit_line(e, "attention.rule = rule;");
    emit_line(e, "attention.run(shared, block, q, k, v, y, %s);",
              place_of_result(ck->w, sums,
                              arena_printf(ck->w->arena, "(lead * %lld + head) * %s", (long long)p->heads,
                                           emit_dim_factor(ck->w->arena, p->queries))));
    return AMP_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static const char *factor_text(Arena *a, const char *text) {
    return strchr(text, ' ') ? arena_printf(a, "(%s)", text) : text;
}

/* Down a head; where the length is an argument, of a row of the grid. */
static int64_t blocks_down(const AttentionPlan *p, Dim length) {
    return dim_varies(length) ? 1 : attention_blocks(length.mul, p->tiling.gradient_warps);
}
static int64_t key_blocks(const AttentionPlan *p) { return attention_key_heads(p) * blocks_down(p, p->keys); }
static int64_t query_blocks(const AttentionPlan *p) { return p->heads * blocks_down(p, p->queries); }
static int64_t gradient_blocks(const AttentionPlan *p) {
    return key_blocks(p) * (1 + p->tiling.apart) + query_blocks(p);
}

/* |count| of them as text, in all rows of the grid: "9", "3 * down_keys". */
static const char *blocks_text(const CudaKernel *ck, int64_t count, Dim length, const char *down) {
    if (!dim_varies(length)) return arena_printf(ck->w->arena, "%lld", (long long)count);
    return count == 1 ? down : arena_printf(ck->w->arena, "%lld * %s", (long long)count, down);
}
static const char *blocks_by_keys(const CudaKernel *ck, const AttentionPlan *p, int64_t count) {
    return blocks_text(ck, count, p->keys, "down_keys");
}
static const char *blocks_by_queries(const CudaKernel *ck, const AttentionPlan *p, int64_t count) {
    return blocks_text(ck, count, p->queries, "down_queries");
}

static const char *stored_as(Dtype storage) {
    const AttentionFactors *factors = attention_factors(storage);
    return factors ? factors->stored : "StoredF32";
}

/* A walk by keys, of d k or d v or both, or one by queries. */
static void declare_walk(CudaKernel *ck, const AttentionPlan *p, const char *name, bool by_keys, bool first,
                         bool second) {
    const AttentionWalkTile *t = by_keys ? &p->tiling.keys : &p->tiling.queries;
    emit_line(&ck->e, "typedef AttentionWalk<Shape, Rule, Y, %s, %d, %d, %s, %d, %s, %s> %s;", bool_text(by_keys),
              p->tiling.gradient_warps, t->step, bool_text(t->held), t->stages, bool_text(first), bool_text(second),
              name);
    emit_line(&ck->e, "static_assert(%s::SHARED <= %d, \"\");", name, ck->body->launch.shared_bytes);
}

static void declare_walks(CudaKernel *ck, const AttentionPlan *p) {
    if (p->tiling.apart) {
        declare_walk(ck, p, "ValueWalk", true, false, true);
        declare_walk(ck, p, "KeyWalk", true, true, false);
    } else declare_walk(ck, p, "KeyWalk", true, true, true);
    declare_walk(ck, p, "QueryWalk", false, true, false);
    emit_line(&ck->e, "extern __shared__ __align__(128) char shared[];");
}

static void declare_down(CudaKernel *ck, const AttentionPlan *p, const char *name, Dim length) {
    const int rows = p->tiling.gradient_warps * 16;
    if (!dim_varies(length)) return;
    emit_line(&ck->e, "const uint32_t %s = (uint32_t)((%s + %d) / %d);", name, emit_dim_factor(ck->w->arena, length),
              rows - 1, rows);
}

/* If a length is an argument, the grid has leads along x, blocks down that length along y, and what there is in a row
 * of them along z.  Where the other length is fixed, that is too many: the last to begin have nothing to do. */
static void take_turn(CudaKernel *ck, const AttentionPlan *p) {
    enum { BLOCKS_AHEAD = 256 }; /* of queries: about twice what a device runs at once */
    const long long by_keys = key_blocks(p) * (1 + p->tiling.apart), by_queries = query_blocks(p);
    Emitter *e = &ck->e;
    if (!is_long(p)) {
        emit_line(e, "const uint32_t turn = takes_turn(tickets, gridDim.x);");
        emit_line(e, "const GradientTurn at = gradient_turn<%lld, %lld, %lld>(turn, gridDim.x);",
                  (BLOCKS_AHEAD + by_queries - 1) / by_queries, by_keys, by_queries);
        return;
    }
    declare_down(ck, p, "down_keys", p->keys);
    declare_down(ck, p, "down_queries", p->queries);
    emit_line(e, "const uint32_t of_keys = %s;", blocks_by_keys(ck, p, by_keys));
    emit_line(e, "const uint32_t of_queries = %s;", blocks_by_queries(ck, p, by_queries));
    emit_line(e, "const uint32_t turn = takes_turn(tickets, gridDim.x * gridDim.y * gridDim.z);");
    emit_line(e, "const uint32_t blocks = gridDim.x * (of_keys + of_queries);");
    emit_line(e, "if (turn >= blocks) return;");
    emit_line(e, "const uint32_t leads_ahead = (%d + of_queries) / of_queries;", BLOCKS_AHEAD - 1);
    emit_line(e, "const GradientTurn at = gradient_turn(turn, blocks, leads_ahead, of_keys, of_queries);");
}

/* The rows and the heads that the block computes. */
static void place_block(CudaKernel *ck, const AttentionPlan *p) {
    const int64_t key_rows = key_blocks(p) / attention_key_heads(p), query_rows = query_blocks(p) / p->heads;
    const char *down_keys = blocks_by_keys(ck, p, key_rows), *down = blocks_by_queries(ck, p, query_rows);
    const char *of_share = blocks_by_queries(ck, p, query_rows * p->share);
    const char *by_keys = blocks_by_keys(ck, p, key_blocks(p));
    Arena *a = ck->w->arena;
    Emitter *e = &ck->e;
    take_turn(ck, p);
    emit_line(e, "const int64_t lead = at.lead;");
    emit_line(e, "const bool by_keys = at.by_keys;");
    if (p->tiling.apart) emit_line(e, "const bool by_values = by_keys && at.number < %s;", by_keys);
    emit_line(e, "const int number = (int)(by_keys ? at.number %% %s : at.number);", factor_text(a, by_keys));
    emit_line(e, "const int key_head = by_keys ? number / %s : number / %s;", down_keys, factor_text(a, of_share));
    emit_line(e, "const int head = by_keys ? key_head * %lld : number / %s;", (long long)p->share, down);
    emit_line(e, "const int block = by_keys ? number %% %s : %snumber %% %s;", down_keys,
              !p->causal               ? ""
              : dim_varies(p->queries) ? "down_queries - 1 - "
                                       : arena_printf(a, "%lld - ", (long long)query_rows - 1),
              down);
    cuda_declare_places(ck, p->scores.d, p->scores.rank - 3, "lead"); /* along each dim of B */
}

/* What blocks of queries leave for the blocks of the same keys, each in its CUDA_PARTIAL_BYTES.  The first ticket
 * counts all blocks; one for each head of keys follows. */
static void declare_numbers(CudaKernel *ck, const AttentionPlan *p) {
    emit_line(&ck->e, "static_assert(QueryWalk::ROWS * 8 <= %d, \"\");", CUDA_PARTIAL_BYTES);
    Dim numbers = p->queries;
    numbers.mul *= 2;
    emit_line(&ck->e, "float *const numbers = (float *)partials + (lead * %lld + head) * %s;", (long long)p->heads,
              emit_dim_factor(ck->w->arena, numbers));
    emit_line(&ck->e, "uint32_t *const ticket = tickets + lead * %lld + key_head;", (long long)attention_key_heads(p));
}

/* Blocks of a head of keys: of the queries that share it, and of its keys. */
static const char *turns_of_head(const CudaKernel *ck, const AttentionPlan *p) {
    const int64_t by_keys = key_blocks(p) / attention_key_heads(p) * (1 + p->tiling.apart);
    const int64_t by_queries = p->share * (query_blocks(p) / p->heads);
    if (!is_long(p)) return arena_printf(ck->w->arena, "%lld", (long long)(by_queries + by_keys));
    return arena_printf(ck->w->arena, "%s + %s", blocks_by_queries(ck, p, by_queries), blocks_by_keys(ck, p, by_keys));
}

static amp_status declare_gradient_rows(CudaKernel *ck, const AttentionPlan *p) {
    const Walk *w = ck->w;
    Arena *a = w->arena;
    const char *of_queries = blocks_by_queries(ck, p, p->share * (query_blocks(p) / p->heads));
    const int y = attention_operand(w, p->op, p->at.y), sums = attention_operand(w, p->op, p->at.sums);
    const long long y_pitch = p->heads * p->v_width;
    Dim y_lead = p->queries;
    y_lead.mul *= y_pitch; /* fits: y's elements do */
    if (y < 0 || sums < 0)
        return amp_fail(ck->e.err, AMP_INTERNAL, "%s: attention cannot read its result", walk_name(w));
    AMP_TRY(declare_rows(ck, p, "q", p->at.q, "head"));
    AMP_TRY(declare_rows(ck, p, "k", p->at.k, "key_head"));
    AMP_TRY(declare_rows(ck, p, "v", p->at.v, "key_head"));
    AMP_TRY(declare_rows(ck, p, "dy", p->at.dy, "head"));
    emit_line(&ck->e, "const HeadRows<const Y::Element> y = {b%d + lead * %s + head * %lld, %lld};", y,
              emit_dim_factor(a, y_lead), (long long)p->v_width, y_pitch);
    emit_line(&ck->e, "const float *const sums = b%d + (lead * %lld + head) * %s;", sums, (long long)p->heads,
              emit_dim_factor(a, p->queries));
    declare_numbers(ck, p);
    emit_line(&ck->e,
              "const GradientRows<Shape, Y> rows = {q, k, v, dy, y, sums, numbers, ticket, %s, %s, %s, %s, %s};",
              of_queries, turns_of_head(ck, p), next_head(ck, p, p->at.q), next_head(ck, p, p->at.dy),
              p->at.mask < 0 ? "0" : next_head(ck, p, p->at.mask));
    return AMP_OK;
}

static void run_walk(CudaKernel *ck, const char *walk, const char *condition, const char *call) {
    if (condition) emit_open(&ck->e, "if (%s)", condition);
    emit_line(&ck->e, "%s walk;", walk);
    emit_line(&ck->e, "walk.rule = rule;");
    emit_line(&ck->e, "walk.rows = rows;");
    emit_line(&ck->e, "walk.run(shared, block, %s);", call);
    if (condition) emit_line(&ck->e, "return;");
    if (condition) emit_close(&ck->e);
}

static amp_status emit_gradient(CudaKernel *ck, const AttentionPlan *p) {
    const Walk *w = ck->w;
    const int y = attention_operand(w, p->op, p->at.y);
    const char *by_keys = arena_printf(w->arena, "%lld, dk, dv", (long long)p->share);
    emit_line(&ck->e, "typedef %s Y;", y < 0 ? "void" : stored_as(walk_operand(w, y)->storage));
    declare_walks(ck, p);
    place_block(ck, p);
    AMP_TRY(declare_gradient_rows(ck, p));
    AMP_TRY(declare_result(ck, p, "dq", 0, p->queries, p->heads, p->width, "head"));
    AMP_TRY(declare_result(ck, p, "dk", 1, p->keys, attention_key_heads(p), p->width, "key_head"));
    AMP_TRY(declare_result(ck, p, "dv", 2, p->keys, attention_key_heads(p), p->v_width, "key_head"));
    AMP_TRY(declare_rule(ck, p));
    if (p->tiling.apart) run_walk(ck, "ValueWalk", "by_values", by_keys);
    run_walk(ck, "KeyWalk", "by_keys", by_keys);
    run_walk(ck, "QueryWalk", NULL, "1, dq, dq");
    return AMP_OK;
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

static const char *describe_walk(const CudaKernel *ck, const AttentionPlan *p, int warps) {
    const AttentionTiling *t = &p->tiling;
    const char *type = amp_dtype_name(p->factors->dtype);
    if (!p->gradient)
        return arena_printf(ck->w->arena, "mma %s, %d queries a block, steps of %d keys", type, warps * 16,
                            t->forward.step);
    return arena_printf(ck->w->arena,
                        "mma %s, %d keys a block in steps of %d queries, then %d queries in steps of %d keys", type,
                        warps * 16, t->keys.step, warps * 16, t->queries.step);
}

static amp_status set_grid(CudaKernel *ck, const AttentionPlan *p, int warps) {
    enum { MOST_DOWN = 65535 }; /* blocks along y and z */
    CudaLaunch *launch = &ck->body->launch;
    const Dim length = dim_varies(p->queries) ? p->queries : p->keys;
    const bool along_y = p->gradient ? is_long(p) : dim_varies(p->queries);
    int64_t blocks = p->gradient ? gradient_blocks(p)
                     : along_y   ? p->heads
                                 : p->heads * attention_blocks(p->queries.mul, warps);
    launch->per[0] = 1;
    if (along_y) {
        launch->extent[1] = length;
        launch->per[1] = warps * 16;
        if (!length.n && attention_blocks(cuda_most(ck->w, length), warps) > MOST_DOWN)
            return amp_fail(ck->e.err, AMP_UNSUPPORTED,
                            "%s: attention over so long a sequence is not supported for CUDA", walk_name(ck->w));
    }
    if (p->gradient && dim_varies(p->queries) && dim_varies(p->keys) && !dim_equal(p->queries, p->keys))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED,
                        "%s: a gradient of attention is not supported for CUDA if both lengths depend on T and differ",
                        walk_name(ck->w));
    if (along_y && p->gradient) {
        launch->extent[2] = dim_const(blocks);
        launch->per[2] = 1;
        if (blocks > MOST_DOWN) return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: too many heads", walk_name(ck->w));
        blocks = 1;
    }
    if (!dim_mul(p->leads, dim_const(blocks), &launch->extent[0]))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: too many heads", walk_name(ck->w));
    return AMP_OK;
}

static amp_status emit_attention(CudaKernel *ck, const AttentionPlan *p) {
    const int warps = p->gradient ? p->tiling.gradient_warps : p->tiling.warps;
    CudaLaunch *launch = &ck->body->launch;
    AMP_TRY(set_grid(ck, p, warps));
    launch->shared_bytes = (int)(p->gradient ? attention_gradient_bytes(p) : attention_forward_bytes(p));
    ck->body->min_arch = p->factors->min_arch;
    ck->body->tensor_cores = true;
    ck->body->partials = p->gradient;
    ck->body->min_blocks = p->gradient ? 0 : p->tiling.blocks;
    /* a parameter, so that layers share a function */
    if (p->at.counters >= 0) cuda_add_size(ck, "key", dim_const(amp_hash32(ir_attr(p->op, "key")->s)));
    ck->how = describe_walk(ck, p, warps);
    AMP_TRY(cuda_open_function(ck, warps * 32));
    declare_shape(ck, p);
    AMP_TRY(p->gradient ? emit_gradient(ck, p) : emit_forward(ck, p));
    cuda_close_function(ck);
    return AMP_OK;
}

amp_status cuda_emit_attention(CudaKernel *ck) {
    AttentionPlan p;
    AMP_TRY(attention_plan(ck->w, &p, ck->e.err));
    const bool has_bits = p.at.bits >= 0 || p.op->code == OP_attend_drop, needs_bits = !dim_varies(p.keys);
    if (p.drops && has_bits != needs_bits && (has_bits || p.gradient))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED,
                        "%s: bits of dropout are %s for CUDA if the number of keys %s; use %s", walk_name(ck->w),
                        needs_bits ? "needed" : "not supported", needs_bits ? "is fixed" : "depends on T",
                        needs_bits ? "attend_drop" : "attend and counters");
    return emit_attention(ck, &p);
}
