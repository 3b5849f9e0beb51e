/* sanitizer.c: see sanitizer.h; in C, because that is what is compiled with the sanitizers. */
#include <stdbool.h>

#ifdef __SANITIZE_ADDRESS__
const bool amp_test_address_sanitizer = true;
#else
const bool amp_test_address_sanitizer = false;
#endif
