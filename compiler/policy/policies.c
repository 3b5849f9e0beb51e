/* policies.c: the calls of amp_policy_*. */
#include "base/error.h"
#include "compiler/compile_session.h"
#include "compiler/policy/policy_report.h"
#include "passes/passes.h"
#include "precision/policy.h"

typedef struct PolicyArguments {
    const char *policy, *other; /* |other|: of two, the second */
    int32_t json;
} PolicyArguments;

typedef amp_status (*PolicyCall)(Session *s, const void *arguments, amp_compile_result **out, amp_error *err);

static amp_status call(const char *name, PolicyArguments a, const amp_policy_options *options, PolicyCall run,
                       amp_compile_result **out, amp_error *err) {
    amp_policy_options o;
    if (out) *out = NULL;
    AMP_TRY(amp_options_read(&o, sizeof o, options, "amp_policy_options", err));
    const amp_compile_options compile = {.struct_size = sizeof compile,
                                         .allocator = o.allocator,
                                         .diagnostic = o.diagnostic,
                                         .dependency = o.dependency,
                                         .user = o.user};
    a.json = o.json;
    return session_call(name, &compile, run, &a, out, err);
}

static amp_status need_name(const char *name, amp_error *err) {
    return name ? AMP_OK : amp_fail(err, AMP_INVALID_ARGUMENT, "policy is NULL; give a built-in name or a file");
}

/* As a compilation under that policy reads it.  Messages without a place begin with the policy. */
static amp_status read_policy(Session *s, const char *name, const Policy **out, amp_error *err) {
    AMP_TRY(need_name(name, err));
    s->options.name = s->options.policy = name;
    const PassOptions options = {.policy = name, .find_policy = session_find_policy, .user = s};
    *out = policy_select(&(PassContext){ir_module_new(&s->arena, "policies"), &s->diags, &options, NULL});
    return *out ? AMP_OK : session_report(s, err);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

const char *amp_policy_name(int32_t index) {
    return index >= 0 && index < policy_file_count ? policy_files[index].name : NULL;
}

static amp_status list(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const PolicyArguments *a = arguments;
    Policies policies = {0};
    Text t;
    for (int i = 0; amp_policy_name(i); i++) {
        const Policy *p = NULL;
        AMP_TRY(read_policy(s, amp_policy_name(i), &p, err));
        vec_push(&s->arena, &policies, p);
    }
    text_init(&t, &s->arena);
    if (a->json) AMP_TRY(policies_as_json(&t, &s->arena, &policies, err));
    else policies_as_text(&t, &policies);
    return session_give_text(s, &t, out, err);
}

amp_status amp_policy_list(const amp_policy_options *options, amp_compile_result **out, amp_error *err) {
    return call("amp_policy_list", (PolicyArguments){0}, options, list, out, err);
}

static amp_status text_of(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const PolicyArguments *a = arguments;
    const Policy *none = NULL;
    AMP_TRY(need_name(a->policy, err));
    const Source *text = session_find_policy(s, a->policy);
    if (!text) return read_policy(s, a->policy, &none, err); /* which says what there is */
    return session_give(s, text->text, text->len, out, err);
}

amp_status amp_policy_text(const char *policy, const amp_policy_options *options, amp_compile_result **out,
                           amp_error *err) {
    return call("amp_policy_text", (PolicyArguments){policy, NULL, 0}, options, text_of, out, err);
}

static amp_status check(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const PolicyArguments *a = arguments;
    const Policy *p = NULL;
    Text t;
    AMP_TRY(read_policy(s, a->policy, &p, err));
    text_init(&t, &s->arena);
    if (a->json) AMP_TRY(policy_as_json(&t, &s->arena, p, err));
    else policy_as_text(&t, p);
    return session_give_text(s, &t, out, err);
}

amp_status amp_policy_check(const char *policy, const amp_policy_options *options, amp_compile_result **out,
                            amp_error *err) {
    return call("amp_policy_check", (PolicyArguments){policy, NULL, 0}, options, check, out, err);
}

static amp_status diff(Session *s, const void *arguments, amp_compile_result **out, amp_error *err) {
    const PolicyArguments *a = arguments;
    const Policy *before = NULL, *after = NULL;
    Text t;
    AMP_TRY(read_policy(s, a->policy, &before, err));
    AMP_TRY(read_policy(s, a->other, &after, err));
    const PolicyDiff d = policy_diff(&s->arena, before, after);
    text_init(&t, &s->arena);
    if (a->json) AMP_TRY(policy_diff_as_json(&t, &s->arena, &d, err));
    else policy_diff_as_text(&t, &d);
    return session_give_text(s, &t, out, err);
}

amp_status amp_policy_diff(const char *before, const char *after, const amp_policy_options *options,
                           amp_compile_result **out, amp_error *err) {
    return call("amp_policy_diff", (PolicyArguments){before, after, 0}, options, diff, out, err);
}
