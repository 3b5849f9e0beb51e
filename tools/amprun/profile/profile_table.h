/* profile_table.h: where the time of a recording went, by op. */
#ifndef AMP_TOOLS_AMPRUN_PROFILE_TABLE_H
#define AMP_TOOLS_AMPRUN_PROFILE_TABLE_H

#include "tools/amprun/profile/peaks.h"
#include "tools/amprun/profile/recording.h"

/* Prints it: kernels of the same title are a row, the longest first.  |plain_seconds|: of the quickest step that was
 * not recorded; 0: there was none.  False: no memory. */
bool profile_table_print(const Recording *r, const Peaks *peaks, double plain_seconds, FILE *to);

#endif
