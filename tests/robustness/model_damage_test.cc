// Damaged model.so files: refused as data, before the system's loader sees them; and tables whose numbers are damaged,
// as a compiler with a fault could write them: refused, or sound enough to plan memory by.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

extern "C" {
#include "base/elf.h"
}
#include "amp/compile.h"
#include "tests/robustness/damage.h"
#include "tests/runtime/tiny.h"

namespace {

using namespace robustness;

std::string Compiled() {
    static const std::string bytes = [] {
        std::string text = "amp 1\nmodel net(x: f32[N, 3]) -> y {\n    h = relu(linear(x; out = 5) as a)\n    y = "
                           "linear(h; out = 2) as b\n}\n"
                           "train net {\n    input  t: i32[N]\n    loss = cross_entropy(y, t)\n    optimizer = sgd(lr "
                           "= 0.1)\n}\nprecision fp32 { }\n";
        amp_compile_options o = {};
        o.struct_size = sizeof o;
        o.name = "net.amp", o.text = text.data(), o.text_size = text.size();
        amp_compile_result *result = nullptr;
        amp_error err = {};
        EXPECT_EQ(amp_compile(&o, &result, &err), AMP_OK) << err.message;
        size_t size;
        const void *data = amp_compile_result_data(result, &size);
        std::string made((const char *)data, size);
        amp_compile_result_release(result);
        return made;
    }();
    return bytes;
}

Outcome Load(const std::string &bytes) {
    PeakAllocator allocator;
    amp_allocator a = allocator.get();
    amp_model_options o = {sizeof o, &a};
    amp_model *model = nullptr;
    amp_error err = {};
    amp_status status = amp_model_load(Write("damaged.so", bytes).c_str(), &o, &model, &err);
    EXPECT_EQ(model == nullptr, status != AMP_OK);
    amp_model_release(model);
    return {status, err.message, allocator.peak()};
}

// The descriptor's copies of tables come on top of the file's bytes.
Format ModelFormat() {
    std::string good = Compiled();
    return {"damaged.so", good, 64, {}, Load, [](size_t size) { return size + (1 << 20); }, good.size() / 200, true};
}

// Damage is told before anything of the file runs: by the hash, or because there is none to be found.
bool IsRefusedAsData(const Outcome &o) {
    return o.status == AMP_BAD_FILE && (o.message.find("not a model of ampc, or damaged") != std::string::npos ||
                                        o.message.find("the file is damaged") != std::string::npos);
}

TEST(ModelFile, GoodIsRead) { GoodIsRead(ModelFormat()); }
TEST(ModelFile, CutAnywhere) { CutAnywhere(ModelFormat()); }
TEST(ModelFile, ElfHeaderBytes) { HeaderBytes(ModelFormat()); }

TEST(ModelFile, SectionHeaderBytes) {
    std::string good = Compiled();
    uint64_t table = 0;
    for (int i = 7; i >= 0; i--) table = table << 8 | (unsigned char)good[40 + i]; // e_shoff
    ASSERT_LT(table, good.size());
    for (size_t i = table + FirstPlace(); i < good.size(); i += Stride())
        for (unsigned char value : {(unsigned char)(good[i] ^ 0x01), (unsigned char)(good[i] ^ 0xf0)}) {
            std::string changed = good;
            changed[i] = (char)value;
            Outcome o = Load(changed);
            ASSERT_TRUE(IsRefusedAsData(o)) << "byte " << i << ": " << o.message;
        }
}

TEST(ModelFile, RandomMutations) {
    Mutator mutator(Compiled(), Compiled().size(), {"\177ELF", ".amp.sha256"}, 31);
    for (long i = 0; i < MutationCount(); i++) {
        std::string changed = mutator.Next();
        if (changed == Compiled()) continue;
        Outcome o = Load(changed);
        ASSERT_TRUE(IsRefusedAsData(o)) << "mutation " << i << ": " << o.message;
        ASSERT_LE(o.peak, changed.size() + (1 << 20));
    }
}

// explain reads the IR inside a model.so, hash or no hash.
TEST(ModelFile, ExplainReadsDamagedOnes) {
    std::string good = Compiled();
    size_t ir, length;
    ASSERT_EQ(amp_elf_section(good.data(), good.size(), AMP_MODEL_IR_SECTION, &ir, &length, nullptr), AMP_OK);
    Random random(32);
    for (long i = 0; i < MutationCount() / 10; i++) {
        std::string changed = good;
        for (int k = 0; k < 3; k++)
            changed[random.Below(2) ? ir + random.Below(length) : random.Below(changed.size())] = (char)random.Next();
        std::string path = Write("explained.so", changed);
        amp_compile_options o = {};
        PeakAllocator allocator;
        amp_allocator a = allocator.get();
        o.struct_size = sizeof o, o.name = path.c_str(), o.allocator = &a;
        amp_compile_result *result = nullptr;
        amp_error err = {};
        amp_explain_options which = {};
        which.struct_size = sizeof which, which.form = random.Below(2) ? AMP_EXPLAIN_JSON : AMP_EXPLAIN_TEXT;
        amp_status status = amp_explain(&o, &which, &result, &err);
        ASSERT_TRUE(!status || strstr(err.message, "explained.so")) << i << ": " << err.message;
        amp_compile_result_release(result);
    }
}

// ---- tables
// ----------------------------------------------------------------------------------------------------------

// The tiny model with tables that can be written to.  Counts and pointers stay: what they mean cannot be checked.
struct Tables {
    amp_model_desc desc = *amp_model_query();
    std::vector<amp_model_state> states = Of<amp_model_state>(desc.states);
    std::vector<amp_model_input> inputs = Of<amp_model_input>(desc.inputs);
    std::vector<amp_model_program> programs = Of<amp_model_program>(desc.programs);
    std::vector<std::vector<amp_model_buffer>> buffers;
    std::vector<std::vector<amp_model_kernel>> kernels;
    std::vector<std::vector<amp_model_result>> results;
    std::vector<std::vector<std::vector<uint32_t>>> operands;
    std::vector<std::vector<std::array<amp_model_dim, AMP_MODEL_MAX_RANK>>>
        dims; // of buffers; as many as a rank may say

    Tables() {
        for (const amp_model_program &p : programs) {
            buffers.push_back(Of<amp_model_buffer>(p.buffers));
            kernels.push_back(Of<amp_model_kernel>(p.kernels));
            results.push_back(Of<amp_model_result>(p.results));
            operands.emplace_back();
            for (amp_model_kernel &k : kernels.back())
                operands.back().emplace_back(k.operands, k.operands + k.operand_count);
        }
        for (size_t p = 0; p < kernels.size(); p++)
            for (size_t k = 0; k < kernels[p].size(); k++) kernels[p][k].operands = operands[p][k].data();
        for (std::vector<amp_model_buffer> &of : buffers) {
            dims.emplace_back(of.size());
            for (size_t b = 0; b < of.size(); b++) {
                std::copy_n(of[b].dims, of[b].rank, dims.back()[b].begin());
                of[b].dims = dims.back()[b].data();
            }
        }
        desc.states = Table(states), desc.inputs = Table(inputs), desc.programs = Table(programs);
        for (size_t i = 0; i < programs.size(); i++)
            programs[i].buffers = Table(buffers[i]), programs[i].kernels = Table(kernels[i]),
            programs[i].results = Table(results[i]);
    }
    template <typename T> static std::vector<T> Of(const amp_model_table &t) {
        return std::vector<T>((const T *)t.data, (const T *)t.data + t.count);
    }
    template <typename T> static amp_model_table Table(const std::vector<T> &v) {
        return {(uint32_t)v.size(), sizeof(T), v.data()};
    }
};

// Numbers of a struct: [begin, end) byte ranges without its pointers and the counts of arrays that these point to.
struct Range {
    size_t begin, end;
};
#define FROM_TO(T, first, last)                                                                                        \
    { offsetof(T, first), offsetof(T, last) + sizeof(((T *)nullptr)->last) }
const std::vector<Range> kState = {FROM_TO(amp_model_state, role, init_args)};
const std::vector<Range> kInput = {FROM_TO(amp_model_input, dtype, train_only),
                                   FROM_TO(amp_model_input, index_bound, index_ignore)};
const std::vector<Range> kBuffer = {FROM_TO(amp_model_buffer, rows, part),
                                    {offsetof(amp_model_buffer, kind), sizeof(amp_model_buffer)}};
const std::vector<Range> kDims = {{0, AMP_MODEL_MAX_RANK * sizeof(amp_model_dim)}};
const std::vector<Range> kKernel = {FROM_TO(amp_model_kernel, kind, predicate), FROM_TO(amp_model_kernel, rows, cols),
                                    FROM_TO(amp_model_kernel, segment, window)};
const std::vector<Range> kResult = {FROM_TO(amp_model_result, buffer, rank), FROM_TO(amp_model_result, dims, dims)};

// A number of four or eight bytes becomes one that indexes, sizes and loops get wrong, or a neighbour of what it was.
void DamageNumber(void *at, size_t size, const std::vector<Range> &ranges, Random &random) {
    static const int64_t values[] = {0,         1,        2,  3,   4,    5,  6,  7,         8,         9,
                                     31,        32,       33, 255, 4096, -1, -2, INT32_MAX, INT32_MIN, (int64_t)1 << 38,
                                     INT64_MAX, INT64_MIN};
    const Range &range = ranges[random.Below(ranges.size())];
    size_t width = random.Below(2) ? 8 : 4, place = range.begin + random.Below((range.end - range.begin) / 4) * 4;
    if (place + width > std::min(range.end, size)) width = 4;
    int64_t value = 0;
    memcpy(&value, (char *)at + place, width);
    value =
        random.Below(3) ? values[random.Below(sizeof values / sizeof *values)] : value + (int64_t)random.Below(5) - 2;
    memcpy((char *)at + place, &value, width);
}

enum class Changed { kState, kInput, kBuffer, kKernel, kResult, kOperand };

Changed DamageTables(Tables &t, Random &random) {
    size_t p = random.Below(t.programs.size());
    auto one = [&](auto &table, const std::vector<Range> &ranges) {
        if (!table.empty()) DamageNumber(&table[random.Below(table.size())], sizeof table[0], ranges, random);
    };
    Changed changed = (Changed)random.Below(6);
    switch (changed) {
    case Changed::kState: one(t.states, kState); break;
    case Changed::kInput: one(t.inputs, kInput); break;
    case Changed::kBuffer:
        if (random.Below(3)) one(t.buffers[p], kBuffer);
        else one(t.dims[p], kDims);
        break;
    case Changed::kKernel: one(t.kernels[p], kKernel); break;
    case Changed::kResult: one(t.results[p], kResult); break;
    case Changed::kOperand: {
        std::vector<uint32_t> &of = t.operands[p][random.Below(t.operands[p].size())];
        of[random.Below(of.size())] = (uint32_t)random.Below(t.buffers[p].size() + 2);
        break;
    }
    }
    return changed;
}

// Everything of a model that was accepted which does not run its code.
void Use(amp_model *model, Random &random) {
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    amp_tensor_info info;
    amp_model_info about;
    amp_model_get_info(model, &about);
    for (int i = 0; i < about.input_count; i++) (void)!amp_model_input_at(model, i, {6, 0}, &info, &err);
    for (int i = 0; i < about.result_count; i++) (void)!amp_model_result_at(model, i, {6, 0}, &info, &err);
    for (int i = 0; i < about.param_count; i++) (void)!amp_model_param_at(model, i, &info, &err);
    amp_params_options seed = {sizeof seed, 7, 0};
    amp::SessionOptions o = TinyOptions(1 + (int64_t)random.Below(64));
    o.device = "null";
    amp_memory_info memory;
    if (amp_params_create(model, &seed, &params, &err) || amp_session_create(model, params, &o, &session, &err)) {
        EXPECT_NE(std::string(err.message), "");
    } else {
        amp_session_get_memory(session, &memory);
    }
    amp_session_release(session);
    amp_params_release(params);
}

// No more than a test machine has: a model may well be larger than memory.
class SmallMachine {
  public:
    amp_allocator get() { return {this, Alloc, Free}; }
    ~SmallMachine() { EXPECT_EQ(now_, 0u); }

  private:
    static void *Alloc(void *user, size_t size, size_t align) {
        auto *self = static_cast<SmallMachine *>(user);
        if (size > kMost - self->now_) return nullptr;
        self->now_ += size;
        return aligned_alloc(std::max<size_t>(align, 16), (size + align + 15) & ~(std::max<size_t>(align, 16) - 1));
    }
    static void Free(void *user, void *p, size_t size, size_t) {
        static_cast<SmallMachine *>(user)->now_ -= size, free(p);
    }
    static constexpr size_t kMost = 16 << 20;
    size_t now_ = 0;
};

TEST(ModelTables, DamagedNumbersAreRefusedOrHarmless) {
    Random random(33);
    long refused = 0;
    for (long i = 0; i < MutationCount() * 5; i++) {
        Tables tables;
        for (size_t k = 0, n = 1 + random.Below(3); k < n; k++) DamageTables(tables, random);
        SmallMachine machine;
        amp_allocator a = machine.get();
        amp_model *model = nullptr;
        amp_error err = {};
        amp_status status = amp_model_from_desc(&tables.desc, "tables.so", &a, &model, &err);
        refused += status != AMP_OK;
        if (status) {
            ASSERT_EQ(model, nullptr);
            ASSERT_TRUE(strstr(err.message, "tables.so: ")) << err.message;
        } else {
            Use(model, random);
        }
        amp_model_release(model);
    }
    EXPECT_GT(refused, MutationCount());
}

// ---- running what was accepted: in a child, each allocation before a page that must not be touched -----------------

struct Guarded {
    static amp_allocator get() { return {nullptr, Alloc, Free}; }
    static size_t Page() { return (size_t)sysconf(_SC_PAGESIZE); }
    static size_t Pages(size_t size) { return (size + Page() - 1) / Page() * Page(); }
    static void *Alloc(void *, size_t size, size_t align) {
        if (size > (16u << 20)) return nullptr;
        size_t room = Pages(size);
        char *at = (char *)mmap(nullptr, room + Page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return nullptr;
        mprotect(at + room, Page(), PROT_NONE);
        return at + (room - size) / align * align;
    }
    static void Free(void *, void *p, size_t size, size_t) {
        if (p) munmap((void *)((uintptr_t)p / Page() * Page()), Pages(size) + Page());
    }
};

void RunAll(const amp_model_desc *desc, const void *const *inputs, int n) {
    amp_allocator a = Guarded::get();
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    amp::SessionOptions o = TinyOptions(n);
    o.inspect.separate_buffers = 1;
    std::vector<std::vector<float>> results(8, std::vector<float>(1 << 16));
    std::vector<void *> outputs;
    for (auto &r : results) outputs.push_back(r.data());
    double loss, metrics[8];
    if (amp_model_from_desc(desc, "tables.so", &a, &model, &err) || amp_params_create(model, nullptr, &params, &err) ||
        amp_session_create(model, params, &o, &session, &err))
        return;
    for (int i = 0; i < 2; i++) {
        (void)!amp_step(session, inputs, {n, 0}, nullptr, &err);
        (void)!amp_eval(session, inputs, {n, 0}, &loss, metrics, &err);
        (void)!amp_infer(session, inputs, {n, 0}, outputs.data(), &err);
    }
    amp_session_release(session), amp_params_release(params), amp_model_release(model);
}

// Runs |n| samples in a child process: the signal that ended it, or 0.
int RunInChild(const amp_model_desc *desc, const void *const *inputs, int n) {
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        for (int s : {SIGSEGV, SIGBUS, SIGFPE}) signal(s, SIG_DFL);
        RunAll(desc, inputs, n);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// Which buffers a kernel takes and the space that it walks are known to its code alone, within bounds
// (model_check_use.c); whatever else is changed must be refused, or harmless.
bool OnlyTheCodeKnows(Changed changed) { return changed == Changed::kOperand || changed == Changed::kKernel; }

TEST(ModelTables, AcceptedOnesRun) {
    if (amp_test_address_sanitizer) GTEST_SKIP() << "the sanitizer has handlers of its own";
    Random random(34);
    const long count = MutationCount() / 4;
    long ran = 0, crashed = 0;
    TinyBatch batch(16);
    for (long i = 0; i < count; i++) {
        Tables tables;
        Changed changed = DamageTables(tables, random);
        amp_model *model = nullptr;
        amp_error err = {};
        if (amp_model_from_desc(&tables.desc, "tables.so", nullptr, &model, &err)) continue;
        amp_model_release(model);
        int signal = RunInChild(&tables.desc, batch.inputs, 16);
        ran++, crashed += signal != 0;
        ASSERT_TRUE(!signal || OnlyTheCodeKnows(changed)) << "mutation " << i << ": signal " << signal;
    }
    EXPECT_GT(ran, count / 4);
    EXPECT_LT(crashed, ran / 20);
}

// ---- attention: records that kernels point to ---------------------------------------------------------------------

const amp_model_desc *CompiledAttention();

// A compiled model whose kernels of attention can be written to.
struct AttentionTables {
    explicit AttentionTables(const amp_model_desc *from)
        : desc(*from), programs(Tables::Of<amp_model_program>(desc.programs)) {
        for (amp_model_program &p : programs) {
            kernels.push_back(Tables::Of<amp_model_kernel>(p.kernels));
            p.kernels = Tables::Table(kernels.back());
        }
        desc.programs = Tables::Table(programs);
        for (auto &of : kernels)
            for (amp_model_kernel &k : of)
                if (k.attention)
                    records.push_back(std::make_unique<amp_model_attention>(*k.attention)),
                        k.attention = records.back().get();
    }
    // What has been changed.
    std::string Damage() const {
        AttentionTables good(CompiledAttention());
        std::string text;
        for (size_t r = 0; r < records.size(); r++)
            for (size_t i = 0; i < sizeof *records[r]; i += 4) {
                int32_t was, is;
                memcpy(&was, (const char *)good.records[r].get() + i, 4),
                    memcpy(&is, (const char *)records[r].get() + i, 4);
                if (was != is)
                    text += "; record " + std::to_string(r) + " byte " + std::to_string(i) + ": " +
                            std::to_string(was) + " -> " + std::to_string(is);
            }
        return text;
    }
    amp_model_desc desc;
    std::vector<amp_model_program> programs;
    std::vector<std::vector<amp_model_kernel>> kernels;
    std::vector<std::unique_ptr<amp_model_attention>> records;
};

const amp_model_desc *CompiledAttention() {
    static const amp_model_desc *desc = [] {
        std::string text =
            "amp 1\nmodel net(x: f32[N, 5, 8], m: f32[5, 5]) -> y {\n    h = linear(x; out = 8) as a\n    k = "
            "reshape(h; "
            "shape = [N, 5, 2, 4])\n    k = transpose(k; a = 1, b = 2)\n    y = attention(k, k, k, m; causal = "
            "true)\n}\n"
            "train net {\n    input t: f32[N, 2, 5, 4]\n    loss = mse_loss(y, t)\n    optimizer = sgd(lr = 0.1)\n}\n";
        std::string path = Write("attention.so", "");
        amp_compile_options o = {};
        o.struct_size = sizeof o;
        o.name = "net.amp", o.text = text.data(), o.text_size = text.size(), o.output = path.c_str(), o.target = "cpu";
        amp_compile_result *result = nullptr;
        amp_error err = {};
        EXPECT_EQ(amp_compile(&o, &result, &err), AMP_OK) << err.message;
        amp_compile_result_release(result);
        void *handle = dlopen(path.c_str(), RTLD_NOW);
        auto query = handle ? (amp_model_query_fn)dlsym(handle, AMP_MODEL_SYMBOL) : nullptr;
        return query ? query() : nullptr;
    }();
    return desc;
}

TEST(ModelTables, AttentionThatIsAcceptedStaysInItsMemory) {
    if (amp_test_address_sanitizer) GTEST_SKIP() << "the sanitizer has handlers of its own";
    ASSERT_NE(CompiledAttention(), nullptr);
    Random random(35);
    const std::vector<Range> numbers = {{0, sizeof(amp_model_attention)}};
    const std::vector<float> data(4096, 0.5f);
    const void *inputs[] = {data.data(), data.data(), data.data()};
    const long count = MutationCount() / 4;
    long ran = 0;
    for (long i = 0; i < count; i++) {
        AttentionTables tables(CompiledAttention());
        ASSERT_GE(tables.records.size(), 4u); // train_step has two, eval and infer one each
        for (size_t k = 0, n = i ? 1 + random.Below(2) : 0; k < n; k++) {
            amp_model_attention &record = *tables.records[random.Below(tables.records.size())];
            DamageNumber(&record, sizeof record, numbers, random);
        }
        amp_model *model = nullptr;
        amp_error err = {};
        amp_status status = amp_model_from_desc(&tables.desc, "attention.so", nullptr, &model, &err);
        amp_model_release(model);
        ASSERT_TRUE(i || !status) << err.message;
        if (status) continue;
        ran++;
        int signal = RunInChild(&tables.desc, inputs, 6);
        ASSERT_EQ(signal, 0) << "mutation " << i << ": signal " << signal << tables.Damage();
    }
    EXPECT_GT(ran, count / 20);
    EXPECT_LT(ran, count);
}

} // namespace
