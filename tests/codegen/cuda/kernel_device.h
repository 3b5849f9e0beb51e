// kernel_device.h: where the tests of CUDA code run kernels: the interpreter of fakecuda, which checks every access,
// or,
// with AMP_KERNELS_ON=driver, whatever the CUDA driver of this machine drives.
#ifndef AMP_TESTS_CODEGEN_CUDA_KERNEL_DEVICE_H
#define AMP_TESTS_CODEGEN_CUDA_KERNEL_DEVICE_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fakecuda/exec/exec.h"

struct KernelLaunch {
    const char *entry;
    uint32_t grid[3], block[3], dynamic_shared;
    std::vector<uint64_t> params;
    uint64_t seed;                                                          // of the interpreter's order
    void (*asked)(void *user, uint64_t address, uint32_t size, bool store); // exec.h; a driver reports nothing
    void *asked_user;
};

// A device with one module.  Texts: what went wrong; "": nothing.
class KernelDevice {
  public:
    virtual ~KernelDevice() = default;
    virtual uint64_t Allocate(uint64_t bytes) = 0; // 0: refused
    virtual std::string Free(uint64_t address) = 0;
    virtual std::string Write(uint64_t address, const void *data, uint64_t bytes) = 0;
    virtual std::string Read(uint64_t address, void *data, uint64_t bytes) = 0;
    virtual std::string Launch(const KernelLaunch &launch, ExecCounters *counters) = 0;
    virtual int SharedOfBlock() const = 0; // bytes, at most
};

// Every buffer is an allocation of its own, so that one element past its end is a fault, and what was never written
// cannot be read.  Of PTX for sm_90 or later each launch may begin before those before it have ended: a kernel that
// does not wait before it touches what they touched, or has a thread that never waits, is a fault, too.
class InterpreterDevice : public KernelDevice {
  public:
    InterpreterDevice(const std::string &ptx, int arch, std::string *why);
    ~InterpreterDevice() override;
    InterpreterDevice(const InterpreterDevice &) = delete;
    bool loaded() const { return module_ != nullptr; }
    uint64_t Allocate(uint64_t bytes) override { return exec_alloc(memory_, bytes); }
    std::string Free(uint64_t address) override;
    std::string Write(uint64_t address, const void *data, uint64_t bytes) override;
    std::string Read(uint64_t address, void *data, uint64_t bytes) override;
    int SharedOfBlock() const override { return (arch_ < 80 ? 64 : arch_ == 80 ? 163 : arch_ == 90 ? 227 : 99) << 10; }
    std::string Launch(const KernelLaunch &l, ExecCounters *counters) override;

  private:
    static int Target(const std::string &ptx);

    ExecMemory *memory_;
    int arch_;
    bool overlaps_;
    ExecModule *module_ = nullptr;
};

#endif
