// sync_test.cc: batch norm over the batches of all ranks: sessions of several ranks, whose batches differ in size, make
// the steps of one rank that has all their samples in one batch, within rounding; of one rank nothing changes.
#include "tests/e2e/ranks.h"

namespace {

using e2e::Batch;
using e2e::Training;

constexpr int kChannels = 3, kSide = 6, kFeatures = kChannels * kSide * kSide, kClasses = 5;
constexpr int64_t kCapacity = 12;

// A norm of images and one of rows.  The rate is of SGD, which takes what rounding leaves of a gradient that is zero,
// as of a bias in front of a norm, for what it is.
std::string Text(const std::string &precision, bool sync, int accumulate, const std::string &block = "") {
    const std::string norm = sync ? "; sync = true)" : ")";
    return "amp 1\nmodel net(x: f32[N, 3, 6, 6]) -> logits {\n" + (block.empty() ? "" : "    " + block + " {\n") +
           "    h = relu(batch_norm(conv2d(x; out = 8, kernel = 3, padding = 1)" + norm + " as image)\n" +
           "    h = relu(batch_norm(linear(flatten(h); out = 33) as fc1" + norm + " as row)\n" +
           (block.empty() ? "" : "    }\n") +
           "    logits = linear(h; out = 5) as fc2\n}\ntrain net {\n    input targets: i32[N]\n"
           "    loss = cross_entropy(logits, targets)\n    optimizer = sgd(lr = 0.05, momentum = 0.9)\n"
           "    accumulate = " +
           std::to_string(accumulate) + "\n}\nprecision " + precision +
           (precision == "fp16" ? " { loss_scale = dynamic(init = 1024.0, interval = 4) }\n" : " { }\n");
}

std::string Compile(const std::string &text, const char *distribute) {
    static int count = 0;
    amp_compile_options options = {};
    options.distribute = distribute;
    options.accumulate_order = "tree"; // the ranks of the test are added in order
    options.target = "cpu";
    return e2e::compile_to_file(text, "sync-" + std::to_string(count++) + ".so", options);
}

// Of a rank in a micro-batch: each has another size, and an ignored label.
Batch Samples(int32_t rank, int micro) {
    Batch b(kCapacity - (rank * 5 + micro) % 7, kFeatures, kClasses, static_cast<uint32_t>(100 + micro * 16 + rank));
    for (size_t i = 0; i < b.x.size(); i++) b.x[i] = b.x[i] * (1 + static_cast<float>(rank)) + 0.5f; // not of one mean
    b.y[0] = -100;
    return b;
}

Batch Joined(int32_t ranks, int micro) {
    Batch all(0, kFeatures, kClasses, 1);
    for (int32_t r = 0; r < ranks; r++) {
        const Batch b = Samples(r, micro);
        all.x.insert(all.x.end(), b.x.begin(), b.x.end());
        all.y.insert(all.y.end(), b.y.begin(), b.y.end());
        all.n += b.n;
    }
    return all;
}

struct Course {
    std::vector<double> losses; // of whole steps
    std::vector<float> before, after, batches;
    std::string file; // a checkpoint's bytes
};

bool Counts(const char *name) { return strstr(name, "num_batches_tracked"); }

// All but the counters of batches, or those alone.
std::vector<float> Tensors(const Training &t, bool counters) {
    std::vector<float> all;
    amp_error err = {};
    amp_model_info info;
    amp_model_get_info(t.model, &info);
    for (int i = 0; i < info.param_count; i++) {
        amp_tensor_info about;
        EXPECT_EQ(amp_model_param_at(t.model, i, &about, &err), AMP_OK) << err.message;
        if (Counts(about.name) != counters) continue;
        size_t count = 1;
        for (int d = 0; d < about.rank; d++) count *= static_cast<size_t>(about.dims[d]);
        std::vector<float> data(count);
        EXPECT_EQ(amp_params_get(t.params, about.name, data.data(), count, &err), AMP_OK) << err.message;
        all.insert(all.end(), data.begin(), data.end());
    }
    return all;
}

void Train(const std::string &model, int micros, int64_t capacity, amp_comm *comm,
           const std::function<Batch(int)> &batch, const std::string &file, Course *c) {
    Training t(model, capacity, 1, 3, false, nullptr, comm);
    ASSERT_TRUE(t.ok());
    c->before = Tensors(t, false);
    for (int i = 0; i < micros; i++) {
        Batch b = batch(i);
        amp_step_report report;
        ASSERT_EQ(amp_step(t.session, b.inputs(), {b.n, 0}, &report, &t.err), AMP_OK) << t.err.message;
        if (report.complete) c->losses.push_back(report.loss);
    }
    c->after = Tensors(t, false); // weights, and running statistics
    c->batches = Tensors(t, true);
    const std::string path = e2e::temp_path(file);
    ASSERT_EQ(amp_checkpoint_save(t.session, path.c_str(), "", &t.err), AMP_OK) << t.err.message;
    std::ifstream in(path, std::ios::binary);
    uint64_t header = 0; // names the model's text
    in.read(reinterpret_cast<char *>(&header), sizeof header);
    in.ignore(static_cast<std::streamsize>(header));
    c->file = {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Course> OfRanks(const std::string &model, int32_t ranks, int micros) {
    std::vector<Course> courses(static_cast<size_t>(ranks));
    e2e::Network network(ranks);
    e2e::on_ranks(ranks, [&](int32_t rank) {
        Train(
            model, micros, kCapacity, network.Comm(rank), [rank](int i) { return Samples(rank, i); },
            "rank" + std::to_string(rank) + ".st", &courses[static_cast<size_t>(rank)]);
    });
    return courses;
}

Course OfOne(const std::string &model, int32_t ranks, int micros) {
    Course c;
    Train(
        model, micros, kCapacity * ranks, nullptr, [ranks](int i) { return Joined(ranks, i); }, "one.st", &c);
    return c;
}

double Largest(const std::vector<float> &a, const std::vector<float> &b) {
    double largest = 0;
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) largest = std::max(largest, std::fabs(double(a[i]) - double(b[i])));
    return largest;
}

class Sync : public ::testing::TestWithParam<std::tuple<const char *, int, int>> {
  protected:
    const std::string precision_ = std::get<0>(GetParam());
    const int32_t ranks_ = std::get<1>(GetParam());
    const int accumulate_ = std::get<2>(GetParam());
    // Of the way that the weights have gone: products of 16 bits round what differs in the last bit of f32.
    double Bound() const { return precision_ == "fp32" ? 3e-6 : 1e-2; }

    void ExpectNear(const Course &got, const Course &want) const {
        ASSERT_EQ(got.losses.size(), want.losses.size());
        for (size_t i = 0; i < want.losses.size(); i++)
            EXPECT_NEAR(got.losses[i], want.losses[i], Bound() * want.losses[0]) << i;
        const double way = Largest(want.before, want.after), off = Largest(got.after, want.after);
        EXPECT_GT(way, 1e-2);
        EXPECT_LT(off, Bound() * way);
        EXPECT_EQ(got.batches, want.batches); // one for all ranks, and not one for each
    }
};

TEST_P(Sync, MakesTheStepsOfOneRankWithTheWholeBatch) {
    const int micros = 6 * accumulate_;
    const Course want = OfOne(Compile(Text(precision_, false, accumulate_), "data"), ranks_, micros);
    const auto courses = OfRanks(Compile(Text(precision_, true, accumulate_), "data"), ranks_, micros);
    for (const Course &c : courses) {
        ExpectNear(c, want);
        EXPECT_TRUE(c.file == courses[0].file) << "ranks differ";
    }
    // the test sees what it is for: without sync the steps are others
    const auto apart = OfRanks(Compile(Text(precision_, false, accumulate_), "data"), ranks_, micros);
    EXPECT_GT(Largest(apart[0].after, want.after), 2 * Bound() * Largest(want.before, want.after));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Sync,
                         ::testing::Combine(::testing::Values("fp32", "bf16", "fp16"), ::testing::Values(2, 3),
                                            ::testing::Values(1, 2)),
                         [](const ::testing::TestParamInfo<std::tuple<const char *, int, int>> &i) {
                             return std::string(std::get<0>(i.param)) + "_" + std::to_string(std::get<1>(i.param)) +
                                    "_ranks_" + std::to_string(std::get<2>(i.param));
                         });

// Trained alone, be it compiled for that or not, there is nothing to add: the same bits, buffers and counters included.
TEST(SyncAlone, ChangesNothing) {
    for (const char *precision : {"fp32", "fp16"})
        for (int accumulate : {1, 2})
            for (const char *distribute : {"none", "data"}) {
                SCOPED_TRACE(std::string(precision) + ", accumulate " + std::to_string(accumulate) + ", " + distribute);
                const Course with = OfOne(Compile(Text(precision, true, accumulate), distribute), 2, 6);
                const Course without = OfOne(Compile(Text(precision, false, accumulate), distribute), 2, 6);
                EXPECT_EQ(with.losses, without.losses);
                EXPECT_TRUE(with.file == without.file);
            }
}

// Gradients that are ready are on their way when a norm in front of them adds up its own: all ranks start the same
// messages in the same order, which the network checks, and the norm's does not wait for the end of the step.
TEST(SyncAmongBuckets, KeepsTheOrder) {
    std::string text[2];
    for (int sync = 0; sync < 2; sync++) {
        text[sync] = Text("fp32", sync, 1);
        const std::string from = "    logits = linear(h; out = 5)";
        text[sync].replace(text[sync].find(from), from.size(),
                           "    h = relu(linear(h; out = 900) as wide)\n    h = relu(linear(h; out = 900) as wider)\n" +
                               from);
    }
    const Course want = OfOne(Compile(text[0], "data"), 2, 3);
    const std::string model = Compile(text[1], "data");
    e2e::Network network(2);
    std::vector<Course> courses(2);
    e2e::on_ranks(2, [&](int32_t rank) {
        network.Begin(rank, 0);
        Train(
            model, 3, kCapacity, network.Comm(rank), [rank](int i) { return Samples(rank, i); },
            "rank" + std::to_string(rank) + ".st", &courses[static_cast<size_t>(rank)]);
    });
    EXPECT_LT(Largest(courses[0].after, want.after), 3e-6 * Largest(want.before, want.after));
    EXPECT_TRUE(courses[0].file == courses[1].file);
    std::string order;
    for (const auto &t : network.transfers())
        order += t.what.find("sum_ranks") != std::string::npos   ? 's'
                 : t.what.find("gradients") != std::string::npos ? 'g'
                                                                 : '.';
    const std::string step = "ssssgss"; // two norms, a bucket, and their gradients
    size_t found = 0;
    for (size_t at = order.find(step); at != std::string::npos; at = order.find(step, at + 1)) found++;
    EXPECT_EQ(found, 3u) << order;
}

// What a checkpoint computes again is not exchanged again, and is the same.
TEST(SyncInACheckpoint, ReadsTheSameSums) {
    const auto plain = OfRanks(Compile(Text("fp32", true, 1), "data"), 2, 4);
    const auto again = OfRanks(Compile(Text("fp32", true, 1, "checkpoint"), "data"), 2, 4);
    EXPECT_EQ(plain[0].losses, again[0].losses);
    EXPECT_TRUE(plain[0].file == again[0].file);
}

} // namespace
