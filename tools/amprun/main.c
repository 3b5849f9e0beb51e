/* main.c: the command line of amprun: which command runs. */
#include <stdio.h>
#include <string.h>

#include "tools/amprun/amprun.h"
#include "tools/amprun/profile/profile.h"
#include "tools/amprun/train/ranks.h"
#include "tools/options.h"
#include "tools/standard_streams.h"

/* In the order of the table of commands. */
static int (*const commands[])(const Args *a) = {
    command_info,   command_train,  command_eval,    command_infer, command_step,
    command_schema, command_doctor, command_suggest, command_watch, command_tune,
};

/* With --verbose, how fast products are here; a session that cannot be made says so itself. */
static void say_rates(const Args *a) {
    amp_cpu_rates rates;
    char source[PEAKS_SOURCE];
    amp_error err = {0};
    if (!strcmp(run_target(a), "cpu") && !peaks_of_products(a, NULL, &rates, source, &err))
        report_text("cpu: %s", source);
}

int main(int argc, char **argv) {
    Args a = {.scale = -1,
              .cpu.struct_size = sizeof a.cpu,
              .cuda.struct_size = sizeof a.cuda,
              .inspect.struct_size = sizeof a.inspect};
    OptionsRead read = {.tool = &amprun_tool, .args = &a};
    standard_streams_open();
    const int done = options_read(&read, argc, argv);
    if (done == 1) return standard_streams_flush("amprun");
    if (done) report_text("%s", read.message);
    if (done) return ranks_refuse(&a, done); /* they have to hear of what is wrong */
    a.model = read.argv[optind];
    if (a.verbose) say_rates(&a);
    const int failed = commands[read.command](&a);
    return standard_streams_flush("amprun") ? 1 : failed; /* what was printed may not have arrived */
}
