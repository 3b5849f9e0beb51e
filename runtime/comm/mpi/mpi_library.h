/* mpi_library.h: finding the MPI of this process, and which kind it is. */
#ifndef AMP_RUNTIME_COMM_MPI_MPI_LIBRARY_H
#define AMP_RUNTIME_COMM_MPI_MPI_LIBRARY_H

#include "runtime/comm/mpi/mpi_calls.h"

/* |file|: the library to open; NULL: the one that the process has, else, unless |loaded|, one that the launcher's MPI
 * has.  It is never closed: an MPI cannot be unloaded.  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_UNSUPPORTED. */
amp_status amp_mpi_open(amp_mpi *m, const char *file, bool loaded, amp_error *err);

/* A call of it failed: its name, what MPI says of |code|, the library. */
amp_status amp_mpi_fail(const amp_mpi *m, amp_mpi_call call, int code, amp_error *err);

int amp_mpi_finalize(const amp_mpi *m);
/* Before MPI_Init and after MPI_Finalize, too. */
int amp_mpi_state(const amp_mpi *m, int *initialized, int *finalized);

#endif
