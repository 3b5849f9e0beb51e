#include "fakecuda/exec/kernel.h"

#include <gtest/gtest.h>

std::string module_text(const std::string &ptx, int arch) {
    return ".version 9.0\n.target sm_" + std::to_string(arch) + "\n.address_size 64\n" + ptx;
}

std::string kernel(const std::string &body, int params, const std::string &name) {
    std::string text = ".visible .entry " + name + "(";
    for (int i = 0; i < params; i++) text += std::string(i ? ", " : "") + ".param .u64 p" + std::to_string(i);
    return text +
           ")\n{\n.reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<32>; .reg .b64 %d<32>; .reg .f64 "
           "%g<16>;\n" +
           body + "\n}\n";
}

Gpu::Gpu(int arch, bool exact) : memory(exec_memory_new(1ull << 30)), context_{arch, 1, exact} {
    EXPECT_NE(memory, nullptr);
}

Gpu::~Gpu() {
    exec_module_free(module);
    exec_memory_free(memory);
}

std::string Gpu::load_error(const std::string &ptx) {
    char message[512] = "";
    exec_module_free(module);
    module = exec_module_load(memory, &context_, ptx.c_str(), ptx.size(), message, sizeof message);
    return module ? "" : message;
}

void Gpu::load(const std::string &ptx) {
    std::string error = load_error(ptx);
    ASSERT_EQ(error, "") << ptx;
    ASSERT_NE(module, nullptr);
}

void Gpu::load_body(const std::string &body, int params) { load(module_text(kernel(body, params), context_.arch)); }

uint64_t Gpu::room(uint64_t bytes) {
    uint64_t address = exec_alloc(memory, bytes);
    EXPECT_NE(address, 0u);
    return address;
}

uint64_t Gpu::put_bytes(const void *from, uint64_t bytes) {
    uint64_t address = room(bytes);
    char why[256] = "";
    EXPECT_TRUE(exec_write(memory, address, from, bytes, why)) << why;
    return address;
}

void Gpu::get_bytes(uint64_t address, void *to, uint64_t bytes) {
    char why[256] = "";
    EXPECT_TRUE(exec_read(memory, address, to, bytes, why)) << why;
}

Result Gpu::launch(Dim grid, Dim block, const std::vector<uint64_t> &params, uint32_t dynamic_shared,
                   const char *entry) {
    Result run;
    if (!module) return run.fault = EXEC_INVALID_LAUNCH, run.message = "no module", run;
    char message[1024] = "";
    ExecLaunch launch = {};
    launch.module = module;
    launch.entry = entry;
    launch.grid[0] = grid.x, launch.grid[1] = grid.y, launch.grid[2] = grid.z;
    launch.block[0] = block.x, launch.block[1] = block.y, launch.block[2] = block.z;
    launch.dynamic_shared = dynamic_shared;
    launch.params = params.data();
    launch.seed = seed;
    launch.threads = threads;
    launch.resident = resident;
    launch.instruction_limit = limit;
    launch.beside = beside;
    run.fault = exec_launch(&launch, &run.counters, message, sizeof message);
    run.message = message;
    return run;
}
