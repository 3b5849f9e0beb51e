/* weights.h: --weights, --save-like and --ema: published weights into the parameters, and back under their names; the
 * averages of the parameters. */
#ifndef AMP_TOOLS_WEIGHTS_H
#define AMP_TOOLS_WEIGHTS_H

#include "tools/amprun/amprun.h"
#include "tools/outputs.h"

/* Whether some parameters are not taken from --weights. */
bool weights_leave_some(const Args *a);
/* Takes --weights, where it is given; |ema|: the averages that are there.  Reports and returns 1 on failure. */
int weights_load(Run *run, const Args *a, bool ema);

/* Writes the parameters under their own names, or those of --save-like. */
amp_status weights_save(const Run *run, const Args *a, const char *path, amp_error *err);
/* Whether --save-like, where it is given, will be able to: before anything is trained.  Reports, returns 1. */
int weights_check_like(const Run *run, const Args *a);

/* --ema: the run's params with the averages in place of the parameters, and a session that evaluates with them, where
 * |capacity| is not 0; run_close frees it.  Both report and return 1 on failure. */
int averages_open(Run *averages, const Run *run, const Args *a, int64_t capacity);
/* As the run's session has them now.  Of several ranks all call it. */
int averages_take(const Run *averages, const Run *run);

/* Every file of --weights and --save-like, the shards of an index too. */
typedef struct WeightInputs {
    struct amp_weight_files *weights, *like;
} WeightInputs;
void weights_inputs(WeightInputs *w, Outputs *files, const Args *a);
/* outputs_check, and frees both. */
int weights_outputs_check(WeightInputs *w, Outputs *files);

#endif
