// cuda_counters_test.cc: what the kernels of whole training steps ask for, by the interpreter's counters: bytes and
// tensor
// products are the plan's, computed here from the shapes of each kernel's operands; sectors are as few as they can be.
//
// How bytes are counted: by operand, as lanes ask for them.  A tile, column or row kernel reads each operand of its
// domain
// once (a row of more than 1024 columns: once in each phase that needs it) and writes every result once.  A product
// reads A
// once for each column of its tiles, B once for each row of its tiles, and what its epilogue reads once for each
// element
// of the result.  A single thread reads each scalar once.  What all lanes of a warp read in one place (scalars,
// predicates,
// tables of a batch, what belongs to a whole row of a row kernel) is one sector each and is left out.
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "precision/policy.h"
#include "targets/target.h"
#include "tests/codegen/cuda/cuda_run.h"

namespace {

const Source *BuiltinPolicy(void *arena, const char *name) { return policy_builtin(static_cast<Arena *>(arena), name); }

// Three layers, so that gradients of both operands are products too.
std::string Layers(int in, int hidden, int out, const std::string &optimizer = "adamw(lr = 0.001)") {
    const std::string h = std::to_string(hidden);
    return "amp 1\nmodel m(x: f32[N, " + std::to_string(in) + "]) -> logits {\n    h = relu(linear(x; out = " + h +
           ") as fc1)\n    h = dropout(sigmoid(linear(h; out = " + h +
           ") as fc2); p = 0.5)\n    logits = linear(h; out = " + std::to_string(out) +
           ") as fc3\n}\ntrain m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n" +
           "    optimizer = " + optimizer + "\n}\n";
}

enum { REGISTER_COLUMNS = 1024 };

class CudaCountersTest : public CudaRunTest {
  protected:
    void SetUp() override {
        CudaRunTest::SetUp();
        if (TestDriver::Asked()) GTEST_SKIP() << "a driver does not tell what kernels ask for";
    }

    // Function train_step at stage plan, and its kernels.
    const CudaProgram *Compile(const std::string &text, const std::string &precision, int arch) {
        text_ = text;
        Diags diags;
        diags_init(&diags, &arena_);
        const ::Source source = {"m.amp", text_.c_str(), text_.size()};
        const FrontendOptions frontend = {};
        module_ = frontend_compile(&arena_, &diags, &source, &frontend);
        if (!module_) return nullptr;
        PassOptions options = {};
        options.target = &target_cuda;
        options.describe = codegen_cuda_describe;
        options.without[STAGE_SUPERSTEPS] = true; // what is counted is counted for each kernel
        options.find_policy = BuiltinPolicy;
        options.user = &arena_;
        options.precision = precision.c_str();
        amp_error err = {};
        EXPECT_EQ(passes_run(module_, &diags, &options, STAGE_LAST, nullptr, nullptr, &err), AMP_OK) << err.message;
        cuda_ = Emit(module_);
        if (HasFailure()) return nullptr;
        image_ = std::make_unique<LoadedPtx>(Ptx(cuda_, arch, false), arch);
        for (int i = 0; i < cuda_->programs.len; i++)
            if (!strcmp(cuda_->programs.data[i].func->name, "train_step")) return &cuda_->programs.data[i];
        return nullptr;
    }

    // Gradients are finite, so that the optimizer runs.
    bool Run(const CudaProgram *program, int64_t n, CudaRun *run) {
        Values given = Draw(module_, program->func, n);
        for (auto &entry : given)
            for (double &x : entry.second) x = std::fabs(x);
        run->Set(given);
        return run->Run();
    }

    static int64_t Elements(const Func *f, const Buffer *b, int64_t n) {
        Dim count;
        EXPECT_TRUE(shape_count(ir_shape(f, b->value), &count));
        return dim_eval(count, {n, 1});
    }
    // With what fills long rows up, but for those who go down the columns.
    static int64_t Bytes(const Func *f, const Kernel *k, const Buffer *b, int64_t n) {
        const Shape shape = k->kind == KERNEL_COLUMN ? *ir_shape(f, b->value) : ir_buffer_shape(f, b);
        Dim count;
        EXPECT_TRUE(shape_count(&shape, &count));
        return dim_eval(count, {n, 1}) * static_cast<int64_t>(StorageSize(b->storage));
    }
    // What the kernel walks over: its largest operand.
    static int64_t Domain(const Func *f, const Kernel *k, int64_t n) {
        int64_t most = 0;
        for (int i = 0; i < k->reads.len; i++) most = std::max(most, Elements(f, Buffer_(f, k->reads.data[i]), n));
        for (int i = 0; i < k->writes.len; i++) most = std::max(most, Elements(f, Buffer_(f, k->writes.data[i]), n));
        return most;
    }
    static const Buffer *Buffer_(const Func *f, uint32_t index) { return f->buffers.data[index - 1]; }

    static int64_t Blocks(const CudaLaunch &l, int axis, int64_t n) {
        return l.per[axis] ? (dim_eval(l.extent[axis], {n, 1}) + l.per[axis] - 1) / l.per[axis] : 1;
    }
    static const Op *Product(const Func *f, const Kernel *k) {
        int i = k->first;
        while (!ir_is_product(ir_op_at(f, i))) i++;
        return ir_op_at(f, i);
    }
    // What a product finds in memory for its operand.
    static Val InMemory(const Func *f, Val v) {
        const Op *def = ir_def(f, v);
        return def && target_rounds_on_load(f, def) ? def->in[0] : v;
    }

    // The launch of a kernel by itself, or of the batch that it is in.
    static const CudaLaunch &LaunchOf(const CudaKernelEntry &entry, int member) {
        int part = 0;
        while (member >= entry.parts.data[part].members) member -= entry.parts.data[part++].members;
        return entry.parts.data[part].launches.data[0];
    }

    // How often the bytes of an operand are read; 0: it is left out.
    static int64_t Times(const Func *f, const CudaLaunch &launch, const Kernel *k, const Buffer *b, int64_t n) {
        const int64_t elements = Elements(f, b, n);
        if (k->kind == KERNEL_SCALAR) return 1;
        if (k->kind == KERNEL_PRODUCT) {
            const Op *op = Product(f, k);
            const int64_t result = dim_eval(launch.extent[0], {n, 1}) * dim_eval(launch.extent[1], {n, 1});
            if (b->value.id == InMemory(f, op->in[0]).id) return Blocks(launch, 1, n);
            if (b->value.id == InMemory(f, op->in[1]).id) return Blocks(launch, 0, n);
            return elements > 1 ? result / elements : 0;
        }
        return elements == Domain(f, k, n);
    }
    // A thread of a product reads a number of a column once for some of its rows.
    static bool IsOfColumns(const Func *f, const Kernel *k, const Buffer *b) {
        if (k->kind != KERNEL_PRODUCT) return false;
        const Op *op = Product(f, k);
        return b->value.id != InMemory(f, op->in[0]).id && b->value.id != InMemory(f, op->in[1]).id;
    }
    // A row that registers do not hold is read anew in each phase, at most one for each reduction and one after them.
    static int64_t MostPhases(const Func *f, const Kernel *k, const Buffer *b, int64_t n) {
        const Shape *shape = ir_shape(f, b->value);
        const bool long_row =
            k->kind == KERNEL_ROW && shape->rank && dim_eval(shape->d[shape->rank - 1], {n, 1}) > REGISTER_COLUMNS;
        return long_row ? 1 + Reductions(f, k) : 1;
    }
    static int64_t Reductions(const Func *f, const Kernel *k) {
        int64_t count = 0;
        for (int i = k->first; i < k->first + k->count; i++)
            count += !strncmp(ir_op_info[f->ops.data[f->body.data[i].id]->code].name, "reduce", 6);
        return count;
    }

    struct Bytes_ {
        int64_t loads = 0, stores = 0;
    };
    // Of one kernel, operand by operand.
    static Bytes_ CheckBytes(const Func *f, const CudaKernelEntry &entry, const CudaRun &run, size_t launch,
                             int64_t n) {
        Bytes_ all;
        const CudaRun::Asked &asked = run.asked()[launch];
        std::map<uint64_t, int64_t> loads, stores, most, least; // members may share an operand
        std::map<uint64_t, std::string> names;
        for (int m = 0; m < entry.members.len; m++) {
            const Kernel *k = entry.members.data[m];
            for (int i = 0; i < k->reads.len; i++) {
                const Buffer *b = Buffer_(f, k->reads.data[i]);
                const uint64_t at = run.AddressOf(static_cast<int>(k->reads.data[i]) - 1);
                names[at] = ir_value(f, b->value)->name;
                const int64_t once = Bytes(f, k, b, n), times = Times(f, LaunchOf(entry, m), k, b, n);
                if (once && times) loads[at] += once * times;
                if (once && times > 1 && IsOfColumns(f, k, b)) least[at] += once;
                most[at] = MostPhases(f, k, b, n);
            }
            for (int i = 0; i < k->writes.len; i++) { // flags are written where something is not finite
                const Buffer *b = Buffer_(f, k->writes.data[i]);
                const uint64_t at = run.AddressOf(static_cast<int>(k->writes.data[i]) - 1);
                names[at] = ir_value(f, b->value)->name;
                if (b->kind != BUFFER_FLAG && !buffer_is_optional(b->kind)) stores[at] += Bytes(f, k, b, n);
            }
        }
        for (const auto &e : loads) {
            auto found = asked.loads.find(e.first);
            const int64_t got = found == asked.loads.end() ? 0 : static_cast<int64_t>(found->second);
            if (least.count(e.first)) {
                EXPECT_GE(got, least[e.first]) << "reads of " << names[e.first];
                EXPECT_LE(got, e.second) << "reads of " << names[e.first];
            } else if (most[e.first] == 1) {
                EXPECT_EQ(got, e.second) << "reads of " << names[e.first];
            } else {
                EXPECT_EQ(got % e.second, 0) << "reads of " << names[e.first];
                EXPECT_GE(got, e.second) << "reads of " << names[e.first];
                EXPECT_LE(got, e.second * most[e.first]) << "reads of " << names[e.first];
            }
            all.loads += got;
        }
        for (const auto &e : stores) all.stores += e.second;
        size_t written = 0; // tickets are counted by atomics
        for (const auto &e : asked.stores) {
            if (run.IsTickets(e.first)) continue;
            written++;
            EXPECT_EQ(static_cast<int64_t>(e.second), stores[e.first]) << "writes of " << names[e.first];
        }
        EXPECT_EQ(written, stores.size());
        return all;
    }

    static bool Half(const std::string &precision) { return precision == "fp16" || precision == "bf16"; }

    void CheckStep(const std::string &what, const std::string &text, const std::string &precision, int arch,
                   int64_t n) {
        SCOPED_TRACE(what + " " + precision + " sm_" + std::to_string(arch));
        const CudaProgram *program = Compile(text, precision, arch);
        ASSERT_NE(program, nullptr);
        CudaRun run(cuda_, *image_, program->func->name, n, false);
        ASSERT_TRUE(Run(program, n, &run));
        int64_t loads = 0, stores = 0, flops = 0, tensor = 0;
        for (int i = 0; i < program->kernels.len; i++) {
            const CudaKernelEntry &entry = program->kernels.data[i];
            const Kernel *k = entry.members.data[0];
            const ExecCounters &c = run.launches()[static_cast<size_t>(i)];
            SCOPED_TRACE(std::string(k->name) + " " + k->title);
            const Bytes_ bytes = CheckBytes(program->func, entry, run, static_cast<size_t>(i), n);
            if (k->kind == KERNEL_TILE || k->kind == KERNEL_SCALAR) {
                EXPECT_GE(c.sectors, c.ideal_sectors);
                EXPECT_LE(c.sectors,
                          c.ideal_sectors + SectorsOfTables(entry, n) + SectorsOfParts(program->func, entry, n));
            }
            if (k->kind == KERNEL_PRODUCT) flops += CheckProducts(program->func, entry, c, Half(precision), n);
            else EXPECT_EQ(c.tensor_flops, 0u);
            loads += bytes.loads;
            stores += bytes.stores;
            tensor += static_cast<int64_t>(c.tensor_flops);
        }
        std::printf(
            "%s %s sm_%d, batch %lld: %d kernels, %lld bytes read, %lld written, %lld FLOPs of products, %lld in mma\n",
            what.c_str(), precision.c_str(), arch, static_cast<long long>(n), program->kernels.len,
            static_cast<long long>(loads), static_cast<long long>(stores), static_cast<long long>(flops),
            static_cast<long long>(tensor));
    }

    // Each warp of a batch after the first part of a launch looks up its member's elements, which may begin in the
    // middle of a sector.
    static uint64_t SectorsOfTables(const CudaKernelEntry &entry, int64_t n) {
        int64_t warps = 0;
        for (int i = 1; i < entry.parts.len; i++) {
            const CudaLaunch &l = entry.parts.data[i].launches.data[0];
            if (entry.parts.data[i].members > 1)
                warps += Blocks(l, 0, n) * Blocks(l, 1, n) * Blocks(l, 2, n) * (l.block[0] / 32);
        }
        return static_cast<uint64_t>(warps);
    }

    // The parts of a sum follow one another, and a warp's elements of each may begin in the middle of a sector.
    static uint64_t SectorsOfParts(const Func *f, const CudaKernelEntry &entry, int64_t n) {
        int64_t requests = 0;
        for (int i = 0; i < entry.members.len; i++)
            for (int j = 0; j < entry.members.data[i]->count; j++) {
                const Op *o = ir_op_at(f, entry.members.data[i]->first + j);
                Dim count;
                if (o->code != OP_sum_parts || !shape_count(ir_shape(f, o->out[0]), &count)) continue;
                const int64_t elements = dim_eval(count, {n, 1});
                if (elements % 8) requests += ir_shape(f, o->in[0])->d[0].mul * ((elements + 31) / 32);
            }
        return static_cast<uint64_t>(requests);
    }

    // What a product has: 2 * m * n * k, the same in whole tiles, and its elements.
    struct Sums {
        int64_t flops = 0, in_tiles = 0, elements = 0;
    };
    static void AddProduct(const Func *f, const Kernel *kernel, const CudaLaunch &launch, int64_t n, Sums *sums) {
        const int64_t rows = dim_eval(launch.extent[0], {n, 1}), cols = dim_eval(launch.extent[1], {n, 1});
        Dim of_a;
        EXPECT_TRUE(shape_count(ir_shape(f, Product(f, kernel)->in[0]), &of_a));
        const bool of_n = of_a.n && !launch.extent[0].n; /* k is: a step is not chosen by what it is today */
        const int64_t k = dim_eval(of_a, {n, 1}) / rows, step = k < 512 && !of_n ? 32 : 64;
        const int64_t padded = (k + step - 1) / step * step;
        sums->flops += 2 * rows * cols * k;
        sums->in_tiles += 2 * padded * Blocks(launch, 0, n) * launch.per[0] * Blocks(launch, 1, n) * launch.per[1];
        sums->elements += rows * cols;
    }

    // All of the products of a launch is in mma: as much as they have, rounded up to whole tiles.  What is left are the
    // elementwise ops after them, a few for each element of the result and nothing for each of k.
    static int64_t CheckProducts(const Func *f, const CudaKernelEntry &entry, const ExecCounters &c, bool half,
                                 int64_t n) {
        Sums sums;
        for (int i = 0; i < entry.members.len; i++) AddProduct(f, entry.members.data[i], LaunchOf(entry, i), n, &sums);
        if (!half) return sums.flops;
        EXPECT_TRUE(entry.body.tensor_cores);
        EXPECT_GE(c.tensor_flops, static_cast<uint64_t>(sums.flops));
        EXPECT_LE(c.tensor_flops, static_cast<uint64_t>(sums.in_tiles));
        EXPECT_LE(c.other_flops, static_cast<uint64_t>(32 * sums.elements)) << "beside mma";
        return sums.flops;
    }

    std::string text_;
    Module *module_ = nullptr;
    const CudaModule *cuda_ = nullptr;
    std::unique_ptr<LoadedPtx> image_;
};

TEST_F(CudaCountersTest, WholeStep) {
    for (const char *precision : {"fp16", "bf16", "tf32", "fp32"})
        CheckStep("40-64-10", Layers(40, 64, 10), precision, 80, 16);
    CheckStep("40-64-10", Layers(40, 64, 10), "fp16", 75, 16);
    CheckStep("40-64-10", Layers(40, 64, 10), "fp16", 90, 16);
}

TEST_F(CudaCountersTest, OddWidths) {
    for (const char *precision : {"fp16", "bf16"}) {
        CheckStep("10-30-10", Layers(10, 30, 10), precision, 80, 7);
        CheckStep("37-61-43", Layers(37, 61, 43), precision, 90, 19);
    }
}

TEST_F(CudaCountersTest, ManyClasses) { CheckStep("30-10-1000", Layers(30, 10, 1000), "fp16", 80, 3); }

TEST_F(CudaCountersTest, VocabularyOfGpt2) { CheckStep("10-30-50257", Layers(10, 30, 50257), "fp16", 90, 2); }

// The master weight, two moments and the gradient are read, three of them and the copy in f16 written: 30 bytes.
TEST_F(CudaCountersTest, AdamwMovesThirtyBytesPerParameter) {
    const CudaProgram *program = Compile(Layers(40, 64, 10), "fp16", 80);
    ASSERT_NE(program, nullptr);
    CudaRun run(cuda_, *image_, program->func->name, 16, false);
    ASSERT_TRUE(Run(program, 16, &run));
    int found = 0;
    for (int i = 0; i < program->kernels.len; i++) {
        const CudaKernelEntry &entry = program->kernels.data[i];
        if (!strstr(entry.members.data[0]->title, "adamw") || entry.members.data[0]->kind != KERNEL_TILE) continue;
        found++;
        const ExecCounters &c = run.launches()[static_cast<size_t>(i)];
        const int64_t params = 40 * 64 + 64 + 64 * 64 + 64 + 10 * 64 + 10;
        const int64_t step = 8; // the counter, which is updated beside them
        ASSERT_EQ(entry.parts.len, 2);
        EXPECT_EQ(entry.parts.data[0].members, 6) << "one launch for all";
        const Bytes_ bytes = CheckBytes(program->func, entry, run, static_cast<size_t>(i), 16);
        EXPECT_EQ(bytes.loads, 16 * params + step);
        EXPECT_EQ(bytes.stores, 14 * params + step);
        EXPECT_EQ(c.sectors, c.ideal_sectors);
    }
    EXPECT_EQ(found, 1);
}

} // namespace
