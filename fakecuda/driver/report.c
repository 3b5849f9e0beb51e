/* report.c: what is remembered for the report. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

Report report;

enum { MOST = 1000 }; /* lines of a list; the rest is left out */

static void text_add_args(TextList *l, const char *format, va_list args) {
    char line[MESSAGE_SIZE];
    vsnprintf(line, sizeof line, format, args);
    if (driver.settings.verbose) fprintf(stderr, "fakecuda: %s\n", line);
    if (l->count == MOST) return;
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 16;
        l->items = must_grow(l->items, (size_t)l->room * sizeof *l->items);
    }
    size_t size = strlen(line) + 1;
    l->items[l->count++] = memcpy(must_alloc(size), line, size);
}

void text_add(TextList *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_add_args(l, format, args);
    va_end(args);
}

void report_misuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_add_args(&report.misuse, format, args);
    va_end(args);
}

void report_leak(const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_add_args(&report.leaks, format, args);
    va_end(args);
}

void report_fault(CuResult error, const char *message) {
    if (driver.settings.verbose) fprintf(stderr, "fakecuda: %s: %s\n", error_name(error), message);
    report.faults = must_grow(report.faults, (size_t)(report.fault_count + 1) * sizeof *report.faults);
    size_t size = strlen(message) + 1;
    report.faults[report.fault_count++] = (Fault){error, memcpy(must_alloc(size), message, size)};
}

KernelRow *report_kernel(const char *name) {
    KernelRow **link = &report.kernels;
    while (*link && strcmp((*link)->name, name) != 0) link = &(*link)->next;
    if (*link) return *link;
    *link = must_alloc(sizeof **link);
    size_t size = strlen(name) + 1;
    (*link)->name = memcpy(must_alloc(size), name, size);
    return *link;
}

static void text_clear(TextList *l) {
    for (int i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
    *l = (TextList){0};
}

/* Rows of kernels stay, since functions point to them, with nothing counted. */
void report_reset(void) {
    KernelRow *kernels = report.kernels;
    for (KernelRow *k = kernels; k; k = k->next) *k = (KernelRow){.next = k->next, .name = k->name, .info = k->info};
    TextList *lists[] = {&report.leaks, &report.misuse, &report.injected, &report.unknown};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) text_clear(lists[i]);
    for (int i = 0; i < report.fault_count; i++) free(report.faults[i].message);
    free(report.faults);
    report = (Report){.kernels = kernels};
}
