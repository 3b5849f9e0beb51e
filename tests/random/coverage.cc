// coverage.cc: see coverage.h.
#include "tests/random/coverage.h"

#include <set>
#include <sstream>

#include "amp/compile.h"
#include "ir/ir.h"
#include "tests/random/program.h"

namespace random_programs {

namespace {

std::string TrainingStep(const std::string &text) {
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = "random.amp";
    o.text = text.c_str();
    o.text_size = text.size();
    o.emit = AMP_EMIT_IR;
    o.stop_after = "autodiff";
    amp_compile_result *result = nullptr;
    if (amp_compile(&o, &result, nullptr)) return ""; // Check says what is wrong
    size_t size;
    auto bytes = static_cast<const char *>(amp_compile_result_data(result, &size));
    std::string ir(bytes, size);
    amp_compile_result_release(result);
    return ir;
}

// "  %name = op(...)", with any number of results
void AddOps(const std::string &ir, std::set<std::string> *ops) {
    std::istringstream lines(ir);
    for (std::string line; std::getline(lines, line);) {
        size_t from = line.find("= "), to = line.find('(');
        if (line.rfind("  %", 0) == 0 && from < to && to != std::string::npos)
            ops->insert(line.substr(from + 2, to - from - 2));
    }
}

} // namespace

std::vector<std::string> OpsWithoutProgram(uint64_t first, int count) {
    std::set<std::string> ops;
    for (int i = 0; i < count; i++) AddOps(TrainingStep(Generate(first + static_cast<uint64_t>(i)).Text()), &ops);
    std::vector<std::string> missing;
    for (int code = 1; code < OP_COUNT; code++) {
        const OpInfo &op = ir_op_info[code];
        if (op.flags & (WRITTEN | BACKWARD) && !ops.count(op.name)) missing.push_back(op.name);
    }
    return missing;
}

} // namespace random_programs
