/* streams.h: work, the queues and events that order it, and the graphs that capture makes of it. */
#ifndef FAKECUDA_DRIVER_STREAMS_H
#define FAKECUDA_DRIVER_STREAMS_H

#include "fakecuda/driver/driver.h"
#include "fakecuda/driver/fakecuda.h"

/* ---- work.c: one piece of work of a stream or of a graph --------------------------------------------------------- */

typedef struct Marker { /* a moment in a stream: an event's record, the end of a graph's launch */
    int references;
    bool done;
    Stream *stream; /* valid until done */
    uint64_t sequence;
    uint64_t nanoseconds; /* of the context's clock when it came */
    bool inside;          /* a graph, which has work that this does not wait for */
} Marker;
Marker *marker_new(void);
Marker *marker_hold(Marker *m); /* NULL stays NULL */
void marker_drop(Marker *m);

typedef enum WorkKind {
    WORK_NOTHING,
    WORK_COPY_IN,
    WORK_COPY_OUT,
    WORK_COPY,
    WORK_FILL,
    WORK_KERNEL,
    WORK_GRAPH,
    WORK_RECORD, /* of an event, in a graph */
    WORK_OUTSIDE
} WorkKind;

typedef struct Work {
    WorkKind kind;
    CuPointer to, from;
    void *host_to;
    const void *host_from;
    void *staged;          /* copy of a pageable source; owned */
    uint64_t bytes, count; /* bytes of a kernel: of |params| */
    uint64_t pitch, lines; /* WORK_FILL: |count| values in each line; bytes from one to the next */
    uint32_t value;
    int width;
    bool pinned; /* the host's side of a copy out: checked again when it runs */
    CuFunction function;
    uint32_t grid[3], block[3], dynamic_shared;
    bool programmatic;  /* begins beside the kernel before it, if there is one */
    ExecBeside *beside; /* while it runs; NULL: all before it has ended */
    void *params;       /* owned */
    uint64_t seed;
    Graph *graph;             /* a reference */
    struct GraphRun *running; /* of it; owned */
    CuEvent event;
    FakecudaOutside outside;
    const char *outside_name;
} Work;
/* False: work from outside that is not done yet. */
bool work_run(Context *c, Work *w); /* a failure goes to context_fail */
void work_free(Work *w);            /* what it owns */
Work work_copy(const Work *w);      /* of a graph's node: nothing staged */

/* ---- overlap.c: launches that may still run beside one ----------------------------------------------------------- */

void overlap_wait(ExecBeside *next, const ExecBeside *last);   /* |next| begins when |last| (and others) has ended */
void overlap_depend(ExecBeside *next, const ExecBeside *last); /* it begins beside |last|, a kernel */

/* ---- work.c: streams' work and when it runs ---------------------------------------------------------------------- */

typedef struct Op {
    struct Op *next;
    uint64_t sequence;
    Marker *after, *done;
    Work work;
} Op;
struct Stream {
    CuStream handle; /* NULL: the legacy stream, or destroyed and running out */
    Context *context;
    Stream *next; /* in the context */
    Op *head, *tail;
    bool legacy, blocking;
    bool after_kernel;       /* the last that ran was one */
    ExecBeside beside;       /* of that */
    bool waits_inside;       /* its last wait was for a record inside a graph */
    struct Capture *capture; /* in progress; NULL */
    struct Frontier {        /* nodes of the capture that the next one depends on */
        int *nodes;
        int count;
    } frontier;
};
/* Takes over what |work| owns and the references |after| and |done|. */
uint64_t queue_add(Stream *s, const Work *work, Marker *after, Marker *done);
void queue_run_to(Stream *s, uint64_t sequence); /* all up to there, and what that waits for, in other streams too */
void queue_run_until(Marker *m);                 /* it is done: of a graph no more than that takes */
void queue_run_all(Context *c);
void queue_progress(Context *c); /* as much as chance wants */
void queue_drop_all(Context *c); /* without running it */
int queue_length(const Context *c);

/* ---- streams.c: streams ------------------------------------------------------------------------------------------ */

CuResult stream_find(Context *c, CuStream handle, Stream **out);
/* Into the stream's capture or queue; takes over what |work| owns, also where it fails. */
CuResult stream_submit(Stream *s, const Work *work);
CuResult stream_create(Context *c, CuStream *out, unsigned int flags);
CuResult stream_destroy(Context *c, CuStream handle);
CuResult stream_sync(Context *c, CuStream handle);
CuResult stream_query(Context *c, CuStream handle);
CuResult stream_wait(Context *c, CuStream handle, CuEvent event, unsigned int flags);
CuResult stream_context(CuStream handle, CuContext *out);

/* ---- streams.c: events ------------------------------------------------------------------------------------------- */

typedef struct Event {
    CuEvent handle;
    Context *context;
    bool timing;
    Marker *marker;   /* of the last record; NULL: none, or in a capture */
    uint64_t capture; /* id of the capture in which it was recorded last; 0: none */
    struct Frontier frontier;
} Event;
CuResult event_create(Context *c, CuEvent *out, unsigned int flags);
CuResult event_destroy(CuEvent handle);
CuResult event_record(Context *c, CuEvent event, CuStream stream);
CuResult event_record_flags(Context *c, CuEvent event, CuStream stream, unsigned int flags);
CuResult event_record_launch(CuEvent event, Marker *m); /* of a node of a graph that is launched */
CuResult event_sync(CuEvent handle);
CuResult event_query(CuEvent handle);
CuResult event_elapsed(float *milliseconds, CuEvent start, CuEvent end);
void event_free(Event *e);

/* ---- graphs.c: capture ------------------------------------------------------------------------------------------- */

typedef struct Capture {
    struct Capture *next;
    uint64_t id;
    Stream *origin;
    Graph *graph;
    int mode;
    bool invalid;
    pthread_t thread;
} Capture;
CuResult capture_begin(Context *c, CuStream stream, int mode);
CuResult capture_end(Context *c, CuStream stream, CuGraph *out, CuResult injected);
CuResult capture_add(Stream *s, const Work *work); /* takes over what it owns */
/* What the legacy stream may not do while a blocking stream is in capture; that capture is lost. */
CuResult capture_check_legacy(Stream *s);
/* What a call must not do beside a capture; 0: there is none in the way.  The captures in the way are lost. */
CuResult capture_check_unsafe(void);
CuResult capture_refuse(Stream *s); /* a synchronisation of a stream in capture: loses it */
Capture *capture_by_id(Context *c, uint64_t id);
CuResult capture_record(Stream *s, Event *e);
CuResult capture_wait(Stream *s, Event *e);
void capture_leave(Stream *s); /* the stream goes: its capture is lost */
void capture_free_all(Context *c);

/* ---- graphs.c ---------------------------------------------------------------------------------------------------- */

typedef struct GraphNode {
    CuGraphNode handle;
    Work work;
    struct Frontier after;
} GraphNode;
struct Graph {
    int references; /* the handle, executable graphs, launches in queues */
    CuGraph handle;
    Context *context;
    GraphNode *nodes;
    int count, room;
};
typedef struct GraphRun { /* a launch */
    bool begun;
    bool *done;         /* by node */
    int first;          /* that is not */
    Marker **records;   /* by node; NULL: it is none */
    ExecBeside *beside; /* by node */
} GraphRun;
typedef struct GraphExec {
    CuGraphExec handle;
    Graph *graph;
    Marker *last; /* end of the last launch */
} GraphExec;
Graph *graph_new(Context *c);
Graph *graph_hold(Graph *g);
void graph_drop(Graph *g);
void graph_publish(Graph *g); /* gives it its handle, and its nodes theirs */
void graph_add(Graph *g, const Work *work, const struct Frontier *after);
/* Runs |most| nodes at most of a launch.  True: all have run, or the context is lost.  |*waits| is set where none could
 * run, as they wait for others. */
bool graph_run(Context *c, Work *launch, int most, bool *waits);
bool graph_records(const Work *launch); /* events */
void graph_run_free(Graph *g, GraphRun *run);
CuResult graph_nodes(CuGraph graph, CuGraphNode *nodes, size_t *count);
CuResult graph_instantiate(Context *c, CuGraphExec *out, CuGraph graph, unsigned long long flags);
CuResult graph_launch(Context *c, CuGraphExec exec, CuStream stream);
CuResult graph_exec_destroy(CuGraphExec exec);
CuResult graph_destroy(CuGraph graph);
void graph_forget(Graph *g); /* ends its handles */
void graph_exec_free(GraphExec *x);

#endif
