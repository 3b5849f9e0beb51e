// planted.h: a test's comparison, made of what has a planted fault: it has to fail.
#ifndef AMP_TESTS_BASE_PLANTED_H
#define AMP_TESTS_BASE_PLANTED_H

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

// What |compare| says of |fault| holds |text|. Its failures are none of the test.
inline void ExpectFound(const std::string &fault, const std::string &text, const std::function<void()> &compare) {
    ::testing::TestPartResultArray failures;
    {
        ::testing::ScopedFakeTestPartResultReporter aside(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
        compare();
    }
    std::string said;
    for (int i = 0; i < failures.size(); i++) said += failures.GetTestPartResult(i).message();
    EXPECT_GT(failures.size(), 0) << "not found: " << fault;
    EXPECT_NE(said.find(text), std::string::npos) << fault << " is found as: " << said.substr(0, 2000);
}

#endif
