/* find.c: from the name of an instruction to what runs it: splits the name at its dots, then looks for the form in the
 * tables. */
#include "fakecuda/alu/inside.h"

#include <stddef.h>

static const AluForms *const all_forms[] = {&alu_forms_integer, &alu_forms_multiply, &alu_forms_bits,
                                            &alu_forms_float,   &alu_forms_minmax,   &alu_forms_compare,
                                            &alu_forms_convert, &alu_forms_approx,   &alu_forms_move};

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef struct TypeName {
    const char *name;
    uint8_t type, bits;
    bool is_signed, is_float;
} TypeName;

static const TypeName type_names[] = {
    {"pred", PTX_PRED, 1, false, false},     {"b8", PTX_B8, 8, false, false},
    {"b16", PTX_B16, 16, false, false},      {"b32", PTX_B32, 32, false, false},
    {"b64", PTX_B64, 64, false, false},      {"u8", PTX_U8, 8, false, false},
    {"u16", PTX_U16, 16, false, false},      {"u32", PTX_U32, 32, false, false},
    {"u64", PTX_U64, 64, false, false},      {"s8", PTX_S8, 8, true, false},
    {"s16", PTX_S16, 16, true, false},       {"s32", PTX_S32, 32, true, false},
    {"s64", PTX_S64, 64, true, false},       {"f16", PTX_F16, 16, false, true},
    {"f16x2", PTX_F16X2, 32, false, true},   {"bf16", PTX_BF16, 16, false, true},
    {"bf16x2", PTX_BF16X2, 32, false, true}, {"tf32", PTX_TF32, 32, false, true},
    {"f32", PTX_F32, 32, false, true},       {"f64", PTX_F64, 64, false, true},
    {"u16x2", ALU_U16X2, 32, false, false},  {"s16x2", ALU_S16X2, 32, false, false},
    {"f32x2", ALU_F32X2, 64, false, true},
};
enum { TYPE_NAMES = sizeof(type_names) / sizeof(type_names[0]) };

static const TypeName *type_info(int type) {
    for (int i = 0; i < TYPE_NAMES; ++i)
        if (type_names[i].type == type) return &type_names[i];
    return NULL;
}

int alu_type_bits(int type) { return type_info(type) ? type_info(type)->bits : 0; }
bool alu_type_is_signed(int type) { return type_info(type) && type_info(type)->is_signed; }
bool alu_type_is_float(int type) { return type_info(type) && type_info(type)->is_float; }

/* ---- modifiers --------------------------------------------------------------------------------------------------- */

typedef struct Modifier {
    const char *name;
    uint32_t mods;
    size_t at; /* the field of AluOp that gets |value|; 0: none */
    uint8_t value;
} Modifier;

#define ROUNDING(name, value)                                                                                          \
    { name, 0, offsetof(AluOp, rounding), value }
#define COMPARE(name, value)                                                                                           \
    { name, ALU_COMPARE, offsetof(AluOp, compare), value }
#define ORDER(name, value)                                                                                             \
    { name, ALU_COMPARE | ALU_ORDER, offsetof(AluOp, compare), value }
#define FLOATS(name, value)                                                                                            \
    { name, ALU_COMPARE | ALU_FLOATS, offsetof(AluOp, compare), value }
#define UNSIGNEDS(name, value)                                                                                         \
    { name, ALU_COMPARE | ALU_UNSIGNEDS, offsetof(AluOp, compare), value }
#define COMBINE(name, value)                                                                                           \
    { name, ALU_COMBINE, offsetof(AluOp, combine), value }
#define MODE(name, value)                                                                                              \
    { name, ALU_MODE, offsetof(AluOp, compare), value }

static const Modifier modifiers[] = {
    {"ftz", ALU_FTZ, 0, 0},
    {"sat", ALU_SAT, 0, 0},
    {"satfinite", ALU_SATFINITE, 0, 0},
    {"relu", ALU_RELU, 0, 0},
    {"approx", ALU_APPROX, 0, 0},
    {"full", ALU_FULL, 0, 0},
    {"lo", ALU_LO, 0, 0},
    {"hi", ALU_HI, 0, 0},
    {"wide", ALU_WIDE, 0, 0},
    {"cc", ALU_CC, 0, 0},
    {"shiftamt", ALU_SHIFTAMT, 0, 0},
    {"wrap", ALU_WRAP, 0, 0},
    {"clamp", ALU_CLAMP, 0, 0},
    {"l", ALU_LEFT, 0, 0},
    {"r", ALU_RIGHT, 0, 0},
    {"NaN", ALU_NAN, 0, 0},
    {"xorsign", ALU_XORSIGN, 0, 0},
    {"abs", ALU_ABS, 0, 0},
    {"pack", ALU_PACK, 0, 0},
    ROUNDING("rn", ALU_NEAREST),
    ROUNDING("rz", ALU_TO_ZERO),
    ROUNDING("rm", ALU_DOWN),
    ROUNDING("rp", ALU_UP),
    ROUNDING("rna", ALU_NEAREST_AWAY),
    ROUNDING("rni", ALU_INT_NEAREST),
    ROUNDING("rzi", ALU_INT_TO_ZERO),
    ROUNDING("rmi", ALU_INT_DOWN),
    ROUNDING("rpi", ALU_INT_UP),
    COMPARE("eq", ALU_EQ),
    COMPARE("ne", ALU_NE),
    ORDER("lt", ALU_LT),
    ORDER("le", ALU_LE),
    ORDER("gt", ALU_GT),
    ORDER("ge", ALU_GE),
    UNSIGNEDS("ls", ALU_LS),
    UNSIGNEDS("hs", ALU_HS),
    FLOATS("equ", ALU_EQU),
    FLOATS("neu", ALU_NEU),
    FLOATS("ltu", ALU_LTU),
    FLOATS("leu", ALU_LEU),
    FLOATS("gtu", ALU_GTU),
    FLOATS("geu", ALU_GEU),
    FLOATS("num", ALU_NUM),
    FLOATS("nan", ALU_ISNAN),
    COMBINE("and", ALU_AND),
    COMBINE("or", ALU_OR),
    COMBINE("xor", ALU_XOR),
    MODE("f4e", ALU_F4E),
    MODE("b4e", ALU_B4E),
    MODE("rc8", ALU_RC8),
    MODE("ecl", ALU_ECL),
    MODE("ecr", ALU_ECR),
    MODE("rc16", ALU_RC16),
    MODE("finite", ALU_FINITE),
    MODE("infinite", ALU_INFINITE),
    MODE("number", ALU_NUMBER),
    MODE("notanumber", ALU_NOTANUMBER),
    MODE("normal", ALU_NORMAL),
    MODE("subnormal", ALU_SUBNORMAL),
};
enum { MODIFIERS = sizeof(modifiers) / sizeof(modifiers[0]), MAX_TYPES = 3 };

typedef struct Name {
    char opcode[16];
    AluOp op; /* rounding, compare, combine, mods */
    uint8_t types[MAX_TYPES];
    int type_count;
    bool strange; /* a part that no instruction of ours has */
} Name;

static bool same(const char *part, size_t length, const char *name) {
    return strlen(name) == length && memcmp(part, name, length) == 0;
}

static void take_part(Name *name, const char *part, size_t length) {
    for (int i = 0; i < TYPE_NAMES; ++i) {
        if (!same(part, length, type_names[i].name)) continue;
        if (name->type_count == MAX_TYPES) name->strange = true;
        else name->types[name->type_count++] = type_names[i].type;
        return;
    }
    for (int i = 0; i < MODIFIERS; ++i) {
        const Modifier *m = &modifiers[i];
        if (!same(part, length, m->name)) continue;
        uint8_t *field = (uint8_t *)&name->op + m->at;
        if (m->mods & name->op.mods || (m->at == offsetof(AluOp, rounding) && *field))
            name->strange = true; /* said twice */
        name->op.mods |= m->mods;
        if (m->at) *field = m->value;
        return;
    }
    name->strange = true;
}

static bool split(const char *full, Name *name) {
    *name = (Name){0};
    size_t length = strcspn(full, ".");
    if (length >= sizeof(name->opcode)) return false;
    memcpy(name->opcode, full, length);
    for (const char *at = full + length; *at == '.'; at += length) {
        length = strcspn(++at, ".");
        take_part(name, at, length);
    }
    return true;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static bool fits(const AluForm *f, const Name *name) {
    uint32_t mods = name->op.mods;
    unsigned roundings = f->roundings ? f->roundings : ALU_R_NONE;
    bool third = strchr(f->operands, 'C') != NULL; /* cvt.pack....b32 */
    return f->type == name->types[0] && f->from == name->types[1] && (third ? PTX_B32 : PTX_NONE) == name->types[2] &&
           (mods & f->needs) == f->needs && !(mods & ~(f->needs | f->allows)) && roundings >> name->op.rounding & 1;
}

static int letter_bits(const AluForm *f, char letter) {
    switch (letter) {
    case 'T': return alu_type_bits(f->type);
    case 'F': return alu_type_bits(f->from);
    case 'W': return 2 * alu_type_bits(f->type);
    case 'P': return 1;
    default: return 32;
    }
}

static uint32_t hash_text(const char *s) { /* FNV-1a */
    uint32_t h = 2166136261u;
    for (; *s; ++s) h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

static void fill(const AluForm *f, const Name *name, AluOp *out) {
    *out = name->op;
    out->run = f->run;
    out->kind = f->kind;
    out->type = f->type;
    out->from = f->from;
    out->salt = hash_text(f->opcode) ^ (uint32_t)f->type * 0x9e3779b9u;
    int bits = alu_type_bits(f->type);
    out->flops = (uint8_t)(f->flops * (strchr(type_info(f->type)->name, 'x') ? 2 : 1));
    out->dst_bits = (uint8_t)letter_bits(f, f->operands[0]);
    out->dst_signed = alu_type_is_signed(f->type) && strchr("TW", f->operands[0]);
    out->dst_bytes[0] = bits && out->dst_bits > 32 ? 8 : 4;
    bool carry = name->op.mods & ALU_CC, second = strchr(f->operands, '|');
    out->dst_bytes[1] = carry || second ? 4 : 0;
    out->carry_out = carry;
    out->carry_in = strchr(f->operands, '+') != NULL;
    for (const char *s = strchr(f->operands, '=') + 1; *s && *s != '+'; ++s, ++out->sources) {
        out->source_bytes[out->sources] = letter_bits(f, *s) > 32 ? 8 : 4;
        int type = *s == 'F' ? f->from : f->type;
        out->source_is_float[out->sources] = strchr("TF", *s) && alu_type_is_float(type);
    }
}

int alu_find(const AluContext *c, const char *full, AluOp *out, const char **why) {
    static const char no_form[] = "PTX has no such form of the instruction, or the stand-in does not know it";
    *why = NULL;
    Name name;
    if (!split(full, &name)) return -1;
    bool known = false, too_new = false;
    for (size_t t = 0; t < sizeof(all_forms) / sizeof(all_forms[0]); ++t) {
        for (int i = 0; i < all_forms[t]->count; ++i) {
            const AluForm *f = &all_forms[t]->forms[i];
            if (*f->opcode != *name.opcode || strcmp(f->opcode, name.opcode) != 0) continue;
            known = true;
            if (name.strange || !fits(f, &name)) continue;
            if (f->arch > c->arch) {
                too_new = true;
                *why = f->arch == 80   ? "needs sm_80 or higher"
                       : f->arch == 90 ? "needs sm_90 or higher"
                                       : "needs sm_100 or higher";
                continue;
            }
            fill(f, &name, out);
            *why = NULL;
            return 0;
        }
    }
    if (!known) return -1;
    if (!too_new) *why = no_form;
    return -2;
}
