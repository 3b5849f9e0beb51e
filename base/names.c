/* names.c: see names.h. */
#include "base/names.h"

#include <string.h>

#include "base/text.h"

enum { ALONE = 1, OF_BLOCK = 2, NAMED = 4, MAX_BLOCK_DIGITS = 9 };

typedef struct Spelling {
    const char *word;
    int forms;
} Spelling;

static const Spelling results[RESULT_KINDS] = {
#define RESULT(kind, word, forms) [RESULT_##kind] = {word, forms},
#define SOURCE_RESULT RESULT
#include "base/names.def"
};

static const Spelling programs[PROGRAM_KINDS] = {
#define PROGRAM(kind, word) [PROGRAM_##kind] = {word, ALONE},
#define SOURCE_PROGRAM PROGRAM
#include "base/names.def"
};

static const Spelling counters[COUNTER_KINDS] = {
#define COUNTER(kind, word, forms, ...) [COUNTER_##kind] = {word, forms},
#include "base/names.def"
};

const Initialiser amp_initialisers[INITIALISER_KINDS] = {
#define INITIALISER(name, rank, min, max, first, second) [INIT_##name] = {#name, {first, second}, rank, min, max},
#include "base/names.def"
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* "0", "17"; NO_BLOCK for anything else, such as "01", which would be printed as another name. */
static int32_t block_number(const char *text) {
    size_t digits = strspn(text, "0123456789");
    int32_t number = 0;
    if (!digits || text[digits] || digits > MAX_BLOCK_DIGITS || (digits > 1 && *text == '0')) return NO_BLOCK;
    for (; *text; text++) number = number * 10 + (*text - '0');
    return number;
}

/* |*of|: after the word and its dot; NULL: the word alone. */
static bool fits(const Spelling *s, const char *name, int32_t *block, const char **of) {
    size_t length = s->word ? strlen(s->word) : 0;
    *block = NO_BLOCK;
    *of = NULL;
    if (!s->word || strncmp(name, s->word, length)) return false;
    if (!name[length]) return s->forms & ALONE;
    if (name[length] != '.') return false;
    *of = name + length + 1;
    if (s->forms & OF_BLOCK) *block = block_number(*of);
    return s->forms & NAMED || *block != NO_BLOCK;
}

/* The first that fits; 0: none. */
static int find(const Spelling *list, int count, const char *name, int32_t *block, const char **of) {
    for (int i = 1; i < count; i++)
        if (fits(&list[i], name, block, of)) return i;
    *block = NO_BLOCK;
    *of = NULL;
    return 0;
}

ResultName amp_result_name(const char *name) {
    ResultName n;
    n.kind = (ResultKind)find(results, RESULT_KINDS, name, &n.block, &n.of);
    return n;
}

ProgramKind amp_program_kind(const char *name) {
    int32_t block;
    const char *of;
    return (ProgramKind)find(programs, PROGRAM_KINDS, name, &block, &of);
}

CounterName amp_counter_name(const char *name) {
    CounterName n;
    const char *of;
    n.kind = (CounterKind)find(counters, COUNTER_KINDS, name, &n.block, &of);
    return n;
}

const Initialiser *amp_initialiser(const char *name) {
    for (int i = 0; i < INITIALISER_KINDS; i++)
        if (!strcmp(amp_initialisers[i].name, name)) return &amp_initialisers[i];
    return NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

const char *amp_result_word(ResultKind kind) { return results[kind].word; }
const char *amp_program_word(ProgramKind kind) { return programs[kind].word; }
const char *amp_counter_word(CounterKind kind) { return counters[kind].word; }

const char *amp_result_text(Arena *a, ResultKind kind, int32_t block, const char *of) {
    if (block != NO_BLOCK) return arena_printf(a, "%s.%d", results[kind].word, block);
    return of ? arena_printf(a, "%s.%s", results[kind].word, of) : results[kind].word;
}

const char *amp_counter_text(Arena *a, CounterKind kind, int32_t block) {
    return block != NO_BLOCK ? arena_printf(a, "%s.%d", counters[kind].word, block) : counters[kind].word;
}

/* ---- precisions -------------------------------------------------------------------------------------------------- */

const amp_precision amp_precisions[AMP_PRECISION_COUNT] = {
    {"fp16", AMP_DT_F16},
    {"bf16", AMP_DT_BF16},
    {"tf32", AMP_DT_TF32},
    {AMP_FULL_PRECISION, AMP_DT_F32},
};

const amp_precision *amp_precision_find(const char *word) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++)
        if (!strcmp(amp_precisions[i].word, word)) return &amp_precisions[i];
    return NULL;
}

const char *amp_precision_word(amp_dtype low) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++)
        if (amp_precisions[i].low == low) return amp_precisions[i].word;
    return AMP_FULL_PRECISION;
}

bool amp_low_type_of(const char *name, amp_dtype *low) {
    for (int i = 0; i < AMP_PRECISION_COUNT; i++) {
        if (strcmp(amp_dtype_name(amp_precisions[i].low), name)) continue;
        if (low) *low = amp_precisions[i].low;
        return true;
    }
    return false;
}
