/* dialect_abi.c: the ABI of MPI 5: libmpi_abi of any MPI.  Handles that the library has are small numbers. */
#include "runtime/comm/mpi/mpi_calls.h"
#include "runtime/comm/mpi/numbers_abi.h"

static bool find_handles(amp_mpi *m) {
    m->world.pointer = (void *)ABI_COMM_WORLD;
    m->f32.pointer = (void *)ABI_FLOAT;
    m->f64.pointer = (void *)ABI_DOUBLE;
    m->byte.pointer = (void *)ABI_BYTE;
    m->sum.pointer = (void *)ABI_SUM;
    m->errors_return.pointer = (void *)ABI_ERRORS_RETURN;
    return true;
}

#define HANDLE void *
#define FIELD pointer
#define DIALECT abi
#define IN_PLACE ((void *)ABI_IN_PLACE)
#define ANY_SOURCE ABI_ANY_SOURCE
#define THREAD_LEVELS ABI_THREAD_LEVELS
#include "runtime/comm/mpi/dialect.inc"
