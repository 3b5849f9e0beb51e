/* read_func.c: functions of the text form. */
#include "ir/names.h"
#include "ir/reader.h"

typedef struct BufferUse { /* buffers follow the kernels that name them */
    Kernel *kernel;
    bool writes;
    const char *name;
    Loc loc;
} BufferUse;

/* Tables hold numbers in place of pointers; 0: none. */
static uint32_t number_of(const Table *t, const char *name) { return (uint32_t)(uintptr_t)table_get(t, name); }

typedef struct FuncReader {
    Reader *r;
    Func *f;
    Kernel *kernel; /* open, or NULL */
    VEC(BufferUse) uses;
    Table buffers; /* names to 1-based indexes of the function's buffers */
} FuncReader;

/* ---- values ------------------------------------------------------------------------------------------------------ */

static Val read_value(FuncReader *fr) {
    Reader *r = fr->r;
    if (r->token.kind != TOKEN_VALUE) {
        reader_expected(r, "a value");
        return NO_VAL;
    }
    Val v = ir_find(fr->f, r->token.text);
    if (!v.id) reader_fail(r, r->token.loc, "%%%s is not defined before this line", r->token.text);
    reader_next(r);
    return v;
}

static Val new_value(FuncReader *fr, const Token *name, Dtype t, Shape s, ValKind kind) {
    if (ir_find(fr->f, name->text).id) {
        reader_fail(fr->r, name->loc, "%%%s is defined twice", name->text);
        return NO_VAL;
    }
    return ir_new_value(fr->f, name->text, t, s, kind);
}

/* "input %x : f32[N, 784]", "state %fc1.weight : f32[512, 784]" */
static void read_input(FuncReader *fr, ValKind kind) {
    Reader *r = fr->r;
    Token name = r->token;
    if (name.kind != TOKEN_VALUE) {
        reader_expected(r, "a value");
        return;
    }
    if (fr->f->body.len) reader_fail(r, name.loc, "inputs and states must come before the first op");
    reader_next(r);
    reader_need(r, ':');
    Dtype t;
    Shape s = reader_type(r, &t);
    if (r->failed) return;
    Val v = new_value(fr, &name, t, s, kind);
    vec_push(r->a, &fr->f->inputs, v);
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

typedef VEC(Token) Tokens;

/* "%m, %v =": their names, which become values when the types are known. */
static Tokens read_result_names(Reader *r) {
    Tokens names = {0};
    if (r->token.kind != TOKEN_VALUE) return names;
    do {
        if (r->token.kind != TOKEN_VALUE) reader_expected(r, "a value");
        vec_push(r->a, &names, r->token);
        reader_next(r);
    } while (reader_take(r, ','));
    reader_need(r, '=');
    return names;
}

static Opcode read_opcode(Reader *r) {
    Opcode code = r->token.kind == TOKEN_WORD ? ir_opcode(r->token.text) : OP_NONE;
    if (code == OP_NONE) {
        if (r->token.kind == TOKEN_WORD) reader_fail(r, r->token.loc, "no op is called %s", r->token.text);
        else reader_expected(r, "an op");
    }
    reader_next(r);
    return code;
}

static AttrValue read_attr_value(Reader *r, AttrType type) {
    AttrValue v = {0};
    switch (type) {
    case ATTR_INT: v.i = reader_int(r, "an integer", INT64_MIN, INT64_MAX); break;
    case ATTR_FLOAT: v.f = reader_float(r, "a number"); break;
    case ATTR_BOOL: v.b = reader_bool(r); break;
    case ATTR_SYMBOL: v.s = reader_name(r, "a word"); break;
    case ATTR_STRING: v.s = reader_string(r, "a string in quotes"); break;
    case ATTR_DIMS: v.dims = reader_dims(r); break;
    case ATTR_NUMBERS: v.numbers = reader_numbers(r); break;
    case ATTR_END: break;
    }
    return v;
}

/* Reserved words too: `from` and `low` are attributes. */
static const char *read_attr_name(Reader *r) {
    const char *text = r->token.text;
    if (r->token.kind != TOKEN_WORD) return reader_name(r, "an attribute");
    reader_next(r);
    return text;
}

static void read_attrs(Reader *r, Op *o) {
    unsigned seen = 0;
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    do {
        Loc loc = r->token.loc;
        const char *name = read_attr_name(r);
        int i = 0;
        while (i < MAX_ATTRS && specs[i].type != ATTR_END && strcmp(specs[i].name, name)) i++;
        if (i == MAX_ATTRS || specs[i].type == ATTR_END) {
            reader_fail(r, loc, "%s has no attribute %s", ir_op_info[o->code].name, name);
            return;
        }
        if (seen & 1u << i) reader_fail(r, loc, "attribute %s is given twice", name);
        seen |= 1u << i;
        reader_need(r, '=');
        o->attr[i] = read_attr_value(r, specs[i].type);
    } while (!r->failed && reader_take(r, ','));
}

/* "linear(%x, %w; transposed = true)" */
static Op *read_operation(FuncReader *fr) {
    Reader *r = fr->r;
    Opcode code = read_opcode(r);
    VEC(Val) in = {0};
    reader_need(r, '(');
    while (r->token.kind == TOKEN_VALUE) {
        Val v = read_value(fr);
        vec_push(r->a, &in, v);
        if (!reader_take(r, ',')) break;
        if (r->token.kind != TOKEN_VALUE) reader_expected(r, "a value");
    }
    if (r->failed) return NULL;
    Op *o = ir_op_new(fr->f, code, in.data, in.len);
    if (reader_take(r, ';')) read_attrs(r, o);
    reader_need(r, ')');
    return o;
}

static void read_results(FuncReader *fr, Op *o, const Tokens *names) {
    Reader *r = fr->r;
    int results = ir_op_arity(o->code).out;
    if (names->len != results) {
        reader_fail(r, r->token.loc, "%s has %d results, this line names %d", ir_op_info[o->code].name, results,
                    names->len);
        return;
    }
    for (int i = 0; i < names->len && !r->failed; i++) {
        reader_need(r, i ? ',' : ':');
        Dtype t;
        Shape s = reader_type(r, &t);
        if (ir_find(fr->f, names->data[i].text).id)
            reader_fail(r, names->data[i].loc, "%%%s is defined twice", names->data[i].text);
        if (!r->failed) ir_result(fr->f, o, names->data[i].text, t, s);
    }
}

/* "@PATH layer LAYER #REGION"; a region alone lends its path and layer. */
static void read_op_origin(FuncReader *fr, Op *o) {
    Reader *r = fr->r;
    bool has_path = r->token.kind == TOKEN_PUNCT && r->token.text[0] == '@';
    reader_origin(r, &o->path, &o->layer);
    if (!reader_take(r, '#')) return;
    o->region = (uint32_t)reader_int(r, "a region's number", 1, fr->f->regions.len);
    const Region *region = ir_region(fr->f, o->region);
    if (!region || has_path) return;
    o->path = region->path;
    o->layer = region->layer;
}

/* "after (%dy, %h)" */
static OpAfter *read_after(FuncReader *fr) {
    Reader *r = fr->r;
    VEC(Val) values = {0};
    reader_need(r, '(');
    for (int i = 0; !r->failed && !reader_take(r, ')'); i++) {
        if (i) reader_need(r, ',');
        vec_push(r->a, &values, read_value(fr));
    }
    OpAfter *after = arena_alloc(r->a, sizeof *after + sizeof(Val) * (size_t)values.len);
    after->count = values.len;
    for (int i = 0; i < values.len; i++) after->at[i] = values.data[i];
    return after;
}

static void read_op(FuncReader *fr) {
    Reader *r = fr->r;
    Tokens names = read_result_names(r);
    Op *o = read_operation(fr);
    if (r->failed) return;
    if (reader_take_word(r, "if")) o->pred = read_value(fr);
    if (reader_take_word(r, "after")) o->after = read_after(fr);
    read_results(fr, o, &names);
    read_op_origin(fr, o);
    if (reader_take_word(r, "checkpoint")) o->checkpoint = reader_string(r, "a number in quotes");
    o->reason = reader_because(r);
    o->pos = reader_at(r);
    if (fr->kernel) fr->kernel->count++;
}

/* ---- regions, kernels, buffers, results -------------------------------------------------------------------------- */

/* "region #1 log_softmax @cross_entropy.log_softmax layer cross_entropy" */
static void read_region(FuncReader *fr) {
    Reader *r = fr->r;
    reader_need(r, '#');
    reader_int(r, "the next region's number", fr->f->regions.len + 1, fr->f->regions.len + 1);
    Region region = {.op = reader_optional_name(r, "an op")};
    reader_origin(r, &region.path, &region.layer);
    vec_push(r->a, &fr->f->regions, region);
}

static void read_buffer_uses(FuncReader *fr, Kernel *k, bool writes) {
    Reader *r = fr->r;
    if (!reader_take_word(r, writes ? "writes" : "reads")) return;
    do {
        BufferUse use = {k, writes, "", r->token.loc};
        use.name = reader_name(r, "a buffer");
        vec_push(r->a, &fr->uses, use);
    } while (reader_take(r, ','));
}

/* "kernel k03 product "fc1: linear" if %ok reads b1, b2 writes b3 at mlp.amp:8:9 { ... }" */
static void read_kernel(FuncReader *fr) {
    Reader *r = fr->r;
    Kernel *k = arena_new(r->a, Kernel);
    k->name = reader_name(r, "a kernel's name");
    k->kind = (KernelKind)reader_choice(r, "a kind of kernel (product, tile, row, column, scalar, scatter)",
                                        ir_kernel_kind_names, KERNEL_KINDS);
    k->title = reader_string(r, "the kernel's title in quotes");
    if (reader_take_word(r, "segment")) k->segment = reader_dim(r);
    if (reader_take_word(r, "if")) k->pred = read_value(fr);
    read_buffer_uses(fr, k, false);
    read_buffer_uses(fr, k, true);
    k->pos = reader_at(r);
    reader_need(r, '{');
    k->first = fr->f->body.len;
    vec_push(r->a, &fr->f->kernels, k);
    fr->kernel = k;
}

/* "buffer b1 state of fc1.weight %fc1.weight f32 panels live 0 to 7",
 * "buffer b9 temp %6 f16 rows pitch 304 live 3 to 5 in b4", "buffer b9 temp %6 f16 rows pitch 304 part 128 .." */
static void read_buffer(FuncReader *fr) {
    Reader *r = fr->r;
    Buffer *b = arena_new(r->a, Buffer);
    Loc loc = r->token.loc;
    b->name = reader_name(r, "a buffer's name");
    if (number_of(&fr->buffers, b->name)) reader_fail(r, loc, "buffer %s is defined twice", b->name);
    b->kind = (BufferKind)reader_choice(r, "a kind of buffer (temp, flag, input, output, state, watch, look)",
                                        ir_buffer_kind_names, BUFFER_LOOK + 1);
    if (reader_take_word(r, "of")) {
        loc = r->token.loc;
        const char *state = reader_name(r, "a state");
        b->state = number_of(&r->states, state);
        if (!b->state) reader_fail(r, loc, "no state is called %s", state);
    }
    b->value = read_value(fr);
    b->storage = reader_dtype(r);
    b->layout = (Layout)reader_choice(r, "a layout (rows, panels, pairs, panels_t, pairs_t)", ir_layout_names,
                                      LAYOUT_PAIRS_T + 1);
    if (reader_take_word(r, "pitch")) b->pitch = reader_int(r, "a number of elements", 1, INT32_MAX);
    b->is_part = reader_take_word(r, "part");
    if (b->is_part) b->column = reader_int(r, "a column", 0, INT32_MAX);
    b->first = b->last = -1;
    if (reader_take_word(r, "live")) {
        b->first = (int)reader_int(r, "a kernel's number", 0, INT32_MAX);
        reader_need_word(r, "to");
        b->last = (int)reader_int(r, "a kernel's number", 0, INT32_MAX);
    }
    if (reader_take_word(r, "in")) {
        loc = r->token.loc;
        const char *place = reader_name(r, "a buffer");
        b->place = number_of(&fr->buffers, place);
        if (!b->place) reader_fail(r, loc, "no buffer before this one is called %s", place);
    }
    vec_push(r->a, &fr->f->buffers, b);
    table_set(r->a, &fr->buffers, b->name, (void *)(uintptr_t)fr->f->buffers.len);
}

static void resolve_buffer_uses(FuncReader *fr) {
    Reader *r = fr->r;
    for (int i = 0; i < fr->uses.len && !r->failed; i++) {
        const BufferUse *use = &fr->uses.data[i];
        uint32_t number = number_of(&fr->buffers, use->name);
        if (!number) reader_fail(r, use->loc, "no buffer of this function is called %s", use->name);
        else if (use->writes) vec_push(r->a, &use->kernel->writes, number);
        else vec_push(r->a, &use->kernel->reads, number);
    }
}

static int read_kernel_number(FuncReader *fr) {
    const Loc loc = fr->r->token.loc;
    const char *name = reader_name(fr->r, "a kernel");
    for (int i = 0; i < fr->f->kernels.len && !fr->r->failed; i++)
        if (!strcmp(fr->f->kernels.data[i]->name, name)) return i;
    reader_fail(fr->r, loc, "no kernel before this line is called %s", name);
    return 0;
}

static void read_part(FuncReader *fr, Launch *l, int stage) {
    Reader *r = fr->r;
    LaunchPart part = {.form = (PartForm)reader_choice(r, "part, chain, rows or block", ir_part_words, PART_BLOCK + 1),
                       .stage = stage};
    do vec_push(r->a, &part.kernels, read_kernel_number(fr));
    while (reader_take(r, ','));
    for (int i = 0; i < part.kernels.len; i++) {
        const int k = part.kernels.data[i], end = l->count ? l->first + l->count : k + 1;
        if (!l->count || k < l->first) l->first = k;
        l->count = (k < end ? end : k + 1) - l->first;
    }
    vec_push(r->a, &l->parts, part);
}

/* "launch { stage { part k03 part k04, k05 } }" */
static void read_launch(FuncReader *fr) {
    Reader *r = fr->r;
    Launch l = {.by_columns = reader_take_word(r, "by_columns")};
    reader_need(r, '{');
    for (int stage = 0; !r->failed && !reader_take(r, '}'); stage++) {
        reader_need_word(r, "stage");
        reader_need(r, '{');
        do read_part(fr, &l, stage);
        while (!r->failed && !reader_take(r, '}'));
    }
    vec_push(r->a, &fr->f->launches, l);
}

static void read_func_result(FuncReader *fr) {
    Reader *r = fr->r;
    const char *name = reader_name(r, "a result's name");
    reader_need(r, '=');
    ir_add_result(fr->f, name, read_value(fr));
    Result *result = &fr->f->results.data[fr->f->results.len - 1];
    if (!reader_take_word(r, "hwio")) return;
    result->hwio = ir_shape(fr->f, result->value)->rank != 2;
    if (!result->hwio) result->pixels = reader_int(r, "a number of pixels", 2, INT32_MAX);
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static void read_plain_input(FuncReader *fr) { read_input(fr, VAL_INPUT); }
static void read_state_input(FuncReader *fr) { read_input(fr, VAL_STATE); }

static const struct {
    const char *keyword;
    void (*read)(FuncReader *);
} lines[] = {
    {"input", read_plain_input}, {"state", read_state_input},  {"region", read_region}, {"kernel", read_kernel},
    {"buffer", read_buffer},     {"result", read_func_result}, {"launch", read_launch},
};

static void read_line(FuncReader *fr) {
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (reader_at_word(fr->r, lines[i].keyword)) {
            if (fr->kernel) reader_fail(fr->r, fr->r->token.loc, "a kernel can hold only ops");
            reader_next(fr->r);
            lines[i].read(fr);
            return;
        }
    read_op(fr);
}

void reader_func(Reader *r) {
    Loc loc = r->token.loc;
    const char *name = reader_name(r, "a function's name");
    if (table_get(&r->funcs, name)) reader_fail(r, loc, "function %s is defined twice", name);
    table_set(r->a, &r->funcs, name, r);
    const bool joined = reader_take_word(r, "joined");
    reader_need(r, '{');
    if (r->failed) return;
    FuncReader fr = {.r = r, .f = ir_func_new(r->m, name)};
    fr.f->joined = joined;
    while (!r->failed) {
        if (!reader_take(r, '}')) read_line(&fr);
        else if (fr.kernel) fr.kernel = NULL;
        else break;
    }
    resolve_buffer_uses(&fr);
}
