/* policy_files.h: the built-in policies and the list of op names, made from passes/precision/policies/ by embed.sh
 * when the library is built. */
#ifndef AMP_PASSES_PRECISION_POLICY_FILES_H
#define AMP_PASSES_PRECISION_POLICY_FILES_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PolicyFile {
    const char *name, *file_name; /* "torch-fp16", "torch-fp16.policy"; "torch-fp16@2.11", .. */
    const char *version;          /* "2.12"; "": it has none */
    const char *text;
} PolicyFile;

extern const PolicyFile policy_files[];
extern const int policy_file_count;

#ifdef __cplusplus
}
#endif

#endif
