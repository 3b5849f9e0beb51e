// on_device.cc: the table of kernels through the CUDA driver of this machine: does a GPU do what the PTX ISA document
// says, and the interpreter with it?
//
//     on_device [--stand-in] [--dump FILE]
//
// A line per case: `pass`, `fail` or `skip`, its name, and after a tab what is wrong.  Kernels that end badly take
// their context, so a child runs the cases, and another one goes on after it.  --stand-in: the driver is that of
// fakecuda, which refuses some.  --dump: every buffer as it was left, in hexadecimal.  Exit status: 0 every case was
// tried, 2 the driver cannot be used.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "runtime/device/cuda/cuda_driver.h"
#include "fakecuda/isa/isa.h"

using namespace isa;

namespace {

enum { kNext = 0, kBroken = 3, kNoDriver = 2 }; // of a child: all are done, its context is lost, it could not begin

// What only a GPU puts up with: isa_test says why the interpreter does not.
const std::set<std::string> kRefusedByStandIn = {"memory_isspacep_const", "call_registers", "barrier_after_exit"};

struct Device {
    CudaDriver driver = {};
    amp_cuda_device_info info = {};
    amp_error err = {};

    bool open() {
        CuContext context = nullptr;
        return !amp_cuda_driver_open(&driver, &err) && !amp_cuda_device_find(&driver, 0, &info, &err) &&
               !CUDA_CHECKED(&driver, nullptr, &err, primary_retain, (&context, info.device)) &&
               !CUDA_CHECKED(&driver, nullptr, &err, context_push, (context));
    }
};
#define TRY(name, arguments)                                                                                           \
    do {                                                                                                               \
        last = d.driver.name arguments;                                                                                \
        if (last) {                                                                                                    \
            call = amp_cuda_call_symbol(CUDA_CALL_##name);                                                             \
            return false;                                                                                              \
        }                                                                                                              \
    } while (0)

class Trial {
  public:
    Trial(Device &device, const Case &which) : d(device), c(which) {}
    ~Trial() {
        if (amp_cuda_result_is_fatal(last)) return;
        for (CuPointer p : memory) (void)d.driver.mem_free(p);
        if (module) (void)d.driver.module_unload(module);
    }
    Trial(const Trial &) = delete;

    bool run() {
        int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
        void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
        TRY(module_load, (&module, c.ptx.c_str(), 2, options, values));
        CuFunction function;
        TRY(module_function, (&function, module, "k"));
        std::vector<uint64_t> words;
        for (const Buffer &b : c.buffers) {
            CuPointer p = 0;
            TRY(mem_alloc, (&p, b.before.size()));
            memory.push_back(p);
            words.push_back(p);
            TRY(copy_in, (p, b.before.data(), b.before.size(), nullptr));
        }
        TRY(stream_sync, (nullptr));
        return launch(function, words);
    }
    // After run().
    bool read(std::vector<std::vector<uint8_t>> *out) {
        for (size_t i = 0; i < c.buffers.size(); i++) {
            out->emplace_back(c.buffers[i].before.size());
            TRY(copy_out, (out->back().data(), memory[i], out->back().size(), nullptr));
        }
        TRY(stream_sync, (nullptr));
        return true;
    }
    std::string what() const { // of the call that failed
        const char *name = nullptr;
        return std::string(call) + ": " + (d.driver.get_error_name(last, &name) || !name ? "?" : name) + " " + log;
    }

    CuResult last = CU_SUCCESS;

  private:
    // Scalars of any size go in one block of parameters, as the driver's `extra` has it.
    bool launch(CuFunction function, const std::vector<uint64_t> &words) {
        std::vector<uint8_t> block(words.size() * 8 + c.scalars.size());
        if (!words.empty()) memcpy(block.data(), words.data(), words.size() * 8);
        if (!c.scalars.empty()) memcpy(block.data() + words.size() * 8, c.scalars.data(), c.scalars.size());
        size_t size = block.size();
        void *const end = nullptr, *const buffer_pointer = reinterpret_cast<void *>(1),
                    *const buffer_size = reinterpret_cast<void *>(2); // CU_LAUNCH_PARAM_*
        void *extra[] = {buffer_pointer, block.data(), buffer_size, &size, end};
        if (c.dynamic_shared > 48 * 1024)
            TRY(function_set_attribute, (function, CU_FUNC_MAX_DYNAMIC_SHARED, static_cast<int>(c.dynamic_shared)));
        TRY(launch, (function, c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1], c.block[2], c.dynamic_shared,
                     nullptr, nullptr, extra));
        TRY(stream_sync, (nullptr));
        return true;
    }

    Device &d;
    const Case &c;
    CuModule module = nullptr;
    std::vector<CuPointer> memory;
    const char *call = "";
    char log[2048] = "";
};

bool is_end(CuResult r, End end) {
    switch (end) {
    case End::kDone: return r == CU_SUCCESS;
    case End::kTrap: return r == CU_LAUNCH_FAILED || r == CU_ILLEGAL_INSTRUCTION;
    case End::kAssert: return r == CU_ASSERT;
    case End::kIllegalAddress: return r == CU_ILLEGAL_ADDRESS;
    case End::kMisaligned: return r == CU_MISALIGNED_ADDRESS;
    }
    return false;
}

std::string one_line(std::string text) {
    for (char &x : text)
        if (x == '\n') x = ';';
    return text;
}

void dump(FILE *file, const Case &c, const std::vector<std::vector<uint8_t>> &buffers) {
    for (size_t i = 0; file && i < buffers.size(); i++) {
        fprintf(file, "%s %zu ", c.name.c_str(), i);
        for (uint8_t b : buffers[i]) fprintf(file, "%02x", b);
        fprintf(file, "\n");
    }
}

// "": as it should be.
std::string run_case(Device &d, const Case &c, FILE *file, bool *lost) {
    Trial trial(d, c);
    const bool done = trial.run();
    *lost = amp_cuda_result_is_fatal(trial.last);
    if (c.end != End::kDone) return is_end(trial.last, c.end) ? "" : "it ended otherwise: " + trial.what();
    if (!done) return trial.what();
    std::vector<std::vector<uint8_t>> got;
    if (!trial.read(&got)) return trial.what();
    dump(file, c, got);
    std::string wrong;
    for (size_t i = 0; i < got.size(); i++) {
        const std::string text = difference(c.buffers[i], got[i].data());
        if (!text.empty()) wrong += "buffer " + std::to_string(i) + ": " + text;
    }
    return wrong;
}

struct Settings {
    bool stand_in = false;
    const char *dump = nullptr;
};

// Cases from |first| on, until the context is lost.  Writes the next one to |next|.
int child(const std::vector<Case> &cases, size_t first, const Settings &settings, int next) {
    Device d;
    if (!d.open()) {
        fprintf(stderr, "on_device: %s\n", d.err.message);
        return kNoDriver;
    }
    FILE *file = settings.dump ? fopen(settings.dump, "a") : nullptr;
    int result = kNext;
    size_t i = first;
    for (; i < cases.size() && result == kNext; i++) {
        const Case &c = cases[i];
        const size_t after = i + 1;
        // What comes after a case that ends the process itself.
        if (write(next, &after, sizeof after) != sizeof after) return kNoDriver;
        if (settings.stand_in && kRefusedByStandIn.count(c.name))
            printf("skip %s\tthe stand-in refuses it\n", c.name.c_str());
        else if (c.arch > d.info.arch) printf("skip %s\tneeds sm_%d\n", c.name.c_str(), c.arch);
        else {
            bool lost = false;
            const std::string wrong = run_case(d, c, file, &lost);
            printf("%s %s\t%s\n", wrong.empty() ? "pass" : "fail", c.name.c_str(), one_line(wrong).c_str());
            if (lost) result = kBroken;
        }
        fflush(stdout);
    }
    if (file) fclose(file);
    return result;
}

} // namespace

int main(int argc, char **argv) {
    Settings settings;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--stand-in")) settings.stand_in = true;
        else if (!strcmp(argv[i], "--dump") && i + 1 < argc) settings.dump = argv[++i];
        else return fprintf(stderr, "usage: on_device [--stand-in] [--dump FILE]\n"), 2;
    }
    const std::vector<Case> cases = all_cases();
    if (settings.dump) remove(settings.dump);
    for (size_t first = 0; first < cases.size();) {
        int pipes[2], status = 0;
        if (pipe(pipes)) return 2;
        fflush(stdout);
        const pid_t pid = fork(); // before this process has touched the driver
        if (pid < 0) return 2;
        if (!pid) {
            close(pipes[0]);
            const int code = child(cases, first, settings, pipes[1]);
            fflush(stdout);
            _exit(code);
        }
        close(pipes[1]);
        size_t next = first;
        while (read(pipes[0], &next, sizeof next) == sizeof next) {
        }
        close(pipes[0]);
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNext) break;
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNoDriver) return 2;
        if (!WIFEXITED(status)) printf("fail %s\tthe process died\n", next ? cases[next - 1].name.c_str() : "?");
        if (next == first) return 2;
        first = next;
    }
    return 0;
}
