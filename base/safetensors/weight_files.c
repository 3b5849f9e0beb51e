/* weight_files.c: see weight_files.h. */
#include "base/safetensors/weight_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

enum {
    SHARDS_MOST = 4096,      /* the system has a limit of its own on files that are open */
    INDEX_MOST = 64 << 20,   /* bytes */
    INDEX_TENSORS = 1000000, /* values of the index */
    INDEX_DEPTH = 8
};

typedef struct Shard {
    char *path;
    size_t path_bytes;
    amp_safetensors *file;
} Shard;

typedef struct Tensor {
    const amp_tensor_view *view;
    int32_t shard;
} Tensor;

struct amp_weight_files {
    amp_allocator allocator;
    char *path;
    size_t path_bytes;
    bool has_index;
    Shard *shards;
    int32_t shard_count, shards_allocated;
    Tensor *tensors; /* by name */
    int32_t count;
};

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

static amp_status no_memory(const char *path, amp_error *err) {
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its tensors", path);
}

static amp_status make(const char *path, const amp_allocator *allocator, amp_weight_files **out, amp_error *err) {
    amp_weight_files *f = amp_alloc_zeroed(allocator, sizeof *f);
    *out = f;
    if (!f) return no_memory(path, err);
    f->allocator = amp_allocator_or_default(allocator);
    f->path_bytes = strlen(path) + 1;
    f->path = amp_alloc(&f->allocator, f->path_bytes);
    if (!f->path) return no_memory(path, err);
    memcpy(f->path, path, f->path_bytes);
    return AMP_OK;
}

void amp_weight_files_close(amp_weight_files *f) {
    if (!f) return;
    amp_allocator a = f->allocator;
    for (int32_t i = 0; i < f->shard_count; i++) {
        amp_safetensors_close(f->shards[i].file);
        amp_free(&a, f->shards[i].path, f->shards[i].path_bytes);
    }
    amp_free(&a, f->shards, (size_t)f->shards_allocated * sizeof *f->shards);
    amp_free(&a, f->tensors, (size_t)f->count * sizeof *f->tensors);
    amp_free(&a, f->path, f->path_bytes);
    amp_free(&a, f, sizeof *f);
}

static amp_status allocate_shards(amp_weight_files *f, int32_t count, amp_error *err) {
    f->shards = amp_alloc_zeroed(&f->allocator, (size_t)count * sizeof *f->shards);
    if (!f->shards) return no_memory(f->path, err);
    f->shards_allocated = count;
    return AMP_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const Tensor *)a)->view->name, ((const Tensor *)b)->view->name);
}

/* Of all shards, which have no name twice. */
static amp_status list_tensors(amp_weight_files *f, amp_error *err) {
    int64_t count = 0;
    for (int32_t i = 0; i < f->shard_count; i++) count += amp_safetensors_count(f->shards[i].file);
    if (count > INT32_MAX) return amp_fail(err, AMP_BAD_FILE, "%s: it has too many tensors", f->path);
    f->tensors = amp_alloc(&f->allocator, (size_t)count * sizeof *f->tensors);
    if (!f->tensors && count) return no_memory(f->path, err);
    f->count = (int32_t)count;
    int32_t at = 0;
    for (int32_t i = 0; i < f->shard_count; i++)
        for (int32_t k = 0; k < amp_safetensors_count(f->shards[i].file); k++)
            f->tensors[at++] = (Tensor){amp_safetensors_at(f->shards[i].file, k), i};
    if (count) qsort(f->tensors, (size_t)count, sizeof *f->tensors, by_name);
    return AMP_OK;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static amp_status open_single(amp_weight_files *f, const void *bytes, size_t size, amp_error *err) {
    AMP_TRY(allocate_shards(f, 1, err));
    f->shard_count = 1;
    amp_safetensors **file = &f->shards[0].file;
    if (bytes) AMP_TRY(amp_safetensors_parse(bytes, size, f->path, &f->allocator, file, err));
    else AMP_TRY(amp_safetensors_open_header(f->path, AMP_FILE_ANY, &f->allocator, file, err));
    return list_tensors(f, err);
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

typedef struct Index {
    amp_weight_files *files;
    const amp_json_object *map; /* name of tensor: name of shard */
    amp_error *err;
} Index;

static amp_status bad(const Index *x, const char *format, ...) AMP_PRINTF(2, 3);

static amp_status bad(const Index *x, const char *format, ...) {
    amp_error what = {0};
    va_list args;
    va_start(args, format);
    amp_vfail(&what, AMP_BAD_FILE, format, args);
    va_end(args);
    return amp_fail(x->err, AMP_BAD_FILE, "%s: not a sound index of weights: %s", x->files->path, what.message);
}

/* "a/b", with no "..": a file below the folder of the index. */
static bool stays_below(const char *name) {
    if (*name == '/') return false;
    for (const char *at = name; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2])) return false;
    }
    return true;
}

static amp_status check_member(const Index *x, const amp_json_member *m) {
    if (m->value.kind != AMP_JSON_STRING)
        return bad(x, "weight_map: %s is a %s; the name of a file is wanted", m->key.data,
                   amp_json_kind_name(m->value.kind));
    const char *shard = m->value.string.data;
    if (!*shard) return bad(x, "weight_map: %s has an empty file name", m->key.data);
    if (!stays_below(shard))
        return bad(x, "weight_map: %s is in %s; only files in the folder of the index, and below it, are read",
                   m->key.data, shard);
    return AMP_OK;
}

static int by_shard(const void *a, const void *b) {
    const amp_json_member *x = *(const amp_json_member *const *)a, *y = *(const amp_json_member *const *)b;
    int order = strcmp(x->value.string.data, y->value.string.data);
    return order ? order : strcmp(x->key.data, y->key.data);
}

static bool same_shard(const amp_json_member *a, const amp_json_member *b) {
    return !strcmp(a->value.string.data, b->value.string.data);
}

/* The shard |name| of the index; -1: none.  They are sorted. */
static int32_t find_shard(const amp_weight_files *f, const char *name) {
    const char *slash = strrchr(f->path, '/');
    size_t folder = slash ? (size_t)(slash - f->path) + 1 : 0;
    for (int32_t low = 0, high = f->shard_count; low < high;) {
        int32_t middle = low + (high - low) / 2, order = strcmp(name, f->shards[middle].path + folder);
        if (order == 0) return middle;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return -1;
}

static amp_status open_shard(Index *x, const char *name, int32_t tensors, const char *first) {
    amp_weight_files *f = x->files;
    const char *slash = strrchr(f->path, '/');
    size_t folder = slash ? (size_t)(slash - f->path) + 1 : 0;
    Shard *s = &f->shards[f->shard_count++];
    amp_error why = {0};
    s->path_bytes = folder + strlen(name) + 1;
    s->path = amp_alloc(&f->allocator, s->path_bytes);
    if (!s->path) return no_memory(f->path, x->err);
    memcpy(s->path, f->path, folder);
    memcpy(s->path + folder, name, strlen(name) + 1);
    amp_status status = amp_safetensors_open_header(s->path, AMP_FILE_REGULAR, &f->allocator, &s->file, &why);
    if (!status) return AMP_OK;
    if (tensors == 1) return amp_fail(x->err, status, "%s; %s has %s there", why.message, f->path, first);
    return amp_fail(x->err, status, "%s; %s has %d tensors there, the first is %s", why.message, f->path, tensors,
                    first);
}

/* |sorted|: the members by shard. */
static amp_status open_each(Index *x, const amp_json_member *const *sorted) {
    size_t count = x->map->count, shards = 0;
    for (size_t i = 0; i < count; i++) shards += i == 0 || !same_shard(sorted[i - 1], sorted[i]);
    if (shards > SHARDS_MOST) return bad(x, "it lists %zu files; at most %d are read", shards, SHARDS_MOST);
    AMP_TRY(allocate_shards(x->files, (int32_t)shards, x->err));
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && same_shard(sorted[i], sorted[end]);) end++;
        AMP_TRY(open_shard(x, sorted[i]->value.string.data, (int32_t)(end - i), sorted[i]->key.data));
    }
    return AMP_OK;
}

static amp_status open_shards(Index *x) {
    size_t bytes = x->map->count * sizeof(const amp_json_member *);
    const amp_json_member **sorted = amp_alloc(&x->files->allocator, bytes);
    if (!sorted) return no_memory(x->files->path, x->err);
    for (size_t i = 0; i < x->map->count; i++) sorted[i] = &x->map->members[i];
    qsort(sorted, x->map->count, sizeof *sorted, by_shard);
    amp_status status = open_each(x, sorted);
    amp_free(&x->files->allocator, sorted, bytes);
    return status;
}

/* ---- what it lists, and what is there ---------------------------------------------------------------------------- */

typedef struct Faults {
    int64_t count;
    amp_error first;
} Faults;

static void note(Faults *f, const char *format, ...) AMP_PRINTF(2, 3);

static void note(Faults *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (f->count++ == 0) amp_vfail(&f->first, AMP_MISMATCH, format, args);
    va_end(args);
}

/* Every tensor of a shard is listed as that shard's. */
static void check_shard(const Index *x, const Shard *s, Faults *faults) {
    const amp_json map = {.kind = AMP_JSON_OBJECT, .object = *x->map};
    int32_t self = (int32_t)(s - x->files->shards);
    for (int32_t i = 0; i < amp_safetensors_count(s->file); i++) {
        const char *name = amp_safetensors_at(s->file, i)->name;
        const amp_json *listed = amp_json_get(&map, name);
        if (!listed) note(faults, "%s has tensor %s, which %s does not list", s->path, name, x->files->path);
        else if (find_shard(x->files, listed->string.data) != self)
            note(faults, "%s has tensor %s, which %s lists as in %s", s->path, name, x->files->path,
                 listed->string.data);
    }
}

static amp_status check_listed(const Index *x) {
    Faults faults = {0};
    const amp_weight_files *f = x->files;
    for (size_t i = 0; i < x->map->count; i++) {
        const amp_json_member *m = x->map->sorted[i];
        const Shard *s = &f->shards[find_shard(f, m->value.string.data)];
        if (!amp_safetensors_find(s->file, m->key.data))
            note(&faults, "%s lists tensor %s, which %s does not have", f->path, m->key.data, s->path);
    }
    for (int32_t i = 0; i < f->shard_count; i++) check_shard(x, &f->shards[i], &faults);
    if (!faults.count) return AMP_OK;
    if (faults.count == 1) return amp_fail(x->err, AMP_MISMATCH, "%s", faults.first.message);
    return amp_fail(x->err, AMP_MISMATCH, "%s (and %lld more)", faults.first.message, (long long)faults.count - 1);
}

static amp_status read_index(Index *x, const amp_json *root) {
    const amp_json *map = amp_json_get(root, "weight_map");
    if (!map || map->kind != AMP_JSON_OBJECT) return bad(x, "it has no object weight_map");
    x->map = &map->object;
    if (x->map->count > INT32_MAX) return bad(x, "it lists too many tensors");
    for (size_t i = 0; i < x->map->count; i++) AMP_TRY(check_member(x, &x->map->members[i]));
    if (x->map->count == 0) return bad(x, "its weight_map is empty");
    AMP_TRY(open_shards(x));
    AMP_TRY(check_listed(x));
    return list_tensors(x->files, x->err);
}

static amp_status open_index(amp_weight_files *f, amp_error *err) {
    char *text;
    size_t size;
    amp_json_document *document = NULL;
    amp_json_limits limits = {.depth = INDEX_DEPTH, .values = INDEX_TENSORS};
    amp_error why = {0};
    Index x = {.files = f, .err = err};
    AMP_TRY(amp_file_read(f->path, INDEX_MOST, &f->allocator, &text, &size, err));
    amp_status status = amp_json_parse(text, size, &limits, &f->allocator, &document, &why);
    amp_free(&f->allocator, text, size + 1);
    if (status == AMP_OUT_OF_MEMORY) return no_memory(f->path, err);
    if (status) return bad(&x, "%s", why.message);
    f->has_index = true;
    status = read_index(&x, amp_json_root(document));
    amp_json_free(document);
    return status;
}

bool amp_weight_files_is_index(const char *path) {
    size_t length = strlen(path);
    return length > 5 && !strcmp(path + length - 5, ".json");
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

amp_status amp_weight_files_open(const char *path, const amp_allocator *allocator, amp_weight_files **out,
                                 amp_error *err) {
    amp_weight_files *f;
    *out = NULL;
    amp_status status = make(path, allocator, &f, err);
    if (!status) status = amp_weight_files_is_index(path) ? open_index(f, err) : open_single(f, NULL, 0, err);
    if (status) amp_weight_files_close(f);
    else *out = f;
    return status;
}

amp_status amp_weight_files_of_memory(const void *bytes, size_t size, const char *name, const amp_allocator *allocator,
                                      amp_weight_files **out, amp_error *err) {
    amp_weight_files *f;
    *out = NULL;
    amp_status status = make(name, allocator, &f, err);
    if (!status) status = open_single(f, bytes, size, err);
    if (status) amp_weight_files_close(f);
    else *out = f;
    return status;
}

/* ---- looking at them --------------------------------------------------------------------------------------------- */

int32_t amp_weight_files_count(const amp_weight_files *f) { return f->count; }

const amp_tensor_view *amp_weight_files_at(const amp_weight_files *f, int32_t index) { return f->tensors[index].view; }

amp_status amp_weight_files_read(const amp_weight_files *f, int32_t index, size_t from, void *to, size_t bytes,
                                 amp_error *err) {
    const Tensor *t = &f->tensors[index];
    return amp_safetensors_read(f->shards[t->shard].file, t->view, from, to, bytes, err);
}

amp_status amp_weight_files_read_next(const amp_weight_files *f, int32_t index, size_t from, void *to, size_t bytes,
                                      amp_xxh64 *sum, amp_error *err) {
    const Tensor *t = &f->tensors[index];
    return amp_safetensors_read_next(f->shards[t->shard].file, t->view, from, to, bytes, sum, err);
}

amp_status amp_weight_files_hold_small(amp_weight_files *f, amp_error *err) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < f->count; i++) bytes += f->tensors[i].view->bytes;
    if (bytes > AMP_WEIGHTS_HELD) return AMP_OK;
    for (int32_t i = 0; i < f->shard_count; i++) AMP_TRY(amp_safetensors_hold(f->shards[i].file, err));
    return AMP_OK;
}

amp_status amp_weight_files_check_unchanged(const amp_weight_files *f, amp_error *err) {
    for (int32_t i = 0; i < f->shard_count; i++) AMP_TRY(amp_safetensors_check_unchanged(f->shards[i].file, err));
    return AMP_OK;
}

const char *amp_weight_files_path(const amp_weight_files *f) { return f->path; }

const char *amp_weight_files_metadata(const amp_weight_files *f, const char *key) {
    return f->shard_count ? amp_safetensors_metadata(f->shards[0].file, key) : NULL;
}

const char *amp_weight_files_shard(const amp_weight_files *f, int32_t index) {
    return f->has_index && index >= 0 && index < f->shard_count ? f->shards[index].path : NULL;
}
