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
};

// Every buffer is an allocation of its own, so that one element past its end is a fault, and what was never written
// cannot be read.  Of PTX for sm_90 or later each launch may begin before those before it have ended: a kernel that
// does not wait before it touches what they touched, or has a thread that never waits, is a fault, too.
class InterpreterDevice : public KernelDevice {
  public:
    InterpreterDevice(const std::string &ptx, int arch, std::string *why)
        : memory_(exec_memory_new(uint64_t{1} << 32)), overlaps_(Target(ptx) >= 90) {
        AluContext context = {};
        context.arch = arch;
        context.seed = 1;
        char message[512] = "";
        module_ = exec_module_load(memory_, &context, ptx.c_str(), ptx.size(), message, sizeof message);
        *why = message;
    }
    ~InterpreterDevice() override {
        if (module_) exec_module_free(module_);
        exec_memory_free(memory_);
    }
    InterpreterDevice(const InterpreterDevice &) = delete;
    bool loaded() const { return module_ != nullptr; }
    uint64_t Allocate(uint64_t bytes) override { return exec_alloc(memory_, bytes); }
    std::string Free(uint64_t address) override {
        exec_release(memory_, address);
        return "";
    }
    std::string Write(uint64_t address, const void *data, uint64_t bytes) override {
        char why[256] = "";
        return exec_write(memory_, address, data, bytes, why) ? "" : why;
    }
    std::string Read(uint64_t address, void *data, uint64_t bytes) override {
        char why[256] = "";
        return exec_read(memory_, address, data, bytes, why) ? "" : why;
    }
    std::string Launch(const KernelLaunch &l, ExecCounters *counters) override {
        ExecLaunch launch = {};
        launch.module = module_;
        launch.entry = l.entry;
        memcpy(launch.grid, l.grid, sizeof l.grid);
        memcpy(launch.block, l.block, sizeof l.block);
        launch.dynamic_shared = l.dynamic_shared;
        launch.params = l.params.data();
        launch.seed = l.seed;
        launch.asked = l.asked;
        launch.asked_user = l.asked_user;
        ExecBeside beside = {};
        beside.before.first = 1, beside.before.end = UINT32_MAX;
        if (overlaps_) launch.beside = &beside;
        char message[1024] = "";
        const ExecFault fault = exec_launch(&launch, counters, message, sizeof message);
        if (fault) return "fault " + std::to_string(fault) + ": " + message;
        return overlaps_ && !beside.waited ? std::string(l.entry) + ": a thread does not wait for earlier launches"
                                           : "";
    }

  private:
    static int Target(const std::string &ptx) {
        const size_t at = ptx.find(".target sm_");
        return at == std::string::npos ? 0 : atoi(ptx.c_str() + at + strlen(".target sm_"));
    }

    ExecMemory *memory_;
    bool overlaps_;
    ExecModule *module_ = nullptr;
};

#endif
