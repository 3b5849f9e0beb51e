/* numbers_openmpi.h: Open MPI, whose handles are addresses of these variables; tests/runtime/comm/mpi_numbers.c
 * compares. */
#define OPENMPI_COMM_WORLD ompi_mpi_comm_world
#define OPENMPI_FLOAT ompi_mpi_float
#define OPENMPI_DOUBLE ompi_mpi_double
#define OPENMPI_BYTE ompi_mpi_byte
#define OPENMPI_SUM ompi_mpi_op_sum
#define OPENMPI_ERRORS_RETURN ompi_mpi_errors_return
#define OPENMPI_IN_PLACE 1
#define OPENMPI_ANY_SOURCE -1
#define OPENMPI_THREAD_LEVELS 0, 1, 2, 3
