// data_fixture.h: a data set that a test reads from files which it writes.
#ifndef AMP_TESTS_TOOLS_DATA_FIXTURE_H
#define AMP_TESTS_TOOLS_DATA_FIXTURE_H

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/tools/scratch.h"
#include "tools/amprun/data/data.h"

template <typename T> inline std::string BytesOf(std::initializer_list<T> values) {
    std::string s;
    for (T v : values) s.append(reinterpret_cast<const char *>(&v), sizeof v);
    return s;
}

inline amp_tensor_info Input(const char *name, amp_dtype dtype, std::initializer_list<int64_t> per_sample) {
    amp_tensor_info info = {};
    info.name = name;
    info.dtype = dtype;
    info.dims[info.rank++] = 1;
    for (int64_t d : per_sample) info.dims[info.rank++] = d;
    return info;
}

struct Array {
    std::string name, type;
    std::vector<int64_t> shape;
    std::string bytes;
};

// https://github.com/huggingface/safetensors, "Format".
inline std::string Safetensors(const std::vector<Array> &arrays) {
    std::string header = "{", data;
    for (const Array &a : arrays) {
        header += (header.size() > 1 ? "," : "") + ("\"" + a.name + "\":{\"dtype\":\"" + a.type + "\",\"shape\":[");
        for (size_t i = 0; i < a.shape.size(); i++) header += (i ? "," : "") + std::to_string(a.shape[i]);
        header += "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                  std::to_string(data.size() + a.bytes.size()) + "]}";
        data += a.bytes;
    }
    header += "}";
    header.append((8 - header.size() % 8) % 8, ' ');
    return BytesOf<uint64_t>({header.size()}) + header + data;
}

class DataFixture : public ScratchTest {
  protected:
    void TearDown() override {
        data_close(&data);
        ScratchTest::TearDown();
    }

    template <typename T> std::vector<T> Values(int column) const {
        std::vector<T> v(static_cast<size_t>(data.count * data.column[column].elements));
        memcpy(v.data(), data.column[column].data, v.size() * sizeof(T));
        return v;
    }
    // Reads with |read|, which has to fail, and checks that the message contains |wanted| and is one line of ours.
    template <typename F> void ExpectFailure(F read, const std::string &wanted) {
        testing::internal::CaptureStderr();
        EXPECT_EQ(read(), 1);
        std::string message = testing::internal::GetCapturedStderr();
        EXPECT_EQ(message.rfind("amprun: ", 0), 0u) << message;
        EXPECT_EQ(message.find('\n'), message.size() - 1) << message;
        EXPECT_NE(message.find(wanted), std::string::npos) << message;
        data_close(&data);
    }

    Dataset data = {};
    DataInputs inputs = {};
};

#endif
