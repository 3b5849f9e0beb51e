/* matmul.c: which algorithms a product has, and asking for it. */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/cublaslt/stand_in.h"

/* ---- algorithms -------------------------------------------------------------------------------------------------- */

typedef struct Algo { /* what a CublasLtAlgo holds */
    uint32_t magic, id;
    int32_t parts;
    uint32_t reduction, align[4];
} Algo;
_Static_assert(sizeof(Algo) <= sizeof(CublasLtAlgo), "it is stored there");
enum { MAGIC = 0x4c74616c, STEP = 16 };
/* As the report and FAKECUDA_TIMES name them. */
static const char *const names[ALGORITHMS] = {"cublasLt0", "cublasLt1", "cublasLt2", "cublasLt3", "cublasLt4"};

static Algo algo_of(const CublasLtAlgo *from) {
    Algo algo;
    memcpy(&algo, from, sizeof algo);
    return algo;
}

CublasLtResult cublasLtMatmulAlgoConfigGetAttribute(const CublasLtAlgo *from, int attribute, void *value, size_t size,
                                                    size_t *written) {
    static const char call[] = "cublasLtMatmulAlgoConfigGetAttribute";
    const Algo algo = algo_of(from);
    if (fault_call(call)) return LT_INTERNAL_ERROR;
    if (algo.magic != MAGIC) return wrong(call, "an algorithm that no heuristic gave");
    const uint32_t found = attribute == LT_ALGO_ID        ? algo.id
                           : attribute == LT_ALGO_SPLIT_K ? (uint32_t)algo.parts
                                                          : algo.reduction;
    if (attribute != LT_ALGO_ID && attribute != LT_ALGO_SPLIT_K && attribute != LT_ALGO_REDUCTION)
        return wrong(call, "attribute %d is none that the stand-in has", attribute);
    if (size != sizeof found) return wrong(call, "attribute %d has 4 bytes, and %zu are given", attribute, size);
    memcpy(value, &found, sizeof found);
    if (written) *written = sizeof found;
    return LT_OK;
}

/* ---- what both calls check --------------------------------------------------------------------------------------- */

static CublasLtResult check_handle(const char *call, CublasLtHandle handle) {
    CuContext current = NULL;
    const CublasLtResult result = alive(call, handle, HANDLE);
    if (result) return result;
    if (cuCtxGetCurrent(&current) || current != handle->context)
        return wrong(call, "the current context is not the one that the handle was made in");
    return LT_OK;
}

/* A result after the one before, or beside it in the same columns. */
static bool is_apart(const struct CublasLtMatrix *l) {
    const int64_t rows = (int64_t)l->rows, columns = (int64_t)l->columns, batch = l->batch;
    return batch == 1 || l->stride >= (columns - 1) * l->ld + rows ||
           (l->stride >= rows && l->ld >= (batch - 1) * l->stride + rows);
}

static CublasLtResult check_batches(const char *call, const Product *p) {
    const Operand *const all[] = {&p->a, &p->b, &p->c, &p->d};
    for (int i = 0; i < 4; i++) {
        const struct CublasLtMatrix *l = &all[i]->layout;
        if (l->batch < 1) return wrong(call, "the batch of %c has %d matrices", "ABCD"[i], l -> batch);
        if (l->batch != p->d.layout.batch) return wrong(call, "%c and D have different batches", "ABCD"[i]);
    }
    if (is_apart(&p->d.layout)) return LT_OK;
    return wrong(call, "at a stride of %lld the matrices of D overlap", (long long)p->d.layout.stride);
}

static CublasLtResult check_layouts(const char *call, const Product *p) {
    const Operand *const all[] = {&p->a, &p->b, &p->c, &p->d};
    for (int i = 0; i < 4; i++) {
        const struct CublasLtMatrix *l = &all[i]->layout;
        if (l->ld < (int64_t)l->rows)
            return wrong(call, "the leading dimension %lld of %c is below its %llu rows", (long long)l->ld, "ABCD"[i],
                         (unsigned long long)l -> rows);
    }
    const struct CublasLtMatrix *c = &p->c.layout, *d = &p->d.layout;
    const uint64_t k_of_b = p->b.transposed ? p->b.layout.columns : p->b.layout.rows;
    if (d->rows != p->m || d->columns != p->n || c->rows != p->m || c->columns != p->n || k_of_b != p->k)
        return wrong(call, "the sizes of A, B, C and D do not fit");
    return check_batches(call, p);
}

static CublasLtResult check_types(const CublasLtDesc desc, const Product *p) {
    const int a = p->a.layout.type, d = p->d.layout.type;
    const bool tf32 = desc->compute == LT_COMPUTE_32F_TF32 && a == LT_F32;
    const bool narrow = desc->compute == LT_COMPUTE_32F && (a == LT_F16 || a == LT_BF16);
    const bool f32 = desc->compute == LT_COMPUTE_32F && a == LT_F32;
    if (desc->scale != LT_F32 || (!tf32 && !narrow && !f32) || p->b.layout.type != a || p->c.layout.type != d)
        return LT_NOT_SUPPORTED;
    return d == LT_F32 || (narrow && d == a) ? LT_OK : LT_NOT_SUPPORTED;
}

/* Fills what |p| has of the description and the layouts. */
static CublasLtResult describe(const char *call, CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout a,
                               CublasLtLayout b, CublasLtLayout c, CublasLtLayout d, Product *p) {
    CublasLtResult result = check_handle(call, handle);
    if (!result) result = alive(call, desc, DESC);
    const CublasLtLayout layouts[] = {a, b, c, d};
    for (int i = 0; i < 4 && !result; i++) result = alive(call, layouts[i], LAYOUT);
    if (result) return result;
    *p = (Product){.a = {.layout = *a, .transposed = desc->trans_a == LT_OP_T},
                   .b = {.layout = *b, .transposed = desc->trans_b == LT_OP_T},
                   .c = {.layout = *c},
                   .d = {.layout = *d},
                   .arch = handle->arch,
                   .compute = desc->compute};
    p->m = p->a.transposed ? a->columns : a->rows;
    p->k = p->a.transposed ? a->rows : a->columns;
    p->n = p->b.transposed ? b->rows : b->columns;
    result = check_layouts(call, p);
    if (!result) result = check_types(desc, p);
    if (result || desc->epilogue == LT_EPILOGUE_DEFAULT) return result;
    if (desc->epilogue != LT_EPILOGUE_BIAS) return LT_NOT_SUPPORTED;
    if (!desc->bias) return wrong(call, "the epilogue adds a bias, and its pointer is NULL");
    p->bias = (uint64_t)(uintptr_t)desc->bias;
    return LT_OK;
}

/* ---- the heuristic ----------------------------------------------------------------------------------------------- */

static uint64_t workspace_of(const Algo *algo, const Product *p) {
    const uint64_t results = p->m * p->n * (uint64_t)p->d.layout.batch;
    return algo->id == SPLIT ? results * 2 * sizeof(float) : algo->id == GREEDY ? GREEDY_WORKSPACE : 0;
}

static CublasLtFound propose(uint32_t id, const Product *p, const struct CublasLtWish *wish) {
    CublasLtFound found = {.waves = 1};
    Algo algo = {.magic = MAGIC, .id = id, .parts = 1};
    if (id == SPLIT) {
        algo.parts = 2;
        algo.reduction = REDUCTION_COMPUTE_TYPE;
    }
    memcpy(algo.align, wish->align, sizeof algo.align);
    memcpy(&found.algo, &algo, sizeof algo);
    found.workspace = workspace_of(&algo, p);
    if (found.workspace > wish->workspace) found.state = LT_NOT_SUPPORTED;
    return found;
}

CublasLtResult cublasLtMatmulAlgoGetHeuristic(CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout a,
                                              CublasLtLayout b, CublasLtLayout c, CublasLtLayout d,
                                              CublasLtPreference preference, int wanted, CublasLtFound found[],
                                              int *count) {
    static const char call[] = "cublasLtMatmulAlgoGetHeuristic";
    Product p;
    *count = 0;
    if (fault_call(call)) return LT_INTERNAL_ERROR;
    CublasLtResult result = describe(call, handle, desc, a, b, c, d, &p);
    if (!result) result = alive(call, preference, PREFERENCE);
    if (result) return result;
    if (fakecuda_is_capturing()) {
        wrong(call, "a stream of the context is being captured");
        return LT_INTERNAL_ERROR;
    }
    for (uint32_t id = 0; id < ALGORITHMS && *count < wanted; id++)
        if (id != SPLIT || (p.k > STEP && preference->reduction & REDUCTION_COMPUTE_TYPE))
            found[(*count)++] = propose(id, &p, preference);
    return LT_OK;
}

/* Of an algorithm that the heuristic gave for any product. */
CublasLtResult cublasLtMatmulAlgoCheck(CublasLtHandle handle, CublasLtDesc desc, CublasLtLayout a, CublasLtLayout b,
                                       CublasLtLayout c, CublasLtLayout d, const CublasLtAlgo *from,
                                       CublasLtFound *found) {
    static const char call[] = "cublasLtMatmulAlgoCheck";
    Product p;
    if (fault_call(call)) return LT_INTERNAL_ERROR;
    const CublasLtResult result = describe(call, handle, desc, a, b, c, d, &p);
    if (result) return result;
    const Algo algo = algo_of(from);
    if (algo.magic != MAGIC) return LT_INVALID_VALUE;
    if (algo.id == FAILING || (algo.id == SPLIT && p.k <= STEP)) return LT_NOT_SUPPORTED;
    found->waves = 1; /* NVIDIA's says nothing else */
    found->workspace = workspace_of(&algo, &p);
    return LT_OK;
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

static CublasLtResult check_pointers(const char *call, const Product *p, const Algo *algo) {
    const uint64_t pointers[] = {p->a.address, p->b.address, p->c.address, p->d.address};
    const struct CublasLtMatrix *const layouts[] = {&p->a.layout, &p->b.layout, &p->c.layout, &p->d.layout};
    for (int i = 0; i < 4; i++) {
        if (!pointers[i]) return wrong(call, "%c is NULL", "ABCD"[i]);
        if (pointers[i] % algo->align[i])
            return wrong(call, "%c is not aligned to the %u bytes that the heuristic was told", "ABCD"[i],
                         algo -> align[i]);
        const int64_t apart = layouts[i]->batch > 1 ? layouts[i]->stride * (int64_t)type_bytes(layouts[i]->type) : 0;
        if (apart % algo->align[i])
            return wrong(call, "%c's stride of %lld bytes is not aligned to the %u that the heuristic was told",
                         "ABCD"[i], (long long)apart, algo -> align[i]);
    }
    if (p->bias % type_bytes(p->d.layout.type)) return wrong(call, "the bias is not aligned to its type");
    return LT_OK;
}

static CublasLtResult check_workspace(const char *call, const Product *p, const Algo *algo, const void *workspace,
                                      size_t size) {
    const uint64_t needed = workspace_of(algo, p);
    if (needed > size || (needed && !workspace))
        return wrong(call, "the algorithm needs a workspace of %llu bytes, and %zu are given",
                     (unsigned long long)needed, workspace ? size : 0);
    if ((uintptr_t)workspace % 256) return wrong(call, "the workspace is not aligned to 256 bytes");
    return LT_OK;
}

static CublasLtResult enqueue(const Product *p, void *stream) {
    Product *copy = malloc(sizeof *copy);
    bool captured;
    if (!copy) return LT_ALLOC_FAILED;
    *copy = *p;
    const FakecudaOutside work = {product_run, product_drop, copy};
    const uint64_t bytes = p->m * p->n * (uint64_t)p->d.layout.batch * type_bytes(p->d.layout.type);
    if (!fakecuda_enqueue(stream, &work, names[p->algorithm], bytes, &captured)) return LT_OK;
    free(copy);
    return LT_EXECUTION_FAILED;
}

CublasLtResult cublasLtMatmul(CublasLtHandle handle, CublasLtDesc desc, const void *alpha, const void *a,
                              CublasLtLayout a_layout, const void *b, CublasLtLayout b_layout, const void *beta,
                              const void *c, CublasLtLayout c_layout, void *d, CublasLtLayout d_layout,
                              const CublasLtAlgo *from, void *workspace, size_t workspace_size, void *stream) {
    static const char call[] = "cublasLtMatmul";
    Product p;
    if (fault_call(call)) return LT_INTERNAL_ERROR;
    CublasLtResult result = describe(call, handle, desc, a_layout, b_layout, c_layout, d_layout, &p);
    if (result) return result;
    if (!alpha || !beta || !from) return wrong(call, "alpha, beta or the algorithm is NULL");
    const Algo algo = algo_of(from);
    if (algo.magic != MAGIC) return wrong(call, "an algorithm that no heuristic gave");
    p.a.address = (uint64_t)(uintptr_t)a;
    p.b.address = (uint64_t)(uintptr_t)b;
    p.c.address = (uint64_t)(uintptr_t)c;
    p.d.address = (uint64_t)(uintptr_t)d;
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    p.algorithm = (int)algo.id;
    p.plant = fault_plant(p.algorithm);
    result = check_pointers(call, &p, &algo);
    if (!result) result = check_workspace(call, &p, &algo, workspace, workspace_size);
    if (!result && p.algorithm == FAILING) return LT_EXECUTION_FAILED;
    return result ? result : enqueue(&p, stream);
}
