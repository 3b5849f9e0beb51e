// paint_check.h: painting (precision/paint.h) of TensorFlow's graphs, compared with what TensorFlow decided.
#ifndef AMP_TESTS_PARITY_PAINT_CHECK_H
#define AMP_TESTS_PARITY_PAINT_CHECK_H

#include <ostream>
#include <string>
#include <vector>

#include "tests/parity/paint_rows.h"

namespace paint_vectors {

// A graph of rows as painting takes it.
struct Vertices {
    std::vector<PaintVertex> vertices;
    std::vector<PaintEdge> edges;
    std::vector<std::map<std::string, int>> of_node; // attribute or fixed type -> vertex
};
Vertices VerticesOf(const Graph &graph);

// The marks of |vertices|; throws std::bad_alloc.
std::vector<PaintMark> Paint(const Vertices &vertices);

// Where the rows say otherwise than our painting, a line each; empty: nowhere.
std::vector<std::string> Differences(const Graph &graph);

// Checks files, and writes each difference, and a last line of numbers, to |out|.
//   0  all agree
//   1  there are differences
//   2  a file that cannot be read, or is not what it should be: a line in |err| instead of the numbers
int CheckFiles(const std::vector<std::string> &paths, std::ostream &out, std::ostream &err);

} // namespace paint_vectors

#endif
