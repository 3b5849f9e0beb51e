// json_writer_test.cc: exact text, and that the strict reader accepts all of it.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/json.h"
#include "tests/base/failing_allocator.h"

static void WriteSample(amp_json_writer *w) {
    amp_json_begin_object(w, nullptr);
    amp_json_begin_object(w, "fc1.weight");
    amp_json_put_string(w, "dtype", "F32");
    amp_json_begin_array(w, "shape");
    amp_json_put_int(w, nullptr, 2);
    amp_json_put_int(w, nullptr, -3);
    amp_json_end_array(w);
    amp_json_end_object(w);
    amp_json_begin_array(w, "empty");
    amp_json_end_array(w);
    amp_json_put_string(w, "[", "{");
    amp_json_put_bool(w, "on", true);
    amp_json_put_bool(w, "off", false);
    amp_json_put_null(w, "nothing");
    amp_json_put_string(w, "no text", nullptr);
    amp_json_put_double(w, "lr", 1e-8);
    amp_json_put_double(w, "inf", INFINITY);
    amp_json_put_int(w, "min", INT64_MIN);
    amp_json_end_object(w);
}

// What turns the direction of text, and C1, are written by number; a reader gets them back.
TEST(JsonWriter, NothingUnseen) {
    amp_json_writer w;
    amp_json_writer_init(&w, nullptr);
    amp_json_put_string(&w, nullptr, "a\xe2\x80\xae\xe2\x81\xa6\xc2\x9b\x7f\x1b\n\xc3\xa9");
    ASSERT_EQ(amp_json_writer_status(&w, nullptr), AMP_OK);
    EXPECT_STREQ(w.data, "\"a\\u202e\\u2066\\u009b\\u007f\\u001b\\n\xc3\xa9\"");
    amp_json_writer_free(&w);
}

TEST(JsonWriter, ExactText) {
    amp_json_writer w;
    amp_json_writer_init(&w, nullptr);
    WriteSample(&w);
    ASSERT_EQ(amp_json_writer_status(&w, nullptr), AMP_OK);
    EXPECT_STREQ(
        w.data,
        "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[2,-3]},\"empty\":[],\"[\":\"{\",\"on\":true,\"off\":false,"
        "\"nothing\":null,\"no text\":null,\"lr\":1.0e-08,\"inf\":null,\"min\":-9223372036854775808}");
    EXPECT_EQ(strlen(w.data), w.size);
    amp_json_writer_free(&w);
}

TEST(JsonWriter, StringsReadBack) {
    const struct {
        const char *in, *out;
    } table[] = {
        {"plain", "plain"},
        {"\"\\/\b\f\n\r\t\x01\x1F\x7F", "\"\\/\b\f\n\r\t\x01\x1F\x7F"},
        {"\xC3\xA9\xF0\x9F\x94\xA5", "\xC3\xA9\xF0\x9F\x94\xA5"},
        {"a\xFF\xC3", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"", ""},
    };
    for (const auto &row : table) {
        amp_json_writer w;
        amp_json_writer_init(&w, nullptr);
        amp_json_put_string(&w, nullptr, row.in);
        amp_json_document *document = nullptr;
        amp_error err = {};
        ASSERT_EQ(amp_json_parse(w.data, w.size, nullptr, nullptr, &document, &err), AMP_OK) << w.data << err.message;
        EXPECT_STREQ(amp_json_root(document)->string.data, row.out);
        amp_json_free(document);
        amp_json_writer_free(&w);
    }
}

TEST(JsonWriter, OutOfMemoryIsToldAtTheEnd) {
    FailingAllocator failing(1);
    amp_allocator a = failing.get();
    amp_json_writer w;
    amp_json_writer_init(&w, &a);
    amp_json_begin_array(&w, nullptr);
    for (int i = 0; i < 1000; i++) WriteSample(&w);
    amp_error err = {};
    EXPECT_EQ(amp_json_writer_status(&w, &err), AMP_OUT_OF_MEMORY);
    EXPECT_STREQ(err.message, "out of memory while writing JSON");
    amp_json_writer_free(&w);
}
