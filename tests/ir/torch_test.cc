// The interpreter against PyTorch in float64: golden/torch_values.txt, which torch_values.py writes.
#include <algorithm>

#include "tests/ir/interp_test.h"

namespace {

using TorchTest = Interp;

std::vector<std::string> Split(const std::string &line) {
    std::vector<std::string> parts;
    for (size_t at = 0, end; at <= line.size(); at = end + 2) {
        end = std::min(line.find("; ", at), line.size());
        parts.push_back(line.substr(at, end - at));
    }
    return parts;
}

std::vector<Values> Numbers(const std::string &line) {
    std::vector<Values> lists;
    for (const std::string &part : Split(line)) {
        std::stringstream text(part);
        lists.emplace_back();
        for (std::string word; text >> word;) lists.back().push_back(std::stod(word)); /* nan and inf too */
    }
    return lists;
}

TEST_F(TorchTest, EveryCase) {
    std::ifstream file("tests/ir/golden/torch_values.txt");
    std::string stage, op, operands, results, given, wanted;
    int cases = 0;
    while (file >> stage && std::getline(file >> std::ws, op) && std::getline(file, operands) &&
           std::getline(file, results) && std::getline(file, given) && std::getline(file, wanted)) {
        SCOPED_TRACE(op + " of " + operands);
        std::string lines, names, types, ends;
        char name = 'a';
        for (const std::string &type : Split(operands)) lines += std::string("input %") + name++ + " : " + type + "\n";
        int count = 0;
        for (const std::string &type : Split(results)) {
            std::string y = "y" + std::to_string(count);
            names += (count ? ", %" : "%") + y;
            types += (count++ ? ", " : " : ") + type;
            ends += "\nresult " + y + " = %" + y;
        }
        auto got = Run(stage, lines + names + " = " + op + types + ends, Numbers(given));
        std::vector<Values> want = Numbers(wanted);
        ASSERT_EQ(want.size(), static_cast<size_t>(count));
        for (int i = 0; i < count; i++) {
            double largest = 1;
            for (double v : want[i]) largest = std::max(largest, std::fabs(v));
            ExpectNear(got["y" + std::to_string(i)], want[i], 1e-11 * largest); /* the file has 12 digits */
        }
        cases++;
    }
    EXPECT_GT(cases, 100);
}

} // namespace
