// paint_rows.h: decisions of TensorFlow's automatic mixed precision, as rows of a file: one row of JSON a line, one for
// each node of a graph, and one that ends the graph and holds its casts.  tests/parity/oracle/README.md describes them.
#ifndef AMP_TESTS_PARITY_PAINT_ROWS_H
#define AMP_TESTS_PARITY_PAINT_ROWS_H

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "precision/paint.h"

namespace paint_vectors {

// what() names the file, the line, what is wrong there, and what to do.
class BadFile : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct Input {
    std::string source; // as written: "NODE:PORT"
    int node = 0;       // in Graph::nodes
    int port = 0;
};

struct Node {
    int line = 0;
    std::string name, op;
    std::vector<Input> inputs;
    std::vector<std::string> in_attr, out_attr; // of each port; "=int32": no attribute, the port's type is fixed
    // Dtype of each type attribute and fixed type, in the order of their first mention: the order of the vertices.
    std::vector<std::pair<std::string, std::string>> types;
    PaintList list = PAINT_LIST_NONE;
    bool may_change = true;
    std::set<std::string> admits_low, has_low_kernel; // attributes
    // the answer
    std::set<std::string> changed;
    std::map<std::string, std::string> paint; // attribute, without "=" -> "ALLOW@3", "DENY@2", "UNALLOW@6"
};

struct Cast {
    std::string source; // "NODE:PORT"
    bool to_f32 = false;
    std::vector<std::string> readers; // "NODE:INPUT", sorted
};

struct Graph {
    std::string name;
    std::vector<Node> nodes;
    std::vector<Cast> casts; // the answer
};

// Every graph of a file, in FP16 and in BF16 if its last row names both; each reference in them is valid, and loops and
// casts have the ports that TensorFlow gives them.  Throws BadFile.
std::vector<Graph> ReadGraphs(const std::string &path);

} // namespace paint_vectors

#endif
