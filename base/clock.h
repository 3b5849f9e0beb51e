/* clock.h: how long something takes. */
#ifndef AMP_BASE_CLOCK_H
#define AMP_BASE_CLOCK_H

/* Seconds since some moment: differences count. */
double amp_seconds(void);

#endif
