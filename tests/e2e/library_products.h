// library_products.h: sessions whose products the stand-in for cuBLASLt may make, and what came of them.
#ifndef AMP_TESTS_E2E_LIBRARY_PRODUCTS_H
#define AMP_TESTS_E2E_LIBRARY_PRODUCTS_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "amp/inspect.h"
#include "fakecuda/driver/stand_in.h"
#include "tests/e2e/harness.h"

inline const char *const kLibrary = "fakecuda/cublaslt/libcublasLt.so.13";

inline const std::string kSmall = "amp 1\nmodel m(x: f32[N, 32]) -> y {\n"
                                  "    y = linear(gelu(linear(x; out = 32) as fc1); out = 16) as fc4\n}\n";

// A model of one of these sizes; |products| as amp_cuda_options has it.
struct Asked {
    int32_t products = AMP_PRODUCTS_SAME_BITS;
    int64_t capacity = 16;
    std::vector<int64_t> sizes{16, 16, 16}; // with FP16 the first two are looked at, and have own launches
    const char *program = nullptr;
    bool separate = false, looks_at_all = false, infers = true;
    int64_t width = 32;
    float factor = 1;        // of inputs
    std::string fails_later; // FAKECUDA_CUBLASLT once the session is made
    const amp_allocator *allocator = nullptr;
    double seconds = 1e9;            // for measurements
    std::string choices, saves;      // files
    std::vector<int64_t> tunes;      // before the first step
    std::string resumes, checkpoint; // files
    amp_comm *comm = nullptr;

    static Asked Own() {
        Asked a;
        a.products = AMP_PRODUCTS_OWN;
        return a;
    }
};

// An amp_product_choice whose strings outlive the model.
struct Choice : amp_product_choice {
    std::string in, of; // program and title
};
inline Choice Named(const amp_product_choice &c) { return {c, c.program, c.title}; }

// What a session gives.
struct Outcome {
    amp_status status = AMP_OK;
    bool trains = true;
    std::string message;
    std::vector<std::string> said[4]; // by amp_log_level
    std::vector<double> losses;
    std::vector<float> params, outputs;
    std::vector<int64_t> captured = std::vector<int64_t>(5); // by algorithm, into the session's own graphs
    std::map<std::string, int64_t> calls;                    // of the driver, while the session was made
    std::vector<std::string> kernels;
    std::vector<Choice> choices, later; // before the first step, and after the last
    uint64_t bytes = 0;                 // on the device

    int64_t Captured() const { return std::accumulate(captured.begin(), captured.end(), int64_t{0}); }
    // The library ran, and no other algorithm.
    bool Took(size_t algorithm) const { return captured[algorithm] > 0 && captured[algorithm] == Captured(); }
    bool Says(amp_log_level level, const std::string &part) const {
        return std::any_of(said[level].begin(), said[level].end(),
                           [&](const std::string &line) { return line.find(part) != std::string::npos; });
    }
};

inline void Hear(void *user, amp_log_level level, const char *text) {
    static_cast<Outcome *>(user)->said[level].push_back(text);
}

// One session, by whose end all is released.
struct Life {
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    ~Life() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
    amp_status Make(const std::string &path, const Asked &asked, Outcome *o, amp_error *err) {
        amp_model_options m = {};
        m.struct_size = sizeof m;
        m.allocator = asked.allocator;
        amp_params_options p = {sizeof p, 3, 0};
        amp::SessionOptions s;
        s.capacity.n = asked.capacity;
        s.threads = 1;
        s.seed = 3;
        s.device = "cuda";
        s.program = asked.program;
        s.inspect.separate_buffers = asked.separate;
        s.inspect.looks_at_all = asked.looks_at_all;
        s.cuda.products = asked.products;
        s.cuda.products_seconds = asked.seconds;
        s.cuda.choices = asked.choices.empty() ? nullptr : asked.choices.c_str();
        s.comm = asked.comm;
        s.log = Hear;
        s.log_user = o;
        amp_status status = amp_model_load(path.c_str(), &m, &model, err);
        if (!status) status = amp_params_create(model, &p, &params, err);
        return status ? status : amp_session_create(model, params, &s, &session, err);
    }
};

class LibraryProducts : public StandIn {
  protected:
    static void SetUpTestSuite() {
        cache_ = e2e::temp_path("library-products-cache-" + std::to_string(getpid()));
        setenv("AMPC_CACHE_DIR", cache_.c_str(), 1);
        setenv("AMPC_PRODUCTS_FROM", "0", 1);
    }
    void SetUp() override {
        StandIn::SetUp();
        if (HasFatalFailure()) return;
        setenv("CUBLASLT_PATH", kLibrary, 1);
        unsetenv("FAKECUDA_CUBLASLT");
        Forget();
        static const Outcome o = Live(Small(), Asked::Own());
        if (o.status == AMP_NOT_FOUND && o.message.find("NVRTC") != std::string::npos)
            GTEST_SKIP() << "NOT TESTED ON CUDA: " << o.message;
        ASSERT_EQ(o.status, AMP_OK) << o.message;
    }

    // Compiled once; such models are one launch unless a pass is left out.
    static std::string Compiled(const std::string &text) {
        static std::map<std::string, std::string> made;
        std::string &path = made[text];
        if (!path.empty()) return path;
        amp_compile_options options = {};
        options.no_pass = "supersteps";
        options.target = "cuda";
        return path = e2e::compile_to_file(text, "products" + std::to_string(made.size()) + ".so", options);
    }
    static std::string Training(const std::string &settings = "") {
        return "train m {\n    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n"
               "    optimizer = adamw(lr = 0.01)\n" +
               settings + "}\n";
    }
    // Products with a bias, and what follows them: gelu, dropout, an added residual; gradients in groups.
    static std::string Model(const std::string &precision, const std::string &settings = "") {
        return Compiled("amp 1\nmodel m(x: f32[N, 32]) -> y {\n"
                        "    a = linear(x; out = 32) as fc1\n"
                        "    b = gelu(linear(a; out = 32) as fc2)\n"
                        "    c = dropout(linear(b; out = 32) as fc3; p = 0.25)\n"
                        "    y = linear(b + c; out = 16) as fc4\n}\n" +
                        Training(settings) + "precision " + precision);
    }
    // As few products as there may be.
    static std::string Small() {
        return Compiled(kSmall + Training() + "precision fp16 { loss_scale = dynamic(init = 1024.0) }\n");
    }

    // Choices on disk, which are the small files there; kernels stay.
    static std::vector<std::string> Choices() {
        std::vector<std::string> found;
        DIR *folder = opendir(cache_.c_str());
        if (!folder) return found;
        for (dirent *entry; (entry = readdir(folder));) {
            const std::string path = cache_ + "/" + entry->d_name;
            struct stat st;
            if (!stat(path.c_str(), &st) && S_ISREG(st.st_mode) && st.st_size < 800) found.push_back(path);
        }
        closedir(folder);
        return found;
    }
    static void Forget() {
        for (const std::string &path : Choices()) unlink(path.c_str());
    }

    // A model in a session: steps, an evaluation and inference.
    Outcome Live(const std::string &path, const Asked &asked) {
        Outcome o;
        o.trains = !asked.program;
        amp_error err = {};
        Life life;
        reset_counters();
        o.status = life.Make(path, asked, &o, &err);
        NoteCalls(&o);
        if (!o.status) o.status = Tune(life, asked, &o, &err);
        if (!o.status) o.status = Use(life, asked, &o, &err);
        o.message = err.message;
        return o;
    }
    static amp_status Tune(const Life &life, const Asked &asked, Outcome *o, amp_error *err) {
        for (int64_t n : asked.tunes) AMP_TRY(amp_session_tune(life.session, n, err));
        if (!asked.saves.empty()) AMP_TRY(amp_session_save_choices(life.session, asked.saves.c_str(), err));
        if (!asked.resumes.empty()) AMP_TRY(amp_checkpoint_load(life.session, asked.resumes.c_str(), nullptr, 0, err));
        amp_product_choice c;
        for (int32_t i = 0; !amp_session_choice_at(life.session, i, &c, nullptr); i++) o->choices.push_back(Named(c));
        return AMP_OK;
    }
    amp_status Use(const Life &life, const Asked &asked, Outcome *o, amp_error *err) {
        amp_memory_info memory;
        amp_session_get_memory(life.session, &memory);
        o->bytes = memory.device;
        reset_counters();
        if (!asked.fails_later.empty()) setenv("FAKECUDA_CUBLASLT", asked.fails_later.c_str(), 1);
        uint32_t seed = 100;
        for (int64_t n : asked.program ? std::vector<int64_t>{} : asked.sizes) {
            e2e::Batch batch = Inputs(n, seed++, asked);
            amp_step_report r;
            AMP_TRY(amp_step(life.session, batch.inputs(), {n, 0}, &r, err));
            o->losses.push_back(r.loss);
        }
        e2e::Batch batch = Inputs(asked.capacity, 9, asked);
        double loss;
        o->outputs.resize(static_cast<size_t>(asked.capacity) * kClasses);
        void *outputs[] = {o->outputs.data()};
        for (int i = 0; i < (asked.program ? 3 : asked.infers ? 1 : 0); i++) { // two that are looked at
            AMP_TRY(amp_eval(life.session, batch.inputs(), {asked.capacity, 0}, &loss, nullptr, err));
            o->losses.push_back(loss);
            AMP_TRY(amp_infer(life.session, batch.inputs(), {asked.capacity, 0}, outputs, err));
        }
        AMP_TRY(ReadParams(life, o, err));
        if (!asked.checkpoint.empty())
            AMP_TRY(amp_checkpoint_save(life.session, asked.checkpoint.c_str(), nullptr, err));
        amp_product_choice c;
        for (int32_t i = 0; !amp_session_choice_at(life.session, i, &c, nullptr); i++) o->later.push_back(Named(c));
        Count(o);
        return AMP_OK;
    }
    static e2e::Batch Inputs(int64_t n, uint32_t seed, const Asked &asked) {
        e2e::Batch batch(n, asked.width, kClasses, seed);
        for (float &x : batch.x) x *= asked.factor;
        return batch;
    }
    static amp_status ReadParams(const Life &life, Outcome *o, amp_error *err) {
        amp_model_info info;
        amp_model_get_info(life.model, &info);
        for (int32_t i = 0; i < info.param_count; i++) {
            amp_tensor_info t;
            AMP_TRY(amp_model_param_at(life.model, i, &t, err));
            std::vector<float> one(
                static_cast<size_t>(std::accumulate(t.dims, t.dims + t.rank, int64_t{1}, std::multiplies<>())));
            AMP_TRY(amp_params_get(life.params, t.name, one.data(), one.size(), err));
            o->params.insert(o->params.end(), one.begin(), one.end());
        }
        return AMP_OK;
    }
    void NoteCalls(Outcome *o) {
        Report r = report();
        const amp_json *calls = amp_json_get(r.root(), "calls");
        for (size_t i = 0; i < calls->object.count; i++)
            o->calls[calls->object.members[i].key.data] = calls->object.members[i].value.number.integer;
    }
    void Count(Outcome *o) {
        Report r = report();
        const amp_json *list = amp_json_get(r.root(), "kernels");
        for (size_t i = 0; i < list->array.count; i++)
            if (Report::number(&list->array.items[i], "launches"))
                o->kernels.push_back(amp_json_get(&list->array.items[i], "name")->string.data);
        for (size_t i = 0; i < o->captured.size(); i++) {
            const std::string name = "cublasLt" + std::to_string(i);
            const amp_json *row = amp_json_get(amp_json_get(r.root(), "outside"), name.c_str());
            if (row) o->captured[i] = Report::number(row, "captured");
        }
    }
    // As in a new process, where kernels that are measured take |us|, and algorithms what |library| says.
    void BeginTimes(const Outcome &own, int us, const std::string &library) {
        std::string times = library;
        for (const std::string &name : own.kernels)
            if (!own.trains || name.rfind("eval", 0)) times += "," + name + "=" + std::to_string(us);
        begin({{"TIMES", times}});
    }
    void Fault(const std::string &fault) { setenv("FAKECUDA_CUBLASLT", fault.c_str(), 1); }

    void ExpectClean() {
        Report r = report();
        for (const char *list : {"faults", "misuse", "leaks", "unknown"})
            for (const std::string &line : r.lines(list))
                if (line != "injected") ADD_FAILURE() << list << ": " << line;
    }
    static void ExpectSame(const Outcome &own, const Outcome &other) {
        ASSERT_EQ(other.status, AMP_OK) << other.message;
        EXPECT_TRUE(own.losses.size() == other.losses.size() &&
                    !memcmp(own.losses.data(), other.losses.data(), own.losses.size() * sizeof(double)))
            << "other losses";
        EXPECT_TRUE(e2e::same_bits(own.outputs, other.outputs)) << "other outputs";
        EXPECT_TRUE(e2e::same_bits(own.params, other.params)) << "other weights";
    }
    enum { kClasses = 16 };
    static inline std::string cache_;
};

#endif
