/* mpi_numbers.c: our declarations of an MPI against its own header; tests/checks/distributed_engine.sh compiles it with
 * the wrapper of each MPI that is installed, and with -DABI where there is a header of MPI 5's ABI. */
#include <stddef.h>
#include <stdio.h>

#ifdef ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

#include "runtime/comm/mpi/mpi_calls.h"
#include "runtime/comm/mpi/numbers_abi.h"
#include "runtime/comm/mpi/numbers_mpich.h"
#include "runtime/comm/mpi/numbers_openmpi.h"

_Static_assert(sizeof(MPI_Comm) <= sizeof(amp_mpi_handle) && sizeof(MPI_Request) <= sizeof(amp_mpi_handle),
               "room for handles");
_Static_assert(sizeof(MPI_Status) <= 8 * sizeof(max_align_t), "room for a status");
_Static_assert(MPI_SUCCESS == 0, "success");
_Static_assert(MPI_MAX_LIBRARY_VERSION_STRING < AMP_MPI_VERSION_MOST && MPI_MAX_ERROR_STRING <= AMP_MPI_ERROR_MOST,
               "room for texts");

#define SAME(ours, its) _Static_assert((long)(ours) == (long)(its), #its)
#define SAME_LEVELS(levels)                                                                                            \
    static const int ours[] = {levels};                                                                                \
    static const int its[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};

#ifdef OPEN_MPI
SAME_LEVELS(OPENMPI_THREAD_LEVELS)
SAME(OPENMPI_ANY_SOURCE, MPI_ANY_SOURCE);
_Static_assert(sizeof(MPI_Comm) == sizeof(void *), "handles are pointers");
/* Addresses are no constants of C11. */
static int same_handles(void) {
    return MPI_COMM_WORLD == (void *)&OPENMPI_COMM_WORLD && MPI_FLOAT == (void *)&OPENMPI_FLOAT &&
           MPI_DOUBLE == (void *)&OPENMPI_DOUBLE && MPI_BYTE == (void *)&OPENMPI_BYTE &&
           MPI_SUM == (void *)&OPENMPI_SUM && MPI_ERRORS_RETURN == (void *)&OPENMPI_ERRORS_RETURN &&
           MPI_IN_PLACE == (void *)OPENMPI_IN_PLACE;
}
#elif defined(ABI)
SAME_LEVELS(ABI_THREAD_LEVELS)
_Static_assert(sizeof(MPI_Comm) == sizeof(void *), "handles are pointers");
SAME(ABI_COMM_WORLD, MPI_COMM_WORLD);
SAME(ABI_FLOAT, MPI_FLOAT);
SAME(ABI_DOUBLE, MPI_DOUBLE);
SAME(ABI_BYTE, MPI_BYTE);
SAME(ABI_SUM, MPI_SUM);
SAME(ABI_ERRORS_RETURN, MPI_ERRORS_RETURN);
SAME(ABI_IN_PLACE, MPI_IN_PLACE);
SAME(ABI_ANY_SOURCE, MPI_ANY_SOURCE);
static int same_handles(void) { return 1; }
#else
SAME_LEVELS(MPICH_THREAD_LEVELS)
_Static_assert(sizeof(MPI_Comm) == sizeof(int), "handles are ints");
SAME(MPICH_COMM_WORLD, MPI_COMM_WORLD);
SAME(MPICH_FLOAT, MPI_FLOAT);
SAME(MPICH_DOUBLE, MPI_DOUBLE);
SAME(MPICH_BYTE, MPI_BYTE);
SAME(MPICH_SUM, MPI_SUM);
SAME(MPICH_ERRORS_RETURN, MPI_ERRORS_RETURN);
SAME(MPICH_IN_PLACE, MPI_IN_PLACE);
SAME(MPICH_ANY_SOURCE, MPI_ANY_SOURCE);
static int same_handles(void) { return 1; }
#endif

int main(void) {
    for (int i = 0; i < 4; i++)
        if (ours[i] != its[i]) return printf("thread level %d is %d, not %d\n", i, its[i], ours[i]), 1;
    if (!same_handles()) return puts("a handle has another address"), 1;
    return puts("the numbers are right"), 0;
}
