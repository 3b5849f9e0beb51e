/* compile_text.h: compiling what a fuzzer made, and what must hold whatever it is. */
#ifndef AMP_TESTS_FUZZ_COMPILE_TEXT_H
#define AMP_TESTS_FUZZ_COMPILE_TEXT_H

#include "amp/compile.h"

/* Memory and ops are limited here. Either a result, or a status with a message and, for bad sources, diagnostics. */
void fuzz_compile(amp_compile_options options);

#endif
