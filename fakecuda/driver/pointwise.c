/* pointwise.c: an application of the driver, with nothing of the stand-in in it: CUDA C is compiled by NVRTC, loaded,
 * put into a graph by stream capture, launched.
 *
 *     pointwise [early|past]     early: looks at the result without waiting; past: writes past the end
 *
 * Exit status 0: the result is right; 1: it is not; 2: a call failed, which stderr names; 77: there is no NVRTC or no
 * driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_sdk/nvrtc.h"
#include "runtime/device/cuda/driver_api.h"

enum { COUNT = 1000, ROUNDS = 3, WRONG = 1, FAILED = 2, MISSING = 77 };

static const char source[] =
    "extern \"C\" __global__ void scale_shift(const float *x, float *y, float a, float b, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = fmaxf(x[i] * a + b, 0.0f);\n"
    "}\n";

static CudaDriver cu;

static void check(CuResult result, const char *what) {
    const char *name = "?";
    if (result == CU_SUCCESS) return;
    cu.get_error_name(result, &name);
    fprintf(stderr, "pointwise: %s: %s\n", what, name);
    exit(FAILED);
}
#define CHECK(call) check(call, #call)

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "pointwise: %s\n", dlerror());
        exit(MISSING);
    }
#define OPEN(name, symbol, parameters) *(void **)(&cu.name) = dlsym(library, #symbol);
    CUDA_DRIVER_CALLS(OPEN)
#undef OPEN
}

static char *compile(int arch) {
    amp_nvrtc *nvrtc;
    amp_error error;
    amp_nvrtc_result result;
    if (amp_nvrtc_open(NULL, &nvrtc, &error) != AMP_OK) {
        fprintf(stderr, "pointwise: %s\n", error.message);
        exit(MISSING);
    }
    amp_nvrtc_job job = {.source = source, .name = "scale_shift.cu", .arch = arch};
    if (amp_nvrtc_compile(nvrtc, &job, &result, &error) != AMP_OK) {
        fprintf(stderr, "pointwise: %s\n", error.message);
        exit(FAILED);
    }
    char *ptx = calloc(1, result.ptx_size + 1);
    memcpy(ptx, result.ptx, result.ptx_size);
    amp_nvrtc_result_free(nvrtc, &result);
    amp_nvrtc_close(nvrtc);
    return ptx;
}

static CuModule load(CuDevice device) {
    int major, minor;
    CuModule module;
    CHECK(cu.device_attribute(&major, CU_ATTR_CC_MAJOR, device));
    CHECK(cu.device_attribute(&minor, CU_ATTR_CC_MINOR, device));
    char *ptx = compile(10 * major + minor);
    CHECK(cu.module_load(&module, ptx, 0, NULL, NULL));
    free(ptx);
    return module;
}

typedef struct Buffers {
    CuPointer x, y;
    float *in, *out;
    float a, b;
} Buffers;

static CuGraphExec capture(CuStream stream, CuFunction f, Buffers *v, int n) {
    CuGraph graph;
    CuGraphExec exec;
    void *params[] = {&v->x, &v->y, &v->a, &v->b, &n};
    CHECK(cu.capture_begin(stream, CU_CAPTURE_THREAD_LOCAL));
    CHECK(cu.copy_in(v->x, v->in, COUNT * sizeof(float), stream));
    CHECK(cu.launch(f, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
    CHECK(cu.copy_out(v->out, v->y, COUNT * sizeof(float), stream));
    CHECK(cu.capture_end(stream, &graph));
    CHECK(cu.graph_instantiate(&exec, graph, 0));
    CHECK(cu.graph_destroy(graph));
    return exec;
}

static int count_wrong(const Buffers *v) {
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        volatile float product = v->in[i] * v->a; /* rounded before the sum, as NVRTC was told */
        float expected = product + v->b;
        wrong += v->out[i] != (expected > 0 ? expected : 0);
    }
    return wrong;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    CuDevice device;
    CuContext context;
    CuStream stream;
    CuFunction f;
    Buffers v = {.a = 1.1f, .b = -0.3f};
    int wrong = 0, n = strcmp(mode, "past") == 0 ? COUNT + 1 : COUNT;
    open_driver();
    CHECK(cu.init(0));
    CHECK(cu.device_get(&device, 0));
    CHECK(cu.primary_retain(&context, device));
    CHECK(cu.context_push(context));
    CuModule module = load(device);
    CHECK(cu.module_function(&f, module, "scale_shift"));
    CHECK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cu.mem_alloc(&v.x, COUNT * sizeof(float)));
    CHECK(cu.mem_alloc(&v.y, COUNT * sizeof(float)));
    CHECK(cu.host_alloc((void **)&v.in, COUNT * sizeof(float), CU_HOST_PORTABLE));
    CHECK(cu.host_alloc((void **)&v.out, COUNT * sizeof(float), CU_HOST_PORTABLE));
    CuGraphExec exec = capture(stream, f, &v, n);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) v.in[i] = (float)(i - COUNT / 2) * 0.37f + (float)round;
        CHECK(cu.graph_launch(exec, stream));
        if (strcmp(mode, "early") != 0) CHECK(cu.stream_sync(stream));
        wrong += count_wrong(&v);
    }
    CHECK(cu.stream_sync(stream));
    CHECK(cu.graph_exec_destroy(exec));
    CHECK(cu.host_free(v.in));
    CHECK(cu.host_free(v.out));
    CHECK(cu.mem_free(v.x));
    CHECK(cu.mem_free(v.y));
    CHECK(cu.stream_destroy(stream));
    CHECK(cu.module_unload(module));
    CHECK(cu.context_pop(&context));
    CHECK(cu.primary_release(device));
    return wrong ? WRONG : 0;
}
