/* contexts.c: the devices that there are, primary contexts, and the handles of what contexts own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* Numbers that are no addresses, so that an application that dereferences one faults. */

/* 16 bits of mark, 8 of kind, 40 of slot.  The mark makes the number no valid address on x86-64 and ARM. */
#define MARK 0xfacaull
enum { SLOT_BITS = 40, MARK_SHIFT = 48 };

typedef struct Slot {
    void *object; /* NULL: ended */
    Context *owner;
    HandleKind kind;
} Slot;
static Slot *slots;
static size_t slot_count, slot_room;

const char *const handle_kind_names[HANDLE_KINDS] = {
    [HANDLE_CONTEXT] = "context",       [HANDLE_MODULE] = "module",
    [HANDLE_FUNCTION] = "function",     [HANDLE_STREAM] = "stream",
    [HANDLE_EVENT] = "event",           [HANDLE_GRAPH] = "graph",
    [HANDLE_GRAPH_NODE] = "graph node", [HANDLE_GRAPH_EXEC] = "executable graph"};

void *handle_new(HandleKind kind, void *object, Context *owner) {
    if (slot_count == slot_room) {
        slot_room = slot_room ? 2 * slot_room : 64;
        slots = must_grow(slots, slot_room * sizeof *slots);
    }
    slots[slot_count] = (Slot){.object = object, .owner = owner, .kind = kind};
    return (void *)(uintptr_t)(MARK << MARK_SHIFT | (uint64_t)kind << SLOT_BITS | ++slot_count);
}

static Slot *slot_of(const void *handle) {
    uint64_t bits = (uint64_t)(uintptr_t)handle, slot = bits & ((1ull << SLOT_BITS) - 1);
    if (bits >> MARK_SHIFT != MARK || slot == 0 || slot > slot_count) return NULL;
    Slot *s = &slots[slot - 1];
    return s->kind == (HandleKind)(bits >> SLOT_BITS & 0xff) ? s : NULL;
}

void *handle_object(HandleKind kind, const void *handle) {
    Slot *s = slot_of(handle);
    if (!s) {
        if (handle) report_misuse("%p is no %s", handle, handle_kind_names[kind]);
        return NULL;
    }
    if (s->kind != kind) report_misuse("a %s is used as a %s", handle_kind_names[s->kind], handle_kind_names[kind]);
    else if (!s->object)
        report_misuse("%s %llu is used after its end", handle_kind_names[kind], (unsigned long long)(s - slots + 1));
    return s->kind == kind ? s->object : NULL;
}

void handle_end(void *handle) {
    Slot *s = slot_of(handle);
    if (s) s->object = NULL;
}

void handle_each(Context *owner, void (*visit)(HandleKind kind, void *object, void *user), void *user) {
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].object && slots[i].owner == owner) visit(slots[i].kind, slots[i].object, user);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* By FAKECUDA_ARCH.  Limits by compute capability: the CUDA programming guide's table of technical specifications. */

typedef struct DeviceKind {
    int arch;
    const char *name;
    int multiprocessors, shared_optin, shared_per_multiprocessor, threads_per_multiprocessor, blocks_per_multiprocessor;
    int clock_khz, memory_clock_khz, bus_bits, l2_bytes;
} DeviceKind;

static const DeviceKind kinds[] = {
    {75, "Tesla T4 (fakecuda)", 40, 64 << 10, 64 << 10, 1024, 16, 1590000, 5001000, 256, 4 << 20},
    {80, "NVIDIA A100-SXM4-80GB (fakecuda)", 108, 163 << 10, 164 << 10, 2048, 32, 1410000, 1593000, 5120, 40 << 20},
    {86, "NVIDIA RTX A6000 (fakecuda)", 84, 99 << 10, 100 << 10, 1536, 16, 1800000, 8001000, 384, 6 << 20},
    {89, "NVIDIA L40S (fakecuda)", 142, 99 << 10, 100 << 10, 1536, 24, 2520000, 9001000, 384, 96 << 20},
    {90, "NVIDIA H100 80GB HBM3 (fakecuda)", 132, 227 << 10, 228 << 10, 2048, 32, 1980000, 2619000, 5120, 50 << 20},
    {120, "NVIDIA RTX PRO 6000 Blackwell (fakecuda)", 188, 99 << 10, 100 << 10, 1536, 24, 2617000, 14001000, 512,
     128 << 20},
};

static const DeviceKind *kind_of(int arch) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].arch == arch) return &kinds[i];
    return NULL;
}

bool device_arch_known(int arch) { return kind_of(arch) != NULL; }
const char *device_name_of(int arch) { return kind_of(arch)->name; }

/* CUdevice_attribute by its number. */
bool device_attribute_of(int arch, int attribute, int *value) {
    const DeviceKind *k = kind_of(arch);
    const struct {
        int attribute, value;
    } table[] = {
        {1, 1024}, /* max threads per block */
        {2, 1024}, /* max block dim x, y, z */
        {3, 1024},
        {4, 64},
        {5, 2147483647}, /* max grid dim x, y, z */
        {6, 65535},
        {7, 65535},
        {8, SHARED_WITHOUT_OPTIN}, /* max shared memory per block */
        {9, 65536},                /* constant memory */
        {10, 32},                  /* warp size */
        {11, 2147483647},          /* max pitch */
        {12, 65536},               /* registers per block */
        {13, k->clock_khz},
        {14, 512}, /* texture alignment */
        {15, 1},   /* copies beside kernels */
        {16, k->multiprocessors},
        {31, 1}, /* concurrent kernels */
        {32, 1}, /* ECC */
        {36, k->memory_clock_khz},
        {37, k->bus_bits},
        {38, k->l2_bytes},
        {39, k->threads_per_multiprocessor},
        {40, 2}, /* copy engines */
        {75, arch / 10},
        {76, arch % 10},
        {81, k->shared_per_multiprocessor},
        {82, 65536}, /* registers per multiprocessor */
        {97, k->shared_optin},
        {106, k->blocks_per_multiprocessor},
        {111, 1024},       /* shared memory that the system keeps per block */
        {120, arch >= 90}, /* clusters */
    };
    /* kernel timeout, integrated, mapped host memory, compute mode, PCI domain, bus and device, TCC driver, unified
     * addressing, stream priorities, managed, pageable and concurrent managed memory, cooperative launch, pools */
    static const int absent[] = {17, 18, 19, 20, 33, 34, 35, 41, 50, 78, 83, 88, 89, 95, 115};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (absent[i] == attribute) return *value = 0, true;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].attribute == attribute) {
            *value = table[i].value;
            return true;
        }
    return false;
}

static bool is_device(CuDevice device) { return device >= 0 && device < driver.settings.devices; }

CuResult device_count(int *count) {
    if (!count) return CU_INVALID_VALUE;
    *count = driver.settings.devices;
    return CU_SUCCESS;
}

CuResult device_get(CuDevice *device, int ordinal) {
    if (!device) return CU_INVALID_VALUE;
    if (!is_device(ordinal)) return CU_INVALID_DEVICE;
    *device = ordinal;
    return CU_SUCCESS;
}

CuResult device_name(char *name, int size, CuDevice device) {
    if (!name || size <= 0) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    snprintf(name, (size_t)size, "%s", device_name_of(driver.settings.arch));
    return CU_SUCCESS;
}

CuResult device_total_memory(size_t *bytes, CuDevice device) {
    if (!bytes) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    *bytes = driver.settings.memory;
    return CU_SUCCESS;
}

CuResult device_attribute(int *value, int attribute, CuDevice device) {
    if (!value) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    if (device_attribute_of(driver.settings.arch, attribute, value)) return CU_SUCCESS;
    text_add(&report.unknown, "device attribute %d", attribute);
    return CU_INVALID_VALUE;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Primary contexts, each thread's stack of current ones, and their end. */

enum { MAX_DEPTH = 64 };
static _Thread_local CuContext current[MAX_DEPTH];
static _Thread_local int depth;

static Context *context_new(CuDevice device) {
    ExecMemory *memory = exec_memory_new(driver.settings.memory);
    if (!memory) {
        fprintf(stderr, "fakecuda: no address space for a device of %llu bytes; see FAKECUDA_MEMORY\n",
                (unsigned long long)driver.settings.memory);
        return NULL;
    }
    Context *c = must_alloc(sizeof *c);
    c->device = device;
    c->memory = memory;
    c->alu = (AluContext){.arch = driver.settings.arch, .seed = driver.settings.seed, .exact = driver.settings.exact};
    c->legacy = must_alloc(sizeof *c->legacy);
    *c->legacy = (Stream){.context = c, .legacy = true};
    c->streams = c->legacy;
    c->handle = handle_new(HANDLE_CONTEXT, c, c);
    return c;
}

CuResult context_retain(CuContext *out, CuDevice device) {
    if (!out) return CU_INVALID_VALUE;
    if (device < 0 || device >= driver.settings.devices) return CU_INVALID_DEVICE;
    Context **c = &driver.primary[device];
    if (!*c) *c = context_new(device);
    if (!*c) return CU_OUT_OF_MEMORY;
    (*c)->references++;
    *out = (*c)->handle;
    return CU_SUCCESS;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void tell_leak(HandleKind kind, void *object, void *user) {
    (void)object, (void)user;
    if (kind == HANDLE_CONTEXT || kind == HANDLE_FUNCTION || kind == HANDLE_GRAPH_NODE)
        return; /* these go with what they belong to */
    report_leak("%s", handle_kind_names[kind]);
}

static void tell_leaks(Context *c) {
    if (c->sticky) return; /* nothing could be given back any more */
    for (int i = 0; i < c->allocation_count; i++) {
        const Allocation *a = &c->allocations[i];
        report_leak("device memory: allocation %llu, of %llu bytes", (unsigned long long)a->number,
                    (unsigned long long)a->bytes);
    }
    host_leaks(c);
    handle_each(c, tell_leak, NULL);
}

static void end_object(HandleKind kind, void *object, void *user) {
    (void)user;
    switch (kind) {
    case HANDLE_MODULE: module_free(object); break;
    case HANDLE_EVENT: event_free(object); break;
    case HANDLE_GRAPH: graph_forget(object); break;
    case HANDLE_GRAPH_EXEC: graph_exec_free(object); break;
    case HANDLE_CONTEXT: handle_end(((Context *)object)->handle); break;
    case HANDLE_STREAM: handle_end(((Stream *)object)->handle); break;
    default: break; /* functions and nodes went with their owners */
    }
}

static void context_end(Context *c) {
    report.unfinished += (uint64_t)queue_length(c);
    queue_drop_all(c);
    capture_free_all(c);
    handle_each(c, end_object, NULL);
    host_free_all(c);
    for (Stream *s = c->streams, *next; s; s = next) {
        next = s->next;
        free(s->frontier.nodes);
        free(s);
    }
    exec_memory_free(c->memory);
    free(c->allocations);
    driver.primary[c->device] = NULL;
    free(c);
}

CuResult context_release(CuDevice device) {
    if (device < 0 || device >= driver.settings.devices) return CU_INVALID_DEVICE;
    Context *c = driver.primary[device];
    if (!c) {
        report_misuse("the primary context of device %d is given back more often than it was taken", device);
        return CU_INVALID_CONTEXT;
    }
    if (--c->references) return CU_SUCCESS;
    queue_run_all(c);
    tell_leaks(c);
    context_end(c);
    return CU_SUCCESS;
}

void contexts_leaks(void) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        Context *c = driver.primary[i];
        if (!c) continue;
        if (!c->sticky) report_leak("primary context of device %d, taken %d times", i, c->references);
        tell_leaks(c);
        report.unfinished += (uint64_t)queue_length(c);
    }
}

void contexts_abandon(void) {
    for (int i = 0; i < MAX_DEVICES; i++)
        if (driver.primary[i]) context_end(driver.primary[i]);
    depth = 0;
}

void context_fail(Context *c, CuResult error, const char *message) {
    if (c->sticky) return;
    c->sticky = error;
    report_fault(error, message);
    queue_drop_all(c);
}

/* ---- the current one --------------------------------------------------------------------------------------------- */

CuResult context_push(CuContext handle) {
    if (!handle_object(HANDLE_CONTEXT, handle)) return CU_INVALID_CONTEXT;
    if (depth == MAX_DEPTH) {
        report_misuse("more than %d contexts are pushed on one thread", MAX_DEPTH);
        return CU_INVALID_VALUE;
    }
    current[depth++] = handle;
    return CU_SUCCESS;
}

CuResult context_pop(CuContext *out) {
    if (depth == 0) return CU_INVALID_CONTEXT;
    depth--;
    if (out) *out = current[depth];
    return CU_SUCCESS;
}

CuResult context_get_current(CuContext *out) {
    if (!out) return CU_INVALID_VALUE;
    *out = depth ? current[depth - 1] : NULL;
    return CU_SUCCESS;
}

CuResult context_current(Context **out) {
    if (depth == 0) return CU_INVALID_CONTEXT;
    *out = handle_object(HANDLE_CONTEXT, current[depth - 1]);
    return *out ? CU_SUCCESS : CU_CONTEXT_IS_DESTROYED;
}

CuResult context_sync(Context *c, CallId id) {
    if (c->captures) { /* in relaxed mode too: the wait could never end */
        for (Capture *capture = c->captures; capture; capture = capture->next) capture->invalid = true;
        return CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    report.waits[id]++;
    queue_run_all(c);
    return CU_SUCCESS;
}
