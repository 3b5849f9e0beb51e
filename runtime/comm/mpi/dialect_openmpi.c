/* dialect_openmpi.c: Open MPI.  Handles that the library has are addresses of its variables. */
#define _GNU_SOURCE /* dlsym in strict C11 */
#include <dlfcn.h>

#include "runtime/comm/mpi/mpi_calls.h"
#include "runtime/comm/mpi/numbers_openmpi.h"

#define NAME_(x) #x
#define NAME(x) NAME_(x)

static bool find_handles(amp_mpi *m) {
    m->world.pointer = dlsym(m->library, NAME(OPENMPI_COMM_WORLD));
    m->f32.pointer = dlsym(m->library, NAME(OPENMPI_FLOAT));
    m->f64.pointer = dlsym(m->library, NAME(OPENMPI_DOUBLE));
    m->byte.pointer = dlsym(m->library, NAME(OPENMPI_BYTE));
    m->sum.pointer = dlsym(m->library, NAME(OPENMPI_SUM));
    m->errors_return.pointer = dlsym(m->library, NAME(OPENMPI_ERRORS_RETURN));
    return m->world.pointer && m->f32.pointer && m->f64.pointer && m->byte.pointer && m->sum.pointer &&
           m->errors_return.pointer;
}

#define HANDLE void *
#define FIELD pointer
#define DIALECT openmpi
#define IN_PLACE ((void *)OPENMPI_IN_PLACE)
#define ANY_SOURCE OPENMPI_ANY_SOURCE
#define THREAD_LEVELS OPENMPI_THREAD_LEVELS
#include "runtime/comm/mpi/dialect.inc"
