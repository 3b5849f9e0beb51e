/* ort.c: see ort.h. */
#include "ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places in the table of functions, from 0. */
enum {
    AT_ERROR_TEXT = 2,
    AT_MAKE_ENVIRONMENT = 3,
    AT_LOAD_MODEL = 7,
    AT_RUN = 9,
    AT_MAKE_OPTIONS = 10,
    AT_SET_OPTIMISATION = 23,
    AT_SET_THREADS_IN_OP = 24,
    AT_SET_THREADS_OF_OPS = 25,
    AT_WRAP_TENSOR = 49,
    AT_DESCRIBE_MEMORY = 69,
    AT_FREE_ENVIRONMENT = 92,
    AT_FREE_ERROR = 93,
    AT_FREE_MEMORY_DESCRIPTION = 94,
    AT_FREE_MODEL = 95,
    AT_FREE_VALUE = 96,
    AT_FREE_OPTIONS = 100
};
enum { TABLE_VERSION = 11, WARNINGS = 2, ALL_OPTIMISATIONS = 99, PLAIN_ALLOCATOR = 0, ANY_MEMORY = 0 };

/* Every function but those that free returns an error, or NULL. */
typedef void *Error;
typedef void Function(void);
typedef struct Library {
    Function *const *(*table)(uint32_t version);
    const char *(*version)(void);
} Library;

struct Ort {
    void *handle;
    const Library *library;
    Function *const *at;
    void *environment, *options, *model, *memory;
};

struct OrtCaller {
    Ort *ort;
    void *x[ORT_MOST_INPUTS], *y;
    const char *names[ORT_MOST_INPUTS], *y_name;
    size_t count;
};

static void free_with(const Ort *o, int place, void *object) {
    if (object) ((void (*)(void *))o->at[place])(object);
}

/* Prints and frees it. */
static int failed(const Ort *o, Error error) {
    if (!error) return 0;
    fprintf(stderr, "onnxruntime: %s\n", ((const char *(*)(Error))o->at[AT_ERROR_TEXT])(error));
    free_with(o, AT_FREE_ERROR, error);
    return 1;
}

static int load(Ort *o, const char *model) {
    typedef Error MakeEnvironment(int level, const char *name, void **out);
    typedef Error MakeOptions(void **out);
    typedef Error SetNumber(void *options, int number);
    typedef Error LoadModel(void *environment, const char *path, const void *options, void **out);
    typedef Error DescribeMemory(int allocator, int kind, void **out);
    return failed(o, ((MakeEnvironment *)o->at[AT_MAKE_ENVIRONMENT])(WARNINGS, "bench", &o->environment)) ||
           failed(o, ((MakeOptions *)o->at[AT_MAKE_OPTIONS])(&o->options)) ||
           failed(o, ((SetNumber *)o->at[AT_SET_OPTIMISATION])(o->options, ALL_OPTIMISATIONS)) ||
           failed(o, ((SetNumber *)o->at[AT_SET_THREADS_IN_OP])(o->options, 1)) ||
           failed(o, ((SetNumber *)o->at[AT_SET_THREADS_OF_OPS])(o->options, 1)) ||
           failed(o, ((LoadModel *)o->at[AT_LOAD_MODEL])(o->environment, model, o->options, &o->model)) ||
           failed(o, ((DescribeMemory *)o->at[AT_DESCRIBE_MEMORY])(PLAIN_ALLOCATOR, ANY_MEMORY, &o->memory));
}

Ort *ort_open(const char *library, const char *model) {
    Ort *o = calloc(1, sizeof *o);
    if (!o) return NULL;
    o->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const Library *(*base)(void) = NULL;
    void *symbol = o->handle ? dlsym(o->handle, "OrtGetApiBase") : NULL;
    if (symbol) {
        memcpy(&base, &symbol, sizeof base);
        o->library = base();
        o->at = o->library->table(TABLE_VERSION);
    } else {
        fprintf(stderr, "%s\n", dlerror());
    }
    if (o->at && !load(o, model)) return o;
    ort_close(o);
    return NULL;
}

void ort_close(Ort *o) {
    if (!o) return;
    if (o->at) {
        free_with(o, AT_FREE_MEMORY_DESCRIPTION, o->memory);
        free_with(o, AT_FREE_MODEL, o->model);
        free_with(o, AT_FREE_OPTIONS, o->options);
        free_with(o, AT_FREE_ENVIRONMENT, o->environment);
    }
    free(o); /* the library stays: it does not like to be closed */
}

const char *ort_version(const Ort *o) { return o->library->version(); }

static int wrap(const Ort *o, const OrtTensor *t, void **out) {
    typedef Error WrapTensor(const void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank, int type,
                             void **out);
    const size_t bytes = (size_t)(t->dims[0] * t->dims[1]) * sizeof(float);
    return failed(o, ((WrapTensor *)o->at[AT_WRAP_TENSOR])(o->memory, t->data, bytes, t->dims, 2, t->type, out));
}

OrtCaller *ort_caller_of(Ort *o, const OrtTensor *inputs, size_t count, const OrtTensor *output) {
    OrtCaller *c = count <= ORT_MOST_INPUTS ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    *c = (OrtCaller){.ort = o, .count = count, .y_name = output->name};
    int error = wrap(o, output, &c->y);
    for (size_t i = 0; i < count && !error; i++) {
        c->names[i] = inputs[i].name;
        error = wrap(o, &inputs[i], &c->x[i]);
    }
    if (!error) return c;
    ort_caller_free(c);
    return NULL;
}

OrtCaller *ort_caller(Ort *o, float *x, int64_t inputs, float *y, int64_t outputs, int64_t n) {
    const OrtTensor in = {"x", x, ORT_F32, {n, inputs}}, out = {"logits", y, ORT_F32, {n, outputs}};
    return ort_caller_of(o, &in, 1, &out);
}

int ort_run(OrtCaller *c) {
    typedef Error Run(void *model, const void *options, const char *const *input_names, const void *const *inputs,
                      size_t input_count, const char *const *output_names, size_t output_count, void **outputs);
    void *outputs[] = {c->y};
    Run *run = (Run *)c->ort->at[AT_RUN];
    return failed(c->ort,
                  run(c->ort->model, NULL, c->names, (const void *const *)c->x, c->count, &c->y_name, 1, outputs));
}

void ort_caller_free(OrtCaller *c) {
    if (!c) return;
    for (size_t i = 0; i < c->count; i++) free_with(c->ort, AT_FREE_VALUE, c->x[i]);
    free_with(c->ort, AT_FREE_VALUE, c->y);
    free(c);
}
