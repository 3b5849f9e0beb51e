/* driver.h: the objects of the stand-in driver and what its files call of one another.
 *
 * One lock guards everything: call_begin takes it, call_end gives it back; all other functions here run under it. */
#ifndef FAKECUDA_DRIVER_DRIVER_H
#define FAKECUDA_DRIVER_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/device/cuda/driver_api.h"
#include "fakecuda/exec/exec.h"

enum { /* results and attributes that the product has no use for */
       CU_CONTEXT_IS_DESTROYED = 709,
       CU_CAPTURE_MERGE = 902,
       CU_CAPTURE_UNMATCHED = 903,
       CU_CAPTURE_UNJOINED = 904,
       CU_CAPTURE_ISOLATION = 905,
       CU_CAPTURE_IMPLICIT = 906,
       CU_CAPTURED_EVENT = 907,
       CU_INVALID_CLUSTER_SIZE = 912,
       CAPTURE_GLOBAL = 0,
       CAPTURE_THREAD_LOCAL = 1,
       CAPTURE_RELAXED = 2,
       MAX_DEVICES = 16,
       MESSAGE_SIZE = 1024,
       SHARED_WITHOUT_OPTIN = 48 * 1024
};

typedef struct Context Context;
typedef struct Stream Stream;
typedef struct Graph Graph;
typedef struct KernelRow KernelRow;

/* ---- settings.c -------------------------------------------------------------------------------------------------- */

typedef struct Settings {
    int arch, devices, driver_version, threads, resident;
    uint64_t seed, memory;
    bool exact, verbose;
    char report[1024];
    char times[1024];  /* as FAKECUDA_TIMES has it */
    char problem[256]; /* what in the environment cannot be read; empty: nothing.  Then there is no device */
} Settings;
void settings_read(Settings *s);
/* Nanoseconds that FAKECUDA_TIMES gives a kernel or a piece of work from outside; |otherwise|: it gives none. */
uint64_t settings_time(const char *name, uint64_t otherwise);
/* The newest PTX that a driver of that version takes: 90 for 13000. */
int settings_ptx_version(int driver_version);

/* ---- contexts.c: devices ----------------------------------------------------------------------------------------- */

bool device_arch_known(int arch);
const char *device_name_of(int arch);
bool device_attribute_of(int arch, int attribute, int *value);
CuResult device_count(int *count);
CuResult device_get(CuDevice *device, int ordinal);
CuResult device_name(char *name, int size, CuDevice device);
CuResult device_total_memory(size_t *bytes, CuDevice device);
CuResult device_attribute(int *value, int attribute, CuDevice device);

/* ---- errors.c ---------------------------------------------------------------------------------------------------- */

const char *error_name(CuResult error); /* NULL: no such error */
const char *error_text(CuResult error);
bool error_is_fatal(CuResult error); /* stays until the context is gone */

/* ---- contexts.c: handles: what the application holds is a number, checked at each use and never used again ------- */

typedef enum HandleKind {
    HANDLE_CONTEXT = 1,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_GRAPH_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_KINDS
} HandleKind;
extern const char *const handle_kind_names[HANDLE_KINDS];
void *handle_new(HandleKind kind, void *object, Context *owner);
/* NULL: never was one, or is no more (which is reported as misuse). */
void *handle_object(HandleKind kind, const void *handle);
void handle_end(void *handle);
/* Calls |visit| for each live handle of |owner|, oldest first; it may end it. */
void handle_each(Context *owner, void (*visit)(HandleKind kind, void *object, void *user), void *user);

/* ---- state ------------------------------------------------------------------------------------------------------- */

typedef struct Driver {
    Settings settings;
    bool initialised;
    uint64_t random;   /* state of chance */
    uint64_t sequence; /* of work and markers, in the order of the host's calls */
    uint64_t launches; /* kernels so far: their seeds */
    uint64_t captures; /* ids */
    Context *primary[MAX_DEVICES];
} Driver;
extern Driver driver;
uint64_t chance(uint64_t below);
void *must_alloc(size_t bytes); /* zeroed; ends the process where there is no memory */
void *must_grow(void *old, size_t bytes);

/* ---- api.c ------------------------------------------------------------------------------------------------------- */

typedef enum CallId {
#define CALL_ID(name, symbol, parameters) CALL_##symbol,
    CUDA_DRIVER_CALLS(CALL_ID)
#undef CALL_ID
        CALL_cuGetProcAddress_v2,
    CALL_COUNT
} CallId;
extern const char *const call_names[CALL_COUNT];

typedef struct Call {
    CallId id;
    Context *context; /* the current one, of calls that need one */
    CuResult result;
    CuResult after; /* an injected error of a call that gives something back */
} Call;
bool call_begin(Call *call, CallId id);
CuResult call_end(Call *call, CuResult result);
void driver_lock(void);
void driver_unlock(void);

bool inject_plan(const char *plan);
CuResult inject_next(CallId id); /* counts the call; 0: it is not to fail */

/* ---- contexts.c -------------------------------------------------------------------------------------------------- */

typedef struct Allocation {
    CuPointer address;
    uint64_t bytes, number;
} Allocation;

struct Context {
    CuContext handle;
    int device, references;
    CuResult sticky;
    ExecMemory *memory;
    AluContext alu;
    Stream *streams, *legacy;
    Allocation *allocations;
    int allocation_count, allocation_room;
    struct Capture *captures;
    uint64_t nanoseconds; /* of work so far: an order of magnitude, so that elapsed times are positive and repeatable */
};
CuResult context_retain(CuContext *out, CuDevice device);
CuResult context_release(CuDevice device);
CuResult context_push(CuContext handle);
CuResult context_pop(CuContext *out);
CuResult context_get_current(CuContext *out);
CuResult context_current(Context **out); /* of this thread: what calls need */
CuResult context_sync(Context *c, CallId id);
void context_fail(Context *c, CuResult error,
                  const char *message); /* a fatal error: kept, told, queued work is given up */
void contexts_leaks(void);              /* of those that are still held: at exit */
void contexts_abandon(void);

/* ---- driver_memory.c --------------------------------------------------------------------------------------------- */

CuResult memory_info(Context *c, size_t *free_bytes, size_t *total);
CuResult memory_alloc(Context *c, CuPointer *out, size_t bytes);
CuResult memory_free(Context *c, CuPointer pointer);
bool memory_inside(Context *c, CuPointer address, uint64_t bytes); /* of one live allocation; misuse is reported */

typedef enum HostKind { HOST_PAGEABLE, HOST_PINNED, HOST_PAST_END } HostKind;
HostKind host_kind(const void *pointer, uint64_t bytes);
CuResult host_alloc(Context *c, void **out, size_t bytes, unsigned int flags);
CuResult host_free(Context *c, void *pointer);
CuResult pointer_attribute(void *value, int attribute, CuPointer pointer);
void host_leaks(const Context *c);
void host_free_all(const Context *c);

CuResult copy_in(Context *c, CuPointer to, const void *from, size_t bytes, CuStream stream);
CuResult copy_out(Context *c, void *to, CuPointer from, size_t bytes, CuStream stream);
CuResult copy_inside(Context *c, CuPointer to, CuPointer from, size_t bytes, CuStream stream);
/* |lines| times |count| values of |width| bytes, lines |pitch| bytes apart. */
CuResult copy_fill(Context *c, CuPointer to, size_t pitch, uint32_t value, int width, size_t count, size_t lines,
                   CuStream stream);

/* ---- modules.c --------------------------------------------------------------------------------------------------- */

typedef struct PtxHeader {
    int version, target; /* 90, 80; 0: not found */
    char suffix;
} PtxHeader;
PtxHeader ptx_header(const char *text);

typedef struct LoadedFunction {
    CuFunction handle;
    struct LoadedModule *module;
    const PtxFunction *ptx;
    ExecKernelInfo info;
    int max_dynamic_shared;
    KernelRow *row;
    struct LoadedFunction *next;
} LoadedFunction;
typedef struct LoadedModule {
    CuModule handle;
    Context *context;
    ExecModule *code;
    LoadedFunction *functions;
} LoadedModule;
CuResult module_load(Context *c, CuModule *out, const void *image, unsigned int count, int *options, void **values);
CuResult module_unload(CuModule module);
CuResult module_function(CuModule module, CuFunction *out, const char *name);
void module_free(LoadedModule *m);
CuResult function_attribute(int *value, int attribute, CuFunction function);
CuResult function_set_attribute(CuFunction function, int attribute, int value);

typedef struct LaunchShape {
    const uint32_t *grid, *block; /* 3 each */
    uint32_t shared_bytes;
    bool programmatic; /* it need not wait for the kernel before it */
} LaunchShape;
CuResult launch_kernel(Context *c, CuFunction function, const LaunchShape *shape, CuStream stream, void **params,
                       void **extra);
CuResult launch_configured(Context *c, const CuLaunchConfig *config, CuFunction function, void **params, void **extra);

#include "fakecuda/driver/driver_report.h"
#include "fakecuda/driver/streams.h"

#endif
