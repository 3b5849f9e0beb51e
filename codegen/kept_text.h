/* kept_text.h: the text of the IR in a section of a compiled model: a zlib stream (RFC 1950), which no loader maps. */
#ifndef AMP_CODEGEN_KEPT_TEXT_H
#define AMP_CODEGEN_KEPT_TEXT_H

#include "base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C that puts |bytes| into the section that |section|, a macro of amp/model_abi.h, names. */
void kept_text_section(Text *c, const char *section, const Text *bytes);

void kept_text_pack(const Text *text, Text *out);
/* Takes longer, for some bytes less. */
void kept_text_pack_small(const char *bytes, size_t size, Text *out);
/* Whether bytes of a section are packed: text is not, as every ampc before 0.1.0 kept it. */
bool kept_text_is_packed(const char *bytes, size_t size);
/* Appends the text.  False: the bytes are damaged. */
bool kept_text_unpack(const char *bytes, size_t size, Text *out);

#ifdef __cplusplus
}
#endif

#endif
