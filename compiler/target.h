/* target.h: which targets a model is compiled for, and what the last passes and code generation make for them. */
#ifndef AMP_COMPILER_TARGET_H
#define AMP_COMPILER_TARGET_H

#include "codegen/codegen.h"
#include "compiler/session.h"

typedef enum TargetChoice { CHOICE_CPU, CHOICE_CUDA, CHOICE_BOTH } TargetChoice;

amp_status target_choose(const amp_compile_options *o, TargetChoice *out, amp_error *err);

/* For model.so: the module for the CPU at stage plan, and what goes into the model for CUDA. */
amp_status target_make_code(Session *s, TargetChoice choice, Module **cpu, CodegenCuda *cuda, amp_error *err);
/* CUDA alone. */
amp_status target_make_cuda(Session *s, const struct CudaModule **out, amp_error *err);

#endif
