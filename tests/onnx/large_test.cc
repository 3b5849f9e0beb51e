// large_test.cc: 2.5 GB of external data become f16 in 200 MB of memory; a million nodes, and names that are alike, in
// time that grows with the model.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "tests/onnx/onnx_bytes.h"

using namespace onnx_test;

namespace {

double ProcessorSeconds() { return (double)clock() / CLOCKS_PER_SEC; }

TEST(OnnxLarge, WeightsAreConvertedByPieces) {
    Folder folder;
    const int64_t rows = 25, bytes = 100 << 20; // of each tensor
    std::vector<Bytes> weights;
    for (int64_t i = 0; i < rows; i++)
        weights.push_back(External("w" + std::to_string(i), {bytes / 4},
                                   {Prop("location", "w"), Prop("offset", std::to_string(i * bytes))}));
    Put(folder / "m.onnx", Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, weights)).text);
    Put(folder / "w", Floats({1, 2, 3}));
    ASSERT_EQ(truncate((folder / "w").c_str(), rows * bytes), 0); // the others are zero
    auto r = Reading::File(folder / "m.onnx");
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    for (int64_t i = 0; i < rows; i++) r.model.graph->initializers.data[i].data_type = ONNX_FLOAT16;
    const double start = ProcessorSeconds();
    ASSERT_EQ(r.Write(folder / "o.onnx"), AMP_OK) << r.Message();
    struct stat data;
    ASSERT_EQ(stat((folder / "o.onnx.data").c_str(), &data), 0);
    EXPECT_EQ(data.st_size, rows * bytes / 2);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("2.5 GB: %.1f s of the processor, at most %ld MB of memory\n", ProcessorSeconds() - start,
           usage.ru_maxrss >> 10);
    EXPECT_LE(usage.ru_maxrss >> 10, 200);
}

TEST(OnnxLarge, AMillionNodes) {
    Bytes graph;
    const int many = 1000000;
    for (int i = 0; i < many; i++)
        graph.Put(1, Node("Add", {i ? "v" + std::to_string(i) : "x", "x"},
                          {i + 1 < many ? "v" + std::to_string(i + 1) : "y"}));
    graph.Text(2, "main").Put(11, Info("x", 1, {})).Put(12, Info("y", 1, {}));
    const double start = ProcessorSeconds();
    Reading r(Model(graph).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    const double read = ProcessorSeconds();
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    const double indexed = ProcessorSeconds();
    printf("a million nodes: read in %.2f s, indexed in %.2f s, %zu MB\n", read - start, indexed - read,
           r.arena.used >> 20);
    EXPECT_LT(indexed - start, 5);
}

// Nodes that read the last value before they are made: each would look for a cycle, but the first ends the reading.
TEST(OnnxLarge, ALongWayBack) {
    Bytes graph;
    const int many = 300000;
    for (int i = 0; i < many; i++)
        graph.Put(1, Node("Abs", {"v" + std::to_string(i + 1)}, {i ? "v" + std::to_string(i) : "y"}));
    graph.Text(2, "main").Put(1, Node("Abs", {"y"}, {"v" + std::to_string(many)})).Put(12, Info("y", 1, {}));
    Reading r(Model(graph).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    const double start = ProcessorSeconds();
    EXPECT_EQ(r.Index(), AMP_BAD_FILE);
    EXPECT_NE(r.Message().find("the graph has a cycle"), std::string::npos) << r.Message();
    EXPECT_LT(ProcessorSeconds() - start, 3);
}

} // namespace
