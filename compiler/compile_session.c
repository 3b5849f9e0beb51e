/* compile_session.c: see compile_session.h. */
#include "compiler/compile_session.h"

#include <sys/stat.h>

#include "base/names.h"
#include "base/elf.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/words.h"
#include "passes/passes.h"
#include "precision/policy.h"

enum { SOURCE_LIMIT = 64 << 20 };

static bool is_identifier(const char *s) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *s && !(*s >= '0' && *s <= '9') && !s[strspn(s, letters)];
}

enum { SUMS_COUNT = SUMS_SM_90 + 1 };

static amp_status check_sums(const amp_compile_options *o, amp_error *err) {
    const bool is_cuda = o->emit == AMP_EMIT_CU || o->emit == AMP_EMIT_PTX || (o->target && !strcmp(o->target, "cuda"));
    if (word_index(o->sums, ir_sums_names, SUMS_COUNT) < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown sums '%s'; use ieee, sm_80 or sm_90", o->sums);
    if (is_cuda && o->emit != AMP_EMIT_SO && strcmp(o->sums, ir_sums_names[SUMS_IEEE]))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "sums %s: these are sums of the CPU's kernels, but the output is CUDA code", o->sums);
    return AMP_OK;
}

static amp_status check_options(const amp_compile_options *o, amp_error *err) {
    if (o->define_count && !o->defines)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: define_count is %zu, and defines is NULL",
                        o->define_count);
    for (size_t i = 0; i < o->define_count; i++)
        if (!o->defines[i].name || !*o->defines[i].name || !o->defines[i].value)
            return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: define %zu has no %s", i,
                            o->defines[i].value ? "name" : "value");
    if (o->override_count && !o->overrides)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: override_count is %zu, and overrides is NULL",
                        o->override_count);
    for (size_t i = 0; i < o->override_count; i++)
        if (!o->overrides[i].path || !o->overrides[i].word)
            return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: override %zu has no %s", i,
                            o->overrides[i].path ? "word" : "path");
    if (o->emit < AMP_EMIT_SO || o->emit > AMP_EMIT_O)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: emit is %d, not one of amp_emit",
                        (int)o->emit);
    if (o->symbol && !is_identifier(o->symbol))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "symbol '%s' is not a name of C: letters, digits and underscores, no digit first", o->symbol);
    if (o->sums) AMP_TRY(check_sums(o, err));
    if (o->batch_hint < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: batch_hint is %lld; it must be 0 or more",
                        (long long)o->batch_hint);
    if (o->max_ops < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options: max_ops is %lld; it must be 0 or more",
                        (long long)o->max_ops);
    return AMP_OK;
}

amp_status session_init(Session *s, const amp_compile_options *options, amp_error *err) {
    memset(&s->images, 0, sizeof s->images);
    s->stages_done = s->stages = 0;
    s->files = NULL;
    s->open = NULL;
    s->open_count = 0;
    s->told = NULL;
    s->source = s->kept_policy = NULL;
    s->beside = NULL;
    if (!options)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_compile_options is NULL; it must name the model at least");
    AMP_TRY(amp_options_read(&s->options, sizeof s->options, options, "amp_compile_options", err));
    if (!s->options.name) s->options.name = "model.amp";
    arena_init(&s->arena, s->options.allocator);
    diags_init(&s->diags, &s->arena);
    return check_options(&s->options, err);
}

/* The folder of |beside| joined with |name|. */
static const char *path_beside(Arena *a, const char *name, const char *beside) {
    const char *slash = beside ? strrchr(beside, '/') : NULL;
    if (!slash || name[0] == '/') return name;
    return arena_printf(a, "%.*s/%s", (int)(slash - beside), beside, name);
}

static bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    if (!strcmp(a, b)) return true;
    return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* The text to read in place of the file; NULL: the file itself is read. */
static const amp_source_text *find_open(const Session *s, const char *path) {
    for (size_t i = 0; i < s->open_count; i++)
        if (is_same_file(s->open[i].name, path)) return &s->open[i];
    return NULL;
}

static void take_open(Session *s, LoadedFile *file, const amp_source_text *open) {
    file->text = amp_alloc(&s->arena.allocator, open->size + 1);
    if (!file->text) arena_jump_(&s->arena);
    memcpy(file->text, open->text, open->size);
    file->text[open->size] = 0;
    file->source.len = open->size;
}

amp_status session_read(Session *s, const char *name, const char *beside, size_t limit, const Source **out,
                        amp_error *err) {
    LoadedFile *file = arena_new(&s->arena, LoadedFile);
    file->source.name = path_beside(&s->arena, name, beside);
    file->next = s->files;
    s->files = file; /* before anything is read: the arena may jump later on, and session_close frees what is listed */
    const amp_source_text *open = find_open(s, file->source.name);
    if (open) take_open(s, file, open);
    else
        AMP_TRY((beside ? amp_file_read_regular : amp_file_read)(file->source.name, limit, &s->arena.allocator,
                                                                 &file->text, &file->source.len, err));
    file->source.text = file->text;
    if (s->options.dependency) s->options.dependency(s->options.user, file->source.name);
    *out = &file->source;
    return AMP_OK;
}

void session_close(Session *s) {
    if (s->beside) session_close(s->beside);
    codegen_cuda_images_free(&s->images);
    for (LoadedFile *f = s->files; f; f = f->next)
        if (f->text) amp_free(&s->arena.allocator, f->text, f->source.len + 1);
    arena_free(&s->arena);
}

amp_status session_out_of_memory(const Session *s, amp_error *err) {
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: out of memory", s->options.name);
}

typedef struct SessionCall {
    const amp_compile_options *options;
    SessionRun *run;
    const void *arguments;
    amp_compile_result **out;
} SessionCall;

static amp_status run_session(void *of, amp_error *err) {
    const SessionCall *c = of;
    Session s;
    AMP_TRY(session_init(&s, c->options, err));
    amp_status status;
    if (setjmp(s.arena.out_of_memory)) status = session_out_of_memory(&s, err);
    else status = c->run(&s, c->arguments, c->out, err);
    session_close(&s);
    if (status) {
        amp_compile_result_release(*c->out);
        *c->out = NULL;
    }
    return status;
}

amp_status session_call(const char *name, const amp_compile_options *options, SessionRun *run, const void *arguments,
                        amp_compile_result **out, amp_error *err) {
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: out is NULL", name);
    *out = NULL;
    return compiler_call(run_session, &(SessionCall){options, run, arguments, out}, err);
}

/* Files are opened by paths that end in the name. */
const Source *session_find_source(void *session, const char *file) {
    const Session *s = session;
    const size_t length = file ? strlen(file) : 0;
    for (const LoadedFile *f = s->files; f && length; f = f->next) {
        const char *name = f->source.name;
        const size_t whole = strlen(name);
        if (whole < length || strcmp(name + whole - length, file) != 0 || !f->text) continue;
        if (whole == length || name[whole - length - 1] == '/') return &f->source;
    }
    return length && s->source && !s->is_ir && !strcmp(s->source->name, file) ? s->source : NULL;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

amp_status session_open(Session *s, amp_error *err) {
    if (s->options.text) {
        Source *source = arena_new(&s->arena, Source);
        *source = (Source){
            .name = arena_strdup(&s->arena, s->options.name),
            .text = arena_strndup(&s->arena, s->options.text, s->options.text_size),
            .len = s->options.text_size,
        };
        s->source = source;
    } else {
        AMP_TRY(session_read(s, s->options.name, NULL, SOURCE_LIMIT, &s->source, err));
    }
    s->is_ir = ends_with(s->options.name, ".ir") || (s->source->len > 7 && !memcmp(s->source->text, "module ", 7));
    return AMP_OK;
}

/* Waiting for what a pipe may bring, a model could hold a service for ever. */
static bool is_regular(Session *s, const char *name, const char *beside) {
    struct stat st;
    return !stat(path_beside(&s->arena, name, beside), &st) && S_ISREG(st.st_mode);
}

static bool may_read(const Session *s, const char *policy) {
    return !s->options.no_files || (s->options.policy && !strcmp(policy, s->options.policy));
}

const Source *session_find_policy(void *session, const char *name) {
    Session *s = session;
    if (s->kept_policy && !strcmp(name, s->kept_policy->name)) return s->kept_policy;
    const Source *found = policy_builtin(&s->arena, name);
    if (found || !may_read(s, name)) return found;
    amp_error ignored; /* the pass says that there is no such policy, and lists the built-in ones */
    const char *places[] = {NULL, s->source ? s->source->name : NULL};
    for (int i = 0; i < 2; i++)
        if (is_regular(s, name, places[i]) && !session_read(s, name, places[i], SOURCE_LIMIT, &found, &ignored))
            return found;
    return NULL;
}

static const Source *find_loaded(const Session *s, const char *path) {
    for (const LoadedFile *f = s->files; f; f = f->next)
        if (f->text && !strcmp(f->source.name, path)) return &f->source;
    return NULL;
}

static const Source *find_include(void *user, const char *name, const char *beside) {
    Session *s = user;
    const char *path = path_beside(&s->arena, name, beside);
    const Source *found = find_loaded(s, path);
    amp_error ignored; /* the front end reports the include itself */
    if (found && !s->options.dependency) return found;
    if (s->options.no_files || (!is_regular(s, name, beside) && !find_open(s, path))) return NULL;
    return session_read(s, name, beside, SOURCE_LIMIT, &found, &ignored) ? NULL : found;
}

FrontendOptions session_frontend_options(Session *s) {
    FrontendDefine *defines = arena_array(&s->arena, FrontendDefine, s->options.define_count + 1);
    for (size_t i = 0; i < s->options.define_count; i++)
        defines[i] = (FrontendDefine){s->options.defines[i].name, s->options.defines[i].value};
    FrontendOptions o = {
        .find_include = find_include,
        .user = s,
        .max_ops = s->options.max_ops,
        .define_count = (int)s->options.define_count,
        .no_includes = s->options.no_files,
    };
    o.defines = defines;
    return o;
}

static Module *read_model(Session *s) {
    const FrontendOptions o = session_frontend_options(s);
    return frontend_compile(&s->arena, &s->diags, s->source, &o);
}

/* Hands dump and timing on to the caller, who may want one, both or neither. */
static void observe(void *user, const Module *m, double seconds) {
    Session *s = user;
    const amp_compile_options *o = &s->options;
    if (o->timing) o->timing(o->user, ir_stage_names[m->stage], seconds);
    if (!o->dump) return;
    Arena *scratch = arena_child(&s->arena);
    Text t;
    text_init(&t, scratch);
    ir_print(&t, m);
    o->dump(o->user, ir_stage_names[m->stage], text_str(&t), t.len);
    arena_free(scratch);
}

/* FP32 forms are copies that autocast makes. */
static amp_status set_eval_precision(const Session *s, Module *m, amp_error *err) {
    const char *word = s->options.eval_precision;
    if (!word || (m->eval_precision && !strcmp(word, m->eval_precision))) return AMP_OK;
    if (strcmp(word, AMP_FULL_PRECISION))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "eval precision %s: only fp32 can be added to a model", word);
    if (m->stage > STAGE_ELABORATE)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: is at stage %s, too late to add FP32 forms of eval and infer",
                        s->source->name, ir_stage_names[m->stage]);
    m->eval_precision = AMP_FULL_PRECISION;
    return AMP_OK;
}

/* The pass distribute reads it. */
static amp_status set_distribution(const Session *s, Module *m, amp_error *err) {
    const char *word = s->options.distribute;
    const int asked = word ? word_index(word, ir_distribution_names, DISTRIBUTE_ZERO1 + 1) : (int)m->distribution;
    if (asked < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "unknown value '%s' of distribute; use none, data (ranks train together, each on samples of "
                        "its own) or zero1 (and each keeps a share of the moments)",
                        word);
    if (asked == (int)m->distribution) return AMP_OK;
    if (m->stage >= STAGE_DISTRIBUTE)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "distribute %s: %s is at stage %s, after the pass distribute; give the model, or IR of an "
                        "earlier stage",
                        word, s->source->name, ir_stage_names[m->stage]);
    m->distribution = (Distribution)asked;
    return AMP_OK;
}

/* The pass distribute reads it too. */
static amp_status set_accumulate_order(const Session *s, Module *m, amp_error *err) {
    const char *word = s->options.accumulate_order;
    const int asked = word ? word_index(word, ir_order_names, ORDER_TREE + 1) : (int)m->accumulate_order;
    if (asked < 0) return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown accumulate order '%s'; use left or tree", word);
    if (asked != (int)m->accumulate_order && m->stage >= STAGE_DISTRIBUTE)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "accumulate order %s: %s is at stage %s, after the pass distribute; give the model, or "
                        "IR of an earlier stage",
                        word, s->source->name, ir_stage_names[m->stage]);
    m->accumulate_order = (SumOrder)asked;
    return AMP_OK;
}

/* The kernels are made with them, and attention is lowered for them. */
static amp_status set_sums(const Session *s, Module *m, amp_error *err) {
    if (!s->options.sums) return AMP_OK;
    const Sums sums = (Sums)word_index(s->options.sums, ir_sums_names, SUMS_COUNT);
    if (sums != m->sums && m->stage >= STAGE_TARGET)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "sums %s: %s is at stage %s and has its target already; give the model, or IR of an earlier "
                        "stage",
                        s->options.sums, s->source->name, ir_stage_names[m->stage]);
    m->sums = sums;
    return AMP_OK;
}

amp_status session_begin(Session *s, const char *stage, amp_error *err) {
    const amp_compile_options *o = &s->options;
    int index = s->stages_done++;
    if (!o->progress || !s->stages || !o->progress(o->user, stage, index, s->stages)) return AMP_OK;
    return amp_fail(err, AMP_CANCELLED, "%s: cancelled before %s", o->name, stage);
}

static amp_status begin_pass(void *user, Stage stage, amp_error *err) {
    return session_begin(user, ir_stage_names[stage], err);
}

static amp_status leave_out(Session *s, PassOptions *options, amp_error *err) {
    const char *names = s->options.no_pass;
    for (size_t size; names && *names; names += size + (names[size] == ',')) {
        size = strcspn(names, ",");
        const char *name = arena_strndup(&s->arena, names, size);
        if (!passes_leave_out(options, name))
            return amp_fail(err, AMP_INVALID_ARGUMENT, "pass '%s' cannot be left out; these can: %s", name,
                            passes_optional(&s->arena));
    }
    return AMP_OK;
}

amp_status session_run_passes(Session *s, Module *m, Stage last, const Target *target, bool observed, amp_error *err) {
    PassOptions options = {
        .precision = s->options.precision,
        .policy = s->options.policy,
        .batch_hint = s->options.batch_hint,
        .find_policy = session_find_policy,
        .begin = begin_pass,
        .user = s,
        .target = target,
        .describe = codegen_cuda_describe,
    };
    AMP_TRY(leave_out(s, &options, err));
    amp_error why = {0};
    amp_status status = passes_run(m, &s->diags, &options, last, observed ? observe : NULL, s, &why);
    if (status == AMP_INTERNAL && s->is_ir) { /* a pass met what none before it leaves */
        diag_error(&s->diags, (Loc){0}, "this is not IR as the compiler writes it at its stage: %s", why.message);
        status = AMP_BAD_SOURCE;
    }
    if (status && err) *err = why;
    if (status == AMP_BAD_SOURCE) return session_report(s, err);
    if (status) return status;
    return s->diags.list.len ? session_report(s, err) : AMP_OK;
}

/* IR has the values of its consts, and from autocast on its dtypes: an option that came too late would be ignored. */
static amp_status check_ir_options(const Session *s, const Module *m, amp_error *err) {
    const amp_compile_options *o = &s->options;
    const char *stage = ir_stage_names[m->stage];
    if (o->define_count)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "define %s: %s is %s, whose consts are numbers already; give the model's source",
                        o->defines[0].name, s->source->name, s->kept_policy ? "a compiled model" : "IR");
    if ((!o->precision && !o->policy && !o->override_count) || m->stage < STAGE_AUTOCAST) return AMP_OK;
    const char *option = o->precision ? "precision" : o->policy ? "policy" : "override";
    const char *value = o->precision ? o->precision : o->policy ? o->policy : o->overrides[0].path;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s %s: %s is at stage %s and has its dtypes already; give the model, or IR of stage elaborate",
                    option, value, s->source->name, stage);
}

void session_add_overrides(Session *s, Module *m) {
    for (size_t i = 0; i < s->options.override_count; i++) {
        const amp_override *o = &s->options.overrides[i];
        const Override line = {.pattern = arena_strdup(&s->arena, o->path),
                               .is_path = true,
                               .word = arena_strdup(&s->arena, o->word),
                               .because = o->because ? arena_strdup(&s->arena, o->because) : NULL,
                               .pos = {.file = "options", .line = (int)i + 1, .column = 1}};
        vec_push(&s->arena, &m->overrides, line);
    }
}

/* What the model can be compiled from again goes along. */
static void keep_model(const Session *s, Module *m) {
    if (m->stage != STAGE_ELABORATE) return;
    if (s->options.batch_hint) m->batch_hint = s->options.batch_hint;
    m->model_text = ir_text(m);
}

amp_status session_load(Session *s, Module **out, amp_error *err) {
    const double start = amp_seconds();
    if (amp_elf_machine(s->source->text, s->source->len) >= 0) AMP_TRY(model_so_open(s, err));
    AMP_TRY(session_begin(s, s->is_ir ? "read" : ir_stage_names[STAGE_ELABORATE], err));
    Module *m = s->is_ir ? ir_read(&s->arena, &s->diags, s->source) : read_model(s);
    if (!m) return session_report(s, err);
    if (s->is_ir) AMP_TRY(check_ir_options(s, m, err));
    s->stages_done += (int)m->stage; /* of IR: passes that have run already */
    AMP_TRY(set_eval_precision(s, m, err));
    AMP_TRY(set_sums(s, m, err));
    AMP_TRY(set_distribution(s, m, err));
    AMP_TRY(set_accumulate_order(s, m, err));
    session_add_overrides(s, m);
    if (!s->is_ir) ir_compact(m);
    keep_model(s, m);
    observe(s, m, amp_seconds() - start);
    *out = m;
    return AMP_OK;
}

amp_status session_read_ir(Session *s, const char *text, Module **out, amp_error *err) {
    Source *source = arena_new(&s->arena, Source);
    *source = (Source){.name = s->source->name, .text = text, .len = strlen(text)};
    *out = ir_read(&s->arena, &s->diags, source);
    if (!*out) return session_report(s, err);
    const char *wrong = ir_verify(*out);
    if (!wrong) return AMP_OK;
    diag_error(&s->diags, (Loc){0}, "its module of stage %s is not valid: %s", ir_stage_names[(*out)->stage], wrong);
    return session_report(s, err);
}

/* The text form is the IR: what is printed reads back as the same module. */
amp_status session_copy(Session *s, const Module *m, Module **out, amp_error *err) {
    Text text;
    Source *source = arena_new(&s->arena, Source);
    text_init(&text, &s->arena);
    ir_print(&text, m);
    *source = (Source){.name = s->source->name, .text = text_str(&text), .len = text.len};
    Module *copy = ir_read(&s->arena, &s->diags, source);
    if (!copy) return session_report(s, err);
    copy->source_path = m->source_path;
    *out = copy;
    return AMP_OK;
}

amp_status session_name_error(Session *s, amp_status status, amp_error *err) {
    if (status == AMP_INTERNAL && s->is_ir && err) { /* the reader's and the passes' checks let it through */
        diag_error(&s->diags, (Loc){0}, "this is not IR as the compiler writes it at its stage: %s", err->message);
        return session_report(s, err);
    }
    return status && err ? amp_fail(err, status, "%s: %s", s->options.name, err->message) : status;
}

/* A message's first line, without the newline. */
static void first_line(char *out, size_t size, const char *text) {
    size_t n = strcspn(text, "\n");
    if (n >= size) n = size - 1;
    memcpy(out, text, n);
    out[n] = 0;
}

/* "mlp.amp: at least 80 more errors; the first 20 are shown" */
static void report_hidden(Session *s) {
    int shown = 0;
    for (int i = 0; i < s->diags.list.len; i++) shown += s->diags.list.data[i]->severity == DIAG_ERROR;
    int hidden = s->diags.errors - shown;
    if (hidden <= 0 || !s->options.diagnostic) return;
    const char *text = arena_printf(&s->arena, "%s: %s%d more error%s; the first %d are shown\n", s->options.name,
                                    s->diags.stopped ? "at least " : "", hidden, hidden == 1 ? "" : "s", shown);
    s->options.diagnostic(s->options.user, text, false);
}

amp_status session_report(Session *s, amp_error *err) {
    amp_status status = s->diags.errors ? AMP_BAD_SOURCE : AMP_OK;
    char first[900] = "the model has errors";
    bool have_first = false;
    for (int i = 0; i < s->diags.list.len; i++) {
        const Diag *d = s->diags.list.data[i];
        Text t;
        text_init(&t, &s->arena);
        if (s->told) s->told(s->told_user, d);
        if (!d->loc.source) text_printf(&t, "%s: ", s->options.name); /* of the whole module: no place in its text */
        diag_format(&t, d);
        if (s->options.diagnostic) s->options.diagnostic(s->options.user, text_str(&t), d->severity == DIAG_ERROR);
        if (!have_first && d->severity == DIAG_ERROR) {
            first_line(first, sizeof first, text_str(&t));
            have_first = true;
        }
    }
    report_hidden(s);
    s->diags.list.len = 0;
    if (!status) return AMP_OK;
    int more = s->diags.errors - 1;
    const char *least = s->diags.stopped ? "at least " : "";
    return more > 0 ? amp_fail(err, status, "%s (and %s%d more)", first, least, more)
                    : amp_fail(err, status, "%s", first);
}

/* ---- what the caller gets ---------------------------------------------------------------------------------------- */

amp_status session_give(const Session *s, const void *data, size_t size, amp_compile_result **out, amp_error *err) {
    amp_allocator a = amp_allocator_or_default(s->options.allocator);
    amp_compile_result *r = amp_alloc_zeroed(&a, sizeof *r);
    char *copy = amp_alloc(&a, size + 1);
    if (!r || !copy) {
        amp_free(&a, r, sizeof *r);
        amp_free(&a, copy, size + 1);
        return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for %zu bytes of output", size);
    }
    memcpy(copy, data, size);
    copy[size] = 0;
    *r = (amp_compile_result){.allocator = a, .data = copy, .size = size};
    *out = r;
    return AMP_OK;
}

amp_status session_give_text(const Session *s, const Text *t, amp_compile_result **out, amp_error *err) {
    return session_give(s, text_str(t), t->len, out, err);
}

const void *amp_compile_result_data(const amp_compile_result *result, size_t *size) {
    if (size) *size = result ? result->size : 0;
    return result ? result->data : NULL;
}

void amp_compile_result_release(amp_compile_result *result) {
    if (!result) return;
    amp_allocator a = result->allocator;
    amp_free(&a, result->data, result->size + 1);
    amp_free(&a, result, sizeof *result);
}
