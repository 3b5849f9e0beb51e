/* schema.h: types of ONNX values, and what an op says of its inputs and outputs: the rows of onnx/ops.def. */
#ifndef AMP_ONNX_SCHEMA_H
#define AMP_ONNX_SCHEMA_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/text.h"
#include "onnx/onnx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The oldest and the newest opset of ai.onnx that ops.def knows. */
enum { ONNX_OLDEST_OPSET = 11, ONNX_NEWEST_OPSET = 28 };

typedef enum OnnxKind {
    ONNX_KIND_UNKNOWN,
    ONNX_KIND_TENSOR,
    ONNX_KIND_SEQUENCE,          /* of tensors */
    ONNX_KIND_OPTIONAL,          /* a tensor or none */
    ONNX_KIND_OPTIONAL_SEQUENCE, /* of tensors */
    ONNX_KIND_MAP,
    ONNX_KIND_MAP_SEQUENCE,
    ONNX_KIND_OTHER, /* sparse tensors, and what is nested deeper: passed on, never looked into */
    ONNX_KINDS
} OnnxKind;

typedef struct OnnxValueType {
    uint8_t kind;  /* OnnxKind */
    uint8_t dtype; /* OnnxDtype of the tensors in it; of a map its values; 0: unknown */
    uint8_t key;   /* of a map */
} OnnxValueType;

/* Which types are allowed: bit DTYPE of the kind's word; any bit of a kind of maps allows all maps. */
typedef struct OnnxTypeSet {
    uint32_t of[ONNX_KINDS];
} OnnxTypeSet;

typedef struct OnnxParam {
    int8_t variable; /* of OnnxSchema.variable; -1: |dtype| */
    uint8_t dtype;   /* of a tensor, without a variable */
    bool optional;   /* may be left out */
    bool any_number; /* the last one: as many as there are */
    bool mixed;      /* of any_number: each has a type of its own */
} OnnxParam;

typedef struct OnnxVariable {
    char name[8];
    OnnxTypeSet allowed;
    const char *attribute;   /* states the type of outputs, if no input does; or NULL */
    uint8_t default_dtype;   /* without the attribute; 0: none */
    int8_t default_variable; /* -1: none */
} OnnxVariable;

enum { ONNX_PARAMS = 18, ONNX_VARIABLES = 6 };

typedef struct OnnxSchema {
    const char *op;
    int since;
    int inputs, outputs, variables;
    OnnxParam input[ONNX_PARAMS], output[ONNX_PARAMS];
    OnnxVariable variable[ONNX_VARIABLES];
} OnnxSchema;

/* The table, with the rows that were asked for. */
typedef struct OnnxSchemas {
    Arena *arena;
    Table ops; /* by "domain:op" */
} OnnxSchemas;

void onnx_schemas_init(OnnxSchemas *s, Arena *a);
/* NULL if the table has no such op at |opset|.  |domain| "ai.onnx" is "". */
const OnnxSchema *onnx_schema(OnnxSchemas *s, const char *domain, const char *op, int64_t opset);
/* Is there a row of it at another opset?  From which one on, or 0. */
int onnx_schema_first(OnnxSchemas *s, const char *domain, const char *op);
/* What input or output |i| is; NULL if there are fewer. */
const OnnxParam *onnx_param(const OnnxParam *params, int count, int i);

bool onnx_is_float(int dtype); /* FLOAT, FLOAT16 or BFLOAT16: what a policy decides between */

bool onnx_type_equal(OnnxValueType a, OnnxValueType b);
bool onnx_type_in(OnnxValueType t, const OnnxTypeSet *set);
/* "float16", "a sequence of float16" */
void onnx_type_print(Text *t, OnnxValueType type);
/* "float16, float32" */
void onnx_set_print(Text *t, const OnnxTypeSet *set);

#ifdef __cplusplus
}
#endif

#endif
