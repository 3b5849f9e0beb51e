// own_memory.h: tests whose application has memory of the driver's, in the primary context of device 0.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_OWN_MEMORY_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_OWN_MEMORY_H

#include <functional>

#include "tests/runtime/device/cuda/on_stand_in.h"

class OwnMemory : public OnStandIn {
  protected:
    void SetUp() override {
        OnStandIn::SetUp();
        if (!IsSkipped()) Begin({{"DEVICES", "2"}});
    }
    void TearDown() override {
        if (context) End();
        OnStandIn::TearDown();
    }
    void Begin(std::vector<std::pair<std::string, std::string>> environment) {
        if (context) End();
        start(environment);
        CuContext popped;
        OK(cu.context_pop(&popped));
    }
    void End() {
        Inside([&] {
            for (CuPointer p : allocations_) EXPECT_EQ(cu.mem_free(p), CU_SUCCESS);
            for (void *p : page_locked_) EXPECT_EQ(cu.host_free(p), CU_SUCCESS);
            for (CuStream s : streams_) EXPECT_EQ(cu.stream_destroy(s), CU_SUCCESS);
        });
        allocations_.clear(), page_locked_.clear(), streams_.clear();
        EXPECT_EQ(cu.primary_release(0), CU_SUCCESS);
        context = nullptr;
        ExpectNoLeak();
    }
    void Inside(const std::function<void()> &work) {
        CuContext popped;
        ASSERT_EQ(cu.context_push(context), CU_SUCCESS);
        work();
        ASSERT_EQ(cu.context_pop(&popped), CU_SUCCESS);
    }
    // Device memory that ends where the array does.
    void *Allocate(size_t bytes) {
        CuPointer p = 0;
        Inside([&] { p = alloc(bytes); });
        allocations_.push_back(p);
        return reinterpret_cast<void *>(p);
    }
    // Page-locked memory of the host.
    void *Lock(size_t bytes) {
        Inside([&] { page_locked_.push_back(pinned(bytes / 4)); });
        return page_locked_.back();
    }
    CuStream MakeStream() {
        CuStream s = nullptr;
        Inside([&] { s = stream(); });
        streams_.push_back(s);
        return s;
    }

    // Each call of the driver that a session with |options| makes fails in turn.
    void ExpectEveryCallMayFail(const amp_session_options &options, const void *const *inputs) {
        std::vector<float> logits(8 * TINY_CLASSES);
        void *outputs[] = {logits.data()};
        auto everything = [&](amp_error *err) {
            TinyOnCuda tiny;
            amp_session *session = nullptr;
            amp_step_report step;
            amp_status s = amp_session_create(tiny.model, tiny.params, &options, &session, err);
            if (!s) s = amp_step(session, inputs, {8, 0}, nullptr, err);
            if (!s) s = amp_step(session, inputs, {8, 0}, &step, err);
            if (!s) s = amp_infer(session, inputs, {8, 0}, outputs, err);
            amp_session_release(session);
            return s;
        };
        amp_error err = {};
        int64_t calls = 0;
        reset_counters();
        ASSERT_EQ(everything(&err), AMP_OK) << err.message;
        {
            Report r = report();
            const amp_json *list = amp_json_get(r.root(), "calls");
            for (size_t i = 0; i < list->object.count; i++) calls += list->object.members[i].value.number.integer;
        }
        int refused = 0;
        for (int64_t k = 1; k <= calls; k++) {
            ASSERT_EQ(set_fail(("*:" + std::to_string(k)).c_str()), 0);
            amp_status status = everything(&err);
            refused += status != AMP_OK;
            if (status) {
                EXPECT_GT(strlen(err.message), 10u) << k;
            }
        }
        set_fail("");
        EXPECT_GT(refused, calls / 2);
    }

    std::vector<CuPointer> allocations_;
    std::vector<void *> page_locked_;
    std::vector<CuStream> streams_;
};

#endif
