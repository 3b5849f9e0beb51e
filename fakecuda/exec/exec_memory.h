/* exec_memory.h: the inside of ExecMemory, for the interpreter, which reaches bytes directly. */
#ifndef FAKECUDA_EXEC_EXEC_MEMORY_H
#define FAKECUDA_EXEC_EXEC_MEMORY_H

#include "fakecuda/exec/exec.h"

typedef struct MemoryRange {
    uint64_t start, bytes; /* start: an address of the device */
    bool freed;
} MemoryRange;

struct ExecMemory {
    uint64_t base, span; /* the device's addresses; the host may not touch them */
    uint8_t *bytes;      /* bytes[a - base] is what the device sees at a */
    uint8_t *written;    /* 1: that byte has been written */
    uint64_t *writers;   /* one for four bytes: who wrote them in which launch; see memory_access.c */
    uint64_t capacity, used, next;
    MemoryRange *ranges; /* by start; live and freed ones, never overlapping */
    int count, room;
    uint32_t launches;
};

/* Generic addresses of what is not global memory: windows at the start of the device's range. */
enum {
    WINDOW_SHARED = 0x1000000,
    WINDOW_LOCAL = 0x2000000,
    WINDOW_PARAM = 0x3000000,
    WINDOW_CODE = 0x3800000,  /* functions as values */
    WINDOW_GLOBAL = 0x4000000 /* from here on: allocations */
};

/* The last range that starts at or below |address|; NULL: none. */
const MemoryRange *memory_before(const ExecMemory *m, uint64_t address);
/* Says what is around an |address| whose |size| bytes nobody may touch. */
void memory_explain(const ExecMemory *m, uint64_t address, uint64_t size, char *text, size_t room);

#endif
