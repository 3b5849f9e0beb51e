// Choices of products (amp_cuda_options.choices, amp_session_tune): for several numbers of samples, in files, among
// ranks and in checkpoints.  What is of another model, device or version is refused, and what is damaged never taken.
#include <cmath>
#include <fstream>
#include <limits>

#include "tests/base/planted.h"
#include "tests/e2e/library_products.h"
#include "tests/e2e/ranks.h"

namespace {

const char *const kNoAsking = "fail:cublasLtMatmulAlgoGetHeuristic:1";

class LibraryChoices : public LibraryProducts {
  protected:
    // Everything measured at |sizes| with these times, written to a file.
    std::string File(const Outcome &own, const std::string &times, const std::string &name, Asked a = {},
                     std::vector<int64_t> sizes = {16}) {
        a.saves = e2e::temp_path(name);
        a.tunes = std::move(sizes);
        Forget();
        BeginTimes(own, 100, times);
        const Outcome o = Live(Small(), a);
        EXPECT_EQ(o.status, AMP_OK) << o.message;
        return a.saves;
    }
    // As if all launches took longer than the library's, in evaluation too.
    void BeginAllTimes(Outcome own, const std::string &library) {
        own.trains = false;
        BeginTimes(own, 100, library);
    }
    // Whether all choices at |n| of a launch of steps with this title are |algorithm|'s; there is one.
    static bool All(const std::vector<Choice> &choices, int64_t n, const std::string &title, int32_t algorithm,
                    bool measured = true) {
        int found = 0;
        for (const Choice &c : choices) {
            if (c.n != n || c.in == "eval" || c.in == "infer" || c.of.find(title) == std::string::npos) continue;
            if (c.algorithm != algorithm || c.measured != measured) return false;
            found++;
        }
        return found > 0;
    }
};

const char *const kForward = "fc4: linear + bias", *const kBoth = "fc4.linear.grad.weight: ";

// Of all programs, which a training session does not measure, at each number; later sessions have them.
TEST_F(LibraryChoices, TuneMeasuresSeveralNumbersOfAllPrograms) {
    Asked a = Asked::Own();
    a.sizes = {16, 8, 4};
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.seconds = -1;
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome none = Live(Small(), a);
    ExpectSame(own, none);
    EXPECT_EQ(none.Captured(), 0);
    EXPECT_TRUE(All(none.choices, 16, kForward, -1, false)) << "nothing is measured";
    EXPECT_EQ(Choices().size(), 0u);
    a.seconds = std::numeric_limits<double>::infinity();
    a.tunes = {16, 8, 4};
    BeginAllTimes(own, "cublasLt0=5,cublasLt3=7,cublasLt4=1");
    const Outcome tuned = Live(Small(), a);
    ExpectSame(own, tuned);
    EXPECT_TRUE(tuned.Took(0));
    for (const int64_t n : a.tunes)
        for (const char *title : {kForward, kBoth}) EXPECT_TRUE(All(tuned.choices, n, title, 0)) << n << title;
    std::set<std::string> programs;
    for (const Choice &c : tuned.choices) {
        programs.insert(c.in);
        EXPECT_TRUE(c.own > 50 && c.library > 0 && c.library < c.own)
            << c.in << " " << c.of << " " << c.own << " " << c.library;
        EXPECT_EQ(c.products, c.of.find(kBoth) == std::string::npos ? 1 : 2);
        EXPECT_TRUE(c.of != kForward || (c.rows == c.n && c.cols == 16 && c.k == 32)) << c.rows;
    }
    EXPECT_EQ(programs, (std::set<std::string>{"train_step", "eval", "infer"}));
    ExpectClean();
    a.tunes = {};
    a.seconds = -1;
    BeginTimes(own, 100, "cublasLt4=1");
    const Outcome later = Live(Small(), a);
    ExpectSame(own, later);
    EXPECT_EQ(later.captured[0], tuned.captured[0]);
    ExpectClean();
}

// Runs that there were are waited for, and their graphs go.
TEST_F(LibraryChoices, TuneAfterSteps) {
    Asked a = Asked::Own();
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.seconds = -1;
    BeginAllTimes(own, "cublasLt3=1,cublasLt0=5");
    amp_error err = {};
    Outcome o;
    {
        Life life;
        ASSERT_EQ(life.Make(Small(), a, &o, &err), AMP_OK) << err.message;
        ASSERT_EQ(Use(life, a, &o, &err), AMP_OK) << err.message;
        EXPECT_EQ(o.Captured(), 0);
        EXPECT_EQ(amp_session_tune(life.session, 17, &err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(amp_session_tune(life.session, 0, &err), AMP_INVALID_ARGUMENT);
    }
    a.seconds = 1e9;
    a.program = "infer"; // measures nothing of a step
    {
        Life life;
        ASSERT_EQ(life.Make(Small(), a, &o, &err), AMP_OK) << err.message;
        ASSERT_EQ(Use(life, a, &o, &err), AMP_OK) << err.message;
        const int64_t before = o.Captured();
        EXPECT_GT(before, 0);
        Forget();
        ASSERT_EQ(amp_session_tune(life.session, 8, &err), AMP_OK) << err.message;
        ASSERT_EQ(Use(life, a, &o, &err), AMP_OK) << err.message;
        EXPECT_TRUE(o.Took(3)) << "captured anew";
    }
    ExpectClean();
}

// After the budget no measurement begins, and the next session goes on.
TEST_F(LibraryChoices, ABudgetOfSeconds) {
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.seconds = 1e-9;
    size_t kept = 0;
    for (int i = 0; i < 3; i++) {
        SCOPED_TRACE(i);
        BeginTimes(own, 100, "cublasLt4=1");
        const Outcome o = Live(Small(), a);
        ExpectSame(own, o);
        kept = i < 2 ? kept + 1 : kept;
        EXPECT_EQ(Choices().size(), kept) << "one a session";
        EXPECT_EQ(o.Says(AMP_LOG_INFO, "the next session measures them"), i == 0);
        EXPECT_EQ(All(o.choices, 16, kForward, 0) + All(o.choices, 16, kBoth, 0), i ? 2 : 1);
    }
    ExpectClean();
    a.seconds = std::nan("");
    EXPECT_EQ(Live(Small(), a).status, AMP_INVALID_ARGUMENT);
}

// ---- another number of samples --------------------------------------------------------------------------------------

// It has the choice of the nearest, if the length of its sums is the same (for gradients of weights it is n), and no
// workspace, in which blocks could add up parts of them: algorithm 3 has one.
TEST_F(LibraryChoices, OfTheNearestNumber) {
    Asked a = Asked::Own();
    a.sizes = {16, 5, 5, 11, 16}; // the first, second and fourth are looked at
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    Asked small = a;
    small.capacity = 4;
    small.sizes = {4};
    BeginTimes(own, 100, "cublasLt0=3,cublasLt3=5");
    ASSERT_EQ(Live(Small(), small).status, AMP_OK);
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
    const Outcome o = Live(Small(), a);
    ExpectSame(own, o);
    EXPECT_TRUE(All(o.later, 16, kForward, 3)) << "measured";
    EXPECT_TRUE(All(o.later, 4, kForward, 0)) << "found on disk, as a half of the capacity";
    EXPECT_TRUE(All(o.later, 5, kForward, 0, false));
    EXPECT_TRUE(All(o.later, 11, kForward, -1, false));
    for (const int64_t n : {5, 11}) EXPECT_TRUE(All(o.later, n, kBoth, -1, false)) << n;
    EXPECT_TRUE(o.captured[0] > 0 && o.captured[3] > 0);
    // what the library says is none of this number
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
    a.fails_later = "fail:cublasLtMatmulAlgoCheck:1";
    const Outcome refused = Live(Small(), a);
    ExpectSame(own, refused);
    EXPECT_TRUE(refused.Took(3));
    EXPECT_TRUE(All(refused.later, 5, kForward, -1, false));
    ExpectClean();
}

// With any rounding sums over the samples may be the library's, too.
TEST_F(LibraryChoices, OfTheNearestNumberWithAnyRounding) {
    Asked a = Asked::Own();
    a.sizes = {16, 5, 5, 5};
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_FASTEST;
    BeginTimes(own, 100, "cublasLt0=5,cublasLt1=300,cublasLt3=3");
    const Outcome o = Live(Small(), a);
    ExpectSame(own, o); // algorithm 3 adds as our kernels do
    EXPECT_TRUE(All(o.later, 5, kForward, 3, false));
    EXPECT_TRUE(All(o.later, 5, kBoth, 3, false));
    ExpectClean();
}

// What the library does at another number alone is not compared: it is trusted, and these comparisons would see it.
TEST_F(LibraryChoices, PlantedErrorAtAnotherNumberIsFound) {
    Asked a = Asked::Own();
    const Outcome own = Live(Small(), a);
    Asked small;
    small.capacity = 8;
    small.sizes = {8};
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=7");
    Fault("rows:0:8"); // more rows than that
    ASSERT_EQ(Live(Small(), small).status, AMP_OK);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.seconds = -1;
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=7");
    const Outcome o = Live(Small(), a);
    EXPECT_TRUE(All(o.choices, 16, kForward, 0, false));
    ExpectFound("a wrong row at another number", "other weights", [&] { ExpectSame(own, o); });
    a.seconds = 1e9; // measured there, it is not taken
    Fault("rows:0:8");
    ExpectSame(own, Live(Small(), a));
}

// ---- in a file ------------------------------------------------------------------------------------------------------

TEST_F(LibraryChoices, AreTakenFromAFile) {
    Asked a = Asked::Own();
    a.sizes = {16, 5, 5, 5};
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    a.choices = File(own, "cublasLt0=3,cublasLt3=5", "choices.st", a, {16, 6});
    for (const bool on_disk : {false, true}) { // with others in the cache, which come second
        SCOPED_TRACE(on_disk);
        Forget();
        if (on_disk) {
            BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
            Asked other = a;
            other.choices = "";
            other.sizes = {16, 16, 16};
            EXPECT_TRUE(Live(Small(), other).Took(3));
        }
        BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
        Fault(kNoAsking);
        const Outcome o = Live(Small(), a);
        ExpectSame(own, o);
        EXPECT_TRUE(o.Took(0));
        EXPECT_TRUE(All(o.later, 16, kBoth, 0));
        EXPECT_TRUE(All(o.later, 6, kForward, 0)) << "a number that the file has";
        EXPECT_TRUE(All(o.later, 5, kForward, 0, false));
        unsetenv("FAKECUDA_CUBLASLT");
        ExpectClean();
    }
}

void Write(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }
std::string Read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Each is an error that says what to do, and never another choice.
TEST_F(LibraryChoices, FilesThatAreRefused) {
    const Outcome own = Live(Small(), Asked::Own());
    const std::string file = File(own, "cublasLt0=5,cublasLt3=3", "refused.st"), whole = Read(file);
    ASSERT_GT(whole.size(), 800u);
    Asked fastest;
    fastest.products = AMP_PRODUCTS_FASTEST;
    const std::string of_fastest = File(own, "cublasLt0=5,cublasLt3=3", "refused-fastest.st", fastest);
    const std::string of_none = e2e::temp_path("none-refused.st"), damaged = e2e::temp_path("damaged.st");
    const std::string other = Model("bf16 { }");
    const struct {
        const char *what;
        std::string file, bytes; // to write there; "": as it is
        std::vector<std::pair<std::string, std::string>> environment;
        std::string fault;
        bool other_model;
        amp_status status;
        std::string message;
    } rows[] = {
        {"missing", of_none + ".not", "", {}, "", false, AMP_NOT_FOUND, ".not"},
        {"cut", damaged, whole.substr(0, whole.size() - 9), {}, "", false, AMP_BAD_FILE, "damaged.st"},
        {"cut to nothing", damaged, "x", {}, "", false, AMP_BAD_FILE, "damaged.st"},
        {"damaged",
         damaged,
         whole.substr(0, whole.size() - 3) + "\x5a" + whole.substr(whole.size() - 2),
         {},
         "",
         false,
         AMP_BAD_FILE,
         "damaged.st"},
        {"no choices", of_none, "", {}, "", false, AMP_MISMATCH, "its amp.format is params 1, not choices 1"},
        {"another model", file, "", {}, "", true, AMP_MISMATCH, "were made for other kernels than this model has"},
        {"another mode", of_fastest, "", {}, "", false, AMP_MISMATCH, "products fastest, and here is same-bits"},
        {"another library", file, "", {}, "version:13020", false, AMP_MISMATCH, "and here is 13.2."},
        {"another driver", file, "", {{"DRIVER_VERSION", "13010"}}, "", false, AMP_MISMATCH, "and here is CUDA 13.1"},
        {"another device", file, "", {{"ARCH", "80"}}, "", false, AMP_MISMATCH, "sm_90"},
        {"an old device", file, "", {{"ARCH", "75"}}, "", false, AMP_UNSUPPORTED, "from sm_80 on"},
    };
    {
        Outcome o;
        amp_error err = {};
        Life life;
        ASSERT_EQ(life.Make(Small(), Asked::Own(), &o, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_params_save(life.params, of_none.c_str(), nullptr, &err), AMP_OK) << err.message;
    }
    for (const auto &row : rows) {
        SCOPED_TRACE(row.what);
        if (!row.bytes.empty()) Write(row.file, row.bytes);
        BeginTimes(own, 100, "cublasLt4=1");
        begin(row.environment);
        Fault(row.fault);
        Asked a;
        a.choices = row.file;
        const Outcome o = Live(row.other_model ? other : Small(), a);
        EXPECT_EQ(o.status, row.status);
        EXPECT_NE(o.message.find(row.message), std::string::npos) << o.message;
        ExpectClean();
        unsetenv("FAKECUDA_CUBLASLT");
        for (const auto &e : row.environment) unsetenv(("FAKECUDA_" + e.first).c_str());
    }
    // With OWN nothing is chosen; without the library nothing can be.
    BeginTimes(own, 100, "cublasLt4=1");
    Asked a = Asked::Own();
    a.choices = file;
    EXPECT_EQ(Live(Small(), a).status, AMP_INVALID_ARGUMENT);
    setenv("CUBLASLT_PATH", "/proc/none", 1);
    a.products = AMP_PRODUCTS_SAME_BITS;
    EXPECT_EQ(Live(Small(), a).status, AMP_NOT_FOUND);
    a.choices = "";
    a.tunes = {16};
    EXPECT_EQ(Live(Small(), a).status, AMP_NOT_FOUND);
    setenv("CUBLASLT_PATH", kLibrary, 1);
    a.saves = "/proc/none/choices";
    EXPECT_EQ(Live(Small(), a).status, AMP_NOT_FOUND);
    a.products = AMP_PRODUCTS_OWN;
    EXPECT_EQ(Live(Small(), a).status, AMP_WRONG_STATE);
}

// Whatever byte is another: an error, or the choices that were written.
TEST_F(LibraryChoices, FilesThatAreDamaged) {
    Asked a = Asked::Own();
    a.infers = false;
    const Outcome own = Live(Small(), a);
    a.products = AMP_PRODUCTS_SAME_BITS;
    const std::string whole = Read(File(own, "cublasLt0=5,cublasLt3=3", "whole.st"));
    a.choices = e2e::temp_path("flipped.st");
    int refused = 0;
    for (size_t at = 0; at < whole.size(); at += getenv("AMP_PLANTINGS") ? 7 : whole.size() / 16) {
        SCOPED_TRACE(at);
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x11);
        Write(a.choices, bytes);
        Forget();
        BeginTimes(own, 100, "cublasLt0=3,cublasLt3=5");
        const Outcome o = Live(Small(), a);
        refused += o.status != AMP_OK;
        EXPECT_TRUE(o.status == AMP_OK || o.status == AMP_BAD_FILE || o.status == AMP_MISMATCH) << o.message;
        EXPECT_TRUE(o.status != AMP_OK || (All(o.choices, 16, kForward, 3) && All(o.choices, 16, kBoth, 3)));
        if (o.status == AMP_OK) ExpectSame(own, o);
        ExpectClean();
    }
    EXPECT_GT(refused, 10);
}

// An algorithm of a file that is none of the library's: the launch is ours.
TEST_F(LibraryChoices, AlgorithmsThatTheLibraryRefuses) {
    const Outcome own = Live(Small(), Asked::Own());
    Asked a;
    a.choices = File(own, "cublasLt0=5,cublasLt3=3", "refuses.st");
    Forget();
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
    Fault("fail:cublasLtMatmulAlgoCheck:1");
    const Outcome o = Live(Small(), a);
    ExpectSame(own, o);
    EXPECT_EQ(All(o.choices, 16, kForward, -1) + All(o.choices, 16, kBoth, -1), 1) << "one of two launches";
    ExpectClean();
}

// ---- ranks, and checkpoints -----------------------------------------------------------------------------------------

class RankChoices : public LibraryChoices {
  protected:
    static std::string Ranked() {
        amp_compile_options options = {};
        options.no_pass = "supersteps";
        options.target = "cuda";
        options.distribute = "data";
        static const std::string path = e2e::compile_to_file(
            kSmall + Training() + "precision fp16 { loss_scale = dynamic(init = 1024.0) }\n", "ranked.so", options);
        return path;
    }
    // Two ranks with files of their own.
    std::vector<Outcome> Both(const Asked &asked, const std::vector<std::string> &files) {
        std::vector<Outcome> outcomes(2);
        e2e::Network network(2);
        e2e::on_ranks(2, [&](int32_t rank) {
            const size_t i = static_cast<size_t>(rank);
            Asked a = asked;
            a.choices = files.empty() ? "" : files[i];
            a.comm = network.Comm(rank);
            amp_error err = {};
            Life life;
            outcomes[i].status = life.Make(Ranked(), a, &outcomes[i], &err);
            if (!outcomes[i].status) outcomes[i].status = Tune(life, a, &outcomes[i], &err);
            if (!outcomes[i].status) outcomes[i].status = Steps(life, a, &outcomes[i], &err);
            outcomes[i].message = err.message;
        });
        return outcomes;
    }
    static amp_status Steps(const Life &life, const Asked &a, Outcome *o, amp_error *err) {
        for (uint32_t i = 0; i < 3; i++) {
            e2e::Batch batch = Inputs(a.capacity, 100 + i, a);
            amp_step_report r;
            AMP_TRY(amp_step(life.session, batch.inputs(), {a.capacity, 0}, &r, err));
            o->losses.push_back(r.loss);
        }
        return ReadParams(life, o, err);
    }
    std::string FileOf(const Outcome &own, int32_t products, const std::string &times, const std::string &name) {
        Asked a;
        a.products = products;
        a.saves = e2e::temp_path(name);
        Forget();
        BeginTimes(own, 100, times);
        e2e::Network network(1);
        a.comm = network.Comm(0);
        const Outcome o = Live(Ranked(), a);
        EXPECT_EQ(o.status, AMP_OK) << o.message;
        return a.saves;
    }
};

TEST_F(RankChoices, WithDifferentFiles) {
    const Outcome own = Live(Ranked(), Asked::Own());
    const std::vector<Outcome> without = Both(Asked::Own(), {});
    for (const int32_t products : {AMP_PRODUCTS_SAME_BITS, AMP_PRODUCTS_FASTEST}) {
        SCOPED_TRACE(products);
        const std::vector<std::string> files = {
            FileOf(own, products, "cublasLt0=5,cublasLt1=300,cublasLt3=3", "rank0.st"),
            FileOf(own, products, "cublasLt0=3,cublasLt1=300,cublasLt3=5", "rank1.st")};
        Asked a;
        a.products = products;
        BeginTimes(own, 100, "cublasLt4=1");
        const std::vector<Outcome> both = Both(a, files);
        for (size_t i = 0; i < 2; i++) ExpectSame(without[i], both[i]);
        EXPECT_TRUE(All(both[0].choices, 16, kForward, 3));
        // with fastest all have rank 0's
        EXPECT_TRUE(All(both[1].choices, 16, kForward, products == AMP_PRODUCTS_FASTEST ? 3 : 0));
        ExpectClean();
    }
}

// What bits depend on is the same on all ranks, or nothing begins.
TEST_F(RankChoices, OneWithTheFastest) {
    std::vector<Outcome> outcomes(2);
    e2e::Network network(2);
    begin();
    e2e::on_ranks(2, [&](int32_t rank) {
        const size_t i = static_cast<size_t>(rank);
        Asked a;
        a.products = rank ? AMP_PRODUCTS_FASTEST : AMP_PRODUCTS_SAME_BITS;
        a.comm = network.Comm(rank);
        amp_error err = {};
        Life life;
        outcomes[i].status = life.Make(Ranked(), a, &outcomes[i], &err);
        outcomes[i].message = err.message;
    });
    for (const Outcome &o : outcomes) {
        EXPECT_EQ(o.status, AMP_MISMATCH);
        EXPECT_NE(o.message.find("rank 1 has another choice of products than rank 0: fastest instead of same bits"),
                  std::string::npos)
            << o.message;
    }
}

// A checkpoint names choices on which its bits depend.
TEST_F(LibraryChoices, InCheckpoints) {
    const std::string path = e2e::temp_path("choices.ck");
    const Outcome own = Live(Small(), Asked::Own());
    const char *const says = "was trained with other products: ";
    Asked a;
    a.checkpoint = path;
    a.infers = false;
    // with the same bits there is nothing to say
    BeginTimes(own, 100, "cublasLt4=1");
    ASSERT_EQ(Live(Small(), a).status, AMP_OK);
    EXPECT_EQ(Read(path).find("amp.products"), std::string::npos);
    a.products = AMP_PRODUCTS_FASTEST;
    BeginTimes(own, 100, "cublasLt0=5,cublasLt3=3");
    ASSERT_EQ(Live(Small(), a).status, AMP_OK);
    EXPECT_NE(Read(path).find("\"amp.products\":\"fastest "), std::string::npos);
    a.checkpoint = "";
    a.resumes = path;
    const Outcome same = Live(Small(), a);
    EXPECT_EQ(same.status, AMP_OK) << same.message;
    EXPECT_FALSE(same.Says(AMP_LOG_WARNING, says));
    Forget();
    BeginTimes(own, 100, "cublasLt0=3,cublasLt3=5");
    const Outcome others = Live(Small(), a);
    EXPECT_EQ(others.status, AMP_OK) << others.message;
    EXPECT_TRUE(others.Says(AMP_LOG_WARNING, says));
    a.products = AMP_PRODUCTS_OWN;
    EXPECT_TRUE(Live(Small(), a).Says(AMP_LOG_WARNING, says));
    ExpectClean();
}

// ---- fastest, with nothing to choose --------------------------------------------------------------------------------

TEST_F(LibraryChoices, FastestSaysWhyAllIsOwn) {
    Asked a;
    a.products = AMP_PRODUCTS_FASTEST;
    begin({{"ARCH", "75"}});
    EXPECT_TRUE(Live(Small(), a).Says(AMP_LOG_WARNING, "is asked from sm_80 on, and"));
    unsetenv("FAKECUDA_ARCH");
    begin();
    const std::string none = Compiled("amp 1\nmodel m(x: f32[N, 16]) -> y { y = gelu(x) }\nprecision fp16 { }");
    EXPECT_TRUE(Live(none, a).Says(AMP_LOG_WARNING, "has no launch that consists of products alone"));
    const Outcome own = Live(Small(), Asked::Own());
    BeginTimes(own, 100, "cublasLt0=300,cublasLt1=300,cublasLt3=300,cublasLt4=300");
    EXPECT_TRUE(Live(Small(), a).Says(AMP_LOG_INFO, "n = 16: cuBLASLt makes 0 of "));
}

} // namespace
