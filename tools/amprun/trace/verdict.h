/* verdict.h: what is known of a step that was not finite, and how it is told. */
#ifndef AMP_TOOLS_AMPRUN_TRACE_VERDICT_H
#define AMP_TOOLS_AMPRUN_TRACE_VERDICT_H

#include <stdio.h>

#include "tools/amprun/trace/twin.h"

enum { VERDICT_LINES = 12 };

typedef enum Answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES } Answer;

typedef struct Verdict {
    int64_t iteration;
    double loss; /* of the step */
    float scale;
    amp_trace_finding finding;
    bool is_state;    /* a state kept its value, as the new one was not finite */
    bool is_expected; /* gradients overflowed at this loss scale alone: the step is skipped, and the scale goes down */
    bool is_repeated; /* the fault and the op are those of the verdict before: no more was asked */
    bool is_last;     /* no more is told of after it */
    int64_t sample;   /* DATA: the first sample of the batch that is not finite; -1: not known */
    int64_t updates;  /* of the parameters, before the step */
    int micro;        /* the micro-batch of the step in which it was found */
    char place[64];   /* of that sample in the data: "sample 77"; empty: not known */
    Answer fp32;      /* whether the step is finite in f32 */
    double fp32_loss;
    int line_count;                  /* lines of the precision block with which the step is finite; 0: none was found */
    const char *line[VERDICT_LINES]; /* paths of ops that they leave in f32 */
} Verdict;

/* For people, on several lines. */
void verdict_print(FILE *to, const Verdict *v);
/* What the user can do if no line of the precision block helps. */
const char *verdict_advice(const Verdict *v);
/* A line of JSON without its newline. */
void verdict_json(FILE *to, const Verdict *v);

#endif
