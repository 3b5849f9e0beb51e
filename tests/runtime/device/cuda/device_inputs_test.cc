// Sessions whose inputs are in device memory: the bits are the same as with arrays of the host, nothing of them comes
// from the host, and what is no index or no address is told of.
#include "tests/runtime/device/cuda/own_memory.h"
#include "tests/runtime/device/cuda/upload_twice.h"

namespace {

class DeviceInputs : public OwnMemory {
  protected:
    template <class T> void *Copy(const std::vector<T> &values) {
        void *p = Allocate(values.size() * sizeof(T));
        Inside([&] {
            auto to = reinterpret_cast<CuPointer>(p);
            EXPECT_EQ(cu.copy_in(to, values.data(), values.size() * sizeof(T), nullptr), CU_SUCCESS);
            EXPECT_EQ(cu.stream_sync(nullptr), CU_SUCCESS);
        });
        return p;
    }
    static amp::SessionOptions OnDevice(int64_t capacity) {
        amp::SessionOptions o = CudaOptions(capacity);
        o.cuda.device_inputs = 1;
        return o;
    }
    struct There { // a batch there
        There(DeviceInputs *test, const TinyBatch &batch) : inputs{test->Copy(batch.x), test->Copy(batch.targets)} {}
        const void *inputs[2];
    };
};

TEST_F(DeviceInputs, GiveTheBitsOfTheHosts) {
    for (int arch : {75, 90})
        for (int way = 0; way < 4; way++) {
            SCOPED_TRACE("sm_" + std::to_string(arch) + ", way " + std::to_string(way));
            Begin({{"ARCH", std::to_string(arch)}, {"SEED", std::to_string(way)}});
            TinyOnCuda a, b;
            amp::SessionOptions there = OnDevice(40);
            there.inspect.separate_buffers = way & 1, there.inspect.keep_values = way >> 1;
            amp_session *host = a.Open(CudaOptions(40)), *device = b.Open(there);
            amp_error err = {};
            amp_step_report ra, rb;
            for (unsigned i = 0; i < 8; i++) {
                TinyBatch batch(40 - 3 * (i % 4), i);
                There copy(this, batch);
                ASSERT_EQ(amp_step(host, batch.inputs, {batch.n, 0}, &ra, &err), AMP_OK) << err.message;
                ASSERT_EQ(amp_step(device, copy.inputs, {batch.n, 0}, i % 2 ? &rb : nullptr, &err), AMP_OK)
                    << err.message;
                if (i % 2 == 0) continue;
                EXPECT_EQ(ra.loss, rb.loss);
                EXPECT_EQ(ra.scale, rb.scale);
            }
            EXPECT_EQ(a.Weight(), b.Weight());
            EXPECT_EQ(a.Bias(), b.Bias());
            TinyBatch batch(37, 99);
            There copy(this, batch);
            double la, lb, ma, mb;
            ASSERT_EQ(amp_eval(host, batch.inputs, {37, 0}, &la, &ma, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_eval(device, copy.inputs, {37, 0}, &lb, &mb, &err), AMP_OK) << err.message;
            EXPECT_EQ(la, lb);
            EXPECT_EQ(ma, mb);
            std::vector<float> za(37 * TINY_CLASSES), zb(37 * TINY_CLASSES);
            void *oa[] = {za.data()}, *ob[] = {zb.data()};
            ASSERT_EQ(amp_infer(host, batch.inputs, {37, 0}, oa, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_infer(device, copy.inputs, {37, 0}, ob, &err), AMP_OK) << err.message;
            EXPECT_EQ(za, zb);
        }
}

TEST_F(DeviceInputs, SendNothingAndWaitForNothing) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(OnDevice(8));
    TinyBatch batch(8);
    There copy(this, batch);
    ASSERT_EQ(amp_step(session, copy.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    reset_counters();
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_step(session, copy.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    Report r = report();
    EXPECT_EQ(r.total("bytes_host_to_device"), 0) << "the header, which has the seed, is there";
    EXPECT_EQ(r.total("host_synchronisations"), 0);
    EXPECT_EQ(r.calls("cuGraphLaunch"), 2);
    EXPECT_EQ(r.calls("cuMemAlloc_v2"), 0);
    amp_memory_info there, here;
    amp_session_get_memory(session, &there);
    amp_session_get_memory(tiny.Open(CudaOptions(8)), &here);
    EXPECT_LT(there.device, here.device) << "nothing is staged";
}

// Of all calls of the driver, which are most of what a step takes of the processor's time.
TEST_F(DeviceInputs, AStepMakesFewCallsOfTheDriver) {
    for (int devices : {1, 2}) {
        Begin({{"DEVICES", std::to_string(devices)}});
        TinyOnCuda tiny;
        amp_session *there = tiny.Open(OnDevice(8));
        TinyBatch batch(8);
        There copy(this, batch);
        const int steps = 10, asked = devices == 1 ? 4 : 8;
        for (int i = 0; i < 2; i++)
            ASSERT_EQ(amp_step(there, copy.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
        reset_counters();
        for (int i = 0; i < steps; i++)
            ASSERT_EQ(amp_step(there, copy.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
        Report r = report();
        const std::pair<const char *, int> most[] = {
            {"cuCtxPushCurrent_v2", 1},  {"cuCtxPopCurrent_v2", 1}, {"cuPointerGetAttribute", asked}, // of two arrays
            {"cuMemsetD32Async", 1},                           // what indices were wrong
            {"cuMemcpyDtoDAsync_v2", 1},                       // one array, ..
            {"cuLaunchKernel", 1},                             // .. and one of indices
            {"cuGraphLaunch", 1},        {"cuEventRecord", 2}, // of the params, and the copy of scalars
            {"cuMemcpyDtoHAsync_v2", 1}, {"cuEventQuery", 3}};
        const amp_json *calls = amp_json_get(r.root(), "calls");
        for (size_t i = 0; i < calls->object.count; i++) {
            const std::string name = calls->object.members[i].key.data;
            int64_t bound = 0;
            for (const auto &[known, count] : most)
                if (name == known) bound = count * steps;
            EXPECT_LE(calls->object.members[i].value.number.integer, bound) << name;
        }
    }
}

// The program that adds running statistics of several ranks sets the number of the micro-batch on the device.
TEST_F(DeviceInputs, TheNumberOfAMicroBatchIsSentAgainAfterARunThatSetsIt) {
    amp_error err = {};
    int64_t seen[] = {-1, -1};
    ASSERT_EQ(upload_twice(Copy(std::vector<float>{1}), 5, 7, seen, &err), AMP_OK) << err.message;
    EXPECT_EQ(seen[0], 5);
    EXPECT_EQ(seen[1], 5);
    reset_counters();
    ASSERT_EQ(upload_twice(Copy(std::vector<float>{1}), 5, 5, seen, &err), AMP_OK) << err.message;
    EXPECT_EQ(seen[1], 5);
    EXPECT_EQ(report().calls("cuMemsetD32Async"), 2) << "a rank alone sets the number that is there";
}

// The array is written by the stream's own work before the call, and again after it.
TEST_F(DeviceInputs, AreReadInTheOrderOfTheStream) {
    for (int seed = 1; seed <= 16; seed++) {
        Begin({{"SEED", std::to_string(seed)}});
        TinyOnCuda a, b;
        amp::SessionOptions o = OnDevice(8);
        CuStream s = MakeStream();
        o.cuda.stream = s;
        amp_session *host = a.Open(CudaOptions(8)), *device = b.Open(o);
        void *x = Allocate(8 * TINY_FEATURES * 4), *targets = Allocate(8 * 4);
        const void *inputs[] = {x, targets};
        amp_error err = {};
        std::vector<There> made;
        for (unsigned i = 0; i < 5; i++) {
            TinyBatch batch(8, i);
            made.emplace_back(this, batch);
            ASSERT_EQ(amp_step(host, batch.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
            Inside([&] {
                auto from = [&](int k) { return reinterpret_cast<CuPointer>(made.back().inputs[k]); };
                OK(cu.copy(reinterpret_cast<CuPointer>(x), from(0), 8 * TINY_FEATURES * 4, s));
                OK(cu.copy(reinterpret_cast<CuPointer>(targets), from(1), 8 * 4, s));
            });
            ASSERT_EQ(amp_step(device, inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
        }
        EXPECT_EQ(a.Weight(), b.Weight()) << seed;
    }
}

// What is no index, is computed with as if the sample were ignored.
TEST_F(DeviceInputs, AnIndexOutOfRangeIsToldOfAndNeverUsed) {
    for (int bad : {10, -1, -101, 1 << 30, INT32_MIN, INT32_MAX}) {
        TinyOnCuda a, b;
        amp_session *host = a.Open(CudaOptions(8)), *device = b.Open(OnDevice(8));
        TinyBatch batch(8), wrong(8);
        batch.targets[3] = batch.targets[6] = TINY_IGNORE;
        wrong.targets[3] = bad, wrong.targets[6] = 12345;
        There good(this, batch), copy(this, wrong);
        amp_error err = {};
        amp_step_report report;
        double loss;
        std::string said = "input targets, sample 3: index " + std::to_string(bad) +
                           " is neither in 0 .. 9 nor -100 (ignored); it was in device memory, and its call computed "
                           "with -100 in its place";
        ASSERT_EQ(amp_step(host, batch.inputs, {8, 0}, &report, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_step(device, copy.inputs, {8, 0}, &report, &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(err.message, said);
        EXPECT_EQ(a.Weight(), b.Weight());
        EXPECT_EQ(amp_eval(device, copy.inputs, {8, 0}, &loss, nullptr, &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(err.message, said);
        ASSERT_EQ(amp_eval(device, good.inputs, {8, 0}, &loss, nullptr, &err), AMP_OK) << err.message << ": told once";
        std::vector<float> logits(8 * TINY_CLASSES);
        void *outputs[] = {logits.data()};
        ASSERT_EQ(amp_infer(device, copy.inputs, {8, 0}, outputs, &err), AMP_OK)
            << err.message << ": it reads no targets";
        // without a report the first call says it whose run, or a later look at it, is done: this one if chance ran it
        amp_scaler_state scaler;
        amp_status status = amp_step(device, copy.inputs, {8, 0}, nullptr, &err);
        if (status == AMP_OK) status = amp_session_get_scaler(device, &scaler, &err);
        EXPECT_EQ(status, AMP_INVALID_ARGUMENT);
        EXPECT_EQ(err.message, said);
        ASSERT_EQ(amp_session_get_scaler(device, &scaler, &err), AMP_OK) << err.message;
        EXPECT_EQ(scaler.iteration, 2) << "the steps were taken";
        ASSERT_EQ(amp_step(device, good.inputs, {8, 0}, &report, &err), AMP_OK) << err.message;
    }
}

// More steps than are read back at a time: the first is kept.
TEST_F(DeviceInputs, AFaultIsNotLostWhereNobodyAsks) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(OnDevice(8));
    TinyBatch batch(8), wrong(8);
    wrong.targets[7] = 77;
    There good(this, batch), copy(this, wrong);
    amp_error err = {};
    int told = amp_step(session, copy.inputs, {8, 0}, nullptr, &err) == AMP_INVALID_ARGUMENT;
    for (int i = 0; i < 20; i++) {
        amp_status status = amp_step(session, good.inputs, {8, 0}, nullptr, &err);
        ASSERT_TRUE(status == AMP_OK || status == AMP_INVALID_ARGUMENT) << err.message;
        told += status == AMP_INVALID_ARGUMENT;
    }
    double loss;
    told += amp_eval(session, good.inputs, {8, 0}, &loss, nullptr, &err) == AMP_INVALID_ARGUMENT;
    EXPECT_EQ(told, 1);
}

TEST_F(DeviceInputs, WrongAddressesAreRefusedBeforeAnythingChanges) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(OnDevice(8));
    TinyBatch batch(8);
    There copy(this, batch);
    void *page_locked = nullptr, *elsewhere, *freed;
    Inside([&] { page_locked = pinned(8 * TINY_FEATURES); });
    CuContext second, popped;
    CuPointer p;
    OK(cu.primary_retain(&second, 1));
    OK(cu.context_push(second));
    p = alloc(8 * TINY_FEATURES * 4);
    elsewhere = reinterpret_cast<void *>(p);
    OK(cu.context_pop(&popped));
    Inside([&] {
        CuPointer f = alloc(4096);
        OK(cu.mem_free(f));
        freed = reinterpret_cast<void *>(f);
    });
    const struct {
        const void *x;
        const char *said;
    } cases[] = {
        {nullptr, "input x is NULL"},
        {batch.x.data(), "is in no memory of a CUDA device, and the session was created with device_inputs = 1; copy "
                         "the array to the device, or create the session without it"},
        {page_locked, "is in page-locked memory of the host"},
        {freed, "is in no memory of a CUDA device"},
        {static_cast<const char *>(copy.inputs[0]) + 4, "input x: byte 1279 of the array at "},
        {static_cast<const char *>(copy.inputs[0]) + 2, "is not aligned to its elements of 4 bytes"},
        {elsewhere, "is in the memory of cuda:1, and the session runs on cuda:0; copy it"},
        {reinterpret_cast<const void *>(uintptr_t{4096}), "is in no memory of a CUDA device"},
        {reinterpret_cast<const void *>(UINTPTR_MAX - 3), "is in no memory of a CUDA device"},
    };
    std::vector<float> before = tiny.Weight(), logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    reset_counters();
    for (const auto &c : cases) {
        const void *inputs[] = {c.x, copy.inputs[1]};
        amp_error err = {};
        EXPECT_EQ(amp_step(session, inputs, {8, 0}, nullptr, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
        EXPECT_EQ(amp_eval(session, inputs, {8, 0}, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
        EXPECT_EQ(amp_infer(session, inputs, {8, 0}, outputs, &err), AMP_INVALID_ARGUMENT);
        ExpectMessage(err, c.said);
    }
    EXPECT_EQ(report().calls("cuGraphLaunch"), 0);
    EXPECT_EQ(report().calls("cuMemcpyDtoDAsync_v2"), 0);
    EXPECT_EQ(tiny.Weight(), before);
    EXPECT_EQ(amp_step(session, copy.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    OK(cu.context_push(second));
    OK(cu.mem_free(p));
    OK(cu.context_pop(&popped));
    OK(cu.primary_release(1));
    Inside([&] { OK(cu.host_free(page_locked)); });
}

// Each call of the driver that such a session makes fails in turn.
TEST_F(DeviceInputs, EveryCallMayFail) {
    TinyBatch batch(8);
    There copy(this, batch);
    ExpectEveryCallMayFail(OnDevice(8), copy.inputs);
}

TEST_F(DeviceInputs, AreRefusedByOtherDevices) {
    for (const char *device : {"cpu", "null"}) {
        TinyOnCuda tiny;
        amp::SessionOptions o = OnDevice(8);
        amp_session *session;
        o.device = device;
        EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &session, &tiny.err), AMP_INVALID_ARGUMENT);
        ExpectMessage(tiny.err, (std::string("device_inputs: the device ") + device +
                                 " reads arrays of the host; take the device cuda, or leave it at 0")
                                    .c_str());
    }
}

} // namespace
