// report_test.cc: leaks, misuse, counters, and the file at the end of the process.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "fakecuda/driver/stand_in.h"

namespace {

class Reports : public StandIn {};

TEST_F(Reports, EveryKindOfLeak) {
    start();
    alloc(48);
    pinned(4);
    CuStream s = stream();
    event();
    module_of(KERNELS);
    OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
    CuGraph g;
    OK(cu.capture_end(s, &g));
    CuGraphExec x;
    OK(cu.graph_instantiate(&x, g, 0));
    EXPECT_TRUE(report().lines("leaks").empty()); // nothing is over yet
    finish();
    std::vector<std::string> expected = {"device memory: allocation 1, of 48 bytes",
                                         "page-locked host memory: allocation 1, of 16 bytes",
                                         "stream",
                                         "event",
                                         "module",
                                         "graph",
                                         "executable graph"};
    EXPECT_EQ(expected, report().lines("leaks"));
}

TEST_F(Reports, CountersStartAnew) {
    start();
    CuModule m = module_of(KERNELS);
    CuFunction f = function_of(m, "add_one");
    CuPointer p = alloc(16);
    uint32_t n = 4;
    OK(cu.fill32(p, 1, 4, nullptr));
    OK(launch(f, 4, nullptr, {&p, &n}));
    OK(cu.context_sync());
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_free(p + 1));
    EXPECT_EQ(1, report().total("launches"));
    EXPECT_EQ(1, report().calls("cuLaunchKernel"));
    EXPECT_EQ(1, report().waits("cuCtxSynchronize"));
    reset_counters();
    Report r = report();
    EXPECT_EQ(0, r.total("launches"));
    EXPECT_EQ(0, r.calls("cuLaunchKernel"));
    EXPECT_EQ(0, r.total("host_synchronisations"));
    EXPECT_TRUE(r.lines("misuse").empty());
    OK(launch(f, 4, nullptr, {&p, &n}));
    OK(cu.context_sync());
    EXPECT_EQ(1, report().total("launches"));
    EXPECT_EQ(1, report().number(report().kernel("add_one"), "launches"));
    EXPECT_EQ(3u, read(p, 1, nullptr)[0]);
    OK(launch(f, 4, nullptr, {&p, &n}));
    OK(cu.context_sync());
    Report two = report(); // of one warp each: twice as many instructions, and the longest is the same
    EXPECT_EQ(2, two.number(two.kernel("add_one"), "blocks"));
    EXPECT_GT(two.number(two.kernel("add_one"), "longest_warp"), 0);
    EXPECT_EQ(two.number(two.kernel("add_one"), "warp_instructions"),
              2 * two.number(two.kernel("add_one"), "longest_warp"));
    EXPECT_EQ(two.total("longest_warp"), two.number(two.kernel("add_one"), "longest_warp"));
}

TEST_F(Reports, SameSeedSameMoments) {
    auto run = [&](uint64_t seed) {
        std::vector<CuResult> seen;
        start();
        set_seed(seed);
        CuStream s = stream();
        CuPointer p = alloc(4);
        for (uint32_t i = 0; i < 20; i++) {
            EXPECT_EQ(CU_SUCCESS, cu.fill32(p, i, 1, s));
            seen.push_back(cu.stream_query(s));
        }
        return seen;
    };
    EXPECT_EQ(run(5), run(5));
    EXPECT_NE(run(5), run(6));
}

// What a child that does |work| leaves in its report file.
template <class F> std::string file_of(F work) {
    char folder[] = "/tmp/fakecuda_report_XXXXXX";
    EXPECT_TRUE(mkdtemp(folder));
    std::string pattern = std::string(folder) + "/%p.json";
    pid_t child = fork();
    if (child == 0) {
        setenv("FAKECUDA_REPORT", pattern.c_str(), 1);
        std::string program = "/proc/self/exe";
        std::string filter = "--gtest_filter=" + std::string(work);
        execl(program.c_str(), program.c_str(), filter.c_str(), static_cast<char *>(nullptr));
        _exit(99);
    }
    int status = 0;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    std::string name = std::string(folder) + "/" + std::to_string(child) + ".json";
    std::ifstream in(name);
    std::stringstream text;
    text << in.rdbuf();
    unlink(name.c_str());
    rmdir(folder);
    return text.str();
}

// A program for the next test: it forgets to give back a context with an allocation in it.
class Forgetful : public StandIn {
  protected:
    void SetUp() override {
        report_ = getenv("FAKECUDA_REPORT") ? getenv("FAKECUDA_REPORT") : "";
        StandIn::SetUp();
    }
    void TearDown() override {}
    std::string report_;
};
TEST_F(Forgetful, Program) {
    start({{"REPORT", report_}});
    alloc(100);
    OK(cu.fill8(0, 0, 0, nullptr));
}

TEST_F(Reports, WrittenAtExit) {
    std::string text = file_of("Forgetful.*");
    Report r(text.c_str());
    EXPECT_EQ((std::vector<std::string>{"primary context of device 0, taken 1 times",
                                        "device memory: allocation 1, of 100 bytes"}),
              r.lines("leaks"));
    EXPECT_EQ(1, r.total("allocations"));
    EXPECT_EQ(90, Report::number(r.root(), "arch"));
}

} // namespace
