// Sessions whose inputs are in page-locked memory: the bits are the same as with other arrays, nothing is staged,
// arrays may be written when amp.h says so and no earlier, and what is no index or no such address is told of.
#include <set>

#include "tests/runtime/device/cuda/own_memory.h"

namespace {

class PinnedInputs : public OwnMemory {
  protected:
    static amp::SessionOptions Pinned(int64_t capacity) {
        amp::SessionOptions o = CudaOptions(capacity);
        o.cuda.pinned_inputs = 1;
        return o;
    }
    struct Arrays { // of a batch of |n| samples at most
        Arrays(PinnedInputs *test, int64_t n)
            : x(static_cast<float *>(test->Lock((size_t)n * TINY_FEATURES * 4))),
              targets(static_cast<int *>(test->Lock((size_t)n * 4))), inputs{x, targets} {}
        void Fill(const TinyBatch &batch) {
            std::copy(batch.x.begin(), batch.x.end(), x);
            std::copy(batch.targets.begin(), batch.targets.end(), targets);
        }
        float *x;
        int *targets;
        const void *inputs[2];
    };
};

TEST_F(PinnedInputs, GiveTheBitsOfOtherArrays) {
    for (int arch : {75, 90})
        for (int way = 0; way < 4; way++) {
            SCOPED_TRACE("sm_" + std::to_string(arch) + ", way " + std::to_string(way));
            Begin({{"ARCH", std::to_string(arch)}, {"SEED", std::to_string(way)}});
            TinyOnCuda a, b;
            amp::SessionOptions there = Pinned(40);
            there.inspect.separate_buffers = way & 1, there.inspect.keep_values = way >> 1;
            amp_session *pageable = a.Open(CudaOptions(40)), *locked = b.Open(there);
            Arrays sets[] = {{this, 40}, {this, 40}, {this, 40}};
            amp_error err = {};
            amp_step_report ra, rb;
            double ma, mb;
            int32_t is_there;
            for (unsigned i = 0; i < 9; i++) {
                TinyBatch batch(40 - 3 * (i % 4), i);
                sets[i % 3].Fill(batch);
                ASSERT_EQ(amp_step(pageable, batch.inputs, {batch.n, 0}, &ra, &err), AMP_OK) << err.message;
                ASSERT_EQ(amp_session_get_metrics(pageable, &ma, &err), AMP_OK) << err.message;
                if (i % 2) {
                    ASSERT_EQ(amp_step(locked, sets[i % 3].inputs, {batch.n, 0}, &rb, &err), AMP_OK) << err.message;
                } else {
                    ASSERT_EQ(amp_step(locked, sets[i % 3].inputs, {batch.n, 0}, nullptr, &err), AMP_OK) << err.message;
                    ASSERT_EQ(amp_session_next_report(locked, 1, &rb, nullptr, &mb, &is_there, &err), AMP_OK);
                    EXPECT_EQ(ma, mb);
                }
                EXPECT_EQ(ra.loss, rb.loss);
                EXPECT_EQ(ra.scale, rb.scale);
            }
            EXPECT_EQ(a.Weight(), b.Weight());
            EXPECT_EQ(a.Bias(), b.Bias());
            TinyBatch batch(37, 99);
            Arrays &set = sets[0];
            set.Fill(batch);
            double la, lb;
            ASSERT_EQ(amp_eval(pageable, batch.inputs, {37, 0}, &la, &ma, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_eval(locked, set.inputs, {37, 0}, &lb, &mb, &err), AMP_OK) << err.message;
            EXPECT_EQ(la, lb);
            EXPECT_EQ(ma, mb);
            std::vector<float> za(37 * TINY_CLASSES), zb(37 * TINY_CLASSES);
            void *oa[] = {za.data()}, *ob[] = {zb.data()};
            ASSERT_EQ(amp_infer(pageable, batch.inputs, {37, 0}, oa, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_infer(locked, set.inputs, {37, 0}, ob, &err), AMP_OK) << err.message;
            EXPECT_EQ(za, zb);
        }
}

TEST_F(PinnedInputs, AreNotStagedAndNotWaitedFor) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(Pinned(8));
    TinyBatch batch(8);
    Arrays set(this, 8);
    set.Fill(batch);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(amp_step(session, set.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    Inside([&] { EXPECT_EQ(cu.context_sync(), CU_SUCCESS); });
    reset_counters();
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_step(session, set.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    Report r = report();
    EXPECT_EQ(r.calls("cuMemcpyHtoDAsync_v2"), 2 * 3) << "the header and two inputs";
    EXPECT_EQ(r.calls("cuPointerGetAttribute"), 2 * 4) << "both ends of an array, once each";
    EXPECT_EQ(r.total("host_synchronisations"), 0);
    EXPECT_EQ(r.calls("cuGraphLaunch"), 2);
    // what both sessions hold on the device is the same, so the rest of |total| is of the host
    amp_memory_info locked, pageable;
    amp_session_get_memory(tiny.Open(Pinned(8)), &locked);
    amp_session_get_memory(tiny.Open(CudaOptions(8)), &pageable);
    EXPECT_EQ(locked.device, pageable.device);
    const int64_t inputs = 8 * TINY_FEATURES * 4 + 256; // each on 256 bytes
    EXPECT_EQ(static_cast<int64_t>(pageable.total - locked.total), 2 * inputs);
}

// Larger than one piece of what is staged, and no whole number of pieces.
TEST_F(PinnedInputs, LargeArraysGiveTheSameBits) {
    const int64_t n = 9000;
    TinyBatch batch(n, 5);
    Arrays set(this, n);
    set.Fill(batch);
    std::vector<float> z[3];
    const amp::SessionOptions options[] = {CudaOptions(n / 4), CudaOptions(n), Pinned(n)};
    for (int way = 0; way < 3; way++) {
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(options[way]);
        z[way].resize((size_t)n * TINY_CLASSES);
        for (int64_t i = 0; i < n; i += options[way].capacity.n) {
            const void *inputs[] = {(way == 2 ? set.x : batch.x.data()) + i * TINY_FEATURES, nullptr};
            void *outputs[] = {z[way].data() + i * TINY_CLASSES};
            reset_counters();
            ASSERT_EQ(amp_infer(session, inputs, {options[way].capacity.n, 0}, outputs, &tiny.err), AMP_OK)
                << tiny.err.message;
            const int params = i ? 0 : 3; // that go to the device with the first
            // all together; 1 MiB with the header, and the rest; the header, and the array
            EXPECT_EQ(report().calls("cuMemcpyHtoDAsync_v2"), params + (way ? 2 : 1));
        }
    }
    EXPECT_EQ(z[0], z[1]);
    EXPECT_EQ(z[0], z[2]);
}

// After two later calls no seed lets the device see what is written to a set; with one set for all, some does.
TEST_F(PinnedInputs, MayBeWrittenAfterTwoLaterCalls) {
    for (size_t later : {2, 0}) {
        std::set<bool> same;
        for (int seed = 1; seed < 32 && !same.count(false); seed++) {
            Begin({{"SEED", std::to_string(seed)}});
            TinyOnCuda a, b;
            amp_session *pageable = a.Open(CudaOptions(8)), *locked = b.Open(Pinned(8));
            std::vector<Arrays> sets;
            for (size_t i = 0; i <= later; i++) sets.emplace_back(this, 8);
            for (unsigned i = 0; i < 12; i++)
                ASSERT_EQ(amp_step(pageable, TinyBatch(8, i).inputs, {8, 0}, nullptr, &a.err), AMP_OK) << a.err.message;
            for (unsigned i = 0; i < 12; i++) {
                Arrays &set = sets[i % sets.size()];
                set.Fill(TinyBatch(8, i));
                ASSERT_EQ(amp_step(locked, set.inputs, {8, 0}, nullptr, &b.err), AMP_OK) << b.err.message;
            }
            same.insert(a.Weight() == b.Weight());
        }
        if (later == 2) {
            EXPECT_EQ(same, std::set<bool>{true});
        } else {
            EXPECT_TRUE(same.count(false)) << "the stand-in would not show it";
        }
    }
}

// Calls that wait for results, the report of a call, and the end of the session give arrays back.
TEST_F(PinnedInputs, MayBeWrittenAfterResults) {
    std::vector<float> logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    for (int seed = 1; seed < 16; seed++) {
        SCOPED_TRACE(seed);
        Begin({{"SEED", std::to_string(seed)}});
        TinyOnCuda a, b;
        amp_session *pageable = a.Open(CudaOptions(8)), *locked = b.Open(Pinned(8));
        Arrays set(this, 8), other(this, 8);
        TinyBatch last(8, 77);
        other.Fill(last);
        amp_error err = {};
        amp_step_report report;
        double loss;
        int32_t there;
        for (unsigned i = 0; i < 16; i++) {
            TinyBatch batch(8, i);
            set.Fill(batch);
            ASSERT_EQ(amp_step(pageable, batch.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_step(locked, set.inputs, {8, 0}, i % 4 ? nullptr : &report, &err), AMP_OK) << err.message;
            if (i % 4 == 1) {
                ASSERT_EQ(amp_eval(locked, other.inputs, {8, 0}, &loss, nullptr, &err), AMP_OK) << err.message;
            } else if (i % 4 == 2) {
                ASSERT_EQ(amp_infer(locked, other.inputs, {8, 0}, outputs, &err), AMP_OK) << err.message;
            } else if (i % 4 == 3) {
                do ASSERT_EQ(amp_session_next_report(locked, 1, &report, nullptr, nullptr, &there, &err), AMP_OK);
                while (there);
            }
        }
        ASSERT_EQ(amp_step(pageable, last.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_step(locked, other.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
        b.Close(locked);
        other.Fill(TinyBatch(8, 1234));
        EXPECT_EQ(a.Weight(), b.Weight());
    }
}

TEST_F(PinnedInputs, IndicesAreChecked) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(Pinned(8));
    Arrays set(this, 8);
    set.Fill(TinyBatch(8));
    set.targets[3] = 10;
    const std::vector<float> before = tiny.Weight();
    amp_error err = {};
    EXPECT_EQ(amp_step(session, set.inputs, {8, 0}, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "input targets, sample 3: index 10 is neither in 0 .. 9 nor -100 (ignored)");
    EXPECT_EQ(amp_eval(session, set.inputs, {8, 0}, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(tiny.Weight(), before);
    set.targets[3] = 9;
    EXPECT_EQ(amp_step(session, set.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
}

TEST_F(PinnedInputs, WrongAddressesAreRefusedBeforeAnythingChanges) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(Pinned(8));
    TinyBatch batch(8);
    Arrays set(this, 8);
    set.Fill(batch);
    void *on_device = Allocate(8 * TINY_FEATURES * 4);
    const char *pageable = "is in no page-locked memory, and the session was created with pinned_inputs = 1; copy the "
                           "array to page-locked memory, or create the session without it";
    const struct {
        const void *x;
        const char *said;
    } cases[] = {
        {nullptr, "input x is NULL"},
        {batch.x.data(), pageable},
        {batch.x.data(), "input x: byte 0 of the array at "},
        {on_device, "is in memory of a CUDA device, and the session was created with pinned_inputs = 1"},
        {set.x + 1, "input x: byte 1279 of the array at "},
        {reinterpret_cast<const char *>(set.x) + 2, "is not aligned to its elements of 4 bytes"},
        {reinterpret_cast<const void *>(uintptr_t{4096}), pageable},
    };
    std::vector<float> before = tiny.Weight(), logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    reset_counters();
    for (const auto &c : cases) {
        const void *inputs[] = {c.x, set.targets};
        amp_error err = {};
        EXPECT_EQ(amp_step(session, inputs, {8, 0}, nullptr, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
        EXPECT_EQ(amp_eval(session, inputs, {8, 0}, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
        EXPECT_EQ(amp_infer(session, inputs, {8, 0}, outputs, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
    }
    EXPECT_EQ(report().calls("cuGraphLaunch"), 0);
    EXPECT_EQ(report().calls("cuMemcpyHtoDAsync_v2"), 0);
    EXPECT_EQ(tiny.Weight(), before);
    EXPECT_EQ(amp_step(session, set.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
}

// Each call of the driver that such a session makes fails in turn.
TEST_F(PinnedInputs, EveryCallMayFail) {
    Arrays set(this, 8);
    set.Fill(TinyBatch(8));
    ExpectEveryCallMayFail(Pinned(8), set.inputs);
}

// A copy of an input, or of a header, fails once: the next call goes on.
TEST_F(PinnedInputs, AFailedCopyEndsItsCallAlone) {
    std::vector<float> wanted;
    for (int which = 0; which < 4; which++) {
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(Pinned(8));
        Arrays sets[] = {{this, 8}, {this, 8}, {this, 8}};
        amp_error err = {};
        for (unsigned i = 0; i < 6; i++) {
            sets[i % 3].Fill(TinyBatch(8, i));
            if (i == 3 && which) {
                set_fail(("cuMemcpyHtoDAsync_v2:" + std::to_string(which) + ":1").c_str());
                EXPECT_NE(amp_step(session, sets[i % 3].inputs, {8, 0}, nullptr, &err), AMP_OK);
                set_fail("");
            }
            ASSERT_EQ(amp_step(session, sets[i % 3].inputs, {8, 0}, nullptr, &err), AMP_OK)
                << which << ": " << err.message;
        }
        if (which) EXPECT_EQ(tiny.Weight(), wanted) << which;
        else wanted = tiny.Weight();
    }
}

// Memory of amp_session_alloc_pinned: what is given back is read to its end before.
TEST_F(PinnedInputs, MemoryOfASession) {
    for (int seed = 1; seed < 8; seed++) {
        Begin({{"SEED", std::to_string(seed)}});
        TinyOnCuda a, b;
        amp_session *pageable = a.Open(CudaOptions(8)), *locked = b.Open(Pinned(8));
        for (unsigned i = 0; i < 4; i++) {
            TinyBatch batch(8, i);
            void *memory[2];
            for (int k = 0; k < 2; k++) {
                const size_t bytes = k ? 8 * 4 : 8 * TINY_FEATURES * 4;
                ASSERT_EQ(amp_session_alloc_pinned(locked, bytes, &memory[k], &a.err), AMP_OK) << a.err.message;
                memcpy(memory[k], batch.inputs[k], bytes);
            }
            ASSERT_EQ(amp_step(pageable, batch.inputs, {8, 0}, nullptr, &a.err), AMP_OK) << a.err.message;
            ASSERT_EQ(amp_step(locked, memory, {8, 0}, nullptr, &b.err), AMP_OK) << b.err.message;
            for (void *array : memory) amp_session_free_pinned(locked, array);
        }
        EXPECT_EQ(a.Weight(), b.Weight());
    }
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(1));
    void *memory = &memory;
    ASSERT_EQ(set_fail("cuMemHostAlloc:1:2"), 0);
    EXPECT_EQ(amp_session_alloc_pinned(session, 64, &memory, &tiny.err), AMP_OUT_OF_MEMORY);
    EXPECT_EQ(memory, nullptr);
    ExpectMessage(tiny.err, "cuMemHostAlloc");
    set_fail("");
    ASSERT_EQ(amp_session_alloc_pinned(session, 0, &memory, &tiny.err), AMP_OK) << tiny.err.message;
    amp_session_free_pinned(session, memory);
    for (const char *device : {"cpu", "null"}) {
        TinyOnCuda other;
        amp::SessionOptions o = TinyOptions(1);
        o.device = device;
        EXPECT_EQ(amp_session_alloc_pinned(other.Open(o), 64, &memory, &other.err), AMP_UNSUPPORTED);
        ExpectMessage(other.err,
                      (std::string("amp_session_alloc_pinned: sessions on ") + device + " read any memory").c_str());
    }
}

TEST_F(PinnedInputs, AreRefusedByOtherDevicesAndBesideDeviceInputs) {
    for (const char *device : {"cpu", "null", "cuda"}) {
        TinyOnCuda tiny;
        amp::SessionOptions o = Pinned(8);
        amp_session *session;
        o.device = device;
        o.cuda.device_inputs = !strcmp(device, "cuda");
        EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &session, &tiny.err), AMP_INVALID_ARGUMENT);
        ExpectMessage(tiny.err, o.cuda.device_inputs
                                    ? "device_inputs and pinned_inputs are both set: arrays are in one kind of memory; "
                                      "leave one at 0"
                                    : (std::string("pinned_inputs: the device ") + device +
                                       " reads arrays of the host; take the device cuda, or leave it at 0")
                                          .c_str());
    }
}

} // namespace
