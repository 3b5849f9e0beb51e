/* compile_model.h: elaborating model text in tests: one call from text to the printed module or the diagnostics. */
#ifndef AMP_TESTS_FRONTEND_COMPILE_MODEL_H
#define AMP_TESTS_FRONTEND_COMPILE_MODEL_H

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/frontend.h"

struct CompiledModel {
    bool good = false;
    std::string text;   /* the module, or the diagnostics */
    std::string broken; /* what the verifier says of a module; "": nothing */
    std::string reread; /* the text of the module that |text| is read back to */
    int errors = 0;
    bool out_of_memory = false;
};

struct CompileSettings {
    std::vector<std::pair<std::string, std::string>> defines;
    std::map<std::string, std::string> files; /* what `include` finds */
    int64_t max_ops = 0;
    const amp_allocator *allocator = nullptr;
};

CompiledModel CompileModel(const std::string &name, const std::string &text, const CompileSettings &settings = {});

#endif
