/* json.h: reading untrusted JSON (RFC 8259), and writing JSON.
 *
 * The reader is stricter than the RFC where readers are known to differ: duplicate keys, invalid UTF-8, lone
 * surrogates, U+0000, numbers that a double or an int64 cannot hold, a byte order mark, and anything after the value
 * are errors.  Depth and the number of values are limited; time is O(n log n), memory O(n).
 */
#ifndef AMP_BASE_JSON_H
#define AMP_BASE_JSON_H

#include "base/alloc.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum amp_json_kind {
    AMP_JSON_NULL,
    AMP_JSON_BOOL,
    AMP_JSON_NUMBER,
    AMP_JSON_STRING,
    AMP_JSON_ARRAY,
    AMP_JSON_OBJECT
} amp_json_kind;

typedef struct amp_json amp_json;
typedef struct amp_json_member amp_json_member;

typedef struct amp_json_number {
    double value;
    int64_t integer; /* exact where is_integer */
    bool is_integer; /* written without fraction and exponent */
} amp_json_number;

typedef struct amp_json_string {
    const char *data; /* UTF-8, NUL-terminated, no NUL before its end */
    size_t len;
} amp_json_string;

typedef struct amp_json_array {
    const amp_json *items;
    size_t count;
} amp_json_array;

typedef struct amp_json_object {
    const amp_json_member *members; /* in the order of the text */
    size_t count;
    const amp_json_member *const *sorted; /* the same by key, for amp_json_get */
} amp_json_object;

struct amp_json {
    amp_json_kind kind;
    size_t offset; /* of its first byte in the text, for error messages */
    union {
        bool boolean;
        amp_json_number number;
        amp_json_string string;
        amp_json_array array;
        amp_json_object object;
    };
};

struct amp_json_member {
    amp_json_string key;
    amp_json value;
};

typedef struct amp_json_limits {
    int depth;     /* of nested arrays and objects; 0: 32 */
    size_t values; /* in the whole text, keys not counted; 0: 1,000,000 */
} amp_json_limits;

/* A parsed text.  It keeps nothing of the text itself.  Immutable, so any number of threads may read it. */
typedef struct amp_json_document amp_json_document;

/* |limits| may be NULL.  Errors: AMP_BAD_FILE with "byte OFFSET: what is wrong"; AMP_OUT_OF_MEMORY.  Free with
 * amp_json_free. */
amp_status amp_json_parse(const char *text, size_t len, const amp_json_limits *limits, const amp_allocator *a,
                          amp_json_document **out, amp_error *err);
void amp_json_free(amp_json_document *document); /* NULL is fine */

const amp_json *amp_json_root(const amp_json_document *document);
/* The value of a key, or NULL where there is none or |json| is no object, or NULL itself.  O(log n). */
const amp_json *amp_json_get(const amp_json *json, const char *key);
/* "null", "boolean", "number", "string", "array" or "object" */
const char *amp_json_kind_name(amp_json_kind kind);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Commas are put where they belong:
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
 * byte, so what is written always reads back.  Memory that runs out is remembered, and told once at the end. */
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
/* The shortest decimal that reads back (base/text.h).  JSON has no infinity and no NaN: they are written as null. */
void amp_json_put_double(amp_json_writer *w, const char *key, double value);
void amp_json_put_string(amp_json_writer *w, const char *key, const char *value); /* NULL: null */

#ifdef __cplusplus
}
#endif

#endif
