/* tiny_cuda.c: see tiny_cuda.h. */
#include "tests/runtime/device/cuda/tiny_cuda.h"

#include "tests/runtime/device/cuda/tiny_cuda_kernels.h"
#include "tests/runtime/tiny_model.h"

enum { K = TINY_FEATURES, C = TINY_CLASSES, N = -1 /* the batch, where a dimension is meant */ };

#define DIM(v)                                                                                                         \
    { .mul = (v) < 0 ? 1 : (v), .div = 1, .of_n = (v) < 0 }
#define TABLE(array)                                                                                                   \
    { sizeof array / sizeof *array, sizeof *array, array }

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* In another order than on the CPU. */
enum { W_T, SCALE, TRACKER, FLOOR_HITS, STEP, ITERATION, SEED, M_W, M_B, W, B, RUNNING };

#define STATE(name_, role_, of_, slot_, type_)                                                                         \
    .name = name_, .role = role_, .of = of_, .slot = slot_, .dtype = type_, .storage = type_, .layout = AMP_LAYOUT_ROWS
#define COUNTS(kind) .counter = kind, .counter_block = -1
#define MATRIX .rank = 2, .dims = {C, K}
#define VECTOR .rank = 1, .dims = {C}

static const amp_model_state states[] = {
    [W] = {STATE("fc.weight", AMP_STATE_PARAM, -1, 0, AMP_DT_F32), MATRIX, .init = "kaiming_uniform",
           .init_args = {2.2360679774997896}, .init_arg_count = 1},
    [B] = {STATE("fc.bias", AMP_STATE_PARAM, -1, 0, AMP_DT_F32), VECTOR, .init = "uniform",
           .init_args = {-0.125, 0.125}, .init_arg_count = 2},
    [M_W] = {STATE("fc.weight/momentum", AMP_STATE_MOMENT, W, "momentum", AMP_DT_F32), MATRIX},
    [M_B] = {STATE("fc.bias/momentum", AMP_STATE_MOMENT, B, "momentum", AMP_DT_F32), VECTOR},
    [STEP] = {STATE("step", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64), COUNTS(AMP_COUNTER_STEP)},
    [ITERATION] = {STATE("iteration", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64), COUNTS(AMP_COUNTER_ITERATION)},
    [SEED] = {STATE("seed", AMP_STATE_COUNTER, -1, 0, AMP_DT_I64), COUNTS(AMP_COUNTER_SEED)},
    [SCALE] = {STATE("scale", AMP_STATE_SCALER, -1, 0, AMP_DT_F32), COUNTS(AMP_COUNTER_SCALE), .init = "constant",
               .init_args = {TINY_SCALE}, .init_arg_count = 1},
    [TRACKER] = {STATE("growth_tracker", AMP_STATE_SCALER, -1, 0, AMP_DT_I32), COUNTS(AMP_COUNTER_GROWTH_TRACKER)},
    [FLOOR_HITS] = {STATE("floor_hits", AMP_STATE_SCALER, -1, 0, AMP_DT_I32), COUNTS(AMP_COUNTER_FLOOR_HITS)},
    [W_T] = {STATE("fc.weight/transposed", AMP_STATE_DERIVED, W, 0, AMP_DT_F32), .rank = 2, .dims = {K, C}},
    [RUNNING] = {STATE("fc.batches", AMP_STATE_BUFFER, -1, 0, AMP_DT_I64)},
};

/* ---- functions --------------------------------------------------------------------------------------------------- */

enum { F_COUNT, F_LINEAR, F_LINEAR_HALF, F_LOSS, F_MEAN, F_DB, F_DW, F_SCALER, F_UPDATE, F_TRANSPOSE };

static const amp_model_cuda_function functions[] = {
    [F_COUNT] = {"count_iteration", count_iteration_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_LINEAR] = {"linear", linear_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_LINEAR_HALF] = {"linear_half", linear_half_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_LOSS] = {"cross_entropy", cross_entropy_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_MEAN] = {"mean", mean_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_DB] = {"bias_gradient", bias_gradient_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_DW] = {"weight_gradient", weight_gradient_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_SCALER] = {"update_scaler", update_scaler_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_UPDATE] = {"update", update_text, {0, 0}, 75, 0, {0, 0, 0}},
    [F_TRANSPOSE] = {"transpose", transpose_text, {0, 0}, 75, 0, {0, 0, 0}},
};

/* ---- programs ---------------------------------------------------------------------------------------------------- */

#define PLACE(name_, kind_, index_, type_, rows_, cols_)                                                               \
    .name = name_, .kind = kind_, .index = index_, .dtype = type_, .storage = type_, .layout = AMP_LAYOUT_ROWS,        \
    .rows = DIM(rows_), .cols = DIM(cols_)
#define BUFFER(name, kind, index, type, rows, cols)                                                                    \
    PLACE(name, kind, index, type, rows, cols), .rank = 2, .dims = (const amp_model_dim[]) { DIM(rows), DIM(cols) }
#define TEMP(name, type, rows, cols, first, last)                                                                      \
    { BUFFER(name, AMP_BUFFER_TEMP, -1, type, rows, cols), .first_kernel = first, .last_kernel = last }
#define CUBE(name, type, rows, cols, first, last)                                                                      \
    {                                                                                                                  \
        PLACE(name, AMP_BUFFER_TEMP, -1, type, rows, cols), .first_kernel = first, .last_kernel = last, .rank = 3,     \
                                                            .dims = (const amp_model_dim[]) {                          \
            DIM(N), DIM(2), DIM(5)                                                                                     \
        }                                                                                                              \
    }
#define OUTPUT(name, type, rows, cols)                                                                                 \
    { BUFFER(name, AMP_BUFFER_OUTPUT, -1, type, rows, cols) }
#define OF_STATE(name, state, type, rows, cols)                                                                        \
    { BUFFER(name, AMP_BUFFER_STATE, state, type, rows, cols) }
#define X_INPUT                                                                                                        \
    { BUFFER("x", AMP_BUFFER_INPUT, 0, AMP_DT_F32, N, K) }
#define TARGETS_INPUT                                                                                                  \
    { BUFFER("targets", AMP_BUFFER_INPUT, 1, AMP_DT_I32, N, 1) }

#define COUNT(...) sizeof((const uint32_t[]){__VA_ARGS__}) / 4
#define KERNEL(name_, kind_, members_, function_, threads_, grid_, ...)                                                \
    .name = name_, .title = name_, .choices = {(const amp_model_cuda_choice[]){{function_, {threads_, 1, 1}, 0}}, 1},  \
    .parts = {(const amp_model_cuda_part[]){                                                                           \
                  {AMP_KERNEL_##kind_, members_, COUNT(__VA_ARGS__), 0, 0, (const amp_model_cuda_grid[]){grid_}}},     \
              1},                                                                                                      \
    .operands = {(const uint32_t[]){__VA_ARGS__}, COUNT(__VA_ARGS__)}
/* A thread for each of mul * n elements, or mul. */
#define ELEMENTS(mul, of_n, per_)                                                                                      \
    {                                                                                                                  \
        .extent = {{mul, 1, of_n}}, .per = { per_ }                                                                    \
    }
#define ONE_BLOCK                                                                                                      \
    {                                                                                                                  \
        .per = { 0 }                                                                                                   \
    }

enum { X, TARGETS, LOGITS, LOSSES, HITS, DLOGITS, LOSS, ACC, S_WT, S_B, S_SCALE, COMMON };
enum { DB = COMMON, DW, GRAD, FLAG, INVERSE, OK, OK_OUT, S_W, S_MW, S_MB, S_STEP, S_ITERATION, S_TRACKER, S_FLOOR };

#define COMMON_BUFFERS(first, last)                                                                                    \
    [X] = X_INPUT, [TARGETS] = TARGETS_INPUT, [LOGITS] = TEMP("logits", AMP_DT_F32, N, C, first, first + 1),           \
    [LOSSES] = TEMP("losses", AMP_DT_F32, N, 1, first + 1, first + 2),                                                 \
    [HITS] = TEMP("hits", AMP_DT_F32, N, 1, first + 1, first + 3),                                                     \
    [DLOGITS] = CUBE("d.logits", AMP_DT_F32, N, C, first + 1, last), [LOSS] = OUTPUT("loss", AMP_DT_F32, 1, 1),        \
    [ACC] = OUTPUT("acc", AMP_DT_F32, 1, 1), [S_WT] = OF_STATE("fc.weight", W_T, AMP_DT_F32, K, C),                    \
    [S_B] = OF_STATE("fc.bias", B, AMP_DT_F32, 1, C), [S_SCALE] = OF_STATE("scale", SCALE, AMP_DT_F32, 1, 1)

#define FORWARD_KERNELS                                                                                                \
    {KERNEL("k00", PRODUCT, 1, F_LINEAR, 128, ELEMENTS(C, 1, 128), X, S_WT, S_B, LOGITS)},                             \
        {KERNEL("k01", ROW, 1, F_LOSS, 32, ELEMENTS(1, 1, 32), LOGITS, TARGETS, S_SCALE, LOSSES, HITS, DLOGITS)},      \
        {KERNEL("k02", COLUMN, 1, F_MEAN, 1, ONE_BLOCK, LOSSES, LOSS)}, {                                              \
        KERNEL("k03", COLUMN, 1, F_MEAN, 1, ONE_BLOCK, HITS, ACC)                                                      \
    }

static const amp_model_buffer train_buffers[] = {
    COMMON_BUFFERS(1, 6),
    [DB] = TEMP("d.fc.bias", AMP_DT_F32, 1, C, 5, 8),
    [DW] = TEMP("d.fc.weight", AMP_DT_F32, C, K, 6, 8),
    [GRAD] = {BUFFER("grad", AMP_BUFFER_WATCH, -1, AMP_DT_F32, C, K)},
    [FLAG] = {BUFFER("flag", AMP_BUFFER_FLAG, -1, AMP_DT_I32, 1, 1)},
    [INVERSE] = TEMP("inverse", AMP_DT_F32, 1, 1, 7, 8),
    [OK] = TEMP("ok", AMP_DT_BOOL, 1, 1, 7, 8),
    [OK_OUT] = OUTPUT("ok.out", AMP_DT_BOOL, 1, 1),
    [S_W] = OF_STATE("fc.weight", W, AMP_DT_F32, C, K),
    [S_MW] = OF_STATE("fc.weight/momentum", M_W, AMP_DT_F32, C, K),
    [S_MB] = OF_STATE("fc.bias/momentum", M_B, AMP_DT_F32, 1, C),
    [S_STEP] = OF_STATE("step", STEP, AMP_DT_I64, 1, 1),
    [S_ITERATION] = OF_STATE("iteration", ITERATION, AMP_DT_I64, 1, 1),
    [S_TRACKER] = OF_STATE("growth_tracker", TRACKER, AMP_DT_I32, 1, 1),
    [S_FLOOR] = OF_STATE("floor_hits", FLOOR_HITS, AMP_DT_I32, 1, 1),
};

static const amp_model_dim update_elements[] = {{C * K, 1, 0, 0}, {C, 1, 0, 0}};
#define UPDATE_GRID                                                                                                    \
    {                                                                                                                  \
        .extent = {{C * K, 1, 0, 0}, {2, 1, 0, 0}}, .per = { 128, 1 }                                                  \
    }

static const amp_model_cuda_kernel train_kernels[] = {
    {KERNEL("k_iteration", SCALAR, 1, F_COUNT, 1, ONE_BLOCK, S_ITERATION)},
    FORWARD_KERNELS,
    {KERNEL("k04", COLUMN, 1, F_DB, 32, ONE_BLOCK, DLOGITS, DB, FLAG)},
    {KERNEL("k05", PRODUCT, 1, F_DW, 128, ELEMENTS(C *K, 0, 128), DLOGITS, X, S_SCALE, DW, GRAD, FLAG)},
    {KERNEL("k06", SCALAR, 1, F_SCALER, 1, ONE_BLOCK, FLAG, S_SCALE, INVERSE, S_TRACKER, S_FLOOR, S_STEP, OK, OK_OUT)},
    {KERNEL("k07", TILE, 2, F_UPDATE, 128, UPDATE_GRID, DW, INVERSE, S_W, S_MW, OK, DB, INVERSE, S_B, S_MB, OK),
     .operand_table = 1, .elements = {update_elements, 2}},
    {KERNEL("k08", TILE, 1, F_TRANSPOSE, 128, ELEMENTS(C *K, 0, 128), S_W, S_WT)},
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

static const amp_model_buffer eval_buffers[] = {COMMON_BUFFERS(0, 3)};
static const amp_model_cuda_kernel eval_kernels[] = {FORWARD_KERNELS};
static const amp_model_result eval_results[] = {SCALAR_RESULT("loss", LOSS, AMP_DT_F32, AMP_RESULT_LOSS),
                                                SCALAR_RESULT("metric.acc", ACC, AMP_DT_F32, AMP_RESULT_METRIC)};

enum { I_X, I_OUT, I_WT, I_B };
static const amp_model_buffer infer_buffers[] = {
    [I_X] = X_INPUT,
    [I_OUT] = OUTPUT("logits", AMP_DT_F16, N, C),
    [I_WT] = OF_STATE("fc.weight", W_T, AMP_DT_F32, K, C),
    [I_B] = OF_STATE("fc.bias", B, AMP_DT_F32, 1, C),
};
static const amp_model_cuda_kernel infer_kernels[] = {
    {KERNEL("k00", PRODUCT, 1, F_LINEAR_HALF, 128, ELEMENTS(C, 1, 128), I_X, I_WT, I_B, I_OUT)}};
static const amp_model_result infer_results[] = {
    {.name = "logits", .buffer = I_OUT, .dtype = AMP_DT_F16, .rank = 2, .dims = {DIM(N), DIM(C)}}};

static const amp_model_buffer refresh_buffers[] = {
    OF_STATE("fc.weight", W, AMP_DT_F32, C, K),
    OF_STATE("fc.weight/transposed", W_T, AMP_DT_F32, K, C),
};
static const amp_model_cuda_kernel refresh_kernels[] = {
    {KERNEL("k00", TILE, 1, F_TRANSPOSE, 128, ELEMENTS(C *K, 0, 128), 0, 1)}};

static const amp_model_cuda_program programs[] = {
    {"train_step", TABLE(train_buffers), TABLE(train_kernels), TABLE(train_results), AMP_PROGRAM_TRAIN_STEP},
    {"eval", TABLE(eval_buffers), TABLE(eval_kernels), TABLE(eval_results), AMP_PROGRAM_EVAL},
    {"infer", TABLE(infer_buffers), TABLE(infer_kernels), TABLE(infer_results), AMP_PROGRAM_INFER},
    {"refresh", TABLE(refresh_buffers), TABLE(refresh_kernels), {0, 0, 0}, AMP_PROGRAM_REFRESH},
};

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

static const amp_model_cuda cuda = {
    .struct_size = sizeof cuda,
    .prelude = TINY_CUDA_PRELUDE,
    .states = TABLE(states),
    .functions = TABLE(functions),
    .programs = TABLE(programs),
};

const amp_model_cuda *tiny_cuda_code(void) { return &cuda; }

const amp_model_desc *tiny_cuda_desc(void) {
    static _Thread_local amp_model_desc desc;
    desc = *amp_model_query();
    desc.cuda = &cuda;
    return &desc;
}
