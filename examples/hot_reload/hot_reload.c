/* hot_reload.c: a program that serves a model and takes over each edit of it, without a pause: the model is compiled in
 * the process, to the path that it always had, and loaded while the version before it serves.
 *
 *     hot_reload scores.amp [EDITS]
 *
 * Compiles whenever the file changes, until standard input ends.  With EDITS it edits a copy of the file itself, so
 * often, and checks that the version that was written last answers, and how much is left of those before.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amp/amp.h"
#include "amp/compile.h"

enum { INPUTS = 4, OUTPUTS = 3, MOST_WEIGHTS = 4096 };

static int fail(const char *message) {
    fprintf(stderr, "hot_reload: %s\n", message);
    return 1;
}

/* ---- what serves ------------------------------------------------------------------------------------------------- */

/* The session that answers.  Whoever uses it retains it first, so that a swap never waits for an answer, and an answer
 * never for a compilation. */
static struct {
    pthread_mutex_t lock;
    amp_session *session;
    amp_params *params;
    int stop;
    float version; /* of the last answer */
    long answers, failures;
} serving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static amp_session *current_session(void) {
    pthread_mutex_lock(&serving.lock);
    amp_session *session = serving.stop ? NULL : serving.session;
    amp_session_retain(session);
    pthread_mutex_unlock(&serving.lock);
    return session;
}

static void swap(amp_session *session, amp_params *params) {
    pthread_mutex_lock(&serving.lock);
    amp_session *old_session = serving.session;
    amp_params *old_params = serving.params;
    serving.session = session;
    serving.params = params;
    pthread_mutex_unlock(&serving.lock);
    amp_session_release(old_session); /* it lives on until its last answer is given */
    amp_params_release(old_params);
}

/* A request each millisecond.  An answer of a version before the one that has answered is a failure. */
static void *serve(void *unused) {
    const float x[INPUTS] = {0.5f, -1, 2, 1};
    const void *inputs[] = {x};
    amp_session *session;
    (void)unused;
    while ((session = current_session())) {
        float y[OUTPUTS], version = 0;
        void *outputs[] = {y, &version};
        int failed = amp_infer(session, inputs, (amp_sizes){.n = 1}, outputs, NULL) != AMP_OK;
        amp_session_release(session);
        pthread_mutex_lock(&serving.lock);
        serving.failures += failed || version < serving.version;
        serving.version = version;
        serving.answers++;
        pthread_mutex_unlock(&serving.lock);
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* ---- reloading --------------------------------------------------------------------------------------------------- */

static void print_diagnostic(void *user, const char *text, int32_t is_error) {
    (void)user, (void)is_error;
    fputs(text, stderr);
}

static int compile(const char *source, const char *output) {
    amp_error err;
    amp_compile_result *result = NULL;
    amp_compile_options options = {.struct_size = sizeof options,
                                   .name = source,
                                   .output = output,
                                   .target = "cpu",
                                   .isa = "portable", /* one instruction set compiles fastest */
                                   .diagnostic = print_diagnostic};
    int failed = amp_compile(&options, &result, &err) != AMP_OK;
    if (failed && err.code != AMP_BAD_SOURCE) fail(err.message);
    amp_compile_result_release(result);
    return failed;
}

/* Parameters that both versions have, by name and size, keep their values; the others are initialised. */
static void carry_over(const amp_model *model, amp_params *to, const amp_params *from) {
    static float values[MOST_WEIGHTS];
    amp_tensor_info info;
    for (int i = 0; !amp_model_param_at(model, i, &info, NULL); i++) {
        size_t count = 1;
        for (int d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
        if (count <= MOST_WEIGHTS && !amp_params_get(from, info.name, values, count, NULL) &&
            amp_params_set(to, info.name, values, count, NULL))
            fail(info.name);
    }
}

/* What is at |path| takes over.  On failure the version before goes on. */
static int load(const char *path) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = 1, .threads = 1, .program = "infer"};
    int failed = amp_model_load(path, NULL, &model, &err) || amp_params_create(model, NULL, &params, &err) ||
                 amp_session_create(model, params, &options, &session, &err);
    if (failed) {
        amp_params_release(params);
        fail(err.message);
    } else {
        if (serving.params) carry_over(model, params, serving.params);
        swap(session, params);
    }
    amp_model_release(model); /* the session keeps it */
    return failed;
}

static int watch(const char *source, const char *output) {
    struct timespec seen = {0};
    struct pollfd input = {.fd = 0, .events = POLLIN};
    char ignored[256];
    for (;;) {
        struct stat now;
        if (!stat(source, &now) && memcmp(&now.st_mtim, &seen, sizeof seen)) {
            seen = now.st_mtim;
            if (!compile(source, output) && !load(output)) printf("%s serves\n", source), fflush(stdout);
        }
        if (poll(&input, 1, 100) > 0 && read(0, ignored, sizeof ignored) <= 0) return 0;
    }
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

typedef struct Held {
    long descriptors, mappings, kilobytes;
} Held;

static Held held(void) {
    Held now = {0, 0, 0};
    char line[4096];
    long pages = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) now.descriptors++;
    if (folder) closedir(folder);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) now.mappings++;
    if (maps) fclose(maps);
    FILE *memory = fopen("/proc/self/statm", "r");
    if (memory && fscanf(memory, "%*d %ld", &pages) == 1) now.kilobytes = pages * (sysconf(_SC_PAGESIZE) / 1024);
    if (memory) fclose(memory);
    return now;
}

/* A copy of the file with HIDDEN = |hidden| and VERSION = |version|. */
static int edit(const char *source, const char *copy, int hidden, int version) {
    char line[1000];
    FILE *in = fopen(source, "r"), *out = in ? fopen(copy, "w") : NULL;
    while (out && fgets(line, sizeof line, in)) {
        if (!strncmp(line, "const HIDDEN", 12)) fprintf(out, "const HIDDEN = %d\n", hidden);
        else if (!strncmp(line, "const VERSION", 13)) fprintf(out, "const VERSION = %d.0\n", version);
        else fputs(line, out);
    }
    if (in) fclose(in);
    return !out || fclose(out);
}

/* Whether |version| answers within ten seconds. */
static int answers_come_from(int version) {
    for (int i = 0; i < 10000; i++) {
        pthread_mutex_lock(&serving.lock);
        int is_it = serving.version == (float)version;
        pthread_mutex_unlock(&serving.lock);
        if (is_it) return 1;
        poll(NULL, 0, 1);
    }
    return 0;
}

static int check(const char *source, const char *output, int edits) {
    char copy[128];
    Held before = {0, 0, 0}, after;
    snprintf(copy, sizeof copy, "%s.edited.amp", output);
    for (int i = 0; i < edits + 2; i++) {
        if (edit(source, copy, 8 + i % 50 * 3, i + 2)) return fail(copy);
        if (compile(copy, output) || load(output)) return 1;
        if (!answers_come_from(i + 2)) return fail("an old version answers");
        if (i == 1) before = held(); /* the first ones fill caches of the C library */
    }
    after = held();
    unlink(copy);
    printf("%d edits, each served; %ld answers, %ld failed\n", edits, serving.answers, serving.failures);
    printf("descriptors %ld -> %ld, mappings %ld -> %ld, memory %ld -> %ld kB\n", before.descriptors, after.descriptors,
           before.mappings, after.mappings, before.kilobytes, after.kilobytes);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t server;
    char folder[] = "./hot_reload_XXXXXX", output[64]; /* others may not write to it */
    if (argc != 2 && argc != 3) return fprintf(stderr, "usage: hot_reload MODEL.amp [EDITS]\n"), 2;
    if (!mkdtemp(folder)) return fail(folder);
    snprintf(output, sizeof output, "%s/model.so", folder);
    int failed = compile(argv[1], output) || load(output) || pthread_create(&server, NULL, serve, NULL);
    if (failed) return unlink(output), rmdir(folder), 1;
    failed = argc == 3 ? check(argv[1], output, atoi(argv[2])) : watch(argv[1], output);
    pthread_mutex_lock(&serving.lock);
    serving.stop = 1;
    pthread_mutex_unlock(&serving.lock);
    pthread_join(server, NULL);
    swap(NULL, NULL);
    unlink(output);
    rmdir(folder);
    return failed;
}
