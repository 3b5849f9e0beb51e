#include "tests/codegen/cuda/driver_device.h"

bool TestDriver::Asked() {
    const char *on = getenv("AMP_KERNELS_ON");
    return on && !strcmp(on, "driver");
}

TestDriver::TestDriver() {
    amp_error err = {};
    CuContext context = nullptr;
    if (amp_cuda_driver_open(&driver, &err) || amp_cuda_device_find(&driver, 0, &info, &err) ||
        CUDA_CHECKED(&driver, nullptr, &err, primary_retain, (&context, info.device)) ||
        CUDA_CHECKED(&driver, nullptr, &err, context_push, (context)))
        why = err.message;
}

DriverDevice::DriverDevice(const std::string &ptx, std::string *why) : driver_(TestDriver::Get().driver) {
    *why = TestDriver::Get().why;
    if (!why->empty()) return;
    char log[4096] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    *why = Try(CUDA_CALL_module_load, driver_.module_load(&module_, ptx.c_str(), 2, options, values));
    if (!why->empty()) *why += std::string("\n") + log;
}

DriverDevice::~DriverDevice() {
    if (module_) (void)driver_.module_unload(module_);
}

uint64_t DriverDevice::Allocate(uint64_t bytes) {
    CuPointer address = 0;
    if (driver_.mem_alloc(&address, bytes + kGuard)) return 0;
    if (driver_.fill8(address, 0xFF, bytes + kGuard, nullptr) || driver_.stream_sync(nullptr)) return 0;
    bytes_[address] = bytes;
    return address;
}

std::string DriverDevice::Free(uint64_t address) {
    unsigned char guard[kGuard];
    std::string wrong = Read(address + bytes_.at(address), guard, sizeof guard);
    for (size_t i = 0; i < sizeof guard && wrong.empty(); i++)
        if (guard[i] != 0xFF) wrong = "byte " + std::to_string(i) + " past the end of a buffer was written";
    bytes_.erase(address);
    const std::string freed = Try(CUDA_CALL_mem_free, driver_.mem_free(address));
    return wrong.empty() ? freed : wrong;
}

std::string DriverDevice::Write(uint64_t address, const void *data, uint64_t bytes) {
    const std::string wrong = Try(CUDA_CALL_copy_in, driver_.copy_in(address, data, bytes, nullptr));
    return wrong.empty() ? Wait() : wrong;
}

std::string DriverDevice::Read(uint64_t address, void *data, uint64_t bytes) {
    const std::string wrong = Try(CUDA_CALL_copy_out, driver_.copy_out(data, address, bytes, nullptr));
    return wrong.empty() ? Wait() : wrong;
}

std::string DriverDevice::Launch(const KernelLaunch &l, ExecCounters *) {
    CuFunction function = nullptr;
    std::string wrong = Try(CUDA_CALL_module_function, driver_.module_function(&function, module_, l.entry));
    const int shared = static_cast<int>(l.dynamic_shared);
    if (wrong.empty() && shared + AMP_CUDA_FIXED_SHARED > 48 * 1024)
        wrong = Try(CUDA_CALL_function_set_attribute,
                    driver_.function_set_attribute(function, CU_FUNC_MAX_DYNAMIC_SHARED, shared));
    std::vector<uint64_t> params = l.params;
    std::vector<void *> pointers;
    for (uint64_t &p : params) pointers.push_back(&p);
    if (wrong.empty())
        wrong = Try(CUDA_CALL_launch, driver_.launch(function, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                                                     l.block[2], l.dynamic_shared, nullptr, pointers.data(), nullptr));
    return wrong.empty() ? Wait() : wrong;
}

std::string DriverDevice::Try(CudaCall call, CuResult result) {
    amp_error err = {};
    return amp_cuda_result(&driver_, nullptr, call, result, &err) ? err.message : "";
}
