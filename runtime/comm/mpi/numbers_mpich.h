/* numbers_mpich.h: MPICH and what has its ABI, Intel MPI among them; tests/runtime/comm/mpi_numbers.c compares. */
#define MPICH_COMM_WORLD 0x44000000
#define MPICH_FLOAT 0x4c00040a
#define MPICH_DOUBLE 0x4c00080b
#define MPICH_BYTE 0x4c00010d
#define MPICH_SUM 0x58000003
#define MPICH_ERRORS_RETURN 0x54000001
#define MPICH_IN_PLACE -1
#define MPICH_ANY_SOURCE -2
#define MPICH_THREAD_LEVELS 0, 1, 2, 3
