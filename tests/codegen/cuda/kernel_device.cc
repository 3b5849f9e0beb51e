#include "tests/codegen/cuda/kernel_device.h"

InterpreterDevice::InterpreterDevice(const std::string &ptx, int arch, std::string *why)
    : memory_(exec_memory_new(uint64_t{1} << 32)), arch_(arch), overlaps_(Target(ptx) >= 90) {
    AluContext context = {};
    context.arch = arch;
    context.seed = 1;
    char message[512] = "";
    module_ = exec_module_load(memory_, &context, ptx.c_str(), ptx.size(), message, sizeof message);
    *why = message;
}

InterpreterDevice::~InterpreterDevice() {
    if (module_) exec_module_free(module_);
    exec_memory_free(memory_);
}

std::string InterpreterDevice::Free(uint64_t address) {
    exec_release(memory_, address);
    return "";
}

std::string InterpreterDevice::Write(uint64_t address, const void *data, uint64_t bytes) {
    char why[256] = "";
    return exec_write(memory_, address, data, bytes, why) ? "" : why;
}

std::string InterpreterDevice::Read(uint64_t address, void *data, uint64_t bytes) {
    char why[256] = "";
    return exec_read(memory_, address, data, bytes, why) ? "" : why;
}

std::string InterpreterDevice::Launch(const KernelLaunch &l, ExecCounters *counters) {
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
    return overlaps_ && !beside.waited ? std::string(l.entry) + ": a thread does not wait for earlier launches" : "";
}

int InterpreterDevice::Target(const std::string &ptx) {
    const size_t at = ptx.find(".target sm_");
    return at == std::string::npos ? 0 : atoi(ptx.c_str() + at + strlen(".target sm_"));
}
