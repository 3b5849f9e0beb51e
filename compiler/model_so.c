/* model_so.c: a compiled model as a source: its sections, which are read without running it. */
#include "compiler/compile_session.h"

#include <string.h>

#include "amp/model_abi.h"
#include "base/elf.h"
#include "base/error.h"
#include "codegen/kept_text.h"

bool model_so_is(const Source *source) { return source->len > 4 && !memcmp(source->text, "\177ELF", 4); }

static amp_status unpack(Session *s, const char *name, const char *bytes, size_t size, const char **text,
                         amp_error *err) {
    Text t;
    text_init(&t, &s->arena);
    if (!kept_text_unpack(bytes, size, &t))
        return amp_fail(err, AMP_BAD_FILE, "%s: section %s is damaged", s->source->name, name);
    *text = text_str(&t);
    return AMP_OK;
}

amp_status model_so_section(Session *s, const char *name, const char **text, amp_error *err) {
    static const char none[] = AMP_MODEL_NO_IR;
    size_t offset, length;
    amp_error why = {0};
    if (amp_elf_section(s->source->text, s->source->len, name, &offset, &length, &why))
        return amp_fail(err, AMP_BAD_FILE, "%s: %s", s->source->name, why.message);
    const char *bytes = s->source->text + offset;
    if (kept_text_is_packed(bytes, length)) return unpack(s, name, bytes, length, text, err);
    while (length && !bytes[length - 1]) length--;
    *text = arena_strndup(&s->arena, bytes, length);
    if (strncmp(*text, none, sizeof none - 1) != 0) return AMP_OK;
    return amp_fail(err, AMP_BAD_FILE, "%s: compiled with --no-ir: compile %s again", s->source->name,
                    *text + sizeof none - 1);
}

static const Source *source_of(Session *s, const char *name, const char *text) {
    Source *source = arena_new(&s->arena, Source);
    *source = (Source){.name = name, .text = text, .len = strlen(text)};
    return source;
}

amp_status model_so_module(Session *s, const char *section, Module **out, amp_error *err) {
    const char *text;
    AMP_TRY(model_so_section(s, section, &text, err));
    return session_read_ir(s, text, out, err);
}

static void keep_policy(Session *s, const KeptSource *kept) {
    s->kept_policy = source_of(s, kept->policy, kept->policy_text);
    if (!s->options.policy && !s->options.precision) s->options.policy = s->kept_policy->name;
}

amp_status model_so_open(Session *s, amp_error *err) {
    const char *text;
    KeptSource kept;
    AMP_TRY(model_so_section(s, AMP_MODEL_IR_SECTION, &text, err));
    if (!ir_read_kept(&s->arena, &s->diags, source_of(s, s->source->name, text), &kept)) return session_report(s, err);
    if (!kept.model_text || !kept.policy_text || !kept.policy)
        return amp_fail(err, AMP_BAD_FILE,
                        "%s: does not keep what it was compiled from, IR of a later stage or by an earlier ampc: give "
                        "the model's source",
                        s->source->name);
    keep_policy(s, &kept);
    s->source = source_of(s, s->source->name, kept.model_text);
    s->is_ir = true;
    return AMP_OK;
}
