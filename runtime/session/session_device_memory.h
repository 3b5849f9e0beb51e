/* session_device_memory.h: a session with device memory: where everything is, and moving states. */
#ifndef AMP_RUNTIME_SESSION_SESSION_DEVICE_MEMORY_H
#define AMP_RUNTIME_SESSION_SESSION_DEVICE_MEMORY_H

#include "runtime/session/session.h"

/* Places states, scalars and every buffer of the planned programs, and gives the session's states their first values.
 */
amp_status amp_session_make_device_memory(amp_session *session, uint64_t seed, bool separate, amp_error *err);

/* ---- session_states.c -------------------------------------------------------------------------------------------- */

/* Row-major f32 of a state that is no scalar, wherever it is. */
amp_status amp_session_get_state(const amp_session *session, int32_t state, float *to, amp_error *err);
amp_status amp_session_set_state(amp_session *session, int32_t state, const float *from, amp_error *err);

/* By state of the session's model, on the host: on the host's memory the states themselves, else copies, which |read|
 * fills. */
amp_status amp_session_host_states(const amp_session *session, bool read, void ***out, amp_error *err);
/* Copies back what |states| (of amp_session_host_states) have now. */
amp_status amp_session_take_states(amp_session *session, void *const *states, amp_error *err);
void amp_session_drop_host_states(const amp_session *session, void **states);

/* A buffer of the last run with |n|, row-major, as amp_readable_dtype. */
amp_status amp_session_read_buffer(const amp_session *session, const amp_bound_program *bound, int32_t buffer,
                                   int64_t n, void *to, amp_error *err);

#endif
