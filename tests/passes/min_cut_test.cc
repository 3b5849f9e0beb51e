// min_cut_test.cc: the least cut against every other choice, what flipping one node would cost, and large graphs.
#include "precision/min_cut.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <vector>

#include "tests/base/sanitizer.h"

namespace {

struct Casting {
    int node;
    std::vector<int> readers;
    int64_t down, up;
};

// A graph of prices, as a person would add them up.
struct Prices {
    std::vector<int64_t> low, f32;
    std::vector<int> fixed; // -1: free
    std::vector<Casting> casts;
    std::vector<std::pair<int, int>> implications;

    int64_t Total(unsigned choice) const {
        int64_t total = 0;
        const auto is_f32 = [&](int node) { return choice >> node & 1; };
        for (size_t i = 0; i < low.size(); i++) {
            if (fixed[i] >= 0 && static_cast<int>(is_f32(static_cast<int>(i))) != fixed[i]) return -1;
            total += is_f32(static_cast<int>(i)) ? f32[i] : low[i];
        }
        for (const Casting &c : casts)
            for (int reader : c.readers)
                if (is_f32(reader) != is_f32(c.node)) {
                    total += is_f32(c.node) ? c.down : c.up;
                    break;
                }
        for (const auto &i : implications)
            if (is_f32(i.first) && !is_f32(i.second)) return -1;
        return total;
    }
};

class MinCutTest : public testing::Test {
  protected:
    MinCutTest() { arena_init(&arena_, nullptr); }
    ~MinCutTest() override { arena_free(&arena_); }

    MinCut *Build(const Prices &p) {
        MinCut *c = min_cut_new(&arena_, static_cast<int>(p.low.size()));
        for (int i = 0; i < static_cast<int>(p.low.size()); i++) {
            min_cut_node(c, i, p.low[i], p.f32[i]);
            if (p.fixed[i] >= 0) min_cut_fix(c, i, p.fixed[i]);
        }
        for (const Casting &cast : p.casts)
            min_cut_cast(c, cast.node, cast.readers.data(), static_cast<int>(cast.readers.size()), cast.down, cast.up);
        for (const auto &i : p.implications) min_cut_implies(c, i.first, i.second);
        return c;
    }

    static unsigned Solve(MinCut *c, int nodes) {
        std::vector<char> is_f32(nodes);
        min_cut_solve(c, reinterpret_cast<bool *>(is_f32.data()));
        unsigned choice = 0;
        for (int i = 0; i < nodes; i++) choice |= static_cast<unsigned>(is_f32[i]) << i;
        return choice;
    }

    static Prices Draw(std::mt19937 *random) {
        const auto below = [&](int n) { return static_cast<int>((*random)() % static_cast<unsigned>(n)); };
        const int nodes = 1 + below(10), range = below(2) ? 4 : 1000; // small prices make ties
        Prices p;
        for (int i = 0; i < nodes; i++) {
            p.low.push_back(below(range));
            p.f32.push_back(below(range));
            p.fixed.push_back(below(4) ? -1 : below(2));
        }
        for (int i = 0; i < nodes && nodes > 1; i++) {
            Casting c = {i, {}, below(range), below(range)};
            for (int k = below(4); k > 0; k--) { // the same reader twice, too
                const int reader = below(nodes);
                if (reader != i) c.readers.push_back(reader);
            }
            p.casts.push_back(c);
            const int other = below(nodes);
            if (!below(5) && p.fixed[i] < 0 && other != i) p.implications.emplace_back(other, i);
        }
        return p;
    }

    Arena arena_;
};

TEST_F(MinCutTest, NoChoiceCostsLess) {
    std::mt19937 random(8);
    for (int round = 0; round < 3000; round++) {
        const Prices p = Draw(&random);
        const int nodes = static_cast<int>(p.low.size());
        MinCut *c = Build(p);
        const unsigned found = Solve(c, nodes);
        const int64_t least = p.Total(found);
        ASSERT_GE(least, 0) << "round " << round;
        unsigned fewest = ~0u; // f32 nodes that all of the cheapest choices have
        for (unsigned choice = 0; choice < 1u << nodes; choice++) {
            const int64_t total = p.Total(choice);
            if (total < 0) continue;
            ASSERT_GE(total, least) << "round " << round << ", choice " << choice;
            if (total == least) fewest &= choice;
        }
        ASSERT_EQ(found, fewest) << "round " << round;
        for (int i = 0; i < nodes; i++) {
            Prices free = p; // of the prices alone
            free.fixed[i] = -1;
            free.implications.clear();
            ASSERT_EQ(min_cut_other(c, i), free.Total(found ^ 1u << i) - least) << "round " << round << ", node " << i;
        }
    }
}

// A long chain, whose ends pull it to different sides and whose readers share casts.
TEST_F(MinCutTest, TakesFiftyThousandNodes) {
    const int nodes = 50000;
    std::vector<bool> fixed(nodes);
    std::mt19937 random(9);
    MinCut *c = min_cut_new(&arena_, nodes);
    for (int i = 0; i < nodes; i++) {
        min_cut_node(c, i, random() % 100, random() % 100);
        if ((fixed[i] = !(random() % 20))) min_cut_fix(c, i, random() % 2);
        int readers[3] = {};
        int count = 0;
        for (int k = 1; k <= 3; k++)
            if (i + k * k < nodes) readers[count++] = i + k * k;
        min_cut_cast(c, i, readers, count, random() % 200, random() % 200);
    }
    std::vector<char> is_f32(nodes);
    const std::clock_t start = std::clock(); // of the processor: other programs do not count
    min_cut_solve(c, reinterpret_cast<bool *>(is_f32.data()));
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(took, amp_test_address_sanitizer ? 50.0 : 5.0);
    for (int i = 0; i < nodes; i++)
        ASSERT_TRUE(fixed[i] || min_cut_other(c, i) >= 0) << i; // else the choice were not the least
}

} // namespace
