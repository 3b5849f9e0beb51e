// checks.h: for tests of what the checks find: a kernel with a planted bug, and beside it the same without.
#ifndef FAKECUDA_EXEC_CHECKS_H
#define FAKECUDA_EXEC_CHECKS_H

#include <gtest/gtest.h>

#include "fakecuda/exec/kernel.h"

// %r0 = tid.x, %d0 = p0, %d1 = p1, %d2 = 4 * tid.x, %d3 = p0 + 4 tid, %d4 = p1 + 4 tid
inline const std::string kStart =
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4;\n"
    "add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;\n";

inline void expect_in(const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
}

struct Checks : ::testing::Test {
    explicit Checks(int arch = 80) : gpu(arch) {}
    Gpu gpu;
    Result run(const std::string &body, Dim block, const std::vector<uint64_t> &params, Dim grid = {},
               uint32_t dynamic_shared = 0) {
        gpu.load_body(body);
        if (!gpu.module) return {};
        return gpu.launch(grid, block, params, dynamic_shared);
    }
    void good(const std::string &body, Dim block, const std::vector<uint64_t> &params, Dim grid = {}) {
        for (gpu.seed = 1; gpu.seed <= 3; gpu.seed++) {
            Result r = run(body, block, params, grid);
            EXPECT_EQ(r.fault, EXEC_OK) << r.message;
        }
    }
    // Found with every seed, and the message says |parts|.
    void bad(const std::string &body, Dim block, const std::vector<uint64_t> &params, ExecFault fault,
             const std::vector<std::string> &parts, Dim grid = {}) {
        for (gpu.seed = 1; gpu.seed <= 3; gpu.seed++) {
            Result r = run(body, block, params, grid);
            EXPECT_EQ(r.fault, fault) << r.message;
            for (const std::string &part : parts) expect_in(r.message, part);
        }
    }
    uint64_t numbers(size_t count) {
        std::vector<uint32_t> v(count);
        for (size_t i = 0; i < count; i++) v[i] = static_cast<uint32_t>(3 * i + 1);
        return gpu.put(v);
    }
};

#endif
