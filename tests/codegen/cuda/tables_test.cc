// tables_test.cc: what a model says of its CUDA code (amp/model_abi.h) is what was emitted.
#include "tests/codegen/cuda/cuda_model.h"

namespace {

const char model[] = R"(module "core" stage lower {
}
state %w : f32[33, 10] param = constant(v = 0.0)
state %v : f32[7] param = constant(v = 0.0)
func train_step {
  input %x : f32[N, 10]
  input %g : f32[33, 10]
  input %h : f32[7]
  state %w : f32[33, 10]
  state %v : f32[7]
  %e = exp(%x) : f32[N, 10]
  %s = reduce_sum(%e; dims = (1)) : f32[N]
  %loss = reduce_sum(%s; dims = (0)) : f32
  %two = const(; value = 2.0) : f32
  %wg = mul(%g, %two) : f32[33, 10]
  %vg = mul(%h, %two) : f32[7]
  %wn = sub(%w, %wg) : f32[33, 10]
  %vn = sub(%v, %vg) : f32[7]
  assign(%w, %wn)
  assign(%v, %vn)
  result loss = %loss
}
)";

class Tables : public CudaModelTest {
  protected:
    // model.so of both targets.
    std::unique_ptr<LoadedModel> CompileBoth(const CudaModule *cuda, const CudaImage *images, int count) {
        CodegenCuda given = {};
        given.code = cuda;
        given.images = images;
        given.image_count = count;
        CodegenOptions options = {};
        options.isa = "portable";
        char *bytes = nullptr;
        size_t size = 0;
        amp_error err = {};
        ::Text c;
        text_init(&c, &arena_);
        if (codegen_c(Planned(model, false, false), &given, nullptr, &c, &err) ||
            codegen_so(&c, &options, &bytes, &size, &err)) {
            ADD_FAILURE() << err.message;
            return nullptr;
        }
        auto loaded = std::make_unique<LoadedModel>(bytes, size);
        const amp_allocator a = amp_allocator_or_default(nullptr);
        amp_free(&a, bytes, size);
        return loaded;
    }
};

template <class T> const T *Rows(const amp_model_table &t) {
    EXPECT_EQ(t.count == 0 || t.elem_size == sizeof(T), true);
    return static_cast<const T *>(t.data);
}

TEST_F(Tables, ProgramsAndKernels) {
    const CudaModule *cuda = Emit(PlannedForCuda(model));
    ASSERT_NE(cuda, nullptr);
    auto loaded = CompileBoth(cuda, nullptr, 0);
    ASSERT_TRUE(loaded && loaded->desc() && loaded->desc()->cuda);
    const amp_model_cuda &c = *loaded->desc()->cuda;
    EXPECT_EQ(c.struct_size, sizeof c);
    EXPECT_STREQ(c.prelude, cuda_prelude);
    EXPECT_NE(strstr(c.ir_text, "target cuda"), nullptr);
    EXPECT_EQ(strlen(c.ir_text), c.ir_length);
    EXPECT_EQ(c.states.count, 2u);
    ASSERT_EQ(static_cast<int>(c.functions.count), cuda->functions.len);
    auto *functions = Rows<amp_model_cuda_function>(c.functions);
    for (uint32_t i = 0; i < c.functions.count; i++) {
        EXPECT_STREQ(functions[i].source, cuda->functions.data[i].source);
        EXPECT_NE(strstr(functions[i].source, functions[i].entry), nullptr);
        EXPECT_EQ(functions[i].images.count, 0u);
        EXPECT_STREQ(functions[i].prelude, cuda->functions.data[i].prelude);
    }
    ASSERT_EQ(c.programs.count, 1u);
    const amp_model_cuda_program &p = *Rows<amp_model_cuda_program>(c.programs);
    EXPECT_STREQ(p.name, "train_step");
    ASSERT_EQ(static_cast<int>(p.kernels.count), cuda->programs.data[0].kernels.len);
    auto *kernels = Rows<amp_model_cuda_kernel>(p.kernels);
    auto *buffers = Rows<amp_model_buffer>(p.buffers);
    uint32_t batches = 0;
    for (uint32_t i = 0; i < p.kernels.count; i++) {
        const amp_model_cuda_kernel &k = kernels[i];
        const CudaKernelEntry &e = cuda->programs.data[0].kernels.data[i];
        ASSERT_EQ(static_cast<int>(k.operand_count), e.operands.len);
        for (uint32_t o = 0; o < k.operand_count; o++) {
            ASSERT_LT(k.operands[o], p.buffers.count);
            EXPECT_EQ(k.operands[o] + 1, e.operands.data[o]);
            /* a buffer lives while its launches run: positions count launches, not kernels */
            const amp_model_buffer &b = buffers[k.operands[o]];
            if (b.kind == AMP_BUFFER_TEMP) {
                EXPECT_LE(b.first_kernel, static_cast<int32_t>(i));
                EXPECT_GE(b.last_kernel, static_cast<int32_t>(i));
            }
            EXPECT_LT(b.last_kernel, static_cast<int32_t>(p.kernels.count));
        }
        EXPECT_GT(k.launch.block[0] * k.launch.block[1] * k.launch.block[2], 0u);
        EXPECT_LT(k.function, c.functions.count);
        if (!k.batch) continue;
        batches++;
        EXPECT_EQ(k.batch, 2u);
        EXPECT_EQ(k.operand_table, 1u);
        EXPECT_EQ(k.batch_elements[0].mul, 330);
        EXPECT_EQ(k.batch_elements[1].mul, 7);
        EXPECT_EQ(k.launch.extent[0].mul / k.launch.per[0], 2); /* a block each */
    }
    EXPECT_EQ(batches, 1u);
    EXPECT_STREQ(Rows<amp_model_result>(p.results)->name, "loss");
}

// Images of every byte come through.
TEST_F(Tables, Images) {
    const CudaModule *cuda = Emit(PlannedForCuda(model));
    ASSERT_NE(cuda, nullptr);
    std::string bytes;
    for (int i = 0; i < 1000; i++) bytes += static_cast<char>(i % 256);
    CudaImage images[2] = {};
    images[0] = {1, 90, 'a', true, bytes.data(), bytes.size(), 40, 16, 0, 8, 0.25};
    images[1] = {1, 80, 0, false, "ptx\n?\?=\"", 9, -1, -1, -1, -1, 0.25};
    auto loaded = CompileBoth(cuda, images, 2);
    ASSERT_TRUE(loaded && loaded->desc() && loaded->desc()->cuda);
    auto *functions = Rows<amp_model_cuda_function>(loaded->desc()->cuda->functions);
    EXPECT_EQ(functions[0].images.count, 0u);
    ASSERT_EQ(functions[1].images.count, 2u);
    auto *rows = Rows<amp_model_cuda_image>(functions[1].images);
    EXPECT_EQ(std::string(static_cast<const char *>(rows[0].data), rows[0].size), bytes);
    EXPECT_EQ(rows[0].suffix, static_cast<uint32_t>('a'));
    EXPECT_EQ(rows[0].is_cubin, 1u);
    EXPECT_EQ(rows[0].registers, 40);
    EXPECT_EQ(rows[0].stack_bytes, 8);
    EXPECT_STREQ(static_cast<const char *>(rows[1].data), "ptx\n?\?=\"");
    EXPECT_EQ(rows[1].arch, 80u);
    EXPECT_EQ(rows[1].registers, -1);
}

} // namespace
