/* dialect_mpich.c: MPICH and what has its ABI.  Handles are ints. */
#include "runtime/comm/mpi/mpi_calls.h"
#include "runtime/comm/mpi/numbers_mpich.h"

static bool find_handles(amp_mpi *m) {
    m->world.number = MPICH_COMM_WORLD;
    m->f32.number = MPICH_FLOAT;
    m->f64.number = MPICH_DOUBLE;
    m->byte.number = MPICH_BYTE;
    m->sum.number = MPICH_SUM;
    m->errors_return.number = MPICH_ERRORS_RETURN;
    return true;
}

#define HANDLE int
#define FIELD number
#define DIALECT mpich
#define IN_PLACE ((void *)MPICH_IN_PLACE)
#define ANY_SOURCE MPICH_ANY_SOURCE
#define THREAD_LEVELS MPICH_THREAD_LEVELS
#include "runtime/comm/mpi/dialect.inc"
