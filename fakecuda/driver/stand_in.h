// stand_in.h: the stand-in as an application opens it, each test as in a new process.
#ifndef FAKECUDA_DRIVER_STAND_IN_H
#define FAKECUDA_DRIVER_STAND_IN_H

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "runtime/device/cuda/driver_api.h"
#include "fakecuda/driver/fakecuda.h"

#define OK(call) ASSERT_EQ(CU_SUCCESS, (call))

enum { // results that the product's table leaves out
    CONTEXT_IS_DESTROYED = 709,
    CAPTURE_MERGE = 902,
    CAPTURE_UNMATCHED = 903,
    CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905,
    CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907
};

// The report, read once.
class Report {
  public:
    explicit Report(const char *text) {
        amp_error error;
        EXPECT_EQ(AMP_OK, amp_json_parse(text, strlen(text), nullptr, nullptr, &document_, &error))
            << error.message << text;
    }
    ~Report() { amp_json_free(document_); }
    Report(const Report &) = delete;
    const amp_json *root() const { return amp_json_root(document_); }
    static int64_t number(const amp_json *in, const char *key) {
        const amp_json *v = amp_json_get(in, key);
        return v ? v->number.integer : 0;
    }
    int64_t total(const char *key) const { return number(amp_json_get(root(), "totals"), key); }
    int64_t calls(const char *key) const { return number(amp_json_get(root(), "calls"), key); }
    int64_t waits(const char *key) const { return number(amp_json_get(root(), "synchronisations"), key); }
    const amp_json *kernel(const char *name) const {
        const amp_json *list = amp_json_get(root(), "kernels");
        for (size_t i = 0; i < list->array.count; i++)
            if (std::string(amp_json_get(&list->array.items[i], "name")->string.data) == name)
                return &list->array.items[i];
        return nullptr;
    }
    // The lines of a list; of a fault, its message.
    std::vector<std::string> lines(const char *list_name) const {
        std::vector<std::string> out;
        const amp_json *list = amp_json_get(root(), list_name);
        for (size_t i = 0; i < list->array.count; i++) {
            const amp_json *item = &list->array.items[i], *message = amp_json_get(item, "message");
            out.push_back((message ? message : item)->string.data);
        }
        return out;
    }
    bool mentions(const char *list_name, const std::string &part) const {
        for (const std::string &line : lines(list_name))
            if (line.find(part) != std::string::npos) return true;
        return false;
    }

  private:
    amp_json_document *document_ = nullptr;
};

inline std::string library_path() {
    const char *given = getenv("FAKECUDA_LIBRARY");
    return given ? given : "fakecuda/libcuda.so.1";
}

class StandIn : public ::testing::Test {
  protected:
    void SetUp() override {
        library_ = dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_TRUE(library_) << dlerror();
#define LOAD(name, symbol, parameters) load(#symbol, &cu.name);
        CUDA_DRIVER_CALLS(LOAD)
#undef LOAD
        load("fakecuda_report_json", &report_json_);
        load("fakecuda_reset_counters", &reset_counters);
        load("fakecuda_set_seed", &set_seed);
        load("fakecuda_set_fail", &set_fail);
        load("fakecuda_restart", &restart_);
        for (const char *name : {"ARCH", "SEED", "REPORT", "FAIL", "DEVICES", "EXACT", "MEMORY", "DRIVER_VERSION",
                                 "THREADS", "TIMES", "VERBOSE"})
            unsetenv((std::string("FAKECUDA_") + name).c_str());
        restart_();
    }
    void TearDown() override {
        if (restart_) restart_();
    }

    template <class F> void load(const char *symbol, F *out) {
        void *found = dlsym(library_, symbol);
        ASSERT_TRUE(found) << symbol;
        memcpy(out, &found, sizeof found);
    }

    // A fresh process with these settings.
    void begin(std::vector<std::pair<std::string, std::string>> environment = {}) {
        for (const auto &e : environment) setenv(("FAKECUDA_" + e.first).c_str(), e.second.c_str(), 1);
        restart_();
    }

    // cuInit and the primary context of device 0, current.
    void start(std::vector<std::pair<std::string, std::string>> environment = {}) {
        begin(environment);
        OK(cu.init(0));
        OK(cu.primary_retain(&context, 0));
        OK(cu.context_push(context));
    }

    // Gives it back; what is leaked is in the report then.
    void finish() {
        CuContext popped;
        OK(cu.context_pop(&popped));
        OK(cu.primary_release(0));
    }

    Report report() {
        char *text = nullptr;
        report_json_(&text);
        Text owner(text);
        return Report(text);
    }

    CuPointer alloc(size_t bytes) {
        CuPointer p = 0;
        EXPECT_EQ(CU_SUCCESS, cu.mem_alloc(&p, bytes));
        return p;
    }
    uint32_t *pinned(size_t count) {
        void *p = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.host_alloc(&p, count * sizeof(uint32_t), CU_HOST_PORTABLE));
        return static_cast<uint32_t *>(p);
    }
    CuStream stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
        CuStream s = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.stream_create(&s, flags));
        return s;
    }
    CuEvent event(unsigned flags = CU_EVENT_DISABLE_TIMING) {
        CuEvent e = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.event_create(&e, flags));
        return e;
    }
    CuModule module_of(const char *ptx) {
        CuModule m = nullptr;
        char log[2048] = "";
        int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
        void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
        EXPECT_EQ(CU_SUCCESS, cu.module_load(&m, ptx, 2, options, values)) << log;
        return m;
    }
    CuFunction function_of(CuModule m, const char *name) {
        CuFunction f = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.module_function(&f, m, name));
        return f;
    }
    // One block of |threads|.
    CuResult launch(CuFunction f, unsigned threads, CuStream s, std::vector<void *> params) {
        return cu.launch(f, 1, 1, 1, threads, 1, 1, 0, s, params.data(), nullptr);
    }
    std::vector<uint32_t> read(CuPointer from, size_t count, CuStream s) {
        std::vector<uint32_t> out(count);
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(out.data(), from, count * sizeof(uint32_t), s));
        return out;
    }
    // Whether |seen| holds for some seed and not for another: that the moment is left to chance.
    template <class F> std::set<bool> over_seeds(F seen) {
        std::set<bool> outcomes;
        for (int seed = 1; seed <= 32; seed++) {
            start({{"SEED", std::to_string(seed)}});
            outcomes.insert(seen());
            if (HasFatalFailure()) break;
        }
        return outcomes;
    }

    CudaDriver cu = {};
    CuContext context = nullptr;
    void (*reset_counters)(void) = nullptr;
    void (*set_seed)(uint64_t) = nullptr;
    int (*set_fail)(const char *) = nullptr;
    void *library_ = nullptr;

  private:
    struct Text {
        explicit Text(char *t) : text(t) {}
        ~Text() { free(text); }
        char *text;
    };
    int (*report_json_)(char **) = nullptr;
    void (*restart_)(void) = nullptr;
};

// add_one(p, n): p[i] += 1 for i < n, one thread each.  store_at(p): *p = 1.  trap_now().  limited(): at most 64
// threads.  shared_4k(): 4096 bytes of its own and dynamic ones.
inline const char *const KERNELS = R"(
// written by hand
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry add_one(.param .u64 p, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    add.s32 %r7, %r6, 1;
    st.global.u32 [%rd4], %r7;
DONE:
    ret;
}
.visible .entry store_at(.param .u64 p)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}
.visible .entry trap_now()
{
    trap;
    ret;
}
.visible .entry limited()
.maxntid 64, 1, 1
{
    ret;
}
.visible .entry shared_4k()
{
    .shared .align 4 .b8 own[4096];
    .reg .b32 %r<4>;
    mov.u32 %r1, own;
    mov.u32 %r2, dynamic;
    mov.u32 %r3, 7;
    st.shared.u32 [%r1], %r3;
    ret;
}
)";

#endif
