/* exec_memory.h: the inside of ExecMemory, for the interpreter, which reaches bytes directly. */
#ifndef FAKECUDA_EXEC_EXEC_MEMORY_H
#define FAKECUDA_EXEC_EXEC_MEMORY_H

#include "fakecuda/exec/exec.h"

typedef struct MemoryRange {
    uint64_t start, bytes; /* start: an address of the device */
    bool freed;
} MemoryRange;

/* Four bytes: who wrote and read them last; race_global.c. */
typedef struct GlobalWord {
    uint32_t slot[4];
} GlobalWord;

struct ExecMemory {
    uint64_t base, span; /* the device's addresses; the host may not touch them */
    uint8_t *bytes;      /* bytes[a - base] is what the device sees at a */
    uint8_t *written;    /* 1: that byte has been written */
    GlobalWord *words;   /* who touched them */
    GlobalWord *stamps;  /* when; NULL: no kernel had an order between blocks so far */
    uint64_t capacity, used, next;
    MemoryRange *ranges; /* by start; live and freed ones, never overlapping */
    int count, room;
    uint32_t serials; /* blocks that were run so far have the numbers up to here, from 1 */
};

/* Generic addresses of what is not global memory: windows at the start of the device's range. */
enum {
    WINDOW_SHARED = 0x1000000,
    WINDOW_LOCAL = 0x2000000,
    WINDOW_PARAM = 0x3000000,
    WINDOW_CODE = 0x3800000,  /* functions as values */
    WINDOW_GLOBAL = 0x4000000 /* from here on: allocations */
};

enum { MOST_SERIALS = (1 << 27) - 1 };
/* Returns the first of |blocks| numbers (at most MOST_SERIALS), all larger than the numbers of all records. */
uint32_t memory_serials(ExecMemory *m, uint64_t blocks);
bool memory_need_stamps(ExecMemory *m); /* false: the system gives no memory */

/* The last range that starts at or below |address|; NULL: none. */
const MemoryRange *memory_before(const ExecMemory *m, uint64_t address);
/* Describes what is around an |address| whose |size| bytes may not be touched. */
void memory_explain(const ExecMemory *m, uint64_t address, uint64_t size, char *text, size_t room);

#endif
