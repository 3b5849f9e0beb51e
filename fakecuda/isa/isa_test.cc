// Every case of the table: its PTX is read, NVIDIA's assembler takes it where the toolkit is installed, and the
// interpreter gets its results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "fakecuda/exec/exec.h"
#include "fakecuda/isa/isa.h"
#include "fakecuda/isa/numbers.h"
#include "fakecuda/ptx/ptx.h"

using namespace isa;

namespace {

const std::vector<Case> &cases() {
    static const std::vector<Case> all = all_cases();
    return all;
}

TEST(Numbers, ShortFormatsRoundOnce) {
    EXPECT_EQ(shortened(kHalf, 1.0), 0x3c00);
    EXPECT_EQ(shortened(kHalf, 65504), 0x7bff);
    EXPECT_EQ(shortened(kHalf, 65519.999), 0x7bff);
    EXPECT_EQ(shortened(kHalf, 65520), 0x7c00);
    EXPECT_EQ(shortened(kHalf, -1e9, FE_TOWARDZERO), 0xfbff);
    EXPECT_EQ(shortened(kHalf, 0x1p-24), 1);
    EXPECT_EQ(shortened(kHalf, 0x1p-25), 0);
    EXPECT_EQ(shortened(kHalf, 0x1.8p-24), 2);
    EXPECT_EQ(shortened(kHalf, 0x1.ffep-15), 0x0400);
    EXPECT_EQ(shortened(kHalf, -0.0), 0x8000);
    EXPECT_EQ(shortened(kBfloat, 1.00390625), 0x3f80);
    EXPECT_EQ(shortened(kBfloat, 1.01171875), 0x3f82);
    for (uint32_t b = 0; b < 0x10000; b++) {
        uint16_t h = static_cast<uint16_t>(b);
        if (!std::isnan(f16_value(h))) {
            ASSERT_EQ(shortened(kHalf, f16_value(h)), h);
        }
        if (!std::isnan(bf16_value(h))) {
            ASSERT_EQ(shortened(kBfloat, bf16_value(h)), h);
        }
    }
    // 2048 * 1 + 1 + a trace: the trace decides
    EXPECT_EQ(shortened(kHalf, odd_fma(2049, 1, 0x1p-48)), shortened(kHalf, 2050));
    EXPECT_EQ(shortened(kHalf, odd_fma(2049, 1, -0x1p-48)), shortened(kHalf, 2048));
}

TEST(Difference, FindsWhatIsWrong) {
    Buffer b = output(4, {bits(1), nan(Format::kF32), near(Format::kF32, 2, 0.5), either(3, 4), anything()});
    std::vector<uint32_t> good = {1, 0x7fc00000, bits_of(2.25f), 4, 99}, bad = {2, 0x3f800000, bits_of(2.75f), 5, 99};
    EXPECT_EQ(difference(b, reinterpret_cast<const uint8_t *>(good.data())), "");
    std::string text = difference(b, reinterpret_cast<const uint8_t *>(bad.data()));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Table, NamesAreUniqueAndThereAreEnough) {
    std::set<std::string> names;
    for (const Case &c : cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_GE(names.size(), 40u);
}

class Isa : public testing::TestWithParam<size_t> {
  protected:
    const Case &it() const { return cases()[GetParam()]; }
};

TEST_P(Isa, IsRead) {
    char message[256];
    PtxModule *m = ptx_parse(it().ptx.data(), it().ptx.size(), message, sizeof message);
    ASSERT_TRUE(m) << message << "\n" << it().ptx;
    const PtxFunction *k = ptx_function(m, "k");
    ASSERT_TRUE(k);
    EXPECT_EQ(k->param_bytes, it().buffers.size() * 8 + it().scalars.size());
    EXPECT_EQ(m->target, it().arch);
    ptx_free(m);
}

TEST_P(Isa, IsAssembled) {
    std::string ptxas = "/usr/local/cuda-13.0/bin/ptxas";
    if (!std::ifstream(ptxas)) ptxas = "/usr/local/cuda/bin/ptxas";
    if (!std::ifstream(ptxas)) GTEST_SKIP() << "ptxas is not installed";
    const char *folder = getenv("TEST_TMPDIR");
    std::string file = std::string(folder ? folder : "/tmp") + "/isa_" + it().name + ".ptx";
    std::ofstream(file) << it().ptx;
    std::string command =
        ptxas + " -arch=sm_" + std::to_string(it().arch) + " " + file + " -o /dev/null > " + file + ".log 2>&1";
    int result = system(command.c_str());
    std::ifstream log(file + ".log");
    std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
    EXPECT_EQ(result, 0) << text << it().ptx;
    remove(file.c_str());
    remove((file + ".log").c_str());
}

// One launch on a device of its own.
class Launched {
  public:
    Launched(const Case &c, int arch, uint64_t seed) : it(c), memory(exec_memory_new(64 << 20)) {
        AluContext context = {arch, seed, false};
        for (const Buffer &b : it.buffers) {
            addresses.push_back(exec_alloc(memory, b.before.size()));
            EXPECT_TRUE(exec_write(memory, addresses.back(), b.before.data(), b.before.size(), message));
        }
        module = exec_module_load(memory, &context, it.ptx.data(), it.ptx.size(), message, sizeof message);
        if (!module) {
            ADD_FAILURE() << message;
            return;
        }
        std::vector<uint8_t> params(addresses.size() * 8 + it.scalars.size());
        memcpy(params.data(), addresses.data(), addresses.size() * 8);
        std::copy(it.scalars.begin(), it.scalars.end(), params.begin() + static_cast<long>(addresses.size() * 8));
        ExecLaunch l = {};
        l.module = module;
        l.entry = "k";
        std::copy(it.grid, it.grid + 3, l.grid);
        std::copy(it.block, it.block + 3, l.block);
        l.dynamic_shared = it.dynamic_shared;
        l.params = params.data();
        l.seed = seed;
        l.instruction_limit = 10000000;
        ExecCounters counters = {};
        fault = exec_launch(&l, &counters, message, sizeof message);
    }
    ~Launched() {
        if (module) exec_module_free(module);
        exec_memory_free(memory);
    }
    void check() {
        if (!module) return;
        EXPECT_EQ(fault, EXEC_OK) << message;
        if (fault != EXEC_OK) return;
        for (size_t i = 0; i < it.buffers.size(); i++) {
            std::vector<uint8_t> got(it.buffers[i].before.size());
            ASSERT_TRUE(exec_read(memory, addresses[i], got.data(), got.size(), message)) << message;
            EXPECT_EQ(difference(it.buffers[i], got.data()), "") << "buffer " << i;
        }
    }

    const Case &it;
    ExecMemory *memory;
    ExecModule *module = nullptr;
    std::vector<uint64_t> addresses;
    char message[1024] = "";
    ExecFault fault = EXEC_OK;
};

bool is_fault(ExecFault f, End end) {
    switch (end) {
    case End::kDone: return f == EXEC_OK;
    case End::kTrap: return f == EXEC_LAUNCH_FAILED || f == EXEC_ILLEGAL_INSTRUCTION;
    case End::kAssert: return f == EXEC_ASSERT;
    case End::kIllegalAddress: return f == EXEC_ILLEGAL_ADDRESS;
    case End::kMisaligned: return f == EXEC_MISALIGNED;
    }
    return false;
}

// What the interpreter refuses, and how it says so: forms that are not built, and what only a GPU puts up with.
struct Refused {
    const char *name, *words;
};
const Refused kRefused[] = {
    {"memory_isspacep_const", "not supported"},
    {"call_registers", "only .param variables can be passed"},
    {"barrier_after_exit",
     "not all threads of the block reach it"}, // the document lets threads that have ended be missing
};

const Refused *refused(const std::string &name) {
    for (const Refused &r : kRefused)
        if (r.name == name) return &r;
    return nullptr;
}

TEST_P(Isa, GivesItsResults) {
    for (int arch : {75, 80, 90, 120}) {
        if (arch < it().arch) continue;
        for (uint64_t seed : {1, 2, 77}) {
            SCOPED_TRACE("sm_" + std::to_string(arch) + ", seed " + std::to_string(seed));
            Launched run(it(), arch, seed);
            if (const Refused *r = refused(it().name)) {
                EXPECT_NE(run.fault, EXEC_OK) << "this works now";
                EXPECT_NE(std::string(run.message).find(r->words), std::string::npos) << run.message;
            } else if (it().end == End::kDone) run.check();
            else EXPECT_TRUE(is_fault(run.fault, it().end)) << run.message;
            if (HasFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Isa, testing::Range<size_t>(0, cases().size()),
                         [](const auto &info) { return cases()[info.param].name; });

} // namespace
