// pattern.h: regular expressions of ECMAScript. <regex> takes two seconds to compile, in each file that uses it.
#ifndef AMP_TESTS_BASE_PATTERN_H
#define AMP_TESTS_BASE_PATTERN_H

#include <string>
#include <vector>

// The first match and its groups; empty without a match.
std::vector<std::string> FirstMatch(const std::string &text, const std::string &pattern);

inline bool HasMatch(const std::string &text, const std::string &pattern) { return !FirstMatch(text, pattern).empty(); }

// The group |group| of every match; 0: the match.
std::vector<std::string> EachMatch(const std::string &text, const std::string &pattern, size_t group = 0);

// Every match, or the first, replaced by |by|, in which $1 is a group.
std::string Replaced(const std::string &text, const std::string &pattern, const std::string &by);
std::string ReplacedOnce(const std::string &text, const std::string &pattern, const std::string &by);

#endif
