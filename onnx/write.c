/* write.c: a model as bytes, field by field in the order of their numbers, as other writers of protobuf have it; what
 * was not understood is put between, where it was. */
#define _XOPEN_SOURCE 700 /* unlink */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/writer.h"

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

amp_status onnx_flush(Out *out, amp_error *err) {
    const size_t held = out->held;
    out->held = 0;
    return held ? amp_file_writer_write(out->file, out->buffer, held, err) : AMP_OK;
}

amp_status onnx_put(Out *out, const void *data, size_t size, amp_error *err) {
    out->at += size;
    if (!out->file) return AMP_OK;
    if (size > ONNX_OUT - out->held) AMP_TRY(onnx_flush(out, err));
    if (size > ONNX_OUT) return amp_file_writer_write(out->file, data, size, err);
    if (size) memcpy(out->buffer + out->held, data, size);
    out->held += size;
    return AMP_OK;
}

static amp_status put(Writer *w, const void *data, size_t size) { return onnx_put(&w->out, data, size, w->err); }

static amp_status put_varint(Writer *w, uint64_t value) {
    unsigned char bytes[AMP_VARINT_MOST];
    return put(w, bytes, amp_varint_put(bytes, value));
}

static amp_status put_tag(Writer *w, const Field *field, amp_wire wire) {
    return put_varint(w, amp_wire_tag(field->number, wire));
}

static amp_status put_int(Writer *w, const Field *field, int64_t value) {
    AMP_TRY(put_tag(w, field, AMP_WIRE_VARINT));
    return put_varint(w, (uint64_t)value);
}

static amp_status put_float(Writer *w, const Field *field, float value) {
    unsigned char bytes[sizeof value];
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    amp_little_endian_put(bytes, bits, sizeof bytes);
    AMP_TRY(put_tag(w, field, AMP_WIRE_32));
    return put(w, bytes, sizeof bytes);
}

static amp_status put_bytes(Writer *w, const Field *field, const void *data, size_t size) {
    AMP_TRY(put_tag(w, field, AMP_WIRE_BYTES));
    AMP_TRY(put_varint(w, size));
    return put(w, data, size);
}

static amp_status put_text(Writer *w, const Field *field, const char *text) {
    return put_bytes(w, field, text, strlen(text));
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static amp_status put_fields(Writer *w, const Message *type, const void *message, const TensorPlan *plan);

static amp_status put_body(Writer *w, const Message *around, const Field *field, const void *message) {
    TensorPlan plan;
    if (field->message != &onnx_tensor_message) return put_fields(w, field->message, message, NULL);
    AMP_TRY(onnx_plan_tensor(w, message, around == &onnx_graph_message, &plan));
    AMP_TRY(put_fields(w, field->message, &plan.tensor, &plan));
    return plan.tensor.data.field == ONNX_EXTERNAL_DATA ? onnx_put_elements(w, &plan) : AMP_OK;
}

static amp_status put_message(Writer *w, const Message *around, const Field *field, const void *message) {
    AMP_TRY(put_tag(w, field, AMP_WIRE_BYTES));
    if (!w->is_counting) {
        AMP_TRY(put_varint(w, w->sizes.data[w->next++]));
        return put_body(w, around, field, message);
    }
    const int number = w->sizes.len;
    const uint64_t before = w->out.at;
    vec_push(w->arena, &w->sizes, 0);
    AMP_TRY(put_body(w, around, field, message));
    const uint64_t size = w->out.at - before;
    w->sizes.data[number] = size;
    return put_varint(w, size);
}

static amp_status put_data(Writer *w, const Field *field, const TensorPlan *plan) {
    const OnnxData *data = &plan->tensor.data;
    const bool is_empty_there =
        !data->size && data->field != ONNX_EXTERNAL_DATA && plan->tensor.has >> field->number & 1;
    if (is_empty_there) return put_bytes(w, field, NULL, 0);
    if (!data->size || data->field != field->number) return AMP_OK;
    AMP_TRY(put_tag(w, field, AMP_WIRE_BYTES));
    AMP_TRY(put_varint(w, data->size));
    return onnx_put_elements(w, plan);
}

static amp_status put_element(Writer *w, const Message *around, const Field *field, const void *element) {
    switch (field->kind) {
    case FIELD_NAMES: return put_text(w, field, *(const char *const *)element);
    case FIELD_STRINGS: {
        const OnnxBytes *bytes = element;
        return put_bytes(w, field, bytes->data, bytes->size);
    }
    case FIELD_INTS: return put_int(w, field, *(const int64_t *)element);
    case FIELD_FLOATS: return put_float(w, field, *(const float *)element);
    default: return put_message(w, around, field, element);
    }
}

static size_t element_size(const Field *field) {
    switch (field->kind) {
    case FIELD_NAMES: return sizeof(const char *);
    case FIELD_STRINGS: return sizeof(OnnxBytes);
    case FIELD_INTS: return sizeof(int64_t);
    case FIELD_FLOATS: return sizeof(float);
    default: return field->message->size;
    }
}

static amp_status put_elements(Writer *w, const Message *type, const Field *field, const void *at) {
    AnyVec vec;
    memcpy(&vec, at, sizeof vec);
    const size_t size = element_size(field);
    for (int i = 0; i < vec.len; i++) AMP_TRY(put_element(w, type, field, (char *)vec.data + size * (size_t)i));
    return AMP_OK;
}

/* |is_there|: the message had the field, so that a zero is written. */
static amp_status put_field(Writer *w, const Message *type, const Field *field, const void *at, bool is_there,
                            const TensorPlan *plan) {
    const char *name;
    const void *message;
    switch ((FieldKind)field->kind) {
    case FIELD_INT64: return is_there || *(const int64_t *)at ? put_int(w, field, *(const int64_t *)at) : AMP_OK;
    case FIELD_INT32: return is_there || *(const int32_t *)at ? put_int(w, field, *(const int32_t *)at) : AMP_OK;
    case FIELD_FLOAT: return is_there || *(const float *)at != 0 ? put_float(w, field, *(const float *)at) : AMP_OK;
    case FIELD_NAME:
        memcpy(&name, at, sizeof name);
        return name && (is_there || *name) ? put_text(w, field, name) : AMP_OK;
    case FIELD_BYTES: {
        const OnnxBytes *bytes = at;
        return is_there || bytes->size ? put_bytes(w, field, bytes->data, bytes->size) : AMP_OK;
    }
    case FIELD_MESSAGE:
        memcpy(&message, at, sizeof message);
        return message ? put_message(w, type, field, message) : AMP_OK;
    case FIELD_DATA: return put_data(w, field, plan);
    default: return put_elements(w, type, field, at);
    }
}

/* Unknown fields up to the field |before|; all if that is 0. */
static amp_status put_rest(Writer *w, OnnxBytes *rest, uint64_t before) {
    uint64_t number;
    for (size_t size; (size = onnx_rest_next(*rest, &number));) {
        if (before && number > before) break;
        AMP_TRY(put(w, rest->data, size));
        rest->data += size;
        rest->size -= size;
    }
    return AMP_OK;
}

static amp_status put_fields(Writer *w, const Message *type, const void *message, const TensorPlan *plan) {
    OnnxBytes rest = *(const OnnxBytes *)onnx_field_at(message, type->rest);
    const uint32_t has = type->has == NOWHERE ? 0 : *(const uint32_t *)onnx_field_at(message, type->has);
    for (int i = 0; i < type->field_count; i++) {
        const Field *field = &type->fields[i];
        if (rest.size) AMP_TRY(put_rest(w, &rest, field->number));
        if (field->choice && !onnx_has_choice(type, message, field)) continue;
        const bool chosen = field->choice && type == &onnx_dim_message;
        const bool is_there = chosen || has >> field->number & 1;
        AMP_TRY(put_field(w, type, field, onnx_field_at(message, field->at), is_there, plan));
    }
    return put_rest(w, &rest, 0);
}

static amp_status put_model(Writer *w, bool is_counting) {
    w->is_counting = is_counting;
    w->next = 0;
    w->out.at = w->data.at = 0;
    if (is_counting) w->sizes.len = 0;
    return put_fields(w, &onnx_model_message, w->model, NULL);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct Target {
    const char *path;
    struct stat st;
    bool exists, is_regular;
} Target;

static amp_status look_target(Target *t, const char *path, bool force, amp_error *err) {
    t->path = path;
    t->exists = !stat(path, &t->st);
    t->is_regular = !t->exists || S_ISREG(t->st.st_mode);
    if (!t->exists || force || !t->is_regular) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s: is there already, and is not replaced unless that is asked for (force)", path);
}

static amp_status count_model(Writer *w, const Target *target, OnnxExternal external, const char *location) {
    w->location = external == ONNX_EXTERNAL_ALWAYS ? location : NULL;
    AMP_TRY(put_model(w, true));
    if (external == ONNX_EXTERNAL_AUTO && (w->had_external || w->out.at > INT32_MAX)) {
        w->location = location;
        AMP_TRY(put_model(w, true));
    }
    if (!w->data.at) w->location = NULL; /* no tensor is large */
    if (w->location && !target->is_regular)
        return amp_fail(w->err, AMP_INVALID_ARGUMENT,
                        "%s: is no regular file, beside which external data could be written; name another path",
                        target->path);
    if (w->out.at <= INT32_MAX) return AMP_OK;
    return amp_fail(w->err, AMP_INVALID_ARGUMENT,
                    "%s: would have %llu bytes%s; readers of protobuf take at most 2147483647", target->path,
                    (unsigned long long)w->out.at, w->location ? "" : " without external data");
}

static amp_status write_files(Writer *w, const Target *target, const char *data_path) {
    AMP_TRY(amp_file_writer_open(target->path, NULL, &w->out.file, w->err));
    w->out.buffer = arena_alloc(w->arena, ONNX_OUT);
    if (w->location) {
        AMP_TRY(amp_file_writer_open(data_path, NULL, &w->data.file, w->err));
        w->data.buffer = arena_alloc(w->arena, ONNX_OUT);
    }
    const uint64_t size = w->out.at;
    AMP_TRY(put_model(w, false));
    if (w->out.at != size || w->next != w->sizes.len)
        return amp_fail(w->err, AMP_INTERNAL, "%s: has %llu bytes, and not %llu", target->path,
                        (unsigned long long)w->out.at, (unsigned long long)size);
    AMP_TRY(onnx_flush(&w->out, w->err));
    return w->location ? onnx_flush(&w->data, w->err) : AMP_OK;
}

/* A model that is replaced goes first, so that it is never there with data of another. */
static amp_status commit(Writer *w, const Target *target) {
    char path[AMP_FILE_PATH];
    if (w->location) {
        AMP_TRY(amp_file_target(target->path, path, w->err));
        if (target->exists && unlink(path) && errno != ENOENT)
            return amp_fail_errno(w->err, AMP_IO, errno, "%s: cannot replace", target->path);
        amp_file_writer *data = w->data.file;
        w->data.file = NULL;
        AMP_TRY(amp_file_writer_commit(data, w->err));
    }
    amp_file_writer *file = w->out.file;
    w->out.file = NULL;
    return amp_file_writer_commit(file, w->err);
}

static amp_status write_model(Writer *w, const char *path, const OnnxWriteOptions *options) {
    Target target, data;
    const char *slash = strrchr(path, '/');
    const char *data_path = arena_printf(w->arena, "%s.data", path);
    const char *location = data_path + (slash ? slash + 1 - path : 0);
    AMP_TRY(look_target(&target, path, options->force, w->err));
    struct stat source;
    const bool in_place = target.exists && !stat(w->model->path, &source) && source.st_ino == target.st.st_ino &&
                          source.st_dev == target.st.st_dev;
    w->data_path = in_place || stat(data_path, &source) ? NULL : data_path;
    AMP_TRY(count_model(w, &target, options->external, location));
    if (w->location) AMP_TRY(look_target(&data, data_path, options->force, w->err));
    AMP_TRY(write_files(w, &target, data_path));
    const OnnxFiles *files = w->model->files;
    if (files && files->model.fd >= 0) AMP_TRY(amp_file_reader_check_unchanged(&files->model, files->path, w->err));
    return commit(w, &target);
}

/* Apart from who has the writer, whose fields are as they were after a jump. */
static amp_status write_guarded(Writer *w, const char *path, const OnnxWriteOptions *options) {
    if (setjmp(w->arena->out_of_memory)) return amp_fail(w->err, AMP_OUT_OF_MEMORY, "%s: no memory to write it", path);
    return write_model(w, path, options);
}

amp_status onnx_write(const OnnxModel *model, const char *path, const OnnxWriteOptions *options, amp_error *err) {
    Arena arena;
    Writer writer = {.model = model, .arena = &arena, .err = err};
    arena_init(&arena, NULL);
    amp_status status = write_guarded(&writer, path, options);
    amp_file_writer_abandon(writer.out.file);
    amp_file_writer_abandon(writer.data.file);
    arena_free(&arena);
    return status;
}
