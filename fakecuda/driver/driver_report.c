/* driver_report.c: what is remembered for the report, and the report as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
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

void report_outside(const char *name, uint64_t bytes, bool early, bool captured) {
    struct OutsideRow *row = report.outside, *end = row + sizeof report.outside / sizeof *row;
    while (row < end && row->calls && strcmp(row->name, name) != 0) row++;
    if (row == end) return;
    snprintf(row->name, sizeof row->name, "%s", name);
    row->calls++;
    row->bytes += bytes;
    row->early += early;
    row->captured += captured;
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

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

static void put(amp_json_writer *w, const char *key, uint64_t value) { amp_json_put_int(w, key, (int64_t)value); }

static void put_texts(amp_json_writer *w, const char *key, const TextList *l) {
    amp_json_begin_array(w, key);
    for (int i = 0; i < l->count; i++) amp_json_put_string(w, NULL, l->items[i]);
    amp_json_end_array(w);
}

/* Of each call its number, where it is not 0. */
static void put_calls(amp_json_writer *w, const char *key, const uint64_t *counts) {
    amp_json_begin_object(w, key);
    for (int i = 0; i < CALL_COUNT; i++)
        if (counts[i]) put(w, call_names[i], counts[i]);
    amp_json_end_object(w);
}

static void put_outside(amp_json_writer *w) {
    amp_json_begin_object(w, "outside");
    for (size_t i = 0; i < sizeof report.outside / sizeof *report.outside && report.outside[i].calls; i++) {
        amp_json_begin_object(w, report.outside[i].name);
        put(w, "calls", report.outside[i].calls);
        put(w, "bytes", report.outside[i].bytes);
        put(w, "early", report.outside[i].early);
        put(w, "captured", report.outside[i].captured);
        amp_json_end_object(w);
    }
    amp_json_end_object(w);
}

static void put_counters(amp_json_writer *w, const ExecCounters *c) {
#define COUNTER(field) put(w, #field, c->field)
    COUNTER(thread_instructions);
    COUNTER(warp_instructions);
    amp_json_begin_object(w, "by_kind");
    for (int i = 0; i < 16; i++)
        if (exec_kind_names[i]) put(w, exec_kind_names[i], c->by_kind[i]);
    amp_json_end_object(w);
    COUNTER(global_loads);
    COUNTER(global_stores);
    COUNTER(global_load_bytes);
    COUNTER(global_store_bytes);
    COUNTER(sectors);
    COUNTER(ideal_sectors);
    COUNTER(shared_accesses);
    COUNTER(bank_conflicts);
    COUNTER(tensor_ops);
    COUNTER(tensor_flops);
    COUNTER(other_flops);
    COUNTER(barriers);
    COUNTER(atomics);
    COUNTER(async_bytes);
    COUNTER(blocks);
    COUNTER(warps);
    COUNTER(longest_warp);
#undef COUNTER
}

static void put_kernels(amp_json_writer *w) {
    amp_json_begin_array(w, "kernels");
    for (const KernelRow *k = report.kernels; k; k = k->next) {
        amp_json_begin_object(w, NULL);
        amp_json_put_string(w, "name", k->name);
        put(w, "launches", k->launches);
        put(w, "graph_launches", k->graph_launches);
        put(w, "registers", (uint64_t)k->info.registers);
        put(w, "static_shared", (uint64_t)k->info.static_shared);
        put(w, "dynamic_shared", (uint64_t)k->dynamic_shared);
        put(w, "local_bytes", (uint64_t)k->info.local_bytes);
        put(w, "max_threads", (uint64_t)k->info.max_threads);
        put(w, "param_bytes", (uint64_t)k->info.param_bytes);
        put_counters(w, &k->counters);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

static void put_totals(amp_json_writer *w) {
    ExecCounters all = {0};
    uint64_t launches = 0, waits = 0;
    for (const KernelRow *k = report.kernels; k; k = k->next) {
        launches += k->launches;
        exec_counters_add(&all, &k->counters);
    }
    for (int i = 0; i < CALL_COUNT; i++) waits += report.waits[i];
    amp_json_begin_object(w, "totals");
    put(w, "launches", launches);
    put(w, "graph_launches", report.graph_launches);
    put(w, "host_synchronisations", waits);
    put(w, "bytes_host_to_device", report.bytes_in);
    put(w, "bytes_device_to_host", report.bytes_out);
    put(w, "bytes_device_to_device", report.bytes_inside);
    put(w, "bytes_filled", report.bytes_filled);
    put(w, "allocations", report.allocations);
    put(w, "host_allocations", report.host_allocations);
    put(w, "peak_bytes", report.peak_bytes);
    put(w, "unfinished", report.unfinished);
    put_counters(w, &all);
    amp_json_end_object(w);
}

static void put_faults(amp_json_writer *w) {
    amp_json_begin_array(w, "faults");
    for (int i = 0; i < report.fault_count; i++) {
        amp_json_begin_object(w, NULL);
        put(w, "error", (uint64_t)report.faults[i].error);
        amp_json_put_string(w, "name", error_name(report.faults[i].error));
        amp_json_put_string(w, "message", report.faults[i].message);
        amp_json_end_object(w);
    }
    amp_json_end_array(w);
}

char *report_json(void) {
    amp_json_writer w;
    amp_json_writer_init(&w, NULL);
    amp_json_begin_object(&w, NULL);
    amp_json_put_string(&w, "device",
                        device_arch_known(driver.settings.arch) ? device_name_of(driver.settings.arch) : "none");
    put(&w, "arch", (uint64_t)driver.settings.arch);
    put(&w, "seed", driver.settings.seed);
    put(&w, "driver_version", (uint64_t)driver.settings.driver_version);
    put_totals(&w);
    put_calls(&w, "synchronisations", report.waits);
    put_calls(&w, "calls", report.calls);
    put_outside(&w);
    put_kernels(&w);
    put_faults(&w);
    put_texts(&w, "misuse", &report.misuse);
    put_texts(&w, "leaks", &report.leaks);
    put_texts(&w, "injected", &report.injected);
    put_texts(&w, "unknown", &report.unknown);
    amp_json_end_object(&w);
    char *text = NULL;
    if (amp_json_writer_status(&w, NULL) == AMP_OK) {
        text = must_alloc(w.size + 2);
        memcpy(text, w.data, w.size);
        text[w.size] = '\n';
    }
    amp_json_writer_free(&w);
    return text;
}
