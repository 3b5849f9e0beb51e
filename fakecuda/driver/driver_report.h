/* driver_report.h: what is remembered for the report. */
#ifndef FAKECUDA_DRIVER_REPORT_H
#define FAKECUDA_DRIVER_REPORT_H

#include "fakecuda/driver/driver.h"

struct KernelRow {
    KernelRow *next;
    char *name;
    uint64_t launches, graph_launches; /* all; the ones among them that a graph made */
    int dynamic_shared;                /* the most */
    ExecKernelInfo info;
    ExecCounters counters;
};
typedef struct TextList {
    char **items;
    int count, room;
} TextList;
typedef struct Fault {
    CuResult error;
    char *message;
} Fault;
typedef struct Report {
    uint64_t graph_launches, bytes_in, bytes_out, bytes_inside, bytes_filled, allocations, host_allocations, peak_bytes,
        unfinished;
    uint64_t calls[CALL_COUNT], waits[CALL_COUNT]; /* made; those in which the host waited for the device */
    KernelRow *kernels;
    struct OutsideRow { /* fakecuda_enqueue, by name */
        char name[32];
        /* early: calls whose stream waits for a part of a graph at most; captured: in a graph */
        uint64_t calls, bytes, early, captured;
    } outside[16];
    TextList leaks, misuse, injected, unknown;
    Fault *faults;
    int fault_count;
} Report;
extern Report report;
void text_add(TextList *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void report_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_leak(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_fault(CuResult error, const char *message);
void report_outside(const char *name, uint64_t bytes, bool early, bool captured);
KernelRow *report_kernel(const char *name); /* made where there is none */
void report_reset(void);
char *report_json(void); /* from malloc */

#endif
