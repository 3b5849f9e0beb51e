/* read.c: the messages of a model's file, as fields.h has them.
 *
 * A message is gone over twice: first its fields are counted and checked, so that arrays are made once, then they are
 * read.  Inner messages are skipped the first time, so that all that is read is read at most twice. */
#include "base/text.h"
#include "onnx/reader.h"

enum {
    DEPTH_MOST = 100,    /* messages in messages, as other readers of protobuf have it */
    SMALL_DATA = 1 << 10 /* elements of a tensor that are kept in memory */
};

typedef struct Item {
    uint64_t start, at, end; /* of the tag, and of the value */
    uint64_t value;          /* of a varint */
    uint64_t number;
    amp_wire wire;
} Item;

typedef struct Counts { /* by row of the message's fields */
    uint64_t items[MOST_FIELDS], bytes[MOST_FIELDS];
    uint64_t rest;    /* bytes of fields that are not known */
    uint64_t numbers; /* of elements of a tensor that are varints */
    bool has_data;    /* elements were read of this message */
} Counts;

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static amp_status next_item(const Reader *r, const Frame *frame, uint64_t at, Item *item);

enum { TITLE_MOST = 200 };

/* The name of a message, which may come after what is wrong in it. */
static void put_title(const Reader *r, Text *t, const Frame *frame) {
    const Reader silent = {.files = r->files, .arena = r->arena};
    char title[TITLE_MOST];
    Item item;
    for (uint64_t at = frame->at; at < frame->end && !next_item(&silent, frame, at, &item); at = item.end) {
        const Field *field = onnx_field(frame->type, item.number);
        const uint64_t size = item.end - item.at;
        if (!field || field->at != frame->type->title || item.wire != AMP_WIRE_BYTES || size > TITLE_MOST) continue;
        if (onnx_files_copy(r->files, item.at, title, (size_t)size, NULL)) return;
        text_printf(t, " '%.*s'", (int)size, title);
        return;
    }
}

static void put_path(const Reader *r, Text *t, const Frame *frame) {
    if (!frame->up) {
        text_puts(t, "model");
        return;
    }
    put_path(r, t, frame->up);
    text_printf(t, ".%s", frame->field->name);
    if (frame->field->kind == FIELD_MESSAGES) text_printf(t, "[%d]", frame->index);
    if (frame->type->title != NOWHERE) put_title(r, t, frame);
}

amp_status onnx_reader_fail(const Reader *r, const Frame *frame, uint64_t at, const char *format, ...) {
    amp_error what = {0};
    Text path;
    va_list args;
    if (!r->err) return AMP_BAD_FILE;
    va_start(args, format);
    amp_vfail(&what, AMP_BAD_FILE, format, args);
    va_end(args);
    text_init(&path, r->arena);
    put_path(r, &path, frame);
    return amp_fail(r->err, AMP_BAD_FILE, "%s: byte %llu: %s: %s", r->files->path, (unsigned long long)at,
                    text_str(&path), what.message);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static const char cut[] = "the file is cut off here, or damaged";

/* Where the value of |item| ends, whose first bytes are at |data|. */
static amp_status find_end(const Reader *r, const Frame *frame, const uint8_t *data, size_t size, Item *item) {
    const uint64_t left = frame->end - item->at;
    uint64_t length = item->wire == AMP_WIRE_64 ? 8 : 4;
    size_t n = 0;
    switch ((int)item->wire) {
    case AMP_WIRE_VARINT:
    case AMP_WIRE_BYTES:
        n = amp_varint_get(data, size, &item->value);
        if (!n)
            return onnx_reader_fail(r, frame, item->at, "field %d: a number has no end; %s", (int)item->number, cut);
        length = item->wire == AMP_WIRE_BYTES ? item->value : n;
        if (item->wire == AMP_WIRE_BYTES) item->at += n;
        else n = 0;
        break;
    case AMP_WIRE_64:
    case AMP_WIRE_32: break;
    default:
        return onnx_reader_fail(r, frame, item->start, "field %d is %s, which no ONNX model has; the file is damaged",
                                (int)item->number, item->wire < AMP_WIRE_32 ? "a group" : "of an unknown wire type");
    }
    if (length > left - n)
        return onnx_reader_fail(r, frame, item->start, "field %d has %llu bytes, and %llu are there; %s",
                                (int)item->number, (unsigned long long)length, (unsigned long long)(left - n), cut);
    item->end = item->at + length;
    return AMP_OK;
}

static amp_status next_item(const Reader *r, const Frame *frame, uint64_t at, Item *item) {
    const uint8_t *data;
    size_t size;
    uint64_t tag;
    AMP_TRY(onnx_files_look(r->files, at, 2 * AMP_VARINT_MOST, &data, &size, r->err));
    if (size > frame->end - at) size = (size_t)(frame->end - at);
    const size_t n = amp_varint_get(data, size, &tag);
    if (!n) return onnx_reader_fail(r, frame, at, "a field's number has no end; %s", cut);
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return onnx_reader_fail(r, frame, at, "a field has number %llu; they are from 1 on: the file is damaged",
                                (unsigned long long)(tag >> 3));
    *item = (Item){.start = at, .at = at + n, .number = tag >> 3, .wire = (amp_wire)(tag & 7)};
    return find_end(r, frame, data + n, size - n, item);
}

amp_status onnx_count_varints(const Reader *r, const Frame *frame, uint64_t at, uint64_t end, uint64_t *count) {
    const uint8_t *data;
    size_t size;
    int run = 0;
    *count = 0;
    while (at < end) {
        AMP_TRY(onnx_files_look(r->files, at, 1, &data, &size, r->err));
        if (size > end - at) size = (size_t)(end - at);
        for (size_t i = 0; i < size; i++) {
            if (++run == AMP_VARINT_MOST && data[i] > 1)
                return onnx_reader_fail(r, frame, at + i, "a number has more than 64 bits; the file is damaged");
            if (data[i] < 0x80) {
                ++*count;
                run = 0;
            }
        }
        at += size;
    }
    return run ? onnx_reader_fail(r, frame, end, "packed numbers end in the middle of one; the file is damaged")
               : AMP_OK;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* How one element is stored, alone or packed. */
static amp_wire element_wire(const Field *field) {
    if (field->kind == FIELD_FLOAT || field->kind == FIELD_FLOATS) return AMP_WIRE_32;
    if (field->kind == FIELD_INT64 || field->kind == FIELD_INT32 || field->kind == FIELD_INTS) return AMP_WIRE_VARINT;
    if (field->kind != FIELD_DATA || field->number == ONNX_RAW_DATA) return AMP_WIRE_BYTES;
    if (field->number == ONNX_FLOAT_DATA) return AMP_WIRE_32;
    return field->number == ONNX_DOUBLE_DATA ? AMP_WIRE_64 : AMP_WIRE_VARINT;
}

static bool can_be_packed(const Field *field) {
    return field->kind == FIELD_INTS || field->kind == FIELD_FLOATS || field->kind == FIELD_DATA;
}

static amp_status check_wire(const Reader *r, const Frame *frame, const Field *field, const Item *item) {
    const amp_wire wire = element_wire(field);
    if (item->wire == wire) return AMP_OK;
    if (!can_be_packed(field) || item->wire != AMP_WIRE_BYTES)
        return onnx_reader_fail(r, frame, item->start, "%s has wire type %d, not %d; the file is damaged", field->name,
                                (int)item->wire, (int)wire);
    const unsigned size = wire == AMP_WIRE_64 ? 8 : wire == AMP_WIRE_32 ? 4 : 1;
    if ((item->end - item->at) % size)
        return onnx_reader_fail(r, frame, item->start, "%s has %llu bytes, no multiple of %u; the file is damaged",
                                field->name, (unsigned long long)(item->end - item->at), size);
    return AMP_OK;
}

/* Values of an attribute are several fields to protobuf, and in one place here. */
static amp_status check_choice(const Reader *r, const Frame *frame, const Field *field, const Item *item) {
    const Message *type = frame->type;
    uint32_t *has = onnx_field_at(frame->message, type->has);
    for (int i = 0; i < type->field_count; i++) {
        const Field *other = &type->fields[i];
        if (other->choice && other != field && *has >> other->number & 1)
            return onnx_reader_fail(r, frame, item->start, "it has values in %s and in %s; an attribute has one",
                                    other->name, field->name);
    }
    return AMP_OK;
}

static amp_status count_item(const Reader *r, const Frame *frame, const Field *field, const Item *item,
                             Counts *counts) {
    const size_t row = (size_t)(field - frame->type->fields);
    uint64_t more = 1;
    AMP_TRY(check_wire(r, frame, field, item));
    if (field->choice && frame->type == &onnx_attribute_message) AMP_TRY(check_choice(r, frame, field, item));
    if (frame->type->has != NOWHERE)
        *(uint32_t *)onnx_field_at(frame->message, frame->type->has) |= (uint32_t)1 << field->number;
    if (field->kind == FIELD_FLOATS) more = (item->end - item->at) / 4;
    if ((field->kind == FIELD_INTS || field->kind == FIELD_DATA) && element_wire(field) == AMP_WIRE_VARINT)
        AMP_TRY(onnx_count_varints(r, frame, item->at, item->end, &more));
    if (field->kind == FIELD_DATA) {
        counts->numbers += more;
        more = 1;
    }
    counts->items[row] += more;
    counts->bytes[row] += item->end - item->at;
    return AMP_OK;
}

static amp_status count_items(const Reader *r, const Frame *frame, Counts *counts) {
    Item item;
    for (uint64_t at = frame->at; at < frame->end; at = item.end) {
        AMP_TRY(next_item(r, frame, at, &item));
        const Field *field = onnx_field(frame->type, item.number);
        if (field) AMP_TRY(count_item(r, frame, field, &item, counts));
        else counts->rest += item.end - item.start;
    }
    return AMP_OK;
}

/* ---- reading values ---------------------------------------------------------------------------------------------- */

static size_t element_size(const Field *field) {
    switch (field->kind) {
    case FIELD_NAMES: return sizeof(const char *);
    case FIELD_STRINGS: return sizeof(OnnxBytes);
    case FIELD_INTS: return sizeof(int64_t);
    case FIELD_FLOATS: return sizeof(float);
    default: return field->message->size;
    }
}

/* Room for what was counted: no element moves while they are read. */
static void make_room(const Reader *r, const Frame *frame, const Counts *counts) {
    for (int i = 0; i < frame->type->field_count; i++) {
        const Field *field = &frame->type->fields[i];
        if (field->kind < FIELD_NAMES || !counts->items[i]) continue;
        AnyVec vec;
        memcpy(&vec, onnx_field_at(frame->message, field->at), sizeof vec);
        const size_t size = element_size(field);
        vec.cap = vec.len + (int)counts->items[i];
        void *data = arena_alloc(r->arena, size * (size_t)vec.cap);
        if (vec.len) memcpy(data, vec.data, size * (size_t)vec.len);
        vec.data = data;
        memcpy(onnx_field_at(frame->message, field->at), &vec, sizeof vec);
    }
}

/* The next element of a VEC; its number is *index. */
static void *next_element(const Frame *frame, const Field *field, int *index) {
    AnyVec vec;
    memcpy(&vec, onnx_field_at(frame->message, field->at), sizeof vec);
    *index = vec.len++;
    memcpy(onnx_field_at(frame->message, field->at), &vec, sizeof vec);
    return (char *)vec.data + (size_t)*index * element_size(field);
}

static amp_status read_name(const Reader *r, const Frame *frame, const Field *field, const Item *item, void *to) {
    const size_t size = (size_t)(item->end - item->at);
    char *name = arena_alloc(r->arena, size + 1);
    AMP_TRY(onnx_files_copy(r->files, item->at, name, size, r->err));
    if (memchr(name, '\0', size))
        return onnx_reader_fail(r, frame, item->at, "%s has a byte 0, which no name has; the file is damaged",
                                field->name);
    memcpy(to, &(const char *){name}, sizeof name);
    return AMP_OK;
}

static amp_status read_bytes(const Reader *r, const Item *item, OnnxBytes *to) {
    to->size = (size_t)(item->end - item->at);
    if (r->files->memory) {
        to->data = r->files->memory + item->at;
        return AMP_OK;
    }
    uint8_t *data = arena_alloc(r->arena, to->size);
    to->data = data;
    return onnx_files_copy(r->files, item->at, data, to->size, r->err);
}

static amp_status read_ints(const Reader *r, const Frame *frame, const Field *field, const Item *item) {
    const uint8_t *data;
    size_t size;
    uint64_t value;
    int index;
    for (uint64_t at = item->at; at < item->end;) {
        AMP_TRY(onnx_files_look(r->files, at, AMP_VARINT_MOST, &data, &size, r->err));
        at += amp_varint_get(data, size, &value);
        *(int64_t *)next_element(frame, field, &index) = (int64_t)value;
    }
    return AMP_OK;
}

static float float_of(const uint8_t *data) {
    const uint32_t bits = (uint32_t)amp_little_endian_get(data, sizeof bits);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static amp_status read_floats(const Reader *r, const Frame *frame, const Field *field, const Item *item) {
    uint8_t data[4];
    int index;
    for (uint64_t at = item->at; at < item->end; at += sizeof data) {
        AMP_TRY(onnx_files_copy(r->files, at, data, sizeof data, r->err));
        *(float *)next_element(frame, field, &index) = float_of(data);
    }
    return AMP_OK;
}

/* Elements stay where they are, unless they are few or are in several pieces. */
static amp_status read_data(const Reader *r, const Frame *frame, const Field *field, const Item *item, Counts *counts) {
    OnnxData *data = onnx_field_at(frame->message, field->at);
    const size_t row = (size_t)(field - frame->type->fields), size = (size_t)(item->end - item->at);
    const bool whole = field->number == ONNX_RAW_DATA || (counts->items[row] == 1 && item->wire == AMP_WIRE_BYTES);
    if (!size) return AMP_OK;
    const bool is_again =
        counts->has_data && data->field == field->number && (!whole || field->number == ONNX_RAW_DATA);
    if (data->size && !is_again)
        return onnx_reader_fail(r, frame, item->start, "%s is a second field of elements; a tensor has one",
                                field->name);
    counts->has_data = true;
    data->field = field->number;
    data->numbers = counts->numbers;
    if (whole) {
        data->at = item->at;
        data->size = size;
        data->memory = r->files->memory ? r->files->memory + item->at : NULL;
        if (data->memory || size > SMALL_DATA) return AMP_OK;
    }
    if (!data->memory) data->memory = arena_alloc(r->arena, (size_t)counts->bytes[row]);
    uint8_t *to = (uint8_t *)data->memory + (whole ? 0 : data->size);
    if (!whole) data->size += size;
    return onnx_files_copy(r->files, item->at, to, size, r->err);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static amp_status read_message(Reader *r, Frame *frame);

static void init_message(const Message *type, void *message) {
    static const char *const none = "";
    for (int i = 0; i < type->field_count; i++)
        if (type->fields[i].kind == FIELD_NAME) memcpy(onnx_field_at(message, type->fields[i].at), &none, sizeof none);
}

static amp_status read_inner(Reader *r, const Frame *frame, const Field *field, const Item *item, void *message,
                             int index) {
    Frame inner = {.up = frame,
                   .type = field->message,
                   .message = message,
                   .field = field,
                   .index = index,
                   .depth = frame->depth + 1,
                   .at = item->at,
                   .end = item->end};
    if (inner.depth > DEPTH_MOST)
        return amp_fail(r->err, AMP_BAD_FILE,
                        "%s: byte %llu: %s: messages are nested more than %d deep; the file is damaged", r->files->path,
                        (unsigned long long)item->at, field->name, DEPTH_MOST);
    AMP_TRY(read_message(r, &inner));
    return onnx_check_message(r, &inner);
}

/* One that is given again goes on where it was. */
static amp_status read_one(Reader *r, const Frame *frame, const Field *field, const Item *item) {
    void *at = onnx_field_at(frame->message, field->at), *message;
    memcpy(&message, at, sizeof message);
    if (!message) {
        message = arena_alloc(r->arena, field->message->size);
        init_message(field->message, message);
        memcpy(at, &message, sizeof message);
    }
    return read_inner(r, frame, field, item, message, 0);
}

static amp_status read_int32(const Reader *r, const Frame *frame, const Field *field, const Item *item) {
    const int64_t value = (int64_t)item->value;
    if (value < INT32_MIN || value > INT32_MAX)
        return onnx_reader_fail(r, frame, item->at, "%s is %lld, which has more than 32 bits", field->name,
                                (long long)value);
    *(int32_t *)onnx_field_at(frame->message, field->at) = (int32_t)value;
    return AMP_OK;
}

static amp_status read_field(Reader *r, const Frame *frame, const Field *field, const Item *item, Counts *counts) {
    void *at = onnx_field_at(frame->message, field->at);
    uint8_t bytes[4];
    int index;
    switch ((FieldKind)field->kind) {
    case FIELD_INT64: *(int64_t *)at = (int64_t)item->value; return AMP_OK;
    case FIELD_INT32: return read_int32(r, frame, field, item);
    case FIELD_FLOAT:
        AMP_TRY(onnx_files_copy(r->files, item->at, bytes, sizeof bytes, r->err));
        *(float *)at = float_of(bytes);
        return AMP_OK;
    case FIELD_NAME: return read_name(r, frame, field, item, at);
    case FIELD_BYTES: return read_bytes(r, item, at);
    case FIELD_MESSAGE: return read_one(r, frame, field, item);
    case FIELD_DATA: return read_data(r, frame, field, item, counts);
    case FIELD_NAMES: return read_name(r, frame, field, item, next_element(frame, field, &index));
    case FIELD_STRINGS: return read_bytes(r, item, next_element(frame, field, &index));
    case FIELD_INTS: return read_ints(r, frame, field, item);
    case FIELD_FLOATS: return read_floats(r, frame, field, item);
    case FIELD_MESSAGES: break;
    }
    void *message = next_element(frame, field, &index);
    init_message(field->message, message);
    return read_inner(r, frame, field, item, message, index);
}

/* The last choice counts, as protobuf has it. */
static void choose(const Frame *frame, const Field *field) {
    int32_t *choice = onnx_field_at(frame->message, frame->type->choice);
    void *none = NULL;
    if (frame->type == &onnx_attribute_message) return;
    if (*choice && *choice != field->number && field->kind == FIELD_MESSAGE)
        memcpy(onnx_field_at(frame->message, field->at), &none, sizeof none);
    *choice = field->number;
}

static amp_status add_rest(const Reader *r, const Item *item, OnnxBytes *rest) {
    const size_t size = (size_t)(item->end - item->start);
    AMP_TRY(onnx_files_copy(r->files, item->start, (uint8_t *)rest->data + rest->size, size, r->err));
    rest->size += size;
    return AMP_OK;
}

static void make_rest(const Reader *r, OnnxBytes *rest, uint64_t more) {
    if (!more) return;
    uint8_t *data = arena_alloc(r->arena, rest->size + (size_t)more);
    if (rest->size) memcpy(data, rest->data, rest->size);
    rest->data = data;
}

static amp_status read_message(Reader *r, Frame *frame) {
    Counts counts = {0};
    Item item;
    OnnxBytes *rest = onnx_field_at(frame->message, frame->type->rest);
    AMP_TRY(count_items(r, frame, &counts));
    make_rest(r, rest, counts.rest);
    bool has_room = false;
    for (uint64_t at = frame->at; at < frame->end; at = item.end) {
        AMP_TRY(next_item(r, frame, at, &item));
        const Field *field = onnx_field(frame->type, item.number);
        if (!has_room) make_room(r, frame, &counts);
        has_room = true;
        if (field && field->choice) choose(frame, field);
        if (field) AMP_TRY(read_field(r, frame, field, &item, &counts));
        else AMP_TRY(add_rest(r, &item, rest));
    }
    return AMP_OK;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static amp_status read_model(Arena *arena, OnnxModel *model, amp_error *err) {
    Reader r = {.files = model->files, .arena = arena, .err = err};
    Frame frame = {.type = &onnx_model_message, .message = model, .end = model->files->size};
    init_message(&onnx_model_message, model);
    if (frame.end > INT32_MAX)
        return amp_fail(err, AMP_BAD_FILE,
                        "%s: has %llu bytes; a model has at most 2147483647, and larger tensors in external data",
                        model->path, (unsigned long long)frame.end);
    AMP_TRY(read_message(&r, &frame));
    return onnx_check_message(&r, &frame);
}

amp_status onnx_read(const char *path, Arena *arena, OnnxModel *model, amp_error *err) {
    AMP_TRY(onnx_files_open(path, arena, model, err));
    AMP_TRY(read_model(arena, model, err));
    return amp_file_reader_check_unchanged(&model->files->model, path, err);
}

amp_status onnx_read_memory(const void *bytes, size_t size, const char *path, Arena *arena, OnnxModel *model,
                            amp_error *err) {
    onnx_files_memory(bytes, size, path, arena, model);
    return read_model(arena, model, err);
}
