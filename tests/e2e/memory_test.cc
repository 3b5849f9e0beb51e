// What a session says it takes is what is allocated, to the byte, and its activations are hardly more than the largest
// set of
// temporaries that are live at once: both examples and a contrastive model, whose largest values have N x N numbers;
// three batches, FP32 and mixed.
#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "amp/model_abi.h"
extern "C" {
#include "runtime/model/matrix_layout.h"
}
#include "tests/base/counted_memory.h"
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

namespace {

std::string read_file(const std::string &path) {
    std::ifstream in(path);
    EXPECT_TRUE(in) << path;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string text_of(const std::string &model) {
    return model == "contrast" ? e2e::contrast(8) : read_file("examples/fashion_mnist/" + model + ".amp");
}

int64_t at(const amp_model_dim &d, int64_t n) { return d.of_n ? d.mul * n / d.div : d.mul; }

size_t bytes_of(const amp_model_buffer &b, int64_t n) {
    size_t bytes = 0;
    EXPECT_TRUE(amp_layout_bytes(b.layout, b.storage, at(b.rows, n), at(b.cols, n), &bytes));
    return bytes;
}

size_t largest_live_set(const amp_model_program &p, int64_t n) {
    auto buffers = static_cast<const amp_model_buffer *>(p.buffers.data);
    std::vector<size_t> live(p.kernels.count + 1);
    for (uint32_t i = 0; i < p.buffers.count; i++)
        for (int32_t k = buffers[i].first_kernel;
             buffers[i].kind == AMP_BUFFER_TEMP && k >= 0 && k <= buffers[i].last_kernel; k++)
            live[k] += bytes_of(buffers[i], n);
    return *std::max_element(live.begin(), live.end());
}

class MemoryTest : public ::testing::TestWithParam<std::tuple<const char *, const char *>> {};

TEST_P(MemoryTest, IsWhatIsAllocated) {
    auto [model_name, precision] = GetParam();
    amp_compile_options options = {};
    options.precision = precision;
    std::string name = std::string(model_name) + "-" + precision + ".so";
    std::string path = e2e::compile_to_file(text_of(model_name), name, options);
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto query = reinterpret_cast<amp_model_query_fn>(dlsym(library, AMP_MODEL_SYMBOL));
    const amp_model_desc *desc = query();
    ASSERT_NE(desc, nullptr);

    for (int64_t n : {1, 7, 512}) {
        Counter counter;
        amp_allocator allocator = counter.allocator();
        amp_model_options with = {sizeof with, &allocator};
        amp::SessionOptions o;
        o.capacity.n = n;
        o.threads = 2;
        amp_error err = {};
        amp_model *model = nullptr;
        amp_params *params = nullptr;
        amp_session *session = nullptr;
        ASSERT_EQ(amp_model_load(path.c_str(), &with, &model, &err), AMP_OK) << err.message;
        size_t of_model = counter.live;
        ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
        amp_memory_info m;
        amp_session_get_memory(session, &m);
        auto expect_total = [&] { EXPECT_EQ(m.total, counter.live - of_model) << "batch " << n; };
        expect_total();
        void *more = allocator.alloc(allocator.user, 1, 1);
        ExpectFound("a byte more", "counter.live - of_model", expect_total);
        allocator.free(allocator.user, more, 1, 1);
        EXPECT_EQ(m.total, m.params + m.derived + m.moments + m.activations + m.outputs + m.scratch);
        size_t needed = 0;
        auto programs = static_cast<const amp_model_program *>(desc->programs.data);
        for (uint32_t i = 0; i < desc->programs.count; i++) needed = std::max(needed, largest_live_set(programs[i], n));
        EXPECT_GE(m.activations, needed) << "batch " << n;
        EXPECT_LE(m.activations, needed * 1.05) << "batch " << n;
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
        EXPECT_EQ(counter.live, 0u);
    }
    dlclose(library);
}

// What a session would take is what one takes, whatever it is made for, and is known where memory has no room for it.
TEST_P(MemoryTest, IsKnownWithoutASession) {
    auto [model_name, precision] = GetParam();
    amp_compile_options options = {};
    options.precision = precision;
    const std::string name = std::string("planned-") + model_name + "-" + precision + ".so";
    const std::string path = e2e::compile_to_file(text_of(model_name), name, options);
    Counter counter;
    amp_allocator allocator = counter.allocator();
    amp_model_options with = {sizeof with, &allocator};
    amp_error err = {};
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    ASSERT_EQ(amp_model_load(path.c_str(), &with, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    for (int variant = 0; variant < 6; variant++) {
        amp::SessionOptions o;
        o.capacity.n = variant % 2 ? 65 : 8;
        o.threads = 1 + variant % 3;
        o.program = variant == 1 ? "infer" : nullptr;
        o.inspect.keep_values = variant == 2;
        o.inspect.grad_norm = variant == 3;
        o.inspect.separate_buffers = variant == 4;
        if (variant == 5) o.device = "null";
        amp_memory_info planned, m;
        amp_session *session = nullptr;
        counter.most = counter.live;
        ASSERT_EQ(amp_session_plan(model, params, &o, &planned, &err), AMP_OK) << err.message;
        const size_t most = counter.most;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
        amp_session_get_memory(session, &m);
        amp_session_release(session);
        const uint64_t *a = &planned.params, *b = &m.params;
        for (size_t i = 0; i < sizeof m / sizeof *a; i++) EXPECT_EQ(a[i], b[i]) << "field " << i << " of " << variant;
        const size_t without = counter.live;
        counter.most = counter.live;
        ASSERT_EQ(amp_session_plan(model, nullptr, &o, &planned, &err), AMP_OK) << err.message;
        for (size_t i = 0; i < sizeof m / sizeof *a; i++) EXPECT_EQ(a[i], b[i]) << "field " << i << " of " << variant;
        EXPECT_LT(counter.most, most + 4096) << "no values are made";
        EXPECT_GT(m.params, 4096u);
        EXPECT_EQ(counter.live, without);
    }
    amp::SessionOptions huge;
    huge.capacity.n = 1 << 20;
    huge.threads = 1;
    amp_memory_info planned;
    const size_t before = counter.live;
    counter.largest = 0;
    ASSERT_EQ(amp_session_plan(model, params, &huge, &planned, &err), AMP_OK) << err.message;
    EXPECT_GT(planned.activations, size_t(1) << 28);
    EXPECT_LT(counter.largest, size_t(1) << 24);
    EXPECT_EQ(counter.live, before);
    huge.capacity.n = -1;
    EXPECT_EQ(amp_session_plan(model, params, &huge, &planned, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(planned.total, 0u);
    amp_params_release(params);
    amp_model_release(model);
}

INSTANTIATE_TEST_SUITE_P(Examples, MemoryTest,
                         ::testing::Combine(::testing::Values("mlp", "cnn", "contrast"),
                                            ::testing::Values("fp32", "bf16", "fp16")),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

} // namespace
