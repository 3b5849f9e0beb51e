// driver_device.h: kernels through the CUDA driver, for AMP_KERNELS_ON=driver.
//
// Memory is filled with bytes 0xFF (NaNs in every format) before it is used, and ends in guard bytes that are looked at
// when it
// is freed: a stand-in for the interpreter's checks, where it is a GPU that runs.
#ifndef AMP_TESTS_CODEGEN_CUDA_DRIVER_DEVICE_H
#define AMP_TESTS_CODEGEN_CUDA_DRIVER_DEVICE_H

#include <map>

#include "amp/model_abi.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "tests/codegen/cuda/kernel_device.h"

// Opened once per process; its primary context stays the current one.
struct TestDriver {
    CudaDriver driver = {};
    amp_cuda_device_info info = {};
    std::string why; // it cannot be used

    static const TestDriver &Get() {
        static const TestDriver it;
        return it;
    }
    static bool Asked();

  private:
    TestDriver();
};

class DriverDevice : public KernelDevice {
  public:
    DriverDevice(const std::string &ptx, std::string *why);
    ~DriverDevice() override;
    DriverDevice(const DriverDevice &) = delete;
    bool loaded() const { return module_ != nullptr; }

    uint64_t Allocate(uint64_t bytes) override;
    std::string Free(uint64_t address) override;
    std::string Write(uint64_t address, const void *data, uint64_t bytes) override;
    std::string Read(uint64_t address, void *data, uint64_t bytes) override;
    int SharedOfBlock() const override { return TestDriver::Get().info.max_shared_optin_bytes; }
    std::string Launch(const KernelLaunch &l, ExecCounters *) override;

  private:
    enum { kGuard = 256 };
    std::string Wait() { return Try(CUDA_CALL_stream_sync, driver_.stream_sync(nullptr)); }
    std::string Try(CudaCall call, CuResult result);

    const CudaDriver &driver_;
    CuModule module_ = nullptr;
    std::map<uint64_t, uint64_t> bytes_;
};

#endif
