// library_search_test.cc: where NVIDIA's libraries are looked for, and what is said of one that cannot be used.
#include "cuda_sdk/library_search.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "cuda_sdk/cublaslt.h"
#include "cuda_sdk/nvrtc.h"

namespace fs = std::filesystem;

namespace {

// Sets environment variables and puts back what they were.
class Environment {
  public:
    ~Environment() {
        for (const auto &[name, value] : before_) value.first ? Put(name, &value.second) : Put(name, nullptr);
    }
    void Set(const std::string &name, const std::string &value) { Keep(name), Put(name, &value); }
    void Clear(const std::string &name) { Keep(name), Put(name, nullptr); }

  private:
    void Keep(const std::string &name) {
        const char *value = getenv(name.c_str());
        before_.emplace(name, std::make_pair(value != nullptr, std::string(value ? value : "")));
    }
    static void Put(const std::string &name, const std::string *value) {
        value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
    std::map<std::string, std::pair<bool, std::string>> before_;
};

class Folder {
  public:
    Folder() {
        std::string name = testing::TempDir() + "amp_library_test.XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }
    const std::string &path() const { return path_; }

  private:
    std::string path_;
};

std::string PathOf(void *library) {
    link_map *map = nullptr;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

// Some small shared object that surely is none of NVIDIA's, at |path|.
void PutOtherLibrary(const std::string &path) {
    void *libm = dlopen("libm.so.6", RTLD_NOW);
    ASSERT_NE(libm, nullptr);
    fs::create_directories(fs::path(path).parent_path());
    fs::copy_file(PathOf(libm), path);
    dlclose(libm);
}

amp_status OpenNvrtc(amp_error *err) {
    amp_nvrtc *nvrtc = nullptr;
    const amp_status status = amp_nvrtc_open(nullptr, &nvrtc, err);
    EXPECT_EQ(nvrtc == nullptr, status != AMP_OK);
    amp_nvrtc_close(nvrtc);
    return status;
}

amp_status OpenCublaslt(amp_error *err) {
    amp_cublaslt cublaslt;
    const amp_status status = amp_cublaslt_open(&cublaslt, 0, err);
    EXPECT_EQ(cublaslt.library == nullptr, status != AMP_OK);
    return status;
}

struct Library {
    amp_status (*open)(amp_error *err);
    const char *variable, *file, *folder, *package, *first_call;
};
void PrintTo(const Library &library, std::ostream *out) { *out << library.file; }

class Searched : public testing::TestWithParam<Library> {
  protected:
    void Expect(amp_status wanted, const std::string &part) {
        amp_error err = {};
        EXPECT_EQ(GetParam().open(&err), wanted) << err.message;
        EXPECT_NE(std::string(err.message).find(part), std::string::npos) << err.message;
    }
    Folder folder_;
    Environment environment_;
};

} // namespace

TEST_P(Searched, AnEmptyFolderNamesWhatWasSearchedAndWhatToDo) {
    const std::string variable = GetParam().variable;
    environment_.Set(variable, folder_.path());
    Expect(AMP_NOT_FOUND, "searched: " + variable + "=" + folder_.path());
    Expect(AMP_NOT_FOUND, std::string("`pip install ") + GetParam().package + "`");
    environment_.Set(variable, folder_ / "nothing");
    Expect(AMP_NOT_FOUND, "set " + variable + " to its folder");
}

TEST_P(Searched, ATextFileIsNoLibrary) {
    std::ofstream(folder_ / GetParam().file) << "this is not a library\n";
    for (const std::string &path : {folder_.path(), folder_ / GetParam().file}) {
        environment_.Set(GetParam().variable, path);
        Expect(AMP_BAD_FILE, folder_ / GetParam().file + " cannot be used");
    }
}

TEST_P(Searched, AnotherLibraryLacksTheCalls) {
    PutOtherLibrary(folder_ / GetParam().folder + "/" + GetParam().file);
    environment_.Set(GetParam().variable, folder_.path());
    Expect(AMP_BAD_FILE, std::string("it has no ") + GetParam().first_call);
}

static const Library kLibraries[] = {
    {OpenNvrtc, "NVRTC_PATH", "libnvrtc.so.13", "nvidia/cu13/lib", "nvidia-cuda-nvrtc", "nvrtcVersion"},
    {OpenCublaslt, "CUBLASLT_PATH", "libcublasLt.so.12", "nvidia/cublas/lib", "nvidia-cublas", "cublasLtGetProperty"},
};
INSTANTIATE_TEST_SUITE_P(All, Searched, testing::ValuesIn(kLibraries));

// Takes libraries below a folder only, whatever is installed on the machine.
static amp_status TakeBelow(void *ctx, void *library, amp_error *err) {
    const auto &folder = *static_cast<std::string *>(ctx);
    if (PathOf(library).rfind(folder, 0) == 0) return AMP_OK;
    amp_fail(err, AMP_BAD_FILE, "not below %s", folder.c_str());
    return AMP_BAD_FILE;
}

// Where a library is put, and which variable leads there.
struct Place {
    const char *file, *variable, *value;
    const amp_library_places *library = &amp_nvrtc_places;
};
static void PrintTo(const Place &place, std::ostream *out) { *out << place.file; }

class Places : public testing::TestWithParam<Place> {
  protected:
    // An installed one is opened and refused again and again: that takes no time once it stays in the process.
    static void SetUpTestSuite() {
        amp_cublaslt cublaslt;
        amp_nvrtc *nvrtc;
        amp_nvrtc_open(nullptr, &nvrtc, nullptr);
        amp_nvrtc_close(nvrtc);
        amp_cublaslt_open(&cublaslt, 0, nullptr);
    }
};

TEST_P(Places, IsSearched) {
    Folder folder;
    Environment environment;
    for (const char *name : {"NVRTC_PATH", "CUBLASLT_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"})
        environment.Clear(name);
    environment.Set("PATH", folder / "nothing");
    environment.Set("HOME", folder / "nothing");
    std::string below = folder.path();
    void *library = nullptr;
    amp_error err = {};
    EXPECT_NE(amp_library_search(GetParam().library, TakeBelow, &below, &library, &err), AMP_OK)
        << "before it is there";
    PutOtherLibrary(folder / GetParam().file);
    if (std::string(GetParam().variable) == "PATH") {
        fs::create_directories(folder / GetParam().value);
        std::ofstream(folder / GetParam().value + "/python3") << "#!/bin/sh\n";
        ASSERT_EQ(chmod((folder / GetParam().value + "/python3").c_str(), 0755), 0);
    }
    environment.Set(GetParam().variable, folder / GetParam().value);
    ASSERT_EQ(amp_library_search(GetParam().library, TakeBelow, &below, &library, &err), AMP_OK) << err.message;
    EXPECT_EQ(PathOf(library), folder / GetParam().file);
    dlclose(library);
}

static const Place kPlaces[] = {
    {"a/libnvrtc.so.13", "NVRTC_PATH", "a"},
    {"a/libnvrtc.so.12", "NVRTC_PATH", "a/libnvrtc.so.12"},
    {"a/lib64/libnvrtc.so.12", "NVRTC_PATH", "a"},
    {"a/nvidia/cu13/lib/libnvrtc.so.13", "NVRTC_PATH", "a"},
    {"a/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "NVRTC_PATH", "a"},
    {"cu[da]*/lib64/libnvrtc.so.13", "CUDA_HOME", "cu[da]*"},
    {"cuda/lib/libnvrtc.so", "CUDA_PATH", "cuda"},
    {"cuda/targets/x86_64-linux/lib/libnvrtc.so.12", "CUDA_HOME", "cuda"},
    {"venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "VIRTUAL_ENV", "venv"},
    {"usr/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "PATH", "usr/bin"},
    {"usr/lib/python3/dist-packages/nvidia/cu13/lib/libnvrtc.so.13", "PATH", "usr/bin"},
    {"usr/local/lib/python3.11/dist-packages/nvidia/cu13/lib/libnvrtc.so.13", "PATH", "usr/bin"},
    {".pyenv/versions/3.12.1/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "PATH", ".pyenv/shims"},
    {"a/libcublasLt.so.11", "CUBLASLT_PATH", "a", &amp_cublaslt_places},
    {"cuda/lib64/libcublasLt.so.13", "CUDA_HOME", "cuda", &amp_cublaslt_places},
    {"venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13", "VIRTUAL_ENV", "venv",
     &amp_cublaslt_places},
    {"usr/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12", "PATH", "usr/bin", &amp_cublaslt_places},
    {"me/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "HOME", "me"},
};
INSTANTIATE_TEST_SUITE_P(All, Places, testing::ValuesIn(kPlaces));
