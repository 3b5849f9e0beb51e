// Painting: each pass by itself, which way paint came, and that large graphs take linear time and little stack.
// tests/parity holds it against TensorFlow's own graphs.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "precision/paint.h"

namespace {

// An op with one type, f32, that may become low; the name says the list.
PaintVertex Op(PaintList list) { return {list, true, true, true, true, false, false, false}; }
const PaintVertex kAllow = Op(PAINT_LIST_ALLOW), kInfer = Op(PAINT_LIST_INFER), kDeny = Op(PAINT_LIST_DENY),
                  kClear = Op(PAINT_LIST_CLEAR), kUnlisted = Op(PAINT_LIST_NONE);

PaintVertex With(PaintVertex v, const std::function<void(PaintVertex *)> &change) {
    change(&v);
    return v;
}
PaintVertex Fixed(PaintVertex v) {
    return With(v, [](PaintVertex *x) { x->may_change = false; });
}
PaintVertex EndsIteration() {
    return With(kClear, [](PaintVertex *x) { x->ends_iteration = true; });
}

class PaintTest : public testing::Test {
  protected:
    PaintTest() { arena_init(&arena_, nullptr); }
    ~PaintTest() override { arena_free(&arena_); }

    const PaintMark *Paint(const std::vector<PaintVertex> &vertices, const std::vector<PaintEdge> &edges) {
        PaintGraph g = {vertices.data(), edges.data(), static_cast<int>(vertices.size()),
                        static_cast<int>(edges.size())};
        return paint_graph(&arena_, &g);
    }

    // The marks of all vertices: "allow@1 none allow@3<0>2"; a number after < is what comes before, one after > what
    // comes after.
    std::string Marks(const std::vector<PaintVertex> &vertices, const std::vector<PaintEdge> &edges) {
        static const char *const colours[] = {"none", "allow", "deny"};
        const PaintMark *marks = Paint(vertices, edges);
        std::string text;
        for (size_t i = 0; i < vertices.size(); i++) {
            text += (i ? " " : "") + std::string(colours[marks[i].colour]);
            if (marks[i].pass) text += "@" + std::to_string(marks[i].pass);
            if (marks[i].before != PAINT_NOWHERE) text += "<" + std::to_string(marks[i].before);
            if (marks[i].after != PAINT_NOWHERE) text += ">" + std::to_string(marks[i].after);
        }
        return text;
    }

    static std::vector<PaintEdge> Chain(size_t count) {
        std::vector<PaintEdge> edges;
        for (int i = 0; i + 1 < static_cast<int>(count); i++) edges.push_back({i, i + 1});
        return edges;
    }

    std::string ChainMarks(const std::vector<PaintVertex> &vertices) { return Marks(vertices, Chain(vertices.size())); }

    Arena arena_;
};

TEST_F(PaintTest, TheChainOfItsDescription) {
    // deny paints on to the last infer op that it reaches, but not the clear op after that, which pass 5 then takes;
    // pass 4 takes the op after the allow op
    EXPECT_EQ(ChainMarks({kDeny, kInfer, kClear, kInfer, kClear, kAllow, kInfer}),
              "deny@2 deny@2<0 deny@2<1>3 deny@2<2 allow@5>5 allow@1 allow@4<5");
}

TEST_F(PaintTest, NothingWithoutAnAllowOp) {
    EXPECT_EQ(ChainMarks({kDeny, kInfer, kClear}), "none none none");
    EXPECT_EQ(ChainMarks({Fixed(kAllow), kInfer, kDeny}), "none none none");
    EXPECT_EQ(Marks({EndsIteration()}, {}), "none");
    EXPECT_EQ(Marks({}, {}), "");
}

TEST_F(PaintTest, DenyPassesOverInferAndOverClearThatLeadsSomewhere) {
    EXPECT_EQ(ChainMarks({kDeny, kClear, kClear, kInfer, kAllow}), "deny@2 deny@2<0>2 deny@2<1>3 deny@2<2 allow@1");
    EXPECT_EQ(ChainMarks({kDeny, kClear, kDeny, kAllow}), "deny@2 deny@2<0>2 deny@2 allow@1");
    // to nothing but an allow op
    EXPECT_EQ(ChainMarks({kDeny, kClear, kAllow}), "deny@2 allow@5>2 allow@1");
    // nor over an op of no list, or against the edges
    EXPECT_EQ(ChainMarks({kDeny, kUnlisted, kInfer, kAllow}), "deny@2 none none allow@1");
    EXPECT_EQ(ChainMarks({kAllow, kInfer, kDeny}), "allow@1 allow@4<0 deny@2");
}

TEST_F(PaintTest, DenyAlsoReachesWhatMayNotChange) {
    EXPECT_EQ(ChainMarks({Fixed(kDeny), Fixed(kInfer), kInfer, kAllow}), "deny@2 deny@2<0 deny@2<1 allow@1");
}

TEST_F(PaintTest, BetweenTwoAllowOps) {
    EXPECT_EQ(ChainMarks({kAllow, kInfer, kClear, kAllow}), "allow@1 allow@3<0>2 allow@3<1>3 allow@1");
    // the shortest way on either side: 0 -> 1 -> 2 -> 3 -> 6 -> 4, and 0 -> 3, 3 -> 5
    EXPECT_EQ(Marks({kAllow, kInfer, kInfer, kInfer, kAllow, kAllow, kClear},
                    {{0, 1}, {1, 2}, {2, 3}, {3, 6}, {6, 4}, {0, 3}, {3, 5}}),
              "allow@1 allow@3<0>2 allow@3<1>3 allow@3<0>5 allow@1 allow@1 allow@3<3>4");
    for (auto change : std::vector<std::function<void(PaintVertex *)>>{
             [](PaintVertex *x) { x->may_change = false; }, [](PaintVertex *x) { x->is_f32 = false; },
             [](PaintVertex *x) { x->has_low_kernel = false; }, [](PaintVertex *x) { x->list = PAINT_LIST_NONE; }})
        EXPECT_EQ(ChainMarks({kAllow, kClear, With(kClear, change), kAllow}), "allow@1 allow@5<0 none allow@1");
}

TEST_F(PaintTest, AfterAnAllowOp) {
    // each counts for those that follow in the order of the vertices, and for no others
    EXPECT_EQ(Marks({kAllow, kInfer, kInfer, kInfer}, {{0, 1}, {1, 2}, {2, 3}}),
              "allow@1 allow@4<0 allow@4<1 allow@4<2");
    EXPECT_EQ(Marks({kAllow, kInfer, kInfer, kInfer}, {{0, 3}, {3, 2}, {2, 1}}), "allow@1 none none allow@4<0");
    // one operand of several is enough; none may be deny
    EXPECT_EQ(Marks({kUnlisted, kAllow, kInfer}, {{0, 2}, {1, 2}}), "none allow@1 allow@4<1");
    EXPECT_EQ(Marks({kAllow, kDeny, kUnlisted, kInfer}, {{0, 3}, {1, 2}, {2, 3}}), "allow@1 deny@2 none allow@4<0");
    EXPECT_EQ(Marks({kAllow, kDeny, kInfer}, {{0, 2}, {1, 2}}), "allow@1 deny@2 deny@2<1");
    PaintVertex f64 = With(kDeny, [](PaintVertex *x) { x->is_f32 = false; });
    EXPECT_EQ(Marks({kAllow, f64, kInfer}, {{0, 2}, {1, 2}}), "allow@1 deny@2 deny@2<1");
    EXPECT_EQ(Marks({kAllow, kDeny, kClear, kInfer}, {{0, 3}, {1, 2}, {2, 3}}), "allow@1 deny@2 deny@2<1>3 deny@2<2");
    // a kernel is not asked for
    EXPECT_EQ(ChainMarks({kAllow, With(kInfer, [](PaintVertex *x) { x->has_low_kernel = false; })}),
              "allow@1 allow@4<0");
    for (auto change : std::vector<std::function<void(PaintVertex *)>>{
             [](PaintVertex *x) { x->may_change = false; }, [](PaintVertex *x) { x->is_f32 = false; },
             [](PaintVertex *x) { x->admits_low = false; }, [](PaintVertex *x) { x->list = PAINT_LIST_NONE; }})
        EXPECT_EQ(ChainMarks({kAllow, With(kInfer, change)}), "allow@1 none");
}

TEST_F(PaintTest, ClearOpsBeside) {
    // on both sides, and on from there; not over infer ops
    EXPECT_EQ(ChainMarks({kClear, kClear, kAllow, kClear, kClear, kInfer}),
              "allow@5>1 allow@5>2 allow@1 allow@5<2 allow@5<3 none");
    // against an edge, then along one: 1 is read by 0, which is allow, and by 2
    EXPECT_EQ(Marks({kAllow, kClear, kClear}, {{1, 0}, {1, 2}}), "allow@1 allow@5>0 allow@5<1");
    for (auto change : std::vector<std::function<void(PaintVertex *)>>{
             [](PaintVertex *x) { x->may_change = false; }, [](PaintVertex *x) { x->is_f32 = false; },
             [](PaintVertex *x) { x->has_low_kernel = false; }, [](PaintVertex *x) { x->reads_variable = true; },
             [](PaintVertex *x) { x->list = PAINT_LIST_NONE; }})
        EXPECT_EQ(ChainMarks({kClear, With(kClear, change), kAllow}), "none none allow@1");
    // what reads a variable may still lie between two
    EXPECT_EQ(ChainMarks({kAllow, With(kClear, [](PaintVertex *x) { x->reads_variable = true; }), kAllow}),
              "allow@1 allow@3<0>2 allow@1");
}

TEST_F(PaintTest, TypesThatCannotBeLow) {
    PaintVertex quantised = With(kAllow, [](PaintVertex *x) { x->admits_low = false; });
    EXPECT_EQ(ChainMarks({kClear, quantised, kInfer, kAllow}), "allow@5>1 none@6 allow@3<1>3 allow@1");
}

TEST_F(PaintTest, LoopsHaveOneColour) {
    // 0 enters, 1 merges, 2 computes, 3 ends the iteration, 4 leaves
    const std::vector<PaintEdge> loop = {{0, 1}, {3, 1}, {1, 2}, {2, 3}, {1, 4}};
    EXPECT_EQ(Marks({kClear, kClear, kAllow, EndsIteration(), kClear}, loop),
              "allow@5>1 allow@3<3>2 allow@1 allow@3<2>1 allow@5<1")
        << "both ends are between the allow ops of one iteration and the next";
    // a merge without a kernel stays, and its end with it
    PaintVertex merge = With(kClear, [](PaintVertex *x) { x->has_low_kernel = false; });
    EXPECT_EQ(Marks({kClear, merge, kAllow, EndsIteration(), kClear}, loop), "none none allow@1 none@7>1 none");
    // two that merge; if one stays, both do
    EXPECT_EQ(Marks({kAllow, EndsIteration(), kClear, merge}, {{0, 1}, {1, 2}, {1, 3}}),
              "allow@1 none@7>3 none@7>3 none");
    // an end that was not painted becomes as what merges it
    PaintVertex end = With(EndsIteration(), [](PaintVertex *x) { x->has_low_kernel = false; });
    EXPECT_EQ(Marks({kUnlisted, end, kClear, kAllow}, {{0, 1}, {1, 2}, {2, 3}}), "none allow@7>2 allow@5>3 allow@1");
    // pass 6 comes before
    merge = With(kAllow, [](PaintVertex *x) { x->admits_low = false; });
    EXPECT_EQ(Marks({EndsIteration(), merge, kAllow}, {{0, 1}}), "none@7>1 none@6 allow@1");
    // and an end that is not read
    EXPECT_EQ(Marks({kAllow, end}, {}), "allow@1 allow@7");
}

TEST_F(PaintTest, CastsAreAllowWhereAllReadersAre) {
    PaintVertex cast = With(kUnlisted, [](PaintVertex *x) { x->casts_to_f32 = true; });
    EXPECT_EQ(Marks({cast, kAllow, kAllow}, {{0, 1}, {0, 2}}), "allow@8>1 allow@1 allow@1");
    EXPECT_EQ(Marks({cast, kAllow, kUnlisted}, {{0, 1}, {0, 2}}), "none allow@1 none");
    EXPECT_EQ(Marks({cast, kAllow}, {}), "none allow@1") << "it has no reader";
    EXPECT_EQ(Marks({kUnlisted, kAllow}, {{0, 1}}), "none allow@1") << "no cast";
}

// ---- the way that paint came ---------------------------------------------------------------------------------------

TEST_F(PaintTest, PathsLeadToWherePaintCameFrom) {
    // 0 deny - 1 infer - 2 clear - 3 infer;  4 allow - 5 clear - 6 infer - 7 clear - 8 allow;  8 - 9 infer
    const PaintMark *marks = Paint({kDeny, kInfer, kClear, kInfer, kAllow, kClear, kInfer, kClear, kAllow, kInfer},
                                   {{0, 1}, {1, 2}, {2, 3}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}});
    auto path = [marks](int v, bool back) {
        std::vector<int> vertices;
        for (v = back ? marks[v].before : marks[v].after; v != PAINT_NOWHERE;
             v = back ? marks[v].before : marks[v].after)
            vertices.push_back(v);
        return vertices;
    };
    EXPECT_EQ(path(3, true), (std::vector<int>{2, 1, 0})) << "deny, because of 0";
    EXPECT_EQ(path(6, true), (std::vector<int>{5, 4})) << "between 4";
    EXPECT_EQ(path(6, false), (std::vector<int>{7, 8})) << "and 8";
    EXPECT_EQ(path(9, true), (std::vector<int>{8}));
}

// Whether each path ends, after vertices of its own colour only, where that colour began.
void ExpectPathsEnd(const std::vector<PaintVertex> &vertices, const PaintMark *marks) {
    for (size_t i = 0; i < vertices.size(); i++) {
        if (marks[i].pass != PAINT_BY_DENY && marks[i].pass != PAINT_BETWEEN) continue;
        const PaintList wanted = marks[i].pass == PAINT_BY_DENY ? PAINT_LIST_DENY : PAINT_LIST_ALLOW;
        size_t at = i, steps = 0;
        while (marks[at].before != PAINT_NOWHERE && steps++ <= vertices.size()) {
            at = static_cast<size_t>(marks[at].before);
            ASSERT_EQ(marks[at].colour, marks[i].colour) << i << " over " << at;
        }
        ASSERT_EQ(vertices[at].list, wanted) << i << " ends at " << at;
    }
}

// ---- large graphs --------------------------------------------------------------------------------------------------

constexpr int kMany = 100000;

double SecondsOf(const std::function<void()> &work) {
    const double begin = amp_seconds();
    work();
    return amp_seconds() - begin;
}

TEST_F(PaintTest, LongChainsNeedNoStackAndLittleTime) {
    std::vector<PaintVertex> between(kMany, kInfer), denied(kMany, kClear), beside(kMany, kClear);
    between.front() = between.back() = kAllow;
    denied.front() = denied[kMany - 2] = kDeny;
    denied.back() = beside.back() = kAllow;
    const auto chain = Chain(kMany);
    const PaintMark *marks = nullptr;
    EXPECT_LT(SecondsOf([&] { marks = Paint(between, chain); }), 1.0);
    for (int i = 1; i + 1 < kMany; i++) {
        ASSERT_EQ(marks[i].pass, PAINT_BETWEEN) << i;
        ASSERT_EQ(marks[i].before, i - 1);
        ASSERT_EQ(marks[i].after, i + 1);
    }
    EXPECT_LT(SecondsOf([&] { marks = Paint(denied, chain); }), 1.0);
    for (int i = 0; i + 1 < kMany; i++) ASSERT_EQ(marks[i].colour, PAINT_DENY) << i;
    EXPECT_LT(SecondsOf([&] { marks = Paint(beside, chain); }), 1.0);
    for (int i = 0; i + 1 < kMany; i++) ASSERT_EQ(marks[i].pass, PAINT_BESIDE) << i;
}

TEST_F(PaintTest, LargeRandomGraphs) {
    std::mt19937 random(1);
    auto below = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const PaintVertex kinds[] = {kAllow, kInfer, kInfer, kInfer, kDeny, kClear, kClear, kClear, kUnlisted};
    std::vector<PaintVertex> vertices;
    std::vector<PaintEdge> edges;
    for (int i = 0; i < kMany; i++) {
        vertices.push_back(kinds[below(9)]);
        // near ones, and ones that thousands of others read
        for (int k = below(3); i && k >= 0; k--) edges.push_back({below(20) ? below(i) : below(1 + i / 1000), i});
    }
    const PaintMark *marks = nullptr;
    EXPECT_LT(SecondsOf([&] { marks = Paint(vertices, edges); }), 1.0);
    int by_pass[PAINT_CAST + 1] = {};
    for (int i = 0; i < kMany; i++) by_pass[marks[i].pass]++;
    for (int pass : {PAINT_BY_LIST, PAINT_BY_DENY, PAINT_BETWEEN, PAINT_AFTER, PAINT_BESIDE})
        EXPECT_GT(by_pass[pass], 9);
    ExpectPathsEnd(vertices, marks);
}

// A vertex with 100,000 readers; it reads each of them as well.
TEST_F(PaintTest, HubsAreWalkedOnce) {
    for (const PaintVertex &hub : {kInfer, kClear, kAllow}) {
        std::vector<PaintVertex> vertices(kMany, kClear);
        vertices[0] = hub;
        vertices[1] = kAllow;
        vertices[2] = kDeny;
        std::vector<PaintEdge> edges;
        for (int i = 1; i < kMany; i++) {
            edges.push_back({0, i});
            edges.push_back({i, 0});
        }
        EXPECT_LT(SecondsOf([&] { Paint(vertices, edges); }), 1.0);
    }
}

} // namespace
