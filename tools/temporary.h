/* temporary.h: where the tools put files that are gone when they end. */
#ifndef AMP_TOOLS_TEMPORARY_H
#define AMP_TOOLS_TEMPORARY_H

#ifdef __cplusplus
extern "C" {
#endif

/* TMPDIR, where it is set and not empty; else /tmp.  Not asked whether it is there. */
const char *temporary_folder(void);

#ifdef __cplusplus
}
#endif
#endif
