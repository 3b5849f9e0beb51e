/* device.h: what runs programs.  device/null, device/cpu and device/cuda implement it; tests/conformance runs one suite
 * over every device. */
#ifndef AMP_RUNTIME_DEVICE_DEVICE_H
#define AMP_RUNTIME_DEVICE_DEVICE_H

#include <stdbool.h>

#include "amp/cpu.h"
#include "amp/cuda.h"
#include "amp/observe.h"
#include "runtime/device/comm_calls.h"
#include "runtime/memory/device_memory.h"
#include "runtime/model/log.h"
#include "runtime/model/messages.h"
#include "runtime/model/model.h"

typedef struct amp_device amp_device;
struct amp_product_choice;

typedef struct amp_device_options {
    int32_t threads;        /* 0: one per processor */
    const amp_log *log;     /* lives as long as the device */
    const amp_model *model; /* as the device runs it; outlives the device */
    const amp_cpu_options *cpu;
    const amp_cuda_options *cuda;
} amp_device_options;

/* Where callers' arrays of inputs are.  Of the last the host cannot look at indices. */
typedef enum amp_input_memory {
    AMP_INPUTS_HOST,
    AMP_INPUTS_PINNED, /* page-locked: the device copies them itself, after the call has returned */
    AMP_INPUTS_DEVICE
} amp_input_memory;

/* After each kernel of a run, by its thread; NULL: nothing.  A failure ends the run. */
typedef struct amp_kernel_hooks {
    amp_status (*after)(void *user, int32_t kernel, amp_error *err); /* what it wrote is there */
    /* Of a COLLECTIVE: adds |data| up over ranks, in place, and waits; before |after|.  NULL: there is one rank, or the
     * device does it.  |what| names it. */
    amp_status (*sum)(void *user, const char *what, float *data, size_t count, amp_error *err);
    void *user;
} amp_kernel_hooks;

/* Of a run that executes its program once for each of several micro-batches, one after the other. */
typedef struct amp_micro_batches {
    int64_t first, count; /* 0: once, and it is for none */
    int64_t *number;      /* memory of the device, where the program reads which one it is; NULL: it does not */
    /* What each has left: |bytes|, for the first at |from|, and for the others after it; in memory of the device.
     * The program reads them at |to|.  NULL: they are there. */
    void *to;
    const void *from;
    size_t bytes;
} amp_micro_batches;

/* One execution of a program. */
typedef struct amp_run {
    const amp_program *program;
    void *const
        *buffers; /* by buffer of the program: memory of the device; INPUT: the caller's array; WATCH may be NULL */
    amp_sizes sizes;
    /* For devices with memory of their own: */
    amp_input_memory inputs_in;
    void *flags; /* the FLAG buffers are together */
    size_t flag_bytes;
    amp_device_memory *params; /* where the params are */
    bool writes_params;
    bool poisons_temporaries; /* what a temporary held is gone after its last kernel: for sanitizers */
    /* Called with |watcher| after each kernel; NULL: not called.  A failure ends the run. */
    amp_status (*after_kernel)(const void *watcher, int32_t kernel, amp_error *err);
    bool watcher_waits; /* until what the kernel wrote is there; else it need only have been started */
    const void *watcher;
    amp_kernel_hooks hooks;  /* |after|: of devices that run on the host's memory */
    const amp_share *shares; /* by state of the model: kernels that update one run for its share; NULL: all have all */
    amp_micro_batches batches; /* of a program, either always several or always one at a time */
    const uint8_t *needed;     /* by kernel, 0: the run can do without it; NULL: it needs all */
    uint64_t selection;        /* a hash of |needed|; 0: all */
    bool looked_at;            /* LOOK buffers count in it: kernels alone do that */
    bool *began;               /* of a run that fails: a device may clear it if no kernel has begun */
} amp_run;

static inline bool amp_run_needs(const amp_run *run, int32_t kernel) { return !run->needed || run->needed[kernel]; }

/* A matrix of floats in memory of the device, whose numbers are counted (amp/observe.h). */
typedef struct amp_counted {
    const void *memory;
    uint32_t layout, storage;
    int64_t rows, cols;
    int64_t gap; /* elements from the end of a row to the next */
} amp_counted;

/* Of an input of indices in device memory: the first one that is out of range, as ~(place << 32 | index); 0: none.
 * Programs read amp_index_instead in its place. */
typedef uint64_t amp_index_fault;

static inline int32_t amp_index_instead(const amp_model_input *input) {
    const int64_t ignore = input->index_ignore;
    return ignore >= INT32_MIN && ignore <= INT32_MAX ? (int32_t)ignore : 0;
}

/* Room for the inputs of a run. */
typedef struct amp_input_room {
    const void *header; /* bytes that the host may change between runs; they go with the inputs */
    size_t header_bytes, input_bytes;
    size_t host_bytes;      /* of |input_bytes|, what comes from the host at most, */
    size_t staged_bytes;    /* and of these from memory that is not page-locked */
    const size_t *separate; /* by input of the model: its bytes, each in an allocation of its own; NULL: all in one */
    int32_t count;          /* of them */
    /* With runs that have AMP_INPUTS_DEVICE, else NULL: */
    const amp_model_input *inputs; /* by input of the model */
    void *faults;                  /* on the device, by input: an amp_index_fault of the last of these runs */
} amp_input_room;

/* The collectives of a step, in the order in which all ranks make them.  Each may begin once kernel |after| of the
 * program has ended, and those before it: no collective may before those in front of it in the list. */
typedef struct amp_device_exchange {
    const amp_program *program;
    const amp_device_collective *list;
    int32_t count;
} amp_device_exchange;

enum { AMP_DEVICE_AT_END = INT32_MAX }; /* |after|: it waits for all that was enqueued before it */

/* Who makes products, of devices that choose (amp/cuda.h). */
enum { AMP_CHOICES_NAME = 32 };
typedef struct amp_device_choice_calls {
    /* Before reserve measures for runs that there were already: they are waited for.  An error says why nothing is
     * chosen. */
    amp_status (*prepare)(amp_device *device, amp_error *err);
    bool (*at)(const amp_device *device, int32_t index, struct amp_product_choice *out); /* false: there are no more */
    amp_status (*save)(amp_device *device, const char *path, amp_error *err);
    /* All ranks take rank 0's choices, if bits depend on them.  Before the first run; all ranks make the call. */
    amp_status (*share)(amp_device *device, struct amp_comm *comm, amp_error *err);
    /* A name of all choices on which bits depend; "": none does. */
    void (*name)(const amp_device *device, char name[AMP_CHOICES_NAME]);
} amp_device_choice_calls;

/* What a device with memory of its own does besides: device memory.  Runs are started and not waited for. */
typedef struct amp_device_memory_calls {
    amp_device_memory *(*memory)(amp_device *device); /* lives at least as long as the device */
    /* Around several calls by one thread, which then take less time.  Not nested; leave only if enter gave AMP_OK. */
    amp_status (*enter)(amp_device *device, amp_error *err);
    void (*leave)(amp_device *device);
    /* *|out|: where programs find the header. */
    amp_status (*reserve_inputs)(amp_device *device, const amp_input_room *room, void **out, amp_error *err);
    /* What the host reads after runs. */
    amp_status (*reserve_readback)(amp_device *device, void *block, size_t bytes, amp_error *err);
    /* Starts a copy of the scalars to the host, after all runs so far.  Never more than AMP_READBACKS at a time. */
    amp_status (*start_readback)(amp_device *device, amp_error *err);
    /* The oldest copy under way; NULL where it is not done, unless |wait|.  Readable until the next start_readback. */
    amp_status (*finish_readback)(amp_device *device, bool wait, const void **out, amp_error *err);
    /* After all runs so far; they return when the copy is done. */
    amp_status (*read)(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err);
    amp_status (*write)(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err);
    void (*settle)(amp_device *device); /* waits for all runs, or for nothing after a fatal error */
    /* That it holds besides what allocators gave it: in its memory, or of the host's. */
    size_t (*bytes)(const amp_device *device, bool on_device);
    /* AMP_INVALID_ARGUMENT where |array|, for input |name|, is in no such memory.  NULL: all runs have AMP_INPUTS_HOST.
     */
    amp_status (*check_array)(amp_device *device, amp_input_memory memory, const char *name, const void *array,
                              size_t bytes, amp_error *err);
    /* Page-locked memory; NULL: there is none.  Giving it back waits for copies of inputs. */
    amp_status (*alloc_pinned)(amp_device *device, size_t bytes, void **out, amp_error *err);
    void (*free_pinned)(amp_device *device, void *memory);
    /* From one place of its memory to another, after all runs so far; not waited for. */
    amp_status (*copy)(amp_device *device, void *to, const void *from, size_t bytes, amp_error *err);
    /* Collectives of ranks on its memory (comm_calls.h, of the same names), those inside of programs too; after a
     * failure of the comm every call fails with it.  Before the first run of the program; the list lives until detach.
     * NULL: ranks exchange by the host's memory. */
    amp_status (*attach)(amp_device *device, struct amp_comm *comm, const amp_device_exchange *exchange,
                         amp_error *err);
    void (*detach)(amp_device *device); /* also where it is not attached */
    /* All of them, after a run of the program; runs from now on wait for them, and the host does not. */
    amp_status (*enqueue)(amp_device *device, amp_error *err);
    /* Others, which may begin together, after all runs and collectives so far; the same. */
    amp_status (*enqueue_list)(amp_device *device, const amp_device_collective *list, int32_t count, amp_error *err);
    /* To zeros, after all runs and collectives so far; not waited for.  |bytes|: a multiple of 4. */
    amp_status (*clear)(amp_device *device, void *to, size_t bytes, amp_error *err);
    /* What was enqueued so far has written |params|: other sessions' runs wait for it. */
    amp_status (*wrote_params)(amp_device *device, amp_device_memory *params, amp_error *err);
    const amp_device_choice_calls *choices; /* NULL: it makes all products itself */
} amp_device_memory_calls;

enum { AMP_READBACKS = 8 };

typedef struct amp_device_type {
    const char *name;
    amp_status (*create)(const amp_device_options *options, const amp_allocator *allocator, amp_device **out,
                         amp_error *err);
    void (*destroy)(amp_device *device); /* NULL is a no-op */
    /* What running |program| takes besides at |sizes|: memory, which then does for smaller ones, too, and with
     * device memory the code of its launches.  What was reserved is not allocated, compiled or loaded by a run. */
    amp_status (*reserve)(amp_device *device, const amp_program *program, amp_sizes sizes, amp_error *err);
    amp_status (*run)(amp_device *device, const amp_run *run, amp_error *err);
    bool computes; /* false: results are zeros and states stay as they are */
    /* Adds to |*to|: at once, or after all runs so far and by the time that finish_counts returns.  Called between runs
     * or by after_kernel.  NULL: it computes nothing. */
    amp_status (*count_numbers)(amp_device *device, const amp_counted *what, amp_number_bins *to, amp_error *err);
    amp_status (*finish_counts)(amp_device *device, amp_error *err);
    const amp_device_memory_calls *device_memory; /* NULL: programs run on the host's memory */
} amp_device_type;

struct amp_device { /* the head of every device */
    const amp_device_type *type;
    amp_allocator allocator;
};

extern const amp_device_type amp_device_cpu, amp_device_cuda, amp_device_null;
extern const amp_device_type *const amp_device_types[]; /* devices.c: of this build, then NULL */

#endif
