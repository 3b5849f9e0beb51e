// so_writer_test.cc: what kind of file a model.so is, and what happens where none can be made.
#include <dirent.h>
#include <elf.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "base/hash.h"
#include "tests/base/pattern.h"
#include "tests/codegen/model_runner.h"

namespace {

#if defined(__x86_64__)
const char kOwnMachine[] = "x86_64";
#elif defined(__aarch64__)
const char kOwnMachine[] = "aarch64";
#else
const char kOwnMachine[] = "another"; // what the compiler says is taken for it
#endif

const char small_model[] = R"(module "small" stage plan {
}
func infer {
  input %x : f32[N, 40]
  kernel k00 row "softmax" reads b1 writes b2, b3 {
    %1 = reduce_max(%x; dims = (1), keep = true) : f32[N, 1]
    %2 = sub(%x, %1) : f32[N, 40]
    %3 = exp(%2) : f32[N, 40]
    %4 = reduce_sum(%3; dims = (1), keep = true) : f32[N, 1]
    %y = div(%3, %4) : f32[N, 40]
    %h = cast(%y) : f16[N, 40]
  }
  buffer b1 input %x f32 rows live 0 to 0
  buffer b2 output %y f32 rows live 0 to 0
  buffer b3 temp %h f16 pairs_t live 0 to 0
  result y = %y
}
)";

class SoWriterTest : public CodegenTest {
  protected:
    amp_status Make(const CodegenOptions &options, std::string *out, amp_error *err) {
        char *bytes = nullptr;
        size_t size = 0;
        Text c;
        text_init(&c, &arena_);
        amp_status status = codegen_c(Read(small_model), nullptr, nullptr, &c, err);
        if (!status) status = codegen_so(&c, &options, &bytes, &size, err);
        if (status) return status;
        out->assign(bytes, size);
        const amp_allocator a = amp_allocator_or_default(options.allocator);
        amp_free(&a, bytes, size);
        return status;
    }
    std::string Make() {
        std::string out;
        amp_error err = {};
        EXPECT_EQ(Make({}, &out, &err), AMP_OK) << err.message;
        return out;
    }
};

TEST_F(SoWriterTest, ClangMakesOneToo) {
    std::string out;
    amp_error err = {};
    CodegenOptions options = {};
    options.c_compiler = "clang";
    if (system("clang --version >/dev/null 2>&1")) GTEST_SKIP() << "clang is not installed";
    EXPECT_EQ(Make(options, &out, &err), AMP_OK) << err.message;
}

// What a compiler calls of a C library without being asked to, the model brings along.
TEST_F(SoWriterTest, ModelsWithoutOptimisationNeedNoLibrary) {
    for (const char *compiler : {"gcc", "clang"}) {
        if (system((std::string(compiler) + " --version >/dev/null 2>&1").c_str())) continue;
        const std::string script = testing::TempDir() + "/unoptimised";
        std::ofstream(script) << "#!/bin/sh\nexec " << compiler << " \"$@\" -O0\n";
        ASSERT_EQ(chmod(script.c_str(), 0700), 0);
        std::string out;
        amp_error err = {};
        CodegenOptions options = {};
        options.c_compiler = script.c_str();
        EXPECT_EQ(Make(options, &out, &err), AMP_OK) << compiler << ": " << err.message;
    }
}

template <typename T> T At(const std::string &file, uint64_t offset) {
    T t;
    EXPECT_LE(offset + sizeof t, file.size());
    memcpy(&t, file.data() + offset, sizeof t);
    return t;
}

std::vector<std::pair<std::string, Elf64_Shdr>> Sections(const std::string &file) {
    const auto e = At<Elf64_Ehdr>(file, 0);
    const auto names = At<Elf64_Shdr>(file, e.e_shoff + e.e_shstrndx * sizeof(Elf64_Shdr));
    std::vector<std::pair<std::string, Elf64_Shdr>> out;
    for (uint64_t i = 0; i < e.e_shnum; i++) {
        const auto s = At<Elf64_Shdr>(file, e.e_shoff + i * sizeof(Elf64_Shdr));
        out.emplace_back(file.c_str() + names.sh_offset + s.sh_name, s);
    }
    return out;
}

TEST_F(SoWriterTest, ExportsOneSymbolAndNeedsNone) {
    const std::string file = Make();
    std::vector<std::string> defined, undefined;
    uint64_t names = 0, needed = 0;
    for (const auto &[name, s] : Sections(file))
        if (name == ".dynstr") names = s.sh_offset;
    for (const auto &[name, s] : Sections(file)) {
        for (uint64_t at = 0; s.sh_type == SHT_DYNSYM && at < s.sh_size; at += sizeof(Elf64_Sym)) {
            const auto symbol = At<Elf64_Sym>(file, s.sh_offset + at);
            if (symbol.st_name)
                (symbol.st_shndx ? defined : undefined).push_back(file.c_str() + names + symbol.st_name);
        }
        for (uint64_t at = 0; s.sh_type == SHT_DYNAMIC && at < s.sh_size; at += sizeof(Elf64_Dyn))
            needed += At<Elf64_Dyn>(file, s.sh_offset + at).d_tag == DT_NEEDED;
    }
    EXPECT_EQ(defined, std::vector<std::string>{AMP_MODEL_SYMBOL});
    EXPECT_TRUE(undefined.empty()) << undefined[0];
    EXPECT_EQ(needed, 0u);
}

TEST_F(SoWriterTest, CarriesItsDigest) {
    std::string file = Make();
    uint64_t at = 0;
    for (const auto &[name, s] : Sections(file))
        if (name == AMP_MODEL_HASH_SECTION && s.sh_size == 32) at = s.sh_offset;
    ASSERT_NE(at, 0u);
    const std::string stored = file.substr(at, 32);
    file.replace(at, 32, 32, '\0');
    uint8_t digest[32];
    amp_sha256_of(file.data(), file.size(), digest);
    EXPECT_EQ(stored, std::string(reinterpret_cast<char *>(digest), 32));
}

TEST_F(SoWriterTest, GivesTheSameBytesAgainAndHoldsNoPath) {
    const std::string a = Make(), b = Make();
    EXPECT_EQ(a, b);
    for (const char *trace : {"/tmp", "ampc-", "model.c"}) EXPECT_EQ(a.find(trace), std::string::npos) << trace;
}

TEST_F(SoWriterTest, LeavesNothingBehind) {
    char folder[] = "/tmp/so-writer-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const char *before = getenv("TMPDIR");
    const std::string old = before ? before : "";
    setenv("TMPDIR", folder, 1);
    std::string out;
    amp_error err = {};
    EXPECT_EQ(Make({}, &out, &err), AMP_OK);
    CodegenOptions broken = {};
    broken.c_compiler = "false";
    EXPECT_EQ(Make(broken, &out, &err), AMP_UNSUPPORTED);
    old.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", old.c_str(), 1);
    EXPECT_EQ(rmdir(folder), 0) << "the folder is not empty";
}

TEST_F(SoWriterTest, SaysWhatIsWrong) {
    std::string out;
    amp_error err = {};
    CodegenOptions none = {}, failing = {};
    none.c_compiler = "/nowhere/cc";
    EXPECT_EQ(Make(none, &out, &err), AMP_UNSUPPORTED);
    EXPECT_STREQ(err.message, "cannot run the C compiler '/nowhere/cc', which makes model.so: install gcc 12 or newer, "
                              "or name another: No such file or directory");
    failing.c_compiler = "false";
    EXPECT_EQ(Make(failing, &out, &err), AMP_UNSUPPORTED);
    EXPECT_STREQ(err.message, "the C compiler 'false' failed while compiling the model: it printed nothing");
}

// Words are split as a shell splits them, but the path of a program is one word.
TEST_F(SoWriterTest, CompilersMayBeSeveralWords) {
    const std::string folder = testing::TempDir() + "/with space";
    const std::string program = folder + "/my cc", arguments = folder + "/arguments";
    mkdir(folder.c_str(), 0700);
    std::ofstream(program) << "#!/bin/sh\nprintf '%s\\n' \"$1\" >>'" << arguments << "'\nexec cc \"$@\"\n";
    ASSERT_EQ(chmod(program.c_str(), 0700), 0);
    const struct {
        std::string command, first; // argument
    } cases[] = {{"env cc", ""},
                 {program, "-dumpmachine"},
                 {"env '" + program + "' -DONE", "-DONE"},
                 {"  env  \"" + program + "\"\t-D'TWO WORDS'=1 ", "-DTWO WORDS=1"},
                 {"env " + Replaced(program, " ", "\\ ") + " -DTHREE=\"'\"", "-DTHREE='"}};
    for (const auto &c : cases) {
        std::string out, seen;
        amp_error err = {};
        CodegenOptions options = {};
        options.c_compiler = c.command.c_str();
        unlink(arguments.c_str());
        EXPECT_EQ(Make(options, &out, &err), AMP_OK) << c.command << ": " << err.message;
        std::ifstream read(arguments);
        std::getline(read, seen);
        EXPECT_EQ(seen, c.first) << c.command;
    }
    for (const char *wrong : {"cc 'open", "   ", "a b c d e f g h i j k l m n o p q"}) {
        std::string out;
        amp_error err = {};
        CodegenOptions options = {};
        options.c_compiler = wrong;
        EXPECT_EQ(Make(options, &out, &err), AMP_INVALID_ARGUMENT) << wrong;
        EXPECT_NE(strstr(err.message, "a quote is not closed"), nullptr) << err.message;
    }
}

// Flags are for the compiler's own processor.
TEST_F(SoWriterTest, CompilersForOtherProcessorsGetTheirFlags) {
    const std::string script = testing::TempDir() + "/cross", arguments = testing::TempDir() + "/cross.arguments";
    std::ofstream(script) << "#!/bin/sh\ncase $1 in -dumpmachine) echo riscv64-linux-gnu; exit ;; esac\n"
                          << "echo \"$@\" >>" << arguments << "\nexec cc \"$@\"\n";
    ASSERT_EQ(chmod(script.c_str(), 0700), 0);
    unlink(arguments.c_str());
    std::string out;
    amp_error err = {};
    CodegenOptions options = {};
    options.c_compiler = script.c_str();
    EXPECT_EQ(Make(options, &out, &err), AMP_OK) << err.message;
    std::ifstream read(arguments);
    const std::string seen((std::istreambuf_iterator<char>(read)), std::istreambuf_iterator<char>());
    EXPECT_EQ(seen.find("-march="), std::string::npos) << seen;
    EXPECT_EQ(seen.find("v4"), std::string::npos) << seen;
    options.isa = "v3";
    EXPECT_EQ(Make(options, &out, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(err.message),
              "isa v3: an instruction set of x86-64; '" + script + "' makes code for another processor: leave it out");
}

// Kernels of one set alone, and the model says which; a compiler for other processors cannot know.
TEST_F(SoWriterTest, NativeIsTheSetOfThisMachineAlone) {
    const unsigned has = amp_cpu_features();
    const int machine = has & AMP_CPU_X86_64_V4 ? AMP_ISA_V4 : has & AMP_CPU_X86_64_V3 ? AMP_ISA_V3 : AMP_ISA_PORTABLE;
    std::string native;
    amp_error err = {};
    CodegenOptions options = {};
    options.isa = "native";
    ASSERT_EQ(Make(options, &native, &err), AMP_OK) << err.message;
    EXPECT_LE(native.size(), Make().size());
    const std::string path = testing::TempDir() + "/native.so";
    std::ofstream(path, std::ios::binary) << native;
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto query = reinterpret_cast<amp_model_query_fn>(dlsym(library, AMP_MODEL_SYMBOL));
    ASSERT_NE(query, nullptr);
    const amp_model_desc *desc = query();
    const auto *program = static_cast<const amp_model_program *>(desc->programs.data);
    const auto *kernel = static_cast<const amp_model_kernel *>(program->kernels.data);
    for (int isa = 0; isa < AMP_ISA_COUNT; isa++) EXPECT_EQ(kernel->run[isa] != nullptr, isa == machine) << isa;
    dlclose(library);
}

TEST_F(SoWriterTest, NativeIsRefusedOfCrossCompilers) {
    const std::string script = testing::TempDir() + "/cross-native";
    for (const char *machine : {"aarch64-linux-gnu", "x86_64-linux-musl", "riscv64-linux-gnu"}) {
        std::ofstream(script) << "#!/bin/sh\ncase $1 in -dumpmachine) echo " << machine
                              << "; exit ;; esac\nexec cc \"$@\"\n";
        ASSERT_EQ(chmod(script.c_str(), 0700), 0);
        std::string out;
        amp_error err = {};
        CodegenOptions options = {};
        options.c_compiler = script.c_str(), options.isa = "native";
        const bool own = std::string(machine).rfind(kOwnMachine, 0) == 0;
        EXPECT_EQ(Make(options, &out, &err), own ? AMP_OK : AMP_INVALID_ARGUMENT) << machine << ": " << err.message;
        if (own) continue;
        EXPECT_EQ(std::string(err.message).find("isa native: '" + script + "' makes code for "), 0u) << err.message;
        EXPECT_NE(std::string(err.message).find(", and this machine is "), std::string::npos) << err.message;
    }
}

// A program may ignore the end of its children, or take their statuses itself.
class SoWriterSignalTest : public SoWriterTest {
  protected:
    void SetUp() override {
        SoWriterTest::SetUp();
        sigaction(SIGCHLD, nullptr, &before_);
    }
    void TearDown() override {
        sigaction(SIGCHLD, &before_, nullptr);
        SoWriterTest::TearDown();
    }
    void ExpectToWork() {
        std::string out;
        amp_error err = {};
        EXPECT_EQ(Make({}, &out, &err), AMP_OK) << err.message;
        CodegenOptions failing = {};
        failing.c_compiler = "false";
        EXPECT_EQ(Make(failing, &out, &err), AMP_UNSUPPORTED);
        EXPECT_STREQ(err.message, "the C compiler 'false' failed while compiling the model: it printed nothing");
    }

  private:
    struct sigaction before_ = {};
};

TEST_F(SoWriterSignalTest, SigchldMayBeIgnored) {
    signal(SIGCHLD, SIG_IGN);
    ExpectToWork();
}

TEST_F(SoWriterSignalTest, AHandlerMayReapAllChildren) {
    struct sigaction reap = {};
    reap.sa_handler = [](int) {
        const int saved = errno;
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        errno = saved;
    };
    sigaction(SIGCHLD, &reap, nullptr);
    ExpectToWork();
}

// Asked before anything runs, and while compilers run, which end with what they started.
TEST_F(SoWriterTest, CanBeCancelled) {
    for (int after : {0, 1, 5}) {
        int asked = 0;
        struct Asked {
            int *count, after;
        } user = {&asked, after};
        CodegenOptions options = {};
        options.c_compiler = "sh -c 'sleep 300 & wait' sh";
        options.cancel.user = &user;
        options.cancel.cancelled = [](void *u) -> int32_t {
            const Asked *a = static_cast<Asked *>(u);
            return (*a->count)++ >= a->after;
        };
        std::string out;
        amp_error err = {};
        EXPECT_EQ(Make(options, &out, &err), AMP_CANCELLED) << err.message;
        EXPECT_EQ(asked, after + 1) << "once it is cancelled the callback is not called again";
    }
}

TEST_F(SoWriterTest, WorksWhereNobodyCancels) {
    CodegenOptions options = {};
    options.cancel.cancelled = [](void *) -> int32_t { return 0; };
    std::string plain, asked;
    amp_error err = {};
    ASSERT_EQ(Make({}, &plain, &err), AMP_OK) << err.message;
    ASSERT_EQ(Make(options, &asked, &err), AMP_OK) << err.message;
    EXPECT_EQ(plain, asked);
}

TEST_F(SoWriterTest, ReportsMissingMemory) {
    amp_allocator nothing = {};
    nothing.alloc = [](void *, size_t, size_t) -> void * { return nullptr; };
    nothing.free = [](void *, void *, size_t, size_t) {};
    CodegenOptions options = {};
    options.allocator = &nothing;
    std::string out;
    amp_error err = {};
    EXPECT_EQ(Make(options, &out, &err), AMP_OUT_OF_MEMORY);
}

#if defined(__x86_64__)
constexpr const char *kMarch[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
#else
constexpr const char *kMarch[] = {"armv8-a"};
#endif

// The text is C without warnings, for gcc and clang, and a model in one go.
TEST_F(SoWriterTest, TextCompilesWithoutWarnings) {
    Text c;
    text_init(&c, &arena_);
    amp_error err = {};
    ASSERT_EQ(codegen_c(Read(small_model), nullptr, nullptr, &c, &err), AMP_OK) << err.message;
    char folder[] = "/tmp/so-writer-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string at = folder;
    std::ofstream(at + "/m.c") << text_str(&c);
    for (const std::string compiler : {"cc", "clang"}) {
        if (system(("command -v " + compiler + " > /dev/null").c_str())) continue;
        for (const char *march : kMarch) {
            const std::string command = compiler +
                                        " -std=gnu11 -O1 -Wall -Wextra -Werror -Wno-psabi -Wno-unknown-pragmas "
                                        "-ffreestanding -ffp-contract=off -fPIC -shared -nostdlib -Wl,-z,defs -march=" +
                                        march + " " + at + "/m.c -o " + at + "/m.so";
            EXPECT_EQ(system(command.c_str()), 0) << command;
        }
    }
    for (const char *file : {"/m.c", "/m.so"}) unlink((at + file).c_str());
    rmdir(folder);
}

} // namespace
