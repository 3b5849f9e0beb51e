/* numbers_abi.h: the ABI of MPI 5.0, chapter 20; tests/runtime/comm/mpi_numbers.c compares. */
#define ABI_COMM_WORLD 0x101
#define ABI_FLOAT 0x210
#define ABI_DOUBLE 0x214
#define ABI_BYTE 0x247
#define ABI_SUM 0x21
#define ABI_ERRORS_RETURN 0x143
#define ABI_IN_PLACE 1
#define ABI_ANY_SOURCE -1
#define ABI_THREAD_LEVELS 0, 1024, 2048, 4096
