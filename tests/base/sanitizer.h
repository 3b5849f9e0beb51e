// sanitizer.h: whether the code under test is compiled with a sanitizer; the tests themselves never are
// (.bazelrc).
#ifndef AMP_TESTS_BASE_SANITIZER_H
#define AMP_TESTS_BASE_SANITIZER_H

extern "C" const bool amp_test_address_sanitizer, amp_test_thread_sanitizer;

#endif
