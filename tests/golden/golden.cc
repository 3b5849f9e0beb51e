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

const std::string kMark = "==== ", kError = " error: ", kGutter = "     | ";

bool Begins(const std::string &text, const std::string &with) { return text.compare(0, with.size(), with) == 0; }

const std::string kNewHead = "====", kPlace = "...\n";

struct Section {
    std::string name, text, head, tail; /* an input is head, text and tail */
};

/* A bundle's head, of the sections up to the next: "HEAD\n...\nTAIL\n", or "HEAD\n". */
void SetFrame(const std::string &frame, Section *section) {
    const size_t place = ("\n" + frame).find("\n" + kPlace);
    section->head = frame.substr(0, place);
    section->tail = place == std::string::npos ? "" : frame.substr(place + kPlace.size());
}

std::string FrameOf(const Section &s) { return s.head + (s.tail.empty() ? "" : kPlace + s.tail); }

std::vector<Section> Sections(const std::string &path) {
    std::vector<Section> sections;
    std::string frame;
    bool in_frame = true;
    for (const std::string &line : Lines(Read(path))) {
        if (Begins(line, kMark)) {
            sections.push_back({line.substr(kMark.size()), "", "", ""});
            SetFrame(frame, &sections.back());
            in_frame = false;
        } else if (line == kNewHead) {
            frame.clear();
            in_frame = true;
        } else {
            (in_frame ? frame : sections.back().text) += line + "\n";
        }
    }
    return sections;
}

std::string Stem(const std::string &file) { return file.substr(0, file.rfind('.')); }

/* ---- diagnostics after the lines that they are about ------------------------------------------------------------ */

/* What ends a line "   ^~~ error: MESSAGE" before the message; npos: it is none. */
size_t EndOfCarets(const std::string &line) {
    const size_t caret = line.find_first_not_of(' ');
    if (caret == std::string::npos || line[caret] != '^') return std::string::npos;
    const size_t end = line.find_first_not_of('~', caret + 1);
    return end != std::string::npos && line.compare(end, kError.size(), kError) == 0 ? end : std::string::npos;
}

/* Whether |text| begins with "LINE:COLUMN: ". */
bool BeginsWithPlace(const std::string &text) {
    const char *const digits = "0123456789";
    const size_t line = text.find_first_not_of(digits);
    if (line == 0 || line == std::string::npos || text[line] != ':') return false;
    const size_t column = text.find_first_not_of(digits, line + 1);
    return column != std::string::npos && column > line + 1 && text.compare(column, 2, ": ") == 0;
}

/* "  help: ...", "  FILE:LINE:COLUMN: ...", and the same without the file, which is the case's own. */
bool GoesOn(const std::string &line) {
    if (!Begins(line, "  ")) return false;
    const std::string rest = line.substr(2);
    const size_t colon = rest.find(':'), space = rest.find(' ');
    return Begins(rest, "help: ") || BeginsWithPlace(rest) ||
           (colon < space && BeginsWithPlace(rest.substr(colon + 1)));
}

struct Case {
    std::string input, said;
};

/* The input in a section, and the diagnostics that are written after its lines. */
Case Expand(const Section &section) {
    Case c = {section.head, ""};
    std::vector<std::string> lines = Lines(section.head);
    bool in_diagnostic = false;
    for (const std::string &line : Lines(section.text)) {
        const size_t end = EndOfCarets(line);
        if (end != std::string::npos) {
            const std::string number = std::to_string(lines.size()), source = lines.empty() ? "" : lines.back();
            c.said += section.name + ":" + number + ":" + std::to_string(line.find('^') + 1) + ":" + line.substr(end) +
                      "\n" + std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + " | " + source +
                      "\n" + kGutter + line.substr(0, end) + "\n";
            in_diagnostic = true;
        } else if (in_diagnostic && GoesOn(line)) {
            c.said += (BeginsWithPlace(line.substr(2)) ? "  " + section.name + ":" + line.substr(2) : line) + "\n";
        } else {
            c.input += line + "\n";
            lines.push_back(line);
            in_diagnostic = false;
        }
    }
    c.input += section.tail;
    return c;
}

/* The other way round: |section|, an input, with what is said of it after its lines; "" if that cannot be read back. */
std::string Fold(const Section &section, const std::string &said) {
    const std::vector<std::string> words = Lines(said), head = Lines(section.head),
                                   lines = Lines(section.head + section.text);
    std::vector<std::string> after(lines.size() + 1); /* by number of a line */
    size_t at = 0;
    for (size_t i = 0; i < words.size(); i++) {
        const std::string own = section.name + ":";
        const size_t error = words[i].find(":" + kError);
        if (Begins(words[i], own) && error != std::string::npos && i + 2 < words.size()) {
            at = std::min<size_t>(std::strtoul(words[i].c_str() + own.size(), nullptr, 10), lines.size());
            after[at] +=
                words[i + 2].substr(std::min(kGutter.size(), words[i + 2].size())) + words[i].substr(error + 1) + "\n";
            i += 2;
        } else {
            after[at] += (Begins(words[i], "  " + own) ? "  " + words[i].substr(2 + own.size()) : words[i]) + "\n";
        }
    }
    std::string text;
    for (size_t i = head.size(); i < lines.size(); i++) text += lines[i] + "\n" + after[i + 1];
    const Case read = Expand({section.name, text, section.head, section.tail});
    return read.input == section.head + section.text + section.tail && read.said == said ? text : "";
}

void Write(const std::string &path, const std::string &text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    EXPECT_TRUE(file.good()) << "cannot write " << path;
}

/* Whether the bundle has the case: then what it gives is in its input, or after it. */
bool BlessSection(const std::string &path, const std::string &name, const Output &output,
                  const std::vector<std::string> &endings) {
    std::string text, frame;
    bool found = false;
    for (const Section &s : Sections(path)) {
        const bool of_case = Stem(s.name) == name;
        const bool old = std::any_of(endings.begin(), endings.end(),
                                     [&](const std::string &ending) { return s.name == name + ending; });
        if (old) continue;
        if (FrameOf(s) != frame) text += (text.empty() ? "" : kNewHead + "\n") + FrameOf(s);
        frame = FrameOf(s);
        Section plain = s;
        const std::string input = Expand(s).input;
        plain.text = input.substr(s.head.size(), input.size() - s.head.size() - s.tail.size());
        const std::string folded = of_case ? Fold(plain, output.text) : s.text;
        text += kMark + s.name + "\n" + (folded.empty() ? plain.text : folded);
        if (of_case && folded.empty()) text += kMark + name + output.extension + "\n" + output.text;
        found |= of_case;
    }
    if (found) Write(path, text);
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

void UnpackBundle(const std::string &path, const std::string &to) {
    for (const Section &s : Sections(path)) {
        if (EndsWith(s.name, ".txt")) {
            Write(to + s.name, s.text);
            continue;
        }
        const Case c = Expand(s);
        Write(to + s.name, c.input);
        if (!c.said.empty()) Write(to + Stem(s.name) + ".txt", c.said);
    }
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
        else UnpackBundle(folder + "/" + file, to + "/");
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
