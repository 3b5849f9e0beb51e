/* json_writer.h: writing JSON, with the commas put where they belong.
 *
 *     amp_json_writer w;
 *     amp_json_writer_init(&w, allocator);
 *     amp_json_begin_object(&w, NULL);
 *     amp_json_put_string(&w, "dtype", "F32");      {"dtype":"F32","shape":[2,3]}
 *     amp_json_begin_array(&w, "shape");
 *     amp_json_put_int(&w, NULL, 2);
 *     ...
 *     status = amp_json_writer_status(&w, err);     then use w.data, w.size
 *     amp_json_writer_free(&w);
 *
 * |key| is the member's name inside an object and NULL elsewhere.  Text that is not UTF-8 gets U+FFFD for each damaged
 * byte, so what is written always reads back.  Memory that runs out is remembered, and told once at the end.
 */
#ifndef AMP_BASE_JSON_WRITER_H
#define AMP_BASE_JSON_WRITER_H

#include "base/alloc.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_json_writer {
    amp_allocator allocator;
    char *data; /* NUL-terminated once something was written; the writer's until amp_json_writer_free */
    size_t size, bytes;
    bool out_of_memory;
} amp_json_writer;

void amp_json_writer_init(amp_json_writer *w, const amp_allocator *a);
void amp_json_writer_free(amp_json_writer *w);
amp_status amp_json_writer_status(const amp_json_writer *w, amp_error *err);

void amp_json_begin_object(amp_json_writer *w, const char *key);
void amp_json_end_object(amp_json_writer *w);
void amp_json_begin_array(amp_json_writer *w, const char *key);
void amp_json_end_array(amp_json_writer *w);

void amp_json_put_null(amp_json_writer *w, const char *key);
void amp_json_put_bool(amp_json_writer *w, const char *key, bool value);
void amp_json_put_int(amp_json_writer *w, const char *key, int64_t value);
/* The shortest decimal that reads back (base/decimal.h).  JSON has no infinity and no NaN: they are written as null. */
void amp_json_put_double(amp_json_writer *w, const char *key, double value);
void amp_json_put_string(amp_json_writer *w, const char *key, const char *value);

#ifdef __cplusplus
}
#endif

#endif
