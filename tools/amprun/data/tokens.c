/* tokens.c: see data_column.h. */
#include "tools/amprun/data/data_column.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"

#define DEFAULT_HELD 0.1

static const char *const keys[] = {"type", "held", "split", NULL};
enum { KEY_TYPE, KEY_HELD, KEY_SPLIT };

static const struct {
    const char *name;
    int bytes;
} types[] = {{"u8", 1}, {"u16", 2}, {"u32", 4}};

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static int take_type(TokenText *text, const char *spec, const char *value) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, value ? value : "u8")) {
            text->bytes = types[i].bytes;
            return 0;
        }
    return report_text("--data %s: type=%s: u8 (bytes), u16 or u32 are read", spec, value);
}

static int take_held(double *held, const char *spec, const char *value, const DataOptions *o) {
    *held = o->held > 0 ? o->held : o->whole ? 0 : DEFAULT_HELD;
    if (value && o->held > 0)
        return report_text("--data %s: held= and --eval-split both say what is held out; give one of them", spec);
    return value ? spec_held(spec, value, held) : 0;
}

/* ---- what is fed ------------------------------------------------------------------------------------------------- */

static int64_t tokens_of(const amp_tensor_info *info) {
    int64_t count = 1;
    for (int i = 0; i < info->rank; i++) count *= info->dims[i];
    return count;
}

static int token_column(Dataset *d, const amp_tensor_info *info) {
    if (info->dtype != AMP_DT_I32 && info->dtype != AMP_DT_I64 && info->dtype != AMP_DT_U8)
        return report_text("%s: the model's input %s is %s; tokens are fed to inputs of i32", d->spec, info->name,
                           amp_dtype_name(info->dtype));
    d->column[d->columns++] = (Column){.name = info->name,
                                       .dtype = info->dtype,
                                       .elements = d->tokens.window,
                                       .sample_bytes = (size_t)d->tokens.window * amp_dtype_size(info->dtype)};
    return 0;
}

static int take_inputs(Dataset *d, const DataInputs *inputs, bool padded) {
    if (inputs->model_inputs != 1 || inputs->train_inputs > 1)
        return report_text("%s: feeds one model input and one train input; %s has %d and %d: use safetensors:FILE",
                           d->spec, inputs->model, inputs->model_inputs, inputs->train_inputs);
    d->tokens.window = tokens_of(&inputs->input[0]);
    for (int i = 0; i < inputs->count; i++) {
        if (tokens_of(&inputs->input[i]) != d->tokens.window)
            return report_text("%s: the model's input %s takes %" PRId64 " ids per sample, and %s takes %" PRId64
                               "; a window has as many to predict as to read",
                               d->spec, inputs->input[0].name, d->tokens.window, inputs->input[i].name,
                               tokens_of(&inputs->input[i]));
        if (token_column(d, &inputs->input[i])) return 1;
        if (padded && lengths_take_padding(&d->column[i], inputs, i, d->spec)) return 1;
    }
    return 0;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

uint32_t token_at(const TokenText *text, int64_t at) {
    const unsigned char *p = (const unsigned char *)text->data + at * text->bytes;
    return text->bytes == 1   ? p[0]
           : text->bytes == 2 ? (uint32_t)p[0] | (uint32_t)p[1] << 8
                              : (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

typedef struct Scan {
    const TokenText *text;
    int64_t bound, ignored;
    int64_t at; /* the first token that is no id; the end where all are */
    uint32_t largest;
} Scan;

static void scan(void *ctx) {
    Scan *s = ctx;
    int64_t end = s->text->first + s->text->count;
    s->at = end;
    for (int64_t i = s->text->first; i < end; i++) {
        uint32_t id = token_at(s->text, i);
        if (id < s->bound || id == s->ignored) continue;
        if (id > s->largest) s->largest = id;
        if (s->at == end) s->at = i;
    }
}

static int64_t bound_of(const DataInputs *inputs, int input) {
    amp_dtype dtype = inputs->input[input].dtype;
    int64_t bound = inputs->bound[input];
    int64_t most = dtype == AMP_DT_U8 ? UINT8_MAX : dtype == AMP_DT_I32 ? INT32_MAX : UINT32_MAX;
    return bound && bound <= most ? bound : most + 1;
}

/* Now, and not after hours of training: one pass over the text. */
static int check_ids(const Dataset *d, const char *path, const DataInputs *inputs, int input) {
    const TokenText *text = &d->tokens;
    Scan s = {.text = text, .bound = bound_of(inputs, input), .ignored = inputs->ignored[input]};
    if (s.bound >= (int64_t)1 << 8 * text->bytes) return 0;
    if (!mapped_read(scan, &s)) return report_text("%s: the file has become shorter while it was read", path);
    if (s.at == text->first + text->count) return 0;
    return report_text("%s: token %" PRId64 " (byte %" PRId64 ") is %u, but the model's input %s takes ids from 0 to "
                       "%" PRId64 "; the largest here is %u: give the model a vocabulary of %" PRId64
                       ", or name the type of the file (type=u8, u16 or u32)",
                       path, s.at, s.at * text->bytes, token_at(text, s.at), inputs->input[input].name, s.bound - 1,
                       s.largest, (int64_t)s.largest + 1);
}

/* The part of the text: what is held out is its tail. */
static int take_part(Dataset *d, const char *path, Part part, double held) {
    TokenText *text = &d->tokens;
    int64_t all = (int64_t)d->file.size / text->bytes, window = text->window;
    int64_t tail = held < 1 ? (int64_t)((double)all * held + 0.5) : (int64_t)held * window + 1;
    if (all <= window)
        return report_text("%s: holds %" PRId64 " tokens; one window takes %" PRId64 ", %" PRId64
                           " to read and the next to predict",
                           path, all, window + 1, window);
    d->has_test = held > 0;
    if (held > 0 && (tail <= window || all - tail <= window))
        return report_text("%s: of its %" PRId64 " tokens %" PRId64 " would be held out, and %" PRId64
                           " trained; a window takes %" PRId64 ": say otherwise (held=P), or give a longer file",
                           path, all, tail, all - tail > 0 ? all - tail : 0, window + 1);
    bool is_tail = part == PART_TEST && held > 0;
    text->first = is_tail ? all - tail : 0;
    text->count = is_tail ? tail : all - tail;
    /* Epochs begin at one of T tokens or more, so that some of their cuts leave out the last window. */
    d->count = (text->count - (part == PART_TEST ? 1 : window)) / window;
    if (d->count < 1) d->count = 1;
    return 0;
}

static int open_text(Dataset *d, const char *path) {
    amp_error err = {0};
    TokenText *text = &d->tokens;
    if (mapped_open(&d->file, path, &err)) return report(&err);
    text->data = d->file.data;
    if (d->file.size % (size_t)text->bytes)
        return report_text("%s: %zu bytes are no whole number of ids of %d bytes: the file is cut off, or of another "
                           "type (type=u8, u16 or u32)",
                           path, d->file.size, text->bytes);
    return d->file.size ? 0 : report_text("%s: is empty", path);
}

int tokens_read(Dataset *d, const char *spec, Part part, const DataInputs *inputs) {
    DataSpec s;
    double held;
    if (spec_parse(&s, spec, "tokens:", keys) || take_type(&d->tokens, spec, s.value[KEY_TYPE]) ||
        take_held(&held, spec, s.value[KEY_HELD], &inputs->options))
        return 1;
    int failed = take_inputs(d, inputs, s.value[KEY_SPLIT]) || open_text(d, s.path);
    if (!failed && s.value[KEY_SPLIT]) failed = texts_read(d, s.path, s.value[KEY_SPLIT], part, held);
    else if (!failed) failed = take_part(d, s.path, part, held);
    for (int i = 0; !failed && i < inputs->count; i++) failed = check_ids(d, s.path, inputs, i);
    return failed;
}

bool tokens_file(const char *spec, char *path, size_t size) {
    DataSpec s;
    return spec_read(&s, spec, "tokens:", keys) && snprintf(path, size, "%s", s.path) > 0;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

void tokens_gather(const Dataset *d, const int64_t *index, int64_t n, void *const *batch) {
    const TokenText *text = &d->tokens;
    for (int c = 0; c < d->columns; c++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0, from = index[i] + c, to = i * text->window; k < text->window; k++, to++) {
                uint32_t id = token_at(text, from + k);
                if (d->column[c].dtype == AMP_DT_I32) ((int32_t *)batch[c])[to] = (int32_t)id;
                else if (d->column[c].dtype == AMP_DT_I64) ((int64_t *)batch[c])[to] = id;
                else ((uint8_t *)batch[c])[to] = (uint8_t)id;
            }
}

void tokens_order(const Dataset *d, uint64_t seed, int64_t epoch, int64_t *order) {
    const TokenText *text = &d->tokens;
    int64_t left = text->count - 1 - d->count * text->window; /* tokens that no window predicts */
    uint32_t word = amp_random_u32(seed, amp_hash32("data.window"), (uint32_t)epoch, 0, 0);
    int64_t first = text->first + (int64_t)((uint64_t)word * (uint64_t)(left + 1) >> 32);
    for (int64_t i = 0; i < d->count; i++) order[i] = first + order[i] * text->window;
}
