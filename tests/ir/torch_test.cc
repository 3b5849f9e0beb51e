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
    while (file >> stage && std::getline(file >> std::ws, op)) {
        std::vector<std::string> ops = {op};
        while (std::getline(file, operands) && operands[0] == '+') ops.push_back(operands.substr(2));
        ASSERT_TRUE(std::getline(file, results) && std::getline(file, given) && std::getline(file, wanted)) << op;
        std::string lines, ends;
        std::vector<std::string> made_by;
        char name = 'a';
        for (const std::string &type : Split(operands)) lines += std::string("input %") + name++ + " : " + type + "\n";
        const std::vector<std::string> types = Split(results);
        for (const std::string &line : ops) {
            lines += line;
            const size_t made = static_cast<size_t>(std::count(line.begin(), line.begin() + line.find('='), '%'));
            for (size_t i = 0; i < made; i++) {
                const std::string y = "y" + std::to_string(made_by.size());
                lines += (i ? ", " : " : ") + types.at(made_by.size());
                ends += "result " + y + " = %" + y + "\n";
                made_by.push_back(line);
            }
            lines += "\n";
            cases++;
        }
        auto got = Run(stage, lines + ends, Numbers(given));
        std::vector<Values> want = Numbers(wanted);
        ASSERT_EQ(want.size(), made_by.size());
        for (size_t i = 0; i < want.size(); i++) {
            SCOPED_TRACE(made_by[i] + " of " + operands);
            double largest = 1;
            for (double v : want[i]) largest = std::max(largest, std::fabs(v));
            ExpectNear(got["y" + std::to_string(i)], want[i], 1e-11 * largest); /* the file has 12 digits */
        }
    }
    EXPECT_GT(cases, 300);
}

} // namespace
