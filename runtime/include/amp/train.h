/* amp/train.h: what a training loop sets and reads besides: figures and reports of steps, evaluation in several
 * batches, learning rates, the loss scale, the norm of gradients, moments.
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_TRAIN_H
#define AMP_TRAIN_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* "NAME" of a loss that is reported apart: `loss NAME = ...`. */
AMP_API const char *amp_model_loss_name(const amp_model *model, int32_t index);
/* Metrics of the last step or, where a step has several micro-batches and is not complete, of its last one: one double
 * per metric, in the order of amp_model_metric_name. */
AMP_API AMP_MUST_USE amp_status amp_session_get_metrics(const amp_session *session, double *metrics, amp_error *err);
/* Named losses of the last amp_step (as metrics), amp_eval or amp_eval_end, whichever came last, in the order of
 * amp_model_loss_name; zeros before the first. */
AMP_API AMP_MUST_USE amp_status amp_session_get_losses(const amp_session *session, double *losses, amp_error *err);

/* Reports of the calls of amp_step that had |report| NULL and did what they were asked to, one a call, in their order,
 * each once; so that an application shows one step while the device computes the next:
 *
 *     amp_step(session, inputs, sizes, NULL, &err);
 *     while (!amp_session_next_report(session, 0, &report, losses, metrics, &there, &err) && there) show(&report);
 *
 * |*there|: 1: the report was given, with the named losses (or NULL) and the metrics (or NULL) that
 * amp_session_get_losses and amp_session_get_metrics would have given after that call; all have the bits that waiting
 * for each step gives.  0: no call has a report left; or, unless |wait|, the device is not done with the oldest, and
 * nothing was waited for.  |wait| waits for that one, not for what was started after it.
 * The last AMP_KEPT_REPORTS calls are kept, given ones not counted; of more the oldest are dropped, so who asks once
 * for each call before it makes the next misses none: with |wait| once AMP_KEPT_REPORTS are left.  Evaluating, saving,
 * loading and setting leave them as they are.  On "cpu" and "null" a report is there when amp_step returns.
 * Metrics of averages (`metric ppl = exp(loss)`) are computed when |metrics| asks, by a run of their own after what
 * was started before it: on "cuda" such a report is there a step later.
 * AMP_SCALE_AT_FLOOR: the report was given and has at_floor = 1; amp_step returns it too, once it is known.  An error
 * of the device: no report was given; those that had arrived before it are. */
enum { AMP_KEPT_REPORTS = 8 };
AMP_API AMP_MUST_USE amp_status amp_session_next_report(amp_session *session, int32_t wait, amp_step_report *report,
                                                        double *losses, double *metrics, int32_t *there,
                                                        amp_error *err);

/* The states that kept their value in some step of the session that is known of, because the new one was not finite,
 * and not for too few samples; the log says so of each once.  |*iteration| (or NULL): the first such.  NULL past the
 * end. */
AMP_API const char *amp_session_kept_state_name(const amp_session *session, int32_t index, int64_t *iteration);

/* ---- evaluation in several batches ------------------------------------------------------------------------------- */

/* Loss and metrics of samples that come in several batches, of any sizes, as if all were one batch.  No average of the
 * batches' figures equals them: a loss may count labels, a metric may be a sum, or a function of such
 * (docs/language.md).
 *
 *     amp_eval_begin(session, &err);
 *     for (each batch) amp_eval(session, inputs, sizes, NULL, NULL, &err);
 *     amp_eval_end(session, &loss, metrics, &err);       named losses: amp_session_get_losses
 *
 * amp_eval_begin forgets the batches so far; without it the first batch is the first since the session was made.
 * amp_eval_end changes nothing: more batches may follow.  AMP_WRONG_STATE: there was no batch.
 * An evaluation of several sessions, threads or ranks: amp_eval_get_sums writes amp_eval_sums_count doubles, which may
 * be added up element by element, and amp_eval_add adds them to what a session of the same model has. */
AMP_API AMP_MUST_USE amp_status amp_eval_begin(amp_session *session, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_eval_end(amp_session *session, double *loss, double *metrics, amp_error *err);
AMP_API int32_t amp_eval_sums_count(const amp_session *session);
AMP_API AMP_MUST_USE amp_status amp_eval_get_sums(const amp_session *session, double *sums, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_eval_add(amp_session *session, const double *sums, amp_error *err);

/* ---- rates and groups -------------------------------------------------------------------------------------------- */

/* How a parameter is trained, by what the model's text says; |index| as in amp_model_param_at. */
typedef struct amp_param_training {
    int32_t trained;       /* 1: a train block updates it; 0: none is for it, a group freezes it, or it is a buffer */
    int32_t block;         /* the train block that is for it, numbered from 0; -1: none */
    const char *only;      /* the parameters of that block: of `train m for "gen.*"`, "gen.*"; NULL: all */
    const char *optimizer; /* of that block, or of the group that gives another: "adamw(lr = 0.001, ...)"; NULL: none */
    /* The groups that decide, as amp_model_group_at numbers them; -1: none, so that the optimizer's rate and decay
     * hold. */
    int32_t lr_scale_group, weight_decay_group, frozen_group, optimizer_group;
} amp_param_training;
AMP_API AMP_MUST_USE amp_status amp_model_param_training_at(const amp_model *model, int32_t index,
                                                            amp_param_training *out, amp_error *err);
/* A `group` line.  They are numbered from 0 over all train blocks, in the order of the text, as
 * amp_session_set_lr_scale does.  Index out of range (and any, of a model that does not say): AMP_INVALID_ARGUMENT. */
typedef struct amp_group_info {
    const char *pattern; /* "*.bias" */
    int32_t block;       /* its train block */
    int32_t sets_lr_scale, sets_weight_decay, frozen;
    double lr_scale, weight_decay; /* 1 and 0 where it does not set them */
    int32_t line;                  /* of the model's text; 0: not known */
    int32_t sets_optimizer;
} amp_group_info;
AMP_API AMP_MUST_USE amp_status amp_model_group_at(const amp_model *model, int32_t index, amp_group_info *out,
                                                   amp_error *err);

/* The learning rate of a train block (numbered from 0, in the order of the text), for the next amp_step and all after
 * it; groups multiply it by their factors.  An optimizer that a group gives keeps its own rate, times the factor.
 * At least 0, finite as an f32; AMP_LR_OF_MODEL: back to what the text says.
 * Where the text has a schedule, a rate that was set replaces it, and the schedule goes on counting: after
 * AMP_LR_OF_MODEL the rate is what it would have been.  amp_session_get_lr then gives the rate of the last step (0
 * before the session's first); else it gives the next step's rate.
 * Checkpoints hold a rate that is not the text's, so that training that goes on is the same; where they hold none, the
 * rate becomes the text's.  A rate that is never set changes no bit. */
#define AMP_LR_OF_MODEL (-1.0)
AMP_API AMP_MUST_USE amp_status amp_session_get_lr(const amp_session *session, int32_t block, double *lr,
                                                   amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set_lr(amp_session *session, int32_t block, double lr, amp_error *err);
/* The factor of a group: of `group "*.bias": lr_scale = 0.1`, 0.1 until it is set.  Groups are numbered from 0 over all
 * train blocks, in the order of the text; those without lr_scale count, but have no factor (AMP_INVALID_ARGUMENT; so
 * has one whose parameters are all frozen or taken by later groups).  Values and checkpoints as above. */
AMP_API AMP_MUST_USE amp_status amp_session_get_lr_scale(const amp_session *session, int32_t group, double *scale,
                                                         amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set_lr_scale(amp_session *session, int32_t group, double scale,
                                                         amp_error *err);

/* ---- the loss scale ---------------------------------------------------------------------------------------------- */

/* The loss scaler and the counters. */
typedef struct amp_scaler_state {
    float scale;            /* 2^-126 to 2^126: elsewhere 1 / scale is infinite or loses bits */
    int32_t growth_tracker; /* 0 to 2^30, as floor_hits */
    int32_t floor_hits;
    int32_t reserved;
    int64_t step, iteration; /* 0 to 2^53 */
} amp_scaler_state;
AMP_API AMP_MUST_USE amp_status amp_session_get_scaler(const amp_session *session, amp_scaler_state *out,
                                                       amp_error *err);
/* Micro-batches that were run of a step that is not complete are dropped. */
AMP_API AMP_MUST_USE amp_status amp_session_set_scaler(amp_session *session, const amp_scaler_state *state,
                                                       amp_error *err);

/* What the reports of steps say together; docs/seeing-precision.md, "The loss scale". */
typedef enum amp_scale_health {
    AMP_SCALE_UNSCALED = 0, /* nothing to watch: bf16, tf32, fp32, or loss_scale = none */
    AMP_SCALE_SETTLING = 1, /* ordinary: it has not grown yet, nor seen as many steps as it takes to grow */
    AMP_SCALE_STEADY = 2,   /* ordinary: it grew, or there was no overflow since; or it is static */
    AMP_SCALE_CEILING = 3,  /* ordinary: overflows took back what it grew, and it will grow again */
    AMP_SCALE_FALLING = 4,  /* more overflows than take back two growths, and no growth between them */
    AMP_SCALE_STALLED = 5   /* at its floor, or too many steps in a row were skipped for it to be the cause */
} amp_scale_health;

/* A plain value, the application's: copy it, keep it in a checkpoint.  Only read it. */
typedef struct amp_scale_monitor {
    amp_scale_health health;
    int32_t dynamic;          /* 0: static, or unscaled */
    double growth, backoff;   /* factors, of the model's loss_scale */
    int64_t interval;         /* steps without an overflow after which it grows */
    int32_t falling_after;    /* overflows without a growth between; from growth and backoff */
    int32_t stalled_after;    /* steps skipped in a row */
    float scale;              /* of the last step */
    float lowest, highest;    /* of all steps */
    int32_t skipped_in_a_row; /* up to the last step */
    int32_t falls;            /* overflows since it last grew, or settled */
    int64_t steps, skipped;   /* that were reported; of those, skipped ones */
    int64_t growths;
    int64_t since_overflow;    /* steps after the last one that was skipped; -1: there was none */
    int64_t between_overflows; /* from the last but one to the last; -1: there were no two */
} amp_scale_monitor;

/* Zeros, and what the model's loss_scale says: at the start of a training, or where one goes on. */
AMP_API void amp_scale_monitor_start(amp_scale_monitor *monitor, const amp_model *model);
/* Takes in the report of an amp_step; micro-batches that end no step count for nothing.  True: |health| has changed.
 * It computes with the report alone and costs the device nothing. */
AMP_API int32_t amp_scale_monitor_step(amp_scale_monitor *monitor, const amp_step_report *report);
AMP_API const char *amp_scale_health_name(amp_scale_health health); /* "settling"; "" for UNSCALED */

/* ---- gradients and moments --------------------------------------------------------------------------------------- */

/* The norm of all gradients of the last complete step, as torch.nn.utils.clip_grad_norm_ reports it: unscaled, before
 * clipping; infinite or NaN where they are.
 * With amp_inspect_options.grad_norm or keep_values: of the gradients that the session keeps, in double.  Each call
 * reads all of them, by one thread, and on the device "cuda" copies them to the host; a step writes them where it would
 * not (memory: an f32 a trained number), and the memory of training is not shared with evaluation's.
 * Else of a model that computes it in each step (clip_norm; `clip_norm = inf` clips nothing), in f32 by the device, at
 * no cost for the call: a report's grad_norm.
 * Sessions and models that ask for neither pay nothing: AMP_WRONG_STATE, as before the first step. */
AMP_API AMP_MUST_USE amp_status amp_session_get_grad_norm(const amp_session *session, double *norm, amp_error *err);

/* State of the optimizer by "fc1.weight/m", ...: as amp_params_get and _set.  Of ranks with shares (amp/comm.h) all
 * call these, in the same order. */
AMP_API AMP_MUST_USE amp_status amp_session_get_moment(const amp_session *session, const char *name, float *data,
                                                       size_t count, amp_error *err);
AMP_API AMP_MUST_USE amp_status amp_session_set_moment(amp_session *session, const char *name, const float *data,
                                                       size_t count, amp_error *err);
/* The averages that `ema = ...` of a train block keeps, as params, whose sessions evaluate and infer with them, and
 * which are saved and published as any:
 *
 *     amp_params_snapshot(params, &averages, &err);                           once; a session with program = "infer"
 *     amp_session_get_averages(session, averages, &err);                      after steps
 *
 * Every parameter that has an average becomes it, rounded to the type that it is stored in; all others, and buffers,
 * become what the session's params have; before the first step of a block, its parameters too.  |to| is as in
 * amp_params_copy; it may be the session's params, which go on from the averages.  Of ranks with shares all call this,
 * in the same order.
 * AMP_WRONG_STATE: the model keeps none.  After another error |to| may have some of them. */
AMP_API AMP_MUST_USE amp_status amp_session_get_averages(const amp_session *session, amp_params *to, amp_error *err);
/* Whether each rank has a share of the moments alone (amp/comm.h); 0 also for one rank. */
AMP_API int32_t amp_session_has_shares(const amp_session *session);

#ifdef __cplusplus
}
#endif
#endif
