// A session on a stream of the application: its context is used, and the caller's current context stays as it is.
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

class AppStream : public OnStandIn {
  protected:
    void SetUp() override {
        OnStandIn::SetUp();
        if (IsSkipped()) return;
        begin({{"DEVICES", "2"}});
        OK(cu.init(0));
        OK(cu.primary_retain(&contexts_[0], 0));
        OK(cu.primary_retain(&contexts_[1], 1));
    }
    void TearDown() override {
        for (int i = 0; i < 2; i++)
            if (contexts_[i]) {
                OK(cu.primary_release(i));
            }
        OnStandIn::TearDown();
    }
    CuStream MakeStream(int device) {
        CuContext popped;
        EXPECT_EQ(cu.context_push(contexts_[device]), CU_SUCCESS);
        CuStream s = stream();
        EXPECT_EQ(cu.context_pop(&popped), CU_SUCCESS);
        return s;
    }
    CuContext Current() {
        CuContext current = nullptr;
        EXPECT_EQ(cu.context_current(&current), CU_SUCCESS);
        return current;
    }
    CuContext contexts_[2] = {};
};

TEST_F(AppStream, RunsThereAndLeavesTheCurrentContext) {
    for (int current = -1; current < 2; current++) {
        CuContext expected = current < 0 ? nullptr : contexts_[current], popped;
        if (expected) {
            OK(cu.context_push(expected));
        }
        {
            TinyOnCuda tiny;
            amp::SessionOptions o = CudaOptions(8);
            o.cuda.stream = MakeStream(1);
            amp_session *session = tiny.Open(o);
            EXPECT_EQ(Current(), expected);
            TinyBatch batch(8);
            amp_step_report report;
            amp_error err = {};
            double loss;
            ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, &report, &err), AMP_OK) << err.message;
            EXPECT_EQ(Current(), expected);
            ASSERT_EQ(amp_eval(session, batch.inputs, {8, 0}, &loss, nullptr, &err), AMP_OK) << err.message;
            tiny.Weight();
            EXPECT_EQ(Current(), expected);
            batch.targets[0] = 99;
            ASSERT_NE(amp_step(session, batch.inputs, {8, 0}, &report, &err), AMP_OK);
            EXPECT_EQ(Current(), expected);
            tiny.Close(session);
            OK(cu.context_push(contexts_[1]));
            EXPECT_EQ(cu.stream_query(static_cast<CuStream>(o.cuda.stream)), CU_SUCCESS) << "it is the application's";
            OK(cu.stream_destroy(static_cast<CuStream>(o.cuda.stream)));
            OK(cu.context_pop(&popped));
        }
        EXPECT_EQ(Current(), expected);
        if (expected) {
            OK(cu.context_pop(&popped));
        }
    }
}

// What the application puts on its stream before a call comes before it.
TEST_F(AppStream, WhatIsBeforeOnTheStreamComesBefore) {
    TinyOnCuda tiny;
    amp::SessionOptions o = CudaOptions(8);
    CuStream s = MakeStream(0);
    o.cuda.stream = s;
    amp_session *session = tiny.Open(o);
    CuContext popped;
    OK(cu.context_push(contexts_[0]));
    CuEvent begin = event(), end = event();
    OK(cu.event_record(begin, s));
    TinyBatch batch(8);
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    OK(cu.event_record(end, s));
    OK(cu.event_sync(end)); // the step as well
    EXPECT_EQ(cu.stream_query(s), CU_SUCCESS);
    OK(cu.event_destroy(begin));
    OK(cu.event_destroy(end));
    OK(cu.context_pop(&popped));
}

TEST_F(AppStream, SessionsOfOneContextShareParamsAndOthersDoNot) {
    TinyOnCuda tiny;
    amp::SessionOptions with_stream = CudaOptions(8), without = CudaOptions(8), elsewhere = CudaOptions(8);
    with_stream.cuda.stream = MakeStream(0);
    elsewhere.cuda.index = 1;
    amp_session *a = tiny.Open(with_stream), *b = tiny.Open(without), *c;
    TinyBatch batch(8);
    double x, y;
    ASSERT_EQ(amp_step(a, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_eval(b, batch.inputs, {8, 0}, &x, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_eval(a, batch.inputs, {8, 0}, &y, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(x, y);
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &elsewhere, &c, &tiny.err), AMP_WRONG_STATE);
    ExpectMessage(tiny.err, "the memory of cuda:1 (");
    tiny.Close(a), tiny.Close(b);
    c = tiny.Open(elsewhere);
    ASSERT_EQ(amp_eval(c, batch.inputs, {8, 0}, &y, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(x, y);
}

TEST_F(AppStream, ADeviceThatIsNotThereIsNamed) {
    TinyOnCuda tiny;
    amp::SessionOptions o = CudaOptions(8);
    amp_session *s;
    o.cuda.index = 2;
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &s, &tiny.err), AMP_NOT_FOUND);
    ExpectMessage(tiny.err, "no CUDA device 2: there are 2");
    o.cuda.index = -1;
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &s, &tiny.err), AMP_INVALID_ARGUMENT);
    ExpectMessage(tiny.err, "amp_cuda_options: index -1: counts from 0");
}

} // namespace
