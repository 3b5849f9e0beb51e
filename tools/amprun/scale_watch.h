/* scale_watch.h: the loss scale of a training, watched: what is said of it, and what a checkpoint keeps. */
#ifndef AMP_TOOLS_AMPRUN_SCALE_WATCH_H
#define AMP_TOOLS_AMPRUN_SCALE_WATCH_H

#include "amp/amp.h"
#include "base/json.h"

/* What is not ordinary, in a word; else "". */
const char *scale_watch_note(const amp_scale_monitor *m);
/* Warns on standard error where |m|, which has just changed, is out of the ordinary after step |iteration|. */
void scale_watch_warn(const amp_scale_monitor *m, int64_t iteration);

/* An object "scale_monitor" with what was counted. */
void scale_watch_put(amp_json_writer *w, const amp_scale_monitor *m);
/* What is there of it, of the object |from|; what is not stays. */
void scale_watch_take(const amp_json *from, amp_scale_monitor *m);
/* Goes on with what was counted, if anything was, by what |model| says of its scale. */
void scale_watch_go_on(amp_scale_monitor *m, const amp_model *model);

#endif
