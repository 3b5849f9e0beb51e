/* library_choices.h: what was chosen for launches (library_products.h), and how a choice is kept. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_LIBRARY_CHOICES_H
#define AMP_RUNTIME_DEVICE_CUDA_LIBRARY_CHOICES_H

#include "runtime/device/cuda/library_products.h"
#include "runtime/device/cuda/library_trial.h"

struct amp_cuda_choice {
    amp_cuda_choice *next;
    const amp_program *program;
    const amp_model_cuda_kernel *kernel; /* where it was chosen: others of equal keys have choices of their own */
    int64_t n;
    amp_cuda_cache_key key;
    bool known;         /* by a measurement; else ours, or what another n has, until it is measured */
    bool served;        /* by the library */
    bool ran;           /* in this process: nothing of its algorithms is loaded any more */
    float own, library; /* microseconds */
    uint32_t count;
    amp_cuda_algorithm algorithms[]; /* by product; none unless |served| */
};

static inline size_t amp_cuda_choice_bytes(uint32_t count) {
    return sizeof(amp_cuda_choice) + count * sizeof(amp_cuda_algorithm);
}

/* NULL: none yet. */
amp_cuda_choice *amp_cuda_choice_for(const amp_cuda_products *p, const amp_model_cuda_kernel *k, int64_t n);

/* As it is kept on disk, in files and between ranks: its bytes, at most AMP_CUDA_CHOICE_IMAGE; |out| may be NULL. */
size_t amp_cuda_choice_image(const amp_cuda_choice *c, char *out);
/* Takes over what is kept; false: it is none of |c|'s. */
bool amp_cuda_choice_take(amp_cuda_choice *c, const void *image, size_t size);
/* What was chosen in another process is checked, and runs once before it is captured; what fails is ours. */
amp_status amp_cuda_choice_warm(const amp_cuda_launching *l, const amp_run *run, amp_cuda_choice *c, amp_error *err);

/* What choices depend on besides launches, in their key and in files. */
enum { AMP_CUDA_FACTS = 5 };
typedef struct amp_cuda_fact {
    const char *key, *what; /* "amp.driver", "driver" */
    char is[160];
} amp_cuda_fact;
void amp_cuda_products_facts(const amp_cuda_products *p, amp_cuda_fact facts[AMP_CUDA_FACTS]);
/* Of what function |function| of the model is compiled from. */
const amp_cuda_cache_key *amp_cuda_products_code(const amp_cuda_products *p, uint32_t function);

/* As large as the choices need it; after a failure they are ours. */
void amp_cuda_products_fit_workspace(amp_cuda_products *p);
/* Opens the library, unless it is open. */
amp_status amp_cuda_products_open(amp_cuda_products *p, amp_error *err);

/* ---- a file of choices (choice_file.c) --------------------------------------------------------------------------- */

/* Into p->pinned, which is for this model, device and mode. */
amp_status amp_cuda_choices_open(amp_cuda_products *p, const char *path, amp_error *err);
/* From it; false: it has none. */
bool amp_cuda_choices_recall(const amp_cuda_products *p, amp_cuda_choice *c);
/* The |index|th number of samples that it has choices for; 0: there are no more. */
int64_t amp_cuda_choices_size(const amp_cuda_products *p, int index);

#endif
