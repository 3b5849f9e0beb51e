/* read.c: the text form back into a module: header, states, functions, decisions.  docs/ir.md has the grammar. */
#include <string.h>

#include "ir/reader.h"

typedef struct Line {
    const char *keyword;
    void (*read)(Reader *);
} Line;

/* Reads the line that the token's keyword begins; an error where there is none. */
static void read_line(Reader *r, const Line *lines, int count, const char *what) {
    for (int i = 0; i < count; i++)
        if (reader_take_word(r, lines[i].keyword)) {
            lines[i].read(r);
            return;
        }
    reader_expected(r, what);
}

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- the header -------------------------------------------------------------------------------------------------- */

/* an optional 'sha256 "..."' */
static void read_sha256(Reader *r, char hex[65]) {
    if (!reader_take_word(r, "sha256")) return;
    Loc loc = r->token.loc;
    const char *text = reader_string(r, "the digest in quotes");
    if (strlen(text) > 64) reader_fail(r, loc, "a SHA-256 has 64 hexadecimal digits");
    else strcpy(hex, text);
}

static void read_source(Reader *r) {
    r->m->source_name = reader_string(r, "the model's file in quotes");
    read_sha256(r, r->m->source_sha256);
}

/* A line of its own before autocast, then a part of the line `policy`. */
static void read_batch_hint(Reader *r) { r->m->batch_hint = reader_int(r, "a batch", 1, INT64_MAX); }

static void read_policy(Reader *r) {
    r->m->policy_name = reader_string(r, "the policy's name in quotes");
    if (reader_take_word(r, "origin")) r->m->policy_origin = reader_string(r, "the policy's file in quotes");
    read_sha256(r, r->m->policy_sha256);
    if (reader_take_word(r, "low")) r->m->low = reader_dtype(r);
    r->m->is_painted = reader_take_word(r, "painted");
    if (reader_take_word(r, "batch_hint")) read_batch_hint(r);
}

static void read_const(Reader *r) {
    const char *name = reader_name(r, "a const's name");
    reader_need(r, '=');
    int64_t value = reader_int(r, "an integer", INT64_MIN, INT64_MAX);
    vec_push(r->a, &r->m->consts, (struct NamedInt){0});
    r->m->consts.data[r->m->consts.len - 1].name = name;
    r->m->consts.data[r->m->consts.len - 1].value = value;
}

/* length 1024 unit 8 */
static void read_length(Reader *r) {
    struct Length *length = &r->m->length;
    length->most = reader_int(r, "the largest T", 1, LARGEST_T);
    length->unit = reader_take_word(r, "unit") ? reader_int(r, "what T is a multiple of", 1, LARGEST_T) : 1;
    if (length->most % length->unit) reader_fail(r, r->token.loc, "the largest T must be a multiple of its unit");
}

static void read_precision(Reader *r) {
    r->m->precision_is_file = reader_take_word(r, "file");
    r->m->precision_word = reader_name(r, "a precision");
}

static void read_override(Reader *r) {
    static const char *const kinds[] = {"op", "path"};
    Override o = {.is_path = reader_choice(r, "'op' or 'path'", kinds, COUNT(kinds)) == 1};
    o.pattern = reader_name(r, "a pattern");
    reader_need(r, ':');
    o.word = reader_name(r, "a class or a type");
    if (reader_take_word(r, "because")) o.because = reader_string(r, "words in quotes");
    o.pos = reader_at(r);
    vec_push(r->a, &r->m->overrides, o);
}

static Call read_call_line(Reader *r) {
    Call c = reader_call(r);
    c.pos = reader_at(r);
    return c;
}

static void read_loss_scale(Reader *r) { r->m->loss_scale = read_call_line(r); }
static void read_masters(Reader *r) { r->m->masters = read_call_line(r); }
static void read_moments(Reader *r) { r->m->moments = read_call_line(r); }
static void read_pad(Reader *r) { r->m->pad = true; }

static Train *last_train(Reader *r) { return r->m->trains.len ? &r->m->trains.data[r->m->trains.len - 1] : NULL; }

/* Of the train block above. */
static void read_optimizer(Reader *r) {
    Call c = read_call_line(r);
    if (last_train(r)) last_train(r)->optimizer = c;
    else reader_fail(r, r->token.loc, "`optimizer` must follow its `train` line");
}

/* train for "gen.*" loss loss.0 clip_norm 1.0 clip_value 0.5 every 5 ema 0.999 at gan.amp:20:1; alone: everything by
 * the result "loss" */
static void read_train(Reader *r) {
    Train train = {.loss = amp_result_word(RESULT_LOSS)};
    r->m->has_train = true;
    if (reader_take_word(r, "for")) train.only = reader_string(r, "a glob in quotes");
    if (reader_take_word(r, "loss")) train.loss = reader_optional_name(r, "a loss");
    else if (train.only) reader_expected(r, "'loss'");
    if (reader_take_word(r, "clip_norm")) train.clip_norm = reader_float(r, "a number");
    if (reader_take_word(r, "clip_value")) train.clip_value = reader_float(r, "a number");
    if (reader_take_word(r, "every")) train.every = reader_int(r, "a number of steps", 1, INT32_MAX);
    if (reader_take_word(r, "ema")) train.ema = reader_float(r, "a decay");
    train.pos = reader_at(r);
    vec_push(r->a, &r->m->trains, train);
}

/* group "*.bias" lr_scale 0.1 weight_decay 0.0 frozen lazy optimizer sgd(lr = 0.1) at gan.amp:22:50 at gan.amp:22:5 */
static void read_group(Reader *r) {
    TrainGroup g = {0};
    if (!last_train(r)) reader_fail(r, r->token.loc, "`group` must follow its `train` line");
    g.pattern = reader_string(r, "a glob in quotes");
    g.has_lr_scale = reader_take_word(r, "lr_scale");
    if (g.has_lr_scale) g.lr_scale = reader_float(r, "a number");
    g.has_weight_decay = reader_take_word(r, "weight_decay");
    if (g.has_weight_decay) g.weight_decay = reader_float(r, "a number");
    g.has_frozen = reader_take_word(r, "frozen");
    g.frozen = g.has_frozen && !reader_take_word(r, "false");
    g.has_lazy = reader_take_word(r, "lazy");
    g.lazy = g.has_lazy && !reader_take_word(r, "false");
    if (reader_take_word(r, "optimizer")) g.optimizer = read_call_line(r);
    g.pos = reader_at(r);
    if (!r->failed) vec_push(r->a, &last_train(r)->groups, g);
}

static void read_accumulate(Reader *r) {
    r->m->accumulate = reader_int(r, "the number of micro-batches", 1, INT32_MAX);
}
static void read_least_batch(Reader *r) { r->m->least_batch = reader_int(r, "the number of samples", 1, INT32_MAX); }
/* reduce bf16 at mlp.amp:20:5 */
static void read_reduce(Reader *r) {
    r->m->reduce = reader_dtype(r);
    r->m->reduce_pos = reader_at(r);
}

static void read_accumulate_order(Reader *r) {
    r->m->accumulate_order = (SumOrder)reader_choice(r, "left or tree", ir_order_names, COUNT(ir_order_names));
}

static void read_distribute(Reader *r) {
    r->m->distribution =
        (Distribution)reader_choice(r, "none, data or zero1", ir_distribution_names, COUNT(ir_distribution_names));
}
static void read_eval_precision(Reader *r) { r->m->eval_precision = reader_name(r, "a precision"); }

static void read_metric(Reader *r) {
    const char *name = reader_name(r, "a metric's name");
    vec_push(r->a, &r->m->metrics, name);
}

static void read_target(Reader *r) { r->m->target = reader_name(r, "a target"); }

static void read_plain(Reader *r) { r->m->plain[reader_choice(r, "a pass", ir_stage_names, STAGE_COUNT)] = true; }

static void read_sums(Reader *r) {
    r->m->sums = (Sums)reader_choice(r, "sums (ieee, sm_80, sm_90)", ir_sums_names, COUNT(ir_sums_names));
}

static const Line header_lines[] = {
    {"target", read_target},
    {"plain", read_plain},
    {"sums", read_sums},
    {"source", read_source},
    {"policy", read_policy},
    {"batch_hint", read_batch_hint},
    {"const", read_const},
    {"length", read_length},
    {"precision", read_precision},
    {"override", read_override},
    {"loss_scale", read_loss_scale},
    {"masters", read_masters},
    {"moments", read_moments},
    {"train", read_train},
    {"optimizer", read_optimizer},
    {"metric", read_metric},
    {"group", read_group},
    {"accumulate", read_accumulate},
    {"least_batch", read_least_batch},
    {"accumulate_order", read_accumulate_order},
    {"distribute", read_distribute},
    {"reduce", read_reduce},
    {"eval_precision", read_eval_precision},
    {"pad", read_pad},
};

static void read_header(Reader *r) {
    reader_need_word(r, "module");
    r->m->name = reader_string(r, "the module's name in quotes");
    reader_need_word(r, "stage");
    r->m->stage = (Stage)reader_choice(r, "a stage", ir_stage_names, STAGE_COUNT);
    reader_need(r, '{');
    while (!r->failed && !reader_take(r, '}'))
        read_line(r, header_lines, COUNT(header_lines), "a line of the header or '}'");
}

/* ---- after the header -------------------------------------------------------------------------------------------- */

/* state %"fc1.weight/m" : f32[512, 784] moment m of fc1.weight stored f32 panels = zeros() at mlp.amp:8:9 from
 * mlp.amp:8:9 */
static void read_state(Reader *r) {
    Token name = r->token;
    if (name.kind != TOKEN_VALUE) {
        reader_expected(r, "a state such as %fc1.weight");
        return;
    }
    reader_next(r);
    if (ir_state_find(r->m, name.text)) reader_fail(r, name.loc, "state %s is defined twice", name.text);
    reader_need(r, ':');
    Dtype t;
    Shape shape = reader_type(r, &t);
    StateRole role =
        (StateRole)reader_choice(r, "a role (param, buffer, moment, counter, scaler, derived, accumulator, staged)",
                                 ir_role_names, STATE_STAGED + 1);
    State *s = ir_state_new(r->m, name.text, role, t, shape);
    table_set(r->a, &r->states, s->name, (void *)(uintptr_t)r->m->states.len);
    if (r->token.kind == TOKEN_STRING || (r->token.kind == TOKEN_WORD && !word_is_reserved(r->token.text)))
        s->slot = reader_name(r, "a slot");
    if (reader_take_word(r, "of")) s->of = reader_name(r, "a state");
    if (reader_take_word(r, "hwio")) {
        if (shape.rank == 2) s->pixels = reader_int(r, "a number of pixels", 2, INT32_MAX);
        else if (shape.rank != 4) reader_fail(r, name.loc, "state %s is not a weight of a convolution", name.text);
        s->hwio = shape.rank == 4;
    }
    if (reader_take_word(r, "stored")) {
        s->storage = reader_dtype(r);
        s->layout = (Layout)reader_choice(r, "a layout (rows, panels, pairs, panels_t, pairs_t)", ir_layout_names,
                                          LAYOUT_PAIRS_T + 1);
        if (reader_take_word(r, "pitch")) s->pitch = reader_int(r, "a number of elements", 1, INT32_MAX);
    }
    if (reader_take(r, '=')) s->init = read_call_line(r);
    if (reader_take_word(r, "from")) s->pos = reader_place(r);
}

/* casts(%x: f32 to f16, %fc1.weight: f32 to f16) */
static void read_casts(Reader *r, Decision *d) {
    reader_need(r, '(');
    do {
        CastNote cast = {.value = r->token.text};
        if (r->token.kind != TOKEN_VALUE) reader_expected(r, "a value");
        reader_next(r);
        reader_need(r, ':');
        cast.from = reader_dtype(r);
        reader_need_word(r, "to");
        cast.to = reader_dtype(r);
        vec_push(r->a, &d->casts, cast);
    } while (reader_take(r, ','));
    reader_need(r, ')');
}

/* decision @fc1.linear layer linear linear(f16, f16) : f16 casts(%x: f32 to f16) because {...} policy "op linear lower"
 * at mlp.amp:8:9 */
static void read_decision(Reader *r) {
    Decision d = {0};
    reader_origin(r, &d.path, &d.layer);
    d.op = reader_optional_name(r, "an op");
    reader_need(r, '(');
    while (!r->failed && !reader_take(r, ')')) {
        if (d.operands.len) reader_need(r, ',');
        Dtype t = reader_dtype(r);
        vec_push(r->a, &d.operands, t);
    }
    reader_need(r, ':');
    d.out = reader_dtype(r);
    if (reader_take_word(r, "casts")) read_casts(r, &d);
    d.reason = reader_because(r);
    if (reader_take_word(r, "policy")) d.policy_text = reader_string(r, "the policy's line in quotes");
    d.pos = reader_at(r);
    vec_push(r->a, &r->m->decisions, d);
}

static void read_removed(Reader *r) {
    Removed removed = {.func = reader_name(r, "a function"), .value = r->token.text};
    if (r->token.kind != TOKEN_VALUE) reader_expected(r, "a value");
    reader_next(r);
    removed.what = reader_string(r, "words in quotes");
    vec_push(r->a, &r->m->removed, removed);
}

/* A text within the text: its lines, each in quotes. */
static const char *read_inner(Reader *r) {
    Text t;
    text_init(&t, r->a);
    while (!r->failed && r->token.kind == TOKEN_STRING) text_printf(&t, "%s\n", reader_string(r, "a line in quotes"));
    return text_str(&t);
}

static void read_graph(Reader *r) { r->m->graph_text = read_inner(r); }

/* Version 0, of models before 0.1.0, has no number; its policy is in the header alone. */
static const char *read_elaborated_as(Reader *r) {
    const Token at = r->token;
    const int64_t version = at.kind == TOKEN_NUMBER ? reader_int(r, "the version of the text", 0, INT32_MAX) : 0;
    if (version > IR_ELABORATED_VERSION)
        reader_fail(r, at.loc,
                    "the elaborated text has version %lld, and this ampc reads versions up to %d: use the ampc that "
                    "wrote it, or a later one",
                    (long long)version, IR_ELABORATED_VERSION);
    const char *policy = reader_take_word(r, "policy") ? reader_string(r, "the policy in quotes") : NULL;
    r->m->model_text = read_inner(r);
    return policy;
}

static void read_elaborated(Reader *r) { (void)read_elaborated_as(r); }
static void read_policy_file(Reader *r) { r->m->policy_text = read_inner(r); }

static const Line module_lines[] = {
    {"state", read_state},
    {"func", reader_func},
    {"decision", read_decision},
    {"removed", read_removed},
    {"graph", read_graph},
    {"elaborated", read_elaborated},
    {"policy_file", read_policy_file},
};

Module *ir_read(Arena *a, Diags *d, const Source *text) {
    Reader r;
    reader_start(&r, a, d, text);
    r.m = ir_module_new(a, "");
    read_header(&r);
    while (!r.failed && r.token.kind != TOKEN_END)
        read_line(&r, module_lines, COUNT(module_lines),
                  "'state', 'func', 'decision', 'removed', 'graph', 'elaborated' or 'policy_file'");
    return r.failed ? NULL : r.m;
}

/* ---- what a model is compiled from again ------------------------------------------------------------------------- */

static void start_at(Reader *r, Arena *a, Diags *d, const Source *text, const char *line) {
    Source *rest = arena_new(a, Source);
    *rest = (Source){.name = text->name, .text = line, .len = strlen(line)};
    reader_start(r, a, d, rest);
    r->m = ir_module_new(a, "");
}

/* Of version 0: as the header has it. */
static const char *header_policy(Arena *a, Diags *d, const Source *text) {
    Reader r;
    const char *line = strstr(text->text, "\n  policy ");
    if (!line) return NULL;
    start_at(&r, a, d, text, line);
    reader_need_word(&r, "policy");
    const char *name = reader_string(&r, "the policy in quotes");
    return reader_take_word(&r, "origin") ? reader_string(&r, "its origin in quotes") : name;
}

bool ir_read_kept(Arena *a, Diags *d, const Source *text, KeptSource *out) {
    Reader r;
    const char *line = strstr(text->text, "\nelaborated");
    *out = (KeptSource){0};
    if (!line) return true;
    start_at(&r, a, d, text, line);
    reader_need_word(&r, "elaborated");
    out->policy = read_elaborated_as(&r);
    if (reader_take_word(&r, "policy_file")) out->policy_text = read_inner(&r);
    out->model_text = r.m->model_text;
    if (!r.failed && !out->policy) out->policy = header_policy(a, d, text);
    return !r.failed;
}
