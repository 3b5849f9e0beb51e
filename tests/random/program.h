// program.h: random models: statements over values whose shapes are known, so that every program is valid.
#ifndef AMP_TESTS_RANDOM_PROGRAM_H
#define AMP_TESTS_RANDOM_PROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace random_programs {

// A dimension is a number above 0, or less than 0 where it is mul * N^n * T^t / div.
constexpr int Dimension(int mul, int div, int n, int t) { return -(((mul * 64 + div) * 4 + n) * 4 + t); }
constexpr int kBatch = Dimension(1, 1, 1, 0), kLength = Dimension(1, 1, 0, 1), kTokens = Dimension(1, 1, 1, 1);

using Dims = std::vector<int>;

std::string Word(int dim); // 8, 2 * T
std::string ShapeText(const Dims &d);
int Number(int dim, int n, int t); // what it is in a call
int Times(int a, int b);
int Over(int dim, int by); // dim / by, which is whole

struct Random {
    uint64_t state;
    uint32_t Next() { // splitmix64: Steele, Lea and Flood 2014
        uint64_t z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return static_cast<uint32_t>((z ^ (z >> 31)) >> 32);
    }
    int Below(int n) { return static_cast<int>(Next() % static_cast<uint32_t>(n)); }
    bool Chance(int percent) { return Below(100) < percent; }
    template <class T> const T &Pick(const std::vector<T> &of) { return of[Below(static_cast<int>(of.size()))]; }
    float Uniform() { return static_cast<float>(Next() >> 8) / 8388608.0f - 1.0f; }
};

// v<index> = text, where @0, @1, ... in the text stand for the operands.  A statement without text is an input of the
// model.
struct Statement {
    std::string text;
    std::vector<int> operands; // indexes of statements before
    Dims dims;
};

struct Program {
    std::vector<Statement> statements;
    std::string precision = "fp32"; // fp32, bf16, fp16, or a policy in quotes: "torch-bf16", "torch-fp16"
    bool pad = false;               // rows that tensor cores multiply are padded: on CUDA
    int classes = 3;
    bool cross_entropy = true; // of the last value, [N, classes]; else the mean of its squares
    int n = 3;                 // samples that it is run with
    int unit = 1, most = 0;    // `size T = most, unit = unit`; 0: it has no T

    // What no one reads is left out.  |checkpoints|: a seed, by which runs of statements are put into `checkpoint { }`,
    // some of them nested; 0: none.
    std::string Text(uint64_t checkpoints = 0) const;
    // Whether the low type is the type of |word|, fp16 or bf16.
    bool Half(const std::string &word) const { return precision.find(word) != std::string::npos; }
};

Program Generate(uint64_t seed);

// With a T, wherever it may be.  The last value is [N, classes], [N, T, classes] or [N * T, classes].
Program GenerateWithLength(uint64_t seed);

// Smaller programs that are as wrong as this one: one statement becomes an input, or rows are not padded.
std::vector<Program> Smaller(const Program &p);

} // namespace random_programs

#endif
