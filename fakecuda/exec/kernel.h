// kernel.h: small kernels for the tests: written as the body alone, launched with 64-bit parameters.
#ifndef FAKECUDA_EXEC_KERNEL_H
#define FAKECUDA_EXEC_KERNEL_H

#include <string>
#include <vector>

#include "fakecuda/exec/exec.h"

struct Dim {
    uint32_t x = 1, y = 1, z = 1;
};

struct Result {
    ExecFault fault = EXEC_OK;
    std::string message;
    ExecCounters counters = {};
};

// A kernel `name` of parameters p0, p1, .. (.u64) with registers %p<16> (pred), %h<16> (b16), %r<64>, %f<32>, %d<32>
// (b64), %g<16> (f64).
std::string kernel(const std::string &body, int params = 2, const std::string &name = "k");
// .version, .target and .address_size before it.
std::string module_text(const std::string &ptx, int arch);

class Gpu {
  public:
    explicit Gpu(int arch = 80, bool exact = false);
    ~Gpu();
    Gpu(const Gpu &) = delete;
    Gpu &operator=(const Gpu &) = delete;

    void load(const std::string &ptx); // with header
    void load_body(const std::string &body, int params = 2);
    std::string load_error(const std::string &ptx);
    uint64_t room(uint64_t bytes); // uninitialised
    uint64_t put_bytes(const void *from, uint64_t bytes);
    void get_bytes(uint64_t address, void *to, uint64_t bytes);
    template <typename T> uint64_t put(const std::vector<T> &v) { return put_bytes(v.data(), v.size() * sizeof(T)); }
    template <typename T> std::vector<T> get(uint64_t address, size_t count) {
        std::vector<T> v(count);
        get_bytes(address, v.data(), count * sizeof(T));
        return v;
    }
    Result launch(Dim grid, Dim block, const std::vector<uint64_t> &params, uint32_t dynamic_shared = 0,
                  const char *entry = "k");

    uint64_t seed = 1;
    int threads = 1, resident = 0;
    uint64_t limit = 50000000;
    ExecBeside *beside = nullptr;
    ExecMemory *memory;
    ExecModule *module = nullptr;

  private:
    AluContext context_;
};

#endif
