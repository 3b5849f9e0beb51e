/* mpi_engine.h: the engine "mpi". */
#ifndef AMP_RUNTIME_COMM_MPI_MPI_ENGINE_H
#define AMP_RUNTIME_COMM_MPI_MPI_ENGINE_H

#include "runtime/comm/engine.h"

/* Opens a library and calls nothing of it that joins ranks.  |file|: as amp_comm_options.library.  |comm|: the address
 * of a communicator of the program, of |size| bytes, or NULL: all that the launcher started. */
amp_status amp_mpi_engine_open(const char *file, const void *comm, size_t size, const amp_allocator *allocator,
                               amp_engine **out, amp_error *err);

#endif
