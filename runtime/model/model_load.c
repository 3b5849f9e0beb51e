/* model_load.c: amp_model_load: a model.so on disk is read once and checked as data before the system's loader, which
 * trusts its input, sees the same bytes; then its descriptor's tables are copied and checked. */
#include <string.h>

#include "base/alloc.h"
#include "base/elf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/names.h"
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

/* ---- an older model: its kinds ----------------------------------------------------------------------------------- */

/* The kinds of programs, results and counters of a model from before minor 4, which has names alone. */

enum { MINOR_OF_KINDS = 4 };

/* A table that is damaged may lack names: the check that follows refuses it. */
static void name_state(amp_model_state *s) {
    bool is_scalar = s->role == AMP_STATE_COUNTER || s->role == AMP_STATE_SCALER;
    CounterName n = amp_counter_name(is_scalar && s->name ? s->name : "");
    s->counter = n.kind;
    s->counter_block = n.block;
}

static void name_result(const amp_model *m, amp_model_result *r) {
    ResultName n = amp_result_name(r->name ? r->name : "");
    r->kind = n.kind;
    r->index = n.kind == RESULT_GRADIENT ? amp_model_state_index(m, n.of) : n.block;
}

static bool has_names(const amp_model *m) {
    for (int32_t i = 0; i < m->state_count; i++)
        if (!m->states[i].name) return false;
    return true;
}

void amp_model_kinds_from_names(amp_model *m) {
    if (m->desc.abi_minor >= MINOR_OF_KINDS || !has_names(m)) return;
    for (int32_t i = 0; i < m->state_count; i++) name_state(&m->states[i]);
    for (int32_t i = 0; i < m->program_count; i++) {
        amp_program *p = &m->programs[i];
        p->kind = amp_program_kind(p->name ? p->name : "");
        for (int32_t r = 0; r < p->result_count; r++) name_result(m, &p->results[r]);
    }
}

_Static_assert(sizeof AMP_MODEL_UNSEALED == HASH_SIZE + 1, "it stands in the place of a hash");

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* SHA-256 of the file with the hash's own place zero. */
static void hash_without(const char *data, size_t size, size_t at, uint8_t out[HASH_SIZE]) {
    static const uint8_t zeros[HASH_SIZE];
    amp_sha256 hash;
    amp_sha256_init(&hash);
    amp_sha256_update(&hash, data, at);
    amp_sha256_update(&hash, zeros, HASH_SIZE);
    amp_sha256_update(&hash, data + at + HASH_SIZE, size - at - HASH_SIZE);
    amp_sha256_final(&hash, out);
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

static amp_status check_bytes(const char *path, const char *data, size_t size, amp_error *err) {
    size_t at, length;
    uint8_t hash[HASH_SIZE];
    amp_error why = {0};
    if (is_model_text(data, size))
        return amp_fail(err, AMP_BAD_FILE, "%s: the text of a model; compile it: ampc model.amp -o model.so", path);
    if (amp_elf_section(data, size, AMP_MODEL_HASH_SECTION, &at, &length, &why))
        return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc, or damaged: %s", path, why.message);
    if (length != HASH_SIZE)
        return amp_fail(err, AMP_BAD_FILE, "%s: section %s has %zu bytes, not %d: not a model of ampc, or damaged",
                        path, AMP_MODEL_HASH_SECTION, length, HASH_SIZE);
    hash_without(data, size, at, hash);
    if (memcmp(hash, data + at, HASH_SIZE) && memcmp(AMP_MODEL_UNSEALED, data + at, HASH_SIZE))
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

static amp_status copy_program(const amp_model_copying *c, const amp_model_program *from, amp_program *to) {
    to->name = from->name;
    to->kind = from->kind;
    AMP_TRY(
        AMP_COPY_TABLE(c, &from->buffers, "buffers", offsetof(amp_model_buffer, place), to->buffers, to->buffer_count));
    AMP_TRY(
        AMP_COPY_TABLE(c, &from->kernels, "kernels", offsetof(amp_model_kernel, batch), to->kernels, to->kernel_count));
    return AMP_COPY_TABLE(c, &from->results, "results", offsetof(amp_model_result, kind), to->results,
                          to->result_count);
}

static amp_status copy_programs(const amp_model_copying *c, amp_model *m) {
    amp_model_program *programs;
    int32_t count;
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.programs, "programs", offsetof(amp_model_program, kind), programs, count));
    m->programs = amp_alloc_zeroed(c->allocator, (size_t)count * sizeof *m->programs);
    amp_status status = AMP_OK;
    if (m->programs) m->program_count = count;
    else status = amp_fail(c->err, AMP_OUT_OF_MEMORY, "%s: no memory for the table of programs", c->where);
    for (int32_t i = 0; !status && i < count; i++) status = copy_program(c, &programs[i], &m->programs[i]);
    amp_model_free_table(c->allocator, programs, count, sizeof *programs);
    return status;
}

static amp_status copy_tables(const amp_model_copying *c, amp_model *m) {
    AMP_TRY(
        AMP_COPY_TABLE(c, &m->desc.states, "states", offsetof(amp_model_state, counter), m->states, m->state_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.inputs, "inputs", sizeof(amp_model_input), m->inputs, m->all_input_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.decisions, "decisions", sizeof(amp_model_decision), m->decisions,
                           m->decision_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.trains, "train blocks", sizeof(amp_model_train), m->trains, m->train_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.groups, "groups", sizeof(amp_model_group), m->groups, m->group_count));
    AMP_TRY(AMP_COPY_TABLE(c, &m->desc.collectives, "collectives", sizeof(amp_model_collective), m->collectives,
                           m->collective_count));
    return copy_programs(c, m);
}

/* A kernel that was not emitted for an instruction set runs as the next lower one. */
static void fill_kernel(amp_model *m, amp_model_kernel *k) {
    for (int isa = 1; isa < AMP_ISA_COUNT; isa++) {
        if (k->run[isa] && isa > m->largest_isa) m->largest_isa = isa;
        if (!k->run[isa]) k->run[isa] = k->run[isa - 1];
    }
}

/* The lowest is that of the first kernel; that the others have it too is checked with them. */
static void fill_instruction_sets(amp_model *m) {
    bool found = !(m->desc.required_features & AMP_MODEL_NEEDS_ISA);
    for (int32_t p = 0; p < m->program_count; p++)
        for (int32_t i = 0; i < m->programs[p].kernel_count; i++) {
            amp_model_kernel *k = &m->programs[p].kernels[i];
            while (!found && m->lowest_isa < AMP_ISA_COUNT - 1 && !k->run[m->lowest_isa]) m->lowest_isa++;
            found = true;
            fill_kernel(m, k);
        }
    if (m->largest_isa < m->lowest_isa) m->largest_isa = m->lowest_isa;
}

#define KNOWN_FEATURES                                                                                                 \
    (AMP_MODEL_NEEDS_ISA | AMP_MODEL_NEEDS_BATCH | AMP_MODEL_NEEDS_HWIO | AMP_MODEL_NEEDS_ATTENTION |                  \
     AMP_MODEL_NEEDS_GROUPS | AMP_MODEL_NEEDS_NARROW | AMP_MODEL_NEEDS_SIZES | AMP_MODEL_NEEDS_CUDA_ATTENTION |        \
     AMP_MODEL_NEEDS_TICKETS | AMP_MODEL_NEEDS_PARTS | AMP_MODEL_NEEDS_BATCHED_PARTS | AMP_MODEL_NEEDS_MANY_SIZES |    \
     AMP_MODEL_NEEDS_RENAMED | AMP_MODEL_NEEDS_LOW_STATES | AMP_MODEL_NEEDS_F8_MOMENTS |                               \
     AMP_MODEL_NEEDS_BUFFER_PARTS | AMP_MODEL_NEEDS_TURNED_COLUMNS | AMP_MODEL_NEEDS_COLLECTIVES |                     \
     AMP_MODEL_NEEDS_RANK_SUMS | AMP_MODEL_NEEDS_SHARES | AMP_MODEL_NEEDS_JOINED | AMP_MODEL_NEEDS_CUDA_SHARES |       \
     AMP_MODEL_NEEDS_PARTIALS | AMP_MODEL_NEEDS_LOOKS)

static amp_status check_header(const amp_model_desc *desc, const char *where, amp_error *err) {
    if (!desc || desc->magic != AMP_MODEL_MAGIC) return amp_fail(err, AMP_BAD_FILE, "%s: not a model of ampc", where);
    if (desc->abi_major != AMP_MODEL_ABI_MAJOR)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: has model ABI %u.%u, this library reads %u.x; compile the model again", where,
                        desc->abi_major, desc->abi_minor, AMP_MODEL_ABI_MAJOR);
    if (desc->struct_size < offsetof(amp_model_desc, ir_text))
        return amp_fail(err, AMP_BAD_FILE, "%s: the descriptor has only %u bytes", where, desc->struct_size);
    if (!amp_model_elements_fit(desc->abi_minor, desc->struct_size, offsetof(amp_model_desc, ir_text), sizeof *desc))
        return amp_fail(err, AMP_BAD_FILE, "%s: the descriptor is damaged (%u bytes of minor %u)", where,
                        desc->struct_size, desc->abi_minor);
    if (desc->required_features & ~KNOWN_FEATURES)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: needs features 0x%llx that this library does not have; use a newer one", where,
                        (unsigned long long)(desc->required_features & ~KNOWN_FEATURES));
    return AMP_OK;
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
    size_t common = desc->struct_size < sizeof m->desc ? desc->struct_size : sizeof m->desc;
    memcpy(&m->desc, desc, common);
    AMP_TRY(copy_tables(&(amp_model_copying){&m->allocator, where, m->desc.abi_minor, err}, m));
    fill_instruction_sets(m);
    amp_model_kinds_from_names(m);
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
    amp_model_free_programs(m);
    amp_model_free_table(&a, m->states, m->state_count, sizeof *m->states);
    amp_model_free_table(&a, m->inputs, m->all_input_count, sizeof *m->inputs);
    amp_model_free_table(&a, m->decisions, m->decision_count, sizeof *m->decisions);
    amp_model_free_table(&a, m->trains, m->train_count, sizeof *m->trains);
    amp_model_free_table(&a, m->groups, m->group_count, sizeof *m->groups);
    amp_free(&a, m->blocks, m->blocks ? (size_t)m->state_count * sizeof *m->blocks : 0);
    amp_model_free_table(&a, m->collectives, m->collective_count, sizeof *m->collectives);
    amp_library_close(m->library);
    amp_free(&a, m, sizeof *m);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static amp_status query(void *library, const char *path, const amp_model_desc **out, amp_error *err) {
    amp_model_query_fn function;
    void *symbol = amp_library_symbol(library, AMP_MODEL_SYMBOL);
    if (!symbol) return amp_fail(err, AMP_BAD_FILE, "%s: has no %s: not a model of ampc", path, AMP_MODEL_SYMBOL);
    memcpy(&function, &symbol, sizeof function); /* ISO C has no cast from object to function pointers */
    *out = function(AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
    if (*out) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: does not serve model ABI %u.%u; compile the model again with this version", path,
                    AMP_MODEL_ABI_MAJOR, AMP_MODEL_ABI_MINOR);
}

/* |path|: where the bytes come from; NULL: from memory. */
static amp_status load_bytes(const void *bytes, size_t size, const char *path, const char *where,
                             const amp_allocator *a, amp_model **out, amp_error *err) {
    void *library;
    const amp_model_desc *desc;
    AMP_TRY(check_bytes(where, bytes, size, err));
    AMP_TRY(path ? amp_library_open_file(path, bytes, size, &library, err)
                 : amp_library_open(bytes, size, where, &library, err));
    amp_status status = query(library, where, &desc, err);
    if (!status) status = amp_model_from_desc(desc, where, a, out, err);
    if (status) amp_library_close(library);
    else (*out)->library = library;
    return status;
}

amp_status amp_model_load(const char *path, const amp_model_options *options, amp_model **out, amp_error *err) {
    amp_model_options o;
    char *bytes;
    size_t size;
    if (out) *out = NULL;
    if (!path || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_load: path or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_model_options", err));
    amp_allocator a = amp_allocator_or_default(o.allocator);
    AMP_TRY(amp_file_read(path, 0, &a, &bytes, &size, err));
    amp_status status = load_bytes(bytes, size, path, path, &a, out, err);
    amp_free(&a, bytes, size + 1);
    return status;
}

amp_status amp_model_load_memory(const void *bytes, size_t size, const char *name, const amp_model_options *options,
                                 amp_model **out, amp_error *err) {
    amp_model_options o;
    if (out) *out = NULL;
    if (!bytes || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_model_load_memory: bytes or out is NULL");
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_model_options", err));
    amp_allocator a = amp_allocator_or_default(o.allocator);
    return load_bytes(bytes, size, NULL, name ? name : "model in memory", &a, out, err);
}
