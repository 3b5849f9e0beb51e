/* schema.c: reads the rows of onnx/ops.def as they are asked for. */
#include "onnx/schema.h"

#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *domain, *names, *signature, *versions, *stated;
} Row;

static const Row rows[] = {
#define OPS(domain, names, signature, versions, stated) {domain, names, signature, versions, stated},
#include "onnx/ops.def"
#undef OPS
};

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* The names of ops.def, by OnnxDtype. */
static const char *const names[ONNX_DTYPES] = {
    "",           "f32", "u8",  "i8",     "u16",    "i16",  "i32",  "i64",      "string",     "bool",
    "f16",        "f64", "u32", "u64",    "c64",    "c128", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2",
    "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2",   "f6e2m3",   "f6e3m2",
};

bool onnx_is_float(int dtype) { return dtype == ONNX_FLOAT || dtype == ONNX_FLOAT16 || dtype == ONNX_BFLOAT16; }

bool onnx_type_equal(OnnxValueType a, OnnxValueType b) {
    return a.kind == b.kind && a.dtype == b.dtype && a.key == b.key;
}

bool onnx_type_in(OnnxValueType t, const OnnxTypeSet *set) {
    uint32_t of = set->of[t.kind];
    return t.kind == ONNX_KIND_MAP || t.kind == ONNX_KIND_MAP_SEQUENCE ? of != 0 : of >> t.dtype & 1;
}

void onnx_type_print(Text *t, OnnxValueType type) {
    static const char *const before[ONNX_KINDS] = {
        [ONNX_KIND_TENSOR] = "",
        [ONNX_KIND_SEQUENCE] = "a sequence of ",
        [ONNX_KIND_OPTIONAL] = "an optional ",
        [ONNX_KIND_OPTIONAL_SEQUENCE] = "an optional sequence of ",
        [ONNX_KIND_MAP] = "a map to ",
        [ONNX_KIND_MAP_SEQUENCE] = "a sequence of maps to ",
    };
    if (before[type.kind]) text_printf(t, "%s%s", before[type.kind], onnx_dtype_name(type.dtype));
    else text_puts(t, type.kind == ONNX_KIND_OTHER ? "no tensor" : "unknown");
}

void onnx_set_print(Text *t, const OnnxTypeSet *set) {
    const char *comma = "";
    for (int kind = 1; kind < ONNX_KINDS; kind++) {
        if (kind == ONNX_KIND_MAP || kind == ONNX_KIND_MAP_SEQUENCE) {
            if (set->of[kind]) text_printf(t, "%s%s", comma, kind == ONNX_KIND_MAP ? "a map" : "a sequence of maps");
            if (set->of[kind]) comma = ", ";
            continue;
        }
        for (int i = 1; i < ONNX_DTYPES; i++) {
            if (!(set->of[kind] >> i & 1)) continue;
            text_puts(t, comma);
            onnx_type_print(t, (OnnxValueType){.kind = (uint8_t)kind, .dtype = (uint8_t)i});
            comma = ", ";
        }
    }
}

/* ---- sets of types ----------------------------------------------------------------------------------------------- */

#define BIT(name) (1u << ONNX_##name)
enum {
    SET_F = BIT(FLOAT16) | BIT(FLOAT) | BIT(DOUBLE),
    SET_I = BIT(INT32) | BIT(INT64) | BIT(UINT32) | BIT(UINT64),
    SET_J = BIT(INT8) | BIT(INT16) | BIT(UINT8) | BIT(UINT16),
    SET_N = SET_F | SET_I | SET_J,
    SET_C = BIT(COMPLEX64) | BIT(COMPLEX128),
    SET_F8 = BIT(FLOAT8E4M3FN) | BIT(FLOAT8E4M3FNUZ) | BIT(FLOAT8E5M2) | BIT(FLOAT8E5M2FNUZ),
    SET_F6 = BIT(FLOAT6E2M3) | BIT(FLOAT6E3M2),
    SET_ANY11 = SET_N | SET_C | BIT(STRING) | BIT(BOOL),
    SET_ANY13 = SET_ANY11 | BIT(BFLOAT16),
    SET_ANY19 = SET_ANY13 | SET_F8,
    SET_ANY21 = SET_ANY19 | BIT(UINT4) | BIT(INT4),
    SET_ANY23 = SET_ANY21 | BIT(FLOAT4E2M1),
    SET_ANY24 = SET_ANY23 | BIT(FLOAT8E8M0),
    SET_ANY25 = SET_ANY24 | BIT(UINT2) | BIT(INT2),
    SET_ANY28 = SET_ANY25 | SET_F6,
};

typedef struct NamedSet {
    const char *name;
    uint32_t dtypes;
} NamedSet;

static const NamedSet named_sets[] = {
    {"F", SET_F},         {"I", SET_I},         {"J", SET_J},         {"N", SET_N},         {"C", SET_C},
    {"F8", SET_F8},       {"F6", SET_F6},       {"ANY11", SET_ANY11}, {"ANY13", SET_ANY13}, {"ANY19", SET_ANY19},
    {"ANY21", SET_ANY21}, {"ANY23", SET_ANY23}, {"ANY24", SET_ANY24}, {"ANY25", SET_ANY25}, {"ANY28", SET_ANY28},
};

/* A piece of a text: a word between separators. */
typedef struct Piece {
    const char *at;
    size_t len;
} Piece;

static bool piece_is(Piece p, const char *s) { return strlen(s) == p.len && memcmp(p.at, s, p.len) == 0; }

/* The next piece of |*s| that has none of |separators|; false at the end. */
static bool next_piece(const char **s, const char *end, const char *separators, Piece *out) {
    while (*s < end && strchr(separators, **s)) (*s)++;
    out->at = *s;
    while (*s < end && !strchr(separators, **s)) (*s)++;
    out->len = (size_t)(*s - out->at);
    return out->len > 0;
}

static int dtype_named(Piece p) {
    for (int i = 1; i < ONNX_DTYPES; i++)
        if (piece_is(p, names[i])) return i;
    return 0;
}

static uint32_t dtypes_named(Piece p) {
    for (size_t i = 0; i < sizeof named_sets / sizeof *named_sets; i++)
        if (piece_is(p, named_sets[i].name)) return named_sets[i].dtypes;
    int dtype = dtype_named(p);
    return dtype ? 1u << dtype : 0;
}

static OnnxKind take_kind(Piece *p) {
    static const struct {
        const char *prefix;
        OnnxKind kind;
    } prefixes[] = {
        {"seq:", ONNX_KIND_SEQUENCE}, {"opt:", ONNX_KIND_OPTIONAL}, {"optseq:", ONNX_KIND_OPTIONAL_SEQUENCE}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i].prefix);
        if (p->len > n && memcmp(p->at, prefixes[i].prefix, n) == 0) {
            *p = (Piece){p->at + n, p->len - n};
            return prefixes[i].kind;
        }
    }
    return ONNX_KIND_TENSOR;
}

/* "ANY19-C+seq:F" */
static OnnxTypeSet read_set(Piece text) {
    OnnxTypeSet set = {{0}};
    const char *s = text.at, *end = text.at + text.len;
    Piece p;
    while (next_piece(&s, end, "+-", &p)) {
        bool minus = p.at > text.at && p.at[-1] == '-';
        OnnxKind kind = piece_is(p, "map")      ? ONNX_KIND_MAP
                        : piece_is(p, "seqmap") ? ONNX_KIND_MAP_SEQUENCE
                                                : take_kind(&p);
        uint32_t bits = kind == ONNX_KIND_MAP || kind == ONNX_KIND_MAP_SEQUENCE ? ~0u : dtypes_named(p);
        if (minus) set.of[kind] &= ~bits;
        else set.of[kind] |= bits;
    }
    return set;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int variable_named(OnnxSchema *s, Piece name) {
    for (int i = 0; i < s->variables; i++)
        if (piece_is(name, s->variable[i].name)) return i;
    OnnxVariable *v = &s->variable[s->variables];
    *v = (OnnxVariable){.default_variable = -1};
    memcpy(v->name, name.at, name.len < sizeof v->name ? name.len : sizeof v->name - 1);
    return s->variables++;
}

static OnnxParam read_param(OnnxSchema *s, Piece p) {
    OnnxParam param = {.variable = -1};
    for (; p.len && strchr("?*", p.at[p.len - 1]); p.len--) {
        param.optional |= p.at[p.len - 1] == '?';
        param.mixed = param.any_number;
        param.any_number |= p.at[p.len - 1] == '*';
    }
    param.dtype = (uint8_t)dtype_named(p);
    if (!param.dtype) param.variable = (int8_t)variable_named(s, p);
    return param;
}

static void read_signature(OnnxSchema *s, const char *text) {
    const char *end = text + strlen(text);
    bool outputs = false;
    for (Piece p; next_piece(&text, end, " ", &p);) {
        if (piece_is(p, "->")) outputs = true;
        else if (outputs) s->output[s->outputs++] = read_param(s, p);
        else s->input[s->inputs++] = read_param(s, p);
    }
}

/* "T2:dtype,T1", of variables that the signature has */
static void read_stated(OnnxSchema *s, Arena *a, const char *text) {
    const char *colon = strchr(text, ':');
    if (!colon) return;
    OnnxVariable *v = &s->variable[variable_named(s, (Piece){text, (size_t)(colon - text)})];
    size_t n = strcspn(colon + 1, ",");
    if (n) v->attribute = arena_strndup(a, colon + 1, n);
    const char *other = colon + 1 + n + (colon[1 + n] == ',');
    if (!*other) return;
    v->default_dtype = (uint8_t)dtype_named((Piece){other, strlen(other)});
    if (!v->default_dtype) v->default_variable = (int8_t)variable_named(s, (Piece){other, strlen(other)});
}

/* The newest version of |row| that |opset| has, into |s|; false if it has none. */
static bool read_row(OnnxSchema *s, Arena *a, const Row *row, int64_t opset) {
    Piece best = {NULL, 0}, version;
    const char *at = row->versions, *end = at + strlen(at);
    while (next_piece(&at, end, ";", &version))
        if (atoi(version.at) <= opset) best = version;
    if (!best.at) return false;
    s->since = atoi(best.at);
    read_signature(s, row->signature);
    read_stated(s, a, row->stated);
    at = best.at, end = best.at + best.len;
    for (Piece p; next_piece(&at, end, " ", &p);) {
        const char *equal = memchr(p.at, '=', p.len);
        if (!equal) continue;
        int v = variable_named(s, (Piece){p.at, (size_t)(equal - p.at)});
        s->variable[v].allowed = read_set((Piece){equal + 1, p.len - (size_t)(equal + 1 - p.at)});
    }
    return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* An op: its rows, and what was read of them. */
typedef struct Op {
    VEC(const Row *) rows;
    struct Read {
        int64_t opset;
        const OnnxSchema *schema;
    } last;
} Op;

void onnx_schemas_init(OnnxSchemas *s, Arena *a) {
    *s = (OnnxSchemas){.arena = a};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = rows[i].names, *end = at + strlen(at);
        for (Piece p; next_piece(&at, end, " ", &p);) {
            const char *key = arena_printf(a, "%s:%.*s", rows[i].domain, (int)p.len, p.at);
            Op *op = table_get(&s->ops, key);
            if (!op) table_set(a, &s->ops, key, op = arena_new(a, Op));
            vec_push(a, &op->rows, &rows[i]);
        }
    }
}

static Op *find_op(OnnxSchemas *s, const char *domain, const char *op) {
    char key[128];
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    if (strlen(domain) + strlen(op) + 2 > sizeof key) return NULL;
    strcpy(key, domain);
    strcat(key, ":");
    strcat(key, op);
    return table_get(&s->ops, key);
}

const OnnxSchema *onnx_schema(OnnxSchemas *s, const char *domain, const char *name, int64_t opset) {
    Op *op = find_op(s, domain, name);
    if (!op) return NULL;
    if (op->last.opset == opset) return op->last.schema;
    OnnxSchema best = {.since = 0};
    for (int i = 0; i < op->rows.len; i++) {
        OnnxSchema one = {.since = 0};
        if (read_row(&one, s->arena, op->rows.data[i], opset) && one.since > best.since) best = one;
    }
    OnnxSchema *found = NULL;
    if (best.since) {
        found = arena_new(s->arena, OnnxSchema);
        *found = best;
        found->op = arena_strdup(s->arena, name);
    }
    op->last = (struct Read){opset, found};
    return found;
}

int onnx_schema_first(OnnxSchemas *s, const char *domain, const char *name) {
    const Op *op = find_op(s, domain, name);
    int first = 0;
    for (int i = 0; op && i < op->rows.len; i++) {
        int since = atoi(op->rows.data[i]->versions);
        if (!first || since < first) first = since;
    }
    return first;
}

const OnnxParam *onnx_param(const OnnxParam *params, int count, int i) {
    if (count && i >= count - 1 && params[count - 1].any_number) return &params[count - 1];
    return i < count ? &params[i] : NULL;
}
