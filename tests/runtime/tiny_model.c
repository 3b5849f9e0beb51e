/* tiny_model.c: see tiny_model.h.  It calls nothing, so that it can also be linked as a model.so. */
#include "tiny_model.h"

#include "amp/version.h"

enum { K = TINY_FEATURES, C = TINY_CLASSES, TILE = 32 };

typedef const amp_kernel_args *Args;

static float *floats(Args a, int operand) { return a->buffer[operand]; }
static int *ints(Args a, int operand) { return a->buffer[operand]; }
static int64_t *longs(Args a, int operand) { return a->buffer[operand]; }

static int64_t up(int64_t v) { return (v + TILE - 1) / TILE * TILE; }
static int64_t panel(int64_t rows, int64_t r, int64_t c) { return c / TILE * up(rows) * TILE + r * TILE + c % TILE; }
static int64_t panel_t(int64_t cols, int64_t r, int64_t c) { return r / TILE * up(cols) * TILE + c * TILE + r % TILE; }
static int is_finite(float v) { return v - v == 0; }

/* exp by its series after halving the argument; enough for a test that compares with 1e-5. */
static double exponential(double x) {
    double sum = 1, term = 1;
    int halvings = 0;
    if (x < -700) return 0;
    for (; x < -0.5 || x > 0.5; x /= 2) halvings++;
    for (int i = 1; i < 20; i++) sum += term *= x / i;
    for (; halvings > 0; halvings--) sum *= sum;
    return sum;
}

static double logarithm(double x) {
    double y = 0;
    for (int i = 0; i < 60; i++) {
        double e = exponential(y);
        y += 2 * (x - e) / (x + e);
    }
    return y;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* (iteration) */
static void count_iteration(Args a) { longs(a, 0)[0]++; }

/* (x rows, x panels) */
static void pack_input(Args a) {
    for (int64_t r = a->row0; r < a->row0 + a->rows; r++)
        for (int64_t c = a->col0; c < a->col0 + TILE; c++)
            floats(a, 1)[panel(a->n, r, c)] = c < K ? floats(a, 0)[r * K + c] : 0;
}

/* (x panels, w panels_t, b, logits panels) */
static void linear(Args a) {
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < TILE; c++) {
            int64_t col = a->col0 + c;
            floats(a, 3)[panel(a->n, a->row0 + r, col)] = col < C ? a->acc[r * TILE + c] + floats(a, 2)[col] : 0;
        }
}

/* (logits, targets, scale, losses, hits, dlogits) */
static void cross_entropy(Args a) {
    for (int64_t r = a->row0; r < a->row0 + a->rows; r++) {
        const float *z = floats(a, 0);
        int target = ints(a, 1)[r], best = 0;
        double sum = 0, max = z[panel(a->n, r, 0)];
        for (int c = 1; c < C; c++)
            if (z[panel(a->n, r, c)] > max) max = z[panel(a->n, r, best = c)];
        for (int c = 0; c < C; c++) sum += exponential(z[panel(a->n, r, c)] - max);
        for (int c = 0; c < TILE; c++) {
            double p = c < C ? exponential(z[panel(a->n, r, c)] - max) / sum : 0;
            double d = target == TINY_IGNORE || c >= C ? 0 : p - (c == target);
            floats(a, 5)[panel(a->n, r, c)] = (float)(d / (double)a->n) * floats(a, 2)[0];
        }
        floats(a, 3)[r] = target == TINY_IGNORE ? 0 : (float)(max + logarithm(sum) - z[panel(a->n, r, target)]);
        floats(a, 4)[r] = target == best;
    }
}

/* (values [N], mean []) */
static void mean(Args a) {
    double sum = 0;
    for (int64_t r = 0; r < a->rows; r++) sum += floats(a, 0)[r];
    floats(a, 1)[0] = (float)(sum / (double)a->rows);
}

/* (dlogits, db, flag) */
static void bias_gradient(Args a) {
    for (int64_t c = a->col0; c < a->col0 + TILE && c < C; c++) {
        float sum = 0;
        for (int64_t r = 0; r < a->rows; r++) sum += floats(a, 0)[panel(a->n, r, c)];
        floats(a, 1)[c] = sum;
        if (!is_finite(sum)) __atomic_store_n(ints(a, 2), 1, __ATOMIC_RELAXED);
    }
}

/* (dlogits, x panels, scale, dw panels, watched dw rows or NULL, flag) */
static void weight_gradient(Args a) {
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t c = 0; c < TILE; c++) {
            float d = a->acc[r * TILE + c];
            int64_t row = a->row0 + r, col = a->col0 + c;
            floats(a, 3)[panel(C, row, col)] = col < K ? d : 0;
            if (col >= K) continue;
            if (a->buffer[4]) floats(a, 4)[row * K + col] = d / floats(a, 2)[0];
            if (!is_finite(d)) __atomic_store_n(ints(a, 5), 1, __ATOMIC_RELAXED);
        }
}

/* (flag, scale, inverse scale, growth_tracker, floor_hits, step, ok) */
static void update_scaler(Args a) {
    float *scale = floats(a, 1);
    int ok = !*ints(a, 0), *tracker = ints(a, 3);
    *ints(a, 6) = ok;
    *floats(a, 2) = 1 / *scale;
    *longs(a, 5) += ok;
    if (!ok) {
        *tracker = 0;
        if (*scale <= 1) ++*ints(a, 4);
        else *scale *= 0.5f;
    } else if (++*tracker == TINY_INTERVAL) {
        *tracker = 0;
        *scale *= 2;
    }
}

/* (ok, result) */
static void report_ok(Args a) { *ints(a, 1) = *ints(a, 0); }

static float momentum_step(float *w, float *m, float gradient) {
    *m = TINY_MOMENTUM * *m + gradient;
    return *w -= TINY_LEARNING_RATE * *m;
}

/* (dw, inverse scale, w panels, m panels, w panels_t) */
static void update_weight(Args a) {
    for (int64_t r = a->row0; r < a->row0 + a->rows; r++)
        for (int64_t c = a->col0; c < a->col0 + TILE && c < K; c++) {
            int64_t at = panel(C, r, c);
            float d = floats(a, 0)[at] * *floats(a, 1);
            floats(a, 4)[panel_t(K, r, c)] = momentum_step(&floats(a, 2)[at], &floats(a, 3)[at], d);
        }
}

/* (db, inverse scale, b, m) */
static void update_bias(Args a) {
    for (int64_t c = a->col0; c < a->col0 + TILE && c < C; c++)
        momentum_step(&floats(a, 2)[c], &floats(a, 3)[c], floats(a, 0)[c] * *floats(a, 1));
}

/* (logits panels, logits rows) */
static void unpack_logits(Args a) {
    for (int64_t r = a->row0; r < a->row0 + a->rows; r++)
        for (int64_t c = a->col0; c < a->col0 + TILE && c < C; c++)
            floats(a, 1)[r * C + c] = floats(a, 0)[panel(a->n, r, c)];
}

/* (w panels, w panels_t) */
static void transpose_weight(Args a) {
    for (int64_t r = a->row0; r < a->row0 + a->rows; r++)
        for (int64_t c = a->col0; c < a->col0 + TILE && c < K; c++)
            floats(a, 1)[panel_t(K, r, c)] = floats(a, 0)[panel(C, r, c)];
}

/* ---- states and inputs ------------------------------------------------------------------------------------------- */

enum { W, B, M_W, M_B, STEP, ITERATION, SEED, SCALE, TRACKER, FLOOR_HITS, W_T, RUNNING, STATES };

#define STATE(name_, role_, of_, slot_, type_, layout_)                                                                \
    .name = name_, .role = role_, .of = of_, .slot = slot_, .dtype = type_, .storage = type_, .layout = layout_
#define COUNTS(kind) .counter = kind, .counter_block = -1
#define MATRIX .rank = 2, .dims = {C, K}
#define VECTOR .rank = 1, .dims = {C}

static const amp_model_state states[] = {
    [W] = {STATE("fc.weight", AMP_STATE_PARAM, -1, 0, AMP_DT_F32, AMP_LAYOUT_PANELS), MATRIX, .init = "kaiming_uniform",
           .init_args = {2.2360679774997896}, .init_arg_count = 1},
    [B] = {STATE("fc.bias", AMP_STATE_PARAM, -1, 0, AMP_DT_F32, AMP_LAYOUT_ROWS), VECTOR, .init = "uniform",
           .init_args = {-0.125, 0.125}, .init_arg_count = 2},
    [M_W] = {STATE("fc.weight/momentum", AMP_STATE_MOMENT, W, "momentum", AMP_DT_F32, AMP_LAYOUT_PANELS), MATRIX},
    [M_B] = {STATE("fc.bias/momentum", AMP_STATE_MOMENT, B, "momentum", AMP_DT_F32, AMP_LAYOUT_ROWS), VECTOR},
    [STEP] = {STATE("step", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64, AMP_LAYOUT_ROWS), COUNTS(AMP_COUNTER_STEP)},
    [ITERATION] = {STATE("iteration", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64, AMP_LAYOUT_ROWS),
                   COUNTS(AMP_COUNTER_ITERATION)},
    [SEED] = {STATE("seed", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64, AMP_LAYOUT_ROWS), COUNTS(AMP_COUNTER_SEED)},
    [SCALE] = {STATE("scale", AMP_STATE_SCALER, -1, 0, AMP_DT_F32, AMP_LAYOUT_ROWS), COUNTS(AMP_COUNTER_SCALE),
               .init = "constant", .init_args = {TINY_SCALE}, .init_arg_count = 1},
    [TRACKER] = {STATE("growth_tracker", AMP_STATE_SCALER, -1, 0, AMP_DT_I32, AMP_LAYOUT_ROWS),
                 COUNTS(AMP_COUNTER_GROWTH_TRACKER)},
    [FLOOR_HITS] = {STATE("floor_hits", AMP_STATE_SCALER, -1, 0, AMP_DT_I32, AMP_LAYOUT_ROWS),
                    COUNTS(AMP_COUNTER_FLOOR_HITS)},
    [W_T] = {STATE("fc.weight/panels_t", AMP_STATE_DERIVED, W, 0, AMP_DT_F32, AMP_LAYOUT_PANELS_T), MATRIX},
    [RUNNING] = {STATE("fc.batches", AMP_STATE_BUFFER, -1, 0, AMP_DT_I64, AMP_LAYOUT_ROWS)},
};

enum { N = -1 }; /* the batch, where a dimension is meant */
#define DIM(v)                                                                                                         \
    { .mul = (v) < 0 ? 1 : (v), .div = 1, .of_n = (v) < 0 }

static const amp_model_input inputs[] = {
    {.name = "x", .dtype = AMP_DT_F32, .rank = 2, .dims = {DIM(N), DIM(K)}},
    {.name = "targets",
     .dtype = AMP_DT_I32,
     .rank = 1,
     .dims = {DIM(N)},
     .train_only = 1,
     .index_bound = C,
     .index_ignore = TINY_IGNORE},
};

/* ---- programs ---------------------------------------------------------------------------------------------------- */

#define PLACE(name_, kind_, index_, type_, layout_, rows_, cols_)                                                      \
    .name = name_, .kind = kind_, .index = index_, .dtype = type_, .storage = type_, .layout = layout_,                \
    .rows = DIM(rows_), .cols = DIM(cols_)
#define BUFFER(name, kind, index, type, layout, rows, cols)                                                            \
    PLACE(name, kind, index, type, layout, rows, cols), .rank = 2, .dims = (const amp_model_dim[]) {                   \
        DIM(rows), DIM(cols)                                                                                           \
    }
#define TEMP(name, type, layout, rows, cols, first, last)                                                              \
    { BUFFER(name, AMP_BUFFER_TEMP, -1, type, layout, rows, cols), .first_kernel = first, .last_kernel = last }
/* A value of rank 3, [N, 2, 5], as a matrix. */
#define TEMP_CUBE(name, type, layout, rows, cols, first, last)                                                         \
    {                                                                                                                  \
        PLACE(name, AMP_BUFFER_TEMP, -1, type, layout, rows, cols), .first_kernel = first, .last_kernel = last,        \
                                                                    .rank = 3, .dims = (const amp_model_dim[]) {       \
            DIM(N), DIM(2), DIM(5)                                                                                     \
        }                                                                                                              \
    }
#define OUTPUT(name, type, rows, cols)                                                                                 \
    { BUFFER(name, AMP_BUFFER_OUTPUT, -1, type, AMP_LAYOUT_ROWS, rows, cols) }
#define OF_STATE(name, state, type, layout, rows, cols)                                                                \
    { BUFFER(name, AMP_BUFFER_STATE, state, type, layout, rows, cols) }
#define X_INPUT                                                                                                        \
    { BUFFER("x", AMP_BUFFER_INPUT, 0, AMP_DT_F32, AMP_LAYOUT_ROWS, N, K) }
#define TARGETS_INPUT                                                                                                  \
    { BUFFER("targets", AMP_BUFFER_INPUT, 1, AMP_DT_I32, AMP_LAYOUT_ROWS, N, 1) }
#define SCALAR_STATE(name, state, type) OF_STATE(name, state, type, AMP_LAYOUT_ROWS, 1, 1)

#define OPERANDS(...)                                                                                                  \
    .operands = (const uint32_t[]){__VA_ARGS__}, .operand_count = sizeof((const uint32_t[]){__VA_ARGS__}) / 4
#define KERNEL(name_, kind_, fn, predicate_, rows_, cols_)                                                             \
    .name = name_, .title = #fn, .kind = kind_, .run = {fn, fn, fn}, .predicate = predicate_, .rows = DIM(rows_),      \
    .cols = DIM(cols_)
#define TABLE(array)                                                                                                   \
    { sizeof array / sizeof *array, sizeof *array, array }

/* Buffers that train_step and eval have in common come first, in the same order. */
enum { X, TARGETS, XP, LOGITS, LOSSES, HITS, DLOGITS, LOSS, ACC, S_WT, S_B, S_SCALE, COMMON };
enum { DB = COMMON, DW, GRAD, FLAG, INVERSE, OK, OK_OUT, S_W, S_MW, S_MB, S_STEP, S_ITERATION, S_TRACKER, S_FLOOR };

#define COMMON_BUFFERS(first, last)                                                                                    \
    [X] = X_INPUT, [TARGETS] = TARGETS_INPUT,                                                                          \
    [XP] = TEMP("x.panels", AMP_DT_F32, AMP_LAYOUT_PANELS, N, K, first, last),                                         \
    [LOGITS] = TEMP("logits", AMP_DT_F32, AMP_LAYOUT_PANELS, N, C, first + 1, first + 2),                              \
    [LOSSES] = TEMP("losses", AMP_DT_F32, AMP_LAYOUT_ROWS, N, 1, first + 2, first + 3),                                \
    [HITS] = TEMP("hits", AMP_DT_F32, AMP_LAYOUT_ROWS, N, 1, first + 2, first + 4),                                    \
    [DLOGITS] = TEMP_CUBE("d.logits", AMP_DT_F32, AMP_LAYOUT_PANELS, N, C, first + 2, last),                           \
    [LOSS] = OUTPUT("loss", AMP_DT_F32, 1, 1), [ACC] = OUTPUT("acc", AMP_DT_F32, 1, 1),                                \
    [S_WT] = OF_STATE("fc.weight", W_T, AMP_DT_F32, AMP_LAYOUT_PANELS_T, C, K),                                        \
    [S_B] = OF_STATE("fc.bias", B, AMP_DT_F32, AMP_LAYOUT_ROWS, 1, C),                                                 \
    [S_SCALE] = SCALAR_STATE("scale", SCALE, AMP_DT_F32)

#define FORWARD_KERNELS                                                                                                \
    {KERNEL("k00", AMP_KERNEL_TILE, pack_input, -1, N, K), OPERANDS(X, XP)},                                           \
        {KERNEL("k01", AMP_KERNEL_PRODUCT, linear, -1, N, C), OPERANDS(XP, S_WT, S_B, LOGITS),                         \
         .product = {.operand = AMP_DT_F32, .b_transposed = 1, .a = 0, .b = 1, .k = DIM(K)}},                          \
        {KERNEL("k02", AMP_KERNEL_ROW, cross_entropy, -1, N, C),                                                       \
         OPERANDS(LOGITS, TARGETS, S_SCALE, LOSSES, HITS, DLOGITS)},                                                   \
        {KERNEL("k03", AMP_KERNEL_COLUMN, mean, -1, N, 1), OPERANDS(LOSSES, LOSS)}, {                                  \
        KERNEL("k04", AMP_KERNEL_COLUMN, mean, -1, N, 1), OPERANDS(HITS, ACC)                                          \
    }

static const amp_model_buffer train_buffers[] = {
    COMMON_BUFFERS(1, 7),
    [DB] = TEMP("d.fc.bias", AMP_DT_F32, AMP_LAYOUT_ROWS, 1, C, 6, 11),
    [DW] = TEMP("d.fc.weight", AMP_DT_F32, AMP_LAYOUT_PANELS, C, K, 7, 10),
    [GRAD] = {BUFFER("grad", AMP_BUFFER_WATCH, -1, AMP_DT_F32, AMP_LAYOUT_ROWS, C, K)},
    [FLAG] = {BUFFER("flag", AMP_BUFFER_FLAG, -1, AMP_DT_I32, AMP_LAYOUT_ROWS, 1, 1)},
    [INVERSE] = TEMP("inverse", AMP_DT_F32, AMP_LAYOUT_ROWS, 1, 1, 8, 11),
    [OK] = {PLACE("ok", AMP_BUFFER_TEMP, -1, AMP_DT_BOOL, AMP_LAYOUT_ROWS, 1, 1), .first_kernel = 8, .last_kernel = 11},
    [OK_OUT] = OUTPUT("ok.out", AMP_DT_BOOL, 1, 1),
    [S_W] = OF_STATE("fc.weight", W, AMP_DT_F32, AMP_LAYOUT_PANELS, C, K),
    [S_MW] = OF_STATE("fc.weight/momentum", M_W, AMP_DT_F32, AMP_LAYOUT_PANELS, C, K),
    [S_MB] = OF_STATE("fc.bias/momentum", M_B, AMP_DT_F32, AMP_LAYOUT_ROWS, 1, C),
    [S_STEP] = SCALAR_STATE("step", STEP, AMP_DT_I64),
    [S_ITERATION] = SCALAR_STATE("iteration", ITERATION, AMP_DT_I64),
    [S_TRACKER] = SCALAR_STATE("growth_tracker", TRACKER, AMP_DT_I32),
    [S_FLOOR] = SCALAR_STATE("floor_hits", FLOOR_HITS, AMP_DT_I32),
};

static const amp_model_kernel train_kernels[] = {
    {KERNEL("k_iteration", AMP_KERNEL_SCALAR, count_iteration, -1, 1, 1), OPERANDS(S_ITERATION)},
    FORWARD_KERNELS,
    {KERNEL("k05", AMP_KERNEL_COLUMN, bias_gradient, -1, N, C), OPERANDS(DLOGITS, DB, FLAG)},
    {KERNEL("k06", AMP_KERNEL_PRODUCT, weight_gradient, -1, C, K), OPERANDS(DLOGITS, XP, S_SCALE, DW, GRAD, FLAG),
     .product = {.operand = AMP_DT_F32, .a_transposed = 1, .a = 0, .b = 1, .k = DIM(N)}},
    {KERNEL("k07", AMP_KERNEL_SCALAR, update_scaler, -1, 1, 1),
     OPERANDS(FLAG, S_SCALE, INVERSE, S_TRACKER, S_FLOOR, S_STEP, OK)},
    {KERNEL("k08", AMP_KERNEL_SCALAR, report_ok, -1, 1, 1), OPERANDS(OK, OK_OUT)},
    {KERNEL("k09", AMP_KERNEL_TILE, update_weight, OK, C, K), OPERANDS(DW, INVERSE, S_W, S_MW, S_WT),
     .updates = (const uint32_t[]){2, 3}, .update_count = 2},
    {KERNEL("k10", AMP_KERNEL_TILE, update_bias, OK, 1, C), OPERANDS(DB, INVERSE, S_B, S_MB)},
};

#define SCALAR_RESULT(name_, buffer_, type, kind_)                                                                     \
    { .name = name_, .buffer = buffer_, .dtype = type, .kind = kind_, .index = -1 }
static const amp_model_result train_results[] = {
    SCALAR_RESULT("loss", LOSS, AMP_DT_F32, AMP_RESULT_LOSS),
    SCALAR_RESULT("metric.acc", ACC, AMP_DT_F32, AMP_RESULT_METRIC),
    SCALAR_RESULT("ok", OK_OUT, AMP_DT_BOOL, AMP_RESULT_OK),
    {.name = "grad.fc.weight",
     .buffer = GRAD,
     .dtype = AMP_DT_F32,
     .rank = 2,
     .dims = {DIM(C), DIM(K)},
     .kind = AMP_RESULT_GRADIENT,
     .index = W},
};

static const amp_model_buffer eval_buffers[] = {COMMON_BUFFERS(0, 4)};
static const amp_model_kernel eval_kernels[] = {FORWARD_KERNELS};
static const amp_model_result eval_results[] = {SCALAR_RESULT("loss", LOSS, AMP_DT_F32, AMP_RESULT_LOSS),
                                                SCALAR_RESULT("metric.acc", ACC, AMP_DT_F32, AMP_RESULT_METRIC)};

enum { I_X, I_XP, I_LOGITS, I_OUT, I_WT, I_B };
static const amp_model_buffer infer_buffers[] = {
    [I_X] = X_INPUT,
    [I_XP] = TEMP("x.panels", AMP_DT_F32, AMP_LAYOUT_PANELS, N, K, 0, 1),
    [I_LOGITS] = TEMP("logits", AMP_DT_F32, AMP_LAYOUT_PANELS, N, C, 1, 2),
    [I_OUT] = OUTPUT("logits.rows", AMP_DT_F32, N, C),
    [I_WT] = OF_STATE("fc.weight", W_T, AMP_DT_F32, AMP_LAYOUT_PANELS_T, C, K),
    [I_B] = OF_STATE("fc.bias", B, AMP_DT_F32, AMP_LAYOUT_ROWS, 1, C),
};
static const amp_model_kernel infer_kernels[] = {
    {KERNEL("k00", AMP_KERNEL_TILE, pack_input, -1, N, K), OPERANDS(I_X, I_XP)},
    {KERNEL("k01", AMP_KERNEL_PRODUCT, linear, -1, N, C), OPERANDS(I_XP, I_WT, I_B, I_LOGITS),
     .product = {.operand = AMP_DT_F32, .b_transposed = 1, .a = 0, .b = 1, .k = DIM(K)}},
    {KERNEL("k02", AMP_KERNEL_TILE, unpack_logits, -1, N, C), OPERANDS(I_LOGITS, I_OUT)},
};
static const amp_model_result infer_results[] = {
    {.name = "logits", .buffer = I_OUT, .dtype = AMP_DT_F16, .rank = 2, .dims = {DIM(N), DIM(C)}}};

static const amp_model_buffer refresh_buffers[] = {
    OF_STATE("fc.weight", W, AMP_DT_F32, AMP_LAYOUT_PANELS, C, K),
    OF_STATE("fc.weight/panels_t", W_T, AMP_DT_F32, AMP_LAYOUT_PANELS_T, C, K),
};
static const amp_model_kernel refresh_kernels[] = {
    {KERNEL("k00", AMP_KERNEL_TILE, transpose_weight, -1, C, K), OPERANDS(0, 1)}};

static const amp_model_program programs[] = {
    {"train_step", TABLE(train_buffers), TABLE(train_kernels), TABLE(train_results), AMP_PROGRAM_TRAIN_STEP},
    {"eval", TABLE(eval_buffers), TABLE(eval_kernels), TABLE(eval_results), AMP_PROGRAM_EVAL},
    {"infer", TABLE(infer_buffers), TABLE(infer_kernels), TABLE(infer_results), AMP_PROGRAM_INFER},
    {"refresh", TABLE(refresh_buffers), TABLE(refresh_kernels), {0, 0, 0}, AMP_PROGRAM_REFRESH},
};

static const amp_model_reason reason = {.rule = "f32", .text = "{f32, fp32:1}", .policy_text = "op * f32"};

static const amp_model_decision decisions[] = {{.path = "fc.linear",
                                                .op = "linear",
                                                .out = AMP_DT_F32,
                                                .reason = &reason,
                                                .file = "tiny.amp",
                                                .line = 3,
                                                .column = 9}};

static const amp_model_desc desc = {
    .magic = AMP_MODEL_MAGIC,
    .struct_size = sizeof(amp_model_desc),
    .self = &desc,
    .version = AMP_VERSION,
    .name = "tiny",
    .target = "cpu",
    .policy = "fp32",
    .precision = "fp32",
    .low = "f16",
    .source_name = "tiny.amp",
    .optimizer = "sgd(lr = 0.125, momentum = 0.5)",
    .scaler = "dynamic(init = 1024.0)",
    .states = TABLE(states),
    .inputs = TABLE(inputs),
    .programs = TABLE(programs),
    .decisions = TABLE(decisions),
};

const amp_model_desc *amp_model_query(void) { return &desc; }

/* Filled in by the test, as the compiler's writer does. */
__attribute__((section(AMP_MODEL_HASH_SECTION), used)) static const unsigned char hash[32] = {0};
