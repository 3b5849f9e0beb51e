// onnx_bytes.h: models of ONNX put together byte by byte, as no library of theirs would write them, and read.
#ifndef AMP_TESTS_ONNX_BYTES_H
#define AMP_TESTS_ONNX_BYTES_H

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/arena.h"
#include "onnx/onnx.h"

namespace onnx_test {

// A message of protobuf, field by field.
class Bytes {
  public:
    Bytes &Varint(uint64_t value);
    Bytes &Tag(unsigned field, unsigned wire) { return Varint((uint64_t)field << 3 | wire); }
    Bytes &Int(unsigned field, int64_t value) { return Tag(field, 0).Varint((uint64_t)value); }
    Bytes &Float(unsigned field, float value);
    Bytes &Text(unsigned field, const std::string &text);
    Bytes &Put(unsigned field, const Bytes &message) { return Text(field, message.text); }
    Bytes &Raw(const std::string &bytes) {
        text += bytes;
        return *this;
    }
    std::string text;
};

// ---- the messages that tests need most ------------------------------------------------------------------------------

Bytes Prop(const std::string &key, const std::string &value);
Bytes Node(const std::string &op, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
           const std::string &name = "");
Bytes IntAttribute(const std::string &name, int64_t value);
Bytes GraphAttribute(const std::string &name, const Bytes &graph);
// Of f32 or another type, with raw data.
Bytes Tensor(const std::string &name, const std::vector<int64_t> &dims, const std::string &raw, int type = ONNX_FLOAT);
Bytes External(const std::string &name, const std::vector<int64_t> &dims, const std::vector<Bytes> &props);
Bytes Info(const std::string &name, int type, const std::vector<std::string> &dims); // "2", "N", ""
std::string Floats(const std::vector<float> &values);

// A model of a graph; nodes, then what |more| adds to it.
Bytes Model(const Bytes &graph, int64_t opset = 17);
// y = Relu(x): the smallest graph.
Bytes Graph(const std::vector<Bytes> &nodes, const std::vector<std::string> &inputs = {"x"},
            const std::vector<std::string> &outputs = {"y"}, const std::vector<Bytes> &initializers = {});
// A model with something of everything: types of all kinds, subgraphs, functions, unknown fields.  Fields are in the
// order of their numbers, as other writers have them.
Bytes Everything();

// ---- reading --------------------------------------------------------------------------------------------------------

// A model that has been read, or why not.
class Reading {
  public:
    explicit Reading(const std::string &bytes, const std::string &path = "m.onnx"); // of memory
    static Reading File(const std::string &path) { return Reading(path, nullptr); }
    Reading(const Reading &) = delete;
    ~Reading();

    amp_status Index();
    amp_status Write(const std::string &path, OnnxWriteOptions options = {});
    std::string Message() const { return err.message; }

    Arena arena;
    OnnxModel model = {};
    OnnxIndex index = {};
    amp_error err = {};
    amp_status status;

  private:
    Reading(const std::string &path, std::nullptr_t);
    std::string bytes_, path_;
};

// A folder of its own for the files of a test, removed with them.
class Folder {
  public:
    explicit Folder(const std::string &where = testing::TempDir()); // ends with a slash
    ~Folder();
    std::string operator/(const std::string &name) const { return path + "/" + name; }
    std::string path;
};

std::string Get(const std::string &path);
void Put(const std::string &path, const std::string &content);

} // namespace onnx_test

#endif
