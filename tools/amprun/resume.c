/* resume.c: see training.h. */
#include "tools/amprun/training.h"

#include <string.h>

#include "base/file_reader.h"
#include "runtime/files/safetensors.h"

/* A checkpoint goes on under other sums: the user may want to compare them, or may have taken the wrong model. */
static int tell_other_sums(const Run *r, const char *path) {
    amp_error err = {0};
    amp_safetensors *file;
    if (!amp_file_is_regular(path)) return 0; /* a pipe has been read */
    if (amp_safetensors_open_header(path, AMP_FILE_REGULAR, NULL, &file, &err)) return report(&err);
    const char *of_file = amp_safetensors_metadata(file, "amp.sums"), *sums = r->info.sums;
    if (of_file && strcmp(of_file, sums))
        report_text("%s: was trained with the sums %s, and goes on with those of the model, %s (ampc --sums)", path,
                    of_file, sums);
    amp_safetensors_close(file);
    return 0;
}

int resume_from(const Run *r, const char *path) {
    amp_error err = {0};
    if (amp_checkpoint_load(r->session, path, NULL, 0, &err)) return report(&err);
    return tell_other_sums(r, path);
}
