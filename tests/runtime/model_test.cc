// Descriptors: what a sound one reports, and that every damaged number, index and pointer is refused.
#include <array>
#include <cstddef>
#include <deque>
#include <functional>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/tiny.h"

namespace {

// A copy of the tiny model's descriptor whose tables can be changed.
struct Copy {
    amp_model_desc desc = *amp_model_query();
    std::vector<amp_model_state> states = Of<amp_model_state>(desc.states);
    std::vector<amp_model_input> inputs = Of<amp_model_input>(desc.inputs);
    std::vector<amp_model_program> programs = Of<amp_model_program>(desc.programs);
    std::vector<amp_model_decision> decisions = Of<amp_model_decision>(desc.decisions);
    std::vector<amp_model_buffer> buffers = Of<amp_model_buffer>(programs[0].buffers);
    std::vector<amp_model_kernel> kernels = Of<amp_model_kernel>(programs[0].kernels);
    std::vector<amp_model_result> results = Of<amp_model_result>(programs[0].results);

    template <typename T> static std::vector<T> Of(const amp_model_table &t) {
        return std::vector<T>((const T *)t.data, (const T *)t.data + t.count);
    }
    template <typename T> static amp_model_table Table(const std::vector<T> &v) {
        return {(uint32_t)v.size(), sizeof(T), v.data()};
    }
    amp_model_batch batch = {};
    std::deque<std::array<amp_model_dim, 2>> dims;
    // What a test has changed; matrices have the dimensions of their rows and columns.
    void Connect() {
        for (amp_model_buffer &b : buffers)
            if (b.rank == 2) dims.push_back({b.rows, b.cols}), b.dims = dims.back().data();
        desc.states = Table(states), desc.inputs = Table(inputs), desc.programs = Table(programs);
        desc.decisions = Table(decisions);
        programs[0].buffers = Table(buffers), programs[0].kernels = Table(kernels),
        programs[0].results = Table(results);
    }
    // One train block with a group that sets lr_scale, which fc.weight has.
    amp_model_train train = {nullptr, "sgd(lr = 0.1)"};
    amp_model_group group = {"*", 0, AMP_GROUP_LR_SCALE, 0.5, 0, 1, nullptr};
    void Train() {
        desc.trains = {1, sizeof train, &train};
        desc.groups = {1, sizeof group, &group};
        states[0].train_block = states[0].lr_scale_group = 1;
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
    amp_model_kernel &Kernel(const char *name) {
        for (amp_model_kernel &k : kernels)
            if (!strcmp(k.name, name)) return k;
        return kernels[0];
    }
    amp_model_buffer &Named(const std::string &name) {
        for (amp_model_buffer &b : buffers)
            if (name == b.name) return b;
        return buffers[0];
    }
    amp_model_buffer &Buffer(uint32_t kind) {
        for (amp_model_buffer &b : buffers)
            if (b.kind == kind) return b;
        return buffers[0];
    }
};

struct Damage {
    const char *message;
    std::function<void(Copy &)> apply;
};

const uint32_t *const none = nullptr;
const amp_model_dim seven_n[] = {{7, 1, 1, 0}}, no_elements[] = {{0, 1, 0, 0}};
const uint32_t outside[] = {0, 1, 99, 3}, twice[] = {0, 0}, fifth[] = {4};

// The first product as a batch of one.
amp_model_batch &Batch(Copy &c) {
    amp_model_kernel &k = c.Kernel("k01");
    c.batch.m = k.rows;
    c.batch.n = k.cols;
    k.batch = &c.batch;
    return c.batch;
}

Copy &Lengths(Copy &c) { // T from 8 to 64
    c.desc.length_most = 64, c.desc.length_unit = 8;
    return c;
}

const Damage damages[] = {
    {"not a model of ampc", [](Copy &c) { c.desc.magic++; }},
    {"descriptor is damaged, or of another build of ampc (64 bytes, not ",
     [](Copy &c) { c.desc.struct_size = 64; }},
    {"descriptor is damaged", [](Copy &c) { c.desc.struct_size += 8; }},
    {"has no policy", [](Copy &c) { c.desc.policy = nullptr; }},
    {"table of states is damaged", [](Copy &c) { c.desc.states.data = nullptr; }},
    {"table of inputs is damaged", [](Copy &c) { c.desc.inputs.elem_size = 0; }},
    {"table of states is damaged", [](Copy &c) { c.desc.states.elem_size -= 8; }},
    {"table of inputs is damaged", [](Copy &c) { c.desc.inputs.elem_size += 8; }},
    {"table of decisions is damaged, or of another build of ampc (1 elements of 8 bytes): compile its .amp again",
     [](Copy &c) { c.desc.decisions.elem_size = 8; }},
    {"table of buffers is damaged", [](Copy &c) { c.programs[0].buffers.elem_size = 64; }},
    {"table of results is damaged", [](Copy &c) { c.programs[0].results.elem_size |= 4; }},
    {"table of programs is damaged", [](Copy &c) { c.desc.programs.count = 1u << 31; }},
    {"table of kernels is damaged", [](Copy &c) { c.programs[0].kernels.count = UINT32_MAX; }},
    // states
    {"state 1 has no name", [](Copy &c) { c.states[1].name = nullptr; }},
    {"two states are called fc.bias", [](Copy &c) { c.states[0].name = "fc.bias"; }},
    {"fc.weight: unknown type or layout", [](Copy &c) { c.states[0].storage = 77; }},
    {"fc.weight: unknown type or layout", [](Copy &c) { c.states[0].layout = 5; }},
    {"fc.weight: its shape", [](Copy &c) { c.states[0].rank = 9; }},
    {"fc.weight: its shape", [](Copy &c) { c.states[0].dims[0] = 0; }},
    {"fc.weight: its shape", [](Copy &c) { c.states[0].dims[0] = -3; }},
    {"fc.weight: its shape", [](Copy &c) { c.states[0].dims[0] = c.states[0].dims[1] = (int64_t)1 << 36; }},
    {"unknown initialiser magic", [](Copy &c) { c.states[0].init = "magic"; }},
    {"fc.weight does not fit its role", [](Copy &c) { c.states[0].role = 6; }},
    {"fc.weight does not fit its role", [](Copy &c) { c.states[0].storage = AMP_DT_F16; }},
    {"fc.weight does not fit its role", [](Copy &c) { c.states[0].dtype = c.states[0].storage = AMP_DT_F8M; }},
    {"fc.weight/momentum does not fit its role", [](Copy &c) { c.states[2].of = 99; }},
    {"fc.weight/momentum does not fit its role", [](Copy &c) { c.states[2].of = -1; }},
    {"fc.weight/momentum does not fit its role", [](Copy &c) { c.states[2].slot = nullptr; }},
    {"fc.weight/momentum does not fit its role", [](Copy &c) { c.states[2].of = 1; }},
    {"fc.weight/momentum does not fit its role", [](Copy &c) { c.states[2].rank = 1, c.states[2].dims[0] = 1; }},
    {"step does not fit its role", [](Copy &c) { c.states[4].storage = AMP_DT_I32; }},
    {"scale does not fit its role", [](Copy &c) { c.states[7].rank = 1, c.states[7].dims[0] = 1; }},
    {"scale does not fit its role", [](Copy &c) { c.states[7].counter = AMP_COUNTER_STEP; }},
    {"seed does not fit its role", [](Copy &c) { c.states[6].counter = AMP_COUNTER_NONE; }},
    {"seed does not fit its role", [](Copy &c) { c.states[6].counter = AMP_COUNTER_MICRO + 1; }},
    {"step does not fit its role", [](Copy &c) { c.states[4].counter_block = -2; }},
    {"fc.bias does not fit its role", [](Copy &c) { c.states[1].counter = AMP_COUNTER_STEP; }},
    // train blocks and groups
    {"state fc.weight: its train block or one of its groups is none", [](Copy &c) { c.states[0].train_block = 1; }},
    {"state fc.weight: its train block or one of its groups is none",
     [](Copy &c) { c.Train(), c.states[0].train_block = 2; }},
    {"state fc.weight: its train block or one of its groups is none",
     [](Copy &c) { c.Train(), c.states[0].lr_scale_group = 2; }},
    {"state fc.weight: its train block or one of its groups is none",
     [](Copy &c) { c.Train(), c.states[0].frozen_group = 1; }},
    {"state fc.bias: its train block or one of its groups is none",
     [](Copy &c) { c.Train(), c.states[1].lr_scale_group = 1; }},
    {"train block 0 has no optimizer", [](Copy &c) { c.Train(), c.train.optimizer = nullptr; }},
    {"state fc.weight: its train block or one of its groups is none",
     [](Copy &c) { c.Train(), c.states[0].optimizer_group = 1; }},
    {"group 0 has no pattern, no train block or no optimizer", [](Copy &c) { c.Train(), c.group.train_block = 1; }},
    {"group 0 has no pattern, no train block or no optimizer", [](Copy &c) { c.Train(), c.group.pattern = nullptr; }},
    {"group 0 has no pattern, no train block or no optimizer",
     [](Copy &c) { c.Train(), c.group.sets |= AMP_GROUP_OPTIMIZER; }},
    {"group 0 has no pattern, no train block or no optimizer",
     [](Copy &c) { c.Train(), c.group.optimizer = "lion(lr = 0.1)"; }},
    {"panels_t does not fit its role", [](Copy &c) { c.states[10].of = 2; }},
    // inputs
    {"two inputs are called x", [](Copy &c) { c.inputs[1].name = "x"; }},
    // T
    {"its size T is at most 0, in steps of 8", [](Copy &c) { c.desc.length_unit = 8; }},
    {"its size T is at most 64, in steps of 0", [](Copy &c) { c.desc.length_most = 64; }},
    {"its size T is at most 10, in steps of 4", [](Copy &c) { c.desc.length_most = 10, c.desc.length_unit = 4; }},
    {"input x: its shape", [](Copy &c) { c.inputs[0].dims[0].of_t = 1; }},
    {"input x: its shape", [](Copy &c) { Lengths(c).inputs[0].dims[0].of_t = 3; }},
    {"input x: its shape", [](Copy &c) { Lengths(c).inputs[0].dims[0] = {1, 3, 0, 1}; }},
    {"input x: its shape", [](Copy &c) { Lengths(c).inputs[0].dims[0] = {int64_t{1} << 37, 1, 1, 1}; }},
    {"buffer x does not fit input x", [](Copy &c) { Lengths(c).inputs[0].dims[0].of_t = 1; }},
    {"k00: its rows are not whole segments", [](Copy &c) { Lengths(c).Kernel("k00").segment = {1, 1, 0, 1}; }},
    {"input x: unknown type", [](Copy &c) { c.inputs[0].dtype = 0; }},
    {"input x: unknown type", [](Copy &c) { c.inputs[0].dtype = AMP_DT_F8M; }},
    {"input x: its shape", [](Copy &c) { c.inputs[0].rank = 100; }},
    {"input x: its shape", [](Copy &c) { c.inputs[0].dims[0].div = 0; }},
    {"input x: its shape", [](Copy &c) { c.inputs[0].dims[1].mul = INT64_MIN; }},
    {"input targets of the model comes after", [](Copy &c) { c.inputs[0].train_only = 1, c.inputs[1].train_only = 0; }},
    {"input x: class indices must be i32", [](Copy &c) { c.inputs[0].index_bound = 3; }},
    // programs and buffers
    {"two programs are called eval", [](Copy &c) { c.programs[0].name = "eval"; }},
    {"program 0 has no name", [](Copy &c) { c.programs[0].name = nullptr; }},
    {"buffer 2 has no name", [](Copy &c) { c.buffers[2].name = nullptr; }},
    {"buffer x: unknown kind", [](Copy &c) { c.buffers[0].kind = 7; }},
    {"buffer x: unknown kind, type or layout", [](Copy &c) { c.buffers[0].dtype = 12; }},
    {"buffer x: its shape", [](Copy &c) { c.buffers[0].rows.mul = 0; }},
    {"buffer x is no input", [](Copy &c) { c.buffers[0].index = 2; }},
    {"buffer x does not fit input x", [](Copy &c) { c.buffers[0].cols.mul++, c.Connect(); }},
    {"buffer x does not fit input x", [](Copy &c) { c.buffers[0].layout = AMP_LAYOUT_PANELS; }},
    {"is no state", [](Copy &c) { c.Buffer(AMP_BUFFER_STATE).index = -1; }},
    {"does not fit state",
     [](Copy &c) { c.Buffer(AMP_BUFFER_STATE).cols.mul = 1000, c.Connect(); }},
    {"does not fit state", [](Copy &c) { c.Buffer(AMP_BUFFER_STATE).storage = AMP_DT_F64; }},
    {"lives from kernel 5 to 99",
     [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).first_kernel = 5, c.Buffer(AMP_BUFFER_TEMP).last_kernel = 99; }},
    {"cannot have the place that it names", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).place = 1000; }},
    {"cannot have the place that it names", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).place = 1; }},
    {"cannot have the place that it names", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).renamed = 1; }},
    {"is no temporary, but renamed", [](Copy &c) { c.Buffer(AMP_BUFFER_OUTPUT).renamed = 1; }},
    {"is no temporary, but renamed", [](Copy &c) { c.Buffer(AMP_BUFFER_STATE).renamed = 1; }},
    {"its padding is damaged", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).padding = 1; }}, // on the CPU
    {"is no part of its rows", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).part = 1; }},
    {"is no part of its rows",
     [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).padding = 1, c.Buffer(AMP_BUFFER_TEMP).part = 3; }},
    {"is no part of its rows",
     [](Copy &c) { c.Buffer(AMP_BUFFER_STATE).padding = c.Buffer(AMP_BUFFER_STATE).part = 1; }},
    {"lives from kernel -2", [](Copy &c) { c.Buffer(AMP_BUFFER_TEMP).first_kernel = -2; }},
    {"flag flag is no int32", [](Copy &c) { c.Buffer(AMP_BUFFER_FLAG).storage = AMP_DT_F16; }},
    {"output loss is not stored as rows of f32", [](Copy &c) { c.Buffer(AMP_BUFFER_OUTPUT).storage = AMP_DT_F16; }},
    // kernels
    {"kernel 0 has no name", [](Copy &c) { c.kernels[0].name = nullptr; }},
    {"k00: unknown kind", [](Copy &c) { c.Kernel("k00").kind = 8; }},
    {"k00: ranks cannot add up its operands", [](Copy &c) { c.Kernel("k00").kind = AMP_KERNEL_COLLECTIVE; }},
    {"k00: its operands", [](Copy &c) { c.Kernel("k00").operands = none; }},
    {"k01: its operands are not buffers", [](Copy &c) { c.Kernel("k01").operands = outside; }},
    {"k00: its operands", [](Copy &c) { c.Kernel("k00").operand_count = 4097; }},
    {"k09: it updates what is no operand",
     [](Copy &c) {
         c.Kernel("k09").updates = outside;
         c.Kernel("k09").update_count = 3;
     }},
    {"k09: its predicate", [](Copy &c) { c.Kernel("k09").predicate = 1000; }},
    {"k09: its predicate", [](Copy &c) { c.Kernel("k09").predicate = -2; }},
    {"k00: its space", [](Copy &c) { c.Kernel("k00").rows.div = -1; }},
    {"k00: has no function", [](Copy &c) { c.Kernel("k00").run[0] = nullptr; }},
    {"k01: products are of f32 or bf16", [](Copy &c) { c.Kernel("k01").product.operand = AMP_DT_F16; }},
    {"k01: its inner dimension", [](Copy &c) { c.Kernel("k01").product.k.mul = 0; }},
    {"k01: the operands of its product", [](Copy &c) { c.Kernel("k01").product.a = 4; }},
    {"k01: the operands of its product", [](Copy &c) { c.Kernel("k01").product.b = -1; }},
    {"k01: the operands of its product", [](Copy &c) { c.Kernel("k01").product.k.mul = 80; }},
    {"k01: the operands of its product", [](Copy &c) { c.Kernel("k01").product.b_transposed = 0; }},
    {"k01: the operands of its product", [](Copy &c) { c.Kernel("k01").cols.mul = 4000; }},
    {"k01: the operands of its product", /* dense, but as wide as a panel */
     [](Copy &c) {
         amp_model_kernel &k = c.Kernel("k01");
         c.buffers[k.operands[k.product.a]].layout = AMP_LAYOUT_ROWS;
     }},
    {"k01: its batch of products is damaged", [](Copy &c) { c.Kernel("k01").batch = &c.batch; }},
    {"k01: its batch of products is damaged", [](Copy &c) { Batch(c).rank = AMP_MODEL_BATCH_MAX_DIMS + 1; }},
    {"k01: its batch of products is damaged", [](Copy &c) { Batch(c).in_columns = 1; }},
    {"k01: its batch of products is damaged", [](Copy &c) { Batch(c).a.pitch.mul = -1; }},
    {"k01: the operands of its batch of products", [](Copy &c) { Batch(c); }}, /* panels, not rows */
    {"k00: its rows are not whole segments", [](Copy &c) { c.Kernel("k00").segment = {1, 1, 0, 0}; }},
    {"k03: its rows are not whole segments", [](Copy &c) { c.Kernel("k03").segment = {-1, 1, 0, 0}; }},
    {"k03: its rows are not whole segments", [](Copy &c) { c.Kernel("k03").segment = {2, 1, 0, 0}; }},
    {"k01: its window is damaged", [](Copy &c) { c.Kernel("k01").window.kind = AMP_WINDOW_CONV; }},
    {"k01: its window is damaged", [](Copy &c) { c.Kernel("k01").window.kind = 4; }},
    {"buffer x: its dimensions", [](Copy &c) { c.buffers[0].rank = 9; }},
    {"buffer x: its dimensions", [](Copy &c) { c.buffers[0].rank = 1, c.buffers[0].dims = seven_n; }},
    {"buffer x: its dimensions", [](Copy &c) { c.buffers[0].rank = 1, c.buffers[0].dims = no_elements; }},
    {"buffer x: its dimensions", [](Copy &c) { c.buffers[0].dims = nullptr; }},
    // buffers as kernels use them
    {"k02 (3) uses buffer logits, which lives from kernel 2 to 2", [](Copy &c) { c.Named("logits").last_kernel = 2; }},
    {"k05 (6) uses buffer d.fc.bias, which lives from kernel 7 to 11",
     [](Copy &c) { c.Named("d.fc.bias").first_kernel = 7; }},
    {"k01 (1) uses buffer logits", [](Copy &c) { std::swap(c.kernels[1], c.kernels[2]); }},
    {"k09 (10) has the predicate ok, which lives from kernel 8 to 9",
     [](Copy &c) { c.Named("ok").last_kernel = 9; }},
    {"k02 uses buffer logits, which is written only where the session keeps values",
     [](Copy &c) { c.Named("logits").kind = AMP_BUFFER_WATCH; }},
    {"buffer fc.bias is no input and no state", [](Copy &c) { c.Named("fc.bias").kind = AMP_BUFFER_WATCH; }},
    {"k00 has buffer x as two operands", [](Copy &c) { c.Kernel("k00").operands = twice; }},
    {"k06: it updates a buffer that is written only where",
     [](Copy &c) { c.Kernel("k06").updates = fifth, c.Kernel("k06").update_count = 1; }},
    {"k00: its space is larger", [](Copy &c) { c.Kernel("k00").rows.mul = 3; }},
    {"k00: its space is larger", [](Copy &c) { c.Kernel("k00").cols.mul = 4000; }},
    {"k02: its space is larger", [](Copy &c) { c.Kernel("k02").rows.mul = 1000; }},
    {"k00: its space is larger", /* whose elements are 2^64, and more at twice the samples */
     [](Copy &c) { c.Kernel("k00").rows.mul = int64_t(1) << 33, c.Kernel("k00").cols.mul = int64_t(1) << 31; }},
    {"k05: its space is larger", [](Copy &c) { c.Kernel("k05").cols.mul = 1000, c.Kernel("k05").cols.of_n = 1; }},
    {"k01: it is no product", [](Copy &c) { c.Kernel("k01").kind = AMP_KERNEL_TILE; }},
    {"result loss is a temporary",
     [](Copy &c) { c.Named("loss").kind = AMP_BUFFER_TEMP, c.Named("loss").last_kernel = 11; }},
    // results
    {"result loss is no buffer", [](Copy &c) { c.results[0].buffer = 55; }},
    {"result loss does not fit", [](Copy &c) { c.results[0].rank = 1, c.results[0].dims[0] = {7, 1, 0, 0}; }},
    {"train_step has no result loss", [](Copy &c) { c.results[0].kind = AMP_RESULT_METRIC; }},
    {"train_step has no result loss", [](Copy &c) { c.results[0].index = 0; }},
    {"result loss is of no state or train block", [](Copy &c) { c.results[0].index = -2; }},
    {"result grad.fc.weight is of no state", [](Copy &c) { c.results[3].index = 12; }},
    {"decision 0 has no path", [](Copy &c) { c.decisions[0].reason = nullptr; }},
};

TEST(Model, EveryDamageIsNamed) {
    for (const Damage &d : damages) {
        Copy c;
        amp_error err = {};
        c.Connect();
        d.apply(c);
        EXPECT_EQ(c.Load(&err), AMP_BAD_FILE) << d.message;
        EXPECT_NE(std::string(err.message).find(d.message), std::string::npos) << d.message << " | " << err.message;
        EXPECT_EQ(std::string(err.message).find("tiny.so: "), 0u) << err.message;
    }
}

// The product k01 as 3 x 3 windows of images of 4 x 5 with 6 channels, 10 of the result; A, B and the kernel's space
// fit.
struct WindowCopy : Copy {
    explicit WindowCopy(uint32_t kind, uint32_t operand = AMP_DT_F32) {
        amp_model_kernel &k = Kernel("k01");
        const amp_model_dim x = {20, 1, 1, 0}, y = {6, 1, 1, 0}, taps = {54, 1, 0, 0}, c = {6, 1, 0, 0},
                            oc = {10, 1, 0, 0}, back = {90, 1, 0, 0};
        const bool data = kind == AMP_WINDOW_CONV_DATA, weight = kind == AMP_WINDOW_CONV_WEIGHT;
        const uint32_t weights = operand == AMP_DT_BF16 ? AMP_LAYOUT_PAIRS : AMP_LAYOUT_PANELS;
        Add("a", operand, AMP_LAYOUT_ROWS, data ? y : x, data ? oc : c);
        Add("b", operand, weight ? (uint32_t)AMP_LAYOUT_PANELS : weights,
            weight ? y
            : data ? back
                   : taps,
            data ? c : oc);
        k.rows = weight ? taps : data ? x : y, k.cols = data ? c : oc;
        Add("y", AMP_DT_F32, AMP_LAYOUT_ROWS, k.rows, k.cols);
        const uint32_t last = (uint32_t)buffers.size() - 1;
        operands = {last - 2, last - 1, last};
        k.operands = operands.data(), k.operand_count = 3;
        k.product = {operand, 0, 0, 0, 1, {1, 1, 0, 0}};
        k.window = {kind, 4, 5, 6, 2, 3, 10, 3, 3, {1, 1}, {0, 0}, {1, 1}, 0};
    }
    void Add(const char *name, uint32_t type, uint32_t layout, amp_model_dim rows, amp_model_dim cols) {
        amp_model_buffer b = {};
        b.name = name, b.kind = AMP_BUFFER_TEMP, b.dtype = b.storage = type, b.layout = layout;
        b.index = -1, b.rows = rows, b.cols = cols, b.rank = 2, b.last_kernel = 2;
        buffers.push_back(b);
    }
    amp_model_window &Window() { return Kernel("k01").window; }
    amp_model_buffer &A() { return buffers[operands[0]]; }
    amp_model_buffer &B() { return buffers[operands[1]]; }
    std::vector<uint32_t> operands;
};

TEST(Model, SoundWindowsAreAccepted) {
    for (uint32_t kind : {AMP_WINDOW_CONV, AMP_WINDOW_CONV_DATA, AMP_WINDOW_CONV_WEIGHT})
        for (uint32_t operand : {AMP_DT_F32, AMP_DT_BF16}) {
            WindowCopy c(kind, operand);
            c.Connect();
            amp_error err = {};
            EXPECT_EQ(c.Load(&err), AMP_OK) << kind << ": " << err.message;
        }
}

TEST(Model, EveryDamageOfAWindowIsNamed) {
    const struct {
        const char *message;
        std::function<void(WindowCopy &)> apply;
    } wrong[] = {
        {"its window", [](WindowCopy &c) { c.Window().h = 0; }},
        {"its window", [](WindowCopy &c) { c.Window().h = INT32_MAX; }},
        {"its window", [](WindowCopy &c) { c.Window().kw = -1; }},
        {"its window", [](WindowCopy &c) { c.Window().oh++; }},
        {"its window", [](WindowCopy &c) { c.Window().ow--; }},
        {"its window", [](WindowCopy &c) { c.Window().stride[0] = 0; }},
        {"its window", [](WindowCopy &c) { c.Window().stride[1] = 2; }},
        {"its window", [](WindowCopy &c) { c.Window().padding[0] = -1; }},
        {"its window", [](WindowCopy &c) { c.Window().padding[1] = 1; }},
        {"its window", [](WindowCopy &c) { c.Window().dilation[1] = 0; }},
        {"its window", [](WindowCopy &c) { c.Window().dilation[0] = 1 << 20; }},
        {"its window", [](WindowCopy &c) { c.Window().c = c.Window().oc = 1 << 20; }},
        {"its window", [](WindowCopy &c) { c.Window().groups = -1; }},
        {"its window", [](WindowCopy &c) { c.Window().groups = 4; }},
        {"of its image product", [](WindowCopy &c) { c.Window().groups = 2; }},
        {"not transposed", [](WindowCopy &c) { c.Kernel("k01").product.a_transposed = 1; }},
        {"of its image product", [](WindowCopy &c) { c.Window().c = 5; }},
        {"of its image product", [](WindowCopy &c) { c.Window().oc = 11; }},
        {"of its image product", [](WindowCopy &c) { c.Kernel("k01").product.a = 2; }},
        {"of its image product", [](WindowCopy &c) { c.Kernel("k01").product.b = -1; }},
        {"of its image product", [](WindowCopy &c) { c.A().rows.mul = 21; }},
        {"of its image product", [](WindowCopy &c) { c.A().rows.mul = 40; }},
        {"of its image product", [](WindowCopy &c) { c.A().rows.of_n = 0; }},
        {"of its image product", [](WindowCopy &c) { c.A().layout = AMP_LAYOUT_PAIRS; }},
        {"of its image product", [](WindowCopy &c) { c.A().storage = AMP_DT_F16; }},
        {"of its image product", [](WindowCopy &c) { c.A().cols.of_n = 1; }},
        {"of its image product", [](WindowCopy &c) { c.B().rows.mul--; }},
        {"of its image product", [](WindowCopy &c) { c.B().cols.mul++; }},
        {"of its image product", [](WindowCopy &c) { c.B().layout = AMP_LAYOUT_PANELS_T; }},
        {"of its image product", [](WindowCopy &c) { c.Kernel("k01").rows.mul++; }},
        {"of its image product", [](WindowCopy &c) { c.Kernel("k01").cols.mul++; }},
    };
    for (uint32_t kind : {AMP_WINDOW_CONV, AMP_WINDOW_CONV_DATA, AMP_WINDOW_CONV_WEIGHT})
        for (const auto &w : wrong) {
            WindowCopy c(kind);
            w.apply(c);
            c.Connect();
            amp_error err = {};
            EXPECT_EQ(c.Load(&err), AMP_BAD_FILE) << kind << ": " << w.message;
            EXPECT_NE(std::string(err.message).find(w.message), std::string::npos) << w.message << " | " << err.message;
        }
    WindowCopy odd(AMP_WINDOW_CONV_DATA, AMP_DT_BF16); // a pair of bf16 would hold two taps
    odd.Window().oc = 9, odd.A().cols.mul = 9, odd.B().rows.mul = 81;
    odd.Connect();
    amp_error err = {};
    EXPECT_EQ(odd.Load(&err), AMP_BAD_FILE);
}

// k01 as attention of 4 heads of queries and 2 of keys in each sample, 3 queries and 5 keys of width 6, with a mask.
struct AttentionCopy : Copy {
    explicit AttentionCopy(bool backward) {
        amp_model_kernel &k = Kernel("k01");
        const amp_model_dim n = {1, 1, 1, 0}, one = {1, 1, 0, 0};
        k.kind = AMP_KERNEL_ATTENTION, k.product = {}, k.attention = &attention;
        k.rows = {3, 1, 1, 0}, k.cols = {24, 1, 0, 0};
        attention.backward = backward, attention.storage = AMP_DT_F32;
        attention.rank = 2, attention.dims[0] = n, attention.dims[1] = {4, 1, 0, 0}, attention.share = 2;
        attention.queries = {3, 1, 0, 0}, attention.keys = {5, 1, 0, 0}, attention.width = attention.v_width = 6;
        attention.q = Add(3, 24, 6), attention.k = Add(5, 12, 6), attention.v = Add(5, 12, 6);
        attention.mask = Add(3, 5, 0), attention.mask.at.strides[0] = {0, 1, 0, 0};
        attention.dy = attention.result[1] = attention.result[2] = {AMP_MODEL_NONE, 0, {}};
        attention.y = AMP_MODEL_NONE;
        attention.sums = Add(12, 1, 3), attention.sums.at.pitch = one;
        attention.result[0] = Add(3, 24, 6);
        if (backward) {
            attention.dy = Add(3, 24, 6), attention.y = (int32_t)operands.size();
            Add(3, 24, 6), attention.result[1] = Add(5, 12, 6), attention.result[2] = Add(5, 12, 6);
        }
        k.operands = operands.data(), k.operand_count = (uint32_t)operands.size();
    }
    // |rows| of |cols| numbers in each sample, heads |head| apart.
    amp_model_attention_operand Add(int64_t rows, int64_t cols, int64_t head) {
        amp_model_buffer b = {};
        b.name = "rows", b.kind = AMP_BUFFER_TEMP, b.dtype = b.storage = AMP_DT_F32;
        b.index = -1, b.rows = {rows, 1, 1, 0}, b.cols = {cols, 1, 0, 0}, b.rank = 2, b.last_kernel = 2;
        buffers.push_back(b);
        operands.push_back((uint32_t)buffers.size() - 1);
        amp_model_attention_operand x = {};
        x.operand = (int32_t)operands.size() - 1;
        x.at.pitch = {cols, 1, 0, 0}, x.at.strides[0] = {rows * cols, 1, 0, 0}, x.at.strides[1] = {head, 1, 0, 0};
        return x;
    }
    amp_model_buffer &Of(const amp_model_attention_operand &x) { return buffers[operands[(size_t)x.operand]]; }
    amp_model_attention attention = {};
    std::vector<uint32_t> operands;
};

TEST(Model, SoundAttentionIsAccepted) {
    for (bool backward : {false, true}) {
        AttentionCopy c(backward);
        c.Connect();
        amp_error err = {};
        EXPECT_EQ(c.Load(&err), AMP_OK) << err.message;
    }
}

TEST(Model, EveryDamageOfAttentionIsNamed) {
    const struct {
        const char *message;
        std::function<void(AttentionCopy &)> apply;
    } wrong[] = {
        {"its attention is damaged", [](AttentionCopy &c) { c.Kernel("k01").attention = nullptr; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.storage = AMP_DT_F16; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.rank = 0; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.rank = 7; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.backward = 2; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.causal = 3; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.share = 3; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.share = 0; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.queries.mul = 0; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.keys.mul = INT64_MAX; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.width = 257; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.v_width = -1; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.dims[0].mul = 0; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.dims[1].of_n = 1; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.q.at.offset = -1; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.k.at.pitch.mul = -4; }},
        {"its attention is damaged", [](AttentionCopy &c) { c.attention.mask.one_step = 2; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.q.operand = AMP_MODEL_NONE; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.v.operand = 99; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.q.at.offset = 1; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.k.at.pitch.mul++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.v.at.strides[0].mul++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.share = 1; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.queries.mul++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.keys.mul++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.width++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.v_width++; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.dims[0].mul = 2; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.q).storage = AMP_DT_BF16; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.k).layout = AMP_LAYOUT_PANELS; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.mask).storage = AMP_DT_BF16; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.mask.at.strides[1].mul = 1; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.sums).rows.mul = 11; }},
        {"of its attention", [](AttentionCopy &c) { c.attention.sums.at.pitch.mul = 0; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.result[0]).rows.mul = 2; }},
        {"of its attention", [](AttentionCopy &c) { c.Of(c.attention.result[0]).layout = AMP_LAYOUT_PANELS; }},
        {"it is no product, or no attention", [](AttentionCopy &c) { c.Kernel("k01").kind = AMP_KERNEL_TILE; }},
    };
    for (bool backward : {false, true})
        for (const auto &w : wrong) {
            AttentionCopy c(backward);
            w.apply(c);
            c.Connect();
            amp_error err = {};
            EXPECT_EQ(c.Load(&err), AMP_BAD_FILE) << backward << ": " << w.message;
            EXPECT_NE(std::string(err.message).find(w.message), std::string::npos) << w.message << " | " << err.message;
        }
    AttentionCopy without(true), extra(false);
    without.attention.y = AMP_MODEL_NONE, without.Connect();
    extra.attention.result[1] = extra.attention.result[0], extra.Connect();
    amp_error err = {};
    EXPECT_EQ(without.Load(&err), AMP_BAD_FILE);
    EXPECT_EQ(extra.Load(&err), AMP_BAD_FILE);
}

// The numbers are the text's.
TEST(Version, NumbersAndText) {
    EXPECT_STREQ(amp_version(), AMP_VERSION);
    EXPECT_EQ(std::string(AMP_VERSION), std::to_string(AMP_VERSION_MAJOR) + "." + std::to_string(AMP_VERSION_MINOR) +
                                            "." + std::to_string(AMP_VERSION_PATCH));
#if AMP_VERSION_NUMBER < AMP_VERSION_AT(0, 1, 0) || AMP_VERSION_NUMBER >= AMP_VERSION_AT(1, 0, 0)
#error "the preprocessor compares versions"
#endif
}

TEST(Model, OnlyStepsKeepValues) {
    Copy c;
    c.Connect();
    std::vector<amp_model_buffer> eval = Copy::Of<amp_model_buffer>(c.programs[1].buffers);
    for (amp_model_buffer &b : eval)
        if (!strcmp(b.name, "losses")) b.kind = AMP_BUFFER_WATCH;
    c.programs[1].buffers = Copy::Table(eval);
    amp_error err = {};
    EXPECT_EQ(c.Load(&err), AMP_BAD_FILE);
    EXPECT_NE(std::string(err.message).find("eval: buffer losses is kept, but this program is no step"),
              std::string::npos)
        << err.message;
}

TEST(Model, OfAnotherVersionIsRefusedAsSuch) {
    for (const char *version : {"0.0.9", "1.0.0", "0.1.0-of-a-fork..", ""}) {
        Copy c;
        amp_error err = {};
        c.Connect();
        strncpy(c.desc.version, version, sizeof c.desc.version);
        c.desc.struct_size = 8; // whatever else it has is not looked at
        EXPECT_EQ(c.Load(&err), AMP_UNSUPPORTED);
        EXPECT_EQ(err.message, "tiny.so: a model of ampc " + std::string(version, strnlen(version, 16)) +
                                   ", and this is libamp " AMP_VERSION
                                   ", which runs models of its own version: compile its .amp again with this one");
    }
}

// The tiny model with functions from an instruction set on, as ampc --isa native writes it.
struct OneSet : Copy {
    std::vector<std::vector<amp_model_kernel>> all;
    explicit OneSet(int isa) {
        Connect();
        for (const amp_model_program &p : programs) all.push_back(Of<amp_model_kernel>(p.kernels));
        for (size_t i = 0; i < all.size(); i++) {
            for (amp_model_kernel &k : all[i]) {
                const amp_kernel_fn run = k.run[0];
                for (amp_kernel_fn &each : k.run) each = nullptr;
                k.run[isa] = run;
            }
            programs[i].kernels = Table(all[i]);
        }
    }
};

TEST(Model, OfOneInstructionSetSaysWhich) {
    amp_error err = {};
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) {
        const char *const words[] = AMP_ISA_WORDS;
        OneSet c(isa);
        amp_model *model = nullptr;
        ASSERT_EQ(amp_model_from_desc(&c.desc, "tiny.so", nullptr, &model, &err), AMP_OK) << err.message;
        EXPECT_STREQ(amp_model_isa_name(model, 0), words[isa]);
        EXPECT_EQ(amp_model_isa_name(model, 1), nullptr);
        EXPECT_EQ(amp_model_isa_name(model, -1), nullptr);
        amp_params *params = nullptr;
        amp_session *session = nullptr;
        amp::SessionOptions o;
        o.capacity.n = 1, o.threads = 1, o.cpu.isa = "portable";
        ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), isa ? AMP_UNSUPPORTED : AMP_OK);
        if (isa) {
            const std::string set = words[isa], said = err.message;
            EXPECT_NE(said.find("isa portable: model tiny was compiled for " + set +
                                " alone (ampc --isa native); "
                                "compile it without --isa native"),
                      std::string::npos)
                << said;
        }
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
}

TEST(Model, OfOneInstructionSetHasItInEveryKernel) {
    amp_error err = {};
    OneSet lacks(AMP_ISA_V3), nothing(AMP_ISA_V4);
    lacks.all[0].back().run[AMP_ISA_V3] = nullptr;
    nothing.all[0].front().run[AMP_ISA_V4] = nullptr;
    for (OneSet *c : {&lacks, &nothing}) {
        EXPECT_EQ(c->Load(&err), AMP_BAD_FILE);
        EXPECT_NE(std::string(err.message).find("has no function"), std::string::npos) << err.message;
    }
}

TEST(Model, DividedDimensionsLimitTheBatch) {
    Copy c;
    c.Connect();
    c.inputs.push_back(c.inputs[1]);
    c.inputs[2].name = "halves";
    c.inputs[2].dims[0] = {2, 6, 1, 0};
    c.desc.inputs = Copy::Table(c.inputs);
    amp_error err = {};
    amp_model *model;
    amp_params *params;
    amp_session *session;
    ASSERT_EQ(amp_model_from_desc(&c.desc, "x", nullptr, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK);
    amp::SessionOptions o = TinyOptions(8);
    ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK);
    TinyBatch batch(8);
    EXPECT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(err.message).find("multiples of 3"), std::string::npos) << err.message;
    EXPECT_EQ(amp_step(session, batch.inputs, {6, 0}, nullptr, &err), AMP_OK) << err.message;
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
}

TEST(Model, TellsAboutItself) {
    Tiny tiny(TinyOptions(4));
    amp_model_info info;
    amp_model_get_info(tiny.model, &info);
    EXPECT_STREQ(info.name, "tiny");
    EXPECT_EQ(info.can_train, 1);
    EXPECT_EQ(info.input_count, 2);
    EXPECT_EQ(info.model_input_count, 1);
    EXPECT_EQ(info.param_count, 3);
    EXPECT_EQ(info.result_count, 1);
    EXPECT_EQ(info.metric_count, 1);
    EXPECT_EQ(info.decision_count, 1);
    EXPECT_EQ(info.param_elements, TINY_CLASSES * (TINY_FEATURES + 1));
    EXPECT_STREQ(amp_model_metric_name(tiny.model, 0), "acc");
    EXPECT_EQ(amp_model_metric_name(tiny.model, 1), nullptr);
    amp_tensor_info t;
    ASSERT_EQ(amp_model_input_at(tiny.model, 0, {5, 0}, &t, &tiny.err), AMP_OK);
    EXPECT_STREQ(t.name, "x");
    EXPECT_EQ(t.dims[0], 5);
    EXPECT_EQ(t.dims[1], TINY_FEATURES);
    int64_t count = -1, ignored = 0;
    ASSERT_EQ(amp_model_get_index_range(tiny.model, 1, &count, &ignored, &tiny.err), AMP_OK);
    EXPECT_EQ(count, TINY_CLASSES);
    EXPECT_EQ(ignored, TINY_IGNORE);
    ASSERT_EQ(amp_model_get_index_range(tiny.model, 0, &count, &ignored, &tiny.err), AMP_OK);
    EXPECT_EQ(count, 0) << "no index";
    EXPECT_EQ(ignored, INT64_MIN);
    EXPECT_EQ(amp_model_get_index_range(tiny.model, 2, &count, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    ASSERT_EQ(amp_model_result_at(tiny.model, 0, {5, 0}, &t, &tiny.err), AMP_OK);
    EXPECT_EQ(t.dtype, AMP_DT_F32) << "an f16 result is handed out as f32";
    ASSERT_EQ(amp_model_param_at(tiny.model, 2, &t, &tiny.err), AMP_OK);
    EXPECT_STREQ(t.name, "fc.batches");
    EXPECT_EQ(t.dtype, AMP_DT_I64);
    amp_decision d;
    ASSERT_EQ(amp_model_decision_at(tiny.model, 0, &d, &tiny.err), AMP_OK);
    EXPECT_STREQ(d.reason, "{f32, fp32:1}");
    EXPECT_EQ(amp_model_input_at(tiny.model, 2, {5, 0}, &t, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_model_input_at(tiny.model, 0, {-5, 0}, &t, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_model_param_at(tiny.model, 3, &t, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_model_decision_at(tiny.model, -1, &d, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(amp_version(), AMP_VERSION);
}

// TINY_FEATURES and TINY_CLASSES are part of the text.
TEST(Model, IsTheOneThatTheProgramWasWrittenFor) {
    Tiny tiny(TinyOptions(4));
    const std::string x = "x: f32[N, " + std::to_string(TINY_FEATURES) + "]",
                      y = "logits: f32[N, " + std::to_string(TINY_CLASSES) + "]";
    for (const std::string &same : {x, x + ", targets: i32[N]", x + ",targets:i32[ N ]->" + y, " " + x + " -> " + y,
                                    "f32[N," + std::to_string(TINY_FEATURES) + "],\n i32[N] -> " + y})
        EXPECT_EQ(amp_model_expect(tiny.model, same.c_str(), &tiny.err), AMP_OK) << same << "\n" << tiny.err.message;
    const struct {
        std::string text, wrong;
    } cases[] = {
        {"x: f32[N, 25]", "tiny: input 0 is " + x + "; the program was written for x: f32[N, 25]"},
        {"y: f32[N, 25], targets: i32[N]", "the program was written for y: f32[N, 25]"},
        {x + ", targets: f32[N]", "tiny: input 1 is targets: i32[N]; the program was written for targets: f32[N]"},
        {x + ", targets: i32[N], more: f32[N]",
         "tiny has 2 inputs (" + x + ", targets: i32[N]); the program was written for 3"},
        {"", "tiny has 2 inputs (" + x + ", targets: i32[N]); the program was written for 0"},
        {" -> ", "the program was written for 0"},
        {x + " -> ", "tiny has 1 result (" + y + "); the program was written for 0"},
        {x + " -> " + y + ", " + y, "the program was written for 2"},
        {"x: f32[N, 25] -> " + y, "the program was written for x: f32[N, 25]"},
        {x + " -> logits: f32[N]", "tiny: result 0 is " + y + "; the program was written for logits: f32[N]"},
        {std::string(5000, 'x'), "at most 4096 are read"},
        {std::string(3000, '['), "tiny: input 0 is"},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(amp_model_expect(tiny.model, c.text.c_str(), &tiny.err), AMP_INVALID_ARGUMENT) << c.text;
        EXPECT_NE(std::string(tiny.err.message).find(c.wrong), std::string::npos) << tiny.err.message << "\n"
                                                                                  << c.wrong;
        EXPECT_EQ(std::string(tiny.err.message).find("->"), std::string::npos) << tiny.err.message;
    }
}

} // namespace
