// main.cc: random_programs [--first SEED] [--count N] [--step K] [--cc PROGRAM] [--folder DIR] [--device cpu|cuda]
// [--size T] | --minimise SEED | --print SEED | --missing COUNT
//
// Checks the programs of the seeds FIRST, FIRST + K, ... (N of them) and ends with "N passed, N failed" and, on CUDA,
// ", N skipped".  A failing one is made as small as it gets and printed with its seed.  --missing: prints the ops that
// the first COUNT programs do not hold.  --size T, before these: programs with a T.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/random/check.h"
#include "tests/random/coverage.h"

namespace rp = random_programs;

namespace {

// A program without CUDA code is none that fails.
std::string WrongOf(const rp::Program &p, const rp::Settings &settings) {
    try {
        return rp::Check(p, settings);
    } catch (const rp::Skipped &) {
        return "";
    }
}

// Delta debugging, one statement at a time: a smaller program that fails in the same way takes the place of the larger
// one.
rp::Program Minimise(rp::Program p, const std::string &wrong, const rp::Settings &settings) {
    std::string kind = wrong.substr(0, wrong.find(':'));
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (const rp::Program &q : rp::Smaller(p)) {
            std::string now = WrongOf(q, settings);
            if (now.substr(0, now.find(':')) != kind) continue;
            p = q;
            smaller = true;
            break;
        }
    }
    return p;
}

// After a fault of a kernel every call of the driver fails in this process: nothing smaller can be told from that.
bool IsDeviceLost(const std::string &wrong) {
    for (const char *error : {"CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED"})
        if (wrong.find(error) != std::string::npos) return true;
    return false;
}

void Report(uint64_t seed, const rp::Program &p, const std::string &wrong, const rp::Settings &settings) {
    if (IsDeviceLost(wrong)) {
        std::printf("FAIL seed %llu: %s; the device is lost, later seeds are not run\n%s\n",
                    static_cast<unsigned long long>(seed), wrong.c_str(), p.Text().c_str());
        std::fflush(stdout);
        return;
    }
    rp::Program q = Minimise(p, wrong, settings);
    std::printf("FAIL seed %llu: %s\n  smallest: %s (n = %d)\n%s\n", static_cast<unsigned long long>(seed),
                wrong.c_str(), WrongOf(q, settings).c_str(), q.n, q.Text().c_str());
    std::fflush(stdout);
}

int PrintMissing(int count) {
    for (const std::string &op : rp::OpsWithoutProgram(1, count)) std::printf("%s\n", op.c_str());
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    uint64_t first = 1, step = 1;
    int count = 200, passed = 0, failed = 0, skipped = 0;
    rp::Settings settings;
    auto generate = rp::Generate;
    const char *folder = std::getenv("TMPDIR");
    settings.folder = folder && *folder ? folder : "/tmp";
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string option = argv[i], value = argv[i + 1];
        if (option == "--first") first = std::stoull(value);
        else if (option == "--count") count = std::stoi(value);
        else if (option == "--step") step = std::stoull(value);
        else if (option == "--cc") settings.c_compiler = value;
        else if (option == "--folder") settings.folder = value;
        else if (option == "--device") settings.cuda = value == "cuda";
        else if (option == "--size" && value == "T") generate = rp::GenerateWithLength;
        else if (option == "--print") return std::printf("%s", generate(std::stoull(value)).Text().c_str()) < 0;
        else if (option == "--missing") return PrintMissing(std::stoi(value));
        else if (option == "--minimise") first = std::stoull(value), count = 1;
        else return std::fprintf(stderr, "random_programs: %s: no such option\n", argv[i]), 2;
    }
    bool lost = false;
    for (int i = 0; i < count && !lost; i++) {
        uint64_t seed = first + step * static_cast<uint64_t>(i);
        rp::Program p = generate(seed);
        try {
            std::string wrong = rp::Check(p, settings);
            wrong.empty() ? passed++ : failed++;
            if (!wrong.empty()) Report(seed, p, wrong, settings);
            lost = IsDeviceLost(wrong);
        } catch (const rp::Skipped &s) {
            skipped++;
            std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), s.why.c_str());
        }
    }
    std::printf("%d passed, %d failed", passed, failed);
    if (settings.cuda) std::printf(", %d skipped", skipped);
    std::printf("\n");
    return failed > 0;
}
