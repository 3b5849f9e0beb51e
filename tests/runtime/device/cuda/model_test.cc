// CUDA tables of a model: what a sound one reports, and that every damaged number, index and pointer is refused.
#include <functional>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/device/cuda/tiny_cuda.h"
#include "tests/runtime/tiny.h"

namespace {

// A copy of the tiny model's CUDA tables that can be changed.
struct Copy {
    amp_model_desc desc = *tiny_cuda_desc();
    amp_model_cuda cuda = *tiny_cuda_code();
    std::vector<amp_model_state> states = Of<amp_model_state>(cuda.states);
    std::vector<amp_model_cuda_function> functions = Of<amp_model_cuda_function>(cuda.functions);
    std::vector<amp_model_cuda_program> programs = Of<amp_model_cuda_program>(cuda.programs);
    std::vector<amp_model_buffer> buffers = Of<amp_model_buffer>(programs[0].buffers);
    std::vector<amp_model_cuda_kernel> kernels = Of<amp_model_cuda_kernel>(programs[0].kernels);
    std::vector<amp_model_result> results = Of<amp_model_result>(programs[0].results);
    std::vector<amp_model_dim> elements{{400, 1, 0, 0}, {10, 1, 0, 0}};
    std::vector<amp_model_cuda_choice> choices;
    std::vector<amp_model_cuda_part> parts;
    std::vector<amp_model_cuda_grid> grids;
    std::vector<amp_model_cuda_product> products;
    amp_model_cuda_kernel then;
    std::vector<amp_model_cuda_image> images{{80, 0, 0, "ptx", 4, -1, -1, -1, -1}};

    template <typename T> static std::vector<T> Of(const amp_model_table &t) {
        return std::vector<T>((const T *)t.data, (const T *)t.data + t.count);
    }
    template <typename T> static amp_model_table Table(const std::vector<T> &v) {
        return {(uint32_t)v.size(), sizeof(T), v.data()};
    }
    void Connect() {
        desc.cuda = &cuda;
        cuda.states = Table(states), cuda.functions = Table(functions), cuda.programs = Table(programs);
        programs[0].buffers = Table(buffers), programs[0].kernels = Table(kernels);
        programs[0].results = Table(results);
        functions[0].images = Table(images);
        Kernel("k07").elements.at = elements.data();
    }
    amp_status Load(amp_error *err) {
        FailingAllocator allocator;
        amp_allocator a = allocator.get();
        amp_model *model = nullptr;
        amp_status status = amp_model_from_desc(&desc, "tiny.so", &a, &model, err);
        EXPECT_EQ(model == nullptr, status != AMP_OK);
        amp_model_release(model);
        return status;
    }
    amp_model_cuda_kernel &Kernel(const char *name) {
        for (amp_model_cuda_kernel &k : kernels)
            if (!strcmp(k.name, name)) return k;
        return kernels[0];
    }
    // The last of |count| choices like the kernel's own.
    amp_model_cuda_choice &Choose(const char *name, uint32_t count) {
        amp_model_cuda_kernel &k = Kernel(name);
        grids.assign(count, Part(name, 1).grids[0]);
        parts[0].grids = grids.data();
        choices.assign(count, k.choices.at[0]);
        k.choices = {choices.data(), count};
        return choices.back();
    }
    // The last of |count| parts: the first is all of the launch, and the others have no operands.
    amp_model_cuda_part &Part(const char *name, uint32_t count) {
        amp_model_cuda_kernel &k = Kernel(name);
        parts.assign(count, k.parts.at[0]);
        for (uint32_t i = 1; i < count; i++) parts[i].operand_count = 0, parts[i].members = 1;
        k.parts = {parts.data(), count};
        return parts.back();
    }
    // A product of |name| that is sound: logits [n][10] = x [n][40] times weights [40][10], and a bias.
    amp_model_cuda_product &Product(const char *name) {
        amp_model_cuda_product sound = {0, 1, 3, 3, 0, 0, AMP_INSTRUCTION_FMA, 1, 0, 0, 10, {}, {}, {}, {}, {}, {}};
        sound.batch = {1, 1, 0, 0}, sound.stride[0] = {4, 1, 1, 0};
        sound.rows = {1, 1, 1, 0}, sound.k = {40, 1, 0, 0};
        sound.pitch[0] = {40, 1, 0, 0}, sound.pitch[1] = sound.pitch[2] = {10, 1, 0, 0};
        products.assign(2, sound);
        Kernel(name).products = {products.data(), 2};
        return products.back();
    }
    // A copy of kernel |name|, after its calls.
    amp_model_cuda_kernel &Then(const char *name) {
        then = Kernel(name);
        Product(name);
        Kernel(name).then = &then;
        return then;
    }
    amp_model_cuda_grid &Grid(const char *name) {
        Choose(name, 1);
        return grids[0];
    }
    amp_model_buffer &Buffer(const char *name) {
        for (amp_model_buffer &b : buffers)
            if (!strcmp(b.name, name)) return b;
        return buffers[0];
    }
    amp_model_state &State(const char *name) {
        for (amp_model_state &s : states)
            if (!strcmp(s.name, name)) return s;
        return states[0];
    }
};

struct Damage {
    const char *message;
    std::function<void(Copy &)> apply;
};

const uint32_t outside[] = {0, 1, 99, 3};

const Damage damages[] = {
    {"its CUDA code is damaged, or of another build of ampc (8 bytes", [](Copy &c) { c.cuda.struct_size = 8; }},
    {"CUDA: it has no prelude", [](Copy &c) { c.cuda.prelude = nullptr; }},
    {"table of CUDA states is damaged", [](Copy &c) { c.cuda.states.data = nullptr; }},
    {"table of CUDA programs is damaged", [](Copy &c) { c.cuda.programs.elem_size = 0; }},
    {"table of CUDA functions is damaged", [](Copy &c) { c.cuda.functions.elem_size -= 8; }},
    {"table of CUDA functions is damaged", [](Copy &c) { c.cuda.functions.count = UINT32_MAX; }},
    {"table of kernels is damaged", [](Copy &c) { c.programs[0].kernels.count = UINT32_MAX; }},
    // states
    {"two states are called step", [](Copy &c) { c.State("iteration").name = "step"; }},
    {"state fc.batches is not stored as rows", [](Copy &c) { c.State("fc.batches").layout = AMP_LAYOUT_PANELS; }},
    {"state fc.wieght is not the same as on the CPU", [](Copy &c) { c.State("fc.weight").name = "fc.wieght"; }},
    {"state seed is not the same as on the CPU", [](Copy &c) { c.State("seed").counter = AMP_COUNTER_ITERATION; }},
    {"state fc.batches is not the same", [](Copy &c) { c.states.pop_back(); }},
    {"state fc.batches is not the same",
     [](Copy &c) { c.State("fc.batches").storage = c.State("fc.batches").dtype = AMP_DT_F32; }},
    {"state fc.batches is not the same",
     [](Copy &c) { c.State("fc.batches").rank = 1, c.State("fc.batches").dims[0] = 7; }},
    // functions
    {"function 2 has no name or no source", [](Copy &c) { c.functions[2].source = nullptr; }},
    {"function 1 has no name or no source", [](Copy &c) { c.functions[1].entry = nullptr; }},
    {"function count_iteration: what it needs is in no prelude",
     [](Copy &c) {
         static const amp_model_cuda_range range = {3, UINT32_MAX};
         c.functions[0].prelude = {&range, 1};
     }},
    {"what it needs is in no prelude", [](Copy &c) { c.functions[0].prelude.count = 1; }},
    {"its table of images is damaged", [](Copy &c) { c.functions[0].images.data = nullptr; }},
    {"its table of images is damaged", [](Copy &c) { c.functions[0].images.count = 1000; }},
    {"function count_iteration: image 0 is damaged", [](Copy &c) { c.images[0].data = nullptr; }},
    {"function count_iteration: image 0 is damaged", [](Copy &c) { c.images[0].arch = 0; }},
    {"function count_iteration: image 0 is damaged", [](Copy &c) { c.images[0].size = 3; }}, // no NUL
    // buffers and programs
    {"buffer logits is not stored as rows", [](Copy &c) { c.Buffer("logits").layout = AMP_LAYOUT_PANELS; }},
    {"buffer logits is not stored as rows", [](Copy &c) { c.Buffer("logits").storage = AMP_DT_BF16; }},
    {"buffer x is no input", [](Copy &c) { c.Buffer("x").index = 9; }},
    {"flag flag is no int32", [](Copy &c) { c.Buffer("flag").dtype = c.Buffer("flag").storage = AMP_DT_F16; }},
    {"logits lives from kernel 1 to 99", [](Copy &c) { c.Buffer("logits").last_kernel = 99; }},
    {"it has no program eval", [](Copy &c) { c.programs[1].kind = AMP_PROGRAM_OTHER; }},
    {"it has no program refresh, which its derived states need", [](Copy &c) { c.programs.pop_back(); }},
    {"the results of train_step are not those on the CPU", [](Copy &c) { c.results[1].name = "metric.other"; }},
    {"the results of train_step are not those on the CPU", [](Copy &c) { c.results[1].kind = AMP_RESULT_MODEL; }},
    {"the results of train_step are not those on the CPU", [](Copy &c) { c.results.pop_back(); }},
    {"result loss is no buffer", [](Copy &c) { c.results[0].buffer = 77; }},
    {"result loss is a temporary",
     [](Copy &c) {
         c.Buffer("loss").kind = AMP_BUFFER_TEMP;
         c.Buffer("loss").last_kernel = static_cast<int32_t>(c.programs[0].kernels.count) - 1;
     }},
    {"the scalar result loss is stored where the host does not read it",
     [](Copy &c) { c.Buffer("loss").kind = AMP_BUFFER_WATCH; }},
    // kernels
    {"kernel 0 has no name", [](Copy &c) { c.kernels[0].name = nullptr; }},
    {"k00: ranks cannot add up its operands", [](Copy &c) { c.Part("k00", 1).kind = AMP_KERNEL_COLLECTIVE; }},
    {"k00: its operands", [](Copy &c) { c.Kernel("k00").operands.at = nullptr; }},
    {"k00: its operands", [](Copy &c) { c.Kernel("k00").operands.at = outside; }},
    {"k00: its operands", [](Copy &c) { c.Kernel("k00").operands.count = UINT32_MAX; }},
    {"k07: its batch", [](Copy &c) { c.Kernel("k07").operand_table = 0; }},
    {"k07: its batch", [](Copy &c) { c.Kernel("k07").waits.tickets = 1; }},
    {"k07: its batch", [](Copy &c) { c.Kernel("k07").elements.at = nullptr; }},
    {"k07: its batch", [](Copy &c) { c.elements[1].mul = -1; }},
    {"k00: its batch or its sizes", [](Copy &c) { c.Kernel("k00").sizes.count = 1; }},
    {"k00: its batch or its sizes",
     [](Copy &c) {
         c.Kernel("k00").sizes = {c.elements.data(), 33};
     }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").waits.tickets = 1u << 21; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").waits.partial_bytes = 1u << 17; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").waits.partial_bytes = 12; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").choices.count = 0; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").choices.at = nullptr; }},
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 1).block[0] = 0; }},
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 1).block[1] = 9; }}, // 128 * 9 threads
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 2).block[0] = 2048; }},
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 1).shared_bytes = 1 << 20; }},
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 2).function = 10; }},
    {"k00: its launch", [](Copy &c) { c.Choose("k00", 17); }},
    {"k00: its launch", [](Copy &c) { c.Grid("k00").per[0] = -1; }},
    {"k00: its launch", [](Copy &c) { c.Grid("k00").extent[0].mul = 0; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").parts.count = 0; }},
    {"k00: its launch", [](Copy &c) { c.Kernel("k00").parts.at = nullptr; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 33); }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 1).kind = 8; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).kind = AMP_KERNEL_COLLECTIVE; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).grids = nullptr; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).operand_count = 1; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).work_count = 1; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).members = 0; }},
    {"k00: its launch", [](Copy &c) { c.Part("k00", 2).superstep = 1; }}, // without tickets
    {"k00: its launch", [](Copy &c) { c.Part("k00", 1).members = 2; }},   // of a batch that is none
    {"k07: its launch", [](Copy &c) { c.Part("k07", 2).members = 2; }},   // four members, of a batch of two
    {"k07: its launch", [](Copy &c) { c.Part("k07", 1).members = 3; }},   // of ten operands
    {"k07: its launch", [](Copy &c) { c.Kernel("k07").elements.count = 1; }},
    // products of a library, and what follows them
    {"k00: its products", [](Copy &c) { c.Product("k00"), c.Kernel("k00").products.at = nullptr; }},
    {"k00: its products", [](Copy &c) { c.Product("k00"), c.Kernel("k00").products.count = (1u << 16) + 1; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").a = 4; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").b = 4; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").result = UINT32_MAX; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").bias = 5; }}, // from 1
    {"k00: its products", [](Copy &c) { c.Product("k00").a_turned = 2; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").filled = 2; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").b_turned = UINT32_MAX; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").instruction = AMP_INSTRUCTION_PLAIN; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").instruction = AMP_INSTRUCTION_MMA_TF32 + 1; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").parts = 0; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").parts = 1025; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").cols = 0; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").cols = INT64_MIN; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").rows.mul = -1; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").rows.div = 0; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").pitch[2].mul = 0; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").batch.mul = 0; }},
    {"k00: its products", [](Copy &c) { auto &p = c.Product("k00"); p.parts = 2, p.batch.mul = 2; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").stride[0].mul = -4; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").stride[0].div = 0; }},
    {"k00: its products", [](Copy &c) { c.Product("k00").first[2].mul = -16; }},
    {"k00: its products", [](Copy &c) { c.Then("k00"), c.Kernel("k00").products.count = 0; }},
    {"k00: its products", [](Copy &c) { c.Then("k00").products = c.Kernel("k00").products; }},
    {"k00: its products", [](Copy &c) { c.Then("k00").then = &c.kernels[1]; }},
    {"k00: its products", [](Copy &c) { c.Then("k00").waits.tickets = 1; }},
    {"k00: its products", [](Copy &c) { c.Then("k00").waits.partial_bytes = 8; }},
    {"kernel 1 has no name", [](Copy &c) { c.Then("k00").name = nullptr; }},
    {"k00: its operands", [](Copy &c) { c.Then("k00").operands.at = outside; }},
    {"k00: its launch", [](Copy &c) { c.Then("k00").choices.count = 0; }},
    {"k00: its batch or its sizes", [](Copy &c) { c.Then("k00").sizes.count = 1; }},
};

// So that none of these is refused for something else.
TEST(CudaModel, ProductsAreTaken) {
    Copy copy;
    copy.Connect();
    copy.Then("k00");
    amp_error err = {};
    EXPECT_EQ(copy.Load(&err), AMP_OK) << err.message;
}

TEST(CudaModel, EveryDamageIsRefused) {
    for (const Damage &d : damages) {
        Copy copy;
        copy.Connect();
        d.apply(copy);
        // vectors that grew shorter
        if (copy.cuda.states.count != copy.states.size() && copy.cuda.states.data == copy.states.data())
            copy.cuda.states.count = (uint32_t)copy.states.size();
        if (copy.programs.size() < copy.cuda.programs.count && copy.cuda.programs.elem_size)
            copy.cuda.programs.count = (uint32_t)copy.programs.size();
        if (copy.results.size() < copy.programs[0].results.count) copy.programs[0].results.count--;
        amp_error err = {};
        EXPECT_EQ(copy.Load(&err), AMP_BAD_FILE) << d.message;
        EXPECT_NE(std::string(err.message).find(d.message), std::string::npos) << d.message << "\n" << err.message;
    }
}

TEST(CudaModel, ASoundOneHasItsOwnStatesAndPrograms) {
    Copy copy;
    copy.Connect();
    amp_error err = {};
    amp_model *model, *cuda;
    ASSERT_EQ(amp_model_from_desc(&copy.desc, "tiny.so", nullptr, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_model_for(model, "cuda", &cuda, &err), AMP_OK);
    EXPECT_NE(cuda, model);
    EXPECT_EQ(cuda->inputs, model->inputs);
    EXPECT_EQ(cuda->state_count, model->state_count);
    EXPECT_NE(cuda->train_step, nullptr);
    EXPECT_EQ(cuda->train_step->kernels, nullptr);
    EXPECT_STREQ(cuda->train_step->cuda_kernels[0].name, "k_iteration");
    EXPECT_EQ(cuda->function_count, 10);
    amp_model_retain(cuda); // one count for both
    amp_model_release(model);
    EXPECT_STREQ(cuda->train_step->name, "train_step");
    amp_model_release(cuda);
}

TEST(CudaModel, EveryAllocationMayFail) {
    for (int fail = 0;; fail++) {
        ASSERT_LT(fail, 1000);
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp_model *model = nullptr;
        amp_error err = {};
        amp_status status = amp_model_from_desc(tiny_cuda_desc(), "tiny", &a, &model, &err);
        amp_model_release(model);
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << fail << ": " << err.message;
    }
}

TEST(CudaModel, WithoutCodeItSaysWhyNot) {
    amp_model_desc desc = *amp_model_query();
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp_error err = {};
    for (const char *why : {"some op has no CUDA code yet", (const char *)nullptr}) {
        desc.cuda_missing = why;
        ASSERT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK);
        amp::SessionOptions o = TinyOptions(8);
        o.device = "cuda";
        EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_UNSUPPORTED);
        EXPECT_STREQ(err.message,
                     (std::string("tiny: the model has no CUDA code (") + (why ? why : "it was compiled without") +
                      "); run it on the device \"cpu\" (--device cpu), or compile it with ampc --target both")
                         .c_str());
        amp_params_release(params);
        amp_model_release(model);
    }
}

} // namespace
