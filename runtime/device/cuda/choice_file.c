/* choice_file.c: choices of products outside of a session: in a file, with other ranks, and by a name.
 *
 * A file is safetensors: a tensor of bytes for each choice, named by its key, and what all of them depend on as
 * metadata.  So it has sums, and is replaced as a whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/cuda.h"
#include "amp/inspect.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "runtime/device/cuda/library_choices.h"

#define FORMAT_KEY "amp.format"
#define FORMAT "choices 1"
#define MODEL_KEY "amp.model"
#define KERNELS_KEY "amp.kernels"
#define SIZES_KEY "amp.sizes"

enum { KEY_LETTERS = 65, SIZES_TEXT = 1024 };

/* Of all functions of the model. */
static void kernels_of(const amp_cuda_products *p, char out[KEY_LETTERS]) {
    amp_sha256 hash;
    uint8_t digest[32];
    amp_sha256_init(&hash);
    for (int32_t i = 0; i < p->model->function_count; i++)
        amp_sha256_update(&hash, amp_cuda_products_code(p, (uint32_t)i), sizeof(amp_cuda_cache_key));
    amp_sha256_final(&hash, digest);
    amp_sha256_hex(digest, out);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *text_of(const amp_safetensors *file, const char *key) {
    const char *text = amp_safetensors_metadata(file, key);
    return text ? text : "";
}

static amp_status check_pinned(const amp_cuda_products *p, const char *path, amp_error *err) {
    const char *format = text_of(p->pinned, FORMAT_KEY);
    char kernels[KEY_LETTERS];
    amp_cuda_fact facts[AMP_CUDA_FACTS];
    if (strcmp(format, FORMAT))
        return amp_fail(err, AMP_MISMATCH, "%s: it is no file of choices: its " FORMAT_KEY " is %s, not " FORMAT, path,
                        *format ? format : "missing");
    kernels_of(p, kernels);
    if (strcmp(text_of(p->pinned, KERNELS_KEY), kernels))
        return amp_fail(err, AMP_MISMATCH,
                        "%s: its choices were made for other kernels than this model has (for model %s): make it "
                        "anew with amprun tune, or leave it out",
                        path, text_of(p->pinned, MODEL_KEY));
    amp_cuda_products_facts(p, facts);
    for (int i = 0; i < AMP_CUDA_FACTS; i++)
        if (strcmp(text_of(p->pinned, facts[i].key), facts[i].is))
            return amp_fail(err, AMP_MISMATCH,
                            "%s: its choices were made for %s %s, and here is %s: make it anew with amprun tune, or "
                            "leave it out",
                            path, facts[i].what, text_of(p->pinned, facts[i].key), facts[i].is);
    return AMP_OK;
}

amp_status amp_cuda_choices_open(amp_cuda_products *p, const char *path, amp_error *err) {
    AMP_TRY(amp_safetensors_open(path, p->allocator, &p->pinned, err));
    return check_pinned(p, path, err);
}

bool amp_cuda_choices_recall(const amp_cuda_products *p, amp_cuda_choice *c) {
    char name[KEY_LETTERS];
    if (!p->pinned) return false;
    amp_sha256_hex(c->key.bytes, name);
    const amp_tensor_view *v = amp_safetensors_find(p->pinned, name);
    return v && v->dtype == AMP_DT_U8 && amp_cuda_choice_take(c, v->data, v->bytes);
}

int64_t amp_cuda_choices_size(const amp_cuda_products *p, int index) {
    const char *at = p->pinned ? text_of(p->pinned, SIZES_KEY) : "";
    for (; index > 0 && *at; index--) at += strcspn(at, ","), at += *at == ',';
    return strtoll(at, NULL, 10);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct Writing {
    const amp_cuda_products *p;
    amp_tensor_view *tensors;
    amp_metadata *metadata;
    char (*names)[KEY_LETTERS], (*notes)[192], *images;
    size_t image_bytes;
    int32_t count, room, facts;
} Writing;

/* Of the choices that were measured, or are in use all the same. */
static int32_t room_for(const amp_cuda_products *p, size_t *bytes) {
    int32_t count = 0;
    *bytes = 0;
    for (const amp_cuda_choice *c = p->choices; c; c = c->next) {
        if (!c->known && !c->served) continue;
        count++;
        *bytes += amp_cuda_choice_image(c, NULL);
    }
    return count;
}

static amp_status make_room(Writing *w, amp_error *err) {
    const amp_allocator *a = w->p->allocator;
    const size_t room = (size_t)w->room + 1;
    w->tensors = amp_alloc_zeroed(a, room * sizeof *w->tensors);
    w->metadata = amp_alloc_zeroed(a, (room + AMP_CUDA_FACTS + 4) * sizeof *w->metadata);
    w->names = amp_alloc_zeroed(a, room * sizeof *w->names);
    w->notes = amp_alloc_zeroed(a, room * sizeof *w->notes);
    w->images = amp_alloc_zeroed(a, w->image_bytes + 1);
    if (w->tensors && w->metadata && w->names && w->notes && w->images) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to write its choices", w->p->model->desc.name);
}

static void free_room(Writing *w) {
    const amp_allocator *a = w->p->allocator;
    const size_t room = (size_t)w->room + 1;
    amp_free(a, w->tensors, room * sizeof *w->tensors);
    amp_free(a, w->metadata, (room + AMP_CUDA_FACTS + 4) * sizeof *w->metadata);
    amp_free(a, w->names, room * sizeof *w->names);
    amp_free(a, w->notes, room * sizeof *w->notes);
    amp_free(a, w->images, w->image_bytes + 1);
}

static bool is_written(const Writing *w, const char *name) {
    for (int32_t i = 0; i < w->count; i++)
        if (!strcmp(w->names[i], name)) return true;
    return false;
}

/* Choice |index| of the list, which is |c|; |at|: its image.  For a person the file says what a key is. */
static size_t put_choice(Writing *w, int32_t index, const amp_cuda_choice *c, char *at) {
    char by[32] = "own";
    amp_product_choice about;
    amp_sha256_hex(c->key.bytes, w->names[w->count]);
    if (!amp_cuda_choice_at(w->p, index, &about) || is_written(w, w->names[w->count])) return 0;
    const size_t bytes = amp_cuda_choice_image(c, at);
    if (about.algorithm >= 0) snprintf(by, sizeof by, "algorithm %d", about.algorithm);
    snprintf(w->notes[w->count], sizeof *w->notes, "%s, n = %lld, %d of %lld x %lld x %lld: %s, %.1f of %.1f us",
             about.kernel, (long long)about.n, about.products, (long long)about.rows, (long long)about.cols,
             (long long)about.k, by, about.library, about.own);
    w->tensors[w->count] = (amp_tensor_view){.name = w->names[w->count],
                                             .dtype = AMP_DT_U8,
                                             .rank = 1,
                                             .dims = {(int64_t)bytes},
                                             .data = at,
                                             .bytes = bytes};
    w->metadata[w->facts + w->count] = (amp_metadata){w->names[w->count], w->notes[w->count]};
    w->count++;
    return bytes;
}

/* "128,64", each once. */
static void list_sizes(const amp_cuda_products *p, char text[SIZES_TEXT]) {
    char one[32], all[SIZES_TEXT + 2] = ",";
    for (const amp_cuda_choice *c = p->choices; c; c = c->next) {
        snprintf(one, sizeof one, ",%lld,", (long long)c->n);
        if (c->known && !strstr(all, one) && strlen(all) + strlen(one) < SIZES_TEXT) strcat(all, one + 1);
    }
    snprintf(text, SIZES_TEXT, "%.*s", (int)(strlen(all) > 1 ? strlen(all) - 2 : 0), all + 1);
}

static amp_status write_all(Writing *w, const char *path, amp_error *err) {
    amp_cuda_fact facts[AMP_CUDA_FACTS];
    char kernels[KEY_LETTERS], sizes[SIZES_TEXT];
    char *at = w->images;
    int32_t index = 0;
    kernels_of(w->p, kernels);
    list_sizes(w->p, sizes);
    amp_cuda_products_facts(w->p, facts);
    const amp_metadata head[] = {
        {FORMAT_KEY, FORMAT}, {MODEL_KEY, w->p->model->desc.name}, {KERNELS_KEY, kernels}, {SIZES_KEY, sizes}};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) w->metadata[w->facts++] = head[i];
    for (int i = 0; i < AMP_CUDA_FACTS; i++) w->metadata[w->facts++] = (amp_metadata){facts[i].key, facts[i].is};
    for (const amp_cuda_choice *c = w->p->choices; c; c = c->next) index++;
    for (const amp_cuda_choice *c = w->p->choices; c; c = c->next)
        if (index--, c->known) at += put_choice(w, index, c, at);
    return amp_safetensors_write(path, w->tensors, w->count, w->metadata, w->facts + w->count, w->p->allocator, err);
}

amp_status amp_cuda_choices_save(const amp_cuda_products *p, const char *path, amp_error *err) {
    Writing w = {.p = p};
    w.room = room_for(p, &w.image_bytes);
    amp_status status = make_room(&w, err);
    if (!status) status = write_all(&w, path, err);
    free_room(&w);
    return status;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* A choice as ranks send it; its image follows. */
typedef struct Sent {
    amp_cuda_cache_key key;
    uint32_t bytes;
} Sent;

static void put_sent(const amp_cuda_products *p, char *at) {
    for (const amp_cuda_choice *c = p->choices; c; c = c->next) {
        if (!c->known && !c->served) continue;
        Sent sent = {.key = c->key, .bytes = (uint32_t)amp_cuda_choice_image(c, at + sizeof sent)};
        memcpy(at, &sent, sizeof sent);
        at += sizeof sent + sent.bytes;
    }
}

/* From rank 0's; else it is ours. */
static void take_sent(amp_cuda_choice *c, const char *data, size_t bytes) {
    Sent sent;
    c->known = c->served = c->ran = false;
    for (size_t at = 0; at + sizeof sent <= bytes && !c->known; at += sizeof sent + sent.bytes) {
        memcpy(&sent, data + at, sizeof sent);
        if (sent.bytes > bytes - at - sizeof sent) return;
        if (!memcmp(&sent.key, &c->key, sizeof sent.key))
            (void)amp_cuda_choice_take(c, data + at + sizeof sent, sent.bytes);
    }
}

/* Each runs here once, and what follows it is loaded. */
static amp_status take_all(const amp_cuda_launching *l, const char *data, size_t bytes, amp_error *err) {
    amp_cuda_products *p = l->products;
    int differ = 0;
    for (amp_cuda_choice *c = p->choices; c; c = c->next) {
        take_sent(c, data, bytes);
        differ += !c->known;
        AMP_TRY(amp_cuda_choice_warm(l, &(amp_run){.program = c->program, .sizes = {.n = c->n}}, c, err));
    }
    if (differ)
        amp_log_say(p->log, AMP_LOG_WARNING,
                    "rank 0 has no choice for %d launches of this rank, as with another GPU, driver or library: their "
                    "products are ampc's own",
                    differ);
    amp_cuda_products_fit_workspace(p);
    for (const amp_cuda_choice *c = p->choices; c; c = c->next)
        if (!c->next || c->next->program != c->program || c->next->n != c->n)
            AMP_TRY(amp_cuda_need(l, &(amp_run){.program = c->program, .sizes = {.n = c->n}}, false, err));
    return AMP_OK;
}

static amp_status broadcast(const amp_cuda_launching *l, amp_comm *comm, char *data, size_t bytes, amp_error *err) {
    uint64_t number;
    if (comm->rank == 0) put_sent(l->products, data);
    AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, data, bytes, 0, "choices of products",
                               &number, err));
    AMP_TRY(comm->calls->wait(comm, number, err));
    return comm->rank == 0 ? AMP_OK : take_all(l, data, bytes, err);
}

/* The number of bytes comes first. */
amp_status amp_cuda_choices_share(const amp_cuda_launching *l, amp_comm *comm, amp_error *err) {
    amp_cuda_products *p = l->products;
    uint64_t number, bytes;
    size_t images;
    if (p->mode != AMP_PRODUCTS_FASTEST) return AMP_OK;
    bytes = (uint64_t)room_for(p, &images) * sizeof(Sent) + images;
    AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, &bytes, sizeof bytes, 0,
                               "bytes of choices of products", &number, err));
    AMP_TRY(comm->calls->wait(comm, number, err));
    p->agreed = true;
    char *data = amp_alloc_zeroed(p->allocator, (size_t)bytes + 1);
    if (!data) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for rank 0's choices of products");
    const amp_status status = broadcast(l, comm, data, (size_t)bytes + 1, err);
    amp_free(p->allocator, data, (size_t)bytes + 1);
    return status;
}

/* ---- a name ------------------------------------------------------------------------------------------------------ */

void amp_cuda_choices_name(const amp_cuda_products *p, char name[AMP_CHOICES_NAME]) {
    amp_sha256 hash;
    uint8_t digest[32];
    char hex[KEY_LETTERS];
    bool any = false;
    *name = 0;
    amp_sha256_init(&hash);
    for (const amp_cuda_choice *c = p->choices; c && p->mode == AMP_PRODUCTS_FASTEST; c = c->next) {
        if (!c->served) continue;
        any = true;
        amp_sha256_update(&hash, &c->key, sizeof c->key);
        for (uint32_t i = 0; i < c->count; i++)
            amp_sha256_update(&hash, &c->algorithms[i].algo, sizeof c->algorithms[i].algo);
    }
    amp_sha256_final(&hash, digest);
    amp_sha256_hex(digest, hex);
    if (any) snprintf(name, AMP_CHOICES_NAME, "fastest %.16s", hex);
}
