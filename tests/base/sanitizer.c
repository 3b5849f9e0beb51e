/* sanitizer.c: see sanitizer.h; in C, because that is what is compiled with the sanitizers. */
#include <stdbool.h>

#ifdef __SANITIZE_ADDRESS__
const bool amp_test_address_sanitizer = true;
#else
const bool amp_test_address_sanitizer = false;
#endif

#ifdef __SANITIZE_THREAD__
const bool amp_test_thread_sanitizer = true;
#else
const bool amp_test_thread_sanitizer = false;
#endif
