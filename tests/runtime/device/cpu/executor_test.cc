// Products as the executor sets them up: every form, layout, operand type and odd size against sums in double, on every
// number of threads the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/base/counted_memory.h"
#include "tests/runtime/device/cpu/images.h"
#include "tests/runtime/runtime_c.h"

namespace {

struct Form {
    uint32_t operand, a_transposed, b_transposed;
    bool dense = false; // operands of fewer than 32 columns are in rows
};

void PrintTo(const Form &f, std::ostream *out) {
    *out << amp_dtype_name((amp_dtype)f.operand) << (f.a_transposed ? " A^T" : " A") << (f.b_transposed ? " B^T" : " B")
         << (f.dense ? " dense" : "");
}

const int64_t *out_cols; // of the product below: the generated function would know it

// C rows = the sums.
void StoreRows(const amp_kernel_args *a) {
    float *c = (float *)a->buffer[2];
    for (int64_t r = 0; r < a->rows; r++)
        for (int64_t i = 0; i < 32 && a->col0 + i < *out_cols; i++)
            c[(a->row0 + r) * *out_cols + a->col0 + i] = a->acc[r * 32 + i];
}

class Products : public ::testing::TestWithParam<Form> {};

uint32_t LayoutOfA(const Form &f, int64_t cols) {
    if (f.dense && cols < 32) return AMP_LAYOUT_ROWS;
    return f.a_transposed && f.operand == AMP_DT_BF16 ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS;
}
uint32_t LayoutOfB(const Form &f, int64_t cols) {
    if (f.dense && cols < 32 && !f.b_transposed) return AMP_LAYOUT_ROWS;
    if (f.operand == AMP_DT_BF16) return f.b_transposed ? AMP_LAYOUT_PAIRS_T : AMP_LAYOUT_PAIRS;
    return f.b_transposed ? AMP_LAYOUT_PANELS_T : AMP_LAYOUT_PANELS;
}

struct Matrix {
    int64_t rows, cols;
    std::vector<float> values;
    std::vector<unsigned char> memory;

    // Small integers: products and sums are exact in every order.
    Matrix(int64_t rows, int64_t cols, uint32_t layout, uint32_t storage)
        : rows(rows), cols(cols), values(rows * cols) {
        for (size_t i = 0; i < values.size(); i++) values[i] = (float)((i * 7919 + 13) % 17) - 8;
        size_t bytes = 0;
        EXPECT_TRUE(amp_layout_bytes(layout, storage, rows, cols, &bytes));
        memory.resize(bytes + 64);
        amp_layout_from_f32(Data(), layout, storage, rows, cols, values.data());
    }
    void *Data() { return (void *)(((uintptr_t)memory.data() + 63) / 64 * 64); }
    double At(int64_t r, int64_t c) const { return values[r * cols + c]; }
};

amp_model_buffer Buffer(const Matrix &m, uint32_t layout, uint32_t storage) {
    amp_model_buffer b = {};
    b.name = "m", b.kind = AMP_BUFFER_STATE, b.dtype = b.storage = storage, b.layout = layout;
    b.rows = {m.rows, 1, 0, 0}, b.cols = {m.cols, 1, 0, 0};
    return b;
}

std::vector<float> Multiply(const Form &f, Matrix &a, Matrix &b, int64_t rows, int64_t cols, int64_t k, int threads,
                            const char *isa) {
    amp_model_buffer buffers[3] = {
        Buffer(a, LayoutOfA(f, a.cols), f.operand), Buffer(b, LayoutOfB(f, b.cols), f.operand), {}};
    const uint32_t operands[] = {0, 1, 2};
    amp_model_kernel kernel = {};
    kernel.name = "k", kernel.kind = AMP_KERNEL_PRODUCT, kernel.predicate = -1;
    kernel.operands = operands, kernel.operand_count = 3;
    kernel.rows = {rows, 1, 0, 0}, kernel.cols = {cols, 1, 0, 0};
    kernel.run[0] = kernel.run[1] = kernel.run[2] = StoreRows;
    kernel.product = {f.operand, f.a_transposed, f.b_transposed, 0, 1, {k, 1, 0, 0}};
    amp_program program = {};
    program.name = "p", program.buffers = buffers, program.buffer_count = 2;
    program.kernels = &kernel, program.kernel_count = 1;
    std::vector<float> c((size_t)(rows * cols), NAN);
    void *memory[] = {a.Data(), b.Data(), c.data()};
    amp_run run = {};
    run.program = &program, run.buffers = memory, run.sizes.n = 1;
    amp_device_options options = {};
    amp_cpu_options cpu = {};
    cpu.isa = isa;
    options.threads = threads, options.cpu = &cpu;
    amp_allocator allocator = {};
    amp_device *device = nullptr;
    amp_error err = {};
    if (amp_device_cpu.create(&options, &allocator, &device, &err) == AMP_UNSUPPORTED) return {};
    EXPECT_EQ(amp_device_cpu.run(device, &run, &err), AMP_OK) << err.message;
    amp_device_cpu.destroy(device);
    return c;
}

TEST_P(Products, EqualTheSums) {
    const Form f = GetParam();
    const int64_t shapes[][3] = {{1, 1, 1}, {31, 33, 5}, {32, 32, 32}, {33, 10, 65}, {70, 100, 40}, {128, 65, 31}};
    for (const auto &s : shapes) {
        const int64_t rows = s[0], cols = s[1], k = s[2];
        out_cols = &s[1];
        const int64_t a_cols = f.a_transposed ? rows : k, b_cols = f.b_transposed ? k : cols;
        Matrix a(f.a_transposed ? k : rows, a_cols, LayoutOfA(f, a_cols), f.operand);
        Matrix b(f.b_transposed ? cols : k, b_cols, LayoutOfB(f, b_cols), f.operand);
        for (const char *isa : {"portable", "v3", "v4"}) {
            std::vector<float> c = Multiply(f, a, b, rows, cols, k, 1, isa);
            if (c.empty()) continue; // this processor does not have it
            for (int64_t r = 0; r < rows; r++)
                for (int64_t i = 0; i < cols; i++) {
                    double sum = 0;
                    for (int64_t x = 0; x < k; x++)
                        sum += (f.a_transposed ? a.At(x, r) : a.At(r, x)) * (f.b_transposed ? b.At(i, x) : b.At(x, i));
                    ASSERT_EQ(c[(size_t)(r * cols + i)], sum) << isa << " " << r << " " << i;
                }
            EXPECT_EQ(Multiply(f, a, b, rows, cols, k, 3, isa), c);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Forms, Products,
                         ::testing::Values(Form{AMP_DT_F32, 0, 0}, Form{AMP_DT_F32, 1, 0}, Form{AMP_DT_F32, 0, 1},
                                           Form{AMP_DT_F32, 1, 1}, Form{AMP_DT_BF16, 0, 0}, Form{AMP_DT_BF16, 1, 0},
                                           Form{AMP_DT_BF16, 0, 1}, Form{AMP_DT_BF16, 1, 1},
                                           Form{AMP_DT_F32, 0, 0, true}, Form{AMP_DT_F32, 1, 0, true},
                                           Form{AMP_DT_BF16, 0, 0, true}, Form{AMP_DT_BF16, 1, 0, true}));

// ---- image products: what conv_test checks, as kernels of a program

// Everything else of a call: one kernel on |threads| threads.
void RunKernel(amp_model_kernel &kernel, amp_model_buffer *buffers, void *const *memory, uint32_t operand_count,
               int threads, int64_t n) {
    const uint32_t operands[] = {0, 1, 2};
    kernel.name = "k", kernel.predicate = -1;
    kernel.operands = operands, kernel.operand_count = operand_count;
    amp_program program = {};
    program.name = "p", program.buffers = buffers, program.buffer_count = (int)operand_count;
    program.kernels = &kernel, program.kernel_count = 1;
    amp_run run = {};
    run.program = &program, run.buffers = memory, run.sizes.n = n;
    amp_device_options options = {};
    const amp_cpu_options cpu = {};
    options.threads = threads, options.cpu = &cpu;
    Counter counter;
    const amp_allocator allocator = counter.allocator();
    amp_device *device = nullptr;
    amp_error err = {};
    ASSERT_EQ(amp_device_cpu.create(&options, &allocator, &device, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_device_cpu.reserve(device, &program, {n, 0}, &err), AMP_OK) << err.message;
    const size_t reserved = counter.most;
    for (int i = 0; i < 3; i++) ASSERT_EQ(amp_device_cpu.run(device, &run, &err), AMP_OK) << err.message;
    EXPECT_EQ(counter.most, reserved) << "a run allocates nothing";
    amp_device_cpu.destroy(device);
    EXPECT_EQ(counter.live, 0u);
}

TEST(ImageProducts, GiveTheSameBitsOnEveryNumberOfThreads) {
    const Geometry g{9, 11, 13, 40, 70, 3, 3, 1, 1, 1};
    for (uint32_t kind : {AMP_WINDOW_CONV, AMP_WINDOW_CONV_DATA, AMP_WINDOW_CONV_WEIGHT}) {
        const amp_model_window w = WindowOf(g, kind);
        const int64_t x = g.n * w.h * w.w, y = g.n * w.oh * w.ow, taps = 9;
        const bool data = kind == AMP_WINDOW_CONV_DATA, weight = kind == AMP_WINDOW_CONV_WEIGHT;
        Matrix a(data ? y : x, data ? w.oc : w.c, AMP_LAYOUT_PANELS, AMP_DT_F32);
        Matrix b(weight ? y : taps * a.cols, data ? w.c : w.oc, AMP_LAYOUT_PANELS, AMP_DT_F32);
        const int64_t rows = data ? x : weight ? taps * w.c : y;
        amp_model_buffer buffers[3] = {
            Buffer(a, AMP_LAYOUT_PANELS, AMP_DT_F32), Buffer(b, AMP_LAYOUT_PANELS, AMP_DT_F32), {}};
        amp_model_kernel kernel = {};
        kernel.kind = AMP_KERNEL_PRODUCT;
        kernel.rows = {rows, 1, 0, 0}, kernel.cols = {b.cols, 1, 0, 0};
        kernel.run[0] = kernel.run[1] = kernel.run[2] = StoreRows;
        kernel.product = {AMP_DT_F32, 0, 0, 0, 1, {1, 1, 0, 0}};
        kernel.window = w;
        out_cols = &b.cols;
        const Sums exact = NaiveProduct(w, g.n, a.values, b.values);
        for (int threads : {1, 2, 3}) {
            std::vector<float> c((size_t)(rows * b.cols), NAN);
            void *memory[] = {a.Data(), b.Data(), c.data()};
            RunKernel(kernel, buffers, memory, 3, threads, 1);
            for (size_t i = 0; i < c.size(); i++) ASSERT_EQ(c[i], exact.value[i]) << kind << ", element " << i;
        }
    }
}

// ---- segments and scatter

std::atomic<int> calls;

// out[segment][column] = the sum of the segment's rows of in [rows, 70], rows.
void SumSegment(const amp_kernel_args *a) {
    calls++;
    const float *in = (const float *)a->buffer[0];
    float *out = (float *)a->buffer[1];
    for (int64_t c = a->col0; c < a->col0 + 32 && c < 70; c++) {
        float sum = 0;
        for (int64_t r = a->row0; r < a->row0 + a->rows; r++) sum += in[r * 70 + c];
        out[a->row0 / a->rows * 70 + c] = sum;
    }
}

TEST(Columns, AreCalledOncePerSegmentAndBlock) {
    const int64_t n = 37, segment = 45;
    std::vector<float> in((size_t)(n * segment * 70));
    for (size_t i = 0; i < in.size(); i++) in[i] = (float)(i % 23);
    for (int threads : {1, 2, 3}) {
        std::vector<float> out((size_t)(n * 70), NAN);
        void *memory[] = {in.data(), out.data()};
        amp_model_buffer buffers[2] = {};
        amp_model_kernel kernel = {};
        kernel.kind = AMP_KERNEL_COLUMN;
        kernel.rows = {segment, 1, 1, 0}, kernel.cols = {70, 1, 0, 0}, kernel.segment = {segment, 1, 0, 0};
        kernel.run[0] = kernel.run[1] = kernel.run[2] = SumSegment;
        calls = 0;
        RunKernel(kernel, buffers, memory, 2, threads, n);
        EXPECT_EQ(calls, 3 * 37 * 3) << "three runs";
        for (int64_t s = 0; s < n; s++)
            for (int64_t c = 0; c < 70; c++) {
                float sum = 0;
                for (int64_t r = 0; r < segment; r++) sum += in[(size_t)((s * segment + r) * 70 + c)];
                ASSERT_EQ(out[(size_t)(s * 70 + c)], sum) << s << ", " << c;
            }
    }
}

// out [5, 70] = rows of in [rows, 70] added up by row % 5.
void Scatter(const amp_kernel_args *a) {
    calls++;
    const float *in = (const float *)a->buffer[0];
    float *out = (float *)a->buffer[1];
    for (int64_t c = a->col0; c < a->col0 + 32 && c < 70; c++) {
        for (int64_t v = 0; v < 5; v++) out[v * 70 + c] = 0;
        for (int64_t r = a->row0; r < a->row0 + a->rows; r++) out[r % 5 * 70 + c] += in[r * 70 + c];
    }
}

TEST(Scatters, AreCalledOncePerBlockWithAllRows) {
    const int64_t rows = 333;
    std::vector<float> in((size_t)(rows * 70), 1.0f);
    for (int threads : {1, 3}) {
        std::vector<float> out(5 * 70, NAN);
        void *memory[] = {in.data(), out.data()};
        amp_model_buffer buffers[2] = {};
        amp_model_kernel kernel = {};
        kernel.kind = AMP_KERNEL_SCATTER;
        kernel.rows = {rows, 1, 0, 0}, kernel.cols = {70, 1, 0, 0};
        kernel.run[0] = kernel.run[1] = kernel.run[2] = Scatter;
        calls = 0;
        RunKernel(kernel, buffers, memory, 2, threads, 1);
        EXPECT_EQ(calls, 3 * 3) << "three runs";
        for (int64_t v = 0; v < 5; v++)
            for (int64_t c = 0; c < 70; c++) ASSERT_EQ(out[(size_t)(v * 70 + c)], v < 3 ? 67 : 66);
    }
}

// ---- the walk: predicates, flags, kernels of one task between kernels of many

enum { CELLS = 64 * 1024, PREDICATE = 0, DATA = 1, FLAG = 2 };

float *Data(const amp_kernel_args *a) { return (float *)a->buffer[DATA]; }
void AddOne(const amp_kernel_args *a) {
    for (int64_t c = a->col0; c < a->col0 + 32; c++) Data(a)[c]++;
}
void Raise(const amp_kernel_args *a) {
    if (a->col0 == 320) __atomic_store_n((int *)a->buffer[FLAG], 1, __ATOMIC_RELAXED);
}
void TurnOff(const amp_kernel_args *a) { *(int *)a->buffer[PREDICATE] = 0; }
void TurnOn(const amp_kernel_args *a) { *(int *)a->buffer[PREDICATE] = 1; }
void CopyFlag(const amp_kernel_args *a) { *(int *)a->buffer[PREDICATE] = *(int *)a->buffer[FLAG]; }

class Walk : public ::testing::TestWithParam<int> {};

TEST_P(Walk, PredicatesFlagsAndSerialKernels) {
    const struct {
        amp_kernel_fn fn;
        bool many, predicated;
    } list[] = {
        {TurnOff, false, false}, {AddOne, true, true},   {TurnOn, false, true}, // neither runs
        {TurnOn, false, false},  {AddOne, true, true},                          // runs
        {TurnOff, false, true},  {TurnOn, false, false}, {AddOne, true, true},  // runs
        {AddOne, true, false},   {Raise, true, false},                          // runs; the flag is raised
        {TurnOff, false, false}, {AddOne, true, true},   {CopyFlag, false, false},
        {AddOne, true, true}, // the second runs
    };
    const uint32_t operands[] = {PREDICATE, DATA, FLAG};
    std::vector<amp_model_kernel> kernels;
    for (const auto &l : list) {
        amp_model_kernel k = {};
        k.name = "k", k.kind = l.many ? AMP_KERNEL_TILE : AMP_KERNEL_SCALAR,
        k.predicate = l.predicated ? PREDICATE : -1;
        k.operands = operands, k.operand_count = 3;
        k.rows = {1, 1, 0, 0}, k.cols = {CELLS, 1, 0, 0};
        k.run[0] = k.run[1] = k.run[2] = l.fn;
        kernels.push_back(k);
    }
    amp_model_buffer buffers[3] = {};
    buffers[FLAG].kind = AMP_BUFFER_FLAG;
    amp_program program = {};
    program.name = "p", program.buffers = buffers, program.buffer_count = 3;
    program.kernels = kernels.data(), program.kernel_count = (int)kernels.size();
    std::vector<float> data(CELLS);
    int predicate = 0, flag = 0;
    void *memory[] = {&predicate, data.data(), &flag};
    amp_run run = {};
    run.program = &program, run.buffers = memory, run.sizes.n = 1;
    amp_device_options options = {};
    const amp_cpu_options cpu = {};
    options.threads = GetParam(), options.cpu = &cpu;
    amp_allocator allocator = {};
    amp_device *device = nullptr;
    amp_error err = {};
    ASSERT_EQ(amp_device_cpu.create(&options, &allocator, &device, &err), AMP_OK) << err.message;
    for (int i = 1; i <= 25; i++) {
        flag = 7; // cleared when a program starts
        ASSERT_EQ(amp_device_cpu.run(device, &run, &err), AMP_OK) << err.message;
        EXPECT_EQ(flag, 1);
        for (float v : data) ASSERT_EQ(v, 4 * i);
    }
    amp_device_cpu.destroy(device);
}

INSTANTIATE_TEST_SUITE_P(Threads, Walk, ::testing::Values(1, 2, 3));

} // namespace
