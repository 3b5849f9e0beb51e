/* launcher.h: what the program that started this process says in the environment. */
#ifndef AMP_RUNTIME_COMM_LAUNCHER_H
#define AMP_RUNTIME_COMM_LAUNCHER_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many processes were started, and the variable that says so; 0: no launcher that is known. */
int32_t amp_launcher_size(const char **variable);

/* Which of them this is, by the same launcher; -1: it does not say. */
int32_t amp_launcher_rank(void);

/* The libraries that an MPI of this launcher has, the most probable first; ends with NULL. */
const char *const *amp_launcher_libraries(void);

#ifdef __cplusplus
}
#endif

#endif
