/* objects.c: handles, descriptions, layouts and preferences. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/cublaslt/stand_in.h"

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Object *all;
static const char *const kinds[] = {"handle", "description", "layout", "preference"};

CublasLtResult wrong(const char *call, const char *format, ...) {
    char text[256];
    int n = snprintf(text, sizeof text, "%s: ", call);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    fakecuda_misuse(text);
    return LT_INVALID_VALUE;
}

static Object *find(const void *object, Kind kind) {
    pthread_mutex_lock(&lock);
    Object *o = all;
    while (o && ((const void *)o != object || o->kind != kind)) o = o->next;
    pthread_mutex_unlock(&lock);
    return o;
}

CublasLtResult alive(const char *call, const void *object, Kind kind) {
    const Object *o = find(object, kind);
    if (o && !o->dead) return LT_OK;
    return wrong(call, "%s %s", o ? "a destroyed" : "no", kinds[kind]);
}

/* NULL: the call fails. */
static void *make(const char *call, size_t bytes, Kind kind) {
    if (fault_call(call)) return NULL;
    Object *o = calloc(1, bytes);
    if (!o) abort();
    o->kind = kind;
    pthread_mutex_lock(&lock);
    o->next = all;
    all = o;
    pthread_mutex_unlock(&lock);
    return o;
}

static CublasLtResult destroy(const char *call, void *object, Kind kind) {
    const CublasLtResult result = alive(call, object, kind);
    if (!result) ((Object *)object)->dead = true;
    return !result && fault_call(call) ? LT_INTERNAL_ERROR : result;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

typedef struct Attribute {
    int attribute;
    size_t at, size;
} Attribute;
#define AT(attribute, type, member)                                                                                    \
    { attribute, offsetof(struct type, member), sizeof(((struct type *)0)->member) }

static const Attribute of_desc[] = {
    AT(LT_DESC_TRANS_A, CublasLtProduct, trans_a), AT(LT_DESC_TRANS_B, CublasLtProduct, trans_b),
    AT(LT_DESC_EPILOGUE, CublasLtProduct, epilogue), AT(LT_DESC_BIAS, CublasLtProduct, bias)};
static const Attribute of_layout[] = {AT(LT_LAYOUT_BATCH, CublasLtMatrix, batch),
                                      AT(LT_LAYOUT_STRIDE, CublasLtMatrix, stride)};
static const Attribute of_preference[] = {
    AT(LT_PREFER_WORKSPACE, CublasLtWish, workspace),  AT(LT_PREFER_REDUCTION, CublasLtWish, reduction),
    AT(LT_PREFER_ALIGN_A, CublasLtWish, align[0]),     AT(LT_PREFER_ALIGN_A + 1, CublasLtWish, align[1]),
    AT(LT_PREFER_ALIGN_A + 2, CublasLtWish, align[2]), AT(LT_PREFER_ALIGN_D, CublasLtWish, align[3])};
#define OF(list) list, sizeof list / sizeof *list

static CublasLtResult set(const char *call, void *object, Kind kind, const Attribute *list, size_t count, int attribute,
                          const void *value, size_t size) {
    const CublasLtResult result = alive(call, object, kind);
    if (result) return result;
    if (fault_call(call)) return LT_INTERNAL_ERROR;
    for (size_t i = 0; i < count; i++) {
        if (list[i].attribute != attribute) continue;
        if (!value || size != list[i].size)
            return wrong(call, "attribute %d has %zu bytes, and %zu are given", attribute, list[i].size, size);
        memcpy((char *)object + list[i].at, value, size);
        return LT_OK;
    }
    return wrong(call, "attribute %d is none that the stand-in has", attribute);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CublasLtResult cublasLtGetProperty(int what, int *value) {
    enum { VERSION = 13010 };
    if (fault_call("cublasLtGetProperty")) return LT_INTERNAL_ERROR;
    const int version = fault_version(VERSION);
    *value = what == LT_MAJOR ? version / 1000 : version / 10 % 100;
    return LT_OK;
}

CublasLtResult cublasLtCreate(CublasLtHandle *handle) {
    enum { MAJOR = 75, MINOR = 76 };
    CuContext context = NULL;
    CuDevice device;
    int major = 0, minor = 0;
    if (cuCtxGetCurrent(&context) || !context) return LT_NOT_INITIALIZED;
    if (cuCtxGetDevice(&device) || cuDeviceGetAttribute(&major, MAJOR, device) ||
        cuDeviceGetAttribute(&minor, MINOR, device))
        return LT_NOT_INITIALIZED;
    CublasLtHandle h = make("cublasLtCreate", sizeof *h, HANDLE);
    if (!h) return LT_INTERNAL_ERROR;
    h->context = context;
    h->arch = 10 * major + minor;
    *handle = h;
    return LT_OK;
}
CublasLtResult cublasLtDestroy(CublasLtHandle handle) { return destroy("cublasLtDestroy", handle, HANDLE); }

CublasLtResult cublasLtMatmulDescCreate(CublasLtDesc *desc, int compute, int scale) {
    CublasLtDesc d = make("cublasLtMatmulDescCreate", sizeof *d, DESC);
    if (!d) return LT_INTERNAL_ERROR;
    d->compute = compute;
    d->scale = scale;
    d->epilogue = LT_EPILOGUE_DEFAULT;
    *desc = d;
    return LT_OK;
}
CublasLtResult cublasLtMatmulDescSetAttribute(CublasLtDesc desc, int attribute, const void *value, size_t size) {
    return set("cublasLtMatmulDescSetAttribute", desc, DESC, OF(of_desc), attribute, value, size);
}
CublasLtResult cublasLtMatmulDescDestroy(CublasLtDesc desc) { return destroy("cublasLtMatmulDescDestroy", desc, DESC); }

CublasLtResult cublasLtMatrixLayoutCreate(CublasLtLayout *layout, int type, uint64_t rows, uint64_t columns,
                                          int64_t ld) {
    CublasLtLayout l = make("cublasLtMatrixLayoutCreate", sizeof *l, LAYOUT);
    if (!l) return LT_INTERNAL_ERROR;
    l->type = type;
    l->rows = rows;
    l->columns = columns;
    l->ld = ld;
    l->batch = 1;
    *layout = l;
    return LT_OK;
}
CublasLtResult cublasLtMatrixLayoutSetAttribute(CublasLtLayout layout, int attribute, const void *value, size_t size) {
    return set("cublasLtMatrixLayoutSetAttribute", layout, LAYOUT, OF(of_layout), attribute, value, size);
}
CublasLtResult cublasLtMatrixLayoutDestroy(CublasLtLayout layout) {
    return destroy("cublasLtMatrixLayoutDestroy", layout, LAYOUT);
}

CublasLtResult cublasLtMatmulPreferenceCreate(CublasLtPreference *preference) {
    CublasLtPreference p = make("cublasLtMatmulPreferenceCreate", sizeof *p, PREFERENCE);
    if (!p) return LT_INTERNAL_ERROR;
    p->reduction = UINT32_MAX;
    for (int i = 0; i < 4; i++) p->align[i] = 256;
    *preference = p;
    return LT_OK;
}
CublasLtResult cublasLtMatmulPreferenceSetAttribute(CublasLtPreference preference, int attribute, const void *value,
                                                    size_t size) {
    return set("cublasLtMatmulPreferenceSetAttribute", preference, PREFERENCE, OF(of_preference), attribute, value,
               size);
}
CublasLtResult cublasLtMatmulPreferenceDestroy(CublasLtPreference preference) {
    return destroy("cublasLtMatmulPreferenceDestroy", preference, PREFERENCE);
}
