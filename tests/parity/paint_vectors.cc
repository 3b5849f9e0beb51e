// paint_vectors.cc: paint_vectors FILE.jsonl...
//
// Paints each graph of the files and compares with the decisions that they hold: prints where they differ, and numbers.
// Exit status: 0 all agree, 1 they differ, 2 wrong arguments or a bad file.
#include <iostream>
#include <string>
#include <vector>

#include "tests/parity/paint_check.h"

int main(int argc, char **argv) {
    const std::vector<std::string> paths(argv + 1, argv + argc);
    bool is_wrong = paths.empty();
    for (const std::string &path : paths) is_wrong |= path.empty() || path[0] == '-';
    if (is_wrong) {
        std::cerr << "usage: paint_vectors FILE.jsonl...\n"
                     "Each file holds graphs with TensorFlow's decisions; tests/parity/oracle/README.md says how.\n";
        return 2;
    }
    return paint_vectors::CheckFiles(paths, std::cout, std::cerr);
}
