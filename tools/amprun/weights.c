/* weights.c: see weights.h. */
#include "tools/amprun/weights.h"

#include <string.h>

#include "amp/train.h"
#include "amp/weights.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_reader.h"
#include "base/safetensors/weight_files.h"

enum { DIFFERENCES_SHOWN = 100 };

/* ---- loading ----------------------------------------------------------------------------------------------------- */

bool weights_leave_some(const Args *a) { return a->rules.fresh[0] != NULL; }

static void show_difference(void *user, const char *name, amp_weights_difference kind, const char *why) {
    int *shown = user;
    (void)kind;
    if (++*shown <= DIFFERENCES_SHOWN) report_text("%s: %s", name, why);
}

static amp_weights_options options_of(const Args *a, int *shown) {
    return (amp_weights_options){
        .struct_size = sizeof(amp_weights_options),
        .ignore = a->rules.ignore,
        .rename = a->rules.rename,
        .transpose = a->rules.transpose,
        .fresh = a->rules.fresh,
        .user = shown,
        .difference = a->verbose ? show_difference : NULL,
    };
}

/* The library names the rules of amp_weights_options, rename 'a=b'; here they are options: --rename 'a=b'. */
static amp_status with_options(amp_status status, amp_error *err) {
    static const char *const rules[] = {"ignore '", "rename '", "transpose '", "fresh '", "ema: "};
    char text[2 * sizeof err->message];
    char *to = text;
    if (!status || !err) return status;
    for (const char *at = err->message; *at; *to++ = *at++)
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            if (!strncmp(at, rules[i], strlen(rules[i])) && (at == err->message || at[-1] == ' '))
                *to++ = '-', *to++ = '-';
    *to = '\0';
    return amp_fail(err, status, "%s", text);
}

static void report_more(int shown) {
    if (shown > DIFFERENCES_SHOWN) report_text("and %d more differences", shown - DIFFERENCES_SHOWN);
}

int weights_load(Run *run, const Args *a, bool ema) {
    amp_error err = {0};
    amp_weights_report made;
    int shown = 0;
    if (!a->weights) return 0;
    amp_weights_options options = options_of(a, &shown);
    options.ema = ema;
    if (with_options(amp_params_load(run->params, a->weights, &options, &made, &err), &err)) {
        report_more(shown);
        return report(&err);
    }
    if (made.rounded && !a->quiet)
        report_text("%s: %d of its tensors are F64 and were rounded to f32", a->weights, made.rounded);
    if (a->verbose)
        report_text("%s: %d tensors loaded (%d transposed), %d parameters left as they were, %d tensors ignored",
                    a->weights, made.loaded, made.transposed, made.fresh, made.ignored);
    return 0;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

amp_status weights_save(const Run *run, const Args *a, const char *path, amp_error *err) {
    int shown = 0;
    amp_weights_options options = options_of(a, &shown);
    if (!a->save_like) return amp_params_save(run->params, path, NULL, err);
    options.like = a->save_like;
    const amp_status status = with_options(amp_params_save(run->params, path, &options, err), err);
    report_more(shown);
    return status;
}

int weights_check_like(const Run *run, const Args *a) {
    amp_error err = {0};
    if (!a->save_like) return 0;
    if (!amp_file_check_regular(a->save_like, &err) && !weights_save(run, a, "/dev/null", &err)) return 0;
    return report_text("--save-like %s", err.message);
}

/* ---- averages ---------------------------------------------------------------------------------------------------- */

int averages_take(const Run *averages, const Run *run) {
    amp_error err = {0};
    if (!amp_session_get_averages(run->session, averages->params, &err)) return 0;
    return report_text("--ema: %s", err.message);
}

int averages_open(Run *averages, const Run *run, const Args *a, int64_t capacity) {
    amp_error err = {0};
    amp_session_options options = run_options(a, capacity, "infer");
    options.log = NULL;
    options.comm = NULL;
    *averages = (Run){.model = run->model, .info = run->info};
    amp_model_retain(run->model);
    if (amp_params_snapshot(run->params, &averages->params, &err)) return report(&err);
    if (averages_take(averages, run)) return 1;
    if (!capacity) return 0;
    return amp_session_create(run->model, averages->params, &options, &averages->session, &err) ? report(&err) : 0;
}

/* ---- what is read ------------------------------------------------------------------------------------------------ */

/* A file that cannot be read is reported when it is loaded; a pipe gives what it has once, then. */
static struct amp_weight_files *add_files(Outputs *files, const char *option, const char *path) {
    amp_weight_files *w = NULL;
    outputs_input(files, option, path);
    if (!path || !amp_file_is_regular(path) || amp_weight_files_open(path, NULL, &w, NULL)) return NULL;
    for (int32_t i = 0; amp_weight_files_shard(w, i); i++) outputs_input(files, option, amp_weight_files_shard(w, i));
    return w;
}

void weights_inputs(WeightInputs *w, Outputs *files, const Args *a) {
    w->weights = add_files(files, "--weights", a->weights);
    w->like = add_files(files, "--save-like", a->save_like);
}

int weights_outputs_check(WeightInputs *w, Outputs *files) {
    const int wrong = outputs_check(files);
    outputs_free(files);
    amp_weight_files_close(w->weights);
    amp_weight_files_close(w->like);
    return wrong;
}
