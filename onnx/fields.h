/* fields.h: the messages of onnx.proto as tables, which reading and writing go by. */
#ifndef AMP_ONNX_FIELDS_H
#define AMP_ONNX_FIELDS_H

#include "onnx/onnx.h"

typedef enum FieldKind {
    FIELD_INT64,
    FIELD_INT32,
    FIELD_FLOAT,
    FIELD_NAME,    /* const char *, never NULL */
    FIELD_BYTES,   /* OnnxBytes */
    FIELD_MESSAGE, /* a pointer to one; NULL: absent */
    FIELD_DATA,    /* elements of a tensor: OnnxData */
    /* repeated ones: VECs */
    FIELD_NAMES,
    FIELD_STRINGS,
    FIELD_INTS, /* packed or not */
    FIELD_FLOATS,
    FIELD_MESSAGES
} FieldKind;

typedef struct Message Message;

typedef struct Field {
    const char *name;
    const Message *message;
    uint16_t at; /* in the struct */
    uint8_t number, kind;
    bool choice; /* the message has one of these */
} Field;

enum { NOWHERE = 0xFFFF, MOST_FIELDS = 20 };

struct Message {
    const char *name;
    const Field *fields; /* by number */
    uint16_t size;
    uint16_t rest, has; /* where they are in the struct; NOWHERE */
    uint16_t choice;    /* an int32: which of its choices it has, by number; of an attribute, its type */
    uint16_t title;     /* a name, for messages */
    uint8_t field_count;
};

extern const Message onnx_model_message, onnx_graph_message, onnx_function_message, onnx_node_message,
    onnx_tensor_message, onnx_attribute_message, onnx_dim_message;

/* The struct of any VEC, copied in and out. */
typedef struct AnyVec {
    void *data;
    int len, cap;
} AnyVec;

static inline void *onnx_field_at(const void *message, size_t at) { return (char *)message + at; }
const Field *onnx_field(const Message *message, uint64_t number); /* NULL: not known */
/* Field number of the value of an attribute of |type|, 0: none. */
int onnx_attribute_field(int32_t type);
/* Whether |message| has the choice |field|. */
bool onnx_has_choice(const Message *type, const void *message, const Field *field);

/* Bytes of the field at the start of |rest|, and its number; 0: no more. */
size_t onnx_rest_next(OnnxBytes rest, uint64_t *number);

#endif
