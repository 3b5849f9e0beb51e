/* tensorboard.h: --tensorboard: what a training writes for TensorBoard. */
#ifndef AMP_TOOLS_AMPRUN_TENSORBOARD_H
#define AMP_TOOLS_AMPRUN_TENSORBOARD_H

#include "tools/amprun/stats/stats.h"
#include "tools/amprun/tensorboard/protobuf.h"
#include "tools/amprun/train/evaluate.h"

/* ---- events.c ---------------------------------------------------------------------------------------------------- */

/* An event file of TensorBoard: records of TFRecord, each an event (tensorflow/core/util/event.proto).
 *
 * A folder holds any number of them, read in the order of their names, so that a run which goes on writes a file of its
 * own.  Its first event says from which step on it goes, and TensorBoard drops what earlier files have of those.
 */

/* Zeroed: nothing is written. */
typedef struct EventFile {
    const char *folder; /* of --tensorboard */
    int fd;
    Message event;  /* that is being put together */
    size_t summary; /* where its values begin */
    bool is_open;
    bool failed; /* and that was reported: nothing more is written */
} EventFile;

/* Makes the folder where it is missing, and in it a file whose events are of |first_step| and later ones.  Reports and
 * returns 1 on failure. */
int events_open(EventFile *f, const char *folder, int64_t first_step);

/* An event of |step|: values are added to what begin returns (NULL: nothing is written), and end writes it.  The first
 * failure is reported; training goes on without. */
Message *events_begin(EventFile *f, int64_t step);
void events_end(EventFile *f);

int events_close(EventFile *f); /* 1: some are missing */

/* ---- tensorboard.c ----------------------------------------------------------------------------------------------- */

/* Scalars by the names that they have in --log. */
void tensorboard_step(EventFile *f, const Run *run, const amp_step_report *report, const double *losses,
                      const double *metrics, double samples_per_s);
/* Of an evaluation after |iteration|. */
void tensorboard_evaluation(EventFile *f, const Run *run, int64_t iteration, const Evaluation *test);
/* What --stats has counted in |iteration|, as histograms of magnitudes, in buckets from one power of two to the next:
 * "magnitude/NAME". */
void tensorboard_stats(EventFile *f, const Stats *stats, int64_t iteration);

#endif
