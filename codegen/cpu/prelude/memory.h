/* memory.h: places in operands that are read as a whole: element (row, column) of a dense matrix and of one in
 * panels. */
#define AT_ROWS(m, row, column, columns) ((m) + ((int64_t)(row) * (columns) + (int64_t)(column)))
#define AT_PANELS(m, row, column, rows)                                                                                \
    ((m) + (((int64_t)(column) & ~INT64_C(31)) * (rows) + (int64_t)(row)*32 + ((int64_t)(column)&31)))
