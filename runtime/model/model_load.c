/* model_load.c: amp_model_load: a model.so on disk is read once and checked as data before the system's loader, which
 * trusts its input, sees the same bytes; then its descriptor's tables are checked. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "runtime/model/model.h"
#include "runtime/model/model_library.h"
#include "runtime/model/model_tables.h"
#include "runtime/model/state.h"

enum { HASH_SIZE = 32 };

/* ELF machine numbers (System V ABI); 0: this library was built for one that is not listed, so nothing is checked. */
#if defined(__x86_64__)
enum { THIS_MACHINE = 62 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = 183 };
#else
enum { THIS_MACHINE = 0 };
#endif

_Static_assert(sizeof AMP_MODEL_UNSEALED == HASH_SIZE + 1, "it stands in the place of a hash");

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* SHA-256 of the file with the hash's own place zero: what is in that place, but of a file that was linked by hand. */
static void hash_without(const char *data, size_t size, size_t at, uint8_t out[HASH_SIZE]) {
    static const uint8_t zeros[HASH_SIZE];
    amp_sha256 hash;
    amp_sha256_init(&hash);
    amp_sha256_update(&hash, data, at);
    amp_sha256_update(&hash, zeros, HASH_SIZE);
    amp_sha256_update(&hash, data + at + HASH_SIZE, size - at - HASH_SIZE);
    amp_sha256_final(&hash, out);
}

static bool is_seal(const uint8_t *there, const uint8_t hash[HASH_SIZE]) {
    return !memcmp(hash, there, HASH_SIZE) || !memcmp(AMP_MODEL_UNSEALED, there, HASH_SIZE);
}

/* Text with a line "amp 1", as a model's first statement is. */
static bool is_model_text(const char *data, size_t size) {
    size_t line = 0;
    for (size_t i = 0; i < size; i++) {
        if (!data[i] || (signed char)data[i] < 0) return false;
        if (i == line && size - i > 4 && !memcmp(data + i, "amp ", 4) && data[i + 4] >= '0' && data[i + 4] <= '9')
            return true;
        if (data[i] == '\n') line = i + 1;
    }
    return false;
}

/* |hash|: of the bytes but for its own place in them, |hash_at|. */
static amp_status check_bytes(const char *path, const char *data, size_t size, uint8_t hash[HASH_SIZE], size_t *hash_at,
                              amp_error *err) {
    size_t at, length;
    amp_error why = {0};
    if (is_model_text(data, size))
        return amp_fail(err, AMP_BAD_FILE, "%s: the text of a model; compile it: ampc model.amp -o model.so", path);
    if (amp_elf_section(data, size, AMP_MODEL_HASH_SECTION, &at, &length, &why))
        return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc, or damaged: %s", path, why.message);
    if (length != HASH_SIZE)
        return amp_fail(err, AMP_BAD_FILE, "%s: section %s has %zu bytes, not %d: not a model of ampc, or damaged",
                        path, AMP_MODEL_HASH_SECTION, length, HASH_SIZE);
    hash_without(data, size, *hash_at = at, hash);
    if (!is_seal((const uint8_t *)data + at, hash))
        return amp_fail(err, AMP_BAD_FILE,
                        "%s: the file is damaged: its SHA-256 is not the one that it was written with; "
                        "copy or compile it again",
                        path);
    int machine = amp_elf_machine(data, size);
    if (THIS_MACHINE != 0 && machine != THIS_MACHINE)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: compiled for another processor (ELF machine %d, here %d)", path,
                        machine, THIS_MACHINE);
    return AMP_OK;
}

/* ---- from a descriptor ------------------------------------------------------------------------------------------- */

_Static_assert(sizeof AMP_VERSION <= AMP_MODEL_VERSION_SIZE, "the descriptor holds it");

static amp_status check_header(const amp_model_desc *desc, const char *where, amp_error *err) {
    if (!desc || desc->magic != AMP_MODEL_MAGIC) return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc", where);
    if (strncmp(desc->version, AMP_VERSION, sizeof desc->version))
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: a model of ampc %.*s, and this is libamp %s, which runs models of its own version: "
                        "compile its .amp again with this one",
                        where, AMP_MODEL_VERSION_SIZE, desc->version, AMP_VERSION);
    return amp_model_check_size(desc->struct_size, sizeof *desc, "its descriptor", where, err);
}

static amp_status take_programs(amp_model *m, const char *where, amp_error *err) {
    const amp_model_program *from;
    int32_t count;
    AMP_TRY(AMP_TAKE_TABLE(&m->desc.programs, "programs", from, count, where, err));
    AMP_TRY(amp_model_make_programs(m, m->desc.programs.count, where, err));
    for (int32_t i = 0; i < count; i++, from++) {
        amp_program *to = &m->programs[i];
        to->name = from->name;
        to->kind = from->kind;
        AMP_TRY(AMP_TAKE_TABLE(&from->buffers, "buffers", to->buffers, to->buffer_count, where, err));
        AMP_TRY(AMP_TAKE_TABLE(&from->kernels, "kernels", to->kernels, to->kernel_count, where, err));
        AMP_TRY(AMP_TAKE_TABLE(&from->results, "results", to->results, to->result_count, where, err));
    }
    return AMP_OK;
}

static amp_status take_tables(amp_model *m, const char *where, amp_error *err) {
    const amp_model_desc *d = &m->desc;
    AMP_TRY(AMP_TAKE_TABLE(&d->states, "states", m->states, m->state_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&d->inputs, "inputs", m->inputs, m->all_input_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&d->decisions, "decisions", m->decisions, m->decision_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&d->trains, "train blocks", m->trains, m->train_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&d->groups, "groups", m->groups, m->group_count, where, err));
    AMP_TRY(AMP_TAKE_TABLE(&d->collectives, "collectives", m->collectives, m->collective_count, where, err));
    return take_programs(m, where, err);
}

/* The lowest is the first kernel's; the checks of the other kernels compare theirs with it. */
static void find_instruction_sets(amp_model *m) {
    bool found = false;
    for (int32_t p = 0; p < m->program_count; p++)
        for (int32_t i = 0; i < m->programs[p].kernel_count; i++) {
            const amp_model_kernel *k = &m->programs[p].kernels[i];
            while (!found && m->lowest_isa < AMP_ISA_COUNT - 1 && !k->run[m->lowest_isa]) m->lowest_isa++;
            found = true;
            for (int isa = m->largest_isa + 1; isa < AMP_ISA_COUNT; isa++)
                if (k->run[isa]) m->largest_isa = isa;
        }
    if (m->largest_isa < m->lowest_isa) m->largest_isa = m->lowest_isa;
}

static int32_t inputs_up_to(const amp_model *m, uint32_t kind) {
    int32_t count = 0;
    while (count < m->all_input_count && m->inputs[count].train_only <= kind) count++;
    return count;
}

static void count_inputs(amp_model *m) {
    m->model_input_count = inputs_up_to(m, AMP_INPUT_OF_MODEL);
    m->input_count = inputs_up_to(m, AMP_INPUT_OF_TRAINING);
}

static amp_status fill(amp_model *m, const amp_model_desc *desc, const char *where, amp_error *err) {
    m->desc = *desc;
    AMP_TRY(take_tables(m, where, err));
    find_instruction_sets(m);
    AMP_TRY(amp_model_check(m, where, err));
    count_inputs(m);
    amp_model_find_programs(m);
    AMP_TRY(amp_states_join(m, err));
    return m->desc.cuda ? amp_model_add_cuda(m, where, err) : AMP_OK;
}

amp_status amp_model_from_desc(const amp_model_desc *desc, const char *where, const amp_allocator *allocator,
                               amp_model **out, amp_error *err) {
    *out = NULL;
    AMP_TRY(check_header(desc, where, err));
    amp_allocator a = amp_allocator_or_default(allocator);
    amp_model *m = amp_alloc_zeroed(&a, sizeof *m);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the model", where);
    m->allocator = a;
    atomic_init(&m->references, 1);
    amp_status status = fill(m, desc, where, err);
    if (status) amp_model_release(m);
    else *out = m;
    return status;
}

/* ---- lifetime ---------------------------------------------------------------------------------------------------- */

/* A model for CUDA lives and goes with the one that has it. */
void amp_model_retain(amp_model *model) {
    if (model && model->owner) model = model->owner;
    if (model) atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
}

void amp_model_release(amp_model *m) {
    if (m && m->owner) m = m->owner;
    if (!m || atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) != 1) return;
    amp_allocator a = m->allocator;
    amp_model_free_cuda(m);
    amp_free(&a, m->programs, (size_t)m->program_count * sizeof *m->programs);
    amp_free(&a, m->blocks, m->blocks ? (size_t)m->state_count * sizeof *m->blocks : 0);
    amp_library_close(m->library);
    amp_free(&a, m, sizeof *m);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* NULL: the library has none. */
static const amp_model_desc *descriptor_of(void *library) {
    amp_model_query_fn function;
    void *symbol = amp_library_symbol(library, AMP_MODEL_SYMBOL);
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast from object to function pointers */
    return function ? function() : NULL;
}

static bool is_of_this_version(const amp_model_desc *desc) {
    return desc && desc->magic == AMP_MODEL_MAGIC && !strncmp(desc->version, AMP_VERSION, sizeof desc->version);
}

/* Whether ampc can compile the file again: what it was compiled from is in it. */
static bool keeps_source(const char *bytes, size_t size) {
    static const char none[] = AMP_MODEL_NO_IR;
    size_t at, length;
    if (amp_elf_section(bytes, size, AMP_MODEL_IR_SECTION, &at, &length, NULL) || !length) return false;
    return length < sizeof none || memcmp(bytes + at, none, sizeof none - 1) != 0;
}

/* A whole file, of whose descriptor this version need not know anything. */
static amp_status refuse_version(const char *path, amp_error *err) {
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: made by another version of ampc; libamp %s runs models of its own version: make it again, "
                    "ampc %s -o NEW.so",
                    path, AMP_VERSION, path);
}

typedef struct Source {
    const void *bytes;
    size_t size;
    const char *path;  /* NULL: memory */
    const char *where; /* in messages */
    uint8_t hash[HASH_SIZE];
    size_t hash_at;
} Source;

/* What a loader of the system may have left undone. */
static amp_status add_addresses(const amp_model_desc *desc, void *library, const Source *s, amp_error *err) {
    if (desc->struct_size != sizeof *desc || desc->self == desc) return AMP_OK;
    return amp_library_add_addresses(library, s->bytes, s->size, s->where, err);
}

static amp_status load_source(const Source *s, const amp_allocator *a, amp_model **out, amp_error *err) {
    void *library;
    AMP_TRY(s->path ? amp_library_open_file(s->path, s->bytes, s->size, &library, err)
                    : amp_library_open(s->bytes, s->size, s->where, &library, err));
    const amp_model_desc *desc = descriptor_of(library);
    amp_status status = AMP_OK;
    if (is_of_this_version(desc)) status = add_addresses(desc, library, s, err);
    else if (s->path && keeps_source(s->bytes, s->size)) status = refuse_version(s->path, err);
    if (!status) status = amp_model_from_desc(desc, s->where, a, out, err);
    if (status) {
        amp_library_close(library);
        return status;
    }
    (*out)->library = library;
    (*out)->library_bytes = amp_library_bytes(s->bytes, s->size);
    (*out)->library_hash_at = s->hash_at;
    memcpy((*out)->library_hash, s->hash, HASH_SIZE);
    return AMP_OK;
}

static amp_status load_checked(Source *s, amp_model *like, const amp_allocator *a, amp_model **out, amp_error *err) {
    AMP_TRY(check_bytes(s->where, s->bytes, s->size, s->hash, &s->hash_at, err));
    if (!like || !like->library || memcmp(like->library_hash, s->hash, HASH_SIZE)) return load_source(s, a, out, err);
    amp_model_retain(*out = like);
    return AMP_OK;
}

/* Moves to |seal| what |part|, |size| bytes from |from| on, has of the hash at |at|. */
static void take_seal(char *part, size_t size, size_t from, size_t at, uint8_t seal[HASH_SIZE]) {
    for (size_t i = at > from ? at - from : 0; i < size && from + i < at + HASH_SIZE; i++) {
        seal[from + i - at] = (uint8_t)part[i];
        part[i] = 0;
    }
}

/* Whether the file has the bytes that |like| was loaded from.  It is read in parts, so that no memory is taken;
 * what a signal interrupts is loaded as any. */
static bool file_is_like(const char *path, const amp_model *like) {
    char part[16 << 10];
    uint8_t hash[HASH_SIZE], seal[HASH_SIZE] = {0};
    amp_sha256 sum;
    ssize_t size;
    int fd;
    if (!like || !like->library || amp_file_open(path, AMP_FILE_REGULAR, &fd, NULL)) return false;
    amp_sha256_init(&sum);
    for (size_t at = 0; (size = read(fd, part, sizeof part)) > 0; at += (size_t)size) {
        take_seal(part, (size_t)size, at, like->library_hash_at, seal);
        amp_sha256_update(&sum, part, (size_t)size);
    }
    amp_sha256_final(&sum, hash);
    close(fd);
    return !size && !memcmp(hash, like->library_hash, HASH_SIZE) && is_seal(seal, hash);
}

amp_status amp_model_load(const char *path, const amp_model_options *options, amp_model **out, amp_error *err) {
    amp_model_options o;
    char *bytes;
    size_t size;
    if (out) *out = NULL;
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_model_options", err));
    if (!out || !(path || o.bytes))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "amp_model_load: out is NULL, or path is NULL and the options have no bytes");
    amp_allocator a = amp_allocator_or_default(o.allocator);
    if (o.bytes) {
        Source given = {.bytes = o.bytes, .size = o.size, .where = path ? path : "model in memory"};
        return load_checked(&given, o.like, &a, out, err);
    }
    if (file_is_like(path, o.like)) {
        amp_model_retain(*out = o.like);
        return AMP_OK;
    }
    AMP_TRY(amp_file_read(path, 0, &a, &bytes, &size, err));
    Source file = {.bytes = bytes, .size = size, .path = path, .where = path};
    amp_status status = load_checked(&file, o.like, &a, out, err);
    amp_free(&a, bytes, size + 1);
    return status;
}
