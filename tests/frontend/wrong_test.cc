/* wrong_test.cc: every .amp file in the .cases of golden/wrong is refused with the diagnostics after its lines, as
 * `ampc` would show them, by whichever pass finds the mistake; in 5 seconds and a gigabyte. */
#include <ctime>
#include <cstdlib>

#include "amp/compile.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace {

const char kFolder[] = "tests/frontend/golden/wrong";

const std::string &Unpacked() {
    static const std::string folder = golden::Unpack(kFolder);
    return folder;
}

const double kMostSeconds = 5.0;
const size_t kMostBytes = size_t{1} << 30;

struct Memory {
    size_t now = 0, most = 0;
};

void *Allocate(void *user, size_t size, size_t align) {
    Memory *memory = static_cast<Memory *>(user);
    memory->now += size;
    if (memory->now > memory->most) memory->most = memory->now;
    return memory->now > kMostBytes ? nullptr : aligned_alloc(align, (size + align - 1) / align * align);
}

void Free(void *user, void *ptr, size_t size, size_t) {
    static_cast<Memory *>(user)->now -= size;
    free(ptr);
}

void AddDiagnostic(void *user, const char *text, int32_t) { *static_cast<std::string *>(user) += text; }

/* Options of `ampc` from the `# test:` lines of a model; |names| holds what |defines| points to. */
struct CommandLine {
    std::vector<std::string> words, names;
    std::vector<amp_define> defines;
};

void SetOptions(CommandLine *line, amp_compile_options *options) {
    const std::vector<std::string> &words = line->words;
    line->names.reserve(words.size()); /* strings must stay where they are */
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
        size_t equals = words[i + 1].find('=');
        if (words[i] == "-D") {
            line->names.push_back(words[i + 1].substr(0, equals));
            line->defines.push_back({line->names.back().c_str(), words[i + 1].c_str() + equals + 1});
        } else if (words[i] == "--max-ops") {
            options->max_ops = std::stoll(words[i + 1]);
        } else if (words[i] == "--precision") {
            options->precision = words[i + 1].c_str();
        } else if (words[i] == "--policy") {
            options->policy = words[i + 1].c_str();
        } else {
            ADD_FAILURE() << "unknown option " << words[i];
        }
    }
    options->defines = line->defines.data();
    options->define_count = line->defines.size();
}

/* The folder is no part of the message. */
std::string WithoutFolder(std::string text) {
    std::string folder = Unpacked() + "/";
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
    return text;
}

class Wrong : public testing::TestWithParam<std::string> {};

TEST_P(Wrong, IsRefused) {
    std::string name = GetParam(), path = Unpacked() + "/" + name + ".amp", text;
    CommandLine line;
    line.words = golden::Options(golden::Read(path));
    Memory memory;
    amp_allocator allocator = {&memory, Allocate, Free};
    amp_compile_options options = {};
    options.struct_size = sizeof options;
    options.name = path.c_str();
    options.emit = AMP_EMIT_IR;
    options.stop_after = "plan";
    options.allocator = &allocator;
    options.diagnostic = AddDiagnostic;
    options.user = &text;
    SetOptions(&line, &options);
    amp_compile_result *result = nullptr;
    amp_error error;
    const clock_t begin = clock(); // processor time: the machine may be busy
    amp_status status = amp_compile(&options, &result, &error);
    const double seconds = static_cast<double>(clock() - begin) / CLOCKS_PER_SEC;
    amp_compile_result_release(result);
    EXPECT_NE(status, AMP_OK);
    EXPECT_NE(status, AMP_INTERNAL);
    EXPECT_NE(status, AMP_OUT_OF_MEMORY);
    if (text.empty()) text = std::string(error.message) + "\n"; /* said by the call itself */
    EXPECT_LT(seconds, kMostSeconds);
    EXPECT_LT(memory.most, kMostBytes);
    EXPECT_EQ(memory.now, 0u);
    golden::CheckUnpacked(kFolder, Unpacked(), name, {".txt", WithoutFolder(text)}, {".txt"});
}

INSTANTIATE_TEST_SUITE_P(Files, Wrong, testing::ValuesIn(golden::Cases(Unpacked(), ".amp")),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(WrongFiles, AreThere) { EXPECT_GE(golden::Cases(Unpacked(), ".amp").size(), 485u); }

/* Each message says where: file:line:column, the line itself and a caret. */
TEST(WrongFiles, MessagesHaveAPlace) {
    int placed = 0, count = 0;
    for (const std::string &name : golden::Cases(Unpacked(), ".amp")) {
        std::string text = golden::Read(Unpacked() + "/" + name + ".txt");
        count++;
        placed += text.find(":", text.find(".amp:")) != std::string::npos && text.find('^') != std::string::npos;
    }
    EXPECT_GE(placed, count - 10);
}

} // namespace
