/* casts.c: see casts.h. */
#include "compiler/casts.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

Bytes bytes_of_elements(const Shape *s, size_t element_bytes) {
    double count = (double)element_bytes;
    int batches = 0, lengths = 0;
    Bytes b = {0};
    for (int i = 0; i < s->rank; i++) {
        count *= (double)s->d[i].mul / (dim_varies(s->d[i]) ? (double)s->d[i].div : 1.0);
        batches += s->d[i].n;
        lengths += s->d[i].t;
    }
    b.at[batches][lengths] = count;
    return b;
}

void bytes_add(Bytes *to, const Bytes *more) {
    for (int n = 0; n <= MAX_RANK; n++)
        for (int t = 0; t <= MAX_RANK; t++) to->at[n][t] += more->at[n][t];
}

/* What N to the power |n| is multiplied by. */
static double of_power(const Bytes *b, int n) {
    double sum = 0;
    for (int t = MAX_RANK; t >= 0; t--) sum = sum * ASSUMED_T + b->at[n][t];
    return sum;
}

double bytes_at(const Bytes *b, int64_t batch) {
    double sum = 0;
    for (int n = MAX_RANK; n >= 0; n--) sum = sum * (double)batch + of_power(b, n);
    return sum;
}

/* And exact as a double. */
static bool is_whole(double v) { return v == floor(v) && fabs(v) < 9e15; }

static void print_number(Text *t, double v) {
    if (is_whole(v)) text_printf(t, "%lld", (long long)v);
    else text_put_double(t, v);
}

static void print_power(Text *t, char size, int power) {
    if (power) text_printf(t, " %c", size);
    if (power > 1) text_printf(t, "^%d", power);
}

void bytes_print(Text *t, const Bytes *b) {
    bool any = false;
    for (int i = (MAX_RANK + 1) * (MAX_RANK + 1) - 1; i >= 0; i--) {
        const int batches = i / (MAX_RANK + 1), lengths = i % (MAX_RANK + 1);
        double v = b->at[batches][lengths];
        if (v == 0.0) continue;
        if (any) text_puts(t, v < 0.0 ? " - " : " + "), v = fabs(v);
        print_number(t, v);
        print_power(t, 'N', batches);
        print_power(t, 'T', lengths);
        any = true;
    }
    if (!any) text_putc(t, '0');
}

static void put_number(amp_json_writer *w, double v) {
    if (is_whole(v)) amp_json_put_int(w, NULL, (int64_t)v);
    else amp_json_put_double(w, NULL, v);
}

/* By power of N, and for each by power of T. */
static void put_powers(amp_json_writer *w, const Bytes *b, int last, int last_t) {
    amp_json_begin_array(w, "bytes_by_powers_of_n_and_t");
    for (int n = 0; n <= last; n++) {
        amp_json_begin_array(w, NULL);
        for (int t = 0; t <= last_t; t++) put_number(w, b->at[n][t]);
        amp_json_end_array(w);
    }
    amp_json_end_array(w);
}

void bytes_put(amp_json_writer *w, Arena *a, const Bytes *b) {
    Text text;
    int last = 0, last_t = 0;
    text_init(&text, a);
    bytes_print(&text, b);
    amp_json_put_string(w, "bytes", text_str(&text));
    for (int n = 0; n <= MAX_RANK; n++)
        for (int t = 0; t <= MAX_RANK; t++)
            if (b->at[n][t] != 0.0) last = n > last ? n : last, last_t = t > last_t ? t : last_t;
    amp_json_begin_array(w, "bytes_by_power_of_n");
    for (int n = 0; n <= last; n++) put_number(w, of_power(b, n));
    amp_json_end_array(w);
    if (last_t) put_powers(w, b, last, last_t);
}

/* ---- the casts of a module --------------------------------------------------------------------------------------- */

void casts_step_funcs(const Module *m, const Func *out[STEP_FUNCS + 1]) {
    static const ProgramKind trained[] = {PROGRAM_TRAIN_STEP, PROGRAM_MICRO_STEP, PROGRAM_APPLY_STEP};
    int count = 0;
    for (int i = 0; i < STEP_FUNCS; i++)
        if (ir_program(m, trained[i])) out[count++] = ir_program(m, trained[i]);
    if (!count && ir_program(m, PROGRAM_INFER)) out[count++] = ir_program(m, PROGRAM_INFER);
    out[count] = NULL;
}

static bool is_rule(const Op *o, const char *rule) { return !strcmp(o->reason->rule, rule); }

bool casts_is_gradient(const Op *o) {
    static const char mark[] = ".grad";
    for (const char *at = o->path ? strstr(o->path, mark) : NULL; at; at = strstr(at + 1, mark))
        if (!at[sizeof mark - 1] || strchr("._", at[sizeof mark - 1])) return true;
    return ir_op_info[o->code].flags & BACKWARD;
}

const char *casts_phase(const Op *o) {
    if (is_rule(o, "update") || is_rule(o, "loss_scale")) return "update";
    if (casts_is_gradient(o)) return "backward"; /* painted ops have the reasons of the policy */
    if (is_rule(o, "gradient") || is_rule(o, "weight_gradient") || o->code == OP_scale_loss) return "backward";
    return "forward";
}

/* A number is not a name: then the op that makes the value. */
static const char *name_of(const Func *f, Val v) {
    const char *name = ir_value(f, v)->name;
    const Op *maker = ir_def(f, v);
    return name[strspn(name, "0123456789")] || !maker || !maker->path ? name : maker->path;
}

static Cast cast_of(const Func *f, const Op *o) {
    const Value *from = ir_value(f, o->in[0]), *to = ir_value(f, o->out[0]);
    const char *path = o->path ? o->path : "";
    return (Cast){
        .name = path,
        .value = name_of(f, o->in[0]),
        .asker = o->reason && o->reason->neighbour ? o->reason->neighbour : path,
        .func = f->name,
        .phase = o->reason ? casts_phase(o) : "forward",
        .from = from->dtype,
        .to = to->dtype,
        .bytes = bytes_of_elements(&to->shape, amp_dtype_size(from->dtype) + amp_dtype_size(to->dtype)),
        .pos = o->pos,
    };
}

Casts casts_of(const Module *graph) {
    Casts casts = {0};
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    if (graph) casts_step_funcs(graph, funcs);
    for (int k = 0; funcs[k]; k++)
        for (int i = 0; i < funcs[k]->body.len; i++)
            if (ir_op_at(funcs[k], i)->code == OP_cast)
                vec_push(graph->arena, &casts, cast_of(funcs[k], ir_op_at(funcs[k], i)));
    return casts;
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

static void count_one(CastTotal *t, const Cast *c, bool fused) {
    t->count++;
    t->fused += fused;
    bytes_add(&t->bytes, &c->bytes);
}

void casts_count(Arena *a, CastTotals *t, const Cast *c, bool fused) {
    CastTotal *pair = NULL;
    for (int i = 0; !pair && i < t->pairs.len; i++)
        if (t->pairs.data[i].from == c->from && t->pairs.data[i].to == c->to) pair = &t->pairs.data[i];
    if (!pair) {
        vec_push(a, &t->pairs, ((CastTotal){.from = c->from, .to = c->to}));
        pair = &t->pairs.data[t->pairs.len - 1];
    }
    count_one(pair, c, fused);
    count_one(&t->all, c, fused);
}
