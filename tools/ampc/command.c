/* command.c: see command.h. */
#include "tools/ampc/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/standard_streams.h"

int command_fail(const char *format, const char *what) {
    fprintf(stderr, "ampc: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
    return 2;
}

int command_report(amp_status status, const amp_error *err) {
    if (status != AMP_BAD_SOURCE) { /* the diagnostics have said it */
        fputs("ampc: ", stderr);
        print_plain(stderr, err->message, strlen(err->message));
        fputc('\n', stderr);
    }
    return status == AMP_INVALID_ARGUMENT ? 2 : 1;
}

int command_write_file(Command *c, const char *option, const char *path, OutputKind kind, const void *data,
                       size_t size) {
    amp_error err = {0};
    if (!strcmp(path, "-")) { /* reported at the end */
        standard_streams_note(fwrite(data, 1, size, stdout) != size);
        return 0;
    }
    int wrong = outputs_check_one(&c->files, option, path, kind);
    if (wrong) return wrong;
    if (!amp_file_replace(path, data, size, NULL, &err)) return 0;
    fprintf(stderr, "ampc: %s %s\n", option, err.message);
    return 1;
}

int command_tell(Command *c, const void *data, size_t size) {
    if (c->json) return command_write_file(c, "--json", c->json, OUTPUT_EXPLANATION, data, size);
    print_plain(stdout, data, size);
    return 0;
}

int command_take_model(Command *c, const char *what, const char *name, amp_compile_options *to) {
    amp_error err = {0};
    to->name = name;
    to->text = NULL;
    if (strcmp(name, "-") != 0) {
        outputs_input(&c->files, what, name);
        return 0;
    }
    if (c->input) return command_fail("%s -: a model is read from standard input already; give a file", what);
    if (amp_file_read("/dev/stdin", 0, NULL, &c->input, &c->input_size, &err))
        return fprintf(stderr, "ampc: %s\n", err.message), 1;
    to->name = "stdin";
    to->text = c->input;
    to->text_size = c->input_size;
    return 0;
}

void command_note_policy(Command *c, const char *option, const char *policy) {
    if (policy && !access(policy, F_OK)) outputs_input(&c->files, option, policy);
}

int command_find_gpu(const Command *c, const Gpu **out) {
    static const char usual[] = "H100";
    *out = gpu_named(c->gpu ? c->gpu : usual);
    if (*out) return 0;
    fprintf(stderr, "ampc: --gpu %s: that GPU is not known; known are ", c->gpu);
    for (int i = 0; gpu_at(i); i++) fprintf(stderr, "%s%s", i ? ", " : "", gpu_at(i)->name);
    fputc('\n', stderr);
    return 2;
}
