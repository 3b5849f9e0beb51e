// error_test.cc: results of driver calls as errors, and the latch of fatal ones.
#include "runtime/device/cuda/cuda_driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/device/cuda/ended_readback.h"

namespace {

int calls = 0; // of the driver

CuResult Name(CuResult error, const char **text) {
    if (error == 12345) return CU_INVALID_VALUE;
    *text = error == CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OUT_OF_MEMORY";
    return CU_SUCCESS;
}
CuResult Text(CuResult error, const char **text) {
    if (error == 12345) return CU_INVALID_VALUE;
    *text = error == CU_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "out of memory";
    return CU_SUCCESS;
}
CuResult Alloc(CuPointer *pointer, size_t bytes) {
    calls++;
    *pointer = bytes;
    return bytes > 100 ? CU_OUT_OF_MEMORY : CU_SUCCESS;
}
CuResult Sync(CuStream) {
    calls++;
    return CU_ILLEGAL_ADDRESS;
}

CudaDriver Driver() {
    CudaDriver driver = {};
    driver.get_error_name = Name, driver.get_error_string = Text;
    driver.mem_alloc = Alloc, driver.stream_sync = Sync;
    return driver;
}

} // namespace

TEST(CudaError, NamesCallErrorAndText) {
    CudaDriver driver = Driver();
    amp_error err = {};
    CuPointer pointer = 0;
    EXPECT_EQ(CUDA_CHECKED(&driver, nullptr, &err, mem_alloc, (&pointer, 7)), AMP_OK);
    EXPECT_EQ(pointer, 7u);
    EXPECT_EQ(CUDA_CHECKED(&driver, nullptr, &err, mem_alloc, (&pointer, 101)), AMP_OUT_OF_MEMORY);
    EXPECT_STREQ(err.message, "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    EXPECT_EQ(err.code, AMP_OUT_OF_MEMORY);
    EXPECT_EQ(amp_cuda_result(&driver, nullptr, CUDA_CALL_launch, 12345, &err), AMP_INTERNAL);
    EXPECT_STREQ(err.message, "cuLaunchKernel: an error without a name (12345): the driver has no text for it");
    EXPECT_EQ(amp_cuda_result(&driver, nullptr, CUDA_CALL_launch, CU_OUT_OF_MEMORY, nullptr), AMP_OUT_OF_MEMORY);
    CudaDriver empty = {};
    EXPECT_EQ(amp_cuda_result(&empty, nullptr, CUDA_CALL_init, CU_NO_DEVICE, &err), AMP_NOT_FOUND);
}

TEST(CudaError, EveryCallHasItsSymbol) {
    std::set<std::string> symbols;
    for (int call = 0; call < CUDA_CALL_COUNT; call++) {
        std::string symbol = amp_cuda_call_symbol(static_cast<CudaCall>(call));
        EXPECT_EQ(symbol.substr(0, 2), "cu");
        EXPECT_TRUE(symbols.insert(symbol).second) << symbol;
    }
    EXPECT_STREQ(amp_cuda_call_symbol(CUDA_CALL_launch), "cuLaunchKernel");
}

// Errors after which, by NVIDIA's document of CUresult, the process or the context cannot go on.
TEST(CudaError, WhatIsFatal) {
    std::set<int> fatal;
    for (int result = 0; result < 1000; result++) {
        if (!amp_cuda_result_is_fatal(result)) continue;
        fatal.insert(result);
        EXPECT_EQ(amp_cuda_result_status(result), AMP_DEVICE_FAILED) << result;
    }
    EXPECT_EQ(fatal, (std::set<int>{4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810}));
    EXPECT_EQ(amp_cuda_result_status(CU_SUCCESS), AMP_OK);
    for (int result = 1; result < 1000; result++) EXPECT_NE(amp_cuda_result_status(result), AMP_OK) << result;
}

TEST(CudaLatch, KeepsTheFirstFatalErrorAndCallsNothingAfterIt) {
    CudaDriver driver = Driver();
    amp_cuda_latch latch = {};
    amp_error err = {};
    CuPointer pointer = 0;
    EXPECT_EQ(amp_cuda_latch_check(&latch, &err), AMP_OK);
    EXPECT_EQ(CUDA_CHECKED(&driver, &latch, &err, mem_alloc, (&pointer, 101)), AMP_OUT_OF_MEMORY);
    EXPECT_FALSE(amp_cuda_latch_is_set(&latch)) << "out of memory is not fatal";
    EXPECT_EQ(CUDA_CHECKED(&driver, &latch, nullptr, stream_sync, (nullptr)), AMP_DEVICE_FAILED);
    EXPECT_TRUE(amp_cuda_latch_is_set(&latch));
    calls = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(CUDA_CHECKED(&driver, &latch, &err, mem_alloc, (&pointer, 7)), AMP_DEVICE_FAILED);
        EXPECT_STREQ(err.message,
                     "the device failed earlier: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): an "
                     "illegal memory access was encountered");
    }
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(amp_cuda_result(&driver, &latch, CUDA_CALL_launch, CU_LAUNCH_FAILED, &err), AMP_DEVICE_FAILED);
    EXPECT_EQ(amp_cuda_latch_check(&latch, &err), AMP_DEVICE_FAILED);
    EXPECT_NE(std::string(err.message).find("cuStreamSynchronize"), std::string::npos) << "the first, not the last";
    EXPECT_FALSE(amp_cuda_latch_is_set(nullptr));
    EXPECT_EQ(amp_cuda_latch_check(nullptr, &err), AMP_OK);
}

// What is there after that is of no step.
TEST(CudaLatch, IsAskedAfterADriverThatSaysDone) {
    for (bool wait : {false, true}) {
        amp_error err = {};
        bool given = true;
        EXPECT_EQ(ended_readback(wait, &given, &err), AMP_PEER_FAILED) << wait;
        EXPECT_STREQ(err.message, "rank 0: rank 1 says: its data end");
        EXPECT_FALSE(given) << wait;
    }
}

TEST(CudaLatch, SeveralThreadsSetItOnce) {
    for (int round = 0; round < 200; round++) {
        amp_cuda_latch latch = {};
        std::vector<std::thread> threads;
        std::vector<std::string> seen(4);
        for (int t = 0; t < 4; t++)
            threads.emplace_back([&, t] {
                amp_error mine = {AMP_DEVICE_FAILED, {}}, err = {};
                memset(mine.message, 'a' + t, 900);
                amp_cuda_latch_set(&latch, &mine);
                while (!amp_cuda_latch_is_set(&latch)) std::this_thread::yield();
                amp_cuda_latch_check(&latch, &err);
                seen[t] = err.message;
            });
        for (std::thread &thread : threads) thread.join();
        const std::string one(1, seen[0].back());
        for (int t = 0; t < 4; t++) EXPECT_EQ(seen[t], seen[0]);
        EXPECT_EQ(seen[0].find_first_not_of(one[0], strlen("the device failed earlier: ")), std::string::npos);
    }
}
