// json_test.cc: what the strict reader accepts, what it refuses and why, and that neither time nor memory explode.
#include "base/json.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>

#include "tests/base/failing_allocator.h"

static amp_status Parse(const std::string &text, amp_json_document **out, amp_error *err,
                        const amp_json_limits *limits = nullptr, const amp_allocator *a = nullptr) {
    return amp_json_parse(text.data(), text.size(), limits, a, out, err);
}

// "ok" or the message.
static std::string Verdict(const std::string &text, const amp_json_limits *limits = nullptr) {
    amp_json_document *document = nullptr;
    amp_error err = {};
    amp_status status = Parse(text, &document, &err, limits);
    EXPECT_EQ(status == AMP_OK, document != nullptr);
    amp_json_free(document);
    return status ? err.message : "ok";
}

TEST(Json, Accepts) {
    for (const char *good : {"null",
                             "true",
                             "false",
                             "0",
                             "-0",
                             "-12.5e-3",
                             "1E5",
                             "1e+5",
                             "\"\"",
                             "[]",
                             "{}",
                             " [ 1 , 2 ] \n\t\r",
                             "[[],{}]",
                             "{\"a\":1,\"b\":{\"a\":2}}",
                             "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
                             "\"\\ud83d\\udd25\"",
                             "\"\xF0\x9F\x94\xA5\"",
                             "9223372036854775807",
                             "-9223372036854775808",
                             "1e308",
                             "\"\x7F\""})
        EXPECT_EQ(Verdict(good), "ok") << good;
}

TEST(Json, Rejects) {
    const struct {
        std::string text, message;
    } table[] = {
        {"", "byte 0: the text ends where a value should be"},
        {"  ", "byte 2: the text ends where a value should be"},
        {"nul", "byte 0: expected a value"},
        {"True", "byte 0: expected a value"},
        {"'a'", "byte 0: expected a value"},
        {"\xEF\xBB\xBF{}", "byte 0: expected a value"},
        {"1 2", "byte 2: something follows the value"},
        {"{} x", "byte 3: something follows the value"},
        {std::string("{}\0", 3), "byte 2: something follows the value"},
        {"01", "byte 1: something follows the value"},
        {"-", "byte 1: a digit is missing here"},
        {"1.", "byte 2: a digit is missing here"},
        {".5", "byte 0: expected a value"},
        {"+1", "byte 0: expected a value"},
        {"1e", "byte 2: a digit is missing here"},
        {"1e+", "byte 3: a digit is missing here"},
        {"NaN", "byte 0: expected a value"},
        {"Infinity", "byte 0: expected a value"},
        {"1e999", "byte 0: this number is too large for a double"},
        {"9223372036854775808", "byte 0: this integer does not fit into 64 bits"},
        {"[-9223372036854775809]", "byte 1: this integer does not fit into 64 bits"},
        {"99999999999999999999", "byte 0: this integer does not fit into 64 bits"},
        {std::string(2000, '1'), "byte 0: this number has too many digits"},
        {"[1,]", "byte 3: expected a value"},
        {"[1", "byte 2: expected ',' or ']'"},
        {"[", "byte 1: the text ends where a value should be"},
        {"[1 2]", "byte 3: expected ',' or ']'"},
        {"{\"a\" 1}", "byte 5: expected ':' after the key"},
        {"{\"a\":1,}", "byte 7: expected a key in double quotes"},
        {"{a:1}", "byte 1: expected a key in double quotes"},
        {"{1:1}", "byte 1: expected a key in double quotes"},
        {"{\"a\":1", "byte 6: expected ',' or '}'"},
        {"{\"a\":}", "byte 5: expected a value"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "byte 17: the key \"a\" is there twice"},
        {"{\"a\":1,\"\\u0061\":3}", "byte 16: the key \"a\" is there twice"},
        {"\"", "byte 1: the text ends inside a string"},
        {"\"a\\\"", "byte 4: the text ends inside a string"},
        {"\"\\", "byte 2: the text ends inside a string"},
        {"\"a\nb\"", "byte 2: a control character in a string; write it as \\uXXXX"},
        {std::string("\"a\0b\"", 5), "byte 2: a control character in a string; write it as \\uXXXX"},
        {"\"\\x41\"", "byte 1: an unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
        {"\"\\\xC3\xA9\"", "byte 1: an unknown escape; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
        {"\"\\u12\"", "byte 1: \\u needs four hexadecimal digits"},
        {"\"\\u12g4\"", "byte 1: \\u needs four hexadecimal digits"},
        {"\"\\u0000\"", "byte 1: a string may not hold U+0000"},
        {"\"\\ud83d\"", "byte 1: a surrogate without its other half"},
        {"\"\\udd25\"", "byte 1: a surrogate without its other half"},
        {"\"\\ud83d\\ud83d\"", "byte 1: a surrogate without its other half"},
        {"\"a\xFF\"", "byte 2: invalid UTF-8"},
        {"\"\xC0\x80\"", "byte 1: invalid UTF-8"},
        {"\"\xED\xA0\x80\"", "byte 1: invalid UTF-8"},
        {"\"\xE2\x82", "byte 1: invalid UTF-8"},
        {"// c\n1", "byte 0: expected a value"},
    };
    for (const auto &row : table) EXPECT_EQ(Verdict(row.text), row.message) << row.text;
}

TEST(Json, Values) {
    amp_json_document *document = nullptr;
    amp_error err = {};
    ASSERT_EQ(
        Parse(
            "{\"z\":[1,2.5,-3],\"a\":\"x\\n\\u00e9\\ud83d\\udd25\",\"t\":true,\"n\":null,\"big\":-9223372036854775808}",
            &document, &err),
        AMP_OK)
        << err.message;
    const amp_json *root = amp_json_root(document);
    ASSERT_EQ(root->kind, AMP_JSON_OBJECT);
    ASSERT_EQ(root->object.count, 5u);
    EXPECT_STREQ(root->object.members[0].key.data, "z"); /* the order of the text stays */
    const amp_json *z = amp_json_get(root, "z");
    ASSERT_NE(z, nullptr);
    EXPECT_EQ(z->offset, 5u);
    ASSERT_EQ(z->array.count, 3u);
    EXPECT_TRUE(z->array.items[0].number.is_integer);
    EXPECT_EQ(z->array.items[2].number.integer, -3);
    EXPECT_FALSE(z->array.items[1].number.is_integer);
    EXPECT_EQ(z->array.items[1].number.value, 2.5);
    EXPECT_STREQ(amp_json_get(root, "a")->string.data, "x\n\xC3\xA9\xF0\x9F\x94\xA5");
    EXPECT_EQ(amp_json_get(root, "a")->string.len, 8u);
    EXPECT_TRUE(amp_json_get(root, "t")->boolean);
    EXPECT_EQ(amp_json_get(root, "n")->kind, AMP_JSON_NULL);
    EXPECT_EQ(amp_json_get(root, "big")->number.integer, INT64_MIN);
    EXPECT_EQ(amp_json_get(root, "none"), nullptr);
    EXPECT_EQ(amp_json_get(root, ""), nullptr);
    EXPECT_EQ(amp_json_get(z, "a"), nullptr);
    EXPECT_STREQ(amp_json_kind_name(root->kind), "object");
    EXPECT_STREQ(amp_json_kind_name(z->kind), "array");
    amp_json_free(document);
    amp_json_free(nullptr);
}

TEST(Json, DepthAndValuesAreLimited) {
    EXPECT_EQ(Verdict(std::string(32, '[') + std::string(32, ']')), "ok");
    EXPECT_EQ(Verdict(std::string(33, '[') + std::string(33, ']')), "byte 32: nested too deeply");
    EXPECT_EQ(Verdict(std::string(1000000, '[')), "byte 32: nested too deeply");
    amp_json_limits limits = {2, 4};
    EXPECT_EQ(Verdict("[[1,2]]", &limits), "ok");
    EXPECT_EQ(Verdict("[[[]]]", &limits), "byte 2: nested too deeply");
    EXPECT_EQ(Verdict("[1,2,3,4]", &limits), "byte 7: too many values");
    EXPECT_EQ(Verdict("[[],[],[]]", &limits), "ok"); /* depth counts nesting, not containers */
}

// A quadratic duplicate check would take minutes here.
TEST(Json, ManyKeysAreNotQuadratic) {
    std::string text = "{";
    const int n = 100000;
    for (int i = 0; i < n; i++)
        text += (i ? ",\"" : "\"") + std::string("layer.") + std::to_string(i) + "\":" + std::to_string(i);
    text += "}";
    const clock_t begin = clock(); // processor time: the machine may be busy
    amp_json_document *document = nullptr;
    amp_error err = {};
    ASSERT_EQ(Parse(text, &document, &err), AMP_OK) << err.message;
    for (int i = 0; i < n; i++) {
        const amp_json *value = amp_json_get(amp_json_root(document), ("layer." + std::to_string(i)).c_str());
        ASSERT_NE(value, nullptr);
        ASSERT_EQ(value->number.integer, i);
    }
    amp_json_free(document);
    EXPECT_LT(static_cast<double>(clock() - begin) / CLOCKS_PER_SEC, 20);
    text.back() = ',';
    EXPECT_EQ(Verdict(text + "\"layer.77\":1}").find("the key \"layer.77\" is there twice") != std::string::npos, true);
}

TEST(Json, MemoryStaysInProportion) {
    std::string text = "[";
    for (int i = 0; i < 100000; i++) text += "[],";
    text += "0]";
    FailingAllocator counting;
    amp_allocator a = counting.get();
    amp_json_document *document = nullptr;
    amp_error err = {};
    ASSERT_EQ(Parse(text, &document, &err, nullptr, &a), AMP_OK) << err.message;
    EXPECT_LT(counting.bytes_ever(), text.size() * 200);
    amp_json_free(document);
}

TEST(Json, EveryAllocationMayFail) {
    std::string text = "{\"a\":[1,2,{\"b\":\"c\"}],\"pad\":\"" + std::string(100000, 'x') + "\"}";
    for (int fail_at = 0; fail_at < 100; fail_at++) {
        FailingAllocator failing(fail_at);
        amp_allocator a = failing.get();
        amp_json_document *document = nullptr;
        amp_error err = {};
        amp_status status = Parse(text, &document, &err, nullptr, &a);
        amp_json_free(document);
        if (status == AMP_OK) return;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY);
        ASSERT_EQ(document, nullptr);
    }
    FAIL() << "never enough memory";
}

// Cut and changed texts must end in a verdict; the sanitizers look on.
TEST(Json, DamagedTextsEndInAVerdict) {
    const std::string text = "{\"w\\u00e9\\ud83d\\udd25\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                             "\"__metadata__\":{\"k\":\"v\\n\"},\"x\":[null,true,-1.5e-3]}";
    for (size_t n = 0; n < text.size(); n++) EXPECT_NE(Verdict(text.substr(0, n)), "ok") << n;
    std::mt19937 random(4);
    int accepted = 0;
    for (int i = 0; i < 50000; i++) {
        std::string damaged = text;
        for (unsigned k = random() % 3 + 1; k > 0; k--)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        accepted += Verdict(damaged) == "ok";
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 50000);
}
