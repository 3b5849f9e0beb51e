#include "tests/base/pattern.h"

#include <regex>

std::vector<std::string> FirstMatch(const std::string &text, const std::string &pattern) {
    std::smatch m;
    if (!std::regex_search(text, m, std::regex(pattern))) return {};
    return {m.begin(), m.end()};
}

std::vector<std::string> EachMatch(const std::string &text, const std::string &pattern, size_t group) {
    const std::regex compiled(pattern);
    std::vector<std::string> found;
    for (std::sregex_iterator i(text.begin(), text.end(), compiled), end; i != end; ++i) found.push_back((*i)[group]);
    return found;
}

std::string Replaced(const std::string &text, const std::string &pattern, const std::string &by) {
    return std::regex_replace(text, std::regex(pattern), by);
}

std::string ReplacedOnce(const std::string &text, const std::string &pattern, const std::string &by) {
    return std::regex_replace(text, std::regex(pattern), by, std::regex_constants::format_first_only);
}
