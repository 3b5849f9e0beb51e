// overlap_test.cc: gradients travel while the backward pass still computes.
#include "tests/e2e/ranks.h"

namespace {

using e2e::Network;

constexpr int32_t kRanks = 2;
constexpr int64_t kSamples = 4;
constexpr int kSteps = 5;

struct Step {
    double took = 0, transfers = 0, exposed = 0; // on the rank's clock
};

double Median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

// Steps of all ranks: of each the numbers of the rank that waited longest.
std::vector<Step> Steps(e2e::Network *network, std::vector<std::unique_ptr<e2e::Training>> &ranks, double bandwidth) {
    std::vector<Step> steps;
    for (int i = 0; i < kSteps; i++) {
        std::vector<Step> of(kRanks);
        e2e::on_ranks(kRanks, [&](int32_t rank) {
            e2e::Training &t = *ranks[static_cast<size_t>(rank)];
            e2e::Batch b(kSamples, 3 * 32 * 32, 10, static_cast<uint32_t>(i * kRanks + rank));
            network->Begin(rank, bandwidth);
            amp_step_report report;
            ASSERT_EQ(amp_step(t.session, b.inputs(), {b.n, 0}, &report, &t.err), AMP_OK) << t.err.message;
            of[static_cast<size_t>(rank)] = {network->Clock(rank), 0, network->exposed(rank)};
        });
        Step s = of[0].exposed > of[1].exposed ? of[0] : of[1];
        for (const Network::Transfer &t : network->transfers()) s.transfers += t.ends - t.begins;
        steps.push_back(s);
    }
    return steps;
}

// By channels of the first stage: 11 million weights, and 2.8 million, whose gradients fit into few buckets.
class Overlap : public ::testing::TestWithParam<const char *> {};

TEST_P(Overlap, HidesTransfersBehindTheBackwardPass) {
    const char *name = "examples/resnet/resnet18.amp";
    std::ifstream in(name);
    const std::string text{std::istreambuf_iterator<char>(in), {}}, path = e2e::temp_path("resnet18.so");
    const amp_define width = {"W", GetParam()};
    amp_compile_options options = {};
    options.distribute = "data";
    options.precision = "fp32";
    options.defines = &width;
    options.define_count = 1;
    options.output = path.c_str();
    options.isa = "portable"; // optimised, as it is timed
    const e2e::Compiled compiled = e2e::compile(text, options, name);
    ASSERT_EQ(compiled.status, AMP_OK) << compiled.message << "\n" << compiled.diagnostics;

    Network network(kRanks);
    std::vector<std::unique_ptr<e2e::Training>> ranks(kRanks);
    e2e::on_ranks(kRanks, [&](int32_t rank) {
        ranks[static_cast<size_t>(rank)] =
            std::make_unique<e2e::Training>(path, kSamples, 1, 3, false, nullptr, network.Comm(rank));
    });
    for (const auto &r : ranks) ASSERT_TRUE(r->ok());

    // A bandwidth by which the transfers take half as long as the step computes.
    std::vector<double> took, hidden;
    for (const Step &s : Steps(&network, ranks, 0)) took.push_back(s.took);
    double bytes = 0;
    for (const Network::Transfer &t : network.transfers()) bytes += static_cast<double>(t.bytes);
    ASSERT_GT(bytes, 4 * 2.7e6);
    const double bandwidth = bytes / (0.5 * Median(took));

    for (const Step &s : Steps(&network, ranks, bandwidth)) hidden.push_back(1 - s.exposed / s.transfers);
    for (const Network::Transfer &t : network.transfers())
        printf("%6.1f to %6.1f ms: %5.1f MB, %s\n", 1e3 * t.begins, 1e3 * t.ends, static_cast<double>(t.bytes) / 1e6,
               t.what.c_str());
    printf("%.0f ms of computing, %.0f %% of the transfers hidden\n", 1e3 * Median(took), 100 * Median(hidden));
    EXPECT_GE(Median(hidden), 0.8);
}

INSTANTIATE_TEST_SUITE_P(Widths, Overlap, ::testing::Values("64", "32"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string("W") + i.param; });

} // namespace
