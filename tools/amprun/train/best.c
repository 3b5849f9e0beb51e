/* best.c: see training.h. */
#include "amp/train.h"
#include "tools/amprun/train/evaluate.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static bool suggests_small(const char *name) {
    static const char *const words[] = {"loss", "err", "ppl", "perplexity", "mse", "mae", "nll", "distance"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i])) return true;
    return false;
}

int best_find(Best *b, const Run *run, const char *what) {
    bool given = what && (!strncmp(what, "min:", 4) || !strncmp(what, "max:", 4));
    *b = (Best){.name = given ? what + 4 : what ? what : "loss", .of = BEST_LOSS};
    b->smaller = given ? !strncmp(what, "min:", 4) : true;
    if (!strcmp(b->name, "loss")) return 0;
    b->of = BEST_NAMED_LOSS;
    for (b->index = 0; b->index < run->info.loss_count; b->index++)
        if (!strcmp(amp_model_loss_name(run->model, b->index), b->name)) return 0;
    b->of = BEST_METRIC;
    if (!given) b->smaller = suggests_small(b->name);
    for (b->index = 0; b->index < run->info.metric_count; b->index++)
        if (!strcmp(amp_model_metric_name(run->model, b->index), b->name)) return 0;
    report_text("--save-best %s: %s has no metric and no loss of that name; amprun info lists them", what,
                run->info.name);
    return 2;
}

double best_value(const Best *b, const Evaluation *e) {
    return b->of == BEST_LOSS ? e->loss : b->of == BEST_METRIC ? e->metrics[b->index] : e->losses[b->index];
}

bool best_update(const Best *b, const Evaluation *e, Position *p) {
    double v = best_value(b, e);
    bool better = !isnan(v) && (isnan(p->best) || (b->smaller ? v < p->best : v > p->best));
    if (better) p->best = v;
    p->stale = better ? 0 : p->stale + 1;
    snprintf(p->metric, sizeof p->metric, "%s", b->name);
    return better;
}
