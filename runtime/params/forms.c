/* forms.c: params that sessions of several models share: amp_params_form.
 *
 *                            model A, whose params they are       model B, of another length or policy
 *   fc1.weight               its memory       <------------------ the same
 *   fc1.weight/f16.panels    its memory                           its own, or the same if B derives what A does
 *
 * Whoever steps writes the masters and its own copies; other forms' copies are made again before they are read.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/files/state_file.h"
#include "runtime/params/params.h"

/* ---- which models ------------------------------------------------------------------------------------------------ */

amp_status amp_params_check_model(const amp_params *p, const amp_model *model, amp_error *err) {
    amp_state_list theirs, own;
    if (p->model == model || p->model == model->owner) return AMP_OK;
    AMP_TRY(amp_state_list_make(&theirs, p->model, AMP_FILE_OF_PARAMS, &p->memory.allocator, err));
    amp_status status = amp_state_list_make(&own, model, AMP_FILE_OF_PARAMS, &p->memory.allocator, err);
    if (!status) status = amp_state_lists_check(&own, &theirs, "the params", err);
    amp_state_list_free(&own);
    amp_state_list_free(&theirs);
    return status;
}

static const amp_model *home_model(const amp_params *p) {
    return p->residency->memory ? p->residency->model : p->model;
}

static void **home_states(const amp_params *p) { return p->residency->memory ? p->residency->states : p->states; }

/* The state of |home| that has the memory of state |i|; -1: none has. */
static int32_t state_at_home(const amp_model *home, const amp_model *model, int32_t i) {
    const amp_model_state *s = &model->states[i];
    const int32_t there = amp_model_state_index(home, s->name);
    if (there < 0 || !amp_state_stored_alike(s, &home->states[there])) return -1;
    return s->role == home->states[there].role && amp_state_bytes(s) == amp_state_bytes(&home->states[there]) ? there
                                                                                                              : -1;
}

static int32_t count_shared(const amp_model *m) {
    int32_t count = 0;
    for (int32_t i = 0; i < m->state_count; i++) count += amp_state_lives_in_params(m, i, NULL);
    return count;
}

/* The name of a derived state says what it is of, its types and its layout. */
static bool derives_the_same(const amp_model *home, const amp_model *model) {
    for (int32_t i = 0; i < model->state_count; i++)
        if (amp_state_lives_in_params(model, i, NULL) && state_at_home(home, model, i) < 0) return false;
    return count_shared(home) == count_shared(model);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool is_derived(const amp_model *model, int32_t index, const void *ctx) {
    (void)ctx;
    return model->states[index].role == AMP_STATE_DERIVED;
}

static size_t list_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(void *); }

static void free_own(amp_params *p, amp_params_form *f) {
    amp_params_residency *r = p->residency;
    if (!r->memory) {
        if (f->own) amp_states_free(f->model, NULL, f->own, &p->memory.allocator);
        return;
    }
    for (int32_t i = 0; f->own && i < f->model->state_count; i++) {
        if (!f->own[i]) continue;
        r->memory->type->release(r->memory, f->own[i]);
        r->bytes -= amp_state_bytes(&f->model->states[i]);
    }
    amp_free(&p->memory.allocator, f->own, list_bytes(f->model));
}

static void free_form(amp_params *p, amp_params_form *f) {
    free_own(p, f);
    amp_free(&p->memory.allocator, f->states, list_bytes(f->model));
    amp_free(&p->memory.allocator, f, sizeof *f);
}

static amp_status allocate_on_device(amp_params *p, amp_params_form *f, amp_error *err) {
    amp_device_memory *memory = p->residency->memory;
    f->own = amp_alloc_zeroed(&p->memory.allocator, list_bytes(f->model));
    if (!f->own) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its weights", f->model->desc.name);
    for (int32_t i = 0; i < f->model->state_count; i++) {
        const size_t bytes = amp_state_bytes(&f->model->states[i]);
        if (!is_derived(f->model, i, NULL)) continue;
        AMP_TRY(memory->type->allocate(memory, bytes, &f->own[i], err));
        p->residency->bytes += bytes;
        if (f->model->states[i].layout == AMP_LAYOUT_ROWS) continue;
        AMP_TRY(memory->type->clear(memory, f->own[i], bytes, err)); /* kernels read the padding as zeros */
    }
    return AMP_OK;
}

static amp_status bind_state(amp_params *p, amp_params_form *f, int32_t i, amp_error *err) {
    const amp_model *home = home_model(p);
    const int32_t there = f->own && f->own[i] ? -1 : state_at_home(home, f->model, i);
    f->states[i] = there < 0 ? f->own ? f->own[i] : NULL : home_states(p)[there];
    if (f->states[i]) return AMP_OK;
    return amp_fail(
        err, AMP_UNSUPPORTED,
        "%s: it stores %s in another layout than %s, whose params these are; give it params of its own, and "
        "copy the values (amp_params_copy)",
        f->model->desc.name, f->model->states[i].name, p->model->desc.name);
}

static amp_status fill(amp_params *p, amp_params_form *f, amp_error *err) {
    const amp_allocator *a = &p->memory.allocator;
    f->states = amp_alloc_zeroed(a, list_bytes(f->model));
    if (!f->states) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its weights", f->model->desc.name);
    if (!derives_the_same(home_model(p), f->model))
        AMP_TRY(p->residency->memory ? allocate_on_device(p, f, err)
                                     : amp_states_alloc(f->model, NULL, is_derived, NULL, a, &f->own, err));
    for (int32_t i = 0; i < f->model->state_count; i++)
        if (amp_state_lives_in_params(f->model, i, NULL)) AMP_TRY(bind_state(p, f, i, err));
    return AMP_OK;
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

amp_status amp_params_take_form(amp_params *p, amp_params_user *user, amp_model *model, amp_error *err) {
    amp_params_form *f = p->residency->forms;
    user->form = NULL;
    if (model == home_model(p) || !p->states) return AMP_OK;
    while (f && f->model != model) f = f->next;
    if (!f) {
        f = amp_alloc_zeroed(&p->memory.allocator, sizeof *f);
        if (!f) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its weights", model->desc.name);
        f->model = model;
        atomic_init(&f->stale, true);
        const amp_status status = fill(p, f, err);
        if (status) {
            free_form(p, f);
            return status;
        }
        f->next = p->residency->forms;
        p->residency->forms = f;
    }
    f->users++;
    user->form = f;
    return AMP_OK;
}

void amp_params_drop_form(amp_params *p, amp_params_user *user) {
    amp_params_form *f = user->form, **at = &p->residency->forms;
    if (!f || --f->users) return;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    free_form(p, f);
}

void **amp_params_states(const amp_params *p, const amp_params_user *user) {
    return user->form ? user->form->states : home_states(p);
}

/* ---- what is derived again --------------------------------------------------------------------------------------- */

atomic_bool *amp_params_stale(amp_params *p, const amp_params_user *user) {
    return user->form && user->form->own ? &user->form->stale : &p->stale;
}

void amp_params_make_stale(amp_params *p) {
    atomic_store(&p->stale, true);
    for (amp_params_form *f = p->residency->forms; f; f = f->next) atomic_store(&f->stale, true);
}

void amp_params_written_by(amp_params *p, const amp_params_user *user) {
    const atomic_bool *own = amp_params_stale(p, user);
    if (!p->residency->forms) return;
    if (own != &p->stale) atomic_store(&p->stale, true);
    for (amp_params_form *f = p->residency->forms; f; f = f->next)
        if (own != &f->stale) atomic_store(&f->stale, true);
}
