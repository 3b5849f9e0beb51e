/* golden.h: tests by files.  A folder holds inputs and, beside each, what they must give: `mlp.amp` and `mlp.ir`.  Many
 * small files are one, `NAME.cases`, in which a line `==== mlp.amp` begins each (Unpack).  The lines before the first
 * begin every input in it, and what they have after a line `...` ends it; a line `====` begins other such lines.  A
 * diagnostic is written after the line that it is about, without file and line number; `mlp.txt` is made of them:
 *
 *         y = cos(x, x)
 *             ^~~~~~~~~ error: cos takes 1 tensor; the call has 2
 *
 * A case with diagnostics of another form has a `==== mlp.txt`.  With AMP_BLESS=1 in the environment the files are
 * written instead of compared:
 *
 *     AMP_BLESS=1 bazel run //tests/frontend:frontend_test
 *
 * Outside of `bazel run`, AMP_BLESS names the workspace to write into.
 */
#ifndef AMP_TESTS_GOLDEN_GOLDEN_H
#define AMP_TESTS_GOLDEN_GOLDEN_H

#include <string>
#include <vector>

namespace golden {

/* What a case gave: the ending of its file (".ir", ".txt", ".c") and its content. */
struct Output {
    std::string extension, text;
};

/* The workspace to write into, or "" where files are compared. */
std::string BlessRoot();

/* Names, without folder and ending, of the files in |folder| (relative to the workspace) that end in |extension|;
 * sorted.  Files like `part.inc.amp` belong to a case and are none. */
std::vector<std::string> Cases(const std::string &folder, const std::string &extension);

/* A folder for this run that has the files of |folder|, and each file of its .cases, for Cases and Read. */
std::string Unpack(const std::string &folder);

/* The content of a file, relative to the workspace; "" and a test failure where it cannot be read. */
std::string Read(const std::string &path);

/* The words after `# test:` in lines of an input: options of its case. */
std::vector<std::string> Options(const std::string &text);

/* Compares with the file of the case in |folder|, or blesses it, in a .cases if it is there.  A case has one expected
 * file among |endings|: an output with another ending than the one that is there fails. */
void Check(const std::string &folder, const std::string &name, const Output &output,
           const std::vector<std::string> &endings);
/* The same of a case of |unpacked|, which Unpack(folder) has made. */
void CheckUnpacked(const std::string &folder, const std::string &unpacked, const std::string &name,
                   const Output &output, const std::vector<std::string> &endings);

} // namespace golden

#endif
