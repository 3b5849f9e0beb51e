/* csv_fuzz.c: a table that amprun reads, with or without a schema before it: what schema inference writes is read back
 * to the same schema, its numbers are finite, and both parts of the data can be taken.
 *
 * What precedes a line `---` is the schema; without such a line the schema is inferred. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/amprun/data/csv.h"

static const char marker[] = "---\n";
/* A cell of two bytes may be a word of its own, with an entry in three tables; each column has tables besides. */
enum { PER_BYTE = 1024, FIRST = 1 << 20 };
#define SECONDS_FIRST 0.5
#define SECONDS_PER_BYTE 20e-6

/* ---- what is reported: in place of amprun's own, which writes it to standard error ------------------------------- */

static char message[1024];

int report_text(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return 1;
}

int report(const amp_error *err) { return report_text("%s", err->message); }

/* Whether it went well; else something was said. */
static bool went_well(int failed) {
    if (failed && strlen(message) < 8) fuzz_fail("a message that says nothing: '%s'", message);
    return !failed;
}

/* ---- memory, where a sanitizer counts it ------------------------------------------------------------------------- */

__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void *, size_t),
                                                                    void (*given)(const volatile void *));
__attribute__((weak)) size_t __sanitizer_get_allocated_size(const volatile void *p);

static size_t now, most;
static bool counts;

static void on_malloc(const volatile void *p, size_t size) {
    if (!counts || !p) return;
    now += size;
    if (now > most) most = now;
}

/* What was taken before the count began may be given back within it. */
static void on_free(const volatile void *p) {
    if (!counts || !p) return;
    const size_t size = __sanitizer_get_allocated_size(p);
    now -= size < now ? size : now;
}

static void start_count(void) {
    static bool installed;
    if (!installed && __sanitizer_install_malloc_and_free_hooks && __sanitizer_get_allocated_size)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    installed = true;
    now = most = 0;
    counts = true;
}

/* Of the processor's time: the machine may have other work. */
static void check_use(size_t size, clock_t start, const char *what) {
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    counts = false;
    if (most > PER_BYTE * size + FIRST) fuzz_fail("%s takes %zu bytes for a text of %zu", what, most, size);
    if (seconds > SECONDS_FIRST + SECONDS_PER_BYTE * (double)size)
        fuzz_fail("%s takes %g seconds for a text of %zu bytes", what, seconds, size);
}

/* ---- the schema -------------------------------------------------------------------------------------------------- */

/* A second file, beside fuzz_file's. */
static const char *schema_file(const void *text, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("schema", 0);
        if (fd < 0) fuzz_fail("no memory file");
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) || (size && pwrite(fd, text, size, 0) != (ssize_t)size)) fuzz_fail("the memory file is full");
    return path;
}

static void check_numbers(const CsvSchema *s) {
    const CsvColumn *open = NULL;
    if (!csv_schema_is_fitted(s, &open)) fuzz_fail("nothing was derived of the column '%s'", open->name);
    for (int i = 0; i < s->columns.len; i++) {
        const CsvColumn *c = &s->columns.data[i];
        if (c->kind == CSV_NUMBER && !(isfinite(c->mean) && isfinite(c->std) && c->std > 0))
            fuzz_fail("column '%s' has mean %g and std %g", c->name, c->mean, c->std);
        if (c->kind == CSV_CATEGORY && !c->values.len) fuzz_fail("category '%s' has no value", c->name);
    }
}

/* What was written reads back, and says the same of the same table. */
static void check_reread(const CsvSource *first, int rows, int held, const char *data) {
    CsvSource again = {0};
    char spec[160];
    int rows_again, held_again;
    snprintf(spec, sizeof spec, "csv:%s,schema=%s", data, schema_file(first->text, strlen(first->text)));
    message[0] = 0;
    if (csv_describe(&again, spec, &rows_again, &held_again))
        fuzz_fail("a written schema is refused: %s\n%s", message, first->text);
    if (strcmp(again.text, first->text)) fuzz_fail("written again it is another:\n%s\n%s", first->text, again.text);
    if (rows_again != rows || held_again != held)
        fuzz_fail("%d rows, %d of them held out, are then %d and %d", rows, held, rows_again, held_again);
    arena_free(&again.arena);
}

/* ---- the data ---------------------------------------------------------------------------------------------------- */

/* A model that has what the columns are fed to by default: numbers, categories, a target. */
static DataInputs inputs_for(const CsvSchema *s) {
    int64_t count[3] = {0};
    DataInputs in = {.model = "model"};
    amp_dtype target = AMP_DT_F32;
    for (int i = 0; i < s->columns.len; i++) {
        const CsvColumn *c = &s->columns.data[i];
        if (c->kind == CSV_IGNORE) continue;
        count[c->target ? 2 : c->kind == CSV_CATEGORY] += c->indicator ? 2 : 1;
        if (c->target && c->kind == CSV_CATEGORY) target = AMP_DT_I32;
    }
    if (count[0])
        in.input[in.count++] = (amp_tensor_info){.name = "x", .dtype = AMP_DT_F32, .rank = 2, .dims = {1, count[0]}};
    if (count[1])
        in.input[in.count++] = (amp_tensor_info){.name = "ids", .dtype = AMP_DT_I32, .rank = 2, .dims = {1, count[1]}};
    in.model_inputs = in.count;
    if (count[2])
        in.input[in.count++] = (amp_tensor_info){.name = "t", .dtype = target, .rank = 2, .dims = {1, count[2]}};
    in.train_inputs = in.count - in.model_inputs;
    return in;
}

static void check_samples(const Dataset *d) {
    for (int i = 0; i < d->columns; i++) {
        const Column *c = &d->column[i];
        for (int64_t k = 0; c->dtype == AMP_DT_F32 && k < c->elements * d->count; k++)
            if (!isfinite(((const float *)c->data)[k])) fuzz_fail("a sample has %g", ((const float *)c->data)[k]);
    }
}

static void take_part(const char *spec, Part part, const DataInputs *inputs) {
    Dataset d = {0};
    message[0] = 0;
    if (went_well(csv_read(&d, spec, part, inputs))) check_samples(&d);
    for (int i = 0; i < d.columns; i++) free(d.column[i].owned);
    csv_close(d.csv);
}

/* ------------------------------------------------------------------------------------------------------------------ */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *split = size ? memmem(data, size, marker, sizeof marker - 1) : NULL;
    const uint8_t *table = split ? split + sizeof marker - 1 : data;
    const char *path = fuzz_file(table, size - (size_t)(table - data));
    char spec[160];
    CsvSource csv = {0};
    int rows, held;
    if (split) snprintf(spec, sizeof spec, "csv:%s,schema=%s", path, schema_file(data, (size_t)(split - data)));
    else snprintf(spec, sizeof spec, "csv:%s,held=0", path);
    message[0] = 0;
    clock_t start = clock();
    start_count();
    const bool good = went_well(csv_describe(&csv, spec, &rows, &held));
    check_use(size, start, "reading it");
    if (good) {
        const DataInputs inputs = inputs_for(&csv.schema);
        if (held < 0 || held > rows) fuzz_fail("%d of %d rows are held out", held, rows);
        check_numbers(&csv.schema);
        check_reread(&csv, rows, held, path);
        snprintf(spec, sizeof spec, "csv:%s,schema=%s", path, schema_file(csv.text, strlen(csv.text)));
        start = clock();
        start_count();
        take_part(spec, PART_TRAIN, &inputs);
        take_part(spec, PART_TEST, &inputs);
        check_use(size + strlen(csv.text), start, "taking its samples");
    }
    arena_free(&csv.arena);
    return 0;
}
