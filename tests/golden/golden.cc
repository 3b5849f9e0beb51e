/* golden.cc: see golden.h. */
#include "tests/golden/golden.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace golden {
namespace {

bool EndsWith(const std::string &s, const std::string &end) {
    return s.size() >= end.size() && s.compare(s.size() - end.size(), end.size(), end) == 0;
}

bool Exists(const std::string &path) { return access(path.c_str(), R_OK) == 0; }

std::vector<std::string> Lines(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

/* The first line that differs, from both texts: enough to see what is wrong. */
std::string Difference(const std::string &expected, const std::string &actual) {
    std::vector<std::string> a = Lines(expected), b = Lines(actual);
    size_t i = 0;
    while (i < a.size() && i < b.size() && a[i] == b[i]) i++;
    std::ostringstream out;
    out << "line " << i + 1 << "\n  expected: " << (i < a.size() ? a[i] : "(end)")
        << "\n  actual:   " << (i < b.size() ? b[i] : "(end)");
    return out.str();
}

struct Section {
    std::string name, text;
};

const std::string kMark = "==== ";

std::vector<Section> Sections(const std::string &path) {
    std::vector<Section> sections;
    for (const std::string &line : Lines(Read(path)))
        if (line.compare(0, kMark.size(), kMark) == 0) sections.push_back({line.substr(kMark.size()), ""});
        else if (sections.empty()) ADD_FAILURE() << path << " does not begin with '==== FILE'";
        else sections.back().text += line + "\n";
    return sections;
}

void Write(const std::string &path, const std::string &text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    EXPECT_TRUE(file.good()) << "cannot write " << path;
}

/* Whether |bundle| has the case: then what it gives is after its input. */
bool BlessSection(const std::string &bundle, const std::string &name, const Output &output,
                  const std::vector<std::string> &endings) {
    std::string text;
    bool found = false;
    for (const Section &s : Sections(bundle)) {
        const bool of_case = s.name.compare(0, name.size() + 1, name + ".") == 0;
        const bool old = std::any_of(endings.begin(), endings.end(),
                                     [&](const std::string &ending) { return s.name == name + ending; });
        if (!old) text += kMark + s.name + "\n" + s.text;
        if (of_case && !old) text += kMark + name + output.extension + "\n" + output.text;
        found |= of_case && !old;
    }
    if (found) Write(bundle, text);
    return found;
}

void Bless(const std::string &stem, const Output &output, const std::vector<std::string> &endings) {
    const size_t slash = stem.rfind('/');
    const std::string folder = stem.substr(0, slash);
    for (const std::string &bundle : Cases(folder, ".cases"))
        if (BlessSection(folder + "/" + bundle + ".cases", stem.substr(slash + 1), output, endings)) return;
    for (const std::string &ending : endings)
        if (ending != output.extension) unlink((stem + ending).c_str());
    Write(stem + output.extension, output.text);
}

} // namespace

std::string BlessRoot() {
    const char *bless = getenv("AMP_BLESS"), *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    if (!bless || !*bless) return "";
    return std::string(bless) == "1" ? (workspace ? workspace : ".") : bless;
}

std::vector<std::string> Cases(const std::string &folder, const std::string &extension) {
    std::vector<std::string> names;
    DIR *dir = opendir(folder.c_str());
    if (!dir) return names;
    while (const dirent *entry = readdir(dir)) {
        std::string file = entry->d_name;
        if (!EndsWith(file, extension) || EndsWith(file, ".inc" + extension)) continue;
        names.push_back(file.substr(0, file.size() - extension.size()));
    }
    closedir(dir);
    std::sort(names.begin(), names.end());
    return names;
}

std::string Read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << "cannot read " << path;
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
}

std::vector<std::string> Options(const std::string &text) {
    const std::string mark = "# test:";
    std::vector<std::string> words;
    for (const std::string &line : Lines(text)) {
        if (line.compare(0, mark.size(), mark) != 0) continue;
        std::istringstream rest(line.substr(mark.size()));
        for (std::string word; rest >> word;) words.push_back(word);
    }
    return words;
}

std::string Unpack(const std::string &folder) {
    std::string to = testing::TempDir() + folder;
    std::replace(to.begin() + static_cast<std::ptrdiff_t>(testing::TempDir().size()), to.end(), '/', '_');
    mkdir(to.c_str(), 0755);
    for (const std::string &file : Cases(folder, "")) {
        if (file[0] == '.') continue;
        if (!EndsWith(file, ".cases")) Write(to + "/" + file, Read(folder + "/" + file));
        else
            for (const Section &s : Sections(folder + "/" + file)) Write(to + "/" + s.name, s.text);
    }
    return to;
}

void Check(const std::string &folder, const std::string &name, const Output &output,
           const std::vector<std::string> &endings) {
    CheckUnpacked(folder, folder, name, output, endings);
}

void CheckUnpacked(const std::string &folder, const std::string &unpacked, const std::string &name,
                   const Output &output, const std::vector<std::string> &endings) {
    std::string root = BlessRoot(), path = unpacked + "/" + name + output.extension;
    if (!root.empty()) {
        Bless(root + "/" + folder + "/" + name, output, endings);
        return;
    }
    ASSERT_TRUE(Exists(path)) << "there is no " << path << "; the output is\n" << output.text;
    std::string expected = Read(path);
    EXPECT_TRUE(expected == output.text) << path << ", " << Difference(expected, output.text) << "\nthe output is\n"
                                         << output.text;
}

} // namespace golden
