// print_types.cc: prints the type and shape of each value of models, for tests/checks/full/onnx_types.py.
//
//     print_types < LIST_OF_FILES        FILE;NAME;float32[N, 3]  or  FILE;;what is wrong
#include <csetjmp>
#include <cstdio>
#include <iostream>
#include <string>

#include "onnx/types.h"

static void print_model(const std::string &path) {
    Arena arena;
    arena_init(&arena, nullptr);
    OnnxModel model = {};
    OnnxIndex index;
    OnnxSolution s;
    amp_error err = {};
    if (setjmp(arena.out_of_memory)) {
        printf("%s;;out of memory\n", path.c_str());
    } else if (onnx_read(path.c_str(), &arena, &model, &err) || onnx_index(&model, &arena, &index, &err) ||
               onnx_solve_types(&model, &index, nullptr, &arena, &s, &err)) {
        printf("%s;;%s\n", path.c_str(), err.message);
    } else {
        for (int32_t v = 0; v < index.value_count; v++)
            if (index.values[v].graph == 0)
                printf("%s;%s;%s\n", path.c_str(), index.values[v].name, onnx_value_text(&s, &arena, v));
    }
    onnx_close(&model);
    arena_free(&arena);
}

int main() {
    for (std::string path; std::getline(std::cin, path);) print_model(path);
}
