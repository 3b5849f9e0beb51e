/* report_parts.c: see report_parts.h. */
#include "tools/ampc/report_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tools/ampc/step_cost.h"

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void keep(ReportParts *p, const char *name, amp_compile_result *result) {
    size_t size;
    const char *json = amp_compile_result_data(result, &size);
    p->kept[p->kept_count++] = result;
    p->part[p->count++] = (amp_report_part){name, json, size};
}

static amp_json_writer *begin(ReportParts *p) {
    amp_json_writer *w = &p->written[p->written_count++];
    amp_json_writer_init(w, NULL);
    return w;
}

static amp_status keep_written(ReportParts *p, const char *name, const amp_json_writer *w, amp_error *err) {
    AMP_TRY(amp_json_writer_status(w, err));
    p->part[p->count++] = (amp_report_part){name, w->data, w->size};
    return AMP_OK;
}

static amp_status add_layout(const Command *c, ReportParts *p, amp_error *err) {
    amp_explain_options which = c->which;
    amp_compile_result *drawings = NULL;
    char *plain = NULL;
    size_t size, plain_size;
    which.form = AMP_EXPLAIN_BLOCKS;
    AMP_TRY(amp_explain(&c->compile, &which, &drawings, err)); /* and tells what is wrong with the model */
    const void *data = amp_compile_result_data(drawings, &size);
    const bool done = graphviz_plain(data, size, &plain, &plain_size);
    amp_compile_result_release(drawings);
    if (!done) return AMP_OK;
    amp_json_writer *w = begin(p);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "plain", plain);
    amp_json_end_object(w);
    amp_free(NULL, plain, plain_size + 1);
    return keep_written(p, "layout", w, err);
}

static amp_status add_comparison(const Command *c, const amp_compile_options *quiet, const amp_compile_options *other,
                                 ReportParts *p, amp_error *err) {
    amp_explain_options which = c->which;
    amp_compile_result *result = NULL;
    which.form = AMP_EXPLAIN_JSON;
    AMP_TRY(amp_compare(other, quiet, &which, &result, err));
    keep(p, "comparison", result);
    return AMP_OK;
}

/* Of a model, or of IR that still has its graph. */
static void add_lint(const Command *c, const amp_compile_options *quiet, ReportParts *p) {
    const amp_lint_options want = {.struct_size = sizeof want, .batch = c->batch, .json = 1};
    amp_compile_result *result = NULL;
    amp_error ignored;
    if (!amp_lint(quiet, &want, NULL, &result, &ignored)) keep(p, "lint", result);
}

/* What kernels call stands before the first of them, and is left out; and so is more than a page can bear. */
static amp_status add_code(const amp_compile_options *quiet, ReportParts *p, amp_error *err) {
    enum { MOST = 8 << 20 };
    amp_compile_options o = *quiet;
    amp_compile_result *result = NULL;
    amp_error ignored;
    size_t size;
    o.emit = AMP_EMIT_CU;
    if (step_is_compiled(&o) || amp_compile(&o, &result, &ignored)) return AMP_OK;
    const char *text = amp_compile_result_data(result, &size), *first = strstr(text, "\n/* k00");
    amp_json_writer *w = begin(p);
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "cuda", size >= MOST ? NULL : first ? first + 1 : text);
    amp_json_end_object(w);
    amp_compile_result_release(result);
    return keep_written(p, "code", w, err);
}

/* Of a model, which takes the C compiler, only where --gpu asks for it. */
static amp_status add_times(const Command *c, const amp_compile_options *quiet, const Gpu *gpu, ReportParts *p,
                            amp_error *err) {
    if (!c->gpu && !step_is_compiled(quiet)) return AMP_OK;
    amp_json_writer *w = begin(p);
    AMP_TRY(step_put_times(w, quiet, gpu, c->batch ? c->batch : 32, err));
    return keep_written(p, "times", w, err);
}

static amp_status add_run(const Command *c, ReportParts *p, amp_error *err) {
    size_t size;
    if (!c->log) return AMP_OK;
    AMP_TRY(run_log_part(c->log, &p->run, &size, err));
    p->part[p->count++] = (amp_report_part){"run", p->run, size};
    return AMP_OK;
}

amp_status report_parts_gather(Command *c, const amp_compile_options *other, const Gpu *gpu, ReportParts *out,
                               amp_error *err) {
    amp_compile_options quiet = c->compile;
    quiet.diagnostic = NULL;
    *out = (ReportParts){0};
    AMP_TRY(add_layout(c, out, err));
    if (other) AMP_TRY(add_comparison(c, &quiet, other, out, err));
    add_lint(c, &quiet, out);
    AMP_TRY(add_run(c, out, err));
    AMP_TRY(add_code(&quiet, out, err));
    return add_times(c, &quiet, gpu, out, err);
}

void report_parts_free(ReportParts *p) {
    for (int i = 0; i < p->kept_count; i++) amp_compile_result_release(p->kept[i]);
    for (int i = 0; i < p->written_count; i++) amp_json_writer_free(&p->written[i]);
    free(p->run);
}
