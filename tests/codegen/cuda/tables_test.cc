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
    const std::string kept = loaded->Kept(AMP_MODEL_CUDA_IR_SECTION);
    EXPECT_NE(kept.find("target cuda"), kept.npos);
    EXPECT_EQ(kept.find("\ngraph"), kept.npos); // the CPU's has it
    EXPECT_EQ(c.states.count, 2u);
    ASSERT_EQ(static_cast<int>(c.functions.count), cuda->functions.len);
    auto *functions = Rows<amp_model_cuda_function>(c.functions);
    for (uint32_t i = 0; i < c.functions.count; i++) {
        EXPECT_STREQ(functions[i].source, cuda->functions.data[i].source);
        EXPECT_NE(strstr(functions[i].source, functions[i].entry), nullptr);
        EXPECT_EQ(functions[i].images.count, 0u);
        std::string prelude;
        for (uint32_t r = 0; r < functions[i].prelude.count; r++)
            prelude.append(c.prelude + functions[i].prelude.at[r].at, functions[i].prelude.at[r].size);
        EXPECT_EQ(prelude, cuda->functions.data[i].prelude);
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
        ASSERT_EQ(static_cast<int>(k.operands.count), e.operands.len);
        for (uint32_t o = 0; o < k.operands.count; o++) {
            ASSERT_LT(k.operands.at[o], p.buffers.count);
            EXPECT_EQ(k.operands.at[o] + 1, e.operands.data[o]);
            /* a buffer lives while its launches run: positions count launches, not kernels */
            const amp_model_buffer &b = buffers[k.operands.at[o]];
            if (b.kind == AMP_BUFFER_TEMP) {
                EXPECT_LE(b.first_kernel, static_cast<int32_t>(i));
                EXPECT_GE(b.last_kernel, static_cast<int32_t>(i));
            }
            EXPECT_LT(b.last_kernel, static_cast<int32_t>(p.kernels.count));
        }
        ASSERT_EQ(static_cast<int>(k.choices.count), e.forms.len);
        const amp_model_cuda_choice &last = k.choices.at[e.forms.len - 1]; // the launch's own function
        EXPECT_EQ(last.function, static_cast<uint32_t>(e.forms.data[0].function));
        EXPECT_LT(last.function, c.functions.count);
        EXPECT_GT(last.block[0] * last.block[1] * last.block[2], 0u);
        ASSERT_EQ(static_cast<int>(k.parts.count), e.parts.len);
        const amp_model_cuda_grid *grids = k.parts.at[0].grids;
        for (int j = 1; j < e.forms.len; j++) {
            EXPECT_EQ(k.choices.at[j - 1].function, static_cast<uint32_t>(e.forms.data[j].function));
            EXPECT_EQ(grids[j - 1].per[0], e.forms.data[j].launch.per[0]);
        }
        ASSERT_EQ(static_cast<int>(k.sizes.count), e.body.sizes.len);
        for (uint32_t s = 0; s < k.sizes.count; s++) EXPECT_EQ(k.sizes.at[s].mul, e.body.sizes.data[s].mul);
        if (!k.elements.count) continue;
        batches++;
        ASSERT_EQ(k.elements.count, 2u);
        EXPECT_EQ(k.parts.at[0].members, 2u);
        EXPECT_EQ(k.operand_table, 1u);
        EXPECT_EQ(k.elements.at[0].mul, 330);
        EXPECT_EQ(k.elements.at[1].mul, 7);
        EXPECT_EQ(grids[e.forms.len - 1].extent[0].mul / grids[e.forms.len - 1].per[0], 2); /* a block each */
    }
    EXPECT_EQ(batches, 1u);
    EXPECT_STREQ(Rows<amp_model_result>(p.results)->name, "loss");
}

// What a kernel computes, by one instruction: operations * elements * terms at |n|.
double Operations(const amp_model_cuda_kernel &k, uint32_t instruction, int64_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < k.work.count; i++) {
        const amp_model_cuda_work &w = k.work.at[i];
        double part = w.instruction == instruction ? w.operations : 0;
        for (const amp_model_dim &d : {w.elements, w.terms})
            part *= d.of_n ? (double)(d.mul * n / d.div) : (double)d.mul;
        sum += part;
    }
    return sum;
}

int Access(const amp_model_cuda_program &p, const amp_model_cuda_kernel &k, const char *buffer) {
    int access = 0;
    for (uint32_t i = 0; i < k.operands.count; i++)
        if (!strcmp(Rows<amp_model_buffer>(p.buffers)[k.operands.at[i]].name, buffer)) access |= k.access[i];
    return access;
}

enum { READ = AMP_ACCESS_READ, WRITE = AMP_ACCESS_WRITE };

// Operations of the elements that an op makes or reduces, of all members of a batch; how operands are used.
TEST_F(Tables, WorkOfElements) {
    const CudaModule *cuda = Emit(PlannedForCuda(model));
    ASSERT_NE(cuda, nullptr);
    auto loaded = CompileBoth(cuda, nullptr, 0);
    ASSERT_TRUE(loaded && loaded->desc() && loaded->desc()->cuda);
    const amp_model_cuda_program &p = *Rows<amp_model_cuda_program>(loaded->desc()->cuda->programs);
    bool batch = false, row = false;
    for (uint32_t i = 0; i < p.kernels.count; i++) {
        const amp_model_cuda_kernel &k = Rows<amp_model_cuda_kernel>(p.kernels)[i];
        ASSERT_NE(k.access, nullptr);
        if (k.parts.at->kind == AMP_KERNEL_ROW) { // exp of what is added up takes 9 instructions, the sum one
            row = true;
            EXPECT_EQ(Operations(k, AMP_INSTRUCTION_PLAIN, 6), 10 * 6 * 10);
            EXPECT_EQ(Access(p, k, "x"), READ);
            EXPECT_EQ(Access(p, k, "s"), WRITE);
        }
        if (k.elements.count) { // w - 2 g: two each of 330 and 7 elements
            batch = true;
            EXPECT_EQ(k.work.count, 1u);
            EXPECT_EQ(Operations(k, AMP_INSTRUCTION_PLAIN, 6), 2 * (330 + 7));
            for (const char *state : {"w", "v"}) EXPECT_EQ(Access(p, k, state), READ | WRITE) << state;
            for (const char *gradient : {"g", "h"}) EXPECT_EQ(Access(p, k, gradient), READ) << gradient;
        }
    }
    EXPECT_TRUE(batch && row);
}

const char products[] = R"(module "core" stage lower {
}
func train_step {
  input %x : f32[N, 784]
  input %w : f32[512, 784]
  input %i : f32[N, 8, 8, 16]
  input %k : f32[3, 3, 16, 32]
  input %q : f32[N, 4, 32, 16]
  %xh = cast(%x) : f16[N, 784]
  %wh = cast(%w) : f16[512, 784]
  %h = contract(%xh, %wh; tb = true) : f32[N, 512]
  %r = neg(%h) : f32[N, 512]
  %y = conv(%i, %k; padding = (1, 1)) : f32[N, 8, 8, 32]
  %s = batch_contract(%q, %q; tb = true) : f32[N, 4, 32, 32]
  %p = contract(%xh, %xh; ta = true, parts = 3) : f32[3, 784, 784]
  %z = reduce_sum(%r; dims = (1)) : f32[N]
  %t = reduce_sum(%z; dims = (0)) : f32
  result loss = %t
  result r = %r
  result p = %p
  result y = %y
  result s = %s
}
)";

// Products: two operations for each term of each element, of all products of a batch.
TEST_F(Tables, WorkOfProducts) {
    const CudaModule *cuda = Emit(PlannedForCuda(products));
    ASSERT_NE(cuda, nullptr);
    auto loaded = CompileBoth(cuda, nullptr, 0);
    ASSERT_TRUE(loaded && loaded->desc() && loaded->desc()->cuda);
    const amp_model_cuda_program &p = *Rows<amp_model_cuda_program>(loaded->desc()->cuda->programs);
    double f16 = 0, fma = 0, epilogue = 0;
    for (uint32_t i = 0; i < p.kernels.count; i++) {
        const amp_model_cuda_kernel &k = Rows<amp_model_cuda_kernel>(p.kernels)[i];
        const double own = Operations(k, AMP_INSTRUCTION_MMA_F16, 5);
        f16 += own;
        fma += Operations(k, AMP_INSTRUCTION_FMA, 5);
        if (own == 0) continue;
        epilogue += Operations(k, AMP_INSTRUCTION_PLAIN, 5);
    }
    EXPECT_EQ(f16, 2.0 * 5 * 512 * 784 + 2.0 * 5 * 784 * 784); // whatever the parts
    EXPECT_EQ(fma, 2.0 * 5 * 8 * 8 * 32 * 3 * 3 * 16 + 2.0 * 5 * 4 * 32 * 32 * 16);
    EXPECT_GE(epilogue, 5 * 512); // neg; a cast of x may be counted too
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
